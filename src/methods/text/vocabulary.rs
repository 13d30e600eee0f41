//! The document's words for those of other harnesses, of everyday speech, and of other languages.
//!
//! An issue says `yolo` or `权限`, the document `auto` and `permission`. The list is a settings file; a term of the
//! issue stays, and the document's terms are added to it.

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

    /// The terms of a text, with those that the vocabulary adds right behind what they stand for.
    pub fn terms(&self, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        for chunk in words::chunks(text) {
            words::extend(&mut terms, chunk);
            match chunk {
                Chunk::Word(word) => {
                    if let Some(means) = self.words.get(&word.to_lowercase()) {
                        terms.extend(means.iter().cloned());
                    }
                }
                Chunk::Dense(text) => {
                    for (phrase, means) in &self.phrases {
                        if text.contains(phrase.as_str()) {
                            terms.extend(means.iter().cloned());
                        }
                    }
                }
            }
        }
        terms
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
            assert_eq!(vocabulary.terms(text), expected, "{text}");
        };
        check("in YOLO mode", &["yolo", "auto", "mod", "mod"]);
        check("`write_file`", &["write_file", "writ", "fil", "writ"]);
        check("的权限", &["的权", "权限", "permission"]);
        check("nothing", &["noth"]);
    }
}
