//! Every verdict at a glance: case × candidate, filtered by a small script where there is one.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::super::composition::Report;
use super::{Marks, class_of};
use crate::domain::case::{CaseId, Category};
use crate::domain::verdict::{NOT_ASKED, Outcome, Reason, Verdict};
use crate::domain::visible::visible_line;

/// More candidates than this get upright heads.
const LEVEL_HEADS: usize = 6;

/// Hidden until the script is there to obey it.
pub fn filter(report: &Report) -> Markup {
    let categories: BTreeSet<Category> = report.cases.values().map(|case| case.category).collect();
    let reasons = Reason::ALL.into_iter().filter(|reason| {
        let reasons = &report.summary.reasons;
        reasons.contains_key(reason.as_str())
    });
    let several = report.run.candidates.len() > 1;
    html! {
        form #filter hidden role="search" aria-label="Filter of verdicts and failures" {
            label { "Name, title or clause (/)" input type="search" name="text" autocomplete="off"; }
            label { "Category" select name="category" {
                option value="" { "all" }
                @for category in categories { option value=(category) { (category) } }
            } }
            @if several {
                label { "Candidate" select name="candidate" {
                    option value="" { "all" }
                    @for (idx, candidate) in report.run.candidates.iter().enumerate() {
                        option value=(idx) { (visible_line(&candidate.name)) }
                    }
                } }
            }
            label { "Outcome" select name="outcome" {
                option value="" { "all" }
                option value="*" { "not passed" }
                @if several { option value="differ" { "candidates differ" } }
                @if report.comparison.is_some() { option value="regression" { "regressions" } }
                @for reason in reasons { option value=(reason) { (reason) } }
                @if report.summary.all.invalid > 0 { option value="invalid" { "invalid" } }
                @if report.summary.all.flaky > 0 { option value="flaky" { "flaky" } }
                @if report.summary.all.not_asked > 0 { option value=(NOT_ASKED) { "not asked" } }
            } }
            button type="reset" { "Clear" }
            output aria-live="polite" {}
        }
    }
}

pub fn matrix(report: &Report, marks: &Marks<'_>) -> Markup {
    let candidates = &report.run.candidates;
    let by_unit: BTreeMap<(&str, &CaseId), &Verdict> = report
        .verdicts
        .iter()
        .map(|verdict| ((verdict.candidate.as_str(), &verdict.case), verdict))
        .collect();
    let cell = |candidate: &str, case: &CaseId| {
        let Some(verdict) = by_unit.get(&(candidate, case)) else {
            return html! { td.m { "–" } };
        };
        let reason = verdict.outcome.reason();
        let class = class_of(&verdict.outcome);
        match marks.link(candidate, case) {
            Some(link) if marks.is_regression(candidate, case) => html! {
                td.f.x { a href=(link) { (reason) } " ▼" }
            },
            Some(link) => html! { td.f { a href=(link) { (reason) } } },
            None if verdict.is_flaky() => html! {
                td.i { a href="#repetitions" { (reason) } }
            },
            None if matches!(verdict.outcome, Outcome::Invalid(_)) => html! {
                td.i { a href="#invalid" { (reason) } }
            },
            None => match &verdict.outcome {
                Outcome::NotAsked { why } => html! { td.m title=(visible_line(why)) { (reason) } },
                _ => html! { td class=(class) { (reason) } },
            },
        }
    };
    let tall = candidates.len() > LEVEL_HEADS;
    html! {
        div.scroll tabindex="0" role="region" aria-label="Verdicts of all cases and candidates" {
            table.tall[tall] {
                thead { tr {
                    th scope="col" { "case" }
                    @for candidate in candidates { th scope="col" { span { (visible_line(&candidate.name)) } } }
                } }
                @for category in Category::ALL {
                    @let cases: Vec<_> = report.cases.iter().filter(|(_, case)| case.category == category).collect();
                    @if !cases.is_empty() {
                        tbody data-g=(category) {
                            tr.group { th scope="rowgroup" colspan=(candidates.len() + 1) { (category) " " span.dim { (cases.len()) } } }
                            @for (id, case) in cases {
                                tr {
                                    th scope="row" {
                                        @match marks.words_link(id) {
                                            Some(link) => a.id href=(link) { (visible_line(id.as_str())) },
                                            None => span.id { (visible_line(id.as_str())) },
                                        }
                                        small { (visible_line(&case.title)) " · " (case.clause) }
                                    }
                                    @for candidate in candidates { (cell(&candidate.name, id)) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if report.comparison.is_some() { p.dim { "▼ regression against the baseline" } }
    }
}
