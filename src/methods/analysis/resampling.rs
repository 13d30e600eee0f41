//! The bootstrap over seed families and builds, and the intervals that it gives.
//!
//! A draw takes as many families as there are, with replacement, each with all of its cases and all builds, and for each
//! model as many of its builds as it has, with replacement (whole families as in Davison and Hinkley 1997, §3.8). What a
//! drawn build differs from its model by is scaled: down, since a part of it is the noise that drawing families shows
//! already, and up by n / (n - 1), since a model has few builds (rescaling as in Rao and Wu 1988). Models are not drawn:
//! intervals are about these models.

use super::super::statistics::{
    Interval, Random, Reliabilities, bias_corrected, centred, percentiles, ranks, wilson,
};
use super::cohort::{Means, average, correlations, gap};
use super::table::{Part, Table, effective};
use super::{Analysis, Correlation, Parts, RankInterval, Spread};
use crate::domain::clause::Scenario;
use crate::domain::results::Group;

/// A correlation of 1 has no place on Fisher's scale.
const NEARLY_ONE: f64 = 1.0 - 1e-9;

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resampling {
    pub draws: usize,
    pub seed: u64,
}

/// How often each family and each candidate was drawn.
pub(super) struct Draw {
    pub families: Vec<u32>,
    pub builds: Vec<u32>,
}

/// Calls `act` once a draw. The same seed gives the same draws, whoever asks.
pub(super) fn each_draw(table: &Table<'_>, resampling: Resampling, mut act: impl FnMut(&Draw)) {
    let mut random = Random::new(resampling.seed);
    for _ in 0..resampling.draws {
        let mut draw = Draw {
            families: vec![0; table.n_families],
            builds: vec![0; table.candidates.len()],
        };
        for _ in 0..table.n_families {
            draw.families[random.below(table.n_families)] += 1;
        }
        for model in &table.models {
            for _ in &model.builds {
                draw.builds[model.builds[random.below(model.builds.len())]] += 1;
            }
        }
        act(&draw);
    }
}

/// Pass rates under a draw; made once for a table.
pub(super) struct Rates<'t> {
    table: &'t Table<'t>,
    pub parts: Vec<Part>,
    /// Of each case, its family and the place of its group and kind of scenario among all such pairs.
    cases: Vec<(usize, usize)>,
    /// Of each candidate and case: 1 when it counts, 1 when it passed.
    counted: Vec<Vec<(u32, u32)>>,
    /// Of each model and part, what a build moves the mean by when it is drawn once more.
    builds: Vec<Vec<Vec<f64>>>,
}

impl<'t> Rates<'t> {
    pub fn new(table: &'t Table<'t>) -> Self {
        let parts = table.part_list();
        let group = |wanted: Group| {
            let found = table.groups.iter().position(|group| *group == wanted);
            found.expect("a case's group is listed")
        };
        Self {
            cases: table
                .cases
                .iter()
                .map(|case| {
                    let boundary = usize::from(case.scenario == Scenario::Boundary);
                    (case.family, 2 * group(case.group) + boundary)
                })
                .collect(),
            counted: table
                .candidates
                .iter()
                .map(|candidate| {
                    (0..table.cases.len())
                        .map(|case| match candidate.passed(case) {
                            Some(passed) => (1, u32::from(passed)),
                            None => (0, 0),
                        })
                        .collect()
                })
                .collect(),
            builds: table
                .models
                .iter()
                .map(|model| {
                    let of_part = |part: &Part| build_effects(table, &model.builds, *part);
                    parts.iter().map(of_part).collect()
                })
                .collect(),
            parts,
            table,
        }
    }

    /// The rate of each candidate in each part.
    pub fn of_candidates(&self, draw: &Draw) -> Vec<Vec<Option<f64>>> {
        let n_groups = self.table.groups.len();
        self.counted
            .iter()
            .map(|counted| {
                let mut sums = vec![(0, 0); 2 * n_groups];
                for ((family, slot), (counts, passed)) in self.cases.iter().zip(counted) {
                    let weight = draw.families[*family];
                    sums[*slot].0 += weight * counts;
                    sums[*slot].1 += weight * passed;
                }
                let rate = |slots: &mut dyn Iterator<Item = usize>| {
                    let (counted, passed) = slots.fold((0, 0), |(counted, passed), slot| {
                        (counted + sums[slot].0, passed + sums[slot].1)
                    });
                    (counted > 0).then(|| f64::from(passed) / f64::from(counted))
                };
                let mut rates = vec![rate(&mut (0..2 * n_groups))];
                rates.extend((0..n_groups).map(|group| rate(&mut (2 * group..2 * group + 2))));
                rates.extend([0, 1].map(|kind| rate(&mut (kind..2 * n_groups).step_by(2))));
                rates
            })
            .collect()
    }

    /// The mean over the builds of each model, in each part.
    pub fn of_models(&self, draw: &Draw) -> Vec<Vec<Option<f64>>> {
        let candidates = self.of_candidates(draw);
        let models = self.table.models.iter().zip(&self.builds);
        models
            .map(|(model, effects)| {
                (0..self.parts.len())
                    .map(|part| {
                        let builds = model.builds.iter().map(|build| candidates[*build][part]);
                        let centre = average(&builds.collect::<Vec<_>>())?;
                        let moved = model.builds.iter().zip(&effects[part]);
                        let moved: f64 = moved
                            .map(|(build, effect)| f64::from(draw.builds[*build]) * effect)
                            .sum();
                        Some(centre + moved)
                    })
                    .collect()
            })
            .collect()
    }
}

/// What each build moves the model's mean by when it is drawn once: its deviation ÷ the number of builds, scaled so that
/// the draws vary by as much as the builds vary beyond the noise of their families.
///
/// With `B` builds of rates `r`, and `z` what a family adds to the deviation of a build's rate from its own mean, the
/// variance of the mean due to builds is `Σ (r - mean)² / (B (B - 1))`, of which the noise of families is
/// `F / (F - 1) × Σ (z - mean of z over builds)² / (B (B - 1))`.
fn build_effects(table: &Table<'_>, builds: &[usize], part: Part) -> Vec<f64> {
    let n = builds.len() as f64;
    let none = vec![0.0; builds.len()];
    let tallies: Vec<Vec<(usize, usize)>> = builds
        .iter()
        .map(|build| table.tallies(&table.candidates[*build], part))
        .collect();
    let counted = |tally: &Vec<(usize, usize)>| tally.iter().map(|(_, n)| n).sum::<usize>();
    if builds.len() < 2 || tallies.iter().any(|tally| counted(tally) == 0) {
        return none;
    }
    let rates: Vec<f64> = tallies
        .iter()
        .map(|tally| tally.iter().map(|(y, _)| y).sum::<usize>() as f64 / counted(tally) as f64)
        .collect();
    let centre = rates.iter().sum::<f64>() / n;
    let spread: f64 = rates.iter().map(|rate| (rate - centre).powi(2)).sum();
    let (mut noise, mut n_families) = (0.0, 0.0);
    for family in 0..table.n_families {
        if tallies.iter().all(|tally| tally[family].1 == 0) {
            continue;
        }
        let added: Vec<f64> = tallies
            .iter()
            .zip(&rates)
            .map(|(tally, rate)| {
                let (passed, met) = tally[family];
                (passed as f64 - rate * met as f64) / counted(tally) as f64
            })
            .collect();
        let middle = added.iter().sum::<f64>() / n;
        noise += added.iter().map(|z| (z - middle).powi(2)).sum::<f64>();
        n_families += 1.0;
    }
    if n_families < 2.0 {
        return none;
    }
    let beyond = (spread - n_families / (n_families - 1.0) * noise) / (n * (n - 1.0));
    // As the draws would vary unscaled.
    let drawn = spread / (n * n);
    if beyond <= 0.0 || drawn <= 0.0 {
        return none;
    }
    let scale = (beyond / drawn).sqrt();
    rates
        .iter()
        .map(|rate| scale * (rate - centre) / n)
        .collect()
}

/// Puts an interval beside each estimate of the analysis of this table.
pub(super) fn add_intervals(analysis: &mut Analysis, table: &Table<'_>, resampling: Resampling) {
    if table.n_families < 2 {
        return;
    }
    let rates = Rates::new(table);
    let n_models = table.models.len();
    let mut means = vec![vec![Vec::with_capacity(resampling.draws); rates.parts.len()]; n_models];
    let mut averages = vec![Vec::new(); rates.parts.len()];
    let mut gaps = vec![Vec::new(); rates.parts.len()];
    let mut of_ranks = vec![Vec::new(); n_models];
    let mut of_pairs: Vec<Vec<Option<f64>>> = vec![Vec::new(); analysis.correlations.pairs.len()];
    let mut of_overall = vec![Vec::new(); analysis.correlations.overall.len()];
    let mut of_mean = Vec::new();
    let mut of_kr20 = Vec::new();
    let complete = table.complete();
    each_draw(table, resampling, |draw| {
        let drawn = rates.of_models(draw);
        for part in 0..rates.parts.len() {
            let of_part: Vec<Option<f64>> = drawn.iter().map(|model| model[part]).collect();
            averages[part].push(average(&of_part));
            gaps[part].push(gap(&of_part));
            for (model, mean) in of_part.into_iter().enumerate() {
                means[model][part].push(mean);
            }
        }
        for (model, rank) in known_ranks(&drawn).into_iter().enumerate() {
            of_ranks[model].push(rank);
        }
        let drawn: Vec<Means> = drawn.iter().map(|means| in_parts(table, means)).collect();
        let drawn = correlations(&drawn);
        for (draws, pair) in of_pairs.iter_mut().zip(&drawn.pairs) {
            draws.push(pair.of.r);
        }
        for (draws, of) in of_overall.iter_mut().zip(drawn.overall.values()) {
            draws.push(of.r);
        }
        of_mean.push(drawn.mean.r);
        let items: Vec<u32> = complete
            .cases
            .iter()
            .map(|case| draw.families[table.cases[*case].family])
            .collect();
        let persons: Vec<u32> = complete
            .candidates
            .iter()
            .map(|c| draw.builds[*c])
            .collect();
        of_kr20.push(Reliabilities::new(&complete.passed, &items, &persons).whole());
    });
    for (idx, model) in analysis.models.iter_mut().enumerate() {
        let builds = &table.models[idx].builds;
        for ((spread, part), draws) in model.rates.all_mut().zip(&rates.parts).zip(&means[idx]) {
            let mut families = vec![0; table.n_families];
            for build in builds {
                let tallies = table.tallies(&table.candidates[*build], *part);
                for (sum, (_, counted)) in families.iter_mut().zip(tallies) {
                    *sum += counted;
                }
            }
            families.retain(|counted| *counted > 0);
            resampled_rate(spread, draws, &families);
        }
    }
    for row in &mut analysis.groups {
        let wanted = row.group.map_or(Part::All, Part::Group);
        let part = rates.parts.iter().position(|part| *part == wanted);
        let part = part.expect("a group's row is of a part");
        row.average_interval = row
            .average
            .and_then(|at| bias_corrected(&averages[part], at));
        row.gap_interval = row.gap.and_then(|at| bias_corrected(&gaps[part], at));
    }
    for row in &mut analysis.ranks {
        let model = table
            .models
            .iter()
            .position(|model| model.name == row.model);
        let draws = &of_ranks[model.expect("a rank is a model's")];
        row.interval = percentiles(draws).map(|interval| RankInterval {
            best: interval.low.floor() as usize,
            worst: interval.high.ceil() as usize,
        });
    }
    let fill = |of: &mut Correlation, draws: &[Option<f64>]| {
        of.interval = of.r.and_then(|r| correlation_interval(draws, r));
    };
    for (pair, draws) in analysis.correlations.pairs.iter_mut().zip(&of_pairs) {
        fill(&mut pair.of, draws);
    }
    for (of, draws) in analysis.correlations.overall.values_mut().zip(&of_overall) {
        fill(of, draws);
    }
    fill(&mut analysis.correlations.mean, &of_mean);
    // A family that is drawn twice agrees with itself, which raises the draws and not the estimate.
    let kr20 = analysis.reliability.kr20;
    analysis.reliability.interval = kr20.and_then(|at| centred(&of_kr20, at));
}

/// Draws centred on the estimate, on Fisher's scale where the ends of a correlation are far away. Noise makes the draws
/// weaker than the estimate; how much weaker the estimate is than the correlation without noise is not undone.
pub(super) fn correlation_interval(draws: &[Option<f64>], r: f64) -> Option<Interval> {
    let scaled = |r: f64| r.clamp(-NEARLY_ONE, NEARLY_ONE).atanh();
    let draws: Vec<Option<f64>> = draws.iter().map(|r| r.map(scaled)).collect();
    centred(&draws, scaled(r)).map(|interval| Interval {
        low: interval.low.tanh(),
        high: interval.high.tanh(),
    })
}

/// Wilson's interval on the effective number of outcomes that the variance of the draws amounts to: percentiles of few
/// families are too narrow near 0 and 1.
///
/// `families` holds how many outcomes of each are counted.
fn resampled_rate(spread: &mut Spread, draws: &[Option<f64>], families: &[usize]) {
    if families.len() < 2 {
        return;
    }
    let counted = families.iter().sum();
    // Builds that differ much leave fewer independent outcomes than there are families.
    let least = if spread.n_builds > 1 {
        1
    } else {
        families.len()
    };
    spread.effective = spread.mean.zip(variance(draws)).map(|(mean, variance)| {
        if mean > 0.0 && mean < 1.0 {
            effective(mean, variance, least, counted)
        } else {
            families.len() as f64
        }
    });
    spread.interval = spread
        .mean
        .zip(spread.effective)
        .map(|(mean, effective)| wilson(mean, effective));
}

/// None unless 95 % of the draws have the estimate.
fn variance(draws: &[Option<f64>]) -> Option<f64> {
    percentiles(draws)?;
    let known: Vec<f64> = draws.iter().copied().flatten().collect();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let squares = known.iter().map(|value| (value - mean).powi(2));
    Some(squares.sum::<f64>() / (known.len() - 1) as f64)
}

fn known_ranks(drawn: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let known: Vec<f64> = drawn.iter().filter_map(|model| model[0]).collect();
    let mut found = ranks(&known).into_iter();
    drawn
        .iter()
        .map(|model| {
            let rank = model[0].and_then(|_| found.next());
            rank.map(|rank| rank as f64)
        })
        .collect()
}

fn in_parts(table: &Table<'_>, means: &[Option<f64>]) -> Means {
    let n_groups = table.groups.len();
    Parts {
        overall: means[0],
        groups: table
            .groups
            .iter()
            .copied()
            .zip(means[1..=n_groups].iter().copied())
            .collect(),
        ordinary: means[n_groups + 1],
        boundary: means[n_groups + 2],
    }
}
