//! What each round of expansion gave, and which variants behave like their seeds.
//!
//! Round 1 are variants of cases that came from elsewhere, round 2 variants of those, and so on. Two cases agree when no
//! candidate of the certificate passes one and fails the other: such a variant tells nothing that its seed does not.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::domain::case::{Case, CaseId, Method, Role};
use crate::domain::certificate::Certificate;

/// Rounds end when one yields less than this share of what the one before it yielded.
const LEAST_SHARE: f64 = 0.5;

/// What one round gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Round {
    /// From 1.
    pub round: usize,
    /// Cases that it could vary: those of the round before; for round 1 those that came from elsewhere.
    pub n_seeds: usize,
    pub n_cases: usize,
    /// Cases that disagree with their seed on at least one candidate.
    pub n_apart: usize,
    /// Cases that agree with their seed on all candidates, by id.
    pub too_close: Vec<CaseId>,
    /// Cases that the certificate does not know, or whose seed it does not know.
    pub n_unknown: usize,
}

impl Round {
    /// Kept cases a seed. What is not certified yet counts, so that a round is not ended by a certificate that is due.
    pub fn rate(&self) -> f64 {
        (self.n_apart + self.n_unknown) as f64 / self.n_seeds.max(1) as f64
    }
}

/// Whether expansion is to go on, and the figures that say so; none before the second round.
pub fn advice(rounds: &[Round]) -> Option<String> {
    let [.., before, last] = rounds else {
        return None;
    };
    let fallen = last.rate() < LEAST_SHARE * before.rate();
    Some(format!(
        "{}: round {} gave {:.2} cases a seed, round {} {:.2}",
        match fallen {
            true => "rounds end, the yield has fallen by more than half",
            false => "another round is worth it",
        },
        last.round,
        last.rate(),
        before.round,
        before.rate(),
    ))
}

/// One row a round. The error of a seed that is no case of the suite is left to `case lint`: it counts as round 0.
pub fn rounds(suite: &[&Case], certificate: Option<&Certificate>) -> Vec<Round> {
    let seeds: BTreeMap<&str, &str> = suite
        .iter()
        .filter_map(|case| Some((case.id.as_str(), seed(case)?)))
        .collect();
    let mut n_seeds: BTreeMap<usize, usize> = BTreeMap::new();
    for case in suite {
        *n_seeds.entry(depth(&seeds, case.id.as_str())).or_default() += 1;
    }
    let mut rounds: BTreeMap<usize, Round> = BTreeMap::new();
    for case in suite {
        let Some(seed) = seed(case) else { continue };
        let number = depth(&seeds, case.id.as_str());
        let round = rounds.entry(number).or_insert(Round {
            round: number,
            n_seeds: n_seeds.get(&(number - 1)).copied().unwrap_or(0),
            n_cases: 0,
            n_apart: 0,
            too_close: Vec::new(),
            n_unknown: 0,
        });
        round.n_cases += 1;
        match certificate.and_then(|certificate| agree(certificate, &CaseId::new(seed), &case.id)) {
            Some(true) => round.too_close.push(case.id.clone()),
            Some(false) => round.n_apart += 1,
            None => round.n_unknown += 1,
        }
    }
    rounds.into_values().collect()
}

/// Whether every candidate of the certificate passes both cases or fails both; none when one of them is not in it.
pub fn agree(certificate: &Certificate, one: &CaseId, other: &CaseId) -> Option<bool> {
    if !certificate.cases.contains_key(one) || !certificate.cases.contains_key(other) {
        return None;
    }
    let differs = certificate
        .subjects()
        .any(|(_, subject)| subject.fails.contains_key(one) != subject.fails.contains_key(other));
    Some(!differs)
}

/// How many seeds lie before a case.
fn depth(seeds: &BTreeMap<&str, &str>, id: &str) -> usize {
    let mut seen = BTreeSet::new();
    let mut now = id;
    while let Some(seed) = seeds.get(now) {
        if !seen.insert(now) {
            break;
        }
        now = seed;
    }
    seen.len()
}

fn seed(case: &Case) -> Option<&str> {
    match &case.role {
        Role::Test {
            origin: Some(origin),
            ..
        } if origin.method == Method::Expansion => origin.seed.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::certificate::{CERTIFICATE_FORMAT, Subject};

    fn case(id: &str, seed: Option<&str>) -> Case {
        let origin = match seed {
            Some(seed) => {
                format!("{{ method = \"expansion\", seed = \"{seed}\", variable = \"tool\" }}")
            }
            None => "{ method = \"document\" }".to_owned(),
        };
        let text = format!(
            "title = \"{id}\"\npurpose = \"p\"\nclause = \"a.b.c\"\ncategory = \"startup\"\nscenario = \"boundary\"\n\
             origin = {origin}\n[[launch]]\nroute = \"cli\"\n[[expect]]\nchannel = \"exit\"\nequals = 0\n"
        );
        Case::parse(CaseId::new(id), Path::new(id), &text).expect("a case")
    }

    fn certificate(known: &[&str], fails: &[&str]) -> Certificate {
        Certificate {
            format: CERTIFICATE_FORMAT,
            tool_version: "0".into(),
            tool_sources: "0".into(),
            cases: known
                .iter()
                .map(|id| (CaseId::new(*id), "d".into()))
                .collect(),
            reference: Subject::failing(&[]),
            mutants: BTreeMap::from([("m/one".to_owned(), Subject::failing(fails))]),
        }
    }

    #[test]
    fn a_variant_that_never_disagrees_is_too_close() {
        let cases = [
            case("startup/a", None),
            case("startup/b", Some("startup/a")),
            case("startup/c", Some("startup/a")),
            case("startup/d", Some("startup/b")),
        ];
        let suite: Vec<&Case> = cases.iter().collect();
        let certificate = certificate(&["startup/a", "startup/b", "startup/c"], &["startup/c"]);
        let rounds = rounds(&suite, Some(&certificate));
        assert_eq!(rounds.len(), 2);
        assert_eq!((rounds[0].round, rounds[0].n_cases), (1, 2));
        assert_eq!(rounds[0].n_apart, 1);
        assert_eq!(rounds[0].too_close, [CaseId::new("startup/b")]);
        assert_eq!((rounds[1].n_cases, rounds[1].n_unknown), (1, 1));
        assert_eq!((rounds[0].n_seeds, rounds[1].n_seeds), (1, 2));
    }

    #[test]
    fn rounds_end_when_their_yield_falls_by_more_than_half() {
        let round = |round, n_seeds, n_apart| Round {
            round,
            n_seeds,
            n_cases: n_apart,
            n_apart,
            too_close: Vec::new(),
            n_unknown: 0,
        };
        assert_eq!(advice(&[round(1, 100, 40)]), None);
        let told = |last: Round| advice(&[round(1, 100, 40), last]).expect("two rounds");
        assert_eq!(
            told(round(2, 40, 7)),
            "rounds end, the yield has fallen by more than half: round 2 gave 0.17 cases a seed, round 1 0.40"
        );
        assert_eq!(
            told(round(2, 40, 8)),
            "another round is worth it: round 2 gave 0.20 cases a seed, round 1 0.40"
        );
    }

    #[test]
    fn seeds_in_a_circle_end() {
        let cases = [
            case("startup/a", Some("startup/b")),
            case("startup/b", Some("startup/a")),
        ];
        let suite: Vec<&Case> = cases.iter().collect();
        assert_eq!(rounds(&suite, None)[0].n_unknown, 2);
    }
}
