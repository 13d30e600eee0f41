//! The document's words for those of other harnesses, of everyday speech, and of other languages.
//!
//! An issue says `yolo` or `权限`, the document `auto` and `permission`. The list is a settings file; the issue's own
//! terms stay beside what is added.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words::{self, Chunk};

/// `pipeline/vocabulary.toml`: a reporter's word, and the document's words for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VocabularyFile {
    #[serde(default)]
    pub words: BTreeMap<String, String>,
    /// Of scripts without blanks.
    #[serde(default)]
    pub phrases: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    words: BTreeMap<String, Vec<String>>,
    /// Looked for anywhere in a stretch.
    phrases: Vec<(String, Vec<String>)>,
}

impl Vocabulary {
    pub fn new(file: &VocabularyFile) -> Self {
        Self {
            words: file
                .words
                .iter()
                .map(|(word, means)| (word.to_lowercase(), words::terms(means)))
                .collect(),
            phrases: file
                .phrases
                .iter()
                .map(|(phrase, means)| (phrase.clone(), words::terms(means)))
                .collect(),
        }
    }

    /// The document's terms for the words of a text, in the order of the words.
    pub fn added(&self, text: &str) -> Vec<String> {
        let mut added = Vec::new();
        for chunk in words::chunks(text) {
            match chunk {
                Chunk::Word(word) => {
                    if let Some(means) = self.words.get(&word.to_lowercase()) {
                        added.extend(means.iter().cloned());
                    }
                }
                Chunk::Dense(text) => {
                    for (phrase, means) in &self.phrases {
                        if text.contains(phrase.as_str()) {
                            added.extend(means.iter().cloned());
                        }
                    }
                }
            }
        }
        added
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_document_are_added() {
        let pairs = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                .collect()
        };
        let vocabulary = Vocabulary::new(&VocabularyFile {
            words: pairs(&[("yolo", "auto mode"), ("write_file", "write")]),
            phrases: pairs(&[("权限", "permission")]),
        });
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(vocabulary.added(text), expected, "{text}");
        };
        check("in YOLO mode", &["auto", "mod"]);
        check("`write_file` and write_file", &["writ", "writ"]);
        check("的权限", &["permission"]);
        check("nothing", &[]);
    }
}
