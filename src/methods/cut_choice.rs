//! Whether a threshold that was chosen on some labels holds on others: they are dealt into parts, and for each part the
//! threshold that is best on the others is judged on it.

use serde::Serialize;

/// Two items: what the truth says of them, and at which of the thresholds they come together.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The part that each item belongs to; the same when the truth has them together.
    pub parts: [usize; 2],
    pub together: bool,
    /// In the order of the thresholds.
    pub found: Vec<bool>,
}

/// Pooled over all parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Crossed {
    pub precision: Option<f64>,
    pub recall: Option<f64>,
    pub f1: Option<f64>,
    /// Positions of the thresholds that the parts were judged at.
    pub chosen: Vec<usize>,
}

#[derive(Default, Clone, Copy)]
struct Counts {
    both: f64,
    found: f64,
    truth: f64,
}

impl Counts {
    fn add(&mut self, pair: &Pair, threshold: usize, weight: f64) {
        let (found, truth) = (pair.found[threshold], pair.together);
        self.both += if found && truth { weight } else { 0.0 };
        self.found += if found { weight } else { 0.0 };
        self.truth += if truth { weight } else { 0.0 };
    }

    fn f1(&self) -> Option<f64> {
        share(2.0 * self.both, self.found + self.truth)
    }
}

/// A pair whose items are in two parts is judged with both, each time as half a pair. Of thresholds that are as good the
/// first is chosen.
pub fn crossed(pairs: &[Pair], n_parts: usize, n_thresholds: usize) -> Crossed {
    let mut pooled = Counts::default();
    let mut chosen = Vec::new();
    for part in 0..n_parts {
        let mut best: Option<(usize, f64)> = None;
        for threshold in 0..n_thresholds {
            let mut counts = Counts::default();
            for pair in pairs.iter().filter(|pair| !pair.parts.contains(&part)) {
                counts.add(pair, threshold, 1.0);
            }
            let f1 = counts.f1().unwrap_or(0.0);
            if best.is_none_or(|(_, most)| f1 > most + 1e-12) {
                best = Some((threshold, f1));
            }
        }
        let Some((threshold, _)) = best else { continue };
        for pair in pairs.iter().filter(|pair| pair.parts.contains(&part)) {
            let is_within = pair.parts[0] == pair.parts[1];
            pooled.add(pair, threshold, if is_within { 1.0 } else { 0.5 });
        }
        chosen.push(threshold);
    }
    Crossed {
        precision: share(pooled.both, pooled.found),
        recall: share(pooled.both, pooled.truth),
        f1: pooled.f1(),
        chosen,
    }
}

fn share(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(parts: [usize; 2], together: bool, found: &[bool]) -> Pair {
        Pair {
            parts,
            together,
            found: found.to_vec(),
        }
    }

    #[test]
    fn each_part_is_judged_at_the_threshold_that_the_others_choose() {
        // Part 0 is right at the first threshold only, part 1 at the second only.
        let pairs = [
            pair([0, 0], true, &[true, false]),
            pair([1, 1], true, &[false, true]),
        ];
        let found = crossed(&pairs, 2, 2);
        assert_eq!(found.chosen, [1, 0]);
        assert_eq!((found.recall, found.f1), (Some(0.0), Some(0.0)));
        // Where the parts agree, what was chosen holds.
        let pairs = [
            pair([0, 0], true, &[false, true]),
            pair([1, 1], true, &[false, true]),
            pair([0, 1], false, &[false, true]),
            pair([2, 2], true, &[false, true]),
        ];
        let found = crossed(&pairs, 3, 2);
        assert_eq!(found.chosen, [1, 1, 1]);
        // Half of the wrong pair is judged with each of its parts.
        assert_eq!(
            (found.precision, found.recall),
            (Some(3.0 / 4.0), Some(1.0))
        );
        assert_eq!(crossed(&[], 2, 2).f1, None);
    }
}
