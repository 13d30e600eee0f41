//! The report as one HTML file that opens from disk: no network, no remote content, and readable without script.
//!
//! All text of strangers passes [`visible`] and maud's escaping; a content security policy allows no script but ours.

mod cases;
mod failures;
mod matrix;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::super::timeline::Timeline;
use super::composition::Report;
use crate::domain::case::CaseId;
use crate::domain::verdict::{Failure, Outcome, Verdict};
use crate::domain::visible::visible_line;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The whole page. `evidence` is asked for the time line of a candidate's unit, for a limited number of failures.
pub fn html(report: &Report, evidence: &dyn Fn(&str, &CaseId) -> Option<Timeline>) -> String {
    let failed: Vec<&Verdict> = report
        .verdicts
        .iter()
        .filter(|verdict| matches!(verdict.outcome, Outcome::Failed(_)))
        .collect();
    let marks = Marks::new(report, &failed);
    let run = &report.run;
    let title = format!("Run {}", visible_line(&run.id));
    let script_digest =
        base64::engine::general_purpose::STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script_digest}'; base-uri 'none'; form-action 'none'"
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a class="skip" href="#summary" { "Skip to the summary" }
                header {
                    h1 { (title) }
                    (facts(report))
                }
                nav aria-label="Sections" { ul {
                    @for (id, name, n) in sections(report, failed.len()) {
                        li { a href=(format!("#{id}")) { (name) @if let Some(n) = n { " " span.dim { (n) } } } }
                    }
                } }
                main {
                    (tables::notices(report))
                    section #summary { h2 { "Summary" } (tables::summary(report)) }
                    @if let Some(comparison) = &report.comparison {
                        section #regressions { h2 { "Against " (visible_line(&comparison.baseline)) } (tables::comparison(comparison, &marks)) }
                    }
                    section #matrix { h2 { "Verdicts" } (matrix::filter(report)) (matrix::matrix(report, &marks)) }
                    section #failures { h2 { "Failures" } (failures::failures(report, &failed, &marks, evidence)) }
                    @if !report.words.is_empty() {
                        section #cases { h2 { "What these cases do" } (cases::cases(report)) }
                    }
                    @if !report.unsteady.is_empty() {
                        section #repetitions { h2 { "Repetitions" } (tables::repetitions(report)) }
                    }
                    @if !report.invalid.is_empty() {
                        section #invalid { h2 { "Invalid units" } (tables::invalid(report)) }
                    }
                    @if !report.controls.is_empty() {
                        section #controls { h2 { "Positive controls" } (tables::controls(report)) }
                    }
                    section #categories { h2 { "What the categories tell apart" } (tables::categories(report)) }
                    @if let Some(times) = &report.times {
                        section #durations { h2 { "Durations" } (tables::durations(times)) }
                    }
                }
                footer {
                    p { "A verdict is PASS when the case's own assertions hold and every positive control that gates it passes. "
                        "Invalid units are our side breaking: they are in no rate. Intervals are 95 %, with a seed and its variants as one cluster." }
                    p { "Made from the stored run: " code { "pipeline report " (visible_line(&run.id)) } ". Beside this file: report.md, report.json, verdicts.csv." }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn facts(report: &Report) -> Markup {
    let run = &report.run;
    let digest = |text: &str| visible_line(&text.chars().take(12).collect::<String>()).into_owned();
    let n_cases = report.cases.len();
    html! {
        dl.facts {
            div { dt { "made" } dd { (visible_line(&run.created_at)) } }
            div { dt { "cases" } dd { (n_cases) } }
            div { dt { "candidates" } dd { (run.candidates.len()) } }
            div { dt { "sandbox" } dd { (visible_line(&run.sandbox)) } }
            div { dt { "suite" } dd { code { (digest(&run.suite)) } } }
            div { dt { "seed" } dd { code { (visible_line(&run.seed)) } } }
            @if run.repeat > 1 { div { dt { "repetitions" } dd { (run.repeat) } } }
            div { dt { "pipeline" } dd { (visible_line(&run.tool_version)) } }
            @if let [only] = run.candidates.as_slice() {
                div { dt { "candidate" } dd { (visible_line(&only.name)) " " code { (digest(&only.digest)) } } }
            }
        }
    }
}

fn sections(report: &Report, n_failed: usize) -> Vec<(&'static str, &'static str, Option<usize>)> {
    let mut sections = vec![("summary", "Summary", None)];
    if let Some(comparison) = &report.comparison {
        sections.push((
            "regressions",
            "Regressions",
            Some(comparison.regressions.len()),
        ));
    }
    sections.push(("matrix", "Verdicts", Some(report.verdicts.len())));
    sections.push(("failures", "Failures", Some(n_failed)));
    if !report.words.is_empty() {
        sections.push(("cases", "Cases", Some(report.words.len())));
    }
    if !report.unsteady.is_empty() {
        sections.push(("repetitions", "Repetitions", Some(report.unsteady.len())));
    }
    if !report.invalid.is_empty() {
        sections.push(("invalid", "Invalid", Some(report.invalid.len())));
    }
    if !report.controls.is_empty() {
        sections.push(("controls", "Controls", Some(report.controls.len())));
    }
    sections.push(("categories", "Categories", None));
    if report.times.is_some() {
        sections.push(("durations", "Durations", None));
    }
    sections
}

/// Where each failed unit is told, and which of them are regressions; keys are candidate and case.
struct Marks<'a> {
    failed: BTreeMap<(&'a str, &'a CaseId), usize>,
    regressions: BTreeSet<(&'a str, &'a CaseId)>,
    /// Keys are candidate and control.
    controls: BTreeMap<(&'a str, &'a str), &'a Failure>,
    /// Where each case and control is told that is.
    told: BTreeMap<&'a CaseId, usize>,
}

impl<'a> Marks<'a> {
    fn new(report: &'a Report, failed: &[&'a Verdict]) -> Self {
        let failed = failed.iter().enumerate();
        let changes = report.comparison.iter().flat_map(|c| &c.regressions);
        Self {
            failed: failed
                .map(|(idx, verdict)| ((verdict.candidate.as_str(), &verdict.case), idx))
                .collect(),
            regressions: changes
                .map(|change| (change.candidate.as_str(), &change.case))
                .collect(),
            controls: report
                .controls
                .iter()
                .flat_map(|control| {
                    let failures = control.failures.iter();
                    failures.map(|(candidate, failure)| {
                        ((candidate.as_str(), control.name.as_str()), failure)
                    })
                })
                .collect(),
            told: report.words.keys().zip(0..).collect(),
        }
    }

    /// The link to what a case or control does.
    fn words_link(&self, case: &CaseId) -> Option<String> {
        let idx = self.told.get(case)?;
        Some(format!("#c{idx}"))
    }

    /// The link to a failed unit.
    fn link(&self, candidate: &str, case: &CaseId) -> Option<String> {
        let idx = self.failed.get(&(candidate, case))?;
        Some(format!("#f{idx}"))
    }

    fn control_failure(&self, candidate: &str, control: &str) -> Option<&Failure> {
        self.controls.get(&(candidate, control)).copied()
    }

    fn is_regression(&self, candidate: &str, case: &CaseId) -> bool {
        self.regressions.contains(&(candidate, case))
    }
}

/// The class of a cell that tells how something ended: `p`, `f`, `i` or `m`.
fn class_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "p",
        Outcome::Failed(_) => "f",
        Outcome::Invalid(_) => "i",
        Outcome::NotAsked { .. } => "m",
    }
}
