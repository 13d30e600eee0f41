//! The body of an issue without what the reporter did not write: lines of the repository's form and HTML comments. The
//! rest is split into prose, fenced code, logs, stack traces and versions.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::line_kind::LineKind;

/// What is left of a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    pub prose: String,
    /// Fenced blocks: settings, commands, what was printed.
    pub code: String,
    pub log: String,
    pub trace: String,
    pub versions: String,
}

/// Lines that recur across the issues of a repository.
#[derive(Debug, Default)]
pub struct Templates {
    lines: HashMap<String, HashSet<String>>,
}

/// From how many issues on, and from which share of a repository's issues on, a line counts as one of its form.
/// Forms change over the years, so that a part of one can be rare; what many people quote, an error, must stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shape {
    /// A heading, a check box, a label.
    Form,
    /// All that stands beneath a heading: a choice of a list.
    Answer,
    Other,
}

impl Shape {
    fn recurs(self, n: usize, n_issues: usize) -> bool {
        let share = n as f64 / n_issues as f64;
        match self {
            Self::Form => n >= 3 && share >= 0.002,
            Self::Answer => n >= 3 && share >= 0.005,
            Self::Other => (n >= 3 && share >= 0.2) || (n >= 50 && share >= 0.02),
        }
    }
}

impl Templates {
    /// Learns from pairs of repository and body.
    pub fn learn<'a>(bodies: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut n_bodies: HashMap<&str, usize> = HashMap::new();
        let mut n_lines: HashMap<&str, HashMap<(String, Shape), usize>> = HashMap::new();
        for (repository, body) in bodies {
            *n_bodies.entry(repository).or_default() += 1;
            let counts = n_lines.entry(repository).or_default();
            for line in shaped(body) {
                *counts.entry(line).or_default() += 1;
            }
        }
        let lines = n_lines
            .into_iter()
            .map(|(repository, counts)| {
                let n_bodies = n_bodies[repository];
                let kept = counts
                    .into_iter()
                    .filter(|((_, shape), n)| shape.recurs(*n, n_bodies))
                    .map(|((line, _), _)| line)
                    .collect();
                (repository.to_owned(), kept)
            })
            .collect();
        Self { lines }
    }

    /// The lines of each repository, in order: what is stored of them.
    pub fn to_lines(&self) -> BTreeMap<String, Vec<String>> {
        self.lines
            .iter()
            .map(|(repository, lines)| {
                let mut lines: Vec<String> = lines.iter().cloned().collect();
                lines.sort_unstable();
                (repository.clone(), lines)
            })
            .collect()
    }

    pub fn from_lines(lines: &BTreeMap<String, Vec<String>>) -> Self {
        Self {
            lines: lines
                .iter()
                .map(|(repository, lines)| (repository.clone(), lines.iter().cloned().collect()))
                .collect(),
        }
    }

    pub fn parts(&self, repository: &str, body: &str) -> Parts {
        let template = self.lines.get(repository);
        let body = without_comments(body);
        let mut parts = Parts::default();
        for block in lines(&body).chunk_by(|a, b| a.1 == b.1) {
            let kinds: Vec<LineKind> = block.iter().map(|(line, _)| LineKind::of(line)).collect();
            let n_log = kinds.iter().filter(|kind| **kind == LineKind::Log);
            // What a log prints between its lines is of the log.
            let is_log = block[0].1 && 2 * n_log.count() > kinds.len();
            for ((line, fenced), kind) in block.iter().zip(kinds) {
                let of_form = normal(line)
                    .is_none_or(|line| template.is_some_and(|lines| lines.contains(&line)));
                if of_form || is_check_box(line) || is_empty_answer(line) {
                    continue;
                }
                let part = match kind {
                    LineKind::Trace => &mut parts.trace,
                    LineKind::Log => &mut parts.log,
                    LineKind::Other if is_log => &mut parts.log,
                    LineKind::Version if !fenced => &mut parts.versions,
                    _ if *fenced => &mut parts.code,
                    _ => &mut parts.prose,
                };
                part.push_str(line);
                part.push('\n');
            }
        }
        parts
    }
}

/// What a stretch of a body is, for a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stretch {
    Prose,
    /// A fenced block: logs, settings, commands.
    Code,
    /// What the reporter did not write: the repository's form, HTML comments, empty answers.
    Form,
}

impl Templates {
    /// The whole body in stretches, nothing left out but the signs of fences; blank lines go with what is before them.
    pub fn stretches(&self, repository: &str, body: &str) -> Vec<(Stretch, String)> {
        let template = self.lines.get(repository);
        let mut found: Vec<(Stretch, String)> = Vec::new();
        let mut fence: Option<char> = None;
        let mut in_comment = false;
        for line in body.lines() {
            let trimmed = line.trim();
            if let Some(sign) = fence_sign(trimmed).filter(|_| !in_comment) {
                match fence {
                    None => {
                        fence = Some(sign);
                        found.push((Stretch::Code, String::new()));
                        continue;
                    }
                    Some(open) if open == sign => {
                        fence = None;
                        found.push((Stretch::Prose, String::new()));
                        continue;
                    }
                    Some(_) => {}
                }
            }
            let opens = fence.is_none() && trimmed.starts_with("<!--");
            let stretch = if fence.is_some() {
                Stretch::Code
            } else if in_comment || opens {
                in_comment = !trimmed.contains("-->");
                Stretch::Form
            } else {
                let known = |line: &str| template.is_some_and(|lines| lines.contains(line));
                match normal(trimmed) {
                    None => found.last().map_or(Stretch::Prose, |last| last.0),
                    Some(line) if known(&line) => Stretch::Form,
                    _ if is_check_box(trimmed) || is_empty_answer(trimmed) => Stretch::Form,
                    _ => Stretch::Prose,
                }
            };
            match found.last_mut() {
                Some((last, text)) if *last == stretch => {
                    text.push_str(line);
                    text.push('\n');
                }
                _ => found.push((stretch, format!("{line}\n"))),
            }
        }
        found.retain(|(_, text)| !text.trim().is_empty());
        found
    }
}

/// The lines of a body without those that open and close fences, and whether each stands in a fence.
///
/// Some sources join all lines of a body: headings, check boxes and fences inside a line begin a new one.
fn lines(body: &str) -> Vec<(&str, bool)> {
    let mut found = Vec::new();
    let mut fence: Option<char> = None;
    for line in body.lines() {
        let line = line.trim();
        if fence.is_none() && line.matches("```").count() > 1 {
            for (idx, piece) in line.split("```").enumerate() {
                let fenced = idx % 2 == 1;
                match fenced {
                    true => found.push((piece.trim(), true)),
                    false => push_unjoined(&mut found, piece),
                }
                fence = fenced.then_some('`');
            }
            continue;
        }
        if let Some(sign) = fence_sign(line) {
            match fence {
                None => fence = Some(sign),
                Some(open) if open == sign => fence = None,
                Some(_) => {}
            }
            continue;
        }
        match fence {
            Some(_) => found.push((line, true)),
            None => push_unjoined(&mut found, line),
        }
    }
    found
}

/// Prose, split where a heading or a check box begins.
fn push_unjoined<'a>(found: &mut Vec<(&'a str, bool)>, line: &'a str) {
    let next = |text: &str| {
        [" ### ", " - [x] ", " - [X] ", " - [ ] "]
            .iter()
            .filter_map(|sign| text.find(sign))
            .min()
    };
    let mut rest = line;
    while let Some(at) = next(rest) {
        found.push((rest[..at].trim(), false));
        rest = &rest[at + 1..];
    }
    found.push((rest.trim(), false));
}

/// The distinct lines of a body in the form in which they are compared, each with its shape.
fn shaped(body: &str) -> HashSet<(String, Shape)> {
    let lines: Vec<(&str, bool)> = lines(body)
        .into_iter()
        .filter(|(line, _)| !line.is_empty())
        .collect();
    let is_heading = |idx: usize| {
        lines
            .get(idx)
            .is_some_and(|(line, _)| line.starts_with('#'))
    };
    let shape = |idx: usize| {
        let (line, fenced) = lines[idx];
        let alone =
            idx > 0 && is_heading(idx - 1) && (idx + 1 == lines.len() || is_heading(idx + 1));
        match (is_form(line), alone) {
            _ if fenced => Shape::Other,
            (true, _) => Shape::Form,
            (false, true) => Shape::Answer,
            (false, false) => Shape::Other,
        }
    };
    (0..lines.len())
        .filter_map(|idx| Some((normal(lines[idx].0)?, shape(idx))))
        .collect()
}

/// The form in which lines are compared: lower case, every number the same. None for a blank line.
fn normal(line: &str) -> Option<String> {
    let line = line.trim();
    if line.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(line.len());
    for letter in line.chars().flat_map(char::to_lowercase) {
        if !letter.is_ascii_digit() {
            out.push(letter);
        } else if !out.ends_with('0') {
            out.push('0');
        }
    }
    Some(out)
}

fn is_form(line: &str) -> bool {
    line.starts_with('#') || line.starts_with("**") || is_check_box(line) || is_empty_answer(line)
}

fn is_check_box(line: &str) -> bool {
    ["- [ ]", "- [x]", "- [X]", "* [ ]", "* [x]"]
        .iter()
        .any(|sign| line.starts_with(sign))
}

/// What GitHub's forms put where nothing was answered.
fn is_empty_answer(line: &str) -> bool {
    line.eq_ignore_ascii_case("_no response_")
}

fn fence_sign(line: &str) -> Option<char> {
    ["```", "~~~"]
        .iter()
        .find(|fence| line.starts_with(**fence))
        .and_then(|fence| fence.chars().next())
}

fn without_comments(body: &str) -> String {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(start) = rest.find("<!--") {
        out.push_str(&rest[..start]);
        rest = match rest[start..].find("-->") {
            Some(len) => &rest[start + len + 3..],
            None => "",
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_falls_into_stretches() {
        let form = "### What happened?\n";
        let bodies = ["a\n", "b\n", "c\n"].map(|answer| format!("{form}{answer}"));
        let templates = Templates::learn(bodies.iter().map(|body| ("o/n", body.as_str())));
        let body = format!(
            "{form}It <b>broke</b>.\n\n<!-- write\nhere -->\n```sh\nrun\n~~~\n```\nmore\n```\nopen"
        );
        let found = templates.stretches("o/n", &body);
        let expected = [
            (Stretch::Form, form),
            (Stretch::Prose, "It <b>broke</b>.\n\n"),
            (Stretch::Form, "<!-- write\nhere -->\n"),
            (Stretch::Code, "run\n~~~\n"),
            (Stretch::Prose, "more\n"),
            (Stretch::Code, "open\n"),
        ];
        let found: Vec<(Stretch, &str)> = found.iter().map(|(s, t)| (*s, t.as_str())).collect();
        assert_eq!(found, expected);
    }

    fn check(body: &str, prose: &str, code: &str) {
        let parts = Templates::default().parts("o/n", body);
        assert_eq!((parts.prose.as_str(), parts.code.as_str()), (prose, code));
    }

    #[test]
    fn code_is_told_from_prose() {
        check("a\n```sh\nb\n```\nc", "a\nc\n", "b\n");
        check("a\n~~~\nb\n```\nc\n~~~\nd", "a\nd\n", "b\nc\n");
        check("```\nopen to the end", "", "open to the end\n");
        check("a ```b``` c\nd", "a\nc\nd\n", "b\n");
        check("```b```\nc", "c\n", "b\n");
        check("a ```sh b ``` ### c ```d\ne", "a\n### c\n", "sh b\nd\ne\n");
        check("", "", "");
    }

    #[test]
    fn what_nobody_wrote_is_left_out() {
        check("<!-- fill in\nall -->text<!-- open", "text\n", "");
        check("- [x] I searched\n_No response_\nyes", "yes\n", "");
        check(
            "TypeError: x\n    at f (/a/b.js:1:2)\nend",
            "TypeError: x\nend\n",
            "",
        );
    }

    #[test]
    fn logs_traces_and_versions_are_parts_of_their_own() {
        let body = "It fails.\nNode: v20.1\n```\n12:30:00 start\nloaded\n12:30:01 end\n    at f (/a.js:1:2)\n12:30:02 y\n```\n\n\
                    ```json\n{\"version\": \"1.2\"}\nport: 1.2\n```\n[INFO] z";
        let parts = Templates::default().parts("o/n", body);
        assert_eq!(
            parts,
            Parts {
                prose: "It fails.\n".into(),
                code: "{\"version\": \"1.2\"}\nport: 1.2\n".into(),
                log: "12:30:00 start\nloaded\n12:30:01 end\n12:30:02 y\n[INFO] z\n".into(),
                trace: "at f (/a.js:1:2)\n".into(),
                versions: "Node: v20.1\n".into(),
            }
        );
    }

    #[test]
    fn templates_come_back_as_they_were_stored() {
        let bodies = ["### What happened?\n\nx"; 5];
        let templates = Templates::learn(bodies.iter().map(|body| ("o/n", *body)));
        let lines = templates.to_lines();
        assert_eq!(lines["o/n"][0], "### what happened?");
        assert_eq!(Templates::from_lines(&lines).to_lines(), lines);
    }

    #[test]
    fn lines_that_recur_are_of_the_form_and_quoted_errors_are_not() {
        let mut bodies: Vec<String> = (0..20)
            .map(|n| {
                format!(
                    "### What happened?\n\nstory {}\nmacOS 1{n}",
                    "x".repeat(n + 1)
                )
            })
            .collect();
        for body in &mut bodies[..3] {
            body.push_str("\nerror: file has not been read");
        }
        let templates = Templates::learn(bodies.iter().map(|body| ("o/n", body.as_str())));
        let parts = templates.parts("o/n", &bodies[0]);
        assert_eq!(parts.prose, "story x\nerror: file has not been read\n");
        let answers: Vec<String> = (0..20)
            .map(|n| {
                let choice = if n < 3 { "Anthropic API" } else { "other" };
                format!(
                    "### Platform\n\n{choice}\n\n### More\n\nstory {}\n{choice}\nend",
                    "y".repeat(n + 1)
                )
            })
            .collect();
        let of_forms = Templates::learn(answers.iter().map(|body| ("o/n", body.as_str())));
        assert_eq!(of_forms.parts("o/n", &answers[5]).prose, "story yyyyyy\n");
        assert_eq!(of_forms.parts("o/n", &answers[0]).prose, "story y\n");
        let elsewhere = templates.parts("o/other", &bodies[4]);
        assert!(elsewhere.prose.starts_with("### What happened?"));
    }
}
