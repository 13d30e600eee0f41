//! How well a comparison meets what people found by reading.
//!
//! Known are places of the target that cases of the suite cite, each with the clauses of those cases, and judgements of
//! single differences: whether the clause that is named first speaks of the matter at the place. A cited place says
//! that a difference is there; that no place is cited says nothing, hence the sample.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::attribution::feature_of;
use crate::domain::clause::ClauseId;
use crate::domain::difference::Judgement;
use crate::domain::digest;

/// A place of the target, with the clauses of the cases that cite it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cited {
    pub file: String,
    pub line: usize,
    pub clauses: BTreeSet<ClauseId>,
}

/// What is listed of lines of the target, with clauses from the likeliest on.
#[derive(Debug, Clone)]
pub struct Listed<'d> {
    /// Of a difference its id, of a function its name.
    pub id: &'d str,
    pub file: &'d str,
    pub first_line: usize,
    pub last_line: usize,
    pub clauses: Vec<&'d ClauseId>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Places that cases cite.
    pub n_places: usize,
    /// By the listed differences at most [`NEAR`] lines away.
    pub by_differences: Met,
    /// By the function that the place stands in.
    pub by_functions: Met,
    /// The first differences in an order of lots.
    pub by_lot: Sampled,
    /// The first differences as they are listed, the surest first.
    pub surest: Sampled,
}

/// How the cited places are met by what is listed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Met {
    /// Places of which something is listed.
    pub n_listed: usize,
    /// Places with a clause of the citing cases as the first of something that is listed there, …
    pub n_first: usize,
    /// … among its first three, …
    pub n_among_3: usize,
    /// … and among its first ten.
    pub n_among_10: usize,
    /// Places with a clause of the same feature among the first three.
    pub n_feature_among_3: usize,
    /// The mean over all places of 1 ÷ the best rank of such a clause, 0 where it is not among the ten.
    pub reciprocal_rank: Option<f64>,
    /// What is listed at a place of which something is: the mean. The more there is, the more easily one is right.
    pub mean_listed: Option<f64>,
}

/// Differences of which people judged some.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sampled {
    pub n: usize,
    pub n_judged: usize,
    pub n_right: usize,
    /// Ids of those that wait for a judgement.
    pub waiting: Vec<String>,
}

/// So many lines lie a cited place and its difference apart at most: what a reader sees at one glance.
pub const NEAR: usize = 8;
/// Differences of a sample.
const N_SAMPLE: usize = 40;

/// The places of `target` (`package@version`) that are cited together with the candidate. `sources` are those of a case.
pub fn cited<'s>(
    cases: impl Iterator<Item = (&'s ClauseId, &'s [String])>,
    candidate: &str,
    target: &str,
) -> Vec<Cited> {
    let mut clauses: BTreeMap<(String, usize), BTreeSet<ClauseId>> = BTreeMap::new();
    for (clause, sources) in cases {
        let is_of = |source: &String| source.split('@').next() == Some(candidate);
        if !sources.iter().any(is_of) {
            continue;
        }
        for source in sources {
            let place = source.strip_prefix(target).and_then(|rest| {
                let (file, line) = rest.strip_prefix(':')?.rsplit_once(':')?;
                Some((file.to_owned(), line.parse().ok()?))
            });
            if let Some(place) = place {
                clauses.entry(place).or_default().insert(clause.clone());
            }
        }
    }
    clauses
        .into_iter()
        .map(|((file, line), clauses)| Cited {
            file,
            line,
            clauses,
        })
        .collect()
}

/// `differences`: the surest first, without what follows from no clause; `functions`: all those of the target that serve
/// a clause.
pub fn figures(
    cited: &[Cited],
    differences: &[Listed<'_>],
    functions: &[Listed<'_>],
    judgements: &[Judgement],
) -> Figures {
    let near = |place: &Cited| {
        let is_near = |one: &&Listed<'_>| {
            one.file == place.file
                && one.first_line <= place.line + NEAR
                && place.line <= one.last_line + NEAR
        };
        differences.iter().filter(is_near).collect()
    };
    let around = |place: &Cited| {
        let is_around = |one: &&Listed<'_>| {
            one.file == place.file && (one.first_line..=one.last_line).contains(&place.line)
        };
        let inner = functions.iter().filter(is_around);
        let inner = inner.min_by_key(|one| one.last_line - one.first_line);
        inner.into_iter().collect()
    };
    let mut by_lot: Vec<(String, &Listed<'_>)> = differences
        .iter()
        .map(|one| (digest::of([one.id]), one))
        .collect();
    by_lot.sort_by(|a, b| a.0.cmp(&b.0));
    Figures {
        n_places: cited.len(),
        by_differences: met(cited, &near),
        by_functions: met(cited, &around),
        by_lot: sampled(by_lot.into_iter().map(|(_, one)| one), judgements),
        surest: sampled(differences.iter(), judgements),
    }
}

fn met<'l>(cited: &[Cited], listed_at: &dyn Fn(&Cited) -> Vec<&'l Listed<'l>>) -> Met {
    let mut met = Met {
        n_listed: 0,
        n_first: 0,
        n_among_3: 0,
        n_among_10: 0,
        n_feature_among_3: 0,
        reciprocal_rank: None,
        mean_listed: None,
    };
    let (mut reciprocal, mut n_there) = (0.0, 0);
    for place in cited {
        let listed = listed_at(place);
        met.n_listed += usize::from(!listed.is_empty());
        n_there += listed.len();
        let is_cited = |clause: &&ClauseId| place.clauses.contains(*clause);
        let ranks = listed.iter();
        let ranks = ranks.filter_map(|one| one.clauses.iter().take(10).position(is_cited));
        if let Some(rank) = ranks.min() {
            met.n_first += usize::from(rank == 0);
            met.n_among_3 += usize::from(rank < 3);
            met.n_among_10 += 1;
            reciprocal += 1.0 / (rank + 1) as f64;
        }
        let is_of_feature = |clause: &&ClauseId| {
            let feature = feature_of(clause);
            let mut cited = place.clauses.iter();
            cited.any(|cited| feature_of(cited) == feature)
        };
        let has_feature = |one: &&Listed<'_>| one.clauses.iter().take(3).any(is_of_feature);
        met.n_feature_among_3 += usize::from(listed.iter().any(has_feature));
    }
    let mean = |sum: f64, n: usize| (n > 0).then(|| (sum / n as f64 * 1000.0).round() / 1000.0);
    met.reciprocal_rank = mean(reciprocal, cited.len());
    met.mean_listed = mean(n_there as f64, met.n_listed);
    met
}

fn sampled<'l>(listed: impl Iterator<Item = &'l Listed<'l>>, judgements: &[Judgement]) -> Sampled {
    let mut sampled = Sampled::default();
    for one in listed.take(N_SAMPLE) {
        sampled.n += 1;
        let judgement = judgements.iter().find(|judgement| {
            judgement.difference == one.id && one.clauses.first() == Some(&&judgement.clause)
        });
        match judgement {
            Some(judgement) => {
                sampled.n_judged += 1;
                sampled.n_right += usize::from(judgement.right);
            }
            None => sampled.waiting.push(one.id.to_owned()),
        }
    }
    sampled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clause(id: &str) -> ClauseId {
        id.parse().expect("an id")
    }

    #[test]
    fn places_are_those_cited_with_the_candidate() {
        let range = clause("tools.read.range");
        let sources = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let cases = [
            sources(&["kimi@1:a.py:7", "trials/b@0.1:x.py:1"]),
            sources(&["kimi@1:a.py:7", "kimi@2:b.py:8", "trials/b@0.1:x.py:1"]),
            sources(&["kimi@1:c.py:9", "trials/a@0.1:x.py:1"]),
        ];
        let cases = cases.iter().map(|sources| (&range, sources.as_slice()));
        let places = cited(cases, "trials/b", "kimi@1");
        assert_eq!(places.len(), 1);
        assert_eq!((places[0].file.as_str(), places[0].line), ("a.py", 7));
    }

    #[test]
    fn a_place_counts_by_its_best_near_difference() {
        let ids: Vec<ClauseId> = ["tools.read.range", "tools.read.binary", "tools.bash.limit"]
            .into_iter()
            .map(clause)
            .collect();
        let place = |line, of: usize| Cited {
            file: "a.py".to_owned(),
            line,
            clauses: BTreeSet::from([ids[of].clone()]),
        };
        let listed = |id, first_line, last_line, order: &[usize]| Listed {
            id,
            file: "a.py",
            first_line,
            last_line,
            clauses: order.iter().map(|at| &ids[*at]).collect(),
        };
        let places = [place(10, 0), place(50, 0), place(100, 2)];
        let all = [
            listed("x", 12, 12, &[2, 0]),
            listed("y", 18, 18, &[1]),
            listed("z", 59, 59, &[0]),
        ];
        let functions = [
            listed("outer", 1, 120, &[1, 2]),
            listed("inner", 49, 50, &[0]),
            listed("after", 51, 60, &[2]),
        ];
        let judged = |difference: &str, of: usize, right| Judgement {
            difference: difference.to_owned(),
            clause: ids[of].clone(),
            right,
        };
        // The judgement of another clause is none.
        let judgements = [
            judged("x", 2, false),
            judged("y", 0, true),
            judged("z", 0, true),
        ];
        let figures = figures(&places, &all, &functions, &judgements);
        let near = &figures.by_differences;
        assert_eq!((figures.n_places, near.n_listed), (3, 1));
        assert_eq!((near.n_first, near.n_among_3), (0, 1));
        assert_eq!(near.n_feature_among_3, 1);
        assert_eq!(near.reciprocal_rank, Some(0.167));
        assert_eq!(near.mean_listed, Some(2.0));
        let inside = &figures.by_functions;
        assert_eq!((inside.n_listed, inside.n_first), (3, 1));
        assert_eq!(inside.n_among_3, 2);
        assert_eq!(inside.mean_listed, Some(1.0));
        let sample = &figures.surest;
        assert_eq!((sample.n, sample.n_judged, sample.n_right), (3, 2, 1));
        assert_eq!(sample.waiting, ["y"]);
    }
}
