//! Clusters: their material side by side; keep or reject, put two together, part members off, move them to another,
//! rename, choose the representative; undo and redo of all these.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::response::{Html, Redirect};
use maud::{Markup, html};
use serde::Deserialize;
use url::form_urlencoded;

use super::frame::{self, Frame, Tab, button, undo_redo};
use super::guard::Seat;
use super::reading::query;
use super::refusal::Refusal;
use super::{Site, blocking};
use crate::domain::decision::Verb;
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::Cluster;
use crate::domain::visible::{visible, visible_line};
use crate::stages::review::{self, Act, Material, Mended, Mending};
use crate::stages::{self, Context, Failure};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    id: String,
    /// How many clusters and decisions there were after what was done just now.
    clusters: Option<usize>,
    decisions: Option<usize>,
}

pub async fn list(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Query(asked): Query<Asked>,
) -> Result<Html<String>, Refusal> {
    blocking(move || {
        let mut all = review::all_clusters(&site.context()?)?;
        all.sort_by_key(|(cluster, _)| std::cmp::Reverse(cluster.members.len()));
        let main = html! {
            h1 { "Clusters" }
            @if all.is_empty() { p.dim { "None yet. " code { "pipeline cluster" } " makes them of what was read as relevant." } }
            @else {
                div.scroll tabindex="0" role="region" aria-label="Clusters" { table {
                    thead { tr { th scope="col" { "Issues" } th scope="col" { "Cluster" } th scope="col" { "Clause" } th scope="col" { "Filter" } } }
                    tbody { @for (cluster, outcome) in &all { tr {
                        td.n { (cluster.members.len()) }
                        th scope="row" { a href=(address(&cluster.id)) { (visible_line(&cluster.label)) } }
                        td { @if let Some(clause) = &cluster.clause { (clause.as_str()) } }
                        td { (outcome.as_ref().map_or("not filtered", |outcome| if outcome.kept { "kept" } else { "dropped" })) }
                    } } }
                } }
            }
        };
        framed(&site, &seat, "Clusters", &asked, &main)
    })
    .await
}

fn address(id: &str) -> String {
    format!("/cluster?{}", query([("id", id)]))
}

fn framed(
    site: &Site,
    seat: &Seat,
    title: &str,
    asked: &Asked,
    main: &Markup,
) -> Result<Html<String>, Refusal> {
    let done = match (asked.decisions, asked.clusters) {
        (Some(made), Some(n)) => {
            let lines = if made == 1 {
                "1 line is"
            } else {
                &format!("{made} lines are")
            };
            Some(format!("{lines} saved; there are {n} clusters now"))
        }
        _ => None,
    };
    let frame = Frame {
        title,
        tab: Tab::Clusters,
        done,
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
        let material = review::material(&context, &asked.id, &seat.reader)?;
        let all = review::all_clusters(&context)?;
        let others: Vec<&Cluster> = all
            .iter()
            .map(|(cluster, _)| cluster)
            .filter(|cluster| cluster.id != asked.id)
            .collect();
        let main = main(&seat, &material, &others);
        framed(&site, &seat, &material.cluster.label, &asked, &main)
    })
    .await
}

fn main(seat: &Seat, material: &Material, others: &[&Cluster]) -> Markup {
    let cluster = &material.cluster;
    let words: Vec<&str> = cluster
        .terms
        .iter()
        .take(8)
        .map(|term| term.word.as_str())
        .collect();
    let hidden = html! {
        input type="hidden" name="form" value=(seat.form);
        input type="hidden" name="id" value=(cluster.id);
        input type="hidden" name="seen" value=(material.seen);
    };
    html! {
        // A form of its own: Enter in the box of the name must press no other button.
        form #rename method="post" action="/cluster/mend" { (hidden) }
        form.mending method="post" action="/cluster/mend" {
            (hidden)
            h1 { (visible_line(&cluster.label)) }
            p.facts {
                code { (cluster.id) }
                @if let Some(clause) = &cluster.clause { span { "clause " (clause.as_str()) } }
                span { (cluster.members.len()) " issues" }
                span { "bound by " (visible_line(&words.join(", "))) }
            }
            @if let Some(outcome) = &material.outcome {
                p.dim { @if outcome.kept { "Kept by the filter" } @else { "Dropped by the filter" } ": " (visible_line(&outcome.reason)) }
            }
            @if let Some(made) = material.item.as_ref().and_then(|item| item.decided.as_ref()) {
                p { b { (made.decision.done()) } " by " (visible_line(&made.by)) ": " (visible_line(&made.why)) }
            }
            div.side-by-side { @for issue in &material.issues { (member(issue, issue.key == cluster.representative)) } }
            div.bar role="group" aria-label="Decision" {
                @if material.item.is_some() {
                    (button("act", "approve", "a 1", "Keep", "yes"))
                    (button("act", "reject", "x 2", "Reject", "no"))
                }
                (button("act", "part", "p", "Part ticked off", ""))
                label.to { "with " select name="to" aria-label="Other cluster" {
                    option value="" { "…" }
                    @for other in others { option value=(other.id) { (visible_line(&other.label)) " (" (other.members.len()) ")" } }
                } }
                (button("act", "move", "v", "Move ticked there", ""))
                (button("act", "merge", "m", "Merge", ""))
                (button("act", "represent", "e", "Ticked one represents", ""))
                label.to { "name " input type="text" form="rename" name="name" value=(cluster.label) maxlength="200" data-keys="t" aria-keyshortcuts="t" aria-label="Name of the cluster"; }
                button form="rename" name="act" value="rename" { "Rename" }
                span.why {
                    label for="why" { "Reason" }
                    textarea #why name="why" rows="1" required data-keys="n" data-draft=(cluster.id) aria-keyshortcuts="n" {}
                }
                (undo_redo("/cluster", true))
            }
        }
    }
}

fn member(issue: &Issue, is_representative: bool) -> Markup {
    let key = issue.key.to_string();
    html! {
        section.member aria-label=(key) {
            h2 {
                label { input type="checkbox" name="member" value=(key); " " (visible_line(&issue.title)) }
            }
            p.facts {
                a href=(format!("/read?{}", query([("issue", key.as_str())]))) { (key) }
                @if is_representative { b { "representative" } }
            }
            div.prose dir="auto" { (visible(issue.body.trim())) }
        }
    }
}

/// Of the form; members come as many times as there are.
#[derive(Debug, Default)]
struct Sent {
    form: String,
    id: String,
    act: String,
    to: String,
    name: String,
    why: String,
    seen: String,
    members: Vec<IssueKey>,
}

impl Sent {
    fn parse(body: &[u8]) -> Result<Self, Refusal> {
        let mut sent = Self::default();
        for (name, value) in form_urlencoded::parse(body) {
            let value = value.into_owned();
            match &*name {
                "form" => sent.form = value,
                "id" => sent.id = value,
                "act" => sent.act = value,
                "to" => sent.to = value,
                "name" => sent.name = value,
                "why" => sent.why = value,
                "seen" => sent.seen = value,
                "member" => sent.members.push(
                    value
                        .parse()
                        .map_err(|message: String| Refusal::missing(&message))?,
                ),
                _ => {}
            }
        }
        Ok(sent)
    }

    fn act(&self) -> Result<Act, Refusal> {
        let members = self.members.clone();
        Ok(match (self.act.as_str(), members.as_slice()) {
            ("approve", _) => Act::Decide(Verb::Approve),
            ("reject", _) => Act::Decide(Verb::Reject),
            ("part", _) => Act::Part(members),
            ("move", _) => Act::Move(members, self.to.clone()),
            ("merge", _) => Act::Merge(self.to.clone()),
            ("rename", _) => Act::Rename(self.name.clone()),
            ("represent", [one]) => Act::Represent(one.clone()),
            ("represent", _) => {
                return Err(Failure::user("tick the one member that represents the others").into());
            }
            _ => return Err(Refusal::missing("there is no such act")),
        })
    }
}

pub async fn mend(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    body: Bytes,
) -> Result<Redirect, Refusal> {
    blocking(move || {
        let sent = Sent::parse(&body)?;
        seat.check(&sent.form)?;
        let mending = Mending {
            cluster: sent.id.clone(),
            act: sent.act()?,
            by: seat.reader.name.clone(),
            why: sent.why.clone(),
            seen: Some(sent.seen.clone()),
        };
        let mended = review::mend(&site.context()?, mending)?;
        let mended = mended.ok_or_else(|| Refusal::meanwhile(&sent.id, &sent.why))?;
        Ok(go_to(&mended, &sent.id))
    })
    .await
}

/// Takes the reader's own last act on any cluster back, and goes there.
pub async fn undo(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    body: Bytes,
) -> Result<Redirect, Refusal> {
    step(site, seat, body, review::undo_act).await
}

/// Makes the act again that the reader took back last, and goes there.
pub async fn redo(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    body: Bytes,
) -> Result<Redirect, Refusal> {
    step(site, seat, body, review::redo_act).await
}

/// A step back or forth in the reader's own acts.
async fn step(
    site: Arc<Site>,
    seat: Arc<Seat>,
    body: Bytes,
    act: fn(&Context, &str) -> stages::Result<Mended>,
) -> Result<Redirect, Refusal> {
    blocking(move || {
        let sent = Sent::parse(&body)?;
        seat.check(&sent.form)?;
        let mended = act(&site.context()?, &seat.reader.name)?;
        Ok(go_to(&mended, &sent.id))
    })
    .await
}

/// To the cluster of this id, or to what became of it.
fn go_to(mended: &Mended, id: &str) -> Redirect {
    let (made, n) = (
        mended.n_decisions.to_string(),
        mended.n_clusters.to_string(),
    );
    let to = mended.clusters.iter().find(|one| *one == id);
    let to = to.or(mended.clusters.first()).map_or("", String::as_str);
    let steps = query([("id", to), ("decisions", &made), ("clusters", &n)]);
    let path = if to.is_empty() {
        "/clusters"
    } else {
        "/cluster"
    };
    Redirect::to(&format!("{path}?{steps}"))
}
