//! A run of one case, told while it goes: the answer is a page that grows, readable without a script.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Form, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::super::Site;
use super::super::frame::{self, Frame, Tab, step};
use super::super::guard::Seat;
use super::super::refusal::Refusal;
use super::address;
use crate::domain::verdict::Outcome;
use crate::domain::visible::{visible, visible_line};
use crate::methods::timeline::{Limits, LineKind, lines};
use crate::stages::review::{self, Tried};
use crate::stages::{Context, Failure, Progress};

#[derive(Debug, Deserialize)]
pub struct Run {
    form: String,
    id: String,
    candidate: String,
}

pub async fn run(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Form(run): Form<Run>,
) -> Result<Response, Refusal> {
    seat.check(&run.form)?;
    let title = format!("{} on {}", run.id, run.candidate);
    let frame = Frame {
        title: &title,
        tab: Tab::Cases,
        done: None,
    };
    const HERE: &str = "<!--here-->";
    let main = html! {
        h1 { (visible_line(&title)) }
        p { (step(Some(address(&run.id)), "k", "Back to the case")) }
        div.live role="log" { (maud::PreEscaped(HERE)) }
    };
    let page = frame::page(&site, &seat, &frame, &main)?.0;
    let (head, tail) = page.split_once(HERE).expect("the page holds it");
    let (send, receive) = unbounded_channel();
    let (head, tail) = (head.to_owned(), tail.to_owned());
    // Nobody may be listening any more; the run goes to its end all the same.
    let _ = send.send(head);
    let context = Context {
        progress: Box::new(Live(send.clone())),
        ..site.context()?
    };
    std::thread::Builder::new()
        .name("run a case".to_owned())
        .spawn(move || {
            let ended = match review::try_out(context, &run.id, Some(&run.candidate)) {
                Ok(tried) => self::tried(&tried),
                Err(failure) => failed(&failure),
            };
            let _ = send.send(ended.into_string());
            let _ = send.send(tail);
        })
        .map_err(Failure::from)?;
    let pieces = futures_util::stream::unfold(receive, |mut receive| async {
        let piece = receive.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), receive))
    });
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    Ok((kind, Body::from_stream(pieces)).into_response())
}

/// Tells progress as lines of the page.
struct Live(UnboundedSender<String>);

impl Live {
    fn line(&self, text: &str) {
        let line = html! { p { (visible(text)) } };
        let _ = self.0.send(line.into_string());
    }
}

impl Progress for Live {
    fn begin(&self, what: &str, total: Option<u64>) {
        match total {
            Some(n) => self.line(&format!("{what}: {n} to do")),
            None => self.line(what),
        }
    }

    /// Also called when nothing is done yet, so that a bar moves.
    fn advance(&self, n: u64) {
        if n > 0 {
            self.line(&format!("{n} done"));
        }
    }

    fn note(&self, text: &str) {
        self.line(text);
    }

    fn end(&self, text: &str) {
        self.line(text);
    }
}

fn tried(tried: &Tried) -> Markup {
    let unit = &tried.unit;
    let outcome = match (&unit.verdict, &unit.outcome) {
        (Some(verdict), _) => Some(&verdict.outcome),
        (None, own) => own.as_ref().map(|own| &own.outcome),
    };
    html! {
        @match outcome {
            Some(Outcome::Passed) => h2.yes-text { "Passed" },
            Some(Outcome::Failed(failure)) => {
                h2.no-text { "Failed: " (failure.reason) }
                dl.facts-list {
                    @for (name, value) in [("expected", &failure.expected), ("saw", &failure.saw), ("where", &failure.place)] {
                        @if !value.is_empty() { dt { (name) } dd { (visible(value)) } }
                    }
                }
            },
            Some(other) => h2 { "Neither: " (visible_line(&format!("{other:?}"))) },
            None => h2 { "It has not ended" },
        }
        @if let Some(timeline) = &unit.timeline {
            pre.diff tabindex="0" { @for line in lines(timeline, &Limits::SHORT) {
                @match line.kind {
                    LineKind::Head => b { (line.text) "\n" },
                    LineKind::Added => ins { (line.text) "\n" },
                    LineKind::Removed => del { (line.text) "\n" },
                    LineKind::Plain => span { (line.text) "\n" },
                }
            } }
        }
    }
}

fn failed(failure: &Failure) -> Markup {
    html! {
        p.notice.bad role="alert" { (visible(&failure.to_string())) }
        @for hint in &failure.hints { p { "Try: " code { (visible(hint)) } } }
    }
}
