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

/// Fields may be added; those of the skeleton keep their names. A dataclass keeps types and defaults too; a plain class
/// takes the same fields in its `__init__`, with a default where the skeleton has one.
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
    let decorators = found.decorators(defined);
    let is_dataclass = decorators
        .iter()
        .any(|decorator| decorator.starts_with("dataclass"));
    let own = if is_dataclass {
        fields(found, defined)
    } else {
        match initialiser(found, defined) {
            Some(function) => parameters(found, function),
            None => {
                findings.push(at(format!(
                    "the class `{name}` is neither a `@dataclass` nor has an `__init__`"
                )));
                return;
            }
        }
    };
    for expected in fields(original, class) {
        let text = &expected.text;
        match own.iter().find(|field| field.name == expected.name) {
            None => findings.push(at(format!("`{name}` lacks the field `{text}`"))),
            Some(field) if is_dataclass && field.text != *text => findings.push(Finding::new(
                field.place.clone(),
                format!("the contract is `{text}` in `{name}`, not `{}`", field.text),
            )),
            Some(field) if field.has_default != expected.has_default => {
                findings.push(Finding::new(
                    field.place.clone(),
                    format!("the contract is `{text}` in `{name}`, not `{}`", field.text),
                ));
            }
            Some(_) => {}
        }
    }
}

struct Field {
    name: String,
    /// As `name: type = default`, without the spaces that do not matter.
    text: String,
    has_default: bool,
    place: Place,
}

/// The annotated fields of a class.
fn fields(source: &Source, class: Node) -> Vec<Field> {
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
            let default = assignment.child_by_field_name("right");
            let shown = default.map(|right| format!(" = {}", source.plain(right)));
            Some(Field {
                text: format!(
                    "{name}: {}{}",
                    source.plain(annotation),
                    shown.unwrap_or_default()
                ),
                name,
                has_default: default.is_some(),
                place: source.place(statement),
            })
        })
        .collect()
}

fn initialiser<'tree>(source: &Source, class: Node<'tree>) -> Option<Node<'tree>> {
    statements(class.child_by_field_name("body")?)
        .into_iter()
        .filter_map(definition)
        .find(|node| source.name(*node) == "__init__")
}

/// The parameters that a function also keeps as `self.NAME`.
fn parameters(source: &Source, function: Node) -> Vec<Field> {
    let (Some(list), Some(body)) = (
        function.child_by_field_name("parameters"),
        function.child_by_field_name("body"),
    ) else {
        return Vec::new();
    };
    let kept: Vec<String> = statements(body)
        .into_iter()
        .filter_map(|statement| statement.named_child(0)?.child_by_field_name("left"))
        .map(|left| source.plain(left))
        .collect();
    statements(list)
        .into_iter()
        .filter_map(|parameter| {
            let name = match parameter.kind() {
                "identifier" => parameter,
                _ => parameter
                    .child_by_field_name("name")
                    .or_else(|| parameter.named_child(0))?,
            };
            Some(Field {
                name: source.plain(name),
                text: source.plain(parameter),
                has_default: parameter.child_by_field_name("value").is_some(),
                place: source.place(parameter),
            })
        })
        .filter(|field| kept.contains(&format!("self.{}", field.name)))
        .collect()
}
