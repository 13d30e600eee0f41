//! The words in identifiers, messages and clauses, brought to one form so that they can be compared.
//!
//! Unlike [`crate::methods::text`], identifiers are not kept whole: `READ_LIMIT` and `max_read_lines` share a word.

use crate::methods::text::words::stem;

/// Words that say nothing about a feature, in English and in Python.
const STOP: &[&str] = &[
    "a",
    "about",
    "all",
    "also",
    "an",
    "and",
    "any",
    "are",
    "arg",
    "args",
    "as",
    "at",
    "be",
    "been",
    "both",
    "but",
    "by",
    "call",
    "can",
    "cls",
    "could",
    "def",
    "did",
    "do",
    "does",
    "each",
    "either",
    "else",
    "every",
    "exc",
    "false",
    "for",
    "from",
    "function",
    "get",
    "given",
    "got",
    "had",
    "has",
    "have",
    "how",
    "if",
    "import",
    "in",
    "init",
    "into",
    "is",
    "it",
    "its",
    "kwargs",
    "may",
    "might",
    "must",
    "named",
    "neither",
    "no",
    "none",
    "nor",
    "not",
    "obj",
    "of",
    "on",
    "one",
    "only",
    "or",
    "other",
    "otherwise",
    "please",
    "self",
    "set",
    "should",
    "so",
    "some",
    "str",
    "such",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "to",
    "true",
    "two",
    "unless",
    "use",
    "used",
    "using",
    "value",
    "was",
    "were",
    "what",
    "when",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "why",
    "will",
    "with",
    "within",
    "without",
    "would",
    "you",
    "your",
];

/// The words of a text: split at anything that is no letter or digit and at changes of case, in lower case, cut
/// to a stem, without words that say nothing and without bare numbers.
///
/// `READ_LIMIT` and `readLimits` both give `read`, `limit`.
pub fn terms(text: &str) -> Vec<String> {
    words(text)
        .into_iter()
        .filter(|word| {
            word.len() > 1
                && !word.bytes().all(|byte| byte.is_ascii_digit())
                && STOP.binary_search(&word.as_str()).is_err()
        })
        .map(|word| stem(&word))
        .collect()
}

/// Split at anything that is no letter or digit and at changes of case, in lower case.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let letters: Vec<char> = text.chars().collect();
    for (idx, &letter) in letters.iter().enumerate() {
        let before = idx.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(idx + 1);
        let camel = letter.is_uppercase()
            && (before.is_some_and(char::is_lowercase)
                || (before.is_some_and(char::is_uppercase)
                    && after.is_some_and(|next| next.is_lowercase())));
        if (camel || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP.is_sorted());
    }

    #[test]
    fn words_of_one_thing_meet() {
        let check = |text: &str, expected: &[&str]| assert_eq!(terms(text), expected, "{text}");
        check("READ_LIMIT", &["read", "limit"]);
        check("readLimits", &["read", "limit"]);
        check("ReadFile.__call__", &["read", "fil"]);
        check("HTTPError", &["http", "error"]);
        check("the file was not found: {}", &["fil", "found"]);
        check("--max-turns 50", &["max", "turn"]);
        check("denied denies deny", &["deny", "deny", "deny"]);
        check("remove removed removing", &["remov", "remov", "remov"]);
        check("running run", &["run", "run"]);
        check("status process", &["status", "process"]);
        check("naïve größe", &["naïve", "größe"]);
    }
}
