//! Two candidates or models beside each other.

use super::numbers::{interval, p_value, percent};
use crate::domain::visible::visible_line;
use crate::methods::analysis::Paired;

pub fn paired(paired: &Paired) -> String {
    let (a, b) = (visible_line(&paired.a), visible_line(&paired.b));
    let mut lines = vec![
        format!(
            "{a} {} − {b} {} = {} points (95 %: {}), {} cases in {} families, {} left out",
            percent(paired.rate_a),
            percent(paired.rate_b),
            percent(paired.difference),
            interval(paired.interval),
            paired.n_cases,
            paired.n_families,
            paired.left_out
        ),
        format!(
            "  better on {} families, worse on {}; exact test over families: p = {}",
            paired.families_for_a,
            paired.families_for_b,
            p_value(paired.p_families)
        ),
    ];
    if let Some((only_a, only_b)) = paired.only_a.zip(paired.only_b) {
        lines.push(format!(
            "  passes {only_a} that the other fails, fails {only_b} that it passes; McNemar's exact test over cases: \
             p = {}",
            p_value(paired.p_cases)
        ));
    }
    lines.join("\n")
}
