//! Lines of keys in a case file, for findings about it.

use std::path::Path;

use crate::domain::place::Place;

/// Finds lines of keys in a case file.
pub struct Places<'a> {
    file: &'a Path,
    text: &'a str,
}

impl<'a> Places<'a> {
    pub(super) fn new(file: &'a Path, text: &'a str) -> Self {
        Self { file, text }
    }

    pub fn top(&self) -> Place {
        Place::new(self.file, 1)
    }

    /// The line of a top-level key.
    pub fn of(&self, key: &str) -> Place {
        self.line(|line| {
            line.strip_prefix(key)
                .is_some_and(|rest| rest.trim_start().starts_with('='))
        })
    }

    /// The line of the nth `[[table]]`, counted from 0.
    pub fn nth(&self, table: &str, n: usize) -> Place {
        let header = format!("[[{table}]]");
        let line = self
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.trim() == header)
            .nth(n);
        Place::new(self.file, line.map_or(1, |(idx, _)| idx + 1))
    }

    pub(super) fn of_entry(&self, table: &str, key: &str) -> Place {
        let quoted = format!("\"{key}\"");
        let place = self.line(|line| line.starts_with(&quoted) || line.starts_with(key));
        if place.line == 1 {
            self.line(|line| line.trim() == format!("[{table}]"))
        } else {
            place
        }
    }

    fn line(&self, wanted: impl Fn(&str) -> bool) -> Place {
        let line = self.text.lines().position(|line| wanted(line.trim_start()));
        Place::new(self.file, line.map_or(1, |idx| idx + 1))
    }
}
