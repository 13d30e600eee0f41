//! Tools and their parameters, as Python source declares them: JSON schemas, tables of objects, pydantic classes.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::python::Source;
use super::python_facts::{arguments, fact, is_name, pairs};
use super::source::Fact;
use crate::domain::difference::FactKind;

/// `Tool("read", …, path={"type": "string"})`: further keywords are parameters when their value is a schema.
pub(super) fn of_keywords(
    source: &Source<'_>,
    tool: &str,
    keywords: &BTreeMap<String, Node<'_>>,
    facts: &mut Vec<Fact>,
) {
    const OTHER: &[&str] = &[
        "name",
        "description",
        "required",
        "parameters",
        "func",
        "function",
        "handler",
        "code",
    ];
    for (name, value) in keywords {
        if OTHER.contains(&name.as_str()) || source.string(*value).is_some() {
            continue;
        }
        let mut parameter = parameter(tool, name, *value);
        if value.kind() == "dictionary" {
            parameter.bounds = bounds(source, *value);
        }
        facts.push(parameter);
    }
}

pub(super) fn parameter(tool: &str, name: &str, node: Node<'_>) -> Fact {
    fact(
        FactKind::Parameter,
        format!("{tool}.{name}"),
        format!("{tool}({name})"),
        node,
    )
}

/// `class ReadFile(CallableTool2[Params])` with `name = "ReadFile"`.
pub(super) fn of_class(source: &Source<'_>, node: Node<'_>, facts: &mut Vec<Fact>) {
    let Some(body) = node.child_by_field_name("body") else {
        return;
    };
    let superclasses = source.field(node, "superclasses");
    if !superclasses.contains("Tool") {
        return;
    }
    let mut cursor = body.walk();
    let name = body
        .named_children(&mut cursor)
        .filter_map(|statement| source.assignment(statement))
        .find(|(name, _)| *name == "name")
        .and_then(|(_, value)| source.string(value))
        .filter(|name| is_name(name));
    let Some(name) = name else { return };
    facts.push(fact(FactKind::Tool, &name, &name, node));
    // The class of the parameters is the one that the base class is made for.
    let fields = superclasses
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .find_map(|word| source.classes.get(word));
    if let Some(fields) = fields.and_then(|class| class.child_by_field_name("body")) {
        of_fields(source, &name, fields, facts);
    }
}

/// `path: str = Field(default=…, ge=…)` in the class of a tool's parameters.
fn of_fields(source: &Source<'_>, tool: &str, body: Node<'_>, facts: &mut Vec<Fact>) {
    let mut cursor = body.walk();
    for statement in body.named_children(&mut cursor) {
        let Some(assignment) = statement
            .named_child(0)
            .filter(|child| child.kind() == "assignment")
        else {
            continue;
        };
        let Some(kind) = assignment.child_by_field_name("type") else {
            continue;
        };
        let mut parameter = parameter(tool, source.field(assignment, "left"), statement);
        let json_type = match source.text(kind).split(['|', '[']).next().map(str::trim) {
            Some("int") => Some("integer"),
            Some("str") => Some("string"),
            Some("bool") => Some("boolean"),
            Some("list") => Some("array"),
            _ => None,
        };
        let mut put = |key: &str, text: String| drop(parameter.bounds.insert(key.to_owned(), text));
        if let Some(json_type) = json_type {
            put("type", json_type.to_owned());
        }
        match assignment.child_by_field_name("right") {
            None => put("required", "true".to_owned()),
            Some(value) if value.kind() == "call" => {
                let (positional, keywords) = arguments(source, value);
                let default = keywords.get("default").or(positional.first());
                let is_optional = default.is_some() || keywords.contains_key("default_factory");
                put("required", (!is_optional).to_string());
                let numbers = [
                    ("default", default, 0),
                    ("minimum", keywords.get("ge"), 0),
                    ("minimum", keywords.get("gt"), 1),
                    ("maximum", keywords.get("le"), 0),
                    ("maximum", keywords.get("lt"), -1),
                ];
                for (key, node, step) in numbers {
                    if let Some(number) = node.and_then(|node| source.number(*node)) {
                        put(key, (number + step).to_string());
                    }
                }
            }
            Some(value) => {
                put("required", "false".to_owned());
                if let Some(number) = source.number(value) {
                    put("default", number.to_string());
                }
            }
        }
        facts.push(parameter);
    }
}

/// `{"name": "bash", "parameters": {"properties": {…}}}`.
pub(super) fn of_schema(source: &Source<'_>, node: Node<'_>, facts: &mut Vec<Fact>) {
    let function = pairs(source, node);
    let Some(name) = function.get("name").and_then(|value| source.string(*value)) else {
        return;
    };
    let Some(schema) = ["parameters", "input_schema", "inputSchema"]
        .iter()
        .find_map(|key| function.get(*key))
        .filter(|schema| schema.kind() == "dictionary")
    else {
        return;
    };
    if !is_name(&name) {
        return;
    }
    facts.push(fact(FactKind::Tool, &name, &name, node));
    let schema = pairs(source, *schema);
    let required: Vec<String> = schema.get("required").map_or(Vec::new(), |list| {
        let mut cursor = list.walk();
        list.named_children(&mut cursor)
            .filter_map(|item| source.string(item))
            .collect()
    });
    for (key, value) in schema
        .get("properties")
        .map(|properties| pairs(source, *properties))
        .unwrap_or_default()
    {
        let mut parameter = parameter(&name, &key, value);
        parameter.bounds = bounds(source, value);
        if schema.contains_key("required") {
            parameter
                .bounds
                .insert("required".to_owned(), required.contains(&key).to_string());
        }
        facts.push(parameter);
    }
}

/// `type`, `minimum`, `maximum` and `default` of a JSON schema.
fn bounds(source: &Source<'_>, schema: Node<'_>) -> BTreeMap<String, String> {
    let mut bounds = BTreeMap::new();
    for (key, value) in pairs(source, schema) {
        if ["type", "minimum", "maximum", "default"].contains(&key.as_str())
            && let Some(text) = source
                .string(value)
                .or_else(|| source.number(value).map(|number| number.to_string()))
        {
            bounds.insert(key, text);
        }
    }
    bounds
}
