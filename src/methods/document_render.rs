//! The document as one text for the builder: a table of contents, all chapters, and an anchor for each clause.

use std::collections::BTreeSet;
use std::fmt::Write;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use pulldown_cmark::{
    CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html as cmark_html,
};

use crate::domain::clause::ClauseId;
use crate::domain::document::{Chapter, Document};

const TITLE: &str = "Development document";

/// One Markdown text. The words of the chapters are unchanged; headings get their anchors, and a chapter's heading
/// its file name, by which other chapters name it.
pub fn markdown(document: &Document) -> String {
    let mut text = format!("# {TITLE}\n\n## Contents\n\n");
    let line = |text: &mut String, depth: usize, title: &str, anchor: &str| {
        writeln!(text, "{}- [{title}](#{anchor})", "  ".repeat(depth)).expect("a string takes all");
    };
    for chapter in &document.chapters {
        line(&mut text, 0, &heading(chapter), &chapter.slug);
        for clause in &chapter.clauses {
            line(&mut text, 1, clause.id.as_str(), clause.id.as_str());
        }
    }
    for chapter in &document.chapters {
        text.push('\n');
        let mut clauses = chapter.clauses.iter().peekable();
        let mut titled = false;
        for (idx, source) in chapter.markdown.lines().enumerate() {
            if let Some(clause) = clauses.next_if(|clause| clause.place.line == idx + 1) {
                writeln!(text, "<a id=\"{}\"></a>\n", clause.id).expect("a string takes all");
            }
            if !titled && source.starts_with("# ") {
                titled = true;
                writeln!(
                    text,
                    "<a id=\"{}\"></a>\n\n# {}",
                    chapter.slug,
                    heading(chapter)
                )
                .expect("a string takes all");
            } else {
                text.push_str(source);
                text.push('\n');
            }
        }
    }
    text
}

/// One page that needs no other file. Raw HTML in the chapters is shown as text.
pub fn html(document: &Document) -> String {
    let ids: BTreeSet<&ClauseId> = document.clauses().map(|clause| &clause.id).collect();
    let page: Markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (TITLE) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                nav {
                    h1 { (TITLE) }
                    @for chapter in &document.chapters {
                        details {
                            summary { a href={ "#" (chapter.slug) } { (heading(chapter)) } }
                            ul {
                                @for clause in &chapter.clauses {
                                    li { a href={ "#" (clause.id.as_str()) } { (clause.id.as_str()) } }
                                }
                            }
                        }
                    }
                }
                main {
                    @for chapter in &document.chapters {
                        section { (PreEscaped(body(chapter, &ids))) }
                    }
                }
            }
        }
    };
    page.into_string()
}

fn heading(chapter: &Chapter) -> String {
    format!(
        "{}. {} ({:02}-{}.md)",
        chapter.number, chapter.title, chapter.number, chapter.slug
    )
}

fn body(chapter: &Chapter, ids: &BTreeSet<&ClauseId>) -> String {
    let mut events = Vec::new();
    let mut clauses = chapter.clauses.iter();
    let mut titled = false;
    let mut in_title = false;
    let mut in_heading = false;
    for event in Parser::new_ext(&chapter.markdown, Options::empty()) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                in_heading = true;
                in_title = level == HeadingLevel::H1 && !titled;
                let anchor = match level {
                    HeadingLevel::H1 if !titled => Some(chapter.slug.clone()),
                    HeadingLevel::H3 => clauses.next().map(|clause| clause.id.to_string()),
                    _ => None,
                };
                events.push(Event::Start(Tag::Heading {
                    level,
                    id: anchor.map(CowStr::from),
                    classes: Vec::new(),
                    attrs: Vec::new(),
                }));
                if in_title {
                    titled = true;
                    events.push(Event::Text(heading(chapter).into()));
                }
            }
            Event::End(TagEnd::Heading(level)) => {
                in_heading = false;
                in_title = false;
                events.push(Event::End(TagEnd::Heading(level)));
            }
            _ if in_title => {}
            Event::Code(code) if !in_heading && refers(&code, ids) => {
                let code = html! { a href={ "#" (code) } { code { (code) } } };
                events.push(Event::InlineHtml(code.into_string().into()));
            }
            // Each field of a clause begins a line.
            Event::Start(Tag::Strong) if matches!(events.last(), Some(Event::SoftBreak)) => {
                events.pop();
                events.extend([Event::HardBreak, Event::Start(Tag::Strong)]);
            }
            Event::Html(raw) | Event::InlineHtml(raw) => events.push(Event::Text(raw)),
            event => events.push(event),
        }
    }
    let mut page = String::new();
    cmark_html::push_html(&mut page, events.into_iter());
    page
}

fn refers(code: &str, ids: &BTreeSet<&ClauseId>) -> bool {
    code.parse::<ClauseId>().is_ok_and(|id| ids.contains(&id))
}

const STYLE: &str = "\
:root{color-scheme:light dark}
body{margin:0;font:16px/1.5 system-ui,sans-serif;display:grid;grid-template-columns:20rem minmax(0,1fr)}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1rem;box-sizing:border-box;border-right:1px solid #8884}
nav h1{font-size:1.1rem}
nav ul{padding-left:1rem;list-style:none;font-size:.85rem}
main{padding:1rem 2rem;max-width:50rem}
h3{margin-top:2rem;font-size:1rem;font-family:ui-monospace,monospace;border-top:1px solid #8884;padding-top:.5rem}
h3:target,h1:target{background:#fd04}
code{font-size:.9em;overflow-wrap:anywhere}
pre{overflow:auto;padding:.5rem;border:1px solid #8884}
@media(max-width:60rem){body{display:block}nav{position:static;height:auto;border:0}}
";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn document() -> Document {
        let text = "# Tools & more\n\nSee `tools.a.b`.\n\n### tools.a.b · ordinary\n**Syntax** `x`\n**Meaning** <b>x</b>\n\
            **Behaviour** as `tools.a.c`, not `tools.a.d`\n**Channels** exit\n\n### tools.a.c · ordinary\n**Syntax** x\n\
            **Meaning** x\n**Behaviour** x\n**Channels** exit\n";
        let chapter = Chapter::parse(Path::new("02-tools.md"), text).expect("parses");
        Document {
            chapters: vec![chapter],
        }
    }

    #[test]
    fn markdown_keeps_the_words_and_adds_anchors() {
        let text = markdown(&document());
        assert!(
            text.contains(
                "- [2. Tools & more (02-tools.md)](#tools)\n  - [tools.a.b](#tools.a.b)\n"
            )
        );
        assert!(
            text.contains("<a id=\"tools.a.c\"></a>\n\n### tools.a.c · ordinary\n**Syntax** x\n")
        );
        assert_eq!(text.matches("<a id=").count(), 3);
    }

    #[test]
    fn html_links_clauses_and_shows_markup_as_text() {
        let page = html(&document());
        assert!(page.contains("<h3 id=\"tools.a.b\">"));
        assert!(
            page.contains("<h1 id=\"tools\">2. Tools &amp; more (02-tools.md)</h1>"),
            "{page}"
        );
        assert!(page.contains("<a href=\"#tools.a.c\"><code>tools.a.c</code></a>"));
        assert!(page.contains("<code>tools.a.d</code>") && !page.contains("#tools.a.d"));
        assert!(
            page.contains("&lt;b&gt;x&lt;/b&gt;<br />\n<strong>Behaviour</strong>"),
            "{page}"
        );
        assert!(!page.contains("src=") && !page.contains("http"));
    }
}
