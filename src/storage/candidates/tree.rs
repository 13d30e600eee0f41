//! The tree of a candidate: its files in order, read, copied or digested.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::{CandidatesError, Result, at, mutant, set_mode, sorted};
use crate::domain::candidate::{Candidate, FileKind, Source, TreeFile};
use crate::domain::digest::Digester;

/// Writes the candidate's tree into `into`, which is made and must be empty. Byte code and `.git` are left out,
/// links stay links, of the mode only the executable bit is kept.
///
/// For a mutant each edit must match exactly once, counted after the edits before it; the error names the mutant's
/// file and the number of the edit.
pub fn materialise(candidate: &Candidate, into: &Path) -> Result<()> {
    fs::create_dir_all(into).map_err(at(into))?;
    if let Some(present) = sorted(into)?.first() {
        return Err(CandidatesError::File {
            path: present.clone(),
            source: std::io::Error::from(std::io::ErrorKind::AlreadyExists),
        });
    }
    match &candidate.source {
        Source::Tree(tree) => write(&files(tree)?, into),
        Source::Mutant { of, file } => {
            let mutant = mutant::read(file)?;
            write(&files(of)?, into)?;
            for (idx, edit) in mutant.edit.iter().enumerate() {
                mutant::apply(file, idx, edit, into)?;
            }
            Ok(())
        }
    }
}

/// Writes the files and links of a tree below a folder that is there.
pub fn write(files: &[TreeFile], into: &Path) -> Result<()> {
    for file in files {
        let to = into.join(&file.path);
        let folder = to.parent().expect("a file lies in a folder");
        fs::create_dir_all(folder).map_err(at(folder))?;
        match file.kind {
            FileKind::Link => {
                symlink(OsStr::from_bytes(&file.content), &to).map_err(at(&to))?;
            }
            FileKind::Plain | FileKind::Executable => {
                fs::write(&to, &file.content).map_err(at(&to))?;
                let executable = file.kind == FileKind::Executable;
                set_mode(&to, if executable { 0o755 } else { 0o644 })?;
            }
        }
    }
    Ok(())
}

/// All files and links of a tree, sorted by path. Byte code (`__pycache__`), `.git` and empty folders are left out.
pub fn files(tree: &Path) -> Result<Vec<TreeFile>> {
    let mut files = Vec::new();
    walk(tree, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// The digest of a tree ([`crate::domain::digest`]): over the kind, the path and the content of each of its files, as
/// [`files`] gives them.
pub fn digest(tree: &Path) -> Result<String> {
    let mut digester = Digester::default();
    for file in files(tree)? {
        let kind = match file.kind {
            FileKind::Plain => "file",
            FileKind::Executable => "executable",
            FileKind::Link => "link",
        };
        digester.part(kind).part(&file.path).part(&file.content);
    }
    Ok(digester.finish())
}

/// The digest of a candidate as [`materialise`] writes it.
pub fn candidate_digest(candidate: &Candidate) -> Result<String> {
    match &candidate.source {
        Source::Tree(tree) => digest(tree),
        Source::Mutant { .. } => {
            let folder = tempfile::tempdir().map_err(at(Path::new("the temporary folder")))?;
            materialise(candidate, folder.path())?;
            digest(folder.path())
        }
    }
}

fn walk(tree: &Path, below: &str, files: &mut Vec<TreeFile>) -> Result<()> {
    for path in sorted(&tree.join(below))? {
        let name = path.file_name().expect("an entry has a name");
        let Some(name) = name.to_str() else {
            return Err(CandidatesError::Odd { path });
        };
        if name == "__pycache__" || name == ".git" {
            continue;
        }
        let relative = if below.is_empty() {
            name.to_owned()
        } else {
            format!("{below}/{name}")
        };
        let about = fs::symlink_metadata(&path).map_err(at(&path))?;
        let (kind, content) = if about.is_dir() {
            walk(tree, &relative, files)?;
            continue;
        } else if about.is_symlink() {
            let target = fs::read_link(&path).map_err(at(&path))?;
            (FileKind::Link, target.into_os_string().into_encoded_bytes())
        } else if !about.is_file() {
            return Err(CandidatesError::Odd { path });
        } else {
            let executable = about.permissions().mode() & 0o111 != 0;
            let kind = if executable {
                FileKind::Executable
            } else {
                FileKind::Plain
            };
            (kind, fs::read(&path).map_err(at(&path))?)
        };
        files.push(TreeFile {
            path: relative,
            kind,
            content,
        });
    }
    Ok(())
}
