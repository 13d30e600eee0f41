//! The two-parameter item response model: how hard each item is, how sharply it tells persons apart, and how able each
//! person is, on one scale.

use serde::Serialize;

/// Places at which the distribution of ability is looked at: from -4 to 4 standard deviations.
const N_NODES: usize = 41;
const REACH: f64 = 4.0;

/// Priors of BILOG: log slope ~ N(0, 0.5²), difficulty ~ N(0, 2²). Few persons do not pin a slope down; without priors
/// some run away.
const SLOPE_SD: f64 = 0.5;
const DIFFICULTY_SD: f64 = 2.0;

const MAX_ROUNDS: usize = 2000;
const SETTLED: f64 = 1e-7;

#[derive(Debug, Clone, PartialEq)]
pub struct ItemResponse {
    /// None for an item that everybody passes, or nobody: nothing of it can be known.
    pub items: Vec<Option<ItemCurve>>,
    /// None for a person who met none of the items that have a curve.
    pub persons: Vec<Option<Ability>>,
    /// Whether the estimates stopped moving; else the rounds ran out.
    pub settled: bool,
}

/// P(pass) = 1 / (1 + exp(-slope × (ability - difficulty))).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ItemCurve {
    pub slope: f64,
    /// The ability at which half pass, in standard deviations of the persons' ability.
    pub difficulty: f64,
}

/// The mean of a person's ability given the outcomes, and its standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ability {
    pub mean: f64,
    pub sd: f64,
}

/// Fits the model to persons × items; `None` in a cell is an outcome that is not there.
///
/// Ability is N(0, 1). Items are estimated at the mode of their marginal posterior by expectation and maximisation
/// (Bock and Aitkin 1981; Mislevy 1986 for the priors), persons by the mean of their posterior. `None` for fewer than
/// two persons, or when no item varies. Items are taken as independent given ability; where variants of one seed are
/// not, slopes come out too steep.
pub fn item_response(outcomes: &[Vec<Option<bool>>]) -> Option<ItemResponse> {
    let n_items = outcomes.first()?.len();
    let varies = |item: usize| {
        let has = |wanted| outcomes.iter().any(|person| person[item] == Some(wanted));
        has(true) && has(false)
    };
    let items: Vec<usize> = (0..n_items).filter(|item| varies(*item)).collect();
    if outcomes.len() < 2 || items.is_empty() {
        return None;
    }
    let grid = Grid::new();
    let mut curves: Vec<ItemCurve> = items.iter().map(|item| start(outcomes, *item)).collect();
    let mut settled = false;
    for _ in 0..MAX_ROUNDS {
        let expected = expect(outcomes, &items, &curves, &grid);
        let mut moved: f64 = 0.0;
        for (curve, counts) in curves.iter_mut().zip(&expected.items) {
            let better = improve(*curve, counts, &grid);
            moved = moved
                .max((better.slope - curve.slope).abs())
                .max((better.difficulty - curve.difficulty).abs());
            *curve = better;
        }
        if moved < SETTLED {
            settled = true;
            break;
        }
    }
    let persons = expect(outcomes, &items, &curves, &grid).persons;
    let mut all = vec![None; n_items];
    for (item, curve) in items.into_iter().zip(curves) {
        all[item] = Some(curve);
    }
    Some(ItemResponse {
        items: all,
        persons,
        settled,
    })
}

impl ItemCurve {
    fn passes(self, ability: f64) -> f64 {
        1.0 / (1.0 + (-self.slope * (ability - self.difficulty)).exp())
    }
}

struct Grid {
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

impl Grid {
    fn new() -> Self {
        let step = 2.0 * REACH / (N_NODES - 1) as f64;
        let nodes: Vec<f64> = (0..N_NODES).map(|idx| -REACH + idx as f64 * step).collect();
        let density: Vec<f64> = nodes
            .iter()
            .map(|node| (-node * node / 2.0).exp())
            .collect();
        let whole: f64 = density.iter().sum();
        Self {
            nodes,
            weights: density.iter().map(|value| value / whole).collect(),
        }
    }
}

/// Of one item, at each node: how many persons are expected to have met it there, and to have passed.
struct Counts {
    met: Vec<f64>,
    passed: Vec<f64>,
}

struct Expected {
    items: Vec<Counts>,
    persons: Vec<Option<Ability>>,
}

fn start(outcomes: &[Vec<Option<bool>>], item: usize) -> ItemCurve {
    let seen: Vec<bool> = outcomes.iter().filter_map(|person| person[item]).collect();
    let passed = seen.iter().filter(|passed| **passed).count() as f64;
    let rate = (passed + 0.5) / (seen.len() as f64 + 1.0);
    ItemCurve {
        slope: 1.0,
        difficulty: -(rate / (1.0 - rate)).ln(),
    }
}

fn expect(
    outcomes: &[Vec<Option<bool>>],
    items: &[usize],
    curves: &[ItemCurve],
    grid: &Grid,
) -> Expected {
    // Logarithms of the chance to pass and to fail, node by node.
    let chances: Vec<(Vec<f64>, Vec<f64>)> = curves
        .iter()
        .map(|curve| {
            let passes: Vec<f64> = grid.nodes.iter().map(|node| curve.passes(*node)).collect();
            (
                passes.iter().map(|p| p.ln()).collect(),
                passes
                    .iter()
                    .map(|p| (1.0 - p).max(f64::MIN_POSITIVE).ln())
                    .collect(),
            )
        })
        .collect();
    let empty = || Counts {
        met: vec![0.0; N_NODES],
        passed: vec![0.0; N_NODES],
    };
    let mut counts: Vec<Counts> = items.iter().map(|_| empty()).collect();
    let mut persons = Vec::with_capacity(outcomes.len());
    for person in outcomes {
        let mut posterior: Vec<f64> = grid.weights.iter().map(|weight| weight.ln()).collect();
        let mut n_met = 0;
        for (item, (pass, fail)) in items.iter().zip(&chances) {
            let Some(passed) = person[*item] else {
                continue;
            };
            n_met += 1;
            let chance = if passed { pass } else { fail };
            for (sum, log) in posterior.iter_mut().zip(chance) {
                *sum += log;
            }
        }
        if n_met == 0 {
            persons.push(None);
            continue;
        }
        let top = posterior.iter().copied().fold(f64::MIN, f64::max);
        for log in &mut posterior {
            *log = (*log - top).exp();
        }
        let whole: f64 = posterior.iter().sum();
        for share in &mut posterior {
            *share /= whole;
        }
        for (item, counts) in items.iter().zip(&mut counts) {
            let Some(passed) = person[*item] else {
                continue;
            };
            for (node, share) in posterior.iter().enumerate() {
                counts.met[node] += share;
                if passed {
                    counts.passed[node] += share;
                }
            }
        }
        let moment = |power: i32, around: f64| -> f64 {
            let nodes = grid.nodes.iter().zip(&posterior);
            nodes
                .map(|(node, share)| share * (node - around).powi(power))
                .sum()
        };
        let mean = moment(1, 0.0);
        persons.push(Some(Ability {
            mean,
            sd: moment(2, mean).sqrt(),
        }));
    }
    Expected {
        items: counts,
        persons,
    }
}

/// One step of Fisher scoring on log slope and difficulty, kept short.
fn improve(curve: ItemCurve, counts: &Counts, grid: &Grid) -> ItemCurve {
    let (log_slope, slope, difficulty) = (curve.slope.ln(), curve.slope, curve.difficulty);
    let prior_slope = 1.0 / (SLOPE_SD * SLOPE_SD);
    let prior_difficulty = 1.0 / (DIFFICULTY_SD * DIFFICULTY_SD);
    let mut gradient = [-log_slope * prior_slope, -difficulty * prior_difficulty];
    let mut information = [prior_slope, 0.0, prior_difficulty];
    for (node, ability) in grid.nodes.iter().enumerate() {
        let passes = curve.passes(*ability);
        let surplus = counts.passed[node] - counts.met[node] * passes;
        let weight = counts.met[node] * passes * (1.0 - passes);
        // How the log odds move with log slope, and with difficulty.
        let (by_slope, by_difficulty) = (slope * (ability - difficulty), -slope);
        gradient[0] += surplus * by_slope;
        gradient[1] += surplus * by_difficulty;
        information[0] += weight * by_slope * by_slope;
        information[1] += weight * by_slope * by_difficulty;
        information[2] += weight * by_difficulty * by_difficulty;
    }
    let [aa, ab, bb] = information;
    let determinant = aa * bb - ab * ab;
    let step_slope = (bb * gradient[0] - ab * gradient[1]) / determinant;
    let step_difficulty = (aa * gradient[1] - ab * gradient[0]) / determinant;
    ItemCurve {
        slope: (log_slope + step_slope.clamp(-0.5, 0.5)).exp(),
        difficulty: difficulty + step_difficulty.clamp(-1.0, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Random;
    use super::super::pearson;
    use super::*;

    #[test]
    fn nothing_over_nothing() {
        assert_eq!(item_response(&[]), None);
        assert_eq!(item_response(&[vec![Some(true)]]), None);
        assert_eq!(item_response(&[vec![Some(true)], vec![Some(true)]]), None);
        let fitted = item_response(&[
            vec![Some(true), Some(true), None],
            vec![Some(false), Some(true), None],
            vec![None, Some(true), None],
        ])
        .unwrap();
        assert!(fitted.items[0].is_some() && fitted.persons[0].is_some());
        assert_eq!((fitted.items[1], fitted.items[2]), (None, None));
        assert_eq!(fitted.persons[2], None);
    }

    #[test]
    fn planted_curves_are_found() {
        let mut random = Random::new(3);
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let abilities: Vec<f64> = (0..600).map(|_| normal()).collect();
        let truth: Vec<ItemCurve> = (0..40)
            .map(|idx| ItemCurve {
                slope: [0.5, 1.0, 2.0][idx % 3],
                difficulty: -2.0 + idx as f64 / 10.0,
            })
            .collect();
        let mut random = Random::new(4);
        let outcomes: Vec<Vec<Option<bool>>> = abilities
            .iter()
            .map(|ability| {
                let passes = truth
                    .iter()
                    .map(|curve| random.unit() < curve.passes(*ability));
                passes.map(Some).collect()
            })
            .collect();
        let fitted = item_response(&outcomes).unwrap();
        assert!(fitted.settled);
        let of = |pick: fn(&ItemCurve) -> f64| {
            let found = fitted.items.iter().flatten();
            let pairs: Vec<_> = truth
                .iter()
                .zip(found)
                .map(|(t, f)| (pick(t), pick(f)))
                .collect();
            pearson(&pairs).unwrap()
        };
        assert!(of(|curve| curve.difficulty) > 0.95);
        assert!(of(|curve| curve.slope) > 0.9);
        let persons = fitted.persons.iter().flatten();
        let pairs: Vec<_> = abilities
            .iter()
            .zip(persons)
            .map(|(a, p)| (*a, p.mean))
            .collect();
        assert!(pearson(&pairs).unwrap() > 0.9);
    }
}
