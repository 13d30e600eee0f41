//! The source files of a tree that somebody else wrote: read as text, never run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use globset::GlobSet;

#[derive(Debug, thiserror::Error)]
pub enum SourceTreeError {
    #[error("cannot read {path}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{folder} holds no file that ends in {endings}")]
    Empty { folder: PathBuf, endings: String },
}

/// The text of each file below `folder` whose name has one of the endings, by its path below it, but for those whose path
/// matches `skip`. Links are not followed. Bytes that are no UTF-8 become U+FFFD.
pub fn read(
    folder: &Path,
    endings: &[&str],
    skip: &GlobSet,
) -> Result<BTreeMap<PathBuf, String>, SourceTreeError> {
    let mut files = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let here = folder.join(&below);
        let at = |path: &Path| {
            let path = path.to_path_buf();
            move |source| SourceTreeError::File { path, source }
        };
        for entry in std::fs::read_dir(&here).map_err(at(&here))? {
            let entry = entry.map_err(at(&here))?;
            let relative = below.join(entry.file_name());
            if skip.is_match(&relative) {
                continue;
            }
            let kind = entry.file_type().map_err(at(&entry.path()))?;
            if kind.is_dir() {
                folders.push(relative);
            } else if kind.is_file()
                && relative
                    .extension()
                    .is_some_and(|found| endings.iter().any(|ending| found == *ending))
            {
                let bytes = std::fs::read(entry.path()).map_err(at(&entry.path()))?;
                files.insert(relative, String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
    if files.is_empty() {
        return Err(SourceTreeError::Empty {
            folder: folder.to_path_buf(),
            endings: endings
                .iter()
                .map(|ending| format!(".{ending}"))
                .collect::<Vec<_>>()
                .join(", "),
        });
    }
    Ok(files)
}

/// `name@version` from the folder of an unpacked wheel or from `package.json` (without the scope), else the folder's own
/// name.
pub fn name(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut packed: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (name, version) = name.strip_suffix(".dist-info")?.rsplit_once('-')?;
            Some(format!("{}@{version}", name.replace('_', "-")))
        })
        .collect();
    packed.sort();
    let packed = packed.into_iter().next();
    packed.or_else(|| of_package(folder)).unwrap_or_else(|| {
        let whole = folder.canonicalize();
        let whole = whole.as_deref().unwrap_or(folder);
        whole
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    })
}

fn of_package(folder: &Path) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Package {
        name: String,
        version: String,
    }
    let text = std::fs::read_to_string(folder.join("package.json")).ok()?;
    let package: Package = serde_json::from_str(&text).ok()?;
    let name = package.name.rsplit('/').next().unwrap_or_default();
    Some(format!("{name}@{}", package.version))
}

#[cfg(test)]
mod tests {
    use globset::{Glob, GlobSetBuilder};

    use super::*;

    #[test]
    fn files_come_by_their_path_and_skipped_ones_do_not() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in [
            "a.py",
            "deep/b.py",
            "deep/c.txt",
            "tests/d.py",
            "x-1.2.dist-info/e",
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("makes");
            std::fs::write(path, "x").expect("writes");
        }
        let mut skip = GlobSetBuilder::new();
        skip.add(Glob::new("**/tests").expect("a glob"));
        let skip = skip.build().expect("globs");
        let files = read(folder.path(), &["py"], &skip).expect("reads");
        let paths: Vec<String> = files
            .keys()
            .map(|path| path.display().to_string())
            .collect();
        assert_eq!(paths, ["a.py", "deep/b.py"]);
        assert_eq!(name(folder.path()), "x@1.2");
        assert_eq!(name(&folder.path().join("deep")), "deep");
        assert!(matches!(
            read(folder.path(), &["rs"], &skip),
            Err(SourceTreeError::Empty { .. })
        ));
    }

    #[test]
    fn a_package_of_npm_says_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let package = folder.path().join("package.json");
        std::fs::write(&package, r#"{"name": "@scope/tool", "version": "1.2.3"}"#).expect("writes");
        assert_eq!(name(folder.path()), "tool@1.2.3");
        std::fs::write(&package, "{}").expect("writes");
        assert_ne!(name(folder.path()), "tool@1.2.3");
    }
}
