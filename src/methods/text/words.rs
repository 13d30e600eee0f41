//! Text split into terms: English words without their endings, identifiers whole and in their parts,
//! Chinese, Japanese and Korean as pairs of letters.

use std::collections::BTreeMap;

/// A stretch of text that belongs together, before it is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk<'a> {
    /// A word or an identifier: letters, digits, and `_ - . /` inside.
    Word(&'a str),
    /// Letters of a script without blanks between words.
    Dense(&'a str),
}

/// Longer words are keys, hashes and paths of one machine.
const MAX_WORD_LEN: usize = 40;

/// The chunks of a text in their order; addresses of the web are left out.
pub fn chunks(text: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    for piece in text.split_whitespace() {
        if piece.contains("://") {
            continue;
        }
        let mut start = 0;
        let mut before = Kind::Other;
        for (at, letter) in piece.char_indices() {
            let kind = Kind::of(letter);
            if kind != before {
                push(&mut chunks, before, &piece[start..at]);
                (start, before) = (at, kind);
            }
        }
        push(&mut chunks, before, &piece[start..]);
    }
    chunks
}

/// The terms of a text in their order.
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for chunk in chunks(text) {
        extend(&mut terms, chunk);
    }
    terms
}

/// The one term of a word as a list names it: an identifier whole, any other word without its ending.
pub fn term(word: &str) -> String {
    terms(word)
        .into_iter()
        .next()
        .unwrap_or_else(|| word.to_lowercase())
}

/// Appends the terms of one chunk.
pub fn extend(terms: &mut Vec<String>, chunk: Chunk<'_>) {
    each_term(chunk, &mut |term, _| terms.push(term));
}

/// For each wanted term of the texts the word that it stands for most often, in lower case; of several the shortest,
/// then the first in the alphabet.
pub fn readable<'a>(
    texts: impl Iterator<Item = &'a str>,
    is_wanted: impl Fn(&str) -> bool,
) -> BTreeMap<String, String> {
    let mut counts: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for chunk in texts.flat_map(chunks) {
        each_term(chunk, &mut |term, word| {
            if !is_wanted(&term) {
                return;
            }
            let words = counts.entry(term).or_default();
            *words.entry(word.to_lowercase()).or_default() += 1;
        });
    }
    counts
        .into_iter()
        .filter_map(|(term, words)| {
            let (word, _) = words
                .into_iter()
                .min_by_key(|(word, n)| (std::cmp::Reverse(*n), word.len(), word.clone()))?;
            Some((term, word))
        })
        .collect()
}

/// A word without its English ending: `files` → `fil`, `denied` → `deny`, `editing` → `edit`.
///
/// The result need not be a word; it is the same for forms of one word.
pub fn stem(word: &str) -> String {
    if !word.is_ascii() {
        return word.to_owned();
    }
    let mut stem = word.to_owned();
    let shorter = |word: &str, n: usize| word[..word.len() - n].to_owned();
    if stem.len() > 4 && (stem.ends_with("ies") || stem.ends_with("ied")) {
        stem = shorter(&stem, 3) + "y";
    } else if stem.len() > 4 && stem.ends_with("sses") {
        stem = shorter(&stem, 2);
    } else if stem.len() > 3
        && stem.ends_with('s')
        && !["ss", "us", "is"].iter().any(|end| stem.ends_with(end))
    {
        stem = shorter(&stem, 1);
    }
    for ending in ["ing", "ed"] {
        let Some(rest) = stem.strip_suffix(ending) else {
            continue;
        };
        if rest.len() >= 3 && rest.contains(['a', 'e', 'i', 'o', 'u', 'y']) {
            let bytes = rest.as_bytes();
            let last = bytes[bytes.len() - 1];
            let doubled = bytes[bytes.len() - 2] == last && !b"lsz".contains(&last);
            stem = shorter(rest, usize::from(doubled));
            break;
        }
    }
    if stem.len() > 3 && stem.ends_with('e') {
        stem.pop();
    }
    stem
}

/// A letter of a script without blanks between words: Chinese, Japanese, Korean.
pub fn is_dense(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Dense,
    Other,
}

impl Kind {
    fn of(letter: char) -> Self {
        match letter {
            letter if is_dense(letter) => Self::Dense,
            '_' | '-' | '.' | '/' => Self::Word,
            letter if letter.is_alphanumeric() => Self::Word,
            _ => Self::Other,
        }
    }
}

fn push<'a>(chunks: &mut Vec<Chunk<'a>>, kind: Kind, text: &'a str) {
    match kind {
        Kind::Dense => chunks.push(Chunk::Dense(text)),
        Kind::Word => {
            let word = text.trim_matches(['_', '-', '.', '/']);
            if !word.is_empty() && word.len() <= MAX_WORD_LEN {
                chunks.push(Chunk::Word(word));
            }
        }
        Kind::Other => {}
    }
}

/// Gives each term of a chunk with the text that it was made from.
fn each_term(chunk: Chunk<'_>, give: &mut impl FnMut(String, &str)) {
    match chunk {
        Chunk::Word(word) => each_term_of_word(word, give),
        Chunk::Dense(text) => {
            let letters: Vec<char> = text.chars().collect();
            if let [_] = letters.as_slice() {
                give(text.to_owned(), text);
            }
            for pair in letters.windows(2) {
                let pair: String = pair.iter().collect();
                give(pair.clone(), &pair);
            }
        }
    }
}

fn each_term_of_word(word: &str, give: &mut impl FnMut(String, &str)) {
    let parts = parts(word);
    let has_letter = word.contains(char::is_alphabetic);
    if parts.len() > 1 && has_letter && !is_key(word) {
        give(word.to_lowercase(), word);
    }
    for part in parts {
        let lower = part.to_lowercase();
        let is_number = lower.chars().all(char::is_numeric);
        if is_number || lower.chars().count() < 2 || STOP_WORDS.contains(&lower.as_str()) {
            continue;
        }
        give(stem(&lower), part);
    }
}

/// Hexadecimal keys, such as commits and parts of UUIDs, say nothing.
fn is_key(word: &str) -> bool {
    word.len() >= 7
        && word.contains(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// `PreToolUse` → Pre Tool Use; `read_file` → read file; `JSONError` → JSON Error; `utf8` → utf 8.
fn parts(word: &str) -> Vec<&str> {
    let letters: Vec<(usize, char)> = word.char_indices().collect();
    let mut parts = Vec::new();
    let mut start: Option<usize> = None;
    for (idx, &(at, letter)) in letters.iter().enumerate() {
        if !letter.is_alphanumeric() {
            if let Some(from) = start.take() {
                parts.push(&word[from..at]);
            }
            continue;
        }
        let Some(from) = start else {
            start = Some(at);
            continue;
        };
        let before = letters[idx - 1].1;
        let next_is_lower = letters
            .get(idx + 1)
            .is_some_and(|next| next.1.is_lowercase());
        let hump = letter.is_uppercase()
            && (before.is_lowercase() || (before.is_uppercase() && next_is_lower));
        if hump || letter.is_numeric() != before.is_numeric() {
            parts.push(&word[from..at]);
            start = Some(at);
        }
    }
    if let Some(from) = start {
        parts.push(&word[from..]);
    }
    parts
}

/// Words that say nothing about what an issue or a clause is about. `not` and its kin are among them: a bag of
/// words cannot tell what they deny.
const STOP_WORDS: &[&str] = &[
    "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "been", "before", "between", "both", "but", "by", "can", "could", "did", "do", "does", "doing",
    "don", "done", "each", "eg", "etc", "even", "for", "from", "get", "gets", "got", "had", "has",
    "have", "he", "hello", "her", "here", "hi", "his", "how", "ie", "if", "im", "in", "into", "is",
    "isn", "it", "its", "just", "let", "like", "ll", "me", "more", "most", "my", "no", "nor",
    "not", "now", "of", "off", "on", "once", "one", "only", "or", "other", "our", "out", "over",
    "own", "please", "re", "same", "she", "should", "so", "some", "still", "such", "than", "thank",
    "thanks", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "to", "too", "up", "us", "use", "used", "using", "ve", "very", "via", "was", "we", "were",
    "what", "when", "where", "which", "while", "who", "whom", "why", "will", "with", "won",
    "would", "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lose_their_endings() {
        let check = |word: &str, expected: &str| assert_eq!(stem(word), expected, "{word}");
        check("files", "fil");
        check("file", "fil");
        check("denied", "deny");
        check("deny", "deny");
        check("denies", "deny");
        check("editing", "edit");
        check("stopped", "stop");
        check("calling", "call");
        check("process", "process");
        check("status", "status");
        check("rule", "rul");
        check("write", "writ");
        check("writing", "writ");
        check("string", "string");
    }

    #[test]
    fn identifiers_are_kept_whole_and_split() {
        let check = |text: &str, expected: &[&str]| assert_eq!(terms(text), expected, "{text}");
        check("PreToolUse", &["pretooluse", "pre", "tool"]);
        check("`read_file`", &["read_file", "read", "fil"]);
        check(
            "JSONDecodeError",
            &["jsondecodeerror", "json", "decod", "error"],
        );
        check(
            "--permission-mode",
            &["permission-mode", "permission", "mod"],
        );
        check("src/app.py:12", &["src/app.py", "src", "app", "py"]);
        check("UTF-8", &["utf-8", "utf"]);
        check("version 2.1.50", &["version"]);
        check("3f2a9c1d-77b0", &[]);
        check("see https://example.org/a/b", &["see"]);
        check("café", &["café"]);
    }

    #[test]
    fn a_term_is_shown_as_the_word_that_people_wrote() {
        let words = readable(
            ["Files and files", "a file, write_file", "权限"].into_iter(),
            |_| true,
        );
        let check = |term: &str, expected: &str| assert_eq!(words[term], expected);
        check("fil", "file");
        check("write_file", "write_file");
        check("writ", "write");
        check("权限", "权限");
    }

    #[test]
    fn dense_scripts_come_in_pairs() {
        let check = |text: &str, expected: &[&str]| assert_eq!(terms(text), expected, "{text}");
        check("权限规则", &["权限", "限规", "规则"]);
        check("用edit工具", &["用", "edit", "工具"]);
        check("ファイル", &["ファ", "ァイ", "イル"]);
        check("권한규칙", &["권한", "한규", "규칙"]);
    }
}
