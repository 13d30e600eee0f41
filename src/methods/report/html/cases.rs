//! The cases and controls that failed, in words: each once, however many candidates failed it.

use maud::{Markup, html};

use super::super::super::cases::markup;
use super::super::composition::Report;
use crate::domain::visible::{visible, visible_line};

pub fn cases(report: &Report) -> Markup {
    html! {
        p.dim {
            code { "{nonce:NAME}" } " stands for a text that was drawn at random for the run, so that no candidate can know it; "
            code { "{workspace}" } ", " code { "{outside}" } ", " code { "{home}" } " and " code { "{state}" } " for folders; "
            code { "{bound:NAME}" } " for what was seen earlier in the case. The model is played by a script, which is the conversation below."
        }
        @for (idx, (id, words)) in report.words.iter().enumerate() {
            article id=(format!("c{idx}")) {
                h3 { span.id { (visible_line(id.as_str())) } }
                p.dim { (words.story.kind) }
                p { strong { (visible_line(&words.story.title)) } }
                p { (visible_line(&words.story.purpose)) }
                dl {
                    dt { "clause" } dd { (words.story.clause) }
                    @match &words.clause {
                        Some(clause) => {
                            @for (name, text) in [("syntax", &clause.syntax), ("meaning", &clause.meaning), ("behaviour", &clause.behaviour)] {
                                @if !text.is_empty() { dt { (name) } dd { (visible(text)) } }
                            }
                        },
                        None => { dt {} dd.dim { "Its words are not told: the document has others now, or the run was made by a version that did not keep which ones it was about." } },
                    }
                }
                (markup::story(&words.story, "its file is not as it was when the run was made"))
            }
        }
    }
}
