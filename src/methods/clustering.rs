//! Groups of similar items: the exact graph of similar pairs, and average linkage (linfa) inside each of its connected
//! parts.
//!
//! Two clusters merge only at an average similarity of at least the cut, so at least one pair of them has it: parts of
//! the graph that no edge of that weight joins can be clustered one by one, and the result is that of the whole.
//!
//! What is known beforehand holds: items that belong together come together, items that do not stay apart, and
//! clusters that were there before stay as they are while new items join them or open clusters of their own.

use std::collections::{BTreeMap, BTreeSet};

use linfa::traits::Transformer;
use linfa_hierarchical::{HierarchicalCluster, Method};
use linfa_kernel::{Kernel, KernelInner, KernelMethod};
use ndarray::Array2;

pub use near::near;
use pairs::{Edge, edges};

mod near;
mod pairs;

/// Dimensions in ascending order with their values; of length 1 or empty.
pub type SparseVector = Vec<(u32, f32)>;

/// Items and how alike two of them are: the cosine of their vectors and what `bonus` says of the pair.
pub struct Items<'a> {
    pub vectors: &'a [SparseVector],
    /// The same for both orders of a pair; may be negative.
    pub bonus: &'a (dyn Fn(usize, usize) -> f32 + Sync),
    /// `bonus` gives no more.
    pub most_bonus: f32,
}

impl Items<'_> {
    pub fn similarity(&self, a: usize, b: usize) -> f32 {
        cosine(&self.vectors[a], &self.vectors[b]) + (self.bonus)(a, b)
    }
}

/// What is known of items, which are named by their positions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Clusters that were there before; no item is in two.
    pub before: Vec<Vec<usize>>,
    /// Pairs that a reviewer put together: the clusters that hold them become one.
    pub together: Vec<(usize, usize)>,
    /// Pairs that a reviewer took apart. A cluster that was there before and holds such a pair is made anew.
    pub apart: Vec<(usize, usize)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clusters {
    /// Positions of items, ascending; clusters in the order of their first item. Every item is in exactly one.
    pub clusters: Vec<Vec<usize>>,
    /// Parts of the graph that were split since they were too big, so that there the result is not exact.
    pub n_split: usize,
    /// Pairs that were taken apart and yet put together by other decisions, which prevail.
    pub n_contradicted: usize,
}

/// How far similarity has to rise at a time to split a part that is too big.
const SPLIT_STEP: f32 = 0.05;
/// The distance of items that stay apart; an average with one such pair in some thousands is above any cut.
const APART: f64 = 10_000.0;

/// Clusters items at an average similarity of at least `cut`, in parts of at most `max_part` items.
pub fn cluster(items: &Items<'_>, known: &Known, cut: f32, max_part: usize) -> Clusters {
    let ties = Ties::new(items.vectors.len(), known);
    let mut edges = edges(items, &ties.is_new, cut);
    edges.extend(ties.edges());
    let mut clusters = Clusters::default();
    let mut waiting: Vec<(Vec<usize>, f32)> =
        parts((0..items.vectors.len()).collect(), &edges, cut)
            .into_iter()
            .map(|part| (part, cut))
            .collect();
    while let Some((part, part_cut)) = waiting.pop() {
        if part.len() <= max_part || part_cut >= 1.0 {
            clusters.clusters.extend(linkage(items, &ties, &part, cut));
            continue;
        }
        clusters.n_split += 1;
        let next_cut = part_cut + SPLIT_STEP;
        let smaller = parts(part, &edges, next_cut);
        waiting.extend(smaller.into_iter().map(|part| (part, next_cut)));
    }
    clusters.clusters.sort();
    clusters.clusters = joined(clusters.clusters, &known.together);
    let in_one = |(a, b): &(usize, usize)| {
        let holds_both = |cluster: &Vec<usize>| cluster.contains(a) && cluster.contains(b);
        clusters.clusters.iter().any(holds_both)
    };
    clusters.n_contradicted = ties.apart.iter().filter(|pair| in_one(pair)).count();
    clusters
}

/// Makes one cluster of those that hold the items of a pair.
fn joined(clusters: Vec<Vec<usize>>, together: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut parent: Vec<usize> = (0..clusters.len()).collect();
    for (a, b) in together {
        let of = |item| clusters.iter().position(|cluster| cluster.contains(item));
        if let (Some(a), Some(b)) = (of(a), of(b)) {
            join(&mut parent, a, b);
        }
    }
    let mut joined: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, cluster) in clusters.into_iter().enumerate() {
        joined
            .entry(root(&mut parent, place))
            .or_default()
            .extend(cluster);
    }
    let mut joined: Vec<Vec<usize>> = joined.into_values().collect();
    joined
        .iter_mut()
        .for_each(|cluster| cluster.sort_unstable());
    joined
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

/// What is known, by item.
struct Ties {
    /// The first item of those that were together before.
    first: Vec<usize>,
    /// Whether an item was in no cluster before.
    is_new: Vec<bool>,
    apart: BTreeSet<(usize, usize)>,
}

impl Ties {
    fn new(n_items: usize, known: &Known) -> Self {
        let mut parent: Vec<usize> = (0..n_items).collect();
        let apart: BTreeSet<(usize, usize)> = known
            .apart
            .iter()
            .map(|(a, b)| (*a.min(b), *a.max(b)))
            .collect();
        let mut is_new = vec![true; n_items];
        for cluster in &known.before {
            let is_split = |(a, b): &(usize, usize)| cluster.contains(a) && cluster.contains(b);
            if apart.iter().any(is_split) {
                continue;
            }
            for item in cluster {
                join(&mut parent, cluster[0], *item);
                is_new[*item] = false;
            }
        }
        Self {
            first: (0..n_items).map(|item| root(&mut parent, item)).collect(),
            is_new,
            apart,
        }
    }

    /// An edge from each item to the first of those that it was with, which no cut removes.
    fn edges(&self) -> impl Iterator<Item = Edge> {
        let tied = self.first.iter().enumerate().filter(|(item, a)| item != *a);
        tied.map(|(b, a)| Edge {
            a: *a,
            b,
            weight: f32::INFINITY,
        })
    }

    /// 0 for items that were together, far for items that do not, none when nothing is known.
    fn distance(&self, a: usize, b: usize) -> Option<f64> {
        if self.first[a] == self.first[b] {
            return Some(0.0);
        }
        let both_before = !self.is_new[a] && !self.is_new[b];
        let is_apart = both_before || self.apart.contains(&(a.min(b), a.max(b)));
        is_apart.then_some(APART)
    }
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
            join(&mut parent, *a, *b);
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

/// The smaller root stays one.
fn join(parent: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(parent, a), root(parent, b));
    parent[a.max(b)] = a.min(b);
}

/// Average linkage of one part.
fn linkage(items: &Items<'_>, ties: &Ties, part: &[usize], cut: f32) -> Vec<Vec<usize>> {
    let n = part.len();
    if n == 1 {
        return vec![part.to_vec()];
    }
    // linfa takes similarities and clusters on −ln of them, up to 13.8: e^−(distance / scale) comes out as the distance
    // in units of the scale, with room for items that stay apart.
    let scale = 1_000.0;
    let mut similarities = Array2::<f64>::eye(n);
    for a in 0..n {
        for b in 0..a {
            let distance = ties
                .distance(part[a], part[b])
                .unwrap_or_else(|| (1.0 - f64::from(items.similarity(part[a], part[b]))).max(0.0));
            let value = (-distance / scale).exp();
            similarities[[a, b]] = value;
            similarities[[b, a]] = value;
        }
    }
    let kernel = Kernel {
        inner: KernelInner::Dense(similarities),
        method: KernelMethod::Linear,
    };
    // The limit itself is excluded by linfa, and included here.
    let max_distance = (1.0 - f64::from(cut) + 1e-9) / scale;
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
mod tests;
