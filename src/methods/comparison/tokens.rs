//! Texts as weighted tokens: words under the document's word for them, identifiers whole and split, numbers, flags.
//!
//! A token that few texts can share by chance weighs more: a number or a whole identifier more than a plain word.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::terms::terms;

/// Tokens with their weights.
pub type Bag = BTreeMap<String, f64>;

/// How much a token of each sort weighs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    pub word: f64,
    /// An identifier of several words, whole.
    pub identifier: f64,
    pub number: f64,
    pub flag: f64,
}

/// The document's words for what others call otherwise.
#[derive(Debug, Clone)]
pub struct Words<'s> {
    canonical: BTreeMap<String, Vec<String>>,
    weights: &'s Weights,
}

/// Numbers below this are everywhere.
const LEAST_NUMBER: i64 = 5;

impl<'s> Words<'s> {
    /// `same`: the document's word or words → the words elsewhere.
    pub fn new(same: &BTreeMap<String, Vec<String>>, weights: &'s Weights) -> Self {
        let mut canonical = BTreeMap::new();
        for (ours, others) in same {
            for other in others.iter().flat_map(|other| terms(other)) {
                canonical.insert(other, terms(ours));
            }
        }
        Self { canonical, weights }
    }

    /// The tokens of a text: how often each is there, and what one of its sort weighs.
    pub fn counted(&self, text: &str) -> BTreeMap<String, (usize, f64)> {
        let mut counted = BTreeMap::new();
        let mut put = |token: String, sort: f64| {
            counted.entry(token).or_insert((0, sort)).0 += 1;
        };
        let chunks: Vec<&str> = text
            .split(|letter: char| !(letter.is_alphanumeric() || "_-,.".contains(letter)))
            .map(|chunk| chunk.trim_matches([',', '.']))
            .filter(|chunk| !chunk.is_empty())
            .collect();
        for (idx, chunk) in chunks.iter().enumerate() {
            if let Some(number) = number(chunk) {
                let times = match chunks.get(idx + 1) {
                    Some(&"KiB") => 1 << 10,
                    Some(&"MiB") => 1 << 20,
                    _ => 1,
                };
                let number = number.saturating_mul(times);
                if number >= LEAST_NUMBER {
                    put(format!("#{number}"), self.weights.number);
                }
                continue;
            }
            for part in chunk.split(['.', ',']) {
                let words = terms(part);
                let is_flag = part.starts_with("--") && !words.is_empty();
                if is_flag {
                    let name = part.trim_start_matches('-');
                    put(format!("--{name}"), self.weights.flag);
                } else if words.len() > 1 {
                    put(format!("={}", words.join("")), self.weights.identifier);
                }
                for word in words {
                    match self.canonical.get(&word) {
                        Some(ours) => {
                            for our in ours {
                                put(our.clone(), self.weights.word);
                            }
                        }
                        None => put(word, self.weights.word),
                    }
                }
            }
        }
        counted
    }

    /// Adds the tokens of a text; a token that is there keeps its greater weight.
    pub fn add(&self, bag: &mut Bag, text: &str, weight: f64) {
        for (token, (_, sort)) in self.counted(text) {
            let known = bag.entry(token).or_default();
            *known = known.max(sort * weight);
        }
    }

    /// Adds the tokens of a text to what is there; what is said often counts for more, by the logarithm.
    pub fn count(&self, bag: &mut Bag, text: &str, weight: f64) {
        for (token, (n, sort)) in self.counted(text) {
            *bag.entry(token).or_default() += sort * weight * (1.0 + (n as f64).ln());
        }
    }

    pub fn bag(&self, text: &str) -> Bag {
        let mut bag = Bag::new();
        self.add(&mut bag, text, 1.0);
        bag
    }
}

/// `2000`, `30,000` and `30_000`.
fn number(chunk: &str) -> Option<i64> {
    let is_number = chunk.starts_with(|first: char| first.is_ascii_digit())
        && chunk
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b',' || byte == b'_');
    let digits: String = chunk.chars().filter(char::is_ascii_digit).collect();
    is_number.then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_has_the_same_tokens_on_both_sides() {
        let weights = Weights {
            word: 1.0,
            identifier: 2.0,
            number: 3.0,
            flag: 4.0,
        };
        let same = BTreeMap::from([
            ("directory".to_owned(), vec!["dir".to_owned()]),
            ("time limit".to_owned(), vec!["timeout".to_owned()]),
        ]);
        let words = Words::new(&same, &weights);
        let check = |text: &str, expected: &[(&str, f64)]| {
            let bag = words.bag(text);
            let seen: Vec<(&str, f64)> =
                bag.iter().map(|(token, w)| (token.as_str(), *w)).collect();
            assert_eq!(seen, expected, "{text}");
        };
        check("of 30,000 lines", &[("#30000", 3.0), ("lin", 1.0)]);
        check("N_LINES = 30_000", &[("#30000", 3.0), ("lin", 1.0)]);
        check("10 MiB", &[("#10485760", 3.0), ("mi", 1.0)]);
        check(
            "maxTurns",
            &[("=maxturn", 2.0), ("max", 1.0), ("turn", 1.0)],
        );
        check(
            "`--max-turns 2`",
            &[("--max-turns", 4.0), ("max", 1.0), ("turn", 1.0)],
        );
        check(
            "dir timeout.",
            &[("directory", 1.0), ("limit", 1.0), ("tim", 1.0)],
        );
    }
}
