//! The Kuder-Richardson formula 20, of a whole test and with one item taken out.

/// KR-20 over persons × items, here candidates × cases; all rows are equally long.
///
/// With `k` items, `p` the share of persons who pass an item, and the population variance of the persons' totals:
/// `k / (k - 1) × (1 - Σ p (1 - p) / variance)` (Kuder and Richardson 1937). `None` for fewer than two persons or
/// items, or equal totals.
pub fn kr20(persons: &[Vec<bool>]) -> Option<f64> {
    let n_items = persons.first()?.len();
    Reliabilities::new(persons, &vec![1; n_items], &vec![1; persons.len()]).whole()
}

/// The sums that KR-20 is made of, with persons and items that count several times or not at all.
///
/// Variances are kept as whole numbers, n² times too large, so that no order of summing matters.
pub struct Reliabilities {
    n_persons: i64,
    n_items: i64,
    item_variance: i64,
    total_variance: i64,
    items: Vec<Item>,
}

struct Item {
    weight: i64,
    /// p (1 - p), n² times.
    variance: i64,
    /// Its covariance with the totals, n² times.
    with_total: i64,
}

impl Reliabilities {
    /// `items` and `persons` say how often each counts.
    pub fn new(persons: &[Vec<bool>], items: &[u32], weights: &[u32]) -> Self {
        let n = weights.iter().copied().map(i64::from).sum::<i64>();
        let mut passed = vec![0i64; items.len()];
        let mut with_totals = vec![0i64; items.len()];
        let (mut sum, mut squares) = (0i64, 0i64);
        for (person, weight) in persons.iter().zip(weights) {
            assert_eq!(person.len(), items.len(), "every person has met every item");
            let weight = i64::from(*weight);
            if weight == 0 {
                continue;
            }
            let total: i64 = person
                .iter()
                .zip(items)
                .map(|(passed, item)| i64::from(*passed) * i64::from(*item))
                .sum();
            sum += weight * total;
            squares += weight * total * total;
            for (idx, has) in person.iter().enumerate() {
                passed[idx] += i64::from(*has) * weight;
                with_totals[idx] += i64::from(*has) * weight * total;
            }
        }
        let items: Vec<Item> = (0..items.len())
            .map(|idx| Item {
                weight: i64::from(items[idx]),
                variance: passed[idx] * (n - passed[idx]),
                with_total: n * with_totals[idx] - passed[idx] * sum,
            })
            .collect();
        Self {
            n_persons: n,
            n_items: items.iter().map(|item| item.weight).sum(),
            item_variance: items.iter().map(|item| item.weight * item.variance).sum(),
            total_variance: n * squares - sum * sum,
            items,
        }
    }

    pub fn whole(&self) -> Option<f64> {
        self.of(self.n_items, self.item_variance, self.total_variance)
    }

    /// KR-20 of the test with one item taken out once.
    pub fn without(&self, item: usize) -> Option<f64> {
        let item = &self.items[item];
        self.of(
            self.n_items - 1,
            self.item_variance - item.variance,
            self.total_variance - 2 * item.with_total + item.variance,
        )
    }

    /// KR-20 of the test with `n` items more, each like the average of `like`: as hard, as closely bound to the other
    /// items, and to each other as those of `like` are among themselves. `None` also for fewer than two in `like`.
    pub fn with_more(&self, persons: &[Vec<bool>], like: &[usize], n: usize) -> Option<f64> {
        let m = like.len() as f64;
        if like.len() < 2 {
            return None;
        }
        let part: Vec<Vec<bool>> = persons
            .iter()
            .map(|person| like.iter().map(|item| person[*item]).collect())
            .collect();
        let part = Self::new(&part, &vec![1; like.len()], &vec![1; persons.len()]);
        let own = part.item_variance as f64;
        let between = (part.total_variance as f64 - own) / (m * (m - 1.0));
        let with_total: i64 = like.iter().map(|item| self.items[*item].with_total).sum();
        // Of an item's covariance with the totals its own variance is a part that a new item does not have.
        let with_others = (with_total as f64 - own) / m;
        // A new item also meets the item that it is like, where an old one meets itself.
        let with_rest = with_others + between;
        let n = n as f64;
        let items = self.item_variance as f64 + n * own / m;
        let total = self.total_variance as f64
            + 2.0 * n * with_rest
            + n * own / m
            + n * (n - 1.0) * between;
        let k = self.n_items as f64 + n;
        (self.n_persons >= 2 && total > 0.0).then(|| k / (k - 1.0) * (1.0 - items / total))
    }

    fn of(&self, n_items: i64, item_variance: i64, total_variance: i64) -> Option<f64> {
        let k = n_items as f64;
        (self.n_persons >= 2 && n_items >= 2 && total_variance > 0)
            .then(|| k / (k - 1.0) * (1.0 - item_variance as f64 / total_variance as f64))
    }
}

/// How many times as long a test of this reliability must be to have the wanted one (Spearman and Brown 1910):
/// `wanted (1 - now) / (now (1 - wanted))`. `None` unless both are between 0 and 1.
pub fn lengthening(now: f64, wanted: f64) -> Option<f64> {
    let inside = |r: f64| r > 0.0 && r < 1.0;
    (inside(now) && inside(wanted)).then(|| wanted * (1.0 - now) / (now * (1.0 - wanted)))
}

#[cfg(test)]
mod tests {
    use super::super::close;
    use super::*;

    #[test]
    fn nothing_over_nothing() {
        assert_eq!(kr20(&[]), None);
        assert_eq!(kr20(&[vec![true, false]]), None);
        assert_eq!(kr20(&[vec![true], vec![false]]), None);
        assert_eq!(kr20(&[vec![true, false], vec![false, true]]), None);
        assert_eq!(lengthening(0.0, 0.9), None);
        assert_eq!(lengthening(0.5, 1.0), None);
    }

    #[test]
    fn kr20_by_hand() {
        // Shares passing: 3/4, 2/4, 1/4; sum of p q = 3/16 + 4/16 + 3/16 = 5/8.
        // Totals 3, 2, 1, 0: population variance 5/4. 3/2 × (1 - 1/2) = 3/4.
        let mut persons = vec![
            vec![true, true, true],
            vec![true, true, false],
            vec![true, false, false],
            vec![false, false, false],
        ];
        close(kr20(&persons), 0.75);
        persons.rotate_left(1);
        for person in &mut persons {
            person.rotate_left(1);
        }
        assert_eq!(kr20(&persons), Some(0.75));
        // Items that exclude each other are worse than unrelated. p q: 2/9 three times, so 2/3;
        // totals 1, 1, 1 do not vary, but with a fourth person who passes all of them they do:
        // p = 2/4 each, so 3/4; totals 1, 1, 1, 3: variance 3/4. 3/2 × (1 - 1) = 0.
        close(
            kr20(&[
                vec![true, false, false],
                vec![false, true, false],
                vec![false, false, true],
                vec![true, true, true],
            ]),
            0.0,
        );
        close(lengthening(0.5, 0.8), 4.0);
    }

    fn persons() -> Vec<Vec<bool>> {
        ["11010", "10110", "01000", "00000", "11111", "10010"]
            .iter()
            .map(|marks| marks.chars().map(|mark| mark == '1').collect())
            .collect()
    }

    #[test]
    fn weights_are_repetitions() {
        let all = persons();
        let weighted = Reliabilities::new(&all, &[2, 0, 1, 1, 3], &[1, 2, 1, 0, 1, 1]);
        let mut repeated: Vec<Vec<bool>> = Vec::new();
        for (person, n) in all.iter().zip([1, 2, 1, 0, 1, 1]) {
            let items = [0, 0, 2, 3, 4, 4, 4].map(|item: usize| person[item]);
            repeated.extend(std::iter::repeat_n(items.to_vec(), n));
        }
        assert_eq!(weighted.whole(), kr20(&repeated));
    }

    #[test]
    fn an_item_less_is_the_test_without_it() {
        let all = persons();
        let whole = Reliabilities::new(&all, &[1; 5], &[1; 6]);
        for item in 0..5 {
            let rest: Vec<Vec<bool>> = all
                .iter()
                .map(|person| {
                    let mut rest = person.clone();
                    rest.remove(item);
                    rest
                })
                .collect();
            close(whole.without(item), kr20(&rest).unwrap());
        }
    }

    #[test]
    fn more_of_the_same_follow_spearman_and_brown() {
        let all = persons();
        let whole = Reliabilities::new(&all, &[1; 5], &[1; 6]);
        let now = whole.whole().unwrap();
        let doubled = whole.with_more(&all, &[0, 1, 2, 3, 4], 5);
        close(doubled, 2.0 * now / (1.0 + now));
        assert_eq!(whole.with_more(&all, &[0], 5), None);
    }
}
