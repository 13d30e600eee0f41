//! Figure 4: cases of each category, and the share of them that a positive control gates.

use super::axis::Scale;
use super::{BLUE, INK, QUIET, SIZE, TextWidth, WIDTH};
use super::{line, rectangle, text, widest};
use crate::domain::drawing::{Anchor, Colour, Drawing, Mark};
use crate::methods::analysis::CoverageRow;

const ROW: f64 = 17.0;
const TOP: f64 = 24.0;
const GATED: Colour = Colour(0x8f, 0xa9, 0xc2);

/// Categories with the most cases first; NA where it is not known how many controls gate a case. None without a case.
pub fn categories(rows: &[CoverageRow], width: TextWidth<'_>) -> Option<Drawing> {
    let mut rows: Vec<(String, &CoverageRow)> = rows
        .iter()
        .filter_map(|row| Some((row.category?.as_str().replace('-', " "), row)))
        .collect();
    let most = rows.iter().map(|(_, row)| row.n_cases).max()?;
    rows.sort_by(|a, b| b.1.n_cases.cmp(&a.1.n_cases).then_with(|| a.0.cmp(&b.0)));
    let left = widest(rows.iter().map(|(name, _)| name), width) + 12.0;
    let half = (WIDTH - left) / 2.0;
    let bottom = TOP + ROW * rows.len() as f64;
    let (first, second) = (left, left + half + 14.0);
    let n_cases = Scale::new(0.0, most as f64, first, first + half - 28.0);
    let share = Scale::new(0.0, 100.0, second, WIDTH - 32.0);
    let mut marks = Vec::new();
    n_cases.draw_below(TOP, bottom, &mut marks);
    share.draw_below(TOP, bottom, &mut marks);
    for (idx, (name, row)) in rows.iter().enumerate() {
        let middle = TOP + ROW * (idx as f64 + 0.5);
        marks.push(text(
            (left - 5.0, middle + 2.8),
            SIZE,
            Anchor::End,
            INK,
            name,
        ));
        let end = n_cases.at(row.n_cases as f64);
        marks.extend(bar(first, end, middle, BLUE, &row.n_cases.to_string()));
        match row.share {
            Some(of) => {
                let label = format!("{:.0} %", 100.0 * of);
                marks.extend(bar(second, share.at(100.0 * of), middle, GATED, &label));
            }
            None => marks.push(text(
                (second + 4.0, middle + 2.8),
                SIZE,
                Anchor::Start,
                QUIET,
                "NA",
            )),
        }
    }
    for (at, title) in [
        (first, "(a) cases"),
        (second, "(b) gated by a positive control, %"),
    ] {
        marks.push(line((at, TOP), (at, bottom), 0.8, INK));
        marks.push(text((at, TOP - 9.0), SIZE, Anchor::Start, INK, title));
    }
    Some(Drawing {
        width: WIDTH,
        height: bottom + 18.0,
        title: "Cases by category, and the share gated by a positive control".to_owned(),
        marks,
    })
}

fn bar(from: f64, to: f64, middle: f64, fill: Colour, label: &str) -> [Mark; 2] {
    [
        rectangle(from, middle - 5.0, to, middle + 5.0, fill),
        text((to + 4.0, middle + 2.8), SIZE, Anchor::Start, INK, label),
    ]
}
