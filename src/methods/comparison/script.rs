//! TypeScript and JavaScript source cut into units, each with its words and with what it handles.
//!
//! Which expressions count as facts is in `script_facts`.

use std::collections::BTreeMap;
use std::path::Path;

use tree_sitter::{Language, Node};

use super::source::{Unit, whole, with_rest};
use super::syntax::{MOST_DEPTH, children, each, line, parsed};

/// Cuts one file into its units, in the order of the source.
///
/// A file with syntax errors yields what could be understood.
pub fn units(file: &Path, text: &str) -> Vec<Unit> {
    // The second grammar is the first with elements in it, and reads JavaScript; `<T>value` is read by the first only.
    let is_typed = file
        .extension()
        .is_some_and(|ending| ending == "ts" || ending == "mts");
    let language: Language = if is_typed {
        tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into()
    } else {
        tree_sitter_typescript::LANGUAGE_TSX.into()
    };
    let tree = parsed(&language, text);
    let root = tree.root_node();
    let mut walk = Walk {
        source: Script::new(text, root),
        units: vec![whole(file, text)],
    };
    walk.all(root);
    with_rest(walk.units, text)
}

struct Walk<'t> {
    source: Script<'t>,
    units: Vec<Unit>,
}

impl<'t> Walk<'t> {
    /// Visits every node on behalf of the unit that it stands in.
    fn all(&mut self, root: Node<'t>) {
        let mut waiting = vec![(root, 0, false)];
        while let Some((node, unit_idx, is_inside)) = waiting.pop() {
            let (unit_idx, is_inside) = self.visit(node, unit_idx, is_inside);
            let below = children(node).into_iter().rev();
            waiting.extend(below.map(|child| (child, unit_idx, is_inside)));
        }
    }

    /// Visits a node on behalf of the unit with this index; what stands inside a function is its own. Returns the unit of
    /// what stands below it, and whether that is inside a function.
    fn visit(&mut self, node: Node<'t>, unit_idx: usize, is_inside: bool) -> (usize, bool) {
        let (mut unit_idx, mut is_inside) = (unit_idx, is_inside);
        if let Some(name) = self.source.definition(node).filter(|_| !is_inside) {
            let outer = &self.units[unit_idx].name;
            let name = match outer.as_str() {
                "" => name.to_owned(),
                outer => format!("{outer}.{name}"),
            };
            unit_idx = self.open(node, &name, unit_idx);
            is_inside = !is_class(node);
        }
        let unit = &mut self.units[unit_idx];
        match node.kind() {
            "call_expression" => unit
                .calls
                .push(self.source.field(node, "function").to_owned()),
            "import_statement" => unit.calls.push(self.source.text(node).to_owned()),
            "string" | "template_string" => unit.strings.extend(self.source.string(node)),
            _ => {}
        }
        self.source.facts(node, &mut self.units[unit_idx].facts);
        (unit_idx, is_inside)
    }

    fn open(&mut self, node: Node<'_>, name: &str, outer_idx: usize) -> usize {
        let n_lines = node.end_position().row - node.start_position().row + 1;
        let mut unit = Unit::within(&self.units[0], name, line(node));
        unit.n_lines = n_lines;
        unit.is_function = !is_class(node);
        unit.about = self.source.comments(line(node));
        // A method's lines are no longer those of its class.
        if outer_idx > 0 {
            let outer = &mut self.units[outer_idx];
            outer.n_lines = outer.n_lines.saturating_sub(n_lines);
        }
        self.units.push(unit);
        self.units.len() - 1
    }
}

/// A class, also one without a name of its own that is assigned.
fn is_class(definition: Node<'_>) -> bool {
    let value = ["value", "right"]
        .iter()
        .find_map(|name| definition.child_by_field_name(name));
    definition.kind().ends_with("class_declaration")
        || value.is_some_and(|value| value.kind() == "class")
}

/// The text, with what other places of the file refer to by name.
pub(super) struct Script<'t> {
    text: &'t str,
    /// `const NAME = 5` outside of functions.
    numbers: BTreeMap<&'t str, i64>,
    /// By their last line.
    comments: BTreeMap<usize, &'t str>,
}

impl<'t> Script<'t> {
    fn new(text: &'t str, root: Node<'t>) -> Self {
        let mut script = Self {
            text,
            numbers: BTreeMap::new(),
            comments: BTreeMap::new(),
        };
        each(root, &mut |node| match node.kind() {
            "comment" => {
                let end = node.end_position().row + 1;
                script.comments.insert(end, &text[node.byte_range()]);
            }
            "variable_declarator" => {
                let name = script.field(node, "name");
                let value = node.child_by_field_name("value");
                if let Some(number) = value.and_then(|value| script.number(value)) {
                    script.numbers.entry(name).or_insert(number);
                }
            }
            _ => {}
        });
        script
    }

    pub(super) fn text(&self, node: Node<'_>) -> &'t str {
        &self.text[node.byte_range()]
    }

    /// The text of a field; empty when the node has none.
    pub(super) fn field(&self, node: Node<'_>, name: &str) -> &'t str {
        node.child_by_field_name(name)
            .map_or("", |child| self.text(child))
    }

    /// The comments that end on this line or on the two above.
    pub(super) fn comments(&self, line: usize) -> String {
        let near = self.comments.range(line.saturating_sub(2)..=line);
        near.map(|(_, text)| *text).collect::<Vec<_>>().join(" ")
    }

    /// The name of a function, a method or a class.
    fn definition(&self, node: Node<'_>) -> Option<&'t str> {
        match node.kind() {
            "function_declaration"
            | "generator_function_declaration"
            | "class_declaration"
            | "abstract_class_declaration" => Some(self.field(node, "name")),
            // A bundler keeps what a module does at its beginning under its path.
            "method_definition" => {
                Some(self.field(node, "name")).filter(|name| !name.starts_with(['"', '\'']))
            }
            "variable_declarator" | "public_field_definition" | "assignment_expression" => {
                let (name, value) = if node.kind() == "assignment_expression" {
                    ("left", "right")
                } else {
                    ("name", "value")
                };
                let value = node.child_by_field_name(value)?;
                ["arrow_function", "function_expression", "class"]
                    .contains(&value.kind())
                    .then(|| self.field(node, name))
            }
            _ => None,
        }
    }

    /// The value of an integer expression of literals and constants of this file.
    pub(super) fn number(&self, node: Node<'_>) -> Option<i64> {
        self.number_within(node, MOST_DEPTH)
    }

    fn number_within(&self, node: Node<'_>, depth: usize) -> Option<i64> {
        let depth = depth.checked_sub(1)?;
        match node.kind() {
            "number" => self.text(node).replace('_', "").parse().ok(),
            "identifier" => self.numbers.get(self.text(node)).copied(),
            "parenthesized_expression" => self.number_within(node.named_child(0)?, depth),
            "binary_expression" => {
                let left = self.number_within(node.child_by_field_name("left")?, depth)?;
                let right = self.number_within(node.child_by_field_name("right")?, depth)?;
                match self.field(node, "operator") {
                    "+" => left.checked_add(right),
                    "-" => left.checked_sub(right),
                    "*" => left.checked_mul(right),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The text of a literal, also of several that are added; what is put in at run time is `{}`.
    pub(super) fn string(&self, node: Node<'_>) -> Option<String> {
        self.string_within(node, MOST_DEPTH)
    }

    fn string_within(&self, node: Node<'_>, depth: usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        match node.kind() {
            "string" | "template_string" => {
                let mut out = String::new();
                let mut cursor = node.walk();
                for part in node.named_children(&mut cursor) {
                    match part.kind() {
                        "template_substitution" => out.push_str("{}"),
                        _ => out.push_str(self.text(part)),
                    }
                }
                Some(out)
            }
            "parenthesized_expression" => self.string_within(node.named_child(0)?, depth),
            "binary_expression" if self.field(node, "operator") == "+" => {
                let left = self.string_within(node.child_by_field_name("left")?, depth)?;
                let right = self.string_within(node.child_by_field_name("right")?, depth);
                Some(left + &right.unwrap_or_else(|| "{}".to_owned()))
            }
            _ => None,
        }
    }

    pub(super) fn arguments<'n>(&self, call: Node<'n>) -> Vec<Node<'n>> {
        let Some(list) = call.child_by_field_name("arguments") else {
            return Vec::new();
        };
        let mut cursor = list.walk();
        list.named_children(&mut cursor)
            .filter(|argument| argument.kind() != "comment")
            .collect()
    }

    /// The pairs of an object by key.
    pub(super) fn pairs<'n>(&self, node: Node<'n>) -> BTreeMap<String, Node<'n>> {
        let mut pairs = BTreeMap::new();
        let mut cursor = node.walk();
        for pair in node.named_children(&mut cursor) {
            if let ("pair", Some(key), Some(value)) = (
                pair.kind(),
                pair.child_by_field_name("key"),
                pair.child_by_field_name("value"),
            ) {
                let name = self
                    .string(key)
                    .unwrap_or_else(|| self.text(key).to_owned());
                pairs.insert(name, value);
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_functions_methods_classes_and_the_rest() {
        let text = "// Reads.\nimport fs from 'fs';\nexport class Read {\n  run() {\n    const inner = () => 1;\n    \
                    return inner();\n  }\n}\nconst f = (x) => g(x);\nfunction h() {}\n";
        for file in ["a.ts", "a.js"] {
            let units = units(Path::new(file), text);
            let names: Vec<(&str, usize)> =
                units.iter().map(|u| (u.name.as_str(), u.line)).collect();
            let expected = [("", 1), ("Read", 3), ("Read.run", 4), ("f", 9), ("h", 10)];
            assert_eq!(names, expected, "{file}");
            assert_eq!(units[1].about, "// Reads.");
            assert_eq!(units[3].calls, ["g"]);
            let n_lines: usize = units.iter().map(|unit| unit.n_lines).sum();
            assert_eq!(n_lines, text.lines().count());
        }
    }

    #[test]
    fn classes_of_a_bundle_are_units() {
        let text = "var Read;\nvar init_read = __esm({\n  \"src/read.ts\"() {\n    Read = class extends Tool {\n      \
                    run() {\n        return f();\n      }\n    };\n  }\n});\nvar Write = class extends Tool {\n  go() {\n  }\n};\n";
        let units = units(Path::new("a.js"), text);
        let names: Vec<&str> = units.iter().map(|unit| unit.name.as_str()).collect();
        assert_eq!(names, ["", "Read", "Read.run", "Write", "Write.go"]);
        let are_functions: Vec<bool> = units.iter().map(|unit| unit.is_function).collect();
        assert_eq!(are_functions, [false, false, true, false, true]);
    }
}
