//! What the tasks of an array have written: its end says why a shard is not sealed.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::domain::visible::{shortened, visible_line};

/// So much of the end of a file is read, and so many of its lines are told.
const END_BYTES: u64 = 4096;
const END_LINES: usize = 3;
const SHOWN_CHARS: usize = 300;

/// The newest log of a shard and its last lines; none when it wrote nothing.
pub(super) fn last_words(logs: &Path, shard: u32) -> Option<(PathBuf, String)> {
    let (_, path) = std::fs::read_dir(logs)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            // `41_3.log`: the array and its task.
            let name = entry.file_name().into_string().ok()?;
            let (array, task) = name.strip_suffix(".log")?.split_once('_')?;
            let is_its = task.parse() == Ok(shard);
            is_its.then_some((array.parse::<u64>().ok()?, entry.path()))
        })
        .max()?;
    let lines = end_of(&path).ok().filter(|lines| !lines.is_empty())?;
    Some((path, lines.join(" | ")))
}

fn end_of(path: &Path) -> std::io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(END_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(END_LINES)..];
    Ok(last
        .iter()
        .map(|line| shortened(&visible_line(line), SHOWN_CHARS).into_owned())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_log_of_a_shard_is_read_from_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("writes");
        };
        write("9_3.log", "old\n");
        write("41_13.log", "another shard\n");
        write("merge-42.log", "no task\n");
        write(
            "41_3.log",
            &format!("{}\none\n\ntwo\n three\n\u{1b}four\n", "x".repeat(9000)),
        );
        let (path, words) = last_words(folder.path(), 3).expect("is there");
        assert_eq!(path, folder.path().join("41_3.log"));
        assert_eq!(words, "two | three | ␛four");
        assert_eq!(last_words(folder.path(), 4), None);
        assert_eq!(last_words(&folder.path().join("nowhere"), 3), None);
    }
}
