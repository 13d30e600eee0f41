//! Issues as a list, and the filter that lists and the reading queue share.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Html;
use maud::{Markup, html};
use serde::Deserialize;
use url::form_urlencoded;

use super::frame::{self, Frame, Tab};
use super::guard::Seat;
use super::reading::{query, state_words};
use super::refusal::Refusal;
use super::{Site, blocking};
use crate::domain::visible::{shortened, visible_line};
use crate::stages::review::{Filter, State as Read};

/// The filter as an address says it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct FilterForm {
    pub state: String,
    pub text: String,
    pub clause: String,
    pub repository: String,
}

const STATES: [(&str, &str, Option<Read>); 5] = [
    ("unread", "not read", Some(Read::Unread)),
    ("unsure", "unsure", Some(Read::Unsure)),
    ("relevant", "relevant", Some(Read::Relevant)),
    ("not-relevant", "not relevant", Some(Read::NotRelevant)),
    ("all", "all", None),
];

impl FilterForm {
    pub fn from_query(text: &str) -> Self {
        let mut form = Self::default();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let field = match &*name {
                "state" => &mut form.state,
                "text" => &mut form.text,
                "clause" => &mut form.clause,
                "repository" => &mut form.repository,
                _ => continue,
            };
            *field = value.into_owned();
        }
        form
    }

    pub fn is_empty(&self) -> bool {
        [&self.state, &self.text, &self.clause, &self.repository]
            .iter()
            .all(|field| field.is_empty())
    }

    /// All states when none is named.
    pub fn filter(&self) -> Result<Filter, Refusal> {
        let state = match self.state.as_str() {
            "" => None,
            named => {
                STATES
                    .iter()
                    .find(|(name, _, _)| *name == named)
                    .ok_or_else(|| Refusal::missing("there is no such state of an issue"))?
                    .2
            }
        };
        Ok(Filter {
            state,
            text: self.text.clone(),
            clause: self.clause.trim().to_owned(),
            repository: self.repository.clone(),
        })
    }

    /// As a query, with more names and values.
    pub fn query(&self, more: &[(&str, &str)]) -> String {
        let own = [
            ("state", self.state.as_str()),
            ("text", &self.text),
            ("clause", &self.clause),
            ("repository", &self.repository),
        ];
        query(own.into_iter().chain(more.iter().copied()))
    }

    pub fn address(&self, path: &str, more: &[(&str, &str)]) -> String {
        match self.query(more) {
            query if query.is_empty() => path.to_owned(),
            query => format!("{path}?{query}"),
        }
    }
}

/// Rows of a list; more are a matter for the filter.
const N_ROWS: usize = 200;

pub async fn issues(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Query(form): Query<FilterForm>,
) -> Result<Html<String>, Refusal> {
    blocking(move || {
        let queue = site.desk.queue(&seat.reader, &form.filter()?)?;
        let main = html! {
            h1 { "Issues" }
            (filter(&site, &form))
            p { b { (queue.len()) } " issues"
                @if queue.len() > N_ROWS { ", the first " (N_ROWS) " are shown" }
                @if !queue.is_empty() { " · " a href=(form.address("/read", &[])) { "Read these one by one" } }
            }
            div.scroll tabindex="0" role="region" aria-label="Issues" { table {
                thead { tr { th scope="col" { "Issue" } th scope="col" { "Title" } th scope="col" { "Best clause" } th scope="col" { "State" } } }
                tbody { @for idx in queue.iter().take(N_ROWS) {
                    (row(&site, &seat, &form, *idx)?)
                } }
            } }
        };
        let frame = Frame {
            title: "Issues",
            tab: Tab::Issues,
            done: None,
        };
        frame::page(&site, &seat, &frame, &main)
    })
    .await
}

fn row(site: &Site, seat: &Seat, form: &FilterForm, idx: usize) -> Result<Markup, Refusal> {
    let key = site.desk.key(idx).to_string();
    let state = site.desk.state(&seat.reader, idx)?;
    Ok(html! {
        tr {
            td { (key) }
            th scope="row" dir="auto" {
                a href=(form.address("/read", &[("issue", &key)])) { (shortened(&visible_line(site.desk.title(idx)), 120)) }
            }
            td { @if let Some(clause) = site.desk.clause(idx) { (clause.as_str()) } }
            td { (state_words(state)) }
        }
    })
}

fn filter(site: &Site, form: &FilterForm) -> Markup {
    let option = |value: &str, shown: &str, chosen: &str| {
        html! { option value=(value) selected[value == chosen] { (shown) } }
    };
    html! {
        form.filter method="get" action="/issues" role="search" {
            label { "Words " input type="search" name="text" value=(form.text) data-keys="/" aria-keyshortcuts="/"; }
            label { "State " select name="state" {
                (option("", "any", &form.state))
                @for (value, shown, state) in STATES { @if state.is_some() { (option(value, shown, &form.state)) } }
            } }
            label { "Clause " input name="clause" value=(form.clause) placeholder="tools.edit"; }
            label { "Repository " select name="repository" {
                (option("", "any", &form.repository))
                @for name in site.desk.repositories() { (option(name, name, &form.repository)) }
            } }
            button { "Show" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_survives_an_address_and_nothing_else_does() {
        let form = FilterForm {
            text: "a&b=\"c\" #é".into(),
            state: "unsure".into(),
            ..FilterForm::default()
        };
        let again = FilterForm::from_query(&form.query(&[("done", "approve")]));
        assert_eq!((again.text, again.state), (form.text, form.state));
        let evil = FilterForm::from_query("//evil.invalid&x=1");
        assert_eq!(evil.address("/read", &[]), "/read");
    }
}
