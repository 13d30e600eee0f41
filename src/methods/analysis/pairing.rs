//! Two candidates, or two models, on the same cases: is one better, or could it be chance?

use serde::Serialize;

use super::super::statistics::{Interval, mcnemar, percentiles, sign_flips};
use super::resampling::{Resampling, each_draw};
use super::table::Table;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    pub a: String,
    pub b: String,
    /// Cases that every build of both has a verdict on that counts.
    pub n_cases: usize,
    pub n_families: usize,
    /// Cases that one of them lacks.
    pub left_out: usize,
    pub rate_a: Option<f64>,
    pub rate_b: Option<f64>,
    /// a − b.
    pub difference: Option<f64>,
    /// 95 %, over families and the builds of a model.
    pub interval: Option<Interval>,
    /// Families on which one passes more than the other.
    pub families_for_a: usize,
    pub families_for_b: usize,
    /// Two-sided exact test over families: the sign of each family's difference could as well be the other.
    pub p_families: Option<f64>,
    /// Cases that one of two candidates passes and the other fails; None for models with several builds.
    pub only_a: Option<usize>,
    pub only_b: Option<usize>,
    /// McNemar's exact test over cases, which takes variants of one seed as independent.
    pub p_cases: Option<f64>,
}

/// A side is a candidate, or a model with all of its builds. The error is the name that is neither.
pub fn paired(
    table: &Table<'_>,
    a: &str,
    b: &str,
    resampling: Resampling,
) -> Result<Paired, String> {
    let side = |name: &str| -> Result<Vec<usize>, String> {
        if let Some(idx) = table.candidates.iter().position(|c| c.name == name) {
            return Ok(vec![idx]);
        }
        let model = table.models.iter().find(|model| model.name == name);
        Ok(model.ok_or(name)?.builds.clone())
    };
    let (builds_a, builds_b) = (side(a)?, side(b)?);
    let common: Vec<usize> = (0..table.cases.len())
        .filter(|case| {
            let mut builds = builds_a.iter().chain(&builds_b);
            builds.all(|build| table.candidates[*build].passed(*case).is_some())
        })
        .collect();
    let passed = |build: usize, case: usize| table.candidates[build].passed(case) == Some(true);
    let n_passed = |builds: &[usize], case: usize| {
        builds.iter().filter(|build| passed(**build, case)).count() as i64
    };
    let (n_a, n_b) = (builds_a.len() as i64, builds_b.len() as i64);
    // Whole numbers, n_a × n_b times too large.
    let mut differences = vec![0i64; table.n_families];
    let (mut sum_a, mut sum_b) = (0, 0);
    let (mut only_a, mut only_b) = (0, 0);
    let mut families = vec![0u32; table.n_families];
    for case in &common {
        let (in_a, in_b) = (n_passed(&builds_a, *case), n_passed(&builds_b, *case));
        sum_a += in_a;
        sum_b += in_b;
        differences[table.cases[*case].family] += in_a * n_b - in_b * n_a;
        families[table.cases[*case].family] += 1;
        only_a += usize::from(in_a == n_a && in_b == 0);
        only_b += usize::from(in_b == n_b && in_a == 0);
    }
    let rate = |sum: i64, n: i64| {
        (!common.is_empty()).then(|| sum as f64 / (n as f64 * common.len() as f64))
    };
    let (rate_a, rate_b) = (rate(sum_a, n_a), rate(sum_b, n_b));
    let single = n_a == 1 && n_b == 1;
    let mut draws = Vec::with_capacity(resampling.draws);
    each_draw(table, resampling, |draw| {
        let counted: u32 = families
            .iter()
            .zip(&draw.families)
            .map(|(n, w)| n * w)
            .sum();
        // Models are drawn by their builds; a single candidate is what it is.
        let weights = |builds: &[usize]| -> Vec<u32> {
            if builds.len() == 1 {
                vec![1]
            } else {
                builds.iter().map(|build| draw.builds[*build]).collect()
            }
        };
        let mean = |builds: &[usize]| {
            let mut sum = 0;
            for (build, weight) in builds.iter().zip(weights(builds)) {
                for case in &common {
                    let times = weight * draw.families[table.cases[*case].family];
                    sum += times * u32::from(passed(*build, *case));
                }
            }
            f64::from(sum) / (builds.len() as f64 * f64::from(counted))
        };
        draws.push((counted > 0).then(|| mean(&builds_a) - mean(&builds_b)));
    });
    let n_families = families.iter().filter(|n| **n > 0).count();
    Ok(Paired {
        a: a.to_owned(),
        b: b.to_owned(),
        n_cases: common.len(),
        n_families,
        left_out: table.cases.len() - common.len(),
        rate_a,
        rate_b,
        difference: rate_a.zip(rate_b).map(|(a, b)| a - b),
        interval: percentiles(&draws).filter(|_| n_families >= 2),
        families_for_a: differences.iter().filter(|d| **d > 0).count(),
        families_for_b: differences.iter().filter(|d| **d < 0).count(),
        p_families: sign_flips(&differences),
        only_a: single.then_some(only_a),
        only_b: single.then_some(only_b),
        p_cases: if single {
            mcnemar(only_a, only_b)
        } else {
            None
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::statistics::Random;
    use super::super::simulation::{RESAMPLING, World, worlds_rows};
    use super::*;

    #[test]
    fn a_candidate_and_itself_do_not_differ() {
        let rows = worlds_rows(World::default());
        let table = Table::new(&rows);
        let found = paired(&table, "m00/0", "m00/0", RESAMPLING).unwrap();
        assert_eq!((found.difference, found.p_families), (Some(0.0), None));
        assert_eq!((found.only_a, found.p_cases), (Some(0), None));
        let unknown = paired(&table, "m00", "m99", RESAMPLING);
        assert_eq!(unknown.unwrap_err(), "m99");
    }

    #[test]
    fn the_sides_are_mirrors() {
        let rows = worlds_rows(World::default());
        let table = Table::new(&rows);
        let there = paired(&table, "m00", "m02", RESAMPLING).unwrap();
        let back = paired(&table, "m02", "m00", RESAMPLING).unwrap();
        assert_eq!(there.p_families, back.p_families);
        assert_eq!(there.families_for_a, back.families_for_b);
        assert!((there.difference.unwrap() + back.difference.unwrap()).abs() < 1e-12);
        assert_eq!(there.only_a, None, "of models there are no single outcomes");
    }

    #[test]
    fn equal_candidates_are_told_apart_as_rarely_as_said_and_intervals_cover() {
        let world = World {
            models: &[0.5, 0.5],
            n_builds: 1,
            n_families: 40,
            same: 0.9,
            build_reach: 0.0,
            ..World::default()
        };
        let mut random = Random::new(8);
        let (mut covered, mut by_families, mut by_cases) = (0, 0, 0);
        let n = 200;
        for _ in 0..n {
            let rows = world.rows(&mut random);
            let found = paired(&Table::new(&rows), "m00/0", "m01/0", RESAMPLING).unwrap();
            let interval = found.interval.unwrap();
            covered += usize::from(interval.low <= 0.0 && interval.high >= 0.0);
            by_families += usize::from(found.p_families.is_some_and(|p| p <= 0.05));
            by_cases += usize::from(found.p_cases.is_some_and(|p| p <= 0.05));
        }
        assert!((180..=198).contains(&covered), "{covered} of {n}");
        assert!(by_families <= 20, "{by_families} of {n}");
        assert!(
            by_cases > 30,
            "variants taken as independent mislead: {by_cases}"
        );
    }
}
