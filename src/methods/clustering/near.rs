//! Which of many vectors are alike to one of a few, without an index over the many: they are looked through once.

use std::collections::HashMap;

use super::SparseVector;

/// The positions of those of `many` that are alike to one of `few`, ascending: the cosine and the bonus of the pair, which
/// is named by its positions in both, come to at least the given similarity. Vectors without a common dimension are
/// never alike.
pub fn near(
    few: &[SparseVector],
    many: &[&SparseVector],
    at_least: f32,
    most_bonus: f32,
    bonus: impl Fn(usize, usize) -> f32,
) -> Vec<usize> {
    // A little less, for the rounding of sums: one too many does no harm.
    let at_least = at_least - 0.001;
    let cosine_at_least = (at_least - most_bonus).max(f32::EPSILON * 0.999);
    let mut holders: HashMap<u32, Vec<(usize, f32)>> = HashMap::new();
    for (place, vector) in few.iter().enumerate() {
        for (dim, value) in vector {
            holders.entry(*dim).or_default().push((place, *value));
        }
    }
    let mut sums = vec![0.0; few.len()];
    let mut is_near = |other: usize| {
        sums.fill(0.0);
        for (dim, value) in many[other] {
            for (place, held) in holders.get(dim).into_iter().flatten() {
                sums[*place] += value * held;
            }
        }
        (0..few.len()).any(|place| {
            let sum: f32 = sums[place];
            sum >= cosine_at_least && sum + bonus(place, other) >= at_least
        })
    };
    (0..many.len()).filter(|place| is_near(*place)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_near_when_one_of_the_few_is_alike() {
        let few = [vec![(1, 1.0)], vec![(2, 0.8), (7, 0.6)]];
        let many = [
            vec![(1, 0.3), (9, 0.9)],
            vec![(2, 0.5), (7, 0.5)],
            vec![(9, 1.0)],
            vec![],
            vec![(7, 1.0)],
        ];
        let check = |at_least: f32, expected: &[usize]| {
            let many: Vec<&SparseVector> = many.iter().collect();
            let found = near(&few, &many, at_least, 0.0, |_, _| 0.0);
            assert_eq!(found, expected, "{at_least}");
        };
        check(0.65, &[1]);
        check(0.6, &[1, 4]);
        check(0.3, &[0, 1, 4]);
        check(-1.0, &[0, 1, 4]);
        check(0.9, &[]);
        // What the second and the fifth have in common with one of the few tells.
        let bonus = |place: usize, other: usize| match (place, other) {
            (1, 1) => -0.2,
            (1, 4) => 0.1,
            _ => 0.0,
        };
        let many: Vec<&SparseVector> = many.iter().collect();
        assert_eq!(near(&few, &many, 0.65, 0.1, bonus), [4]);
    }
}
