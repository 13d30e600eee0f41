//! What was expected and what was seen, for each failed unit, with an excerpt of its evidence for the first ones.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::super::timeline::{Limits, LineKind, Timeline, lines};
use super::super::composition::Report;
use super::Marks;
use crate::domain::case::CaseId;
use crate::domain::suite::control_id;
use crate::domain::verdict::{Failure, Outcome, Reason, Verdict};
use crate::domain::visible::{shortened, visible, visible_line};

/// Excerpts of evidence in a report, shared among the candidates that failed something.
const N_EXCERPTS: usize = 400;
/// Characters of an excerpt.
const EXCERPT_CHARS: usize = 6000;
/// Characters of what was expected or seen.
const FACT_CHARS: usize = 800;

pub fn failures(
    report: &Report,
    failed: &[&Verdict],
    marks: &Marks<'_>,
    evidence: &dyn Fn(&str, &CaseId) -> Option<Timeline>,
) -> Markup {
    if failed.is_empty() {
        return html! { p { "No case failed." } };
    }
    let mut by_candidate: BTreeMap<&str, Vec<(usize, &Verdict)>> = BTreeMap::new();
    for (idx, verdict) in failed.iter().enumerate() {
        let list = by_candidate.entry(&verdict.candidate).or_default();
        list.push((idx, verdict));
    }
    let share = N_EXCERPTS.div_ceil(by_candidate.len());
    let cut = by_candidate.values().any(|list| list.len() > share);
    let order = report.run.candidates.iter().enumerate();
    html! {
        @if cut {
            p.dim { "An excerpt of the evidence stands with the first " (share) " failures of each candidate; the command in each shows all of it." }
        }
        @for (candidate_idx, candidate) in order {
            @if let Some(list) = by_candidate.get(candidate.name.as_str()) {
                section {
                    h3 { (visible_line(&candidate.name)) " " span.dim { (list.len()) " failed" } }
                    @for (rank, (idx, verdict)) in list.iter().enumerate() {
                        @let looked = looked_at(verdict);
                        @let timeline = if rank < share { evidence(&verdict.candidate, &looked) } else { None };
                        (article(report, marks, *idx, candidate_idx, verdict, timeline.as_ref()))
                    }
                }
            }
        }
    }
}

/// The unit whose evidence explains a failure: that of the control, where it is the control that failed.
fn looked_at(verdict: &Verdict) -> CaseId {
    let failed = verdict.controls.iter().find(|control| !control.passed);
    match (&verdict.outcome, failed) {
        (Outcome::Failed(failure), Some(control)) if failure.reason == Reason::Control => {
            control_id(&control.name)
        }
        _ => verdict.case.clone(),
    }
}

fn article(
    report: &Report,
    marks: &Marks<'_>,
    idx: usize,
    candidate_idx: usize,
    verdict: &Verdict,
    timeline: Option<&Timeline>,
) -> Markup {
    let Outcome::Failed(failure) = &verdict.outcome else {
        return html! {};
    };
    let case = report.cases.get(&verdict.case);
    let looked = looked_at(verdict);
    let regression = marks.is_regression(&verdict.candidate, &verdict.case);
    html! {
        article id=(format!("f{idx}")) data-k=(candidate_idx) data-g=[case.map(|case| case.category)] data-r=(failure.reason) data-x=[regression.then_some("")] {
            div {
                h4 {
                    span.id { (visible_line(verdict.case.as_str())) } " "
                    span.badge.f { (failure.reason) }
                    @if regression { " " span.badge.f { "▼ regression" } }
                }
                @if let Some(case) = case {
                    p.dim {
                        (visible_line(&case.title)) " · " (case.clause) " · " (case.scenario.as_str())
                        @if let Some(ms) = duration_ms(report, &verdict.candidate, &verdict.case) { " · " (seconds(ms)) }
                    }
                }
            }
            p { (failure.reason.meaning()) }
            dl {
                @if failure.reason != Reason::Control { (facts(report, &verdict.case, failure)) }
                @if !verdict.controls.is_empty() {
                    dt { "controls" }
                    dd {
                        @for control in &verdict.controls {
                            span.badge.p[control.passed].f[!control.passed] { (visible_line(&control.name)) ": " (control.ended) } " "
                        }
                    }
                }
            }
            @if failure.reason == Reason::Control {
                @for control in verdict.controls.iter().filter(|control| !control.passed) {
                    @if let Some(failure) = marks.control_failure(&verdict.candidate, &control.name) {
                        (self::control(report, marks, &control.name, failure))
                    }
                }
            }
            p { (told(marks, &verdict.case, "What the case does, and the clause that it tests")) }
            @if let Some(timeline) = timeline {
                details {
                    summary { "Evidence" @if looked != verdict.case { " of " (visible_line(looked.as_str())) } }
                    (excerpt(timeline, report.times.is_some()))
                }
            }
            p.command.dim { code { "pipeline show " (visible_line(&report.run.id)) " " (visible_line(looked.as_str())) " --candidate " (visible_line(&verdict.candidate)) } }
        }
    }
}

/// What happened to a control whose failure made a pass a failure.
fn control(report: &Report, marks: &Marks<'_>, name: &str, failure: &Failure) -> Markup {
    let id = control_id(name);
    let mut controls = report.controls.iter();
    let title = controls.find(|control| control.name == name);
    html! {
        dl {
            dt { "control" }
            dd { span.id { (visible_line(name)) } @if let Some(control) = title { " · " (visible_line(&control.title)) } }
            dt { "ended" }
            dd { span.badge.f { (failure.reason) } " " (failure.reason.meaning()) }
            (facts(report, &id, failure))
        }
        p { (told(marks, &id, "What the control does")) }
    }
}

/// What was expected of a unit and what was seen; the assertion as a sentence where it is known.
fn facts(report: &Report, unit: &CaseId, failure: &Failure) -> Markup {
    let words = report.words.get(unit);
    let sentence = words.and_then(|words| words.sentence(&failure.expected));
    let fact = |name: &str, value: &str| {
        html! { @if !value.is_empty() { dt { (name) } dd { (shortened(&visible(value), FACT_CHARS)) } } }
    };
    html! {
        (fact("expected", sentence.unwrap_or(&failure.expected)))
        @if sentence.is_some() { (fact("in short", &failure.expected)) }
        (fact("saw", &failure.saw))
        (fact("where", &failure.place))
    }
}

/// The link to what a case or control does.
fn told(marks: &Marks<'_>, unit: &CaseId, name: &str) -> Markup {
    html! {
        @match marks.words_link(unit) {
            Some(link) => a href=(link) { (name) },
            None => span.dim {
                "What " (visible_line(unit.as_str())) " does is not told: its file is not as it was when the run was made."
            },
        }
    }
}

fn excerpt(timeline: &Timeline, times: bool) -> Markup {
    let limits = Limits {
        times,
        ..Limits::EXCERPT
    };
    let lines = lines(timeline, &limits);
    let mut left = EXCERPT_CHARS;
    let n_kept = lines
        .iter()
        .take_while(|line| {
            let n_chars = line.text.chars().count() + 1;
            let fits = n_chars <= left;
            left = left.saturating_sub(n_chars);
            fits
        })
        .count();
    html! {
        pre {
            @for line in &lines[..n_kept] {
                @match line.kind {
                    LineKind::Head => b { (line.text) },
                    LineKind::Plain => (line.text),
                    LineKind::Added => ins { (line.text) },
                    LineKind::Removed => del { (line.text) },
                }
                "\n"
            }
            @if n_kept < lines.len() { "… " (lines.len() - n_kept) " lines left out\n" }
        }
    }
}

fn duration_ms(report: &Report, candidate: &str, case: &CaseId) -> Option<u64> {
    report
        .times
        .as_ref()?
        .units_ms
        .get(candidate)?
        .get(case)
        .copied()
}

pub fn seconds(ms: u64) -> String {
    format!("{:.2} s", ms as f64 / 1000.0)
}
