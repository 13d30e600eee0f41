//! Placeholders: bodies that do nothing, what is said to be not implemented, and marks of unfinished work.

use std::sync::LazyLock;

use regex::Regex;
use tree_sitter::Node;

use super::python::{Source, every, is_docstring, statements};
use super::{ENTRY, file};
use crate::domain::candidate::TreeFile;
use crate::domain::place::Finding;

static MARK: LazyLock<Regex> = LazyLock::new(|| regex(r"\b(TODO|FIXME)\b"));
static UNFINISHED: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)\bNotImplementedError\b|\bnot (?:yet )?implemented\b"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant")
}

/// The candidate's own tests may hold what they like.
fn is_product(path: &str) -> bool {
    let tests = path.split('/').any(|part| part == "tests");
    !tests && (path.ends_with(".py") || path == ENTRY)
}

pub fn check(skeleton: &[TreeFile], candidate: &[TreeFile], findings: &mut Vec<Finding>) {
    for found in candidate.iter().filter(|file| is_product(&file.path)) {
        let Some(text) = found.text() else { continue };
        if found.path == ENTRY
            && !text
                .lines()
                .next()
                .is_some_and(|first| first.contains("python"))
        {
            continue;
        }
        let source = Source::parse(&found.path, text);
        if let Some(place) = source.fault() {
            findings.push(Finding::new(place, "is not valid Python"));
            continue;
        }
        let empty = file(skeleton, &found.path).map_or_else(Vec::new, empty_in_skeleton);
        every(source.root(), &mut |node| match node.kind() {
            "function_definition" => function(&source, node, &empty, findings),
            "raise_statement" => raise(&source, node, findings),
            "comment" => mark(&source, node, findings),
            "expression_statement" if is_docstring(node) => mark(&source, node, findings),
            _ => {}
        });
    }
}

/// The functions of a skeleton's file that the candidate has to fill in.
fn empty_in_skeleton(file: &TreeFile) -> Vec<String> {
    let source = Source::parse(&file.path, file.text().unwrap_or_default());
    source
        .definitions()
        .into_iter()
        .filter(|node| node.kind() == "function_definition")
        .filter(|node| does_nothing(&source, *node).is_some())
        .map(|node| source.name(node).to_owned())
        .collect()
}

fn function(source: &Source, node: Node, empty: &[String], findings: &mut Vec<Finding>) {
    if is_abstract(source, node) {
        return;
    }
    let name = source.name(node);
    let mut at = |message: String| findings.push(Finding::new(source.place(node), message));
    // Nobody can tell a deliberate empty body from a forgotten one, so that the first has to be said.
    if let Some(what) = does_nothing(source, node) {
        at(format!(
            "the body of `{name}` is a placeholder: {what}; where nothing is to be done, say `return`"
        ));
    }
    let is_top = source.definitions().contains(&node);
    if is_top
        && empty.iter().any(|known| known == name)
        && let Some(value) = constant_body(source, node)
    {
        at(format!(
            "the body of `{name}` is a placeholder: it only returns {value}"
        ));
    }
}

/// What a body that does nothing consists of.
fn does_nothing(source: &Source, function: Node) -> Option<&'static str> {
    let body = function.child_by_field_name("body")?;
    let rest: Vec<Node> = statements(body)
        .into_iter()
        .filter(|statement| !is_docstring(*statement))
        .collect();
    let is_ellipsis = |node: &Node| {
        node.kind() == "expression_statement"
            && node
                .named_child(0)
                .is_some_and(|inner| inner.kind() == "ellipsis")
    };
    if rest.is_empty() {
        Some("nothing but a docstring")
    } else if rest
        .iter()
        .all(|node| node.kind() == "pass_statement" || is_ellipsis(node))
    {
        Some("`pass` or `...`")
    } else if let [only] = rest.as_slice()
        && only.kind() == "raise_statement"
        && UNFINISHED.is_match(source.text_of(*only))
    {
        Some("it only raises that it is not implemented")
    } else {
        None
    }
}

/// The value of a body that is one `return` of a constant.
fn constant_body(source: &Source, function: Node) -> Option<String> {
    let body = function.child_by_field_name("body")?;
    let rest: Vec<Node> = statements(body)
        .into_iter()
        .filter(|statement| !is_docstring(*statement))
        .collect();
    let [only] = rest.as_slice() else { return None };
    if only.kind() != "return_statement" {
        return None;
    }
    match only.named_child(0) {
        None => Some("`None`".to_owned()),
        Some(value) => is_constant(source, value).then(|| format!("`{}`", source.plain(value))),
    }
}

fn is_constant(source: &Source, node: Node) -> bool {
    let mut cursor = node.walk();
    match node.kind() {
        "integer" | "float" | "true" | "false" | "none" | "ellipsis" => true,
        "string" => {
            let mut inner = node.named_children(&mut cursor);
            inner.all(|part| part.kind() != "interpolation")
        }
        "list"
        | "tuple"
        | "dictionary"
        | "set"
        | "pair"
        | "parenthesized_expression"
        | "unary_operator"
        | "argument_list" => node
            .named_children(&mut cursor)
            .all(|part| is_constant(source, part)),
        "keyword_argument" => node
            .child_by_field_name("value")
            .is_some_and(|value| is_constant(source, value)),
        // A call of a class or of `dict`, `list`, `str` with constants makes a constant.
        "call" => {
            let makes = node
                .child_by_field_name("function")
                .is_some_and(|function| {
                    let name = source.text_of(function);
                    name.starts_with(|c: char| c.is_ascii_uppercase())
                        || ["dict", "list", "str", "int"].contains(&name)
                });
            makes
                && node
                    .child_by_field_name("arguments")
                    .is_some_and(|arguments| is_constant(source, arguments))
        }
        _ => false,
    }
}

fn raise(source: &Source, node: Node, findings: &mut Vec<Finding>) {
    let function = enclosing(node, "function_definition");
    if function.is_some_and(|function| is_abstract(source, function))
        || !UNFINISHED.is_match(source.text_of(node))
    {
        return;
    }
    findings.push(Finding::new(
        source.place(node),
        "raises that something is not implemented",
    ));
}

fn mark(source: &Source, node: Node, findings: &mut Vec<Finding>) {
    let text = source.text_of(node);
    if let Some(found) = MARK.find(text) {
        let mut place = source.place(node);
        place.line += text[..found.start()].matches('\n').count();
        findings.push(Finding::new(
            place,
            format!("is marked `{}`", found.as_str()),
        ));
    }
}

/// A function without a body of its own by intent: abstract, an overload, or part of a protocol.
fn is_abstract(source: &Source, function: Node) -> bool {
    let decorated = source.decorators(function).iter().any(|decorator| {
        let last = decorator.rsplit('.').next().unwrap_or_default();
        last.starts_with("abstract") || last == "overload"
    });
    let in_protocol = enclosing(function, "class_definition")
        .is_some_and(|class| source.bases(class).contains("Protocol"));
    decorated || in_protocol
}

fn enclosing<'tree>(node: Node<'tree>, kind: &str) -> Option<Node<'tree>> {
    let mut parent = node.parent();
    while let Some(found) = parent {
        if found.kind() == kind {
            return Some(found);
        }
        parent = found.parent();
    }
    None
}
