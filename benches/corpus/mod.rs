//! As many issues as the method's authors collected, made up: 600 planted phenomena of 3 to 60 issues in the words of
//! clauses, the rest is noise in the same forms.

use doc2harness::domain::issue::{Issue, IssueKey};

const N_ISSUES: usize = 21_083;
const N_PHENOMENA: usize = 600;

/// A small generator, so that every run makes the same corpus.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    /// Small values are common, large ones rare, as words are in a language.
    fn rank(&mut self, n: usize) -> usize {
        let uniform = self.below(1 << 20) as f64 / f64::from(1 << 20);
        ((n as f64).powf(uniform) as usize)
            .saturating_sub(1)
            .min(n - 1)
    }

    fn words(&mut self, n: usize, from: &[String]) -> String {
        let words: Vec<&str> = (0..n)
            .map(|_| from[self.rank(from.len())].as_str())
            .collect();
        words.join(" ")
    }
}

/// Issues in the order of their keys; those of a phenomenon carry its number.
pub fn corpus(clauses: &[String]) -> Vec<(Issue, Option<usize>)> {
    let mut random = Random(7);
    let syllables = [
        "ba", "co", "di", "fu", "ga", "he", "jo", "ki", "lu", "me", "no", "pa", "ri", "so", "tu",
    ];
    let noise: Vec<String> = (0..12_000)
        .map(|_| {
            (0..2 + random.below(3))
                .map(|_| syllables[random.below(15)])
                .collect()
        })
        .collect();
    let mut phenomena: Vec<Option<usize>> = Vec::new();
    for phenomenon in 0..N_PHENOMENA {
        let n = 3 + random.rank(58);
        phenomena.extend(std::iter::repeat_n(Some(phenomenon), n));
    }
    phenomena.resize(N_ISSUES, None);
    for idx in (1..phenomena.len()).rev() {
        phenomena.swap(idx, random.below(idx + 1));
    }
    // What tells a phenomenon: a clause's words, and some of its own.
    let telling: Vec<Vec<String>> = (0..N_PHENOMENA)
        .map(|_| {
            let clause: Vec<&str> = clauses[random.below(clauses.len())]
                .split_whitespace()
                .collect();
            let mut words: Vec<String> = (0..8)
                .map(|_| clause[random.below(clause.len())].to_owned())
                .collect();
            words.extend((0..8).map(|_| noise[2_000 + random.below(10_000)].clone()));
            words
        })
        .collect();
    let repositories = ["bench/a", "bench/b", "bench/c", "bench/d"];
    let mut issues: Vec<(Issue, Option<usize>)> = phenomena
        .into_iter()
        .enumerate()
        .map(|(idx, phenomenon)| {
            let own = phenomenon.map_or(&noise, |phenomenon| &telling[phenomenon]);
            let title = random.words(6, own);
            let told = random.words(30, own);
            let more = random.words(70, &noise);
            let log = random.words(20, &noise);
            let body = format!(
                "### Checklist\n\n- [x] I searched\n\n### What happened?\n\n{told}\n{more}\n\n### Logs\n\n\
                 ```\nTypeError: {log}\n    at run (/app/main.js:10:{idx})\n```\n\n### Platform\n\nLinux\n"
            );
            let issue = Issue {
                key: IssueKey {
                    repository: repositories[idx % 4].to_owned(),
                    number: 1 + (idx / 4) as u64,
                },
                url: String::new(),
                title,
                body,
                labels: Vec::new(),
                state: None,
                created_at: None,
                updated_at: None,
                n_comments: None,
            };
            (issue, phenomenon)
        })
        .collect();
    issues.sort_by(|a, b| a.0.key.cmp(&b.0.key));
    issues
}
