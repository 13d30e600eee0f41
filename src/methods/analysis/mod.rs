//! The statistics of a benchmark. The estimators are in [`super::statistics`]; docs/analysis.md says what each estimate is,
//! when there is none, and how to read it.
//!
//! Invalid verdicts, those that were not asked and those that a candidate lacks are in no estimate; their number stands beside it.

mod architecture;
mod cohort;
mod coverage;
mod estimates;
mod floor;
mod independence;
mod items;
mod pairing;
mod resampling;
mod selection;
#[cfg(test)]
mod simulation;
mod table;

use std::collections::BTreeMap;

use serde::Serialize;

pub use architecture::{
    Architecture, BetweenModels, CandidateSource, ModelSource, Partial, architecture,
};
pub use coverage::{CoverageRow, coverage};
pub use estimates::{Estimate, estimates, of_architecture, of_items, of_pair};
pub use floor::{Diagnosis, FloorCase, Witnesses, floor};
pub use independence::{Independence, independence};
pub use items::{CandidateAbility, ItemRow, Items, items};
pub use pairing::{Paired, paired};
pub use resampling::Resampling;
pub use selection::{Dropped, HeldOut, More, Selection, selection};
pub use table::Table;

use super::statistics::{Interval, mean, population_sd};
use crate::domain::results::{Group, Row};
use cohort::{correlations, group_row, means, model_ranks, reliability};

/// Rates are shares from 0 to 1 and gaps differences of them; `None` where there is nothing to estimate from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    pub n_cases: usize,
    /// Groups of cases of which each is a seed with its variants.
    pub n_families: usize,
    pub n_invalid: usize,
    pub n_not_asked: usize,
    /// Pairs of candidate and case without a verdict.
    pub n_missing: usize,
    pub candidates: Vec<CandidateRates>,
    pub models: Vec<ModelRates>,
    pub groups: Vec<GroupRow>,
    pub reliability: Reliability,
    /// Empty for fewer than two models.
    pub ranks: Vec<ModelRanks>,
    pub correlations: Correlations,
}

/// The same estimate over everything and over parts of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parts<T> {
    pub overall: T,
    pub groups: BTreeMap<Group, T>,
    pub ordinary: T,
    pub boundary: T,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateRates {
    pub candidate: String,
    pub model: String,
    pub build: String,
    pub rates: Parts<Rate>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rate {
    pub passed: usize,
    pub counted: usize,
    pub invalid: usize,
    pub not_asked: usize,
    pub missing: usize,
    /// Passed ÷ counted.
    pub rate: Option<f64>,
    /// How many independent outcomes say as much as these, since those of a family go together.
    pub effective: Option<f64>,
    /// 95 %, Wilson's on the effective number.
    pub interval: Option<Interval>,
}

impl Rate {
    /// Verdicts that are not in the denominator.
    pub fn left_out(&self) -> usize {
        self.invalid + self.not_asked + self.missing
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelRates {
    pub model: String,
    pub builds: Vec<String>,
    pub rates: Parts<Spread>,
}

/// The rate of a model over its builds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    pub mean: Option<f64>,
    /// The population standard deviation.
    pub sd: Option<f64>,
    /// Builds with a rate.
    pub n_builds: usize,
    /// Invalid, not asked or missing, over all builds.
    pub left_out: usize,
    /// As in [`Rate`], of the outcomes of all builds; families and builds are resampled.
    pub effective: Option<f64>,
    /// 95 %; None when nothing was resampled, as all intervals below.
    pub interval: Option<Interval>,
}

/// What the cases of a group tell apart. A case is decided by the verdicts that count: floor when no candidate
/// passes, ceiling when all do, else discriminating; undecided when a verdict that does not count could change that.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupRow {
    /// None for all cases together.
    pub group: Option<Group>,
    pub n_cases: usize,
    /// Mean over models.
    pub average: Option<f64>,
    pub average_interval: Option<Interval>,
    /// Best model's rate − worst model's.
    pub gap: Option<f64>,
    pub gap_interval: Option<Interval>,
    pub floor: usize,
    pub ceiling: usize,
    pub discriminating: usize,
    pub undecided: usize,
}

/// KR-20 needs every candidate on every case: candidates without any counted verdict are left out, then cases
/// without a counted verdict of every remaining candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reliability {
    pub kr20: Option<f64>,
    pub interval: Option<Interval>,
    pub n_candidates: usize,
    pub n_cases: usize,
    pub candidates_left_out: usize,
    pub cases_left_out: usize,
}

/// Ranks among models, 1 the best; ties share the better rank.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelRanks {
    pub model: String,
    pub overall: usize,
    pub interval: Option<RankInterval>,
    pub groups: BTreeMap<Group, usize>,
    /// Worst rank − best rank over the main groups.
    pub movement: Option<usize>,
}

/// 95 % of the draws have a rank from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RankInterval {
    pub best: usize,
    pub worst: usize,
}

/// Pearson, over models.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Correlations {
    pub n_models: usize,
    pub pairs: Vec<PairCorrelation>,
    /// Of the pairs that have one.
    pub mean: Correlation,
    /// Each group with the overall rate.
    pub overall: BTreeMap<Group, Correlation>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairCorrelation {
    pub a: Group,
    pub b: Group,
    #[serde(flatten)]
    pub of: Correlation,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Correlation {
    pub r: Option<f64>,
    pub interval: Option<Interval>,
}

impl<T> Parts<T> {
    /// Overall, each group, ordinary, boundary.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        let groups = self.groups.values();
        std::iter::once(&self.overall)
            .chain(groups)
            .chain([&self.ordinary, &self.boundary])
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let groups = self.groups.values_mut();
        std::iter::once(&mut self.overall)
            .chain(groups)
            .chain([&mut self.ordinary, &mut self.boundary])
    }
}

/// What needs no resampling; the order of rows does not matter. A candidate has at most one row a case.
pub fn analyse(rows: &[Row]) -> Analysis {
    estimate(&Table::new(rows))
}

/// The same with intervals of everything, over families and builds.
pub fn analyse_resampled(table: &Table<'_>, resampling: Resampling) -> Analysis {
    let mut analysis = estimate(table);
    resampling::add_intervals(&mut analysis, table, resampling);
    analysis
}

fn estimate(table: &Table<'_>) -> Analysis {
    let candidates: Vec<CandidateRates> = table
        .candidates
        .iter()
        .map(|candidate| CandidateRates {
            candidate: candidate.name.to_owned(),
            model: candidate.model.to_owned(),
            build: candidate.build.to_owned(),
            rates: table.parts(|part| table.rate(candidate, part)),
        })
        .collect();
    let models: Vec<ModelRates> = table
        .models
        .iter()
        .map(|model| {
            let builds: Vec<&CandidateRates> =
                model.builds.iter().map(|idx| &candidates[*idx]).collect();
            let rates: Vec<Vec<&Rate>> = builds.iter().map(|b| b.rates.all().collect()).collect();
            let mut part_idx = 0..;
            ModelRates {
                model: model.name.to_owned(),
                builds: builds.iter().map(|build| build.build.clone()).collect(),
                rates: table.parts(|_| {
                    let part_idx = part_idx.next().expect("the range has no end");
                    spread(rates.iter().map(|rates| rates[part_idx]))
                }),
            }
        })
        .collect();
    let all_means: Vec<_> = models.iter().map(|model| means(&model.rates)).collect();
    Analysis {
        n_cases: table.cases.len(),
        n_families: table.n_families,
        n_invalid: candidates.iter().map(|c| c.rates.overall.invalid).sum(),
        n_not_asked: candidates.iter().map(|c| c.rates.overall.not_asked).sum(),
        n_missing: candidates.iter().map(|c| c.rates.overall.missing).sum(),
        reliability: reliability(table),
        ranks: model_ranks(&models),
        correlations: correlations(&all_means),
        groups: std::iter::once(None)
            .chain(table.groups.iter().copied().map(Some))
            .map(|group| group_row(table, &models, group))
            .collect(),
        candidates,
        models,
    }
}

fn spread<'a>(builds: impl Iterator<Item = &'a Rate> + Clone) -> Spread {
    let values: Vec<f64> = builds.clone().filter_map(|rate| rate.rate).collect();
    Spread {
        mean: mean(&values),
        sd: population_sd(&values),
        n_builds: values.len(),
        left_out: builds.map(Rate::left_out).sum(),
        effective: None,
        interval: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::case::{CaseId, Category};
    use crate::domain::clause::Scenario;
    use crate::domain::results::Status;

    /// `marks` is a sign a case: `+` pass, `-` fail, `?` invalid, `/` not asked, blank missing.
    fn rows(category: Category, candidates: &[(&str, &str, &str)]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (model, build, marks) in candidates {
            for (idx, mark) in marks.chars().enumerate() {
                let status = match mark {
                    '+' => Status::Pass,
                    '-' => Status::Fail,
                    '?' => Status::Invalid,
                    '/' => Status::NotAsked,
                    _ => continue,
                };
                let case = CaseId::new(format!("{category}/{idx:03}"));
                rows.push(Row {
                    candidate: format!("{model}/{build}"),
                    model: (*model).to_owned(),
                    build: (*build).to_owned(),
                    family: case.clone(),
                    case,
                    category,
                    scenario: if idx % 2 == 0 {
                        Scenario::Ordinary
                    } else {
                        Scenario::Boundary
                    },
                    n_controls: None,
                    status,
                    reason: status.as_str().to_owned(),
                });
            }
        }
        rows
    }

    fn marks(passed: usize, of: usize) -> String {
        "+".repeat(passed) + &"-".repeat(of - passed)
    }

    #[test]
    fn a_model_is_the_mean_over_its_builds() {
        let builds = [173, 174, 175].map(|n| marks(n, 328));
        let rows = rows(
            Category::Headless,
            &[
                ("m", "1", &builds[0]),
                ("m", "2", &builds[1]),
                ("m", "3", &builds[2]),
            ],
        );
        let analysis = analyse(&rows);
        let overall = &analysis.models[0].rates.overall;
        let printed = format!(
            "{:.2} ± {:.2}",
            100.0 * overall.mean.unwrap(),
            100.0 * overall.sd.unwrap()
        );
        assert_eq!(printed, "53.05 ± 0.25");
        assert_eq!(overall.n_builds, 3);
        assert!(analysis.ranks.is_empty(), "one model has no rank");
        assert_eq!(analysis.groups[0].gap, None, "one model has no gap");
    }

    #[test]
    fn invalid_and_missing_are_in_no_estimate() {
        let rows = rows(
            Category::Permissions,
            &[("a", "1", "++-?"), ("b", "1", "+- +"), ("c", "1", "??//")],
        );
        let analysis = analyse(&rows);
        let rate = |idx: usize| &analysis.candidates[idx].rates.overall;
        assert_eq!(rate(0).rate, Some(2.0 / 3.0));
        assert_eq!(
            (rate(1).counted, rate(1).missing, rate(1).rate),
            (3, 1, Some(2.0 / 3.0))
        );
        assert_eq!((rate(2).rate, rate(2).interval), (None, None));
        assert_eq!(
            (analysis.n_invalid, analysis.n_not_asked, analysis.n_missing),
            (3, 2, 1)
        );
        assert_eq!(analysis.models[2].rates.overall.mean, None);
        let row = &analysis.groups[0];
        // Case 0 passes twice, but c could have failed it; case 1 is told apart whatever c would have done.
        assert_eq!(
            (row.floor, row.ceiling, row.discriminating, row.undecided),
            (0, 0, 1, 3)
        );
        let reliability = &analysis.reliability;
        assert_eq!(
            (
                reliability.candidates_left_out,
                reliability.cases_left_out,
                reliability.n_cases
            ),
            (1, 2, 2)
        );
        assert_eq!(analyse(&[]).reliability.kr20, None);
        assert_eq!(analyse(&[]).groups[0].average, None);
    }

    fn cohort() -> Vec<Row> {
        let mut all = Vec::new();
        let table = [
            (Category::Permissions, ["+++++++-", "++++----", "+-------"]),
            (
                Category::FileOperations,
                ["++------", "++++++--", "++++----"],
            ),
            (Category::Startup, ["++", "+-", "++"]),
            (Category::ArtifactChecks, ["+", "+", "+"]),
        ];
        for (category, marks) in table {
            let candidates: Vec<(&str, &str, &str)> = ["a", "b", "c"]
                .into_iter()
                .zip(marks)
                .map(|(model, marks)| (model, "1", marks))
                .collect();
            all.extend(rows(category, &candidates));
        }
        all
    }

    #[test]
    fn groups_ranks_and_correlations_by_hand() {
        let analysis = analyse(&cohort());
        let group = |wanted: Group| {
            let mut rows = analysis.groups.iter();
            rows.find(|row| row.group == Some(wanted)).unwrap()
        };
        let permissions = group(Group::Permissions);
        assert_eq!(permissions.gap, Some(0.75));
        assert_eq!(permissions.average, Some(0.5));
        assert_eq!(
            (
                permissions.floor,
                permissions.ceiling,
                permissions.discriminating
            ),
            (1, 1, 6)
        );
        assert_eq!(group(Group::Other).n_cases, 3);
        assert_eq!(group(Group::Other).ceiling, 2);
        // Overall: a 12/19, b 12/19, c 8/19.
        let ranks: Vec<_> = analysis
            .ranks
            .iter()
            .map(|r| (r.model.as_str(), r.overall, r.movement))
            .collect();
        assert_eq!(
            ranks,
            [("a", 1, Some(2)), ("b", 1, Some(1)), ("c", 3, Some(1))]
        );
        // Permissions 7/8, 4/8, 1/8; file operations 2/8, 6/8, 4/8: deviations (3, 0, -3) and (-2, 2, 0) eighths,
        // so -6 / sqrt(18 × 8) = -0.5.
        assert_eq!(analysis.correlations.pairs.len(), 1);
        let r = analysis.correlations.pairs[0].of.r.unwrap();
        assert!((r + 0.5).abs() < 1e-12, "{r}");
        assert_eq!(analysis.candidates[0].rates.ordinary.counted, 10);
    }

    #[test]
    fn order_does_not_matter() {
        let mut rows = cohort();
        let analysis = analyse(&rows);
        rows.reverse();
        assert_eq!(analyse(&rows), analysis);
        rows.rotate_left(17);
        assert_eq!(analyse(&rows), analysis);
        let estimates = estimates(&analysis);
        assert!(estimates.iter().any(|e| e.statistic == "kr-20"));
        assert!(estimates.iter().all(|e| e.value.is_none_or(f64::is_finite)));
    }
}
