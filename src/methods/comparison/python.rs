//! Python source cut into units, each with its words and with what it handles.
//!
//! Which expressions count as facts is in `python_facts`, `python_tools` and `python_branches`.

use std::collections::BTreeMap;
use std::path::Path;

use tree_sitter::Node;

use super::python_facts;
use super::source::{Unit, whole, with_rest};
use super::syntax::{MOST_DEPTH, children, each, line, parsed};

/// Cuts one file into its units, in the order of the source.
///
/// A file with syntax errors yields what could be understood.
pub fn units(file: &Path, text: &str) -> Vec<Unit> {
    let tree = parsed(&tree_sitter_python::LANGUAGE.into(), text);
    let root = tree.root_node();
    let mut walk = Walk {
        source: Source::new(text, root),
        units: vec![whole(file, text)],
        classes: Vec::new(),
    };
    walk.all(root);
    with_rest(walk.units, text)
}

/// The text, with what other places of the file refer to by name.
pub(super) struct Source<'t> {
    text: &'t str,
    /// `NAME = 5` outside of functions.
    numbers: BTreeMap<String, i64>,
    /// Classes at the top of the file by name.
    pub(super) classes: BTreeMap<String, Node<'t>>,
    /// By line.
    comments: BTreeMap<usize, &'t str>,
    /// It asks whether a text begins with a dash: it reads a command line itself.
    pub(super) reads_arguments: bool,
}

impl<'t> Source<'t> {
    fn new(text: &'t str, root: Node<'t>) -> Self {
        let mut source = Self {
            text,
            numbers: BTreeMap::new(),
            classes: BTreeMap::new(),
            comments: BTreeMap::new(),
            reads_arguments: ["startswith(\"-", "startswith('-", "lstrip(\"-", "lstrip('-"]
                .iter()
                .any(|asked| text.contains(asked)),
        };
        each(root, &mut |node| {
            if node.kind() == "comment" {
                source.comments.insert(line(node), &text[node.byte_range()]);
            }
        });
        let mut cursor = root.walk();
        for statement in root.named_children(&mut cursor) {
            let statement = undecorated(statement);
            if statement.kind() == "class_definition" {
                source
                    .classes
                    .insert(source.field(statement, "name").to_owned(), statement);
            } else if let Some((name, value)) = source.assignment(statement)
                && let Some(number) = source.number(value)
            {
                source.numbers.insert(name.to_owned(), number);
            }
        }
        source
    }

    /// The comments on this line and on the two above.
    pub(super) fn comments(&self, line: usize) -> String {
        let near = self.comments.range(line.saturating_sub(2)..=line);
        near.map(|(_, text)| *text).collect::<Vec<_>>().join(" ")
    }

    /// What stands between two nodes.
    pub(super) fn between(&self, left: Node<'_>, right: Node<'_>) -> &'t str {
        &self.text[left.end_byte()..right.start_byte()]
    }

    pub(super) fn text(&self, node: Node<'_>) -> &'t str {
        &self.text[node.byte_range()]
    }

    /// The text of a field; empty when the node has none.
    pub(super) fn field(&self, node: Node<'_>, name: &str) -> &'t str {
        node.child_by_field_name(name)
            .map_or("", |child| self.text(child))
    }

    /// Name and value of `name = value` and `name: type = value`, given as a statement or as the assignment.
    pub(super) fn assignment<'n>(&self, node: Node<'n>) -> Option<(&'t str, Node<'n>)> {
        let node = if node.kind() == "expression_statement" {
            node.named_child(0)?
        } else {
            node
        };
        if node.kind() != "assignment" {
            return None;
        }
        let left = node.child_by_field_name("left")?;
        let right = node.child_by_field_name("right")?;
        (left.kind() == "identifier").then(|| (self.text(left), right))
    }

    /// The value of an integer expression of literals and constants of this file.
    pub(super) fn number(&self, node: Node<'_>) -> Option<i64> {
        self.number_within(node, MOST_DEPTH)
    }

    fn number_within(&self, node: Node<'_>, depth: usize) -> Option<i64> {
        let depth = depth.checked_sub(1)?;
        match node.kind() {
            "integer" => {
                let text = self.text(node).replace('_', "").to_lowercase();
                match text.split_at_checked(2) {
                    Some(("0x", digits)) => i64::from_str_radix(digits, 16).ok(),
                    Some(("0o", digits)) => i64::from_str_radix(digits, 8).ok(),
                    Some(("0b", digits)) => i64::from_str_radix(digits, 2).ok(),
                    _ => text.parse().ok(),
                }
            }
            "identifier" => self.numbers.get(self.text(node)).copied(),
            "parenthesized_expression" => self.number_within(node.named_child(0)?, depth),
            "unary_operator" if self.field(node, "operator") == "-" => self
                .number_within(node.child_by_field_name("argument")?, depth)?
                .checked_neg(),
            "binary_operator" => {
                let left = self.number_within(node.child_by_field_name("left")?, depth)?;
                let right = self.number_within(node.child_by_field_name("right")?, depth)?;
                match self.field(node, "operator") {
                    "+" => left.checked_add(right),
                    "-" => left.checked_sub(right),
                    "*" => left.checked_mul(right),
                    "<<" => left.checked_mul(1i64.checked_shl(u32::try_from(right).ok()?)?),
                    "**" => left.checked_pow(u32::try_from(right).ok()?),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The text of a string literal, also of several side by side; what is put in at run time is `{}`.
    pub(super) fn string(&self, node: Node<'_>) -> Option<String> {
        self.string_within(node, MOST_DEPTH)
    }

    fn string_within(&self, node: Node<'_>, depth: usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        match node.kind() {
            "string" => {
                let mut out = String::new();
                let mut cursor = node.walk();
                for part in node.named_children(&mut cursor) {
                    match part.kind() {
                        "string_content" => out.push_str(self.text(part)),
                        "interpolation" => out.push_str("{}"),
                        _ => {}
                    }
                }
                Some(out)
            }
            "concatenated_string" => {
                let mut cursor = node.walk();
                node.named_children(&mut cursor)
                    .filter(|part| part.kind() == "string")
                    .map(|part| self.string_within(part, depth))
                    .collect()
            }
            "parenthesized_expression" => self.string_within(node.named_child(0)?, depth),
            "binary_operator" => {
                let left = self.string_within(node.child_by_field_name("left")?, depth)?;
                let right = self.string_within(node.child_by_field_name("right")?, depth);
                Some(left + &right.unwrap_or_else(|| "{}".to_owned()))
            }
            _ => None,
        }
    }
}

/// The definition inside its decorators.
pub(super) fn undecorated(node: Node<'_>) -> Node<'_> {
    if node.kind() == "decorated_definition" {
        node.child_by_field_name("definition").unwrap_or(node)
    } else {
        node
    }
}

struct Walk<'t> {
    source: Source<'t>,
    units: Vec<Unit>,
    /// Names of the classes that we are in.
    classes: Vec<&'t str>,
}

impl<'t> Walk<'t> {
    /// Visits every node on behalf of the unit that it stands in.
    fn all(&mut self, root: Node<'t>) {
        let mut waiting = vec![(root, 0, 0)];
        while let Some((node, unit_idx, n_classes)) = waiting.pop() {
            self.classes.truncate(n_classes);
            let unit_idx = self.visit(node, unit_idx);
            let n_classes = self.classes.len();
            let below = children(node).into_iter().rev();
            waiting.extend(below.map(|child| (child, unit_idx, n_classes)));
        }
    }

    /// Visits a node on behalf of the unit with this index, and returns the unit of what stands below it.
    fn visit(&mut self, node: Node<'t>, unit_idx: usize) -> usize {
        let mut unit_idx = unit_idx;
        match node.kind() {
            "class_definition" => {
                self.classes.push(self.source.field(node, "name"));
                unit_idx = self.open(node, self.classes.join("."));
            }
            "function_definition" if self.is_outermost(unit_idx) => {
                let mut name: Vec<&str> = self.classes.clone();
                name.push(self.source.field(node, "name"));
                unit_idx = self.open(node, name.join("."));
                self.units[unit_idx].is_function = true;
            }
            "call" => {
                let callee = self.source.field(node, "function");
                self.units[unit_idx].calls.push(callee.to_owned());
            }
            "import_statement" | "import_from_statement" => {
                let imported = self.source.text(node);
                self.units[unit_idx].calls.push(imported.to_owned());
            }
            "string" => {
                if let Some(text) = self.source.string(node) {
                    self.units[unit_idx].strings.push(text);
                }
            }
            _ => {}
        }
        python_facts::of(&self.source, node, &mut self.units[unit_idx].facts);
        unit_idx
    }

    /// A function is a unit of its own unless it stands inside one.
    fn is_outermost(&self, unit_idx: usize) -> bool {
        self.units[unit_idx].name == self.classes.join(".")
    }

    /// Its first sentence, with the comments above the definition.
    fn docstring(&self, node: Node<'_>) -> String {
        let text = node
            .child_by_field_name("body")
            .and_then(|body| body.named_child(0)?.named_child(0))
            .and_then(|first| self.source.string(first))
            .unwrap_or_default();
        let sentence = text.split("\n\n").next().unwrap_or_default();
        format!("{sentence} {}", self.source.comments(line(node)))
    }

    fn open(&mut self, node: Node<'_>, name: String) -> usize {
        let n_lines = node.end_position().row - node.start_position().row + 1;
        let mut unit = Unit::within(&self.units[0], &name, line(node));
        unit.n_lines = n_lines;
        unit.about = self.docstring(node);
        // A method's lines are no longer those of its class.
        if let Some(class) = self.classes.last()
            && name != self.classes.join(".")
            && let Some(outer) = self
                .units
                .iter_mut()
                .rev()
                .find(|unit| unit.name.rsplit('.').next() == Some(class))
        {
            outer.n_lines = outer.n_lines.saturating_sub(n_lines);
        }
        self.units.push(unit);
        self.units.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_functions_methods_classes_and_the_rest() {
        let text = "\"\"\"doc\"\"\"\nimport os\n\nclass A:\n    x = 1\n\n    def run(self):\n        def inner():\n            \
                    return 'in'\n        return inner\n\n@dec\ndef f():\n    return 'f'\n";
        let units = units(Path::new("a.py"), text);
        let seen: Vec<(&str, usize)> = units.iter().map(|u| (u.name.as_str(), u.line)).collect();
        assert_eq!(seen, [("", 1), ("A", 4), ("A.run", 7), ("f", 13)]);
        assert_eq!(units[2].strings, ["in"]);
        assert_eq!(units[0].strings, ["doc"]);
        let n_lines: usize = units.iter().map(|unit| unit.n_lines).sum();
        assert_eq!(n_lines, text.lines().count());
        assert_eq!(units[1].n_lines, 3);
    }

    #[test]
    fn numbers_and_strings_are_worked_out() {
        let text = "A = 100 << 10\nB = -(2 * 0x10)\nC = 'a' f'b{x}' \"c\"\n";
        let tree = parsed(&tree_sitter_python::LANGUAGE.into(), text);
        let source = Source::new(text, tree.root_node());
        assert_eq!(source.numbers["A"], 102_400);
        assert_eq!(source.numbers["B"], -32);
        let statement = tree.root_node().named_child(2).expect("is there");
        let (_, value) = source.assignment(statement).expect("assigns");
        assert_eq!(source.string(value).as_deref(), Some("ab{}c"));
    }

    #[test]
    fn broken_source_yields_what_can_be_understood() {
        let units = units(Path::new("a.py"), "def f(:\n    pass\n\nLIMIT = 5\n");
        let limits: Vec<&str> = units
            .iter()
            .flat_map(|unit| &unit.facts)
            .map(|fact| fact.key.as_str())
            .collect();
        assert_eq!(limits, ["LIMIT"]);
    }
}
