//! The development document: chapters of Markdown, in which a level-3 heading opens a clause.
//!
//! The strict block of a clause is parsed here; what must hold between clauses is checked in
//! [`crate::methods::document_check`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

use super::clause::{Channel, Clause, ClauseId, Scenario};
use super::place::{Finding, Place};

/// One file of the document, `NN-slug.md`.
#[derive(Debug, Clone)]
pub struct Chapter {
    pub number: u32,
    pub slug: String,
    pub title: String,
    pub file: PathBuf,
    pub markdown: String,
    pub clauses: Vec<Clause>,
}

/// All chapters in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub struct Document {
    pub chapters: Vec<Chapter>,
}

impl Document {
    pub fn clauses(&self) -> impl Iterator<Item = &Clause> {
        self.chapters.iter().flat_map(|chapter| &chapter.clauses)
    }

    pub fn clause(&self, id: &ClauseId) -> Option<&Clause> {
        self.clauses().find(|clause| clause.id == *id)
    }

    pub fn by_id(&self) -> BTreeMap<&ClauseId, &Clause> {
        self.clauses().map(|clause| (&clause.id, clause)).collect()
    }
}

impl Chapter {
    /// Parses a chapter; on failure every finding is returned, not only the first.
    pub fn parse(file: &Path, markdown: &str) -> Result<Self, Vec<Finding>> {
        let at = |offset: usize| Place::of_offset(file, markdown, offset);
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let (number, slug) = match stem.split_once('-').map(|(n, slug)| (n.parse(), slug)) {
            Some((Ok(number), slug)) => (number, slug.to_owned()),
            _ => {
                return Err(vec![Finding::new(
                    at(0),
                    "the file of a chapter is called NN-slug.md",
                )]);
            }
        };
        let blocks = blocks(markdown);
        let mut findings = Vec::new();
        let mut title = None;
        let mut clauses = Vec::new();
        let mut block_idx = 0;
        while block_idx < blocks.len() {
            let block = &blocks[block_idx];
            block_idx += 1;
            let Some(level) = block.heading else { continue };
            if level == HeadingLevel::H1 && title.is_none() {
                title = Some(block.text.clone());
            }
            if level != HeadingLevel::H3 {
                continue;
            }
            let body: Vec<&Block> = blocks[block_idx..]
                .iter()
                .take_while(|block| block.heading.is_none())
                .collect();
            block_idx += body.len();
            match clause(&at, &slug, markdown, block, &body) {
                Ok(clause) => clauses.push(clause),
                Err(mut found) => findings.append(&mut found),
            }
        }
        if title.is_none() {
            findings.push(Finding::new(
                at(0),
                "the chapter has no title (a # heading)",
            ));
        }
        if !findings.is_empty() {
            return Err(findings);
        }
        Ok(Self {
            number,
            slug,
            title: title.expect("checked above"),
            file: file.to_path_buf(),
            markdown: markdown.to_owned(),
            clauses,
        })
    }
}

/// A top-level block of Markdown: a heading with its text, or anything else.
struct Block {
    range: Range<usize>,
    heading: Option<HeadingLevel>,
    text: String,
}

fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut depth = 0usize;
    let mut heading = None;
    let mut text = String::new();
    for (event, range) in Parser::new(markdown).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    text.clear();
                    heading = match tag {
                        Tag::Heading { level, .. } => Some(level),
                        _ => None,
                    };
                }
                depth += 1;
            }
            Event::End(tag) => {
                depth -= 1;
                if depth == 0 {
                    let heading = matches!(tag, TagEnd::Heading(_))
                        .then(|| heading.take())
                        .flatten();
                    blocks.push(Block {
                        range,
                        heading,
                        text: text.trim().to_owned(),
                    });
                }
            }
            Event::Text(piece) | Event::Code(piece) => text.push_str(&piece),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            _ => {}
        }
    }
    blocks
}

const LABELS: [&str; 5] = ["Syntax", "Meaning", "Behaviour", "Channels", "Relates"];

fn clause(
    at: &impl Fn(usize) -> Place,
    slug: &str,
    markdown: &str,
    heading: &Block,
    body: &[&Block],
) -> Result<Clause, Vec<Finding>> {
    let place = at(heading.range.start);
    let fail = |message: String| vec![Finding::new(place.clone(), message)];
    let (id, kind) = heading
        .text
        .split_once(" · ")
        .ok_or_else(|| fail("a clause's heading is `id · ordinary` or `id · boundary`".into()))?;
    let id: ClauseId = id.trim().parse().map_err(fail)?;
    let kind: Scenario = kind.trim().parse().map_err(fail)?;
    if id.chapter() != slug {
        return Err(fail(format!("{id} stands in chapter {slug}")));
    }
    let source = match (body.first(), body.last()) {
        (Some(first), Some(last)) => &markdown[first.range.start..last.range.end],
        _ => "",
    };
    let fields = labelled(source);
    let mut findings = Vec::new();
    let order: Vec<&str> = fields.iter().map(|(label, _)| label.as_str()).collect();
    let n_expected = if order.contains(&"Relates") { 5 } else { 4 };
    if order != LABELS[..n_expected] {
        findings.push(Finding::new(
            place.clone(),
            format!(
                "{id} has the fields {order:?}; it needs {:?}, each once, in this order",
                &LABELS[..4]
            ),
        ));
        return Err(findings);
    }
    let field = |idx: usize| fields[idx].1.trim().to_owned();
    for (label, text) in &fields {
        if text.trim().is_empty() {
            findings.push(Finding::new(
                place.clone(),
                format!("{id}: {label} is empty"),
            ));
        }
    }
    let mut channels = std::collections::BTreeSet::new();
    for name in field(3).split(',') {
        match name.trim().parse::<Channel>() {
            Ok(channel) => drop(channels.insert(channel)),
            Err(message) => findings.push(Finding::new(place.clone(), format!("{id}: {message}"))),
        }
    }
    let mut relates = Vec::new();
    if n_expected == 5 {
        for name in field(4).split(',') {
            match name.trim().trim_matches('`').parse::<ClauseId>() {
                Ok(related) => relates.push(related),
                Err(message) => {
                    findings.push(Finding::new(place.clone(), format!("{id}: {message}")));
                }
            }
        }
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    Ok(Clause {
        syntax: field(0),
        meaning: field(1),
        behaviour: field(2),
        id,
        kind,
        channels,
        relates,
        place,
    })
}

/// Splits the body of a clause at lines that open with a bold label.
fn labelled(source: &str) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut fenced = false;
    for line in source.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let label = (!fenced)
            .then(|| line.strip_prefix("**"))
            .flatten()
            .and_then(|rest| rest.split_once("**"))
            .filter(|(label, _)| LABELS.contains(label));
        match (label, fields.last_mut()) {
            (Some((label, rest)), _) => fields.push((label.to_owned(), rest.trim().to_owned())),
            (None, Some((_, text))) => {
                text.push('\n');
                text.push_str(line);
            }
            (None, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: &str = "# Tools\n\nProse.\n\n## Reading\n\n### tools.read.range · boundary\n\
        **Syntax** `read(path)`\n**Meaning** Lines count\nfrom 1.\n**Behaviour** It is refused:\n\n- zero\n\n\
        **Channels** requests, files\n";

    fn parse(text: &str) -> Result<Chapter, Vec<Finding>> {
        Chapter::parse(Path::new("data/document/02-tools.md"), text)
    }

    #[test]
    fn a_clause_keeps_its_texts_and_its_place() {
        let chapter = parse(READ).expect("parses");
        assert_eq!(
            (
                chapter.number,
                chapter.slug.as_str(),
                chapter.title.as_str()
            ),
            (2, "tools", "Tools")
        );
        let clause = &chapter.clauses[0];
        assert_eq!(clause.id.as_str(), "tools.read.range");
        assert_eq!(clause.kind, Scenario::Boundary);
        assert_eq!(clause.meaning, "Lines count\nfrom 1.");
        assert!(clause.behaviour.ends_with("- zero"));
        assert_eq!(clause.channels.len(), 2);
        assert_eq!(clause.place.line, 7);
    }

    #[test]
    fn faults_are_named_with_their_line() {
        let check = |from: &str, to: &str, expected: &str| {
            let findings = parse(&READ.replace(from, to)).expect_err("must fail");
            assert!(findings[0].message.contains(expected), "{findings:?}");
            assert_eq!(findings[0].place.line, 7);
        };
        check("tools.read.range", "tools.read", "not a clause id");
        check(
            "tools.read.range",
            "flags.read.range",
            "stands in chapter tools",
        );
        check("· boundary", "· odd", "neither ordinary nor boundary");
        check("requests, files", "requests, screen", "is not a channel");
        check("**Meaning**", "**Meanings**", "it needs");
        check("`read(path)`", "", "Syntax is empty");
    }
}
