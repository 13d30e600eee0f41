//! How far reading is: whether to read on with the figures that say so, the yield curve, the closing sample.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Form, State};
use axum::response::{Html, Redirect};
use maud::{Markup, html};
use serde::Deserialize;

use super::frame::{self, Frame, Tab};
use super::guard::Seat;
use super::refusal::Refusal;
use super::{Site, blocking};
use crate::methods::stopping::Reading;
use crate::stages::review::{self, ReadConfig};

pub async fn page(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
) -> Result<Html<String>, Refusal> {
    blocking(move || {
        let progress = site.desk.progress(&seat.reader)?;
        let main = html! {
            h1 { "Progress" }
            @if let Some(reading) = &progress.reading {
                p.notice.good[reading.stop] { (reading.sentence()) }
                @if reading.n_read != progress.n_read { p.dim { "As of " (reading.n_read) " read; the figures follow in a moment." } }
                (figures(reading))
            }
            h2 { "Yield" }
            (curve(&progress.curve, progress.reading.as_ref()))
            h2 { "Closing sample" }
            p { "A random sample of what is unread, read before everything else, bounds what is left. A run of issues that are not relevant is a rule of experience; the sample is none." }
            form method="post" action="/sample" {
                input type="hidden" name="form" value=(seat.form);
                label { "Issues to draw " input type="number" name="n" min="1" value="150" required; }
                " " button { "Draw a sample" }
            }
        };
        let frame = Frame {
            title: "Progress",
            tab: Tab::Progress,
            done: None,
        };
        frame::page(&site, &seat, &frame, &main)
    })
    .await
}

fn figures(reading: &Reading) -> Markup {
    let share = |value: Option<f64>| value.map_or("n/a".to_owned(), |value| format!("{value:.3}"));
    html! {
        table.figures { tbody {
            tr { th scope="row" { "Read" } td.n { (reading.n_read) " of " (reading.n_issues) } }
            tr { th scope="row" { "Relevant" } td.n { (reading.n_relevant) } }
            tr { th scope="row" { "Of the last " (reading.n_last) } td.n { (reading.n_last_relevant) " relevant" @if reading.below_cost { ", less than they cost" } } }
            tr { th scope="row" { "Chance that less than " (format!("{:.0} %", 100.0 * reading.target)) " of the relevant ones are read" } td.n { (share(reading.chance_of_missing)) } }
            tr { th scope="row" { "Recall at least" } td.n { (share(reading.recall_at_least)) } }
            @if let Some(knee) = reading.knee {
                tr { th scope="row" { "Knee after " (knee.at) ": yield before ÷ after" } td.n { (format!("{:.1}", knee.ratio)) " (the rule stops from " (format!("{:.0}", knee.needed)) ")" } }
            }
            @if let Some(elusion) = reading.elusion {
                tr { th scope="row" { "Closing sample of " (elusion.n_sampled) } td.n { (elusion.n_relevant) " relevant, at most " (elusion.at_most) " are left" } }
                tr { th scope="row" { "Recall at least, by the sample" } td.n { (share(reading.recall_at_least_by_sample)) } }
            }
        } }
    }
}

/// Width and height of the curve, and the room for its scale.
const SIZE: (f64, f64) = (720.0, 260.0);
const ROOM: f64 = 44.0;

/// Relevant issues found over issues read.
fn curve(labels: &[bool], reading: Option<&Reading>) -> Markup {
    let n = labels.len();
    let n_relevant = labels.iter().filter(|label| **label).count();
    if n == 0 {
        return html! { p.dim { "Nothing is read yet." } };
    }
    let (width, height) = SIZE;
    let x = |read: usize| ROOM + (width - 2.0 * ROOM) * read as f64 / n as f64;
    let y = |found: usize| {
        height - ROOM - (height - 2.0 * ROOM) * found as f64 / n_relevant.max(1) as f64
    };
    let mut points = format!("{:.1},{:.1}", x(0), y(0));
    let mut found = 0;
    for (idx, label) in labels.iter().enumerate() {
        if *label {
            points += &format!(" {:.1},{:.1}", x(idx), y(found));
            found += 1;
            points += &format!(" {:.1},{:.1}", x(idx + 1), y(found));
        }
    }
    points += &format!(" {:.1},{:.1}", x(n), y(found));
    let knee = reading
        .and_then(|reading| reading.knee)
        .map(|knee| knee.at.min(n));
    let title = format!("{n_relevant} relevant issues in {n} that were read");
    html! {
        svg.curve viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(title) {
            line.axis x1=(x(0)) y1=(y(0)) x2=(x(n)) y2=(y(0)) {}
            line.axis x1=(x(0)) y1=(y(0)) x2=(x(0)) y2=(y(n_relevant)) {}
            @if let Some(at) = knee {
                line.knee x1=(x(at)) y1=(y(0)) x2=(x(at)) y2=(y(n_relevant)) {}
                text x=(x(at)) y=(y(n_relevant) - 8.0) text-anchor="middle" { "knee " (at) }
            }
            polyline.found points=(points) {}
            text x=(x(0)) y=(height - ROOM + 18.0) text-anchor="middle" { "0" }
            text x=(x(n)) y=(height - ROOM + 18.0) text-anchor="middle" { (n) " read" }
            text x=(x(0) - 8.0) y=(y(n_relevant) + 4.0) text-anchor="end" { (n_relevant) }
        }
    }
}

#[derive(Debug, Deserialize)]
pub struct Draw {
    form: String,
    n: usize,
}

pub async fn sample(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Form(draw): Form<Draw>,
) -> Result<Redirect, Refusal> {
    blocking(move || {
        seat.check(&draw.form)?;
        let context = site.context()?;
        let config = ReadConfig {
            n: Some(0),
            sample: Some(draw.n),
            ..ReadConfig::read(&context.project)?
        };
        review::read(&context, &config)?;
        site.desk.decided();
        Ok(Redirect::to("/read"))
    })
    .await
}
