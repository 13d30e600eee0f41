//! Scales with round ticks.

use super::{GRID, QUIET, SMALL, line, text};
use crate::domain::drawing::{Anchor, Mark};

/// From values to places along one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    step: f64,
}

impl Scale {
    /// From `low` to the next tick at or above `high`, or the one below when that is `low`'s; `from` is the place of
    /// `low`.
    pub fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        let step = round_step((high - low).max(f64::MIN_POSITIVE) / 5.0);
        let low = (low / step).floor() * step;
        let high = ((high / step).ceil() * step).max(low + step);
        Self {
            low,
            high,
            from,
            to,
            step,
        }
    }

    pub fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    pub fn low(&self) -> f64 {
        self.low
    }

    pub fn ticks(&self) -> Vec<f64> {
        let n = ((self.high - self.low) / self.step).round() as usize;
        (0..=n)
            .map(|idx| self.low + idx as f64 * self.step)
            .collect()
    }

    /// A tick's text, with as many decimals as the step needs.
    fn label(&self, tick: f64) -> String {
        let decimals = (-self.step.log10().floor()).max(0.0) as usize;
        format!("{tick:.decimals$}")
    }

    /// Lines upward from the ticks of a scale that goes to the right, with their numbers below `bottom`.
    pub fn draw_below(&self, top: f64, bottom: f64, marks: &mut Vec<Mark>) {
        for tick in self.ticks() {
            let x = self.at(tick);
            marks.push(line((x, top), (x, bottom), 0.5, GRID));
            let label = self.label(tick);
            marks.push(text(
                (x, bottom + 10.0),
                SMALL,
                Anchor::Middle,
                QUIET,
                &label,
            ));
        }
    }

    /// Lines to the right from the ticks of a scale that goes upward, with their numbers left of `left`.
    pub fn draw_beside(&self, left: f64, right: f64, marks: &mut Vec<Mark>) {
        for tick in self.ticks() {
            let y = self.at(tick);
            marks.push(line((left, y), (right, y), 0.5, GRID));
            let label = self.label(tick);
            marks.push(text(
                (left - 4.0, y + 2.5),
                SMALL,
                Anchor::End,
                QUIET,
                &label,
            ));
        }
    }
}

/// 1, 2 or 5 times a power of ten, at least as large.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let times = [1.0, 2.0, 5.0, 10.0];
    let times = times
        .into_iter()
        .find(|times| times * power >= step * (1.0 - 1e-9));
    times.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_the_data() {
        let check = |low: f64, high: f64, expected: &[f64], label: &str| {
            let scale = Scale::new(low, high, 0.0, 100.0);
            let ticks = scale.ticks();
            assert_eq!(ticks.len(), expected.len(), "{ticks:?}");
            for (tick, expected) in ticks.iter().zip(expected) {
                assert!((tick - expected).abs() < 1e-9, "{ticks:?}");
            }
            assert_eq!(scale.label(ticks[1]), label);
            assert!((scale.at(ticks[0]), scale.at(*ticks.last().unwrap())) == (0.0, 100.0));
        };
        check(0.0, 53.0, &[0.0, 20.0, 40.0, 60.0], "20");
        check(0.0, 19.2, &[0.0, 5.0, 10.0, 15.0, 20.0], "5");
        check(27.0, 53.0, &[20.0, 30.0, 40.0, 50.0, 60.0], "30");
        check(0.0, 1.0, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0], "0.2");
        assert_eq!(Scale::new(0.0, 0.0, 0.0, 1.0).ticks().len(), 2);
    }
}
