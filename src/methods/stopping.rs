//! When reading may stop: how likely it is that too much was missed, what the last issues brought, and what a random
//! sample of the rest says. Labels come in the order of reading; true is relevant.

use serde::{Deserialize, Serialize};

/// The chance of meeting so few relevant issues lately although less than `target` of all relevant ones are read
/// (Callaghan and Müller-Hansen 2020, with unbiased urns): below .05 reading may stop.
///
/// For each number of issues that were read last: were they drawn at random from all that was left before them, how
/// likely would so few relevant ones be? The least of these chances counts. The issues that were read last are no random
/// draw, and the test is made again and again, so that this is a rule of experience; it is the one that held in
/// independent replays. None before anything is read.
pub fn chance_of_missing(labels: &[bool], n_all: usize, target: f64) -> Option<f64> {
    let n_relevant = labels.iter().filter(|label| **label).count();
    let factorials = LogFactorials::up_to(n_all.max(labels.len()));
    let mut in_urn = 0;
    let mut least: Option<f64> = None;
    for (idx, label) in labels.iter().rev().enumerate() {
        in_urn += usize::from(*label);
        let n_drawn = idx + 1;
        let n_before = labels.len() - n_drawn;
        let n_urn = n_all.saturating_sub(n_before);
        // The fewest relevant ones in the urn with which the target is missed; a little more, for the rounding.
        let missed_with =
            (n_relevant as f64 / target + 1.0 - (n_relevant - in_urn) as f64 + 1e-9).floor();
        let chance = match missed_with as usize {
            // There are not so many issues.
            k if k > n_urn => 0.0,
            k => factorials.at_most(in_urn, n_urn, k, n_drawn),
        };
        least = Some(least.map_or(chance, |least| least.min(chance)));
    }
    least
}

/// The greatest recall of which it can be said that it was reached, at the given chance of an error; in steps of .01.
/// None when nothing can be said, as before anything relevant was read.
pub fn recall_at_least(labels: &[bool], n_all: usize, alpha: f64) -> Option<f64> {
    if !labels.contains(&true) {
        return None;
    }
    let holds = |hundredths: u32| {
        let target = f64::from(hundredths) / 100.0;
        chance_of_missing(labels, n_all, target).is_some_and(|chance| chance < alpha)
    };
    if labels.len() >= n_all {
        return Some(1.0);
    }
    // The chance grows with the target.
    let (mut reached, mut missed) = (0, 100);
    while missed - reached > 1 {
        let middle = (reached + missed) / 2;
        match holds(middle) {
            true => reached = middle,
            false => missed = middle,
        }
    }
    (reached > 0).then(|| f64::from(reached) / 100.0)
}

/// Where the curve of what was found is furthest from a straight line, and how much less is found after the bend.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Knee {
    /// Issues that were read up to the bend.
    pub at: usize,
    /// Relevant ones an issue before the bend, divided by those after it.
    pub ratio: f64,
    /// From this ratio on the rule of Cormack and Grossman 2016 stops.
    pub needed: f64,
}

/// The knee ratio; none before two issues and anything relevant were read. The rule's authors ask for 1,000 issues read.
pub fn knee(labels: &[bool]) -> Option<Knee> {
    let n = labels.len();
    let n_relevant = labels.iter().filter(|label| **label).count();
    if n < 2 || n_relevant == 0 {
        return None;
    }
    let (mut found, mut best) = (0usize, None);
    for (idx, label) in labels[..n - 1].iter().enumerate() {
        found += usize::from(*label);
        // How far off the straight line from nothing to all, times the number of issues.
        let off = (n * found).abs_diff((idx + 1) * n_relevant);
        if best.is_none_or(|(_, _, most)| off > most) {
            best = Some((idx + 1, found, off));
        }
    }
    let (at, before, _) = best?;
    let after = (n_relevant - before + 1) as f64 / (n - at) as f64;
    Some(Knee {
        at,
        ratio: (before as f64 / at as f64) / after,
        needed: 156.0 - before.min(150) as f64,
    })
}

/// What a random sample of the unread issues says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Elusion {
    pub n_sampled: usize,
    pub n_relevant: usize,
    /// Of the issues that were unread when the sample was drawn, no more are relevant.
    pub at_most: f64,
}

/// The greatest number of relevant issues among `n_unread` with which a sample has so few, at the given chance of an
/// error. None without a sample.
pub fn elusion(sample: &[bool], n_unread: usize, alpha: f64) -> Option<Elusion> {
    if sample.is_empty() || n_unread < sample.len() {
        return None;
    }
    let n_relevant = sample.iter().filter(|label| **label).count();
    let factorials = LogFactorials::up_to(n_unread);
    // The chance falls with the number.
    let (mut possible, mut too_many) = (n_relevant, n_unread + 1);
    while too_many - possible > 1 {
        let middle = (possible + too_many) / 2;
        match factorials.at_most(n_relevant, n_unread, middle, sample.len()) >= alpha {
            true => possible = middle,
            false => too_many = middle,
        }
    }
    Some(Elusion {
        n_sampled: sample.len(),
        n_relevant,
        at_most: possible as f64,
    })
}

/// `pipeline/review.toml`, table `stop`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub by: Rule,
    /// Share of all issues that is read before reading may stop by its yield.
    pub least_read: f64,
    /// Issues that count as the last ones.
    pub window: usize,
    /// Relevant ones an issue read below which the last ones cost more than they brought.
    pub least_yield: f64,
    /// Share of the relevant issues that is to be read.
    pub target: f64,
    /// Chance of an error.
    pub alpha: f64,
}

/// What decides that reading may stop; everything else is told beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Enough is read, and the last issues cost more than they brought. With a window of 50, a yield below one of them
    /// and a tenth read it is the second phase of SAFE (Boetje and van de Schoot 2024): cheap, and without a promise.
    Yield,
    /// The chance of missing is below the allowed one: dear, and careful.
    Bound,
}

impl Rule {
    /// Whether reading may stop after `labels` of `n_issues`. Never before anything relevant was read.
    pub fn stops(self, labels: &[bool], n_issues: usize, settings: &Settings) -> bool {
        labels.contains(&true)
            && match self {
                _ if labels.len() >= n_issues => true,
                Self::Yield => {
                    labels.len() as f64 >= settings.least_read * n_issues as f64
                        && below_cost(labels, settings)
                }
                Self::Bound => chance_of_missing(labels, n_issues, settings.target)
                    .is_some_and(|chance| chance < settings.alpha),
            }
    }
}

/// Whether the last issues cost more than they brought; not before there are as many as count.
fn below_cost(labels: &[bool], settings: &Settings) -> bool {
    let Some(at) = labels.len().checked_sub(settings.window) else {
        return false;
    };
    let n_relevant = labels[at..].iter().filter(|label| **label).count();
    (n_relevant as f64) < settings.least_yield * settings.window as f64
}

/// How far reading is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reading {
    pub n_issues: usize,
    pub n_read: usize,
    pub n_relevant: usize,
    pub target: f64,
    /// Whether the rule says that reading may stop.
    pub stop: bool,
    /// The chance that less than the target is read.
    pub chance_of_missing: Option<f64>,
    /// With the same chance of an error, from the order in which relevant issues were met.
    pub recall_at_least: Option<f64>,
    /// Issues that were read last, and the relevant ones among them.
    pub n_last: usize,
    pub n_last_relevant: usize,
    /// The last ones cost more than they brought.
    pub below_cost: bool,
    pub knee: Option<Knee>,
    /// The closing sample, once all of it is read.
    pub elusion: Option<Elusion>,
    /// What the closing sample says of the recall.
    pub recall_at_least_by_sample: Option<f64>,
}

/// The figures of reading. `labels` are those of all issues that were read; `sample` has the labels of a random sample
/// and the number of issues that were unread when it was drawn.
pub fn reading(
    labels: &[bool],
    n_issues: usize,
    sample: Option<(&[bool], usize)>,
    settings: &Settings,
) -> Reading {
    let n_relevant = labels.iter().filter(|label| **label).count();
    let last = &labels[labels.len().saturating_sub(settings.window)..];
    let n_last_relevant = last.iter().filter(|label| **label).count();
    let chance = chance_of_missing(labels, n_issues, settings.target);
    let elusion = sample.and_then(|(labels, n)| elusion(labels, n, settings.alpha));
    Reading {
        n_issues,
        n_read: labels.len(),
        n_relevant,
        target: settings.target,
        stop: settings.by.stops(labels, n_issues, settings),
        chance_of_missing: chance,
        recall_at_least: recall_at_least(labels, n_issues, settings.alpha),
        n_last: last.len(),
        n_last_relevant,
        below_cost: below_cost(labels, settings),
        knee: knee(labels),
        recall_at_least_by_sample: elusion.map(|elusion| {
            let missed = elusion.at_most - elusion.n_relevant as f64;
            n_relevant as f64 / (n_relevant as f64 + missed)
        }),
        elusion,
    }
}

impl Reading {
    /// `stop now: …` or `read on: …`, with the figures.
    pub fn sentence(&self) -> String {
        let Some(chance) = self.chance_of_missing else {
            return "read on: nothing is read yet".to_owned();
        };
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let mut text = match self.stop {
            true => "stop now: ",
            false => "read on: ",
        }
        .to_owned();
        text += &format!(
            "{} of {} read, {} relevant; the last {} brought {}",
            self.n_read, self.n_issues, self.n_relevant, self.n_last, self.n_last_relevant
        );
        if self.below_cost {
            text += ", less than they cost";
        }
        text += &format!(
            "; the chance that less than {} of the relevant ones are read is {chance:.3}",
            percent(self.target)
        );
        if let Some(recall) = self.recall_at_least {
            text += &format!(", recall is at least {recall:.2}");
        }
        match (self.elusion, self.recall_at_least_by_sample) {
            (Some(elusion), Some(recall)) => {
                text += &format!(
                    "; a sample of {} had {} more, so that recall is at least {recall:.2}",
                    elusion.n_sampled, elusion.n_relevant
                );
            }
            _ if self.stop || self.below_cost => {
                text += "; a closing sample would say what is left"
            }
            _ => {}
        }
        text
    }
}

struct LogFactorials(Vec<f64>);

impl LogFactorials {
    fn up_to(n: usize) -> Self {
        let mut sums = vec![0.0];
        for k in 1..=n {
            sums.push(sums[k - 1] + (k as f64).ln());
        }
        Self(sums)
    }

    /// Chance of at most `k` marked items among `n_drawn`, drawn without return from `n`, of which `n_marked` are marked.
    fn at_most(&self, k: usize, n: usize, n_marked: usize, n_drawn: usize) -> f64 {
        let ln = |n: usize, k: usize| self.0[n] - self.0[k] - self.0[n - k];
        let least = n_drawn.saturating_sub(n - n_marked);
        let most = k.min(n_marked).min(n_drawn);
        if k < least {
            return 0.0;
        }
        let all = ln(n, n_drawn);
        let sum: f64 = (least..=most)
            .map(|i| (ln(n_marked, i) + ln(n - n_marked, n_drawn - i) - all).exp())
            .sum();
        sum.min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `1` and `0`, each part as often as it says.
    fn labels(parts: &[(&str, usize)]) -> Vec<bool> {
        parts
            .iter()
            .flat_map(|(text, n)| text.repeat(*n).into_bytes())
            .map(|byte| byte == b'1')
            .collect()
    }

    fn near(found: Option<f64>, expected: f64) {
        let found = found.expect("there is a figure");
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    /// The expected figures are those of buscarpy 0.1 (`calculate_h0`).
    #[test]
    fn the_chance_of_missing_is_that_of_the_published_program() {
        let check = |parts: &[(&str, usize)], n_all: usize, target: f64, expected: f64| {
            near(chance_of_missing(&labels(parts), n_all, target), expected);
        };
        check(&[("1", 10), ("0", 50)], 100, 0.95, 0.4444444444444444);
        check(&[("1", 10), ("0", 50)], 100, 0.8, 0.08409942117807286);
        check(&[("1101001000", 3), ("0", 40)], 500, 0.9, 0.826271186440678);
        check(&[("1", 30), ("0", 200)], 1000, 0.95, 0.6299724447565245);
        check(&[("1", 5), ("0", 5)], 1000, 0.5, 0.9701513537176377);
        check(
            &[("1", 20), ("01000", 10), ("0", 300)],
            600,
            0.95,
            0.18574814146059332,
        );
        assert_eq!(chance_of_missing(&[], 10, 0.9), None);
    }

    #[test]
    fn all_that_is_read_misses_nothing() {
        let all = labels(&[("1", 3), ("0", 7)]);
        near(chance_of_missing(&all, 10, 0.95), 0.0);
        assert_eq!(recall_at_least(&all, 10, 0.05), Some(1.0));
        assert_eq!(recall_at_least(&labels(&[("0", 9)]), 10, 0.05), None);
    }

    #[test]
    fn the_recall_that_was_reached_is_the_greatest_that_the_rule_accepts() {
        let read = labels(&[("1", 40), ("0", 300)]);
        let least = recall_at_least(&read, 700, 0.05).expect("something can be said");
        let chance = |target: f64| chance_of_missing(&read, 700, target).expect("a chance");
        assert!(
            chance(least) < 0.05 && chance(least + 0.01) >= 0.05,
            "{least}"
        );
    }

    #[test]
    fn the_knee_is_where_little_more_is_found() {
        let found = knee(&labels(&[("1", 60), ("0", 140)])).expect("a knee");
        assert_eq!((found.at, found.needed), (60, 96.0));
        // (60 / 60) / ((60 − 60 + 1) / (200 − 60))
        assert!((found.ratio - 140.0).abs() < 1e-9, "{found:?}");
        assert_eq!(knee(&labels(&[("0", 5)])), None);
    }

    #[test]
    fn a_sample_without_a_hit_bounds_what_is_left() {
        let found = elusion(&labels(&[("0", 1500)]), 17_000, 0.05).expect("a sample");
        // About 3 in the size of the sample: 17,000 × (1 − .05^(1 ÷ 1,500)) = 33.9, a little less without return.
        assert!((31.0..34.0).contains(&found.at_most), "{found:?}");
        let hit = elusion(&labels(&[("1", 1), ("0", 99)]), 1000, 0.05).expect("a sample");
        assert!((40.0..48.0).contains(&hit.at_most), "{hit:?}");
        let all = elusion(&labels(&[("1", 2), ("0", 8)]), 10, 0.05).expect("a sample");
        assert_eq!(all.at_most, 2.0);
        assert_eq!(elusion(&[], 10, 0.05), None);
    }

    fn settings(by: Rule) -> Settings {
        Settings {
            by,
            least_read: 0.1,
            window: 50,
            least_yield: 0.02,
            target: 0.95,
            alpha: 0.05,
        }
    }

    #[test]
    fn reading_stops_by_its_yield_or_by_the_bound() {
        let check = |parts: &[(&str, usize)], n_all: usize, by_yield: bool, by_bound: bool| {
            let labels = labels(parts);
            let stops = |rule: Rule| rule.stops(&labels, n_all, &settings(rule));
            assert_eq!(
                (stops(Rule::Yield), stops(Rule::Bound)),
                (by_yield, by_bound),
                "{parts:?} of {n_all}"
            );
        };
        check(&[], 100, false, false);
        check(&[("0", 100)], 1_000, false, false);
        check(&[("1", 30), ("0", 50)], 1_000, false, false); // not a tenth
        check(&[("1", 60), ("0", 49)], 1_000, false, false);
        check(&[("1", 60), ("0", 50)], 1_000, true, false);
        check(&[("1", 60), ("0", 600)], 1_000, true, true);
        check(&[("01", 50)], 100, true, true); // all are read
    }

    #[test]
    fn the_sentence_says_what_to_do_and_why() {
        let settings = settings(Rule::Bound);
        let check = |parts: &[(&str, usize)], n_all: usize, expected: &[&str]| {
            let text = reading(&labels(parts), n_all, None, &settings).sentence();
            for part in expected {
                assert!(text.contains(part), "{part}: {text}");
            }
        };
        check(&[], 100, &["read on: nothing is read yet"]);
        check(
            &[("1", 20), ("0", 10)],
            100,
            &[
                "read on: 30 of 100 read, 20 relevant",
                "the last 30 brought 20",
            ],
        );
        check(
            &[("1", 20), ("0", 100)],
            10_000,
            &[
                "read on: ",
                "the last 50 brought 0, less than they cost",
                "a closing sample",
            ],
        );
        check(
            &[("1", 60), ("0", 600)],
            1_000,
            &[
                "stop now: 660 of 1000 read",
                "less than 95 % of the relevant ones",
                "recall is at least 0.9",
            ],
        );
        check(&[("0", 100)], 100, &["read on: "]);
        let sampled = reading(
            &labels(&[("1", 60), ("0", 600)]),
            1_000,
            Some((&[false; 100], 400)),
            &settings,
        );
        let recall = sampled.recall_at_least_by_sample.expect("a sample");
        assert!((0.8..0.9).contains(&recall), "{recall}");
        assert!(sampled.sentence().contains("a sample of 100 had 0 more"));
    }
}
