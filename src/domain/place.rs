//! Where in a file something stands, for errors that name the file and the line.

use std::fmt;
use std::path::{Path, PathBuf};

/// A line of a text file; lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub file: PathBuf,
    pub line: usize,
}

impl Place {
    pub fn new(file: &Path, line: usize) -> Self {
        Self {
            file: file.to_path_buf(),
            line,
        }
    }

    /// The place of a byte offset in `text`.
    pub fn of_offset(file: &Path, text: &str, offset: usize) -> Self {
        let upto = &text.as_bytes()[..offset.min(text.len())];
        Self::new(file, 1 + upto.iter().filter(|byte| **byte == b'\n').count())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// What is wrong at a place; the text is a lower-case fragment without a final period.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Finding {
    pub place: Place,
    pub message: String,
}

impl Finding {
    pub fn new(place: Place, message: impl Into<String>) -> Self {
        Self {
            place,
            message: message.into(),
        }
    }
}
