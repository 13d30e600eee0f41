//! The decision files below `reviews/`, one a kind of subject: append-only JSON lines, flushed before we go on.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::domain::decision::{Decision, Subject, SubjectKind};
use crate::domain::place::Place;

#[derive(Debug, thiserror::Error)]
pub enum ReviewsError {
    #[error("cannot read or write {path}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{place}: {message}")]
    Line { place: Place, message: String },
    /// Something was written since the caller looked.
    #[error("something was decided on {0} meanwhile")]
    Meanwhile(Subject),
}

/// The file of a kind.
pub fn file(reviews: &Path, kind: SubjectKind) -> PathBuf {
    reviews.join(format!("{}s.jsonl", kind.as_str()))
}

/// All decisions of a kind, in the order they were made; none when there is no file.
pub fn read(reviews: &Path, kind: SubjectKind) -> Result<Vec<Decision>, ReviewsError> {
    let path = file(reviews, kind);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(ReviewsError::File { path, source }),
    };
    let line = |(idx, line): (usize, &str)| {
        let fault = |message: String| ReviewsError::Line {
            place: Place::new(&path, idx + 1),
            message,
        };
        let decision: Decision =
            serde_json::from_str(line).map_err(|error| fault(error.to_string()))?;
        if decision.on.kind != kind {
            return Err(fault(format!("{} belongs into another file", decision.on)));
        }
        Ok(decision)
    };
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(line)
        .collect()
}

/// Appends decisions of one kind in one piece, and returns when they are on the disk. A torn last line is closed first.
pub fn append(reviews: &Path, decisions: &[Decision]) -> Result<(), ReviewsError> {
    append_if(reviews, decisions, |_| true)
}

/// The same, unless what was decided so far is not what it should be: nobody writes between that look and the lines.
pub fn append_if(
    reviews: &Path,
    decisions: &[Decision],
    is_expected: impl FnOnce(&[Decision]) -> bool,
) -> Result<(), ReviewsError> {
    let Some(first) = decisions.first() else {
        return Ok(());
    };
    let path = file(reviews, first.on.kind);
    let fault = |source| ReviewsError::File {
        path: path.clone(),
        source,
    };
    let file = locked(reviews, &path).map_err(fault)?;
    if !is_expected(&read(reviews, first.on.kind)?) {
        return Err(ReviewsError::Meanwhile(first.on.clone()));
    }
    write(file, decisions).map_err(fault)
}

/// The file, which nobody else writes until it is closed.
fn locked(reviews: &Path, path: &Path) -> std::io::Result<File> {
    std::fs::create_dir_all(reviews)?;
    let file = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .open(path)?;
    file.lock()?;
    Ok(file)
}

fn write(mut file: File, decisions: &[Decision]) -> std::io::Result<()> {
    let before = file.metadata()?.len();
    let mut lines = Vec::new();
    if torn(&mut file)? {
        lines.push(b'\n');
    }
    for decision in decisions {
        serde_json::to_writer(&mut lines, decision)?;
        lines.push(b'\n');
    }
    let written = file.write_all(&lines).and_then(|()| file.sync_data());
    if written.is_err() {
        // Half a line, as on a full disk, would be in everybody's way.
        let _ = file.set_len(before);
    }
    written
}

fn torn(file: &mut File) -> std::io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0u8];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::decision::Verb;

    #[test]
    fn decisions_come_back_in_order_and_faults_name_the_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let decision = |why: &str| Decision {
            at: "2026-12-01T00:00:00Z".into(),
            by: "r".into(),
            on: "cluster:x".parse().expect("a subject"),
            digest: "d".into(),
            decision: Verb::Approve,
            why: why.into(),
            act: None,
        };
        append(folder.path(), &[decision("first")]).expect("writes");
        append(folder.path(), &[decision("second")]).expect("writes");
        let made = read(folder.path(), SubjectKind::Cluster).expect("reads");
        assert_eq!(made, [decision("first"), decision("second")]);
        let late = append_if(folder.path(), &[decision("late")], |made| made.len() == 1);
        assert!(matches!(late, Err(ReviewsError::Meanwhile(_))), "{late:?}");

        let path = file(folder.path(), SubjectKind::Cluster);
        let mut text = std::fs::read_to_string(&path).expect("reads");
        text.push_str("{\"at\":");
        std::fs::write(&path, text).expect("writes");
        let error = read(folder.path(), SubjectKind::Cluster).expect_err("must fail");
        assert!(matches!(error, ReviewsError::Line { place, .. } if place.line == 3));
    }
}
