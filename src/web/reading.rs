//! The reading queue: one issue at a time, what speaks for it beside, one key for a decision and the next issue.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Form, Query, State};
use axum::response::{Html, Redirect};
use maud::{Markup, html};
use serde::Deserialize;
use url::form_urlencoded;

use super::frame::{self, Frame, Tab, button, step, undo_redo};
use super::guard::Seat;
use super::lists::FilterForm;
use super::refusal::Refusal;
use super::text::{self, Marks, marked};
use super::{Site, blocking};
use crate::domain::decision::{Decision, Subject, SubjectKind, Verb};
use crate::domain::issue::IssueKey;
use crate::domain::visible::visible_line;
use crate::methods::text::words;
use crate::stages::rank::MatchedTerm;
use crate::stages::review::{
    self, Beside, Filter, Order, Progress, Reader, Saying, Sheet, State as Read,
};

/// Words of a clause that are named.
const N_WORDS: usize = 5;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// This one; the next of the queue unless said.
    issue: String,
    /// The next one after this in the queue.
    after: String,
    /// What was done just now, on what.
    done: String,
    on: String,
    state: String,
    text: String,
    clause: String,
    repository: String,
}

impl Asked {
    fn filter(&self) -> FilterForm {
        FilterForm {
            state: self.state.clone(),
            text: self.text.clone(),
            clause: self.clause.clone(),
            repository: self.repository.clone(),
        }
    }
}

pub async fn page(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Query(asked): Query<Asked>,
) -> Result<Html<String>, Refusal> {
    blocking(move || read(&site, &seat, &asked)).await
}

fn read(site: &Site, seat: &Seat, asked: &Asked) -> Result<Html<String>, Refusal> {
    let (desk, reader) = (&site.desk, &seat.reader);
    let form = asked.filter();
    let filter = Filter {
        // What waits to be read, unless something else is asked for.
        state: match form.state.as_str() {
            "" => Some(Read::Unread),
            _ => form.filter()?.state,
        },
        ..form.filter()?
    };
    let queue = desk.queue(reader, &filter)?;
    let first = queue.first().map(|idx| desk.key(*idx).clone());
    let key = match (asked.issue.as_str(), asked.after.as_str()) {
        ("", "") => first.clone(),
        ("", after) => {
            let beside = desk.beside(reader, &queue, &key(after)?);
            beside.next.or_else(|| first.clone())
        }
        (issue, _) => Some(key(issue)?),
    };
    let progress = desk.progress(reader)?;
    let can_redo = desk.last_taken_back(reader)?.is_some();
    let main = match &key {
        None => nothing(seat, &form, &progress, can_redo),
        Some(key) => {
            let sheet = desk
                .sheet(reader, key)?
                .ok_or_else(|| Refusal::missing(&format!("{key} was not collected")))?;
            let page = Page {
                seat,
                sheet: &sheet,
                beside: desk.beside(reader, &queue, key),
                is_first: first.as_ref() == Some(key),
                form: &form,
                order: progress.order,
                can_redo,
            };
            page.main()
        }
    };
    let title = key.map_or("Reading".to_owned(), |key| key.to_string());
    let frame = Frame {
        title: &title,
        tab: Tab::Read,
        done: done(asked),
    };
    frame::page(site, seat, &frame, &main)
}

fn key(text: &str) -> Result<IssueKey, Refusal> {
    text.parse()
        .map_err(|message: String| Refusal::missing(&message))
}

/// Only words of ours: what the address says is not repeated.
fn done(asked: &Asked) -> Option<String> {
    let on: IssueKey = asked.on.parse().ok()?;
    match asked.done.as_str() {
        "approve" => Some(format!("{on} is saved as relevant; z takes it back")),
        "reject" => Some(format!("{on} is saved as not relevant; z takes it back")),
        "unsure" => Some(format!(
            "{on} is saved as unsure (u is no undo); z takes it back"
        )),
        "note" => Some(format!("the note on {on} is saved")),
        "undo" => Some(format!(
            "your decision on {on} is taken back; y makes it again"
        )),
        "redo" => Some(format!("your decision on {on} is made again")),
        _ => None,
    }
}

fn nothing(seat: &Seat, form: &FilterForm, progress: &Progress, can_redo: bool) -> Markup {
    html! {
        h1 { "Nothing waits here" }
        @if form.is_empty() {
            p { "All " (progress.n_issues) " issues are read or left unsure." }
        } @else {
            p { "No issue fits the filter. " a href="/read" { "Drop the filter" } }
        }
        p { a href="/progress" { "How far reading is" } " · " a href="/issues?state=unsure" { "What is unsure" } }
        form.bar method="post" action="/read/undo" {
            input type="hidden" name="form" value=(seat.form);
            input type="hidden" name="back" value=(form.query(&[]));
            (undo_redo("/read", can_redo))
        }
    }
}

struct Page<'a> {
    seat: &'a Seat,
    sheet: &'a Sheet,
    beside: Beside,
    /// Of the queue: then what comes next is again the first, also when the order was learned anew meanwhile.
    is_first: bool,
    form: &'a FilterForm,
    order: Option<Order>,
    can_redo: bool,
}

impl Page<'_> {
    fn main(&self) -> Markup {
        let sheet = self.sheet;
        let marks = self.marks();
        html! {
            div.columns {
                article {
                    h1 dir="auto" { (marked(&visible_line(&sheet.issue.title), &marks)) }
                    (self.facts())
                    div.body dir="auto" { (text::body(&sheet.stretches, &marks)) }
                }
                aside aria-label="What is known of it" {
                    (self.decided())
                    (self.reasons())
                    (self.alike())
                    (self.legend(&marks))
                }
            }
            (self.bar())
        }
    }

    fn facts(&self) -> Markup {
        let issue = &self.sheet.issue;
        let is_address = issue.url.starts_with("https://") || issue.url.starts_with("http://");
        html! {
            p.facts {
                @if is_address {
                    a href=(issue.url) target="_blank" rel="noopener noreferrer" data-keys="o" aria-keyshortcuts="o" { (issue.key.to_string()) }
                } @else { (issue.key.to_string()) }
                @if let Some(state) = &issue.state { span { (visible_line(state)) } }
                @if let Some(at) = &issue.created_at { span { (visible_line(at.get(..10).unwrap_or(at))) } }
                @if let Some(n) = issue.n_comments { span { (n) " comments" } }
                @for label in &issue.labels { span.label { (visible_line(label)) } }
            }
        }
    }

    fn decided(&self) -> Markup {
        let standing = &self.sheet.standing;
        html! {
            @if let Some(made) = &standing.decision {
                section.decided {
                    h2 { "Decided" }
                    p { (said(made)) }
                }
            }
            @if !standing.notes.is_empty() {
                section {
                    h2 { "Notes" }
                    @for note in &standing.notes {
                        p { (visible_line(&note.why)) br; span.dim { (visible_line(&note.by)) ", " (visible_line(&note.at)) } }
                    }
                }
            }
        }
    }

    fn reasons(&self) -> Markup {
        let Some(ranked) = &self.sheet.ranked else {
            return html! {};
        };
        let relevance = &ranked.relevance;
        let matched = |clause: &str| {
            let mut all = self.sheet.matched.iter();
            all.find(|matched| matched.clause == clause)
        };
        html! {
            section {
                h2 { "Why it is here" }
                p.dim { "Place " (ranked.place) " of the ranking"
                    @match self.order {
                        Some(Order::Learned) => ", in the order learned from what was read",
                        Some(Order::Sample) => ", while the closing sample is read",
                        _ => "",
                    }
                    "."
                }
                @if !self.sheet.words.is_empty() {
                    p { "By what was read: " (self.sheet.words.join(", ")) "." }
                }
                ol.clauses {
                    @for best in &relevance.clauses {
                        li {
                            b { (best.clause.as_str()) } " " span.dim { (format!("{:.1}", best.score)) }
                            @if let Some(matched) = matched(best.clause.as_str()) {
                                p { (matched.meaning) }
                                p.words { @for term in matched.terms.iter().take(N_WORDS) {
                                    span title=(format!("adds {:.2}, in {}", term.score, in_fields(term))) { (term.word) } " "
                                } }
                            }
                        }
                    }
                }
                @if !relevance.outside.is_empty() {
                    p { "Against it: " (visible_line(&relevance.outside.join(", "))) " (score × " (format!("{:.2}", relevance.factor)) ")" }
                }
            }
        }
    }

    fn alike(&self) -> Markup {
        let alike = &self.sheet.alike;
        html! {
            @if !alike.is_empty() {
                section {
                    h2 { "Alike" }
                    ul.alike { @for other in alike {
                        li {
                            a href=(self.form.address("/read", &[("issue", &other.key.to_string())])) { (visible_line(&other.title)) }
                            span.dim { " " (other.key.to_string()) " · " (format!("{:.0} %", 100.0 * other.cosine)) " · " (state_words(other.state)) }
                        }
                    } }
                }
            }
        }
    }

    fn legend(&self, marks: &Marks) -> Markup {
        html! {
            @if !marks.speaks_for.is_empty() || !marks.against.is_empty() {
                p.legend {
                    button.plain type="button" id="marks" data-keys="h" aria-keyshortcuts="h" aria-pressed="true" { "Marks " kbd aria-hidden="true" { "h" } }
                    " " mark.for { "for" } " " mark.against { "against" }
                }
            }
        }
    }

    fn marks(&self) -> Marks {
        // The words that are named beside the text.
        let matched = self.sheet.matched.iter();
        let for_clauses = matched.flat_map(|matched| matched.terms.iter().take(N_WORDS));
        let speaks_for = for_clauses.map(|term| &term.word).chain(&self.sheet.words);
        let relevance = self.sheet.ranked.as_ref().map(|ranked| &ranked.relevance);
        let outside = relevance.iter().flat_map(|relevance| &relevance.outside);
        Marks {
            speaks_for: speaks_for.map(|word| words::term(word)).collect(),
            against: outside
                .filter_map(|word| Some(words::term(word.split_once(": ")?.1)))
                .collect(),
        }
    }

    fn bar(&self) -> Markup {
        let key = self.sheet.issue.key.to_string();
        let address = |to: &Option<IssueKey>| {
            let to = to.as_ref()?.to_string();
            Some(self.form.address("/read", &[("issue", &to)]))
        };
        html! {
            form.bar method="post" action="/read/decide" aria-label="Decision" {
                input type="hidden" name="form" value=(self.seat.form);
                input type="hidden" name="on" value=(key);
                input type="hidden" name="seen" value=(self.sheet.standing.n_lines);
                input type="hidden" name="back" value=(self.form.query(&[]));
                @if self.is_first { input type="hidden" name="first" value="yes"; }
                (button("verb", "approve", "a 1", "Relevant", "yes"))
                (button("verb", "reject", "x 2", "Not relevant", "no"))
                (button("verb", "unsure", "u 3", "Unsure", ""))
                span.why {
                    label for="why" { "Reason or note" }
                    textarea #why name="why" rows="1" data-keys="n" data-draft=(key) aria-keyshortcuts="n" placeholder="n: write, Ctrl+Enter: save as a note" {}
                }
                (button("verb", "note", "", "Save note", "plain"))
                span.steps {
                    (step(address(&self.beside.previous), "k", "Previous"))
                    (step(address(&self.beside.next), "j", "Next"))
                    @if self.beside.n > 0 { span.dim { @if self.beside.at > 0 { (self.beside.at) " of " } (self.beside.n) } }
                }
                (undo_redo("/read", self.can_redo))
            }
        }
    }
}

fn in_fields(term: &MatchedTerm) -> String {
    let fields: Vec<&str> = term.fields.keys().copied().collect();
    fields.join(", ")
}

fn said(made: &Decision) -> Markup {
    html! {
        b { (match made.decision {
            Verb::Approve => "Relevant",
            Verb::Unsure => "Unsure",
            _ => "Not relevant",
        }) }
        " by " (visible_line(&made.by))
        @if !made.why.is_empty() { ": " (visible_line(&made.why)) }
        br;
        span.dim { (visible_line(&made.at)) }
    }
}

pub fn state_words(state: Read) -> &'static str {
    match state {
        Read::Unread => "not read",
        Read::Unsure => "unsure",
        Read::Relevant => "relevant",
        Read::NotRelevant => "not relevant",
    }
}

#[derive(Debug, Deserialize)]
pub struct Decided {
    form: String,
    on: String,
    verb: Verb,
    #[serde(default)]
    why: String,
    /// Lines on the issue when the page was made.
    seen: usize,
    #[serde(default)]
    back: String,
    #[serde(default)]
    first: String,
}

pub async fn decide(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Form(decided): Form<Decided>,
) -> Result<Redirect, Refusal> {
    blocking(move || {
        seat.check(&decided.form)?;
        let key = key(&decided.on)?;
        let saying = Saying {
            subject: issue(&key),
            verb: decided.verb,
            by: seat.reader.name.clone(),
            why: decided.why.trim().to_owned(),
        };
        let seen = |made: &[Decision]| n_lines(made, &issue(&key), &seat.reader) == decided.seen;
        if review::decide_if(&site.context()?, saying, seen)?.is_none() {
            return Err(Refusal::meanwhile(&key.to_string(), &decided.why));
        }
        site.desk.decided();
        let back = FilterForm::from_query(&decided.back);
        let on = key.to_string();
        let verb = verb_word(decided.verb);
        let mut steps = vec![("done", verb), ("on", on.as_str())];
        if decided.verb == Verb::Note {
            steps.push(("issue", &on));
        } else if decided.first.is_empty() {
            steps.push(("after", &on));
        }
        Ok(Redirect::to(&back.address("/read", &steps)))
    })
    .await
}

pub fn verb_word(verb: Verb) -> &'static str {
    match verb {
        Verb::Approve => "approve",
        Verb::Reject => "reject",
        Verb::Unsure => "unsure",
        Verb::Note => "note",
        Verb::Change => "change",
        Verb::Undo => "undo",
    }
}

/// Lines on a subject that a reader sees.
pub fn n_lines(made: &[Decision], subject: &Subject, reader: &Reader) -> usize {
    made.iter()
        .filter(|one| one.on == *subject && (!reader.blind || one.by == reader.name))
        .count()
}

fn issue(key: &IssueKey) -> Subject {
    Subject {
        kind: SubjectKind::Issue,
        id: key.to_string(),
    }
}

#[derive(Debug, Deserialize)]
pub struct Undo {
    form: String,
    #[serde(default)]
    back: String,
}

/// Takes the reader's own last decision on any issue back, and goes there.
pub async fn undo(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Form(undo): Form<Undo>,
) -> Result<Redirect, Refusal> {
    blocking(move || {
        seat.check(&undo.form)?;
        let last = site.desk.last_own(&seat.reader)?;
        let last = last.ok_or_else(|| Refusal::missing("you have no decision to take back"))?;
        let saying = Saying {
            subject: last.on.clone(),
            verb: Verb::Undo,
            by: seat.reader.name.clone(),
            why: String::new(),
        };
        review::decide(&site.context()?, saying)?;
        Ok(back_at(&site, &undo, "undo", &last.on))
    })
    .await
}

/// Makes the decision again that the reader took back last, and goes there.
pub async fn redo(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Form(redo): Form<Undo>,
) -> Result<Redirect, Refusal> {
    blocking(move || {
        seat.check(&redo.form)?;
        let last = site.desk.last_taken_back(&seat.reader)?;
        let last = last.ok_or_else(|| {
            Refusal::missing("you have taken no decision back, or have decided since")
        })?;
        review::redo(&site.context()?, &last.on, &seat.reader.name)?;
        Ok(back_at(&site, &redo, "redo", &last.on))
    })
    .await
}

fn back_at(site: &Site, form: &Undo, done: &str, on: &Subject) -> Redirect {
    site.desk.decided();
    let back = FilterForm::from_query(&form.back);
    let on = on.id.as_str();
    let steps = [("done", done), ("on", on), ("issue", on)];
    Redirect::to(&back.address("/read", &steps))
}

/// A query of names and values.
pub fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs.into_iter().filter(|(_, value)| !value.is_empty()))
        .finish()
}
