//! Case files that a program wrote: new ones are written whole, present ones are not touched unless told.

use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
#[error("cannot read or write {path}")]
pub struct VariantError {
    pub path: PathBuf,
    pub source: std::io::Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    New,
    Same,
    /// Somebody changed the file, or another version wrote it; it was left.
    Differs,
    Replaced,
}

/// Writes a case below `folder`, as `folder/ID.toml`.
pub fn write(
    folder: &Path,
    id: &str,
    text: &str,
    overwrite: bool,
) -> Result<Written, VariantError> {
    let path = file(folder, id);
    let fault = |source| VariantError {
        path: path.clone(),
        source,
    };
    let written = match std::fs::read_to_string(&path) {
        Ok(present) if present == text => return Ok(Written::Same),
        Ok(_) if !overwrite => return Ok(Written::Differs),
        Ok(_) => Written::Replaced,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Written::New,
        Err(error) => return Err(fault(error)),
    };
    let below = path.parent().expect("a file lies in a folder");
    std::fs::create_dir_all(below).map_err(fault)?;
    let draft = path.with_extension("toml.new");
    std::fs::write(&draft, text)
        .and_then(|()| std::fs::rename(&draft, &path))
        .map_err(fault)?;
    Ok(written)
}

pub fn file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_left_unless_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |text: &str, overwrite: bool, expected: Written, kept: &str| {
            let written = write(folder.path(), "a/b", text, overwrite).expect("writes");
            assert_eq!(written, expected);
            let present = std::fs::read_to_string(file(folder.path(), "a/b")).expect("reads");
            assert_eq!(present, kept);
        };
        check("one", false, Written::New, "one");
        check("one", false, Written::Same, "one");
        check("two", false, Written::Differs, "one");
        check("two", true, Written::Replaced, "two");
    }
}
