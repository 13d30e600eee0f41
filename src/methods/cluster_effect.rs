//! The effect that the issues of a cluster share, in one line and in the words of one of them: the sentence that holds
//! most of what tells the cluster from the others.

use std::collections::{BTreeMap, BTreeSet};

/// Characters of a sentence: fewer are a heading, more are a paragraph.
const CHARS: std::ops::RangeInclusive<usize> = 20..=160;
/// Terms beside the telling ones that a sentence may have at half of its worth.
const HALF_AT: f64 = 12.0;

/// The best sentence of the texts, which come with the representative first; none when they have no sentence. `telling`
/// are the terms of the cluster, the strongest first. The earlier of two that are as good.
pub fn effect(
    texts: &[&str],
    telling: &[&str],
    terms: impl Fn(&str) -> Vec<String>,
) -> Option<String> {
    let worth: BTreeMap<&str, f64> = telling
        .iter()
        .zip(1u32..)
        .map(|(term, place)| (*term, 1.0 / f64::from(place).sqrt()))
        .collect();
    let mut best: Option<(&str, f64)> = None;
    for sentence in texts.iter().flat_map(|text| sentences(text)) {
        let terms: BTreeSet<String> = terms(sentence).into_iter().collect();
        let found = terms.iter().filter_map(|term| worth.get(term.as_str()));
        let (n_found, sum) = found.fold((0, 0.0), |(n, sum), worth| (n + 1, sum + worth));
        let n_others = (terms.len() - n_found) as f64;
        let score = sum * HALF_AT / (HALF_AT + n_others);
        if best.is_none_or(|(_, most)| score > most + 1e-9) {
            best = Some((sentence, score));
        }
    }
    best.map(|(sentence, _)| sentence.to_owned())
}

/// Lines, cut at the ends of sentences; without what opens a list or a heading.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| line.split_inclusive(['。', '！', '？']))
        .flat_map(|line| {
            let ends: Vec<usize> = line
                .match_indices(['.', '!', '?'])
                .map(|(at, _)| at + 1)
                .filter(|end| line[*end..].starts_with(' '))
                .chain([line.len()])
                .collect();
            let starts: Vec<usize> = [0].into_iter().chain(ends.iter().copied()).collect();
            starts
                .into_iter()
                .zip(ends)
                .map(|(start, end)| &line[start..end])
        })
        .map(|sentence| {
            sentence
                .trim_start_matches(['#', '-', '*', '>', ' '])
                .trim()
        })
        .filter(|sentence| CHARS.contains(&sentence.chars().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let plain = |word: &str| {
            word.trim_matches(|c: char| !c.is_alphanumeric())
                .to_lowercase()
        };
        text.split_whitespace().map(plain).collect()
    }

    #[test]
    fn the_sentence_that_tells_most_is_taken_as_it_stands() {
        let telling = ["link", "outside", "read"];
        let check = |texts: &[&str], expected: Option<&str>| {
            assert_eq!(
                effect(texts, &telling, words).as_deref(),
                expected,
                "{texts:?}"
            );
        };
        check(
            &[
                "I use it daily, it is fine. Read follows a link outside. Please fix this soon, thanks!",
            ],
            Some("Read follows a link outside."),
        );
        check(
            &[
                "## Steps to reproduce it\n- make a link and then read it",
                "the link is read outside of it",
            ],
            Some("the link is read outside of it"),
        );
        // A long one that says it in passing is worth less than a short one.
        check(
            &[
                "a link, and a b c d e f g h i j k l m n o p q r s t u v",
                "some link that is outside",
            ],
            Some("some link that is outside"),
        );
        check(
            &["nothing of it here at all"],
            Some("nothing of it here at all"),
        );
        check(&["short", ""], None);
        check(
            &["链接指向工作区之外的文件时读取工具没有拒绝。第二句话说的是别的事情。"],
            Some("链接指向工作区之外的文件时读取工具没有拒绝。"),
        );
    }
}
