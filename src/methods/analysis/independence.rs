//! How much the cases of a family say the same: on how many independent cases the rates rest.

use serde::Serialize;

use super::super::statistics::clustered_variance;
use super::table::{Part, Table};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Independence {
    pub n_cases: usize,
    pub n_families: usize,
    /// Families with more than one case.
    pub n_with_variants: usize,
    /// How much a candidate's outcomes on the cases of a family agree: 1 always, 0 as chance has it.
    pub intraclass: Option<f64>,
    /// By how much the families enlarge the variance of a rate.
    pub design_effect: Option<f64>,
    /// Cases ÷ design effect.
    pub effective_cases: Option<f64>,
}

/// Over all candidates that have a verdict that counts.
///
/// The intraclass correlation is `(MSB - MSW) / (MSB + (m - 1) MSW)` of a one-way analysis of variance with families as
/// groups, squares summed over candidates, and `m = (n - Σ n²/n) / (families - 1)` the size of a family (Donner 1986).
/// The design effect is the variance of the candidates' rates over families ÷ what it would be were outcomes independent
/// (Kish 1965), both summed over candidates. `None` when no family has two cases, or when no candidate both passes and
/// fails.
pub fn independence(table: &Table<'_>) -> Independence {
    let mut sizes = vec![0usize; table.n_families];
    for case in &table.cases {
        sizes[case.family] += 1;
    }
    let n_with_variants = sizes.iter().filter(|size| **size > 1).count();
    let (mut between, mut within) = (0.0, 0.0);
    let (mut df_between, mut df_within, mut size, mut n_candidates) = (0.0, 0.0, 0.0, 0.0);
    let (mut variance, mut independent) = (0.0, 0.0);
    for candidate in &table.candidates {
        let mut families = table.tallies(candidate, Part::All);
        families.retain(|(_, counted)| *counted > 0);
        let n: f64 = families.iter().map(|(_, counted)| *counted as f64).sum();
        let n_families = families.len() as f64;
        let Some(of_rate) = clustered_variance(&families) else {
            continue;
        };
        let rate = families
            .iter()
            .map(|(passed, _)| *passed as f64)
            .sum::<f64>()
            / n;
        variance += of_rate;
        independent += rate * (1.0 - rate) / n;
        for (passed, counted) in &families {
            let (passed, counted) = (*passed as f64, *counted as f64);
            let own = passed / counted;
            between += counted * (own - rate).powi(2);
            within += counted * own * (1.0 - own);
        }
        let squares: f64 = families.iter().map(|(_, c)| (*c as f64).powi(2)).sum();
        df_between += n_families - 1.0;
        df_within += n - n_families;
        size += (n - squares / n) / (n_families - 1.0);
        n_candidates += 1.0;
    }
    let has_variants = df_within > 0.0 && independent > 0.0;
    let intraclass = has_variants.then(|| {
        let (between, within) = (between / df_between, within / df_within);
        (between - within) / (between + (size / n_candidates - 1.0) * within)
    });
    let design_effect = has_variants.then(|| variance / independent);
    Independence {
        n_cases: table.cases.len(),
        n_families: table.n_families,
        n_with_variants,
        intraclass,
        design_effect,
        effective_cases: design_effect.map(|effect| table.cases.len() as f64 / effect),
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{World, worlds_rows};
    use super::*;

    fn check(same: f64, expected: impl Fn(&Independence) -> bool) {
        let rows = worlds_rows(World {
            models: &[0.5; 40],
            n_families: 60,
            family_reach: 0.0,
            build_reach: 0.0,
            same,
            ..World::default()
        });
        let found = independence(&Table::new(&rows));
        assert!(expected(&found), "{found:?}");
    }

    #[test]
    fn planted_agreement_is_found() {
        check(0.0, |found| {
            found.intraclass.unwrap().abs() < 0.03 && found.effective_cases.unwrap() > 180.0
        });
        check(0.6, |found| (found.intraclass.unwrap() - 0.6).abs() < 0.05);
        // Families of one to six that always agree: Σ size² / Σ size = 4.33 times the variance.
        check(1.0, |found| {
            (found.intraclass.unwrap() - 1.0).abs() < 1e-9
                && (found.design_effect.unwrap() - 4.33).abs() < 0.4
        });
    }

    #[test]
    fn no_variants_no_estimate() {
        let mut rows = worlds_rows(World::default());
        for row in &mut rows {
            row.family = row.case.clone();
        }
        let found = independence(&Table::new(&rows));
        assert_eq!((found.intraclass, found.effective_cases), (None, None));
        assert_eq!(found.n_with_variants, 0);
    }
}
