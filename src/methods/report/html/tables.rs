//! The smaller tables: summary, comparison, invalid units, controls, categories, durations.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::comparison::{Change, Comparison};
use super::super::composition::{Report, Times};
use super::Marks;
use super::failures::seconds;
use crate::domain::results::{Group, Tally};
use crate::domain::verdict::Reason;
use crate::domain::visible::{shortened, visible, visible_line};

/// What a reader must know before any number.
pub fn notices(report: &Report) -> Markup {
    let comparison = report.comparison.as_ref();
    let n_regressions = comparison.map_or(0, |comparison| comparison.regressions.len());
    let n_lost = comparison.map_or(0, |comparison| comparison.lost.len());
    html! {
        @if n_regressions > 0 {
            p.notice.bad { strong { (n_regressions) " regressions" } " against the baseline: " a href="#regressions" { "which ones" } "." }
        }
        @if n_lost > 0 {
            p.notice { strong { (n_lost) " verdicts are lost:" } " they counted in the baseline and do not count here: " a href="#regressions" { "which ones" } "." }
        }
        @if report.summary.all.flaky > 0 {
            p.notice { strong { (report.summary.all.flaky) " verdicts are flaky." } " Repetitions of the case ended differently; they are in no rate. " a href="#repetitions" { "What differed" } "." }
        }
        @if report.n_unfinished > 0 {
            p.notice { strong { "The run is not finished." } " " (report.n_unfinished) " verdicts are not there yet; they are in no rate." }
        }
        @if !report.invalid.is_empty() {
            p.notice { strong { (report.invalid.len()) " units are invalid" } " and " (report.summary.all.invalid) " verdicts with them: our side broke. They are in no rate. " a href="#invalid" { "Which ones" } "." }
        }
        @if report.summary.all.not_asked > 0 {
            p.notice { strong { (report.summary.all.not_asked) " verdicts are not asked." } " A shipping harness was asked only what its adapter can express; the rest is in no rate, and the matrix says why." }
        }
        @if report.summary.vacuous > 0 {
            p.notice { strong { (report.summary.vacuous) " passes prove nothing." } " The case's own assertions held, but a positive control failed, so they count as failures. " a href="#controls" { "Which controls" } "." }
        }
    }
}

pub fn summary(report: &Report) -> Markup {
    let groups: Vec<Group> = Group::ALL
        .into_iter()
        .filter(|group| {
            report
                .cases
                .values()
                .any(|case| Group::of(case.category) == *group)
        })
        .collect();
    let intervals: BTreeMap<&str, _> = report
        .analysis
        .candidates
        .iter()
        .map(|c| (c.candidate.as_str(), c.rates.overall.interval))
        .collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label="Verdicts by candidate and category" {
            table {
                thead { tr {
                    th scope="col" { "candidate" }
                    th scope="col" { "pass rate" }
                    th.n scope="col" { "95 %" }
                    th.n scope="col" { "passed" }
                    @for group in &groups { th.n scope="col" title=(group) { (group.heading()) } }
                    th.n scope="col" { "ordinary" }
                    th.n scope="col" { "boundary" }
                    th.n scope="col" { "invalid" }
                    @if report.summary.all.flaky > 0 { th.n scope="col" { "flaky" } }
                    @if report.summary.all.not_asked > 0 { th.n scope="col" { "not asked" } }
                } }
                tbody {
                    @for candidate in &report.summary.candidates {
                        tr {
                            th scope="row" { (visible_line(&candidate.name)) }
                            td.rate style=[bar(candidate.all)] { b { (percent(candidate.rate)) } }
                            td.n.dim {
                                @match intervals.get(candidate.name.as_str()).copied().flatten() {
                                    Some(interval) => { (format!("{:.1}–{:.1}", 100.0 * interval.low, 100.0 * interval.high)) },
                                    None => "n/a",
                                }
                            }
                            td.n { (fraction(candidate.all)) }
                            @for group in &groups {
                                @let tally = candidate.groups.get(group).copied().unwrap_or_default();
                                td.n.cell style=[bar(tally)] { (fraction(tally)) }
                            }
                            td.n { (fraction(candidate.ordinary)) }
                            td.n { (fraction(candidate.boundary)) }
                            td.n.i[candidate.all.invalid > 0] { (candidate.all.invalid) }
                            @if report.summary.all.flaky > 0 { td.n.i[candidate.all.flaky > 0] { (candidate.all.flaky) } }
                            @if report.summary.all.not_asked > 0 { td.n { (candidate.all.not_asked) } }
                        }
                    }
                }
            }
        }
        p.dim { "Cells are passed / counted." @if groups.contains(&Group::Other) { " Other: artifact checks, startup, extension discovery." } }
        @if report.summary.all.failed > 0 {
            p { "Failed by reason: "
                @for (idx, (reason, n)) in report.summary.reasons.iter().filter(|(word, _)| is_failure(word)).enumerate() {
                    @if idx > 0 { " · " } (reason) " " strong { (n) }
                }
                "."
            }
        }
        @if report.summary.without_category > 0 {
            p.notice { (report.summary.without_category) " verdicts are on cases that the plan does not hold: in the rate, but in no category." }
        }
    }
}

pub fn comparison(comparison: &Comparison, marks: &Marks<'_>) -> Markup {
    let list = |name: &str, changes: &[Change]| {
        html! {
            h3 { (name) " " span.dim { (changes.len()) } }
            @if !changes.is_empty() {
                div.scroll tabindex="0" role="region" aria-label=(name) { table {
                    thead { tr { th scope="col" { "candidate" } th scope="col" { "case" } th scope="col" { "was" } th scope="col" { "is" } th scope="col" { "note" } } }
                    tbody { @for change in changes { tr {
                        td { (visible_line(&change.candidate)) }
                        td { @match marks.link(&change.candidate, &change.case) {
                            Some(link) => a.id href=(link) { (visible_line(change.case.as_str())) },
                            None => span.id { (visible_line(change.case.as_str())) },
                        } }
                        td { (change.was) }
                        td { (change.is) }
                        td.dim { @if change.case_changed { "the case has changed between the runs" } }
                    } } }
                } }
            }
        }
    };
    html! {
        p { (comparison.n_compared) " verdicts compared; " (comparison.n_added) " only here, " (comparison.n_removed) " on cases that are only there, " (comparison.n_unknown) " that did not count there."
            @if !comparison.new_candidates.is_empty() {
                " The baseline does not have: " @for (idx, name) in comparison.new_candidates.iter().enumerate() { @if idx > 0 { ", " } (visible_line(name)) } "."
            }
        }
        @if !comparison.categories.is_empty() {
            div.scroll tabindex="0" role="region" aria-label="Changes by category" { table {
                thead { tr { th scope="col" { "category" } th.n scope="col" { "regressions" } th.n scope="col" { "fixes" } th.n scope="col" { "lost" } } }
                tbody { @for (category, changes) in &comparison.categories { tr {
                    th scope="row" { (category) }
                    td.n.f[changes.regressions > 0] { (changes.regressions) }
                    td.n.p[changes.fixes > 0] { (changes.fixes) }
                    td.n.i[changes.lost > 0] { (changes.lost) }
                } } }
            } }
        }
        (list("Regressions", &comparison.regressions))
        (list("Fixes", &comparison.fixes))
        (list("Lost", &comparison.lost))
        @if !comparison.lost.is_empty() {
            p.dim { "Lost: it counted there, and here it is invalid, flaky, not asked or not run." }
        }
    }
}

pub fn repetitions(report: &Report) -> Markup {
    let shown = |text: &Option<String>| match text {
        Some(text) => shortened(&visible(text), 300).into_owned(),
        None => "nothing".to_owned(),
    };
    html! {
        p { "Every case and control was run " (report.run.repeat) " times. These ended differently, or ended alike but showed something else after what is declared in pipeline/evaluate.toml was normalised." }
        div.scroll tabindex="0" role="region" aria-label="Repetitions that differ" { table {
            thead { tr { th scope="col" { "candidate" } th scope="col" { "case or control" } th scope="col" { "ended" } th scope="col" { "first difference of each channel" } } }
            tbody { @for unit in &report.unsteady { tr {
                td { (visible_line(&unit.candidate)) }
                td.id { (visible_line(unit.case.as_str())) }
                td.i[unit.flaky] { (unit.ended.join(", ")) @if unit.flaky { " " span.badge.i { "flaky" } } }
                td {
                    @for difference in &unit.differences {
                        dl {
                            dt { (difference.channel.as_str()) } dd { (visible_line(&difference.place)) }
                            dt { "repetition " (unit.compared.0) } dd.id { (shown(&difference.one)) }
                            dt { "repetition " (unit.compared.1) } dd.id { (shown(&difference.other)) }
                        }
                    }
                    @if unit.differences.is_empty() { span.dim { "nothing but what is declared to differ" } }
                }
            } } }
        } }
    }
}

pub fn invalid(report: &Report) -> Markup {
    html! {
        p { "What broke on our side, after all attempts. Nothing of it is counted; run these units again with " code { "pipeline evaluate --resume " (visible_line(&report.run.id)) } ", of a merged run the shards that hold them." }
        div.scroll tabindex="0" role="region" aria-label="Invalid units" { table {
            thead { tr { th scope="col" { "candidate" } th scope="col" { "case or control" } th scope="col" { "kind" } th.n scope="col" { "attempts" } th scope="col" { "what happened" } } }
            tbody { @for unit in &report.invalid { tr {
                td { (visible_line(&unit.candidate)) }
                td.id { (visible_line(unit.case.as_str())) }
                td.i { (unit.kind) }
                td.n { (unit.attempts) }
                td { (visible_line(&unit.message)) }
            } } }
        } }
    }
}

pub fn controls(report: &Report) -> Markup {
    let candidates = &report.run.candidates;
    html! {
        p { "A control must pass for the passes of the cases that it gates to mean anything. It runs once for a candidate and is in no rate. A number in brackets counts passes that it turned into failures." }
        div.scroll tabindex="0" role="region" aria-label="Positive controls" { table.tall[candidates.len() > 6] {
            thead { tr { th scope="col" { "control" } th.n scope="col" { span { "gates" } } @for candidate in candidates { th scope="col" { span { (visible_line(&candidate.name)) } } } } }
            tbody { @for control in &report.controls { tr {
                th scope="row" { span.id { (visible_line(&control.name)) } @if !control.title.is_empty() { br; small.dim { (visible_line(&control.title)) } } }
                td.n { (control.n_gated) }
                @for candidate in candidates {
                    @let ended = control.ended.get(&candidate.name).map_or("–", String::as_str);
                    @let class = match ended { "pass" => "p", "–" => "m", word if is_failure(word) => "f", _ => "i" };
                    td class=(class) { (ended) @if let Some(n) = control.unmasked.get(&candidate.name) { " (" (n) ")" } }
                }
            } } }
        } }
    }
}

pub fn categories(report: &Report) -> Markup {
    let analysis = &report.analysis;
    let points = |gap: Option<f64>| {
        gap.map_or_else(|| "n/a".to_owned(), |gap| format!("{:.1}", 100.0 * gap))
    };
    let reliability = &analysis.reliability;
    html! {
        div.scroll tabindex="0" role="region" aria-label="Categories" { table {
            thead { tr { th scope="col" { "category" } th.n scope="col" { "cases" } th.n scope="col" { "average" } th.n scope="col" { "gap, points" } th.n scope="col" { "floor" } th.n scope="col" { "ceiling" } th.n scope="col" { "discriminating" } th.n scope="col" { "undecided" } } }
            tbody { @for row in &analysis.groups { tr {
                th scope="row" { (row.group.map_or("all", Group::as_str)) }
                td.n { (row.n_cases) }
                td.n { (percent(row.average)) }
                td.n { (points(row.gap)) }
                td.n { (row.floor) }
                td.n { (row.ceiling) }
                td.n { (row.discriminating) }
                td.n { (row.undecided) }
            } } }
        } }
        p.dim { "Gap: best candidate − worst. Floor: no candidate passes; ceiling: all pass; undecided: a verdict that does not count could change it. "
            "KR-20 " @match reliability.kr20 { Some(value) => (format!("{value:.3}")), None => "n/a" }
            " over " (reliability.n_candidates) " candidates and " (reliability.n_cases) " cases (left out: " (reliability.candidates_left_out) " and " (reliability.cases_left_out) ")." }
    }
}

pub fn durations(times: &Times) -> Markup {
    let some = |ms: Option<u64>| ms.map_or_else(|| "n/a".to_owned(), seconds);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Durations by candidate" { table {
            thead { tr { th scope="col" { "candidate" } th.n scope="col" { "units" } th.n scope="col" { "in all" } th.n scope="col" { "processor" } th.n scope="col" { "median" } th.n scope="col" { "95 of 100 within" } th.n scope="col" { "longest" } } }
            tbody { @for row in &times.candidates { tr {
                th scope="row" { (visible_line(&row.candidate)) }
                td.n { (row.n_units) }
                td.n { (seconds(row.total_ms)) }
                td.n { (seconds(row.cpu_ms)) }
                td.n { (some(row.median_ms)) }
                td.n { (some(row.p95_ms)) }
                td.n { (some(row.longest_ms)) }
            } } }
        } }
        @if !times.slowest.is_empty() {
            h3 { "Slowest units" }
            div.scroll tabindex="0" role="region" aria-label="Slowest units" { table {
                thead { tr { th scope="col" { "case or control" } th scope="col" { "candidate" } th.n scope="col" { "took" } } }
                tbody { @for unit in &times.slowest { tr {
                    td.id { (visible_line(unit.case.as_str())) }
                    td { (visible_line(&unit.candidate)) }
                    td.n { (seconds(unit.duration_ms)) }
                } } }
            } }
        }
    }
}

fn is_failure(word: &str) -> bool {
    Reason::ALL.iter().any(|reason| reason.as_str() == word)
}

fn bar(tally: Tally) -> Option<String> {
    tally.rate().map(|rate| format!("--p:{:.1}%", 100.0 * rate))
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "n/a".to_owned(), |rate| format!("{:.2} %", 100.0 * rate))
}

fn fraction(tally: Tally) -> String {
    if tally.counted() == 0 {
        "n/a".to_owned()
    } else {
        format!("{}/{}", tally.passed, tally.counted())
    }
}
