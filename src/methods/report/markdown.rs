//! The report as Markdown: the summary, regressions, failures and invalid units, for a pull request or a mail.

use std::fmt::Write;

use super::comparison::Change;
use super::composition::Report;
use super::words::CaseWords;
use crate::domain::results::{Group, Tally};
use crate::domain::suite::control_id;
use crate::domain::verdict::{Failure, Outcome, Reason, Verdict};
use crate::domain::visible::{shortened, visible_line};

/// Failures that are told one by one.
const N_FAILURES: usize = 200;

/// Text of strangers stands in code spans or is escaped.
pub fn markdown(report: &Report) -> String {
    let mut page = Page(String::new());
    let run = &report.run;
    page.line(&format!("# Run {}", escaped(&run.id)));
    page.line(&format!(
        "\n{} · {} cases · {} candidates · sandbox {} · suite {}",
        escaped(&run.created_at),
        report.cases.len(),
        run.candidates.len(),
        escaped(&run.sandbox),
        code(&run.suite.chars().take(12).collect::<String>()),
    ));
    summary(&mut page, report);
    comparison(&mut page, report);
    failures(&mut page, report);
    repetitions(&mut page, report);
    if !report.invalid.is_empty() {
        page.line("\n## Invalid units\n\nOur side broke; they are in no rate.\n");
        for unit in &report.invalid {
            page.line(&format!(
                "- {} {}: {}, {} attempts: {}",
                escaped(&unit.candidate),
                code(unit.case.as_str()),
                unit.kind,
                unit.attempts,
                escaped(&shortened(&unit.message, 300)),
            ));
        }
    }
    page.0
}

struct Page(String);

impl Page {
    fn line(&mut self, text: &str) {
        writeln!(self.0, "{text}").expect("a String takes everything");
    }

    fn row<'a>(&mut self, cells: impl IntoIterator<Item = &'a str>) {
        let cells: Vec<&str> = cells.into_iter().collect();
        self.line(&format!("| {} |", cells.join(" | ")));
    }
}

fn summary(page: &mut Page, report: &Report) {
    let groups: Vec<Group> = Group::ALL
        .into_iter()
        .filter(|group| {
            let mut cases = report.cases.values();
            cases.any(|case| Group::of(case.category) == *group)
        })
        .collect();
    page.line("\n## Summary\n");
    let heads: Vec<&str> = ["candidate", "pass rate", "passed"]
        .into_iter()
        .chain(groups.iter().map(|group| group.heading()))
        .chain(["invalid", "flaky", "not asked"])
        .collect();
    page.row(heads.iter().copied());
    page.row(
        heads
            .iter()
            .enumerate()
            .map(|(idx, _)| if idx == 0 { "---" } else { "---:" }),
    );
    for candidate in &report.summary.candidates {
        let mut cells = vec![
            escaped(&candidate.name),
            candidate
                .rate
                .map_or_else(|| "n/a".to_owned(), |rate| format!("{:.2} %", 100.0 * rate)),
            fraction(candidate.all),
        ];
        cells.extend(groups.iter().map(|group| {
            let tally = candidate.groups.get(group).copied();
            fraction(tally.unwrap_or_default())
        }));
        cells.push(candidate.all.invalid.to_string());
        cells.push(candidate.all.flaky.to_string());
        cells.push(candidate.all.not_asked.to_string());
        page.row(cells.iter().map(String::as_str));
    }
    let failed = report.summary.reasons.iter().filter(|(word, _)| {
        let mut reasons = Reason::ALL.iter();
        reasons.any(|reason| reason.as_str() == **word)
    });
    let failed: Vec<String> = failed.map(|(word, n)| format!("{word} {n}")).collect();
    if !failed.is_empty() {
        page.line(&format!("\nFailed by reason: {}.", failed.join(" · ")));
    }
    if report.summary.vacuous > 0 {
        page.line(&format!(
            "\n{} passes prove nothing, since a positive control failed; they count as failures.",
            report.summary.vacuous
        ));
    }
    if report.n_unfinished > 0 {
        page.line(&format!(
            "\n**The run is not finished:** {} verdicts are not there yet.",
            report.n_unfinished
        ));
    }
}

fn comparison(page: &mut Page, report: &Report) {
    let Some(comparison) = &report.comparison else {
        return;
    };
    page.line(&format!("\n## Against {}\n", escaped(&comparison.baseline)));
    page.line(&format!(
        "{} verdicts compared; {} only here, {} on cases that are only there, {} that did not count there.",
        comparison.n_compared, comparison.n_added, comparison.n_removed, comparison.n_unknown
    ));
    if !comparison.categories.is_empty() {
        page.line("");
        page.row(["category", "regressions", "fixes", "lost"]);
        page.row(["---", "---:", "---:", "---:"]);
        for (category, changes) in &comparison.categories {
            let numbers = [changes.regressions, changes.fixes, changes.lost];
            let cells: Vec<String> = numbers.iter().map(usize::to_string).collect();
            page.row(
                [category.as_str()]
                    .into_iter()
                    .chain(cells.iter().map(String::as_str)),
            );
        }
    }
    let mut list = |name: &str, changes: &[Change]| {
        page.line(&format!("\n### {name}: {}\n", changes.len()));
        for change in changes {
            let note = if change.case_changed {
                " (the case has changed between the runs)"
            } else {
                ""
            };
            page.line(&format!(
                "- {} {}: {} → {}{note}",
                escaped(&change.candidate),
                code(change.case.as_str()),
                change.was,
                change.is
            ));
        }
    };
    list("Regressions", &comparison.regressions);
    list("Fixes", &comparison.fixes);
    list("Lost", &comparison.lost);
}

fn repetitions(page: &mut Page, report: &Report) {
    if report.unsteady.is_empty() {
        return;
    }
    page.line(&format!(
        "\n## Repetitions\n\nOf {} repetitions these ended differently (flaky), or showed something else.\n",
        report.run.repeat
    ));
    for unit in report.unsteady.iter().take(N_FAILURES) {
        let flaky = if unit.flaky { "**flaky** " } else { "" };
        page.line(&format!(
            "- {flaky}{} {}: {}",
            escaped(&unit.candidate),
            code(unit.case.as_str()),
            unit.ended.join(", ")
        ));
        for difference in &unit.differences {
            let shown = |text: &Option<String>| match text {
                Some(text) => code(&shortened(text, 300)),
                None => "nothing".to_owned(),
            };
            page.line(&format!(
                "  - {} {}: {} / {}",
                difference.channel.as_str(),
                code(&difference.place),
                shown(&difference.one),
                shown(&difference.other)
            ));
        }
    }
}

fn failures(page: &mut Page, report: &Report) {
    // Verdicts stand by candidate, in the order of the run.
    let failed: Vec<_> = report
        .verdicts
        .iter()
        .filter_map(|verdict| match &verdict.outcome {
            Outcome::Failed(failure) => Some((verdict, failure)),
            _ => None,
        })
        .collect();
    let by_candidate: Vec<_> = failed
        .chunk_by(|(a, _), (b, _)| a.candidate == b.candidate)
        .collect();
    if by_candidate.is_empty() {
        return;
    }
    page.line("\n## Failures");
    let share = N_FAILURES.div_ceil(by_candidate.len());
    for list in by_candidate {
        let candidate = &list[0].0.candidate;
        page.line(&format!("\n### {} ({})\n", escaped(candidate), list.len()));
        for (verdict, failure) in list.iter().take(share) {
            self::failure(page, report, verdict, failure);
        }
        if list.len() > share {
            page.line(&format!(
                "- … and {} more: see report.html or verdicts.csv",
                list.len() - share
            ));
        }
    }
}

fn failure(page: &mut Page, report: &Report, verdict: &Verdict, failure: &Failure) {
    let case = code(verdict.case.as_str());
    page.line(&format!("- {case} **{}**", failure.reason));
    page.line(&format!("  - {}", failure.reason.meaning()));
    let words = report.words.get(&verdict.case);
    if let Some(words) = words {
        page.line(&format!("  - case: {}", escaped(&words.story.title)));
        page.line(&format!("  - why: {}", escaped(&words.story.purpose)));
    }
    if failure.reason != Reason::Control {
        facts(page, words, failure);
        return;
    }
    // What the verdict itself says of a control is that it failed.
    for control in &report.controls {
        if let Some(failure) = control.failures.get(&verdict.candidate)
            && verdict
                .controls
                .iter()
                .any(|seen| seen.name == control.name)
        {
            let (name, title) = (code(&control.name), escaped(&control.title));
            page.line(&format!(
                "  - control {name} **{}**: {title}",
                failure.reason
            ));
            facts(page, report.words.get(&control_id(&control.name)), failure);
        }
    }
}

/// What was expected and seen; the assertion as a sentence where it is known.
fn facts(page: &mut Page, words: Option<&CaseWords>, failure: &Failure) {
    let sentence = words.and_then(|words| words.sentence(&failure.expected));
    for (name, value) in [
        ("expected", sentence.unwrap_or(&failure.expected)),
        ("saw", &failure.saw),
        ("where", &failure.place),
    ] {
        if !value.is_empty() {
            page.line(&format!("  - {name} {}", code(&shortened(value, 300))));
        }
    }
}

fn fraction(tally: Tally) -> String {
    if tally.counted() == 0 {
        "n/a".to_owned()
    } else {
        format!("{}/{}", tally.passed, tally.counted())
    }
}

/// A code span, whatever backticks the text has.
pub(super) fn code(text: &str) -> String {
    let text = visible_line(text);
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') || text.is_empty() {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in visible_line(text).chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '&' | '~' | '@'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_strangers_stays_text() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a``b"), "```a``b```");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("x\n\x1b"), "`x↵␛`");
        assert_eq!(escaped("<b>|*x*"), "\\<b\\>\\|\\*x\\*");
    }
}
