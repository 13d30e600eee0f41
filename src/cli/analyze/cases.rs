//! What the cases are worth: reliability, controls, the floor, single cases.

use std::collections::BTreeMap;

use super::super::output::table;
use super::numbers::{between, count, number, percent};
use crate::domain::visible::visible_line;
use crate::methods::analysis::{CoverageRow, Diagnosis, FloorCase, ItemRow, Items};
use crate::stages::analyze::Summary;

/// So many single cases are shown; `--csv-out` and `--json` have all.
const N_SHOWN: usize = 10;

pub fn reliability(summary: &Summary) -> String {
    let reliability = &summary.analysis.reliability;
    let mut text = format!(
        "KR-20  {} ({}{} × {}",
        number(reliability.kr20),
        between(reliability.interval),
        count(reliability.n_candidates, "candidate", "candidates"),
        count(reliability.n_cases, "case", "cases")
    );
    if reliability.candidates_left_out + reliability.cases_left_out > 0 {
        text += &format!(
            "; left out: {}, {}",
            count(reliability.candidates_left_out, "candidate", "candidates"),
            count(reliability.cases_left_out, "case", "cases"),
        );
    }
    let mut lines = vec![text + ")"];
    let independence = &summary.independence;
    if let Some(effective) = independence.effective_cases {
        lines.push(format!(
            "the cases count as {effective:.0} independent ones (of {}: design effect {}; correlation within a family {})",
            independence.n_cases,
            number(independence.design_effect),
            number(independence.intraclass)
        ));
    }
    if let Some(selection) = &summary.selection {
        let n_kept = selection.n_cases - selection.dropped.len();
        let mut line = format!(
            "{n_kept} of {} cases would do for the same KR-20",
            selection.n_cases
        );
        if let Some(held_out) = &selection.held_out {
            line += &format!(
                "; chosen on half of the models, {:.0} cases have {:.3} on the other half, where all have {:.3}",
                held_out.n_kept, held_out.kept, held_out.all
            );
        }
        lines.push(line);
        match selection.n_more {
            Some(0) => lines.push(format!("it is at least {}, as wanted", selection.wanted)),
            Some(n) => {
                let best = selection.more.first();
                let best = best.map_or_else(String::new, |more| {
                    format!(
                        "; ten more like those of {} give {:.3}",
                        more.group, more.kr20
                    )
                });
                lines.push(format!(
                    "{} more like the average are needed for {}{best}",
                    count(n, "case", "cases"),
                    selection.wanted
                ));
            }
            None => {}
        }
    }
    lines.join("\n")
}

pub fn coverage(rows: &[CoverageRow]) -> String {
    if rows.iter().all(|row| row.share.is_none()) {
        return String::new();
    }
    let cells = rows.iter().map(|row| {
        let gated: Vec<String> = row
            .by_controls
            .iter()
            .filter(|(n, _)| **n > 0)
            .map(|(n, cases)| format!("{cases} by {n}"))
            .collect();
        vec![
            row.category
                .map_or("all", |category| category.as_str())
                .to_owned(),
            row.n_cases.to_string(),
            percent(row.share),
            gated.join(", "),
        ]
    });
    table(&["category", "cases", "gated %", "by controls"], cells)
}

pub fn floor(floor: &[FloorCase]) -> String {
    if floor.is_empty() {
        return String::new();
    }
    let mut lines = vec![format!(
        "no candidate passes {}:",
        count(floor.len(), "case", "cases")
    )];
    for diagnosis in Diagnosis::ALL {
        let cases: Vec<&FloorCase> = floor.iter().filter(|c| c.diagnosis == diagnosis).collect();
        if cases.is_empty() {
            continue;
        }
        let meaning = match diagnosis {
            Diagnosis::NobodyCan => "a harness that was not written with the suite passes",
            Diagnosis::OnlyReference => "of the witnesses only the reference passes",
            Diagnosis::TooStrict => "witnesses were asked and none passes: suspect the case",
            Diagnosis::Unknown => "no witness was asked; see --witness",
        };
        lines.push(format!(
            "  {:<15} {:>4}  {meaning}",
            diagnosis.as_str(),
            cases.len()
        ));
        if diagnosis == Diagnosis::TooStrict {
            lines.extend(cases.iter().map(|case| format!("    {}", strict(case))));
        }
    }
    lines.join("\n")
}

fn strict(case: &FloorCase) -> String {
    let reasons: BTreeMap<_, _> = case
        .reasons
        .iter()
        .map(|(r, n)| (std::cmp::Reverse(n), r))
        .collect();
    let reasons: Vec<String> = reasons
        .into_iter()
        .map(|(n, reason)| format!("{} {}", n.0, visible_line(reason)))
        .collect();
    format!(
        "{}: {}",
        visible_line(case.case.as_str()),
        reasons.join(", ")
    )
}

/// Cases that the weak pass rather than the strong come first: they are the ones to look at.
pub fn items(items: &Items) -> String {
    let mut known: Vec<(&ItemRow, f64)> = items
        .cases
        .iter()
        .filter_map(|item| Some((item, item.discrimination?)))
        .collect();
    if known.is_empty() {
        return String::new();
    }
    known.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.case.cmp(&b.0.case)));
    let n_backward = known.iter().filter(|(_, r)| *r < 0.0).count();
    let rows = known.iter().take(N_SHOWN).map(|(item, discrimination)| {
        let curve = |pick: fn(&crate::methods::statistics::ItemCurve) -> f64| {
            item.curve
                .as_ref()
                .map_or_else(|| "n/a".to_owned(), |curve| format!("{:.2}", pick(curve)))
        };
        vec![
            visible_line(item.case.as_str()).into_owned(),
            format!("{}/{}", item.passed, item.counted),
            format!("{discrimination:.3}"),
            curve(|curve| curve.slope),
            curve(|curve| curve.difficulty),
            number(item.kr20_without),
        ]
    });
    let head = format!(
        "{} told candidates apart backwards; the least discriminating:\n",
        count(n_backward, "case", "cases")
    );
    head + &table(
        &[
            "case",
            "passed",
            "point-biserial",
            "slope",
            "difficulty",
            "KR-20 without",
        ],
        rows,
    )
}
