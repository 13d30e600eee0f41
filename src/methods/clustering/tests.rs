//! Clustering on vectors that are small enough to be followed by hand.

use super::*;

fn plain(vectors: &[SparseVector], cut: f32, max_part: usize) -> Clusters {
    known(vectors, &Known::default(), cut, max_part)
}

fn known(vectors: &[SparseVector], known: &Known, cut: f32, max_part: usize) -> Clusters {
    let items = Items {
        vectors,
        bonus: &|_, _| 0.0,
        most_bonus: 0.0,
    };
    cluster(&items, known, cut, max_part)
}

fn unit(values: &[(u32, f32)]) -> SparseVector {
    let length = values.iter().map(|(_, v)| v * v).sum::<f32>().sqrt();
    values.iter().map(|(dim, v)| (*dim, v / length)).collect()
}

#[test]
fn similar_items_come_together_and_the_order_is_fixed() {
    let vectors = [
        unit(&[(0, 1.0), (1, 1.0)]),
        unit(&[(5, 1.0)]),
        unit(&[(0, 1.0), (1, 0.9)]),
        unit(&[(7, 1.0), (8, 1.0)]),
        unit(&[(1, 1.0), (0, 0.8)]).into_iter().rev().collect(),
        Vec::new(),
    ];
    for _ in 0..5 {
        let found = plain(&vectors, 0.5, 100);
        let expected: [&[usize]; 4] = [&[0, 2, 4], &[1], &[3], &[5]];
        assert_eq!(found.clusters, expected);
        assert_eq!(found.n_split, 0);
    }
}

#[test]
fn average_linkage_cuts_a_chain() {
    // 0–1 and 1–2 are alike, 0–2 are not: the closer pair joins, the third stays.
    let vectors = [
        unit(&[(0, 1.0), (1, 0.9)]),
        unit(&[(1, 1.0), (0, 0.7), (2, 0.6)]).into_iter().collect(),
        unit(&[(2, 1.0), (3, 0.9)]),
    ];
    let vectors = vectors.map(|mut vector: SparseVector| {
        vector.sort_by_key(|(dim, _)| *dim);
        vector
    });
    let found = plain(&vectors, 0.3, 100);
    let expected: [&[usize]; 2] = [&[0, 1], &[2]];
    assert_eq!(found.clusters, expected);
    let all = plain(&vectors, 0.1, 100);
    assert_eq!(all.clusters, [vec![0, 1, 2]]);
}

#[test]
fn a_part_that_is_too_big_is_split_and_told() {
    let vectors: Vec<SparseVector> = (0..10)
        .map(|n| unit(&[(0, 1.0), (1 + n / 5, 1.0)]))
        .collect();
    let whole = plain(&vectors, 0.4, 100);
    assert_eq!((whole.clusters.len(), whole.n_split), (1, 0));
    let split = plain(&vectors, 0.4, 5);
    assert_eq!(split.clusters, [vec![0, 1, 2, 3, 4], vec![5, 6, 7, 8, 9]]);
    assert!(split.n_split > 0);
}

#[test]
fn nothing_gives_nothing() {
    assert_eq!(plain(&[], 0.3, 10), Clusters::default());
}

/// Two pairs that are alike, and one item between them.
fn pairs_and_one() -> Vec<SparseVector> {
    vec![
        unit(&[(0, 1.0)]),
        unit(&[(0, 1.0), (1, 0.1)]),
        unit(&[(5, 1.0)]),
        unit(&[(5, 1.0), (6, 0.1)]),
        unit(&[(0, 1.0), (5, 0.9)]),
    ]
}

#[test]
fn a_new_item_joins_or_opens_a_cluster_and_moves_no_other() {
    let vectors = pairs_and_one();
    let check = |before: &[&[usize]], cut: f32, expected: &[&[usize]]| {
        let what = Known {
            before: before.iter().map(|cluster| cluster.to_vec()).collect(),
            ..Known::default()
        };
        assert_eq!(known(&vectors, &what, cut, 100).clusters, expected);
    };
    check(&[&[0, 1], &[2, 3]], 0.5, &[&[0, 1, 4], &[2, 3]]);
    check(&[&[0, 1], &[2, 3]], 0.8, &[&[0, 1], &[2, 3], &[4]]);
    // Alike or not: what was one cluster, or two, is so afterwards.
    check(&[&[0, 2], &[1], &[3]], 0.5, &[&[0, 2], &[1, 4], &[3]]);
    check(&[&[0], &[1]], 0.5, &[&[0, 4], &[1], &[2, 3]]);
    // Too big a part is split without taking what was there apart.
    let whole = Known {
        before: vec![vec![0, 1, 2, 3]],
        ..Known::default()
    };
    assert_eq!(
        known(&vectors, &whole, 0.2, 2).clusters[0][..4],
        [0, 1, 2, 3]
    );
}

#[test]
fn what_a_reviewer_said_holds() {
    let vectors = pairs_and_one();
    let check = |together: &[(usize, usize)], apart: &[(usize, usize)], expected: &[&[usize]]| {
        for before in [vec![], vec![vec![0, 1], vec![2, 3], vec![4]]] {
            let what = Known {
                before,
                together: together.to_vec(),
                apart: apart.to_vec(),
            };
            let found = known(&vectors, &what, 0.9, 100);
            assert_eq!(found.clusters, expected, "{together:?} {apart:?}");
            assert_eq!(found.n_contradicted, 0);
        }
    };
    check(&[], &[], &[&[0, 1], &[2, 3], &[4]]);
    check(&[(3, 0)], &[], &[&[0, 1, 2, 3], &[4]]);
    check(&[], &[(1, 0)], &[&[0], &[1], &[2, 3], &[4]]);
    check(&[(4, 2), (3, 4)], &[(0, 1)], &[&[0], &[1], &[2, 3, 4]]);
    let what = Known {
        together: vec![(0, 1), (1, 2)],
        apart: vec![(2, 0)],
        ..Known::default()
    };
    assert_eq!(known(&vectors, &what, 0.9, 100).n_contradicted, 1);
}

#[test]
fn a_bonus_joins_and_parts_what_the_vectors_do_not() {
    let vectors = pairs_and_one();
    let check = |bonus: &(dyn Fn(usize, usize) -> f32 + Sync), expected: &[&[usize]]| {
        let items = Items {
            vectors: &vectors,
            bonus,
            most_bonus: 0.2,
        };
        let found = cluster(&items, &Known::default(), 0.9, 100);
        assert_eq!(found.clusters, expected);
    };
    let touches = |a: usize, b: usize, of: [usize; 2]| of.contains(&a) && of.contains(&b);
    check(&|_, _| 0.0, &[&[0, 1], &[2, 3], &[4]]);
    check(
        &|a, b| if touches(a, b, [0, 1]) { -0.2 } else { 0.0 },
        &[&[0], &[1], &[2, 3], &[4]],
    );
    check(
        &|a, b| {
            if a == 4 && b < 2 || b == 4 && a < 2 {
                0.2
            } else {
                0.0
            }
        },
        &[&[0, 1, 4], &[2, 3]],
    );
}
