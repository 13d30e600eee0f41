//! Two reviewers: how far they agree, on first votes only, and what they disagree on.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use maud::{Markup, html};

use super::frame::{self, Frame, Tab};
use super::guard::Seat;
use super::reading::query;
use super::refusal::Refusal;
use super::{Site, blocking};
use crate::domain::decision::{Decision, SubjectKind};
use crate::domain::visible::visible_line;
use crate::methods::agreement::{Agreement, Conflict};
use crate::stages::review::{self, Double};

pub async fn page(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
) -> Result<Html<String>, Refusal> {
    blocking(move || {
        let context = site.context()?;
        let mut parts = Vec::new();
        for kind in [SubjectKind::Issue, SubjectKind::Case] {
            parts.push(part(&seat, &review::double(&context, kind)?));
        }
        let main = html! {
            h1 { "Agreement" }
            p.dim { "First votes of what at least two reviewers voted on. " code { "pipeline review serve --blind" } " lets each read without a sight of the others." }
            @for part in &parts { (part) }
        };
        let frame = Frame {
            title: "Agreement",
            tab: Tab::Agreement,
            done: None,
        };
        frame::page(&site, &seat, &frame, &main)
    })
    .await
}

fn part(seat: &Seat, double: &Double) -> Markup {
    // What a blind reader has not voted on is not told.
    let own = |conflict: &&Conflict| {
        !seat.reader.blind
            || conflict
                .votes
                .iter()
                .any(|vote| vote.by == seat.reader.name)
    };
    let conflicts: Vec<&Conflict> = double.conflicts.iter().filter(own).collect();
    html! {
        h2 { (heading(double.kind)) }
        p { b { (double.n_twice) } " voted on by two, " (double.n_once) " by one." }
        @for agreement in &double.agreements { (table(agreement)) }
        @if !conflicts.is_empty() {
            h3 { "Conflicts: " (conflicts.len()) }
            p.dim { "Whoever decides once more resolves it; first votes stay as they are." }
            div.scroll tabindex="0" role="region" aria-label="Conflicts" { table {
                thead { tr { th scope="col" { "Subject" } th scope="col" { "Votes" } } }
                tbody { @for conflict in conflicts { tr {
                    th scope="row" { a href=(address(conflict)) { (visible_line(&conflict.subject.id)) } }
                    td { @for vote in &conflict.votes { p { (said(vote)) } } }
                } } }
            } }
        }
    }
}

fn heading(kind: &str) -> &'static str {
    match kind {
        "issue" => "Issues",
        _ => "Cases",
    }
}

fn address(conflict: &Conflict) -> String {
    let id = conflict.subject.id.as_str();
    match conflict.subject.kind {
        SubjectKind::Issue => format!("/read?{}", query([("issue", id)])),
        _ => format!("/case?{}", query([("id", id)])),
    }
}

fn said(vote: &Decision) -> Markup {
    html! {
        b { (visible_line(&vote.by)) } " " (vote.decision.done())
        @if !vote.why.is_empty() { ": " (visible_line(&vote.why)) }
    }
}

fn table(agreement: &Agreement) -> Markup {
    let (first, second) = &agreement.reviewers;
    let names = ["yes", "no", "unsure"];
    let figure =
        |value: Option<f64>| value.map_or("not defined".to_owned(), |value| format!("{value:.2}"));
    html! {
        h3 { (visible_line(first)) " and " (visible_line(second)) }
        div.pair {
            table.figures {
                caption { "rows " (visible_line(first)) ", columns " (visible_line(second)) }
                thead { tr { td {} @for name in names { th scope="col" { (name) } } } }
                tbody { @for (name, row) in names.iter().zip(&agreement.votes) {
                    tr { th scope="row" { (name) } @for n in row { td.n { (n) } } }
                } }
            }
            table.figures { tbody {
                tr { th scope="row" { "Both" } td.n { (agreement.n_both) } }
                tr { th scope="row" { "Agreed" } td.n { (agreement.agreed.map_or("n/a".to_owned(), |share| format!("{:.0} %", 100.0 * share))) } }
                tr { th scope="row" { "Cohen's kappa" } td.n { (figure(agreement.kappa)) } }
                tr { th scope="row" { "Gwet's AC1" } td.n { (figure(agreement.ac1)) } }
                tr { th scope="row" { "Kappa, unsure taken for yes" } td.n { (figure(agreement.kappa_unsure_is_yes)) } }
            } }
        }
    }
}
