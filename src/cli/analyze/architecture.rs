//! How candidates are built, and how that goes with their rates.

use super::super::output::table;
use super::numbers::{correlation, count, number, percent};
use crate::domain::visible::visible_line;
use crate::methods::analysis::{Architecture, Partial};

pub fn architecture(found: &Architecture) -> String {
    let mut models: Vec<_> = found.models.iter().collect();
    models.sort_by(|a, b| {
        b.rate
            .total_cmp(&a.rate)
            .then_with(|| a.model.cmp(&b.model))
    });
    let rows = models.into_iter().map(|model| {
        let share = model.largest_share;
        vec![
            visible_line(&model.model).into_owned(),
            model.n_builds.to_string(),
            percent(Some(model.rate)),
            format!("{:.0}", model.code_lines),
            format!("{:.1}", model.modules),
            format!("{:.1}", model.functions),
            model
                .lines_per_module
                .map_or_else(|| "n/a".to_owned(), |lines| format!("{lines:.1}")),
            share.map_or_else(|| "n/a".to_owned(), |share| format!("{:.1}", 100.0 * share)),
        ]
    });
    let header = [
        "model",
        "builds",
        "pass rate %",
        "code lines",
        "modules",
        "functions",
        "lines/module",
        "largest module %",
    ];
    let between = &found.between_models;
    let mut lines = vec![
        table(&header, rows),
        format!(
            "(means over builds; left out: {})",
            count(found.left_out, "candidate", "candidates")
        ),
        format!(
            "code lines with pass rate: {} over builds, {} over models",
            correlation(&found.lines_of_builds),
            correlation(&found.lines_of_models)
        ),
        format!(
            "modules with pass rate, code lines held fixed: {}",
            partial(&found.modules)
        ),
        format!(
            "lines a module with pass rate, the same: {}",
            partial(&found.lines_per_module)
        ),
        format!(
            "variance between models: code lines {} %, modules {} %, lines a module {} %, largest module {} %",
            percent(between.code_lines),
            percent(between.modules),
            percent(between.lines_per_module),
            percent(between.largest_share)
        ),
        format!(
            "coefficient of variation of code lines: {} over the builds of a model (mean), {} over models",
            number(found.variation_of_builds),
            number(found.variation_of_models)
        ),
    ];
    if let Some(dedicated) = &found.dedicated {
        let of: Vec<String> = dedicated
            .iter()
            .map(|(category, n)| format!("{category} {n}"))
            .collect();
        let n = count(found.n_candidates, "candidate", "candidates");
        lines.push(format!(
            "with a dedicated module, of {n}: {}",
            of.join(", ")
        ));
    }
    lines.join("\n")
}

fn partial(partial: &Partial) -> String {
    let range = partial.leave_one_out.map_or_else(
        || "n/a".to_owned(),
        |range| format!("{:.3} to {:.3}", range.low, range.high),
    );
    format!(
        "{}; without any one model {range}",
        correlation(&partial.of)
    )
}
