//! All pairs of items that are alike, without looking at all pairs: an inverted index over the rarer dimensions of each
//! vector. The common ones of a vector are left out as long as they alone cannot make a pair, so that two vectors that
//! are alike meet at a dimension which neither leaves out; what they leave out is added up only for those.

use super::{Items, SparseVector};

pub(super) struct Edge {
    pub a: usize,
    pub b: usize,
    pub weight: f32,
}

/// All pairs of at least the given similarity of which one is new; in the order of their later, then their earlier item.
///
/// A pair without a common dimension is no pair, whatever the bonus says.
pub(super) fn edges(items: &Items<'_>, is_new: &[bool], at_least: f32) -> Vec<Edge> {
    let needed = (at_least - items.most_bonus).max(f32::EPSILON);
    // What was there before comes first, so that a new item meets exactly those in front of it.
    let (new, old): (Vec<usize>, Vec<usize>) = (0..is_new.len()).partition(|item| is_new[*item]);
    let n_old = old.len();
    let order: Vec<usize> = old.into_iter().chain(new).collect();
    let index = Index::build(items.vectors, &order, needed);
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut found: Vec<Edge> = std::thread::scope(|scope| {
        let (index, order) = (&index, &order);
        let threads: Vec<_> = (0..n_threads)
            .map(|nth| {
                // Every nth item, so that all threads have short and long vectors.
                let own = (n_old..order.len()).skip(nth).step_by(n_threads);
                scope.spawn(move || {
                    let mut search = Search::new(index, order);
                    for b in own {
                        search.pairs(b, items, at_least, needed);
                    }
                    search.found
                })
            })
            .collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().expect("the search does not panic"));
        joined.flatten().collect()
    });
    found.sort_by_key(|edge| (edge.b, edge.a));
    found
}

/// Items by their place in the order in which they are compared.
struct Index {
    /// Dimensions renamed so that those which most vectors hold come first.
    vectors: Vec<SparseVector>,
    /// For each vector how many of its first dimensions are left out of `holders`.
    n_left_out: Vec<usize>,
    /// The most that the dimensions which are left out can add.
    bounds: Vec<f32>,
    /// The vectors that hold a dimension, in their order.
    holders: Vec<Vec<(usize, f32)>>,
}

impl Index {
    fn build(vectors: &[SparseVector], order: &[usize], needed: f32) -> Self {
        let n_dims = vectors
            .iter()
            .filter_map(|vector| vector.last())
            .map(|(dim, _)| *dim as usize + 1)
            .max()
            .unwrap_or(0);
        let mut n_holders = vec![0u32; n_dims];
        for (dim, _) in vectors.iter().flatten() {
            n_holders[*dim as usize] += 1;
        }
        let mut by_holders: Vec<usize> = (0..n_dims).collect();
        by_holders.sort_by_key(|dim| (std::cmp::Reverse(n_holders[*dim]), *dim));
        let mut renamed = vec![0u32; n_dims];
        for (name, dim) in (0u32..).zip(by_holders) {
            renamed[dim] = name;
        }
        let vectors: Vec<SparseVector> = order
            .iter()
            .map(|item| {
                let mut vector: SparseVector = vectors[*item]
                    .iter()
                    .map(|(dim, value)| (renamed[*dim as usize], *value))
                    .collect();
                vector.sort_unstable_by_key(|(dim, _)| *dim);
                vector
            })
            .collect();
        let mut most = vec![0f32; n_dims];
        for (dim, value) in vectors.iter().flatten() {
            most[*dim as usize] = most[*dim as usize].max(value.abs());
        }
        let mut index = Self {
            n_left_out: Vec::new(),
            bounds: Vec::new(),
            holders: vec![Vec::new(); n_dims],
            vectors: Vec::new(),
        };
        for (place, vector) in vectors.iter().enumerate() {
            let (mut sum, mut squares, mut bound) = (0f32, 0f32, 0f32);
            let mut n_left_out = 0;
            for (dim, value) in vector {
                sum += value.abs() * most[*dim as usize];
                squares += value * value;
                // Other vectors have at most length 1.
                let more = sum.min(squares.sqrt());
                // A little less than needed, for the rounding of sums.
                if more >= needed * 0.999 {
                    break;
                }
                bound = more;
                n_left_out += 1;
            }
            for (dim, value) in &vector[n_left_out..] {
                index.holders[*dim as usize].push((place, *value));
            }
            index.n_left_out.push(n_left_out);
            index.bounds.push(bound);
        }
        index.vectors = vectors;
        index
    }

    /// The first dimension that a vector does not leave out.
    fn first(&self, place: usize) -> u32 {
        let first = self.vectors[place].get(self.n_left_out[place]);
        first.map_or(u32::MAX, |(dim, _)| *dim)
    }
}

/// One thread's share of the pairs, with room for its sums.
struct Search<'a> {
    index: &'a Index,
    /// The items by their places.
    order: &'a [usize],
    sums: Vec<f32>,
    touched: Vec<usize>,
    /// The vector at hand, by dimension.
    values: Vec<f32>,
    found: Vec<Edge>,
}

impl<'a> Search<'a> {
    fn new(index: &'a Index, order: &'a [usize]) -> Self {
        Self {
            sums: vec![0.0; index.vectors.len()],
            touched: Vec::new(),
            values: vec![0.0; index.holders.len()],
            found: Vec::new(),
            index,
            order,
        }
    }

    /// Pairs of the item at a place with those in front of it.
    fn pairs(&mut self, b: usize, items: &Items<'_>, at_least: f32, needed: f32) {
        let vector = &self.index.vectors[b];
        for (dim, value) in vector {
            self.values[*dim as usize] = *value;
        }
        for (dim, value) in &vector[self.index.n_left_out[b]..] {
            let holders = &self.index.holders[*dim as usize];
            for (a, other) in holders.iter().take_while(|(a, _)| *a < b) {
                if self.sums[*a] == 0.0 {
                    self.touched.push(*a);
                }
                self.sums[*a] += value * other;
            }
        }
        let (first, bound) = (self.index.first(b), self.index.bounds[b]);
        for a in self.touched.drain(..) {
            // A value that came back to 0 is touched twice; the second time it is below any cut.
            let sum = std::mem::take(&mut self.sums[a]);
            if sum + bound.max(self.index.bounds[a]) < needed * 0.999 {
                continue;
            }
            // What one of the two leaves out.
            let first = first.max(self.index.first(a));
            let left_out = self.index.vectors[a]
                .iter()
                .take_while(|(dim, _)| *dim < first);
            let rest: f32 = left_out
                .map(|(dim, value)| value * self.values[*dim as usize])
                .sum();
            let cosine = sum + rest;
            if cosine < needed * 0.999 {
                continue;
            }
            let (a, b) = (self.order[a], self.order[b]);
            let weight = cosine + (items.bonus)(a, b);
            if weight >= at_least {
                let (a, b) = (a.min(b), a.max(b));
                self.found.push(Edge { a, b, weight });
            }
        }
        for (dim, _) in vector {
            self.values[*dim as usize] = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cosine;
    use super::*;

    /// Vectors of few dimensions, some common, some rare; the same each time.
    fn vectors(n: usize) -> Vec<SparseVector> {
        let mut state = 7u64;
        let mut below = move |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % n
        };
        (0..n)
            .map(|_| {
                let mut dims: Vec<u32> = (0..8)
                    .map(|_| (below(40) * below(40) / 40) as u32)
                    .collect();
                dims.sort_unstable();
                dims.dedup();
                let values: Vec<f32> = dims.iter().map(|_| 1.0 + below(9) as f32).collect();
                let length = values.iter().map(|v| v * v).sum::<f32>().sqrt();
                let values = values.into_iter().map(|v| v / length);
                dims.into_iter().zip(values).collect()
            })
            .collect()
    }

    #[test]
    fn the_pairs_are_those_that_looking_at_all_of_them_finds() {
        let vectors = vectors(120);
        let bonus = |a: usize, b: usize| {
            if (a + b).is_multiple_of(3) {
                0.1
            } else {
                -0.05
            }
        };
        let items = Items {
            vectors: &vectors,
            bonus: &bonus,
            most_bonus: 0.1,
        };
        let check = |is_new: &dyn Fn(usize) -> bool, at_least: f32| {
            let flags: Vec<bool> = (0..vectors.len()).map(is_new).collect();
            let found: Vec<(usize, usize)> = edges(&items, &flags, at_least)
                .into_iter()
                .map(|edge| (edge.a, edge.b))
                .collect();
            let mut expected = Vec::new();
            for b in 0..vectors.len() {
                for a in 0..b {
                    let cosine = cosine(&vectors[a], &vectors[b]);
                    let alike = cosine > 0.0 && cosine + bonus(a, b) >= at_least;
                    if alike && (flags[a] || flags[b]) {
                        expected.push((a, b));
                    }
                }
            }
            assert!(!expected.is_empty());
            assert_eq!(found, expected, "{at_least}");
        };
        for at_least in [0.2, 0.4, 0.7] {
            check(&|_| true, at_least);
            check(&|item| item % 5 == 0, at_least);
        }
    }
}
