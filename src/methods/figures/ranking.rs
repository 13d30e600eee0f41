//! Figure 1: pass rates of the models, the best first, with the spread of their builds.

use super::axis::Scale;
use super::{BLUE, INK, PALE, QUIET, SIZE, SMALL, TextWidth, WARM, WIDTH};
use super::{line, name, rectangle, text, widest};
use crate::domain::drawing::{Anchor, Drawing, Mark};
use crate::methods::analysis::{Analysis, ModelRates};

const ROW: f64 = 15.0;
const TOP: f64 = 8.0;
/// For the ticks and the title of the axis.
const BELOW: f64 = 42.0;

/// A bar is a model's mean, a dot a build, the whisker the interval of 95 %. Models without a rate are not drawn; none
/// when no model has one.
pub fn ranking(analysis: &Analysis, width: TextWidth<'_>) -> Option<Drawing> {
    let mut models: Vec<(&ModelRates, f64)> = analysis
        .models
        .iter()
        .filter_map(|model| Some((model, model.rates.overall.mean?)))
        .collect();
    if models.is_empty() {
        return None;
    }
    models.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.model.cmp(&b.0.model)));
    let names: Vec<String> = models
        .iter()
        .map(|(model, _)| name(&model.model, width))
        .collect();
    let left = widest(names.iter(), width) + 10.0;
    let right = WIDTH - width("100.00 ± 10.00", SIZE) - 10.0;
    let bottom = TOP + ROW * models.len() as f64;
    let highest = models.iter().map(|(model, mean)| {
        let high = model
            .rates
            .overall
            .interval
            .map_or(*mean, |interval| interval.high);
        100.0 * high
    });
    let x = Scale::new(0.0, highest.fold(0.0, f64::max), left, right);
    let mut marks = Vec::new();
    x.draw_below(TOP, bottom, &mut marks);
    for (idx, ((model, mean), shown)) in models.iter().zip(&names).enumerate() {
        let middle = TOP + ROW * (idx as f64 + 0.5);
        let overall = &model.rates.overall;
        let end = x.at(100.0 * mean);
        marks.push(text(
            (left - 5.0, middle + 2.8),
            SIZE,
            Anchor::End,
            INK,
            shown,
        ));
        marks.push(rectangle(left, middle - 4.5, end, middle + 4.5, PALE));
        marks.push(line((end, middle - 4.5), (end, middle + 4.5), 1.5, BLUE));
        if let Some(interval) = overall.interval {
            let (low, high) = (x.at(100.0 * interval.low), x.at(100.0 * interval.high));
            marks.push(line((low, middle), (high, middle), 0.6, QUIET));
            for end in [low, high] {
                marks.push(line((end, middle - 2.0), (end, middle + 2.0), 0.6, QUIET));
            }
        }
        let builds = analysis
            .candidates
            .iter()
            .filter(|c| c.model == model.model);
        for rate in builds.filter_map(|build| build.rates.overall.rate) {
            marks.push(Mark::Dot {
                at: (x.at(100.0 * rate), middle),
                radius: 1.6,
                fill: WARM,
            });
        }
        let spread = overall.sd.filter(|_| overall.n_builds > 1);
        let spread = spread.map_or_else(String::new, |sd| format!(" ± {:.2}", 100.0 * sd));
        let label = format!("{:.2}{spread}", 100.0 * mean);
        marks.push(text(
            (WIDTH - 4.0, middle + 2.8),
            SIZE,
            Anchor::End,
            INK,
            &label,
        ));
    }
    marks.push(line((left, TOP), (left, bottom), 0.8, INK));
    let centre = (left + right) / 2.0;
    marks.push(text(
        (centre, bottom + 23.0),
        SIZE,
        Anchor::Middle,
        INK,
        "pass rate, %",
    ));
    let key = "bar: mean over builds · dot: a build · whisker: 95 % over families and builds · ±: sd over builds";
    marks.push(text(
        (WIDTH / 2.0, bottom + 36.0),
        SMALL,
        Anchor::Middle,
        QUIET,
        key,
    ));
    Some(Drawing {
        width: WIDTH,
        height: bottom + BELOW,
        title: format!("Pass rate of {} models", models.len()),
        marks,
    })
}
