//! How candidates are built, and whether that goes with how they fare.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::statistics::{
    Interval, Line, between_share, coefficient_of_variation, mean, partial, pearson,
};
use super::resampling::{Rates, Resampling, correlation_interval, each_draw};
use super::table::Table;
use super::{Analysis, Correlation};
use crate::domain::case::Category;
use crate::domain::source_facts::SourceFacts;

/// Over candidates with facts and a rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Architecture {
    pub n_candidates: usize,
    /// Candidates without facts or without a rate.
    pub left_out: usize,
    pub candidates: Vec<CandidateSource>,
    pub models: Vec<ModelSource>,
    /// Code lines with pass rate, one pair a build.
    pub lines_of_builds: Correlation,
    /// The same, one pair a model at its means.
    pub lines_of_models: Correlation,
    /// Number of modules with pass rate, code lines held fixed.
    pub modules: Partial,
    /// Lines a module with pass rate, code lines held fixed.
    pub lines_per_module: Partial,
    /// Share of the variance that lies between models.
    pub between_models: BetweenModels,
    /// Coefficient of variation of code lines over the builds of a model, the mean over models.
    pub variation_of_builds: Option<f64>,
    /// The same over the models' means.
    pub variation_of_models: Option<f64>,
    /// Pass rate by code lines, fitted through the models' means.
    pub line: Option<Line>,
    /// Candidates with a dedicated module, by category; None when it is not known of all.
    pub dedicated: Option<BTreeMap<Category, usize>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateSource {
    pub candidate: String,
    pub model: String,
    pub rate: f64,
    #[serde(flatten)]
    pub facts: SourceFacts,
}

/// Means over the builds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelSource {
    pub model: String,
    pub n_builds: usize,
    pub rate: f64,
    pub code_lines: f64,
    pub modules: f64,
    pub functions: f64,
    /// Mean code lines ÷ mean modules; None without a module.
    pub lines_per_module: Option<f64>,
    /// Of all code lines, those in the largest module; None when a build has no line.
    pub largest_share: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Partial {
    #[serde(flatten)]
    pub of: Correlation,
    /// The smallest and the largest with one model left out; None when any of them has none.
    pub leave_one_out: Option<Interval>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BetweenModels {
    pub code_lines: Option<f64>,
    pub modules: Option<f64>,
    pub lines_per_module: Option<f64>,
    pub largest_share: Option<f64>,
}

/// None when no candidate has both facts and a rate. Intervals are over families and builds, as everywhere.
pub fn architecture(
    analysis: &Analysis,
    table: &Table<'_>,
    facts: &BTreeMap<String, SourceFacts>,
    resampling: Resampling,
) -> Option<Architecture> {
    let candidates: Vec<CandidateSource> = analysis
        .candidates
        .iter()
        .filter_map(|candidate| {
            Some(CandidateSource {
                facts: facts.get(&candidate.candidate)?.clone(),
                rate: candidate.rates.overall.rate?,
                candidate: candidate.candidate.clone(),
                model: candidate.model.clone(),
            })
        })
        .collect();
    if candidates.is_empty() {
        return None;
    }
    let mut builds: BTreeMap<&str, Vec<&CandidateSource>> = BTreeMap::new();
    for candidate in &candidates {
        builds.entry(&candidate.model).or_default().push(candidate);
    }
    let models: Vec<ModelSource> = builds
        .iter()
        .map(|(model, builds)| model_source(model, builds))
        .collect();
    let lines: Vec<Vec<f64>> = values(&builds, |build| Some(code_lines(build)));
    let of_models: Vec<(f64, f64)> = models.iter().map(|m| (m.code_lines, m.rate)).collect();
    let means: Vec<f64> = models.iter().map(|model| model.code_lines).collect();
    let variations: Vec<f64> = lines
        .iter()
        .filter_map(|builds| coefficient_of_variation(builds))
        .collect();
    let known: Option<Vec<_>> = candidates
        .iter()
        .map(|candidate| candidate.facts.dedicated.as_ref())
        .collect();
    let whole = correlations(
        &candidates
            .iter()
            .map(|c| (c, c.rate, 1))
            .collect::<Vec<_>>(),
    );
    let intervals = intervals(&candidates, table, whole, resampling);
    let estimate = |at: usize| Correlation {
        r: whole[at],
        interval: intervals[at],
    };
    Some(Architecture {
        n_candidates: candidates.len(),
        left_out: analysis.candidates.len() - candidates.len(),
        lines_of_builds: estimate(LINES),
        lines_of_models: Correlation {
            r: pearson(&of_models),
            interval: intervals[MODELS],
        },
        modules: Partial {
            of: estimate(MODULES),
            leave_one_out: leave_one_out(&candidates, &builds, MODULES),
        },
        lines_per_module: Partial {
            of: estimate(PER_MODULE),
            leave_one_out: leave_one_out(&candidates, &builds, PER_MODULE),
        },
        between_models: BetweenModels {
            modules: between_share(&values(&builds, |build| Some(build.facts.modules as f64))),
            lines_per_module: between_share(&values(&builds, lines_per_module)),
            largest_share: between_share(&values(&builds, largest_share)),
            code_lines: between_share(&lines),
        },
        variation_of_builds: mean(&variations),
        variation_of_models: coefficient_of_variation(&means),
        line: Line::fit(&of_models),
        dedicated: known.map(|known| {
            let of = |category| known.iter().filter(|has| has.contains(&category)).count();
            Category::ALL
                .into_iter()
                .map(|category| (category, of(category)))
                .collect()
        }),
        models,
        candidates,
    })
}

/// Places of [`correlations`].
const LINES: usize = 0;
const MODULES: usize = 1;
const PER_MODULE: usize = 2;
const MODELS: usize = 3;

/// Of candidates with a rate, each counted so many times: lines with rate; modules, and lines a module, with rate and
/// lines held fixed; and lines with rate over the models' means.
fn correlations(candidates: &[(&CandidateSource, f64, u32)]) -> [Option<f64>; 4] {
    let repeated: Vec<(&CandidateSource, f64)> = candidates
        .iter()
        .flat_map(|(source, rate, n)| std::iter::repeat_n((*source, *rate), *n as usize))
        .collect();
    let triples = |pick: fn(&CandidateSource) -> Option<f64>| -> Vec<(f64, f64, f64)> {
        let all = repeated.iter();
        all.filter_map(|(source, rate)| Some((pick(source)?, *rate, code_lines(source))))
            .collect()
    };
    let pairs: Vec<(f64, f64)> = repeated
        .iter()
        .map(|(s, rate)| (code_lines(s), *rate))
        .collect();
    let mut models: BTreeMap<&str, (f64, f64, f64)> = BTreeMap::new();
    for (source, rate) in &repeated {
        let sums = models.entry(&source.model).or_default();
        *sums = (sums.0 + code_lines(source), sums.1 + rate, sums.2 + 1.0);
    }
    let means: Vec<(f64, f64)> = models.values().map(|(x, y, n)| (x / n, y / n)).collect();
    [
        pearson(&pairs),
        partial(&triples(|source| Some(source.facts.modules as f64))),
        partial(&triples(lines_per_module)),
        pearson(&means),
    ]
}

fn intervals(
    candidates: &[CandidateSource],
    table: &Table<'_>,
    whole: [Option<f64>; 4],
    resampling: Resampling,
) -> [Option<Interval>; 4] {
    if table.n_families < 2 {
        return [None; 4];
    }
    let rates = Rates::new(table);
    let places: Vec<usize> = candidates
        .iter()
        .map(|source| {
            let found = table
                .candidates
                .iter()
                .position(|c| c.name == source.candidate);
            found.expect("a candidate with a rate is in the table")
        })
        .collect();
    let mut draws = [const { Vec::new() }; 4];
    each_draw(table, resampling, |draw| {
        let drawn = rates.of_candidates(draw);
        let weighted: Vec<(&CandidateSource, f64, u32)> = candidates
            .iter()
            .zip(&places)
            .filter_map(|(source, place)| Some((source, drawn[*place][0]?, draw.builds[*place])))
            .collect();
        for (draws, r) in draws.iter_mut().zip(correlations(&weighted)) {
            draws.push(r);
        }
    });
    let mut found = [None; 4];
    for (idx, draws) in draws.iter().enumerate() {
        found[idx] = whole[idx].and_then(|r| correlation_interval(draws, r));
    }
    found
}

fn leave_one_out(
    candidates: &[CandidateSource],
    builds: &BTreeMap<&str, Vec<&CandidateSource>>,
    which: usize,
) -> Option<Interval> {
    let left: Option<Vec<f64>> = builds
        .keys()
        .map(|model| {
            let others = candidates.iter().filter(|c| c.model != **model);
            correlations(&others.map(|c| (c, c.rate, 1)).collect::<Vec<_>>())[which]
        })
        .collect();
    let left = left?;
    Some(Interval {
        low: left.iter().copied().fold(f64::MAX, f64::min),
        high: left.iter().copied().fold(f64::MIN, f64::max),
    })
}

fn model_source(model: &str, builds: &[&CandidateSource]) -> ModelSource {
    let n = builds.len() as f64;
    let average = |of: &dyn Fn(&CandidateSource) -> f64| {
        builds.iter().map(|build| of(build)).sum::<f64>() / n
    };
    let lines = average(&code_lines);
    let modules = average(&|build| build.facts.modules as f64);
    let shares: Option<Vec<f64>> = builds.iter().map(|build| largest_share(build)).collect();
    ModelSource {
        model: model.to_owned(),
        n_builds: builds.len(),
        rate: average(&|build| build.rate),
        code_lines: lines,
        modules,
        functions: average(&|build| build.facts.functions as f64),
        lines_per_module: (modules > 0.0).then(|| lines / modules),
        largest_share: shares.and_then(|shares| mean(&shares)),
    }
}

fn values(
    builds: &BTreeMap<&str, Vec<&CandidateSource>>,
    of: fn(&CandidateSource) -> Option<f64>,
) -> Vec<Vec<f64>> {
    let models = builds.values();
    models
        .map(|builds| builds.iter().filter_map(|build| of(build)).collect())
        .collect()
}

fn code_lines(source: &CandidateSource) -> f64 {
    source.facts.code_lines as f64
}

fn lines_per_module(source: &CandidateSource) -> Option<f64> {
    let modules = source.facts.modules;
    (modules > 0).then(|| code_lines(source) / modules as f64)
}

fn largest_share(source: &CandidateSource) -> Option<f64> {
    let lines = code_lines(source);
    (lines > 0.0).then(|| source.facts.largest_module as f64 / lines)
}

#[cfg(test)]
mod tests {
    use super::super::analyse_resampled;
    use super::super::simulation::{RESAMPLING, World, worlds_rows};
    use super::*;

    #[test]
    fn planted_architecture_is_found() {
        let rows = worlds_rows(World {
            models: &[0.3, 0.4, 0.5, 0.6, 0.7],
            ..World::default()
        });
        let table = Table::new(&rows);
        let analysis = analyse_resampled(&table, RESAMPLING);
        // Better models write more lines; of equally long candidates those in fewer modules are better.
        let mut facts = BTreeMap::new();
        for (idx, candidate) in analysis.candidates.iter().enumerate() {
            let rate = candidate.rates.overall.rate.unwrap();
            let lines = 1000 + 1000 * (idx / 3) + 100 * (idx % 3);
            let modules = 40.0 + lines as f64 / 100.0 - 60.0 * rate;
            facts.insert(
                candidate.candidate.clone(),
                SourceFacts {
                    code_lines: lines,
                    modules: modules.round() as usize,
                    functions: lines / 10,
                    largest_module: lines / 4,
                    dedicated: None,
                },
            );
        }
        let found = architecture(&analysis, &table, &facts, RESAMPLING).unwrap();
        assert_eq!((found.n_candidates, found.left_out), (15, 0));
        assert!(found.lines_of_builds.r.unwrap() > 0.9);
        let interval = found.lines_of_builds.interval.unwrap();
        assert!(interval.low < found.lines_of_builds.r.unwrap() && interval.high <= 1.0);
        assert!(found.modules.of.r.unwrap() < -0.9);
        assert!(found.lines_per_module.of.r.unwrap() > 0.5);
        let range = found.modules.leave_one_out.unwrap();
        assert!(range.low <= range.high && range.high < 0.0, "{range:?}");
        assert!(found.between_models.code_lines.unwrap() > 0.99);
        assert_eq!(found.models[0].code_lines, 1100.0);
        assert_eq!(found.models[0].largest_share, Some(0.25));
        assert!(found.line.unwrap().slope > 0.0);
        assert_eq!(found.dedicated, None);

        facts.remove("m00/0");
        let found = architecture(&analysis, &table, &facts, RESAMPLING).unwrap();
        assert_eq!((found.left_out, found.models[0].n_builds), (1, 2));
        assert_eq!(
            architecture(&analysis, &table, &BTreeMap::new(), RESAMPLING),
            None
        );
    }
}
