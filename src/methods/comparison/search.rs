//! Which of some texts answers a question: BM25 over bags of weighted tokens.

use std::collections::BTreeMap;

use super::tokens::Bag;

/// Some texts, ready to be asked.
#[derive(Debug)]
pub struct Index {
    n_texts: usize,
    /// The texts that have a token, each with what the token says there.
    having: BTreeMap<String, Vec<(usize, f64)>>,
}

/// How soon a token that is said more often says no more.
const SATURATION: f64 = 2.0;

impl Index {
    /// `length`: by how much a long text counts for less, 0 (not at all) to 1 (by its length).
    pub fn of(texts: &[Bag], length: f64) -> Self {
        let lengths: Vec<f64> = texts.iter().map(|bag| bag.values().sum()).collect();
        let mean = lengths.iter().sum::<f64>() / texts.len().max(1) as f64;
        let mut having: BTreeMap<String, Vec<(usize, f64)>> = BTreeMap::new();
        for (idx, bag) in texts.iter().enumerate() {
            let slow = SATURATION * (1.0 - length + length * lengths[idx] / mean);
            for (token, weight) in bag {
                let says = weight * (SATURATION + 1.0) / (weight + slow);
                having.entry(token.clone()).or_default().push((idx, says));
            }
        }
        Self {
            n_texts: texts.len(),
            having,
        }
    }

    /// How much a token says: the fewer texts have it, the more.
    pub fn rarity(&self, token: &str) -> f64 {
        let n_having = self.having.get(token).map_or(0, Vec::len) as f64;
        (1.0 + (self.n_texts as f64 - n_having + 0.5) / (n_having + 0.5)).ln()
    }

    /// How well each text answers, 0 or more, in the order of the texts.
    pub fn scores(&self, question: &Bag) -> Vec<f64> {
        let mut scores = vec![0.0; self.n_texts];
        for (token, weight) in question {
            if let Some(having) = self.having.get(token) {
                let weight = weight * self.rarity(token);
                for (text, says) in having {
                    scores[*text] += weight * says;
                }
            }
        }
        scores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bag(text: &str) -> Bag {
        let mut bag = Bag::new();
        for word in text.split(' ') {
            *bag.entry(word.to_owned()).or_default() += 1.0;
        }
        bag
    }

    #[test]
    fn a_rare_word_in_a_short_text_says_most() {
        let texts = [
            "read file",
            "read link file lines of text",
            "read file write",
        ]
        .map(bag);
        let check = |length: f64, question: &str, expected: usize| {
            let scores = Index::of(&texts, length).scores(&bag(question));
            let best = (0..texts.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
            assert_eq!(best, Some(expected), "{question} {scores:?}");
        };
        check(0.6, "read link", 1);
        check(0.6, "read write", 2);
        check(1.0, "read file", 0);
        let none = Index::of(&texts, 0.6).scores(&bag("socket"));
        assert_eq!(none, [0.0; 3]);
    }
}
