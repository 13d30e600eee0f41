//! What was expected and what was seen, for each failed unit, with an excerpt of its evidence for the first ones.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::super::timeline::{Limits, LineKind, Timeline, lines};
use super::super::composition::Report;
use super::Marks;
use crate::domain::case::CaseId;
use crate::domain::suite::control_id;
use crate::domain::verdict::{Outcome, Reason, Verdict};
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
    let fact = |name: &str, value: &str| {
        html! { @if !value.is_empty() { dt { (name) } dd { (shortened(&visible(value), FACT_CHARS)) } } }
    };
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
            dl {
                @if failure.reason != Reason::Control {
                    (fact("expected", &failure.expected))
                    (fact("saw", &failure.saw))
                    (fact("where", &failure.place))
                }
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
                p { "The case's own assertions held, but a control failed, so the pass proves nothing:" }
                @for control in verdict.controls.iter().filter(|control| !control.passed) {
                    @if let Some(failure) = marks.control_failure(&verdict.candidate, &control.name) {
                        dl {
                            dt { "control" } dd.id { (visible_line(&control.name)) }
                            (fact("expected", &failure.expected))
                            (fact("saw", &failure.saw))
                            (fact("where", &failure.place))
                        }
                    }
                }
            }
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
