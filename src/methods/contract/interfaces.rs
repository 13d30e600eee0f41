//! The three contracts, compared with the skeleton's: signatures of functions, and fields of the data that crosses
//! them.

use tree_sitter::Node;

use super::file;
use super::python::{Source, definition, statements};
use crate::domain::candidate::TreeFile;
use crate::domain::place::{Finding, Place};

/// The contracts: file and function.
const FUNCTIONS: [(&str, &str); 3] = [
    ("harness_agent/cli.py", "main"),
    ("harness_agent/headless.py", "run_headless"),
    ("harness_agent/api.py", "evaluate"),
];
/// The data that crosses them.
const TYPES: &str = "harness_agent/types.py";

pub fn check(skeleton: &[TreeFile], candidate: &[TreeFile], findings: &mut Vec<Finding>) {
    for (path, name) in FUNCTIONS {
        if let Some((original, found)) = pair(skeleton, candidate, path) {
            function(&original, &found, name, findings);
        }
    }
    if let Some((original, found)) = pair(skeleton, candidate, TYPES) {
        for class in original.definitions() {
            dataclass(&original, &found, class, findings);
        }
    }
}

fn pair<'a>(
    skeleton: &'a [TreeFile],
    candidate: &'a [TreeFile],
    path: &'a str,
) -> Option<(Source<'a>, Source<'a>)> {
    let text = |tree: &'a [TreeFile]| file(tree, path)?.text();
    Some((
        Source::parse(path, text(skeleton)?),
        Source::parse(path, text(candidate)?),
    ))
}

fn function(original: &Source, found: &Source, name: &str, findings: &mut Vec<Finding>) {
    let of = |source: &Source| {
        source
            .definitions()
            .into_iter()
            .filter(|node| node.kind() == "function_definition" && source.name(*node) == name)
            .map(|node| (source.signature(node), source.place(node)))
            .collect::<Vec<_>>()
    };
    let Some((expected, _)) = of(original).pop() else {
        return;
    };
    let defined = of(found);
    if defined.is_empty() {
        let place = Place::new(std::path::Path::new(found.path), 1);
        findings.push(Finding::new(place, format!("does not define `{expected}`")));
    }
    if let Some((_, place)) = defined.get(1) {
        findings.push(Finding::new(
            place.clone(),
            format!("defines `{name}` a second time"),
        ));
    }
    for (signature, place) in &defined {
        if *signature != expected {
            findings.push(Finding::new(
                place.clone(),
                format!("the contract is `{expected}`, not `{signature}`"),
            ));
        }
    }
}

/// Fields may be added; those of the skeleton keep name, type and default.
fn dataclass(original: &Source, found: &Source, class: Node, findings: &mut Vec<Finding>) {
    let name = original.name(class);
    let same = |node: &Node| node.kind() == "class_definition" && found.name(*node) == name;
    let Some(defined) = found.definitions().into_iter().find(same) else {
        let place = Place::new(std::path::Path::new(found.path), 1);
        findings.push(Finding::new(
            place,
            format!("does not define the class `{name}`"),
        ));
        return;
    };
    let at = |message: String| Finding::new(found.place(defined), message);
    for decorator in original.decorators(class) {
        if !found.decorators(defined).contains(&decorator) {
            findings.push(at(format!("the class `{name}` is not a `@{decorator}`")));
        }
    }
    let defined_fields = fields(found, defined);
    for (field, expected, _) in fields(original, class) {
        match defined_fields.iter().find(|(name, _, _)| *name == field) {
            None => findings.push(at(format!("`{name}` lacks the field `{expected}`"))),
            Some((_, text, place)) if *text != expected => findings.push(Finding::new(
                place.clone(),
                format!("the contract is `{expected}` in `{name}`, not `{text}`"),
            )),
            Some(_) => {}
        }
    }
}

/// Name, text and place of each annotated field.
fn fields(source: &Source, class: Node) -> Vec<(String, String, Place)> {
    let Some(body) = class.child_by_field_name("body") else {
        return Vec::new();
    };
    statements(body)
        .into_iter()
        .filter(|statement| definition(*statement).is_none())
        .filter_map(|statement| {
            let assignment = statement
                .named_child(0)
                .filter(|inner| inner.kind() == "assignment")?;
            let annotation = assignment.child_by_field_name("type")?;
            let name = source.plain(assignment.child_by_field_name("left")?);
            let default = assignment
                .child_by_field_name("right")
                .map(|right| format!(" = {}", source.plain(right)));
            let text = format!(
                "{name}: {}{}",
                source.plain(annotation),
                default.unwrap_or_default()
            );
            Some((name, text, source.place(statement)))
        })
        .collect()
}
