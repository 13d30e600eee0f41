//! A case in words, as `pipeline case show` tells it: what lies there, the scenario as a conversation, what is expected,
//! what gates it.

use maud::{Markup, html};

use crate::domain::visible::{visible, visible_line};
use crate::methods::cases::story::{LaunchStory, tree};
use crate::stages::review::Dossier;

pub fn story(dossier: &Dossier) -> Markup {
    let story = &dossier.story;
    html! {
        h1 { (visible_line(&story.title)) }
        p.facts { code { (visible_line(story.id.as_str())) } span { (story.kind) } span { "clause " (story.clause) } }
        p { (visible_line(&story.purpose)) }
        @if !story.fixture.is_empty() {
            h2 { "Laid before" }
            div.tree { @for line in tree(&story.fixture) {
                div class=(format!("d{}", line.depth.min(6))) {
                    span { (visible_line(&line.name)) } @if !line.what.is_empty() { " " code { (visible_line(&line.what)) } }
                }
            } }
        }
        @for (idx, launch) in story.launches.iter().enumerate() { (self::launch(idx + 1, launch)) }
        h2 { "Expected" }
        ol { @for expect in &story.expects { li { (visible_line(expect)) } } }
        @if !story.controls.is_empty() {
            h2 { "Gated by" }
            ul { @for control in &story.controls {
                li {
                    b { (visible_line(&control.name)) }
                    @match (&control.title, &control.class) {
                        (Some(title), Some(class)) => { " (" (class) "): " (visible_line(title)) },
                        _ => span.no-text { ": there is no such control" },
                    }
                    @if !control.differences.is_empty() {
                        ul { @for difference in &control.differences { li.dim { (visible_line(difference)) } } }
                    }
                }
            } }
        }
    }
}

fn launch(number: usize, launch: &LaunchStory) -> Markup {
    html! {
        h2 { "Launch " (number) }
        pre tabindex="0" { "$ " (visible(&launch.command)) }
        @if !launch.circumstances.is_empty() {
            ul.dim { @for circumstance in &launch.circumstances { li { (visible_line(circumstance)) } } }
        }
        @if !launch.conversation.is_empty() {
            ol.talk { @for said in &launch.conversation {
                li class=(said.who) { b { (said.who) } " " span { (visible(&said.what)) } }
            } }
        }
    }
}
