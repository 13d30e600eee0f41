//! A case in words as HTML, for the reviewers' page and for reports: a list of terms, so that it stands below any heading.
//!
//! The pages bring the styles for the classes `told`, `tree` (with `d0` to `d6`) and `talk`.

use maud::{Markup, html};

use super::story::{ControlStory, LaunchStory, Story, tree};
use crate::domain::visible::{visible, visible_line};

/// What lies there, the scenario as a conversation, what is expected, and what gates it. `untold` stands for what a
/// control shows where nobody knows it.
pub fn story(story: &Story, untold: &str) -> Markup {
    html! {
        dl.told {
            @if !story.fixture.is_empty() {
                dt { "Laid before" }
                dd.tree { @for line in tree(&story.fixture) {
                    div class=(format!("d{}", line.depth.min(6))) {
                        span { (visible_line(&line.name)) } @if !line.what.is_empty() { " " code { (visible_line(&line.what)) } }
                    }
                } }
            }
            @for (idx, launch) in story.launches.iter().enumerate() {
                dt { "Launch " (idx + 1) }
                dd { (self::launch(launch)) }
            }
            dt { "Expected" }
            dd { ol { @for expect in &story.expects {
                li { (visible_line(&expect.sentence)) br; code.dim { (visible_line(&expect.short)) } }
            } } }
            @if !story.controls.is_empty() {
                dt { "Gated by" }
                dd { ul { @for control in &story.controls { li { (self::control(control, untold)) } } } }
            }
        }
    }
}

fn launch(launch: &LaunchStory) -> Markup {
    html! {
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

fn control(control: &ControlStory, untold: &str) -> Markup {
    html! {
        b { (visible_line(&control.name)) }
        @match (&control.title, &control.class) {
            (Some(title), Some(class)) => { " (" (class) "): " (visible_line(title)) },
            _ => { ": " (untold) },
        }
        @if !control.differences.is_empty() {
            ul { @for difference in &control.differences { li.dim { (visible_line(difference)) } } }
        }
    }
}
