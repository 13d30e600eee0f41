//! Figure 5: code lines against pass rate, and how much the builds of a model differ in size.

use super::axis::Scale;
use super::{BLUE, INK, PALE, QUIET, SIZE, SMALL, TextWidth, WARM, WIDTH};
use super::{line, name, text, widest};
use crate::domain::drawing::{Anchor, Drawing, Mark};
use crate::methods::analysis::{Architecture, ModelSource};

const ROW: f64 = 13.0;
const TOP: f64 = 24.0;
const LEAST_HEIGHT: f64 = 190.0;
/// The band is drawn through so many places.
const N_PLACES: usize = 60;

/// Left, a dot a model at its means, with the fitted line and the 95 % band of the mean. Right, a dot a build, a segment
/// over them and a stroke at their mean, models in the order of pass rate.
pub fn code_lines(architecture: &Architecture, width: TextWidth<'_>) -> Drawing {
    let mut models: Vec<&ModelSource> = architecture.models.iter().collect();
    models.sort_by(|a, b| {
        b.rate
            .total_cmp(&a.rate)
            .then_with(|| a.model.cmp(&b.model))
    });
    let height = (ROW * models.len() as f64).max(LEAST_HEIGHT);
    let bottom = TOP + height;
    let names: Vec<String> = models
        .iter()
        .map(|model| name(&model.model, width))
        .collect();
    let middle = WIDTH * 0.46;
    let right_from = middle + widest(names.iter(), width) + 16.0;
    let lines = |model: &ModelSource| model.code_lines / 1000.0;
    let builds = architecture.candidates.iter();
    let most = builds.map(|build| build.facts.code_lines as f64 / 1000.0);
    let most = most.fold(0.0, f64::max);
    let mut marks = Vec::new();

    let x = Scale::new(
        0.0,
        models.iter().map(|m| lines(m)).fold(0.0, f64::max),
        34.0,
        middle - 10.0,
    );
    let (low, high) = rates(architecture, &models);
    let y = Scale::new(low, high, bottom, TOP);
    x.draw_below(TOP, bottom, &mut marks);
    y.draw_beside(34.0, middle - 10.0, &mut marks);
    marks.extend(fit(architecture, &models, x, y));
    for model in &models {
        marks.push(Mark::Dot {
            at: (x.at(lines(model)), y.at(100.0 * model.rate)),
            radius: 2.4,
            fill: BLUE,
        });
    }
    marks.push(line((34.0, bottom), (middle - 10.0, bottom), 0.8, INK));
    marks.push(line((34.0, TOP), (34.0, bottom), 0.8, INK));

    let x = Scale::new(0.0, most, right_from, WIDTH - 12.0);
    x.draw_below(TOP, bottom, &mut marks);
    let row = height / models.len() as f64;
    for (idx, (model, shown)) in models.iter().zip(&names).enumerate() {
        let at = TOP + row * (idx as f64 + 0.5);
        marks.push(text(
            (right_from - 5.0, at + 2.8),
            SIZE,
            Anchor::End,
            INK,
            shown,
        ));
        let own = architecture
            .candidates
            .iter()
            .filter(|c| c.model == model.model);
        let own: Vec<f64> = own
            .map(|c| x.at(c.facts.code_lines as f64 / 1000.0))
            .collect();
        let low = own.iter().copied().fold(f64::MAX, f64::min);
        let high = own.iter().copied().fold(f64::MIN, f64::max);
        marks.push(line((low, at), (high, at), 1.0, QUIET));
        let mean = x.at(lines(model));
        marks.push(line((mean, at - 4.0), (mean, at + 4.0), 1.5, BLUE));
        marks.extend(own.into_iter().map(|x| Mark::Dot {
            at: (x, at),
            radius: 1.8,
            fill: WARM,
        }));
    }
    marks.push(line((right_from, TOP), (right_from, bottom), 0.8, INK));

    let below = bottom + 23.0;
    let title = "code lines, thousands";
    for (from, to) in [(34.0, middle - 10.0), (right_from, WIDTH - 12.0)] {
        marks.push(text(
            ((from + to) / 2.0, below),
            SIZE,
            Anchor::Middle,
            INK,
            title,
        ));
    }
    marks.push(Mark::Text {
        at: (9.0, (TOP + bottom) / 2.0),
        size: SIZE,
        anchor: Anchor::Middle,
        upward: true,
        fill: INK,
        text: "pass rate, %".to_owned(),
    });
    let heads = [
        (34.0, "a dot a model; fit and 95 % band of the mean"),
        (right_from, "a dot a build; stroke: their mean"),
    ];
    for (x, head) in heads {
        marks.push(text((x, TOP - 9.0), SMALL, Anchor::Start, QUIET, head));
    }
    Drawing {
        width: WIDTH,
        height: below + 8.0,
        title: format!("Code lines against pass rate of {} models", models.len()),
        marks,
    }
}

/// The lowest and the highest rate that is drawn, the band counted in, in per cent.
fn rates(architecture: &Architecture, models: &[&ModelSource]) -> (f64, f64) {
    let dots = models.iter().map(|model| model.rate);
    let band = architecture.line.iter().flat_map(|fitted| {
        let ends = models.iter().map(|model| model.code_lines);
        ends.flat_map(|x| [-1.0, 1.0].map(|sign| fitted.at(x) + sign * fitted.half_band(x)))
    });
    let (low, high) = dots
        .chain(band)
        .fold((1.0, 0.0), |(low, high): (f64, f64), rate| {
            let rate = rate.clamp(0.0, 1.0);
            (low.min(rate), high.max(rate))
        });
    (100.0 * low, 100.0 * high)
}

/// The band and the line on it, both cut at 0 and 100 %.
fn fit(architecture: &Architecture, models: &[&ModelSource], x: Scale, y: Scale) -> Vec<Mark> {
    let Some(fitted) = &architecture.line else {
        return Vec::new();
    };
    let (first, last) = models
        .iter()
        .fold((f64::MAX, f64::MIN), |(low, high), model| {
            (low.min(model.code_lines), high.max(model.code_lines))
        });
    let ticks = y.ticks();
    let (least, most) = (y.low(), *ticks.last().expect("a scale has ticks"));
    let place = |lines: f64, rate: f64| {
        (
            x.at(lines / 1000.0),
            y.at((100.0 * rate).clamp(least, most)),
        )
    };
    let at: Vec<f64> = (0..=N_PLACES)
        .map(|idx| first + (last - first) * idx as f64 / N_PLACES as f64)
        .collect();
    let above = at
        .iter()
        .map(|x| place(*x, fitted.at(*x) + fitted.half_band(*x)));
    let below = at
        .iter()
        .rev()
        .map(|x| place(*x, fitted.at(*x) - fitted.half_band(*x)));
    vec![
        Mark::Area {
            points: above.chain(below).collect(),
            fill: PALE,
        },
        Mark::Line {
            points: at.iter().map(|x| place(*x, fitted.at(*x))).collect(),
            width: 1.2,
            stroke: QUIET,
        },
    ]
}
