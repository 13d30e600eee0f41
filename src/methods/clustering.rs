//! Groups of similar items: the exact cosine graph of sparse vectors, and average linkage (linfa) inside each of its
//! connected parts.
//!
//! Two clusters merge only at an average similarity of at least the cut, so at least one pair of them has it: parts of
//! the graph that no edge of that weight joins can be clustered one by one, and the result is that of the whole.

use std::collections::BTreeMap;

use linfa::traits::Transformer;
use linfa_hierarchical::{HierarchicalCluster, Method};
use linfa_kernel::{Kernel, KernelInner, KernelMethod};
use ndarray::Array2;

/// Dimensions in ascending order with their values; of length 1 or empty.
pub type SparseVector = Vec<(u32, f32)>;

/// How far similarity has to rise at a time to split a part that is too big.
const SPLIT_STEP: f32 = 0.05;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clusters {
    /// Positions of items, ascending; clusters in the order of their first item. Every item is in exactly one.
    pub clusters: Vec<Vec<usize>>,
    /// Parts of the graph that were split since they were too big, so that there the result is not exact.
    pub n_split: usize,
}

/// Clusters vectors at an average cosine of at least `cut`, in parts of at most `max_part` items.
pub fn cluster(vectors: &[SparseVector], cut: f32, max_part: usize) -> Clusters {
    let edges = edges(vectors, cut);
    let mut clusters = Clusters::default();
    let mut waiting = parts((0..vectors.len()).collect(), &edges, cut);
    let mut next_cut: Vec<f32> = vec![cut; waiting.len()];
    while let Some(part) = waiting.pop() {
        let part_cut = next_cut.pop().expect("one for each part");
        if part.len() <= max_part || part_cut >= 1.0 {
            clusters.clusters.extend(linkage(vectors, &part, cut));
            continue;
        }
        clusters.n_split += 1;
        for smaller in parts(part, &edges, part_cut + SPLIT_STEP) {
            waiting.push(smaller);
            next_cut.push(part_cut + SPLIT_STEP);
        }
    }
    clusters.clusters.sort();
    clusters
}

/// Cosine of two vectors of length 1.
pub fn cosine(a: &SparseVector, b: &SparseVector) -> f32 {
    let (mut a_idx, mut b_idx, mut sum) = (0, 0, 0.0);
    while let (Some((a_dim, a_value)), Some((b_dim, b_value))) = (a.get(a_idx), b.get(b_idx)) {
        match a_dim.cmp(b_dim) {
            std::cmp::Ordering::Less => a_idx += 1,
            std::cmp::Ordering::Greater => b_idx += 1,
            std::cmp::Ordering::Equal => {
                sum += a_value * b_value;
                a_idx += 1;
                b_idx += 1;
            }
        }
    }
    sum
}

struct Edge {
    a: usize,
    b: usize,
    weight: f32,
}

/// All pairs of at least the given similarity, through an inverted index.
fn edges(vectors: &[SparseVector], at_least: f32) -> Vec<Edge> {
    let n_dims = vectors
        .iter()
        .filter_map(|vector| vector.last())
        .map(|(dim, _)| *dim as usize + 1)
        .max()
        .unwrap_or(0);
    let mut holders: Vec<Vec<(usize, f32)>> = vec![Vec::new(); n_dims];
    let mut sums = vec![0f32; vectors.len()];
    let mut touched = Vec::new();
    let mut edges = Vec::new();
    for (b, vector) in vectors.iter().enumerate() {
        for (dim, value) in vector {
            for (a, other) in &holders[*dim as usize] {
                if sums[*a] == 0.0 {
                    touched.push(*a);
                }
                sums[*a] += value * other;
            }
            holders[*dim as usize].push((b, *value));
        }
        for a in touched.drain(..) {
            // A value that came back to 0 is touched twice; the second time it is below any cut.
            let weight = std::mem::take(&mut sums[a]);
            if weight >= at_least {
                edges.push(Edge { a, b, weight });
            }
        }
    }
    edges
}

/// The connected parts among `items` over edges of at least the given weight.
fn parts(items: Vec<usize>, edges: &[Edge], at_least: f32) -> Vec<Vec<usize>> {
    let places: BTreeMap<usize, usize> = items
        .iter()
        .enumerate()
        .map(|(place, item)| (*item, place))
        .collect();
    let mut parent: Vec<usize> = (0..items.len()).collect();
    for edge in edges.iter().filter(|edge| edge.weight >= at_least) {
        if let (Some(a), Some(b)) = (places.get(&edge.a), places.get(&edge.b)) {
            let (a, b) = (root(&mut parent, *a), root(&mut parent, *b));
            parent[a.max(b)] = a.min(b);
        }
    }
    let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, item) in items.iter().enumerate() {
        parts
            .entry(root(&mut parent, place))
            .or_default()
            .push(*item);
    }
    parts.into_values().collect()
}

fn root(parent: &mut [usize], mut item: usize) -> usize {
    while parent[item] != item {
        parent[item] = parent[parent[item]];
        item = parent[item];
    }
    item
}

/// Average linkage of one part.
fn linkage(vectors: &[SparseVector], part: &[usize], cut: f32) -> Vec<Vec<usize>> {
    let n = part.len();
    if n == 1 {
        return vec![part.to_vec()];
    }
    // linfa takes similarities and clusters on −ln of them: e^−distance comes out as the distance.
    let mut similarities = Array2::<f64>::eye(n);
    for a in 0..n {
        for b in 0..a {
            let distance = 1.0 - f64::from(cosine(&vectors[part[a]], &vectors[part[b]]));
            let value = (-distance).exp();
            similarities[[a, b]] = value;
            similarities[[b, a]] = value;
        }
    }
    let kernel = Kernel {
        inner: KernelInner::Dense(similarities),
        method: KernelMethod::Linear,
    };
    // The limit itself is excluded by linfa, and included here.
    let max_distance = 1.0 - f64::from(cut) + 1e-9;
    let found = HierarchicalCluster::default()
        .with_method(Method::Average)
        .max_distance(max_distance)
        .transform(kernel)
        .expect("the limit is a finite positive number");
    // linfa numbers clusters differently from run to run; only the grouping is used.
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, group) in found.targets().iter().enumerate() {
        groups.entry(*group).or_default().push(part[place]);
    }
    groups.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let found = cluster(&vectors, 0.5, 100);
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
        let found = cluster(&vectors, 0.3, 100);
        let expected: [&[usize]; 2] = [&[0, 1], &[2]];
        assert_eq!(found.clusters, expected);
        let all = cluster(&vectors, 0.1, 100);
        assert_eq!(all.clusters, [vec![0, 1, 2]]);
    }

    #[test]
    fn a_part_that_is_too_big_is_split_and_told() {
        let vectors: Vec<SparseVector> = (0..10)
            .map(|n| unit(&[(0, 1.0), (1 + n / 5, 1.0)]))
            .collect();
        let whole = cluster(&vectors, 0.4, 100);
        assert_eq!((whole.clusters.len(), whole.n_split), (1, 0));
        let split = cluster(&vectors, 0.4, 5);
        assert_eq!(split.clusters, [vec![0, 1, 2, 3, 4], vec![5, 6, 7, 8, 9]]);
        assert!(split.n_split > 0);
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(cluster(&[], 0.3, 10), Clusters::default());
    }
}
