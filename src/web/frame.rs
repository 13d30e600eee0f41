//! What is around every page: title, tabs, how far reading is, the region in which is said what was done.

use axum::response::Html;
use maud::{DOCTYPE, Markup, html};

use super::Site;
use super::guard::Seat;
use super::refusal::Refusal;
use crate::domain::visible::visible_line;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    Read,
    Issues,
    Clusters,
    Cases,
    Agreement,
    Progress,
}

const TABS: [(Tab, &str, &str, &str); 6] = [
    (Tab::Read, "/read", "Reading", "r"),
    (Tab::Issues, "/issues", "Issues", "i"),
    (Tab::Clusters, "/clusters", "Clusters", "c"),
    (Tab::Cases, "/cases", "Cases", "p"),
    (Tab::Agreement, "/agreement", "Agreement", "d"),
    (Tab::Progress, "/progress", "Progress", "s"),
];

pub struct Frame<'a> {
    pub title: &'a str,
    pub tab: Tab,
    /// What was done just now.
    pub done: Option<String>,
}

pub fn page(
    site: &Site,
    seat: &Seat,
    frame: &Frame<'_>,
    main: &Markup,
) -> Result<Html<String>, Refusal> {
    let progress = site.desk.progress(&seat.reader)?;
    let body = html! {
        a.skip href="#main" { "Skip to the content" }
        header {
            nav aria-label="Pages" { ul {
                @for (tab, address, name, key) in TABS {
                    li { a href=(address) data-chord=(key) aria-current=[(tab == frame.tab).then_some("page")] { (name) } }
                }
            } }
            p.far {
                b { (progress.n_read) } " of " (progress.n_issues) " read, " b { (progress.n_relevant) } " relevant"
                @if progress.n_unsure > 0 { ", " a href="/issues?state=unsure" { (progress.n_unsure) " unsure" } }
                " · " (visible_line(&seat.reader.name))
                @if seat.reader.blind { " (blind)" }
            }
            button.plain type="button" id="show-keys" data-keys="?" aria-haspopup="dialog" { "Keys " kbd { "?" } }
        }
        p #done role="status" aria-live="polite" { @if let Some(done) = &frame.done { (done) } }
        @if let Some(trouble) = &progress.trouble {
            p.notice.bad role="alert" { (visible_line(trouble)) }
        } @else if progress.order.is_none() {
            p.notice #waits { "All issues are being read in: reasons, likeness and search come in a moment." }
        }
        main #main { (main) }
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keys of this page" }
            dl {}
            p { label { input type="checkbox" id="letters"; " Keys without Ctrl act" } }
            form method="dialog" { button { "Close" } }
        }
    };
    Ok(Html(whole(&format!("{} · review", frame.title), &body)))
}

/// Without tabs, for who is not let in.
pub fn bare(title: &str, main: &Markup) -> String {
    whole(title, &html! { main #main { (main) } })
}

fn whole(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (visible_line(title)) }
                link rel="stylesheet" href="/style.css";
                link rel="icon" href="data:,";
                script src="/keys.js" defer {}
            }
            body { (body) }
        }
    };
    page.into_string()
}

/// A button with its keys, or with none. `name` and `value` are what the form says when it is pressed.
pub fn button(name: &str, value: &str, key: &str, label: &str, class: &str) -> Markup {
    let shown = key.split(' ').next().filter(|key| !key.is_empty());
    html! {
        button class=(class) name=(name) value=(value) data-keys=[shown.map(|_| key)] aria-keyshortcuts=[shown.map(|_| key)] {
            (label) @if let Some(shown) = shown { " " kbd aria-hidden="true" { (shown) } }
        }
    }
}

/// A link that a key follows, if it leads anywhere.
pub fn step(to: Option<String>, key: &str, label: &str) -> Markup {
    html! {
        @if let Some(to) = to {
            a.button href=(to) data-keys=(key) aria-keyshortcuts=(key) { (label) " " kbd aria-hidden="true" { (key) } }
        }
    }
}

/// Buttons that take the reader's own last decision back, and make it again; `redo` when there is one to make again.
pub fn undo_redo(address: &str, redo: bool) -> Markup {
    let button = |act: &str, key: &str, label: &str| {
        html! {
            button formaction=(format!("{address}/{act}")) formnovalidate data-keys=(key) aria-keyshortcuts=(key) { (label) " " kbd aria-hidden="true" { (key) } }
        }
    };
    html! {
        (button("undo", "z", "Undo"))
        @if redo { (button("redo", "y", "Redo")) }
    }
}
