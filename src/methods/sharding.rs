//! Which shard runs which unit. Candidate by candidate, so that a machine prepares few candidates; within a candidate
//! the longest first, so that shards take about as long as each other.

use std::cmp::Reverse;

/// Deals units to `n` shards. `durations[c][u]` is what unit `u` of candidate `c` is expected to take, in milliseconds.
///
/// Each unit is in exactly one shard; a shard lists `(c, u)`, the longest first. The same input gives the same shards.
pub fn deal(durations: &[Vec<u64>], n: usize) -> Vec<Vec<(usize, usize)>> {
    // A unit that is said to take nothing still has to be run.
    let costs: Vec<Vec<i128>> = durations
        .iter()
        .map(|units| units.iter().map(|ms| i128::from(*ms).max(1)).collect())
        .collect();
    let total: i128 = costs.iter().flatten().sum();
    let mut shards = vec![Vec::new(); n];
    // All durations lie on a line, candidate after candidate, and each shard has a stretch of it. What a shard got more
    // or less than its stretch of one candidate, it gets less or more of the next.
    let bound = |shard: usize| total * shard as i128 / n.max(1) as i128;
    let mut room = vec![0; n];
    let mut from = 0;
    for (candidate_idx, units) in costs.iter().enumerate() {
        let to = from + units.iter().sum::<i128>();
        let mut open = Vec::new();
        for (shard, room) in room.iter_mut().enumerate() {
            let stretch = bound(shard + 1).min(to) - bound(shard).max(from);
            if stretch > 0 {
                *room += stretch;
                open.push(shard);
            }
        }
        let mut order: Vec<usize> = (0..units.len()).collect();
        order.sort_by_key(|unit_idx| (Reverse(units[*unit_idx]), *unit_idx));
        for unit_idx in order {
            let shard = open
                .iter()
                .copied()
                .max_by_key(|shard| (room[*shard], Reverse(*shard)))
                .expect("a candidate with units has a stretch of the line");
            room[shard] -= units[unit_idx];
            shards[shard].push((candidate_idx, unit_idx));
        }
        from = to;
    }
    for shard in &mut shards {
        shard.sort_by_key(|(candidate, unit)| {
            (Reverse(costs[*candidate][*unit]), *candidate, *unit)
        });
    }
    shards
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn cost(durations: &[Vec<u64>], shard: &[(usize, usize)]) -> u64 {
        shard.iter().map(|(c, u)| durations[*c][*u].max(1)).sum()
    }

    #[test]
    fn shards_are_even_and_see_few_candidates() {
        let durations: Vec<Vec<u64>> = (0..60)
            .map(|c| (0..400).map(|u| 100 + (u * 37 + c * 11) % 900).collect())
            .collect();
        let shards = deal(&durations, 24);
        let costs: Vec<u64> = shards.iter().map(|shard| cost(&durations, shard)).collect();
        let (least, most) = (costs.iter().min(), costs.iter().max());
        let spread = most.expect("some") - least.expect("some");
        assert!(spread <= 2000, "{costs:?}");
        let n_prepared: usize = shards
            .iter()
            .map(|shard| shard.iter().map(|(c, _)| c).collect::<BTreeSet<_>>().len())
            .sum();
        assert!(n_prepared < 60 + 24, "{n_prepared}");
    }

    #[test]
    fn the_longest_units_of_one_candidate_are_dealt_apart() {
        let shards = deal(&[vec![9, 1, 9, 1, 9, 1]], 3);
        assert_eq!(
            shards,
            [[(0, 0), (0, 1)], [(0, 2), (0, 3)], [(0, 4), (0, 5)]]
        );
        assert_eq!(deal(&[vec![5]], 3).concat(), [(0, 0)]);
        assert!(deal(&[], 3).concat().is_empty());
    }

    proptest! {
        #[test]
        fn each_unit_is_in_exactly_one_shard(
            durations in prop::collection::vec(prop::collection::vec(0u64..5000, 0..12), 0..9),
            n in 1usize..20,
        ) {
            let shards = deal(&durations, n);
            prop_assert_eq!(shards.len(), n);
            let mut dealt = shards.concat();
            dealt.sort_unstable();
            let all: Vec<(usize, usize)> = durations
                .iter()
                .enumerate()
                .flat_map(|(c, units)| (0..units.len()).map(move |u| (c, u)))
                .collect();
            prop_assert_eq!(dealt, all);
        }
    }
}
