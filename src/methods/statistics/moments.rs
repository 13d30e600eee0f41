//! Means, deviations, and how much of a variance lies between groups.

use super::TIE;

pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The middle value, or the mean of the two in the middle.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some((sorted[last / 2] + sorted[last.div_ceil(2)]) / 2.0)
}

/// The standard deviation with `n` below the sum, not `n - 1`: the builds are all there are, not a sample.
pub fn population_sd(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    let squares = values.iter().map(|value| (value - centre).powi(2));
    Some((squares.sum::<f64>() / values.len() as f64).sqrt())
}

/// Population standard deviation ÷ mean. `None` for fewer than two values or a mean that is not above 0.
pub fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let centre = mean(values).filter(|mean| *mean > 0.0)?;
    (values.len() >= 2).then_some(population_sd(values)? / centre)
}

/// The share of the variance that lies between groups: the sum of squares between ÷ the whole sum (η² of a one-way
/// analysis of variance).
///
/// With one value a group all variance would lie between them by definition, so it is `None` unless two groups have a
/// value and one of them two; also when nothing varies.
pub fn between_share(groups: &[Vec<f64>]) -> Option<f64> {
    let full: Vec<&Vec<f64>> = groups.iter().filter(|group| !group.is_empty()).collect();
    if full.len() < 2 || full.iter().all(|group| group.len() < 2) {
        return None;
    }
    let all: Vec<f64> = full.iter().copied().flatten().copied().collect();
    let centre = mean(&all)?;
    let whole: f64 = all.iter().map(|value| (value - centre).powi(2)).sum();
    let between: f64 = full
        .iter()
        .map(|group| {
            let own = mean(group).expect("empty groups are out");
            group.len() as f64 * (own - centre).powi(2)
        })
        .sum();
    (whole > all.len() as f64 * TIE * TIE).then_some((between / whole).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::super::close;
    use super::*;

    #[test]
    fn rates_of_three_builds_as_printed() {
        let check = |passed: [usize; 3], expected: &str| {
            let rates = passed.map(|n| 100.0 * n as f64 / 328.0);
            let printed = format!(
                "{:.2} ± {:.2}",
                mean(&rates).unwrap(),
                population_sd(&rates).unwrap()
            );
            assert_eq!(printed, expected);
        };
        check([173, 174, 175], "53.05 ± 0.25");
        check([88, 91, 91], "27.44 ± 0.43");
        check([150, 150, 151], "45.83 ± 0.14");
    }

    #[test]
    fn nothing_over_nothing() {
        assert_eq!(mean(&[]), None);
        assert_eq!(median(&[]), None);
        assert_eq!(population_sd(&[]), None);
        close(population_sd(&[0.3]), 0.0);
        assert_eq!(coefficient_of_variation(&[1.0]), None);
        assert_eq!(coefficient_of_variation(&[0.0, 0.0]), None);
        assert_eq!(between_share(&[vec![1.0, 2.0]]), None);
        assert_eq!(between_share(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(between_share(&[vec![1.0, 1.0], vec![1.0]]), None);
    }

    #[test]
    fn by_hand() {
        close(median(&[3.0, 1.0, 2.0]), 2.0);
        close(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        close(coefficient_of_variation(&[1.0, 3.0]), 0.5);
        // Means 2 and 6 around 4: between 2 × 4 + 2 × 4 = 16; within 1 + 1 + 1 + 1 = 4.
        close(between_share(&[vec![1.0, 3.0], vec![5.0, 7.0]]), 0.8);
        close(between_share(&[vec![1.0, 3.0], vec![3.0, 1.0]]), 0.0);
    }
}
