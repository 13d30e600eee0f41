//! Made-up benchmarks whose truth is known: how often the intervals hold it.

use super::super::statistics::{Interval, Random, mean};
use super::{Analysis, Resampling, Table, analyse_resampled};
use crate::domain::case::{CaseId, Category};
use crate::domain::clause::Scenario;
use crate::domain::results::{Row, Status};

const N_BENCHMARKS: usize = 200;
pub(super) const RESAMPLING: Resampling = Resampling {
    draws: 200,
    seed: 1,
};

/// How the outcomes of a made-up benchmark come about.
#[derive(Clone, Copy)]
pub(super) struct World<'a> {
    /// The true rate of each model.
    pub models: &'a [f64],
    pub n_builds: usize,
    /// Families have one to six cases.
    pub n_families: usize,
    /// How far the true rate of a family lies from the model's, up or down: some are hard for all.
    pub family_reach: f64,
    /// How far the true rate of a build lies from the model's.
    pub build_reach: f64,
    /// The chance that all variants of a family end as its seed does.
    pub same: f64,
}

impl Default for World<'_> {
    fn default() -> Self {
        Self {
            models: &[0.35, 0.5, 0.65],
            n_builds: 3,
            n_families: 30,
            family_reach: 0.2,
            build_reach: 0.02,
            same: 0.5,
        }
    }
}

/// One benchmark of this world, always the same.
pub(super) fn worlds_rows(world: World<'_>) -> Vec<Row> {
    world.rows(&mut Random::new(2))
}

impl World<'_> {
    pub fn rows(&self, random: &mut Random) -> Vec<Row> {
        let reach = |random: &mut Random, reach: f64| reach * (2.0 * random.unit() - 1.0);
        let families: Vec<f64> = (0..self.n_families)
            .map(|_| reach(random, self.family_reach))
            .collect();
        let mut rows = Vec::new();
        for (model, truth) in self.models.iter().enumerate() {
            for build in 0..self.n_builds {
                let own = truth + reach(random, self.build_reach);
                for (family, shift) in families.iter().enumerate() {
                    let chance = own + shift;
                    let copies = random.unit() < self.same;
                    let seed = random.unit() < chance;
                    for variant in 0..1 + family % 6 {
                        let passed = if copies { seed } else { random.unit() < chance };
                        rows.push(row(model, build, family, variant, passed));
                    }
                }
            }
        }
        rows
    }
}

fn row(model: usize, build: usize, family: usize, variant: usize, passed: bool) -> Row {
    let status = if passed { Status::Pass } else { Status::Fail };
    Row {
        candidate: format!("m{model:02}/{build}"),
        model: format!("m{model:02}"),
        build: build.to_string(),
        case: CaseId::new(format!("f{family:03}/{variant}")),
        category: [Category::Permissions, Category::Headless][family % 2],
        scenario: [Scenario::Ordinary, Scenario::Boundary][variant % 2],
        family: CaseId::new(format!("f{family:03}/0")),
        n_controls: Some(variant % 3),
        status,
        reason: status.as_str().to_owned(),
    }
}

fn holds(interval: Interval, truth: f64) -> bool {
    interval.low <= truth && truth <= interval.high
}

/// In which share of benchmarks each check says yes.
fn shares<const N: usize>(world: World<'_>, checks: [&dyn Fn(&Analysis) -> bool; N]) -> [f64; N] {
    let mut random = Random::new(11);
    let mut n_held = [0; N];
    for _ in 0..N_BENCHMARKS {
        let rows = world.rows(&mut random);
        let analysis = analyse_resampled(&Table::new(&rows), RESAMPLING);
        for (n, check) in n_held.iter_mut().zip(checks) {
            *n += usize::from(check(&analysis));
        }
    }
    n_held.map(|n| n as f64 / N_BENCHMARKS as f64)
}

fn is_as_said(share: f64, what: &str) {
    assert!((0.90..=0.99).contains(&share), "{what}: covered {share}");
}

/// Reliability and correlations look at the spread of few models, which the draws show too narrow.
fn is_nearly_as_said(share: f64, what: &str) {
    assert!((0.83..=0.99).contains(&share), "{what}: covered {share}");
}

#[test]
fn rates_are_covered_as_often_as_the_intervals_say() {
    for (truth, same, build_reach, family_reach) in [
        (0.5, 0.0, 0.0, 0.0),
        (0.5, 0.8, 0.0, 0.3),
        (0.75, 0.8, 0.02, 0.2),
        (0.3, 0.4, 0.05, 0.25),
    ] {
        let world = World {
            models: &[truth],
            n_builds: 3,
            n_families: 48,
            family_reach,
            build_reach,
            same,
        };
        let of_model = |analysis: &Analysis, part: usize| {
            let spread = analysis.models[0].rates.all().nth(part);
            holds(spread.unwrap().interval.unwrap(), truth)
        };
        let [all, group, single] = shares(
            world,
            [
                &|analysis| of_model(analysis, 0),
                &|analysis| of_model(analysis, 1),
                &|analysis| {
                    holds(
                        analysis.candidates[0].rates.overall.interval.unwrap(),
                        truth,
                    )
                },
            ],
        );
        is_as_said(all, &format!("all of {truth}, {same}"));
        is_as_said(group, &format!("a group of {truth}, {same}"));
        // Nothing in the outcomes of one build tells how much builds differ.
        if build_reach == 0.0 {
            is_as_said(single, &format!("a candidate of {truth}, {same}"));
        }
    }
}

#[test]
fn taking_variants_as_independent_would_cover_too_rarely() {
    let world = World {
        models: &[0.5],
        n_builds: 3,
        n_families: 48,
        family_reach: 0.3,
        build_reach: 0.0,
        same: 1.0,
    };
    let mut random = Random::new(11);
    let n = (0..N_BENCHMARKS)
        .filter(|_| {
            let mut rows = world.rows(&mut random);
            for row in &mut rows {
                row.family = row.case.clone();
            }
            let analysis = analyse_resampled(&Table::new(&rows), RESAMPLING);
            holds(analysis.models[0].rates.overall.interval.unwrap(), 0.5)
        })
        .count();
    let share = n as f64 / N_BENCHMARKS as f64;
    assert!(
        share < 0.85,
        "families matter, else the tests show nothing: {share}"
    );
}

/// With more models near both ends it would be covered more rarely: the best of many is partly the luckiest.
#[test]
fn a_gap_between_models_that_stand_apart_is_covered() {
    let world = World {
        models: &[0.35, 0.4, 0.45, 0.5, 0.6],
        n_families: 36,
        family_reach: 0.3,
        build_reach: 0.03,
        ..World::default()
    };
    let [gap] = shares(
        world,
        [&|analysis| {
            let interval = analysis.groups[0].gap_interval;
            interval.is_some_and(|interval| holds(interval, 0.25))
        }],
    );
    is_as_said(gap, "gap");
}

#[test]
fn reliability_and_correlations_are_covered_less_often() {
    let world = World {
        models: &[0.35, 0.38, 0.42, 0.45, 0.5, 0.53, 0.6],
        n_builds: 2,
        n_families: 36,
        family_reach: 0.3,
        build_reach: 0.03,
        same: 0.5,
    };
    // Their truth is what benchmarks of this world have on average.
    let mut random = Random::new(5);
    let (mut reliability, mut correlation) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        let analysis = super::analyse(&world.rows(&mut random));
        reliability.extend(analysis.reliability.kr20);
        correlation.extend(analysis.correlations.pairs[0].of.r);
    }
    let truth = (mean(&reliability).unwrap(), mean(&correlation).unwrap());
    let held = |interval: Option<Interval>, truth| interval.is_some_and(|i| holds(i, truth));
    let [of_kr20, of_correlation] = shares(
        world,
        [
            &|analysis| held(analysis.reliability.interval, truth.0),
            &|analysis| held(analysis.correlations.pairs[0].of.interval, truth.1),
        ],
    );
    is_nearly_as_said(of_kr20, "KR-20");
    is_nearly_as_said(of_correlation, "correlation");
}
