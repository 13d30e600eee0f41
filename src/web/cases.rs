//! Approval of cases: one case told for reading, with its clause, its origin, what it changes of its seed, its proof and
//! a run of it here and now; approve, reject, or send back with what to change.

mod live;

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Form, Query, State};
use axum::response::{Html, Redirect};
use maud::{Markup, html};
use serde::Deserialize;

use super::frame::{self, Frame, Tab, button, step, undo_redo};
use super::guard::Seat;
use super::reading::{n_lines, query, verb_word};
use super::refusal::Refusal;
use super::{Site, blocking};
use crate::domain::decision::{Decision, Subject, SubjectKind, Verb};
use crate::domain::visible::{visible, visible_line};
use crate::methods::cases::markup;
use crate::methods::cases::story::Story;
use crate::stages::review::{self, Changed, Dossier, Item, Proof, Saying};

pub use live::run;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    id: String,
    /// What was done just now, on what.
    done: String,
    on: String,
}

pub async fn list(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Query(asked): Query<Asked>,
) -> Result<Html<String>, Refusal> {
    blocking(move || {
        let context = site.context()?;
        let items = review::cases(&context, &seat.reader)?;
        let (waiting, decided): (Vec<&Item>, Vec<&Item>) = items.iter().partition(|item| item.waits());
        let others = review::undecided_cases(&context)?;
        let main = html! {
            h1 { "Cases" }
            h2 { "Waiting for a decision: " (waiting.len()) }
            @if waiting.is_empty() { p.dim { "None. " code { "pipeline expand --seed CASE" } " makes variants." } }
            @if let Some(first) = waiting.first() { p { a.button href=(address(&first.subject.id)) data-keys="j" aria-keyshortcuts="j" { "Read them one by one " kbd aria-hidden="true" { "j" } } } }
            (rows("Cases that wait", waiting.iter().map(|item| (item.subject.id.as_str(), item.title.as_str(), state(item)))))
            @if !decided.is_empty() {
                h2 { "Decided: " (decided.len()) }
                (rows("Decided cases", decided.iter().map(|item| (item.subject.id.as_str(), item.title.as_str(), state(item)))))
            }
            h2 { "In the suite: " (others.len()) }
            (rows("Cases of the suite", others.iter().map(|(id, title)| (id.as_str(), title.as_str(), String::new()))))
        };
        framed(&site, &seat, "Cases", &asked, &main)
    })
    .await
}

fn rows<'a>(name: &str, rows: impl Iterator<Item = (&'a str, &'a str, String)>) -> Markup {
    let rows: Vec<_> = rows.collect();
    html! {
        @if !rows.is_empty() {
            div.scroll tabindex="0" role="region" aria-label=(name) { table {
                thead { tr { th scope="col" { "Case" } th scope="col" { "Title" } th scope="col" { "State" } } }
                tbody { @for (id, title, state) in rows {
                    tr {
                        th scope="row" { a href=(address(id)) { (visible_line(id)) } }
                        td { (visible_line(title)) }
                        td { (state) }
                    }
                } }
            } }
        }
    }
}

fn state(item: &Item) -> String {
    match &item.decided {
        None => item.why.clone(),
        Some(made) => {
            let changed = if item.changed { ", changed since" } else { "" };
            format!(
                "{} by {}{changed}",
                made.decision.done(),
                visible_line(&made.by)
            )
        }
    }
}

fn address(id: &str) -> String {
    format!("/case?{}", query([("id", id)]))
}

fn framed(
    site: &Site,
    seat: &Seat,
    title: &str,
    asked: &Asked,
    main: &Markup,
) -> Result<Html<String>, Refusal> {
    let done: Option<Verb> = serde_json::from_value(asked.done.as_str().into()).ok();
    let on = visible_line(&asked.on);
    let frame = Frame {
        title,
        tab: Tab::Cases,
        done: match asked.done.as_str() {
            "redo" => Some(format!("your decision on {on} is made again")),
            _ => done.map(|verb| format!("{on} is {}", verb.done())),
        },
    };
    frame::page(site, seat, &frame, main)
}

pub async fn page(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Query(asked): Query<Asked>,
) -> Result<Html<String>, Refusal> {
    blocking(move || {
        let context = site.context()?;
        let dossier = review::dossier(&context, &asked.id, &seat.reader)?;
        let cases = review::cases(&context, &seat.reader)?;
        let ids: Vec<&str> = cases
            .iter()
            .filter(|item| item.waits())
            .map(|item| item.subject.id.as_str())
            .collect();
        let main = main(&seat, &dossier, &ids);
        framed(&site, &seat, &asked.id, &asked, &main)
    })
    .await
}

fn main(seat: &Seat, dossier: &Dossier, waiting: &[&str]) -> Markup {
    html! {
        div.columns {
            article {
                (told(&dossier.story))
                @if let Some((seed, lines)) = &dossier.seed { (diff(seed, lines)) }
                details { summary { "the file, " (visible_line(&dossier.file)) } pre tabindex="0" { (visible(&dossier.text)) } }
            }
            aside aria-label="What is known of it" {
                (decided(dossier))
                (clause(dossier))
                (proof(&dossier.proof))
                (run_form(seat, dossier))
            }
        }
        (bar(seat, dossier, waiting))
    }
}

fn told(story: &Story) -> Markup {
    html! {
        h1 { (visible_line(&story.title)) }
        p.facts { code { (visible_line(story.id.as_str())) } span { (story.kind) } span { "clause " (story.clause) } }
        p { (visible_line(&story.purpose)) }
        (markup::story(story, "there is no such control"))
    }
}

fn decided(dossier: &Dossier) -> Markup {
    let item = &dossier.item;
    html! {
        @if let Some(made) = &item.decided {
            section.decided {
                h2 { "Decided" }
                p {
                    b { (made.decision.done()) } " by " (visible_line(&made.by)) ": " (visible_line(&made.why)) br;
                    span.dim { (visible_line(&made.at)) }
                }
                @if item.changed { p.notice { "The case has changed since: this no longer counts." } }
            }
        }
        @if let Some(why) = &dossier.unfinished {
            p.notice { "It cannot join the suite yet: " (visible_line(why)) }
        }
        @if !dossier.notes.is_empty() {
            section {
                h2 { "Notes" }
                @for note in &dossier.notes {
                    p { (visible_line(&note.why)) br; span.dim { (visible_line(&note.by)) ", " (visible_line(&note.at)) } }
                }
            }
        }
    }
}

fn clause(dossier: &Dossier) -> Markup {
    html! {
        section {
            h2 { "Clause " (dossier.story.clause) }
            @match &dossier.clause {
                None => p.notice.bad { "The document has no such clause." },
                Some(clause) => dl.facts-list {
                    dt { "Syntax" } dd { (clause.syntax) }
                    dt { "Meaning" } dd { (clause.meaning) }
                    dt { "Behaviour" } dd { (clause.behaviour) }
                },
            }
        }
        @if let Some(origin) = &dossier.origin {
            section {
                h2 { "Origin" }
                dl.facts-list {
                    dt { "Method" } dd { (format!("{:?}", origin.method).to_lowercase()) }
                    @if let Some(phenomenon) = &origin.phenomenon { dt { "Phenomenon" } dd { (visible_line(phenomenon)) } }
                    @for source in &origin.sources { dt { "Source" } dd { (visible_line(source)) } }
                    @if let Some(seed) = &origin.seed { dt { "Seed" } dd { a href=(address(seed)) { (visible_line(seed)) } } }
                    @if let Some(variable) = origin.variable { dt { "Variable" } dd { (variable.as_str()) } }
                }
            }
        }
    }
}

fn proof(proof: &Proof) -> Markup {
    html! {
        section {
            h2 { "Proof" }
            @match proof {
                Proof::None => p.dim { "It is in no certificate yet." },
                Proof::Old => p.notice { "It has changed since it was certified." },
                Proof::Current { reference, failed_by, n_mutants } => {
                    @match reference {
                        None => p { span.yes-text { "Passes" } " on the reference." },
                        Some(reason) => p { span.no-text { "Fails" } " on the reference: " (visible_line(reason)) },
                    }
                    p { "Failed by " b { (failed_by.len()) } " of " (n_mutants) " mutants." }
                    @if !failed_by.is_empty() {
                        details open[failed_by.len() <= 6] { summary { "by which, and why" } dl.facts-list {
                            @for (name, reason) in failed_by { dt { (visible_line(reason)) } dd { (visible_line(name)) } }
                        } }
                    }
                }
            }
        }
    }
}

fn run_form(seat: &Seat, dossier: &Dossier) -> Markup {
    let killers: &[(String, String)] = match &dossier.proof {
        Proof::Current { failed_by, .. } => failed_by,
        _ => &[],
    };
    html! {
        section {
            h2 { "Run it now" }
            form method="post" action="/case/run" {
                input type="hidden" name="form" value=(seat.form);
                input type="hidden" name="id" value=(dossier.story.id.as_str());
                label { "on " select name="candidate" aria-label="Candidate" {
                    option value="reference" { "reference" }
                    @for (name, _) in killers { option value=(name) { (name) } }
                } } " "
                (button("run", "yes", "r", "Run", ""))
            }
        }
    }
}

fn diff(seed: &str, lines: &[(Changed, String)]) -> Markup {
    html! {
        h2 { "What it changes of its seed " a href=(address(seed)) { (visible_line(seed)) } }
        pre.diff tabindex="0" {
            @for (changed, line) in lines {
                @match changed {
                    Changed::Same => span { "  " (visible(line)) "\n" },
                    Changed::Added => ins { "+ " (visible(line)) "\n" },
                    Changed::Removed => del { "- " (visible(line)) "\n" },
                }
            }
        }
    }
}

fn bar(seat: &Seat, dossier: &Dossier, waiting: &[&str]) -> Markup {
    let id = dossier.story.id.as_str();
    let at = waiting.iter().position(|one| *one == id);
    let after = waiting.iter().find(|one| **one > id);
    let before = waiting.iter().rev().find(|one| **one < id);
    let to = |case: Option<&&str>| case.map(|id| address(id));
    html! {
        form.bar method="post" action="/case/decide" aria-label="Decision" {
            input type="hidden" name="form" value=(seat.form);
            input type="hidden" name="on" value=(id);
            input type="hidden" name="seen" value=(dossier.n_lines);
            input type="hidden" name="next" value=(after.copied().unwrap_or_default());
            @if dossier.moves {
                (button("verb", "approve", "a 1", "Approve", "yes"))
                (button("verb", "reject", "x 2", "Reject", "no"))
            }
            (button("verb", "change", "c", "Request change", ""))
            (button("verb", "unsure", "u 3", "Unsure", ""))
            span.why {
                label for="why" { "Reason" }
                textarea #why name="why" rows="1" required data-keys="n" data-draft=(id) aria-keyshortcuts="n" placeholder="every decision on a case has a reason" {}
            }
            (button("verb", "note", "", "Save note", "plain"))
            span.steps {
                (step(to(before), "k", "Previous"))
                (step(to(after), "j", "Next"))
                span.dim { @if let Some(at) = at { (at + 1) " of " } (waiting.len()) }
            }
            (undo_redo("/case", dossier.can_redo))
        }
    }
}

#[derive(Debug, Deserialize)]
pub struct Decided {
    form: String,
    on: String,
    /// None when a decision is taken back or made again.
    verb: Option<Verb>,
    #[serde(default)]
    why: String,
    /// Lines on the case when the page was made.
    seen: usize,
    /// The case to go to.
    #[serde(default)]
    next: String,
}

pub async fn decide(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Form(decided): Form<Decided>,
) -> Result<Redirect, Refusal> {
    blocking(move || {
        let verb = decided.verb;
        let verb = verb.ok_or_else(|| Refusal::missing("there is no such decision"))?;
        write(&site, &seat, &decided, verb)?;
        let to = match verb {
            Verb::Note => &decided.on,
            _ => &decided.next,
        };
        Ok(go_to(to, verb_word(verb), &decided.on))
    })
    .await
}

/// Takes the reader's own last decision on the case back.
pub async fn undo(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Form(decided): Form<Decided>,
) -> Result<Redirect, Refusal> {
    blocking(move || {
        write(&site, &seat, &decided, Verb::Undo)?;
        Ok(go_to(&decided.on, verb_word(Verb::Undo), &decided.on))
    })
    .await
}

/// Makes the decision on the case again that the reader took back last.
pub async fn redo(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Form(decided): Form<Decided>,
) -> Result<Redirect, Refusal> {
    blocking(move || {
        seat.check(&decided.form)?;
        review::redo(&site.context()?, &case(&decided.on), &seat.reader.name)?;
        Ok(go_to(&decided.on, "redo", &decided.on))
    })
    .await
}

fn write(site: &Site, seat: &Seat, decided: &Decided, verb: Verb) -> Result<(), Refusal> {
    seat.check(&decided.form)?;
    let subject = case(&decided.on);
    let saying = Saying {
        subject: subject.clone(),
        verb,
        by: seat.reader.name.clone(),
        why: decided.why.trim().to_owned(),
    };
    let seen = |made: &[Decision]| n_lines(made, &subject, &seat.reader) == decided.seen;
    match review::decide_if(&site.context()?, saying, seen)? {
        Some(_) => Ok(()),
        None => Err(Refusal::meanwhile(&decided.on, &decided.why)),
    }
}

fn case(id: &str) -> Subject {
    Subject {
        kind: SubjectKind::Case,
        id: id.to_owned(),
    }
}

fn go_to(id: &str, done: &str, on: &str) -> Redirect {
    let steps = query([("id", id), ("done", done), ("on", on)]);
    let path = if id.is_empty() { "/cases" } else { "/case" };
    Redirect::to(&format!("{path}?{steps}"))
}
