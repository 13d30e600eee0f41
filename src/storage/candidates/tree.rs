//! The tree of a candidate: its files in order, copied or digested.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::{CandidatesError, Result, at, mutant, set_mode, sorted};
use crate::domain::candidate::{Candidate, Source};
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
        Source::Tree(tree) => copy(tree, into),
        Source::Mutant { of, file } => {
            let mutant = mutant::read(file)?;
            copy(of, into)?;
            for (idx, edit) in mutant.edit.iter().enumerate() {
                mutant::apply(file, idx, edit, into)?;
            }
            Ok(())
        }
    }
}

/// The digest of a tree ([`crate::domain::digest`]): over the sorted relative paths, the executable bit and
/// the contents of its files, and the targets of its links. Byte code (`__pycache__`), `.git` and empty folders play
/// no part.
pub fn digest(tree: &Path) -> Result<String> {
    let mut files = Vec::new();
    walk(tree, Path::new(""), &mut files)?;
    files.sort_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
    let mut digester = Digester::default();
    for file in files {
        let full = tree.join(&file.path);
        let (kind, content) = match file.kind {
            FileKind::Plain => ("file", fs::read(&full).map_err(at(&full))?),
            FileKind::Executable => ("executable", fs::read(&full).map_err(at(&full))?),
            FileKind::Link => {
                let target = fs::read_link(&full).map_err(at(&full))?;
                ("link", target.as_os_str().as_encoded_bytes().to_vec())
            }
        };
        let path = file.path.as_os_str().as_encoded_bytes();
        digester.part(kind).part(path).part(&content);
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

enum FileKind {
    Plain,
    Executable,
    Link,
}

/// A file or link of a tree, by its path below it.
struct TreeFile {
    path: PathBuf,
    kind: FileKind,
}

fn walk(tree: &Path, below: &Path, files: &mut Vec<TreeFile>) -> Result<()> {
    for path in sorted(&tree.join(below))? {
        let name = path.file_name().expect("an entry has a name");
        if name == "__pycache__" || name == ".git" {
            continue;
        }
        let relative = below.join(name);
        let about = fs::symlink_metadata(&path).map_err(at(&path))?;
        let kind = if about.is_dir() {
            walk(tree, &relative, files)?;
            continue;
        } else if about.is_symlink() {
            FileKind::Link
        } else if !about.is_file() {
            return Err(CandidatesError::Odd { path });
        } else if about.permissions().mode() & 0o111 != 0 {
            FileKind::Executable
        } else {
            FileKind::Plain
        };
        files.push(TreeFile {
            path: relative,
            kind,
        });
    }
    Ok(())
}

fn copy(tree: &Path, into: &Path) -> Result<()> {
    let mut files = Vec::new();
    walk(tree, Path::new(""), &mut files)?;
    for file in files {
        let (from, to) = (tree.join(&file.path), into.join(&file.path));
        let folder = to.parent().expect("a file lies in a folder");
        fs::create_dir_all(folder).map_err(at(folder))?;
        match file.kind {
            FileKind::Link => {
                let target = fs::read_link(&from).map_err(at(&from))?;
                symlink(target, &to).map_err(at(&to))?;
            }
            FileKind::Plain | FileKind::Executable => {
                fs::copy(&from, &to).map_err(at(&from))?;
                let executable = matches!(file.kind, FileKind::Executable);
                set_mode(&to, if executable { 0o755 } else { 0o644 })?;
            }
        }
    }
    Ok(())
}
