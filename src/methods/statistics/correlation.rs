//! Pearson's correlation, plain and with a third variable held fixed.

use super::TIE;

/// Pearson's correlation of pairs. Fewer than three pairs, or a side that does not vary, correlate with nothing.
pub fn pearson(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let n = pairs.len() as f64;
    let centre_x = pairs.iter().map(|(x, _)| x).sum::<f64>() / n;
    let centre_y = pairs.iter().map(|(_, y)| y).sum::<f64>() / n;
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        let (dx, dy) = (x - centre_x, y - centre_y);
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    let varies = |squares: f64| squares > n * TIE * TIE;
    (varies(xx) && varies(yy)).then(|| (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0))
}

/// The correlation of the first two of each triple with the third held fixed:
/// `(r12 - r13 r23) / sqrt((1 - r13²) (1 - r23²))` (Yule 1907).
///
/// `None` for fewer than four triples, and when the third explains one of the others in full.
pub fn partial(triples: &[(f64, f64, f64)]) -> Option<f64> {
    if triples.len() < 4 {
        return None;
    }
    let of = |pick: fn(&(f64, f64, f64)) -> (f64, f64)| {
        pearson(&triples.iter().map(pick).collect::<Vec<_>>())
    };
    let r12 = of(|t| (t.0, t.1))?;
    let r13 = of(|t| (t.0, t.2))?;
    let r23 = of(|t| (t.1, t.2))?;
    let left = (1.0 - r13 * r13) * (1.0 - r23 * r23);
    (left > TIE).then(|| ((r12 - r13 * r23) / left.sqrt()).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::super::close;
    use super::*;

    #[test]
    fn pearson_of_known_pairs() {
        close(pearson(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]), 1.0);
        close(pearson(&[(1.0, 6.0), (2.0, 4.0), (3.0, 2.0)]), -1.0);
        // Means 2 and 3; products of deviations sum to 1, squares to 2 and 2.
        close(pearson(&[(1.0, 2.0), (2.0, 4.0), (3.0, 3.0)]), 0.5);
        assert_eq!(pearson(&[(1.0, 2.0), (2.0, 1.0)]), None);
        assert_eq!(pearson(&[(1.0, 2.0), (1.0, 1.0), (1.0, 5.0)]), None);
    }

    #[test]
    fn a_common_cause_is_held_fixed() {
        // z = ±2 moves both by the same; what is left, ±1 and ±1, goes against each other.
        let triples = [
            (3.0, 1.0, 2.0),
            (1.0, 3.0, 2.0),
            (-1.0, -3.0, -2.0),
            (-3.0, -1.0, -2.0),
        ];
        let plain: Vec<_> = triples.iter().map(|t| (t.0, t.1)).collect();
        assert!(pearson(&plain).unwrap() > 0.5);
        close(partial(&triples), -1.0);
        assert_eq!(partial(&triples[..3]), None);
        let same = triples.map(|(x, y, _)| (x, y, x));
        assert_eq!(partial(&same), None);
    }
}
