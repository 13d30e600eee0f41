//! Python source as a syntax tree, and the few questions that the check asks about it.

use std::path::Path;

use tree_sitter::{Node, Parser, Tree};

use crate::domain::place::Place;

/// One parsed file.
pub struct Source<'a> {
    pub path: &'a str,
    pub text: &'a str,
    tree: Tree,
}

impl<'a> Source<'a> {
    pub fn parse(path: &'a str, text: &'a str) -> Self {
        let mut parser = Parser::new();
        parser
            .set_language(&tree_sitter_python::LANGUAGE.into())
            .expect("the grammar fits the library");
        let tree = parser
            .parse(text, None)
            .expect("there is a language and no limit of time");
        Self { path, text, tree }
    }

    pub fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    pub fn text_of(&self, node: Node) -> &'a str {
        &self.text[node.byte_range()]
    }

    pub fn place(&self, node: Node) -> Place {
        Place::new(Path::new(self.path), node.start_position().row + 1)
    }

    /// The first place that the grammar does not accept.
    pub fn fault(&self) -> Option<Place> {
        let mut places = Vec::new();
        every(self.root(), &mut |node| {
            if node.is_error() || node.is_missing() {
                places.push(self.place(node));
            }
        });
        places.into_iter().min()
    }

    /// Functions and classes of the top level, decorated or not.
    pub fn definitions(&self) -> Vec<Node<'_>> {
        statements(self.root())
            .into_iter()
            .filter_map(definition)
            .collect()
    }

    pub fn name(&self, definition: Node) -> &'a str {
        definition
            .child_by_field_name("name")
            .map_or("", |name| self.text_of(name))
    }

    /// Name, parameters and return type, without the spaces that do not matter; `async` before it when it is.
    pub fn signature(&self, function: Node) -> String {
        let part = |name: &str| {
            function
                .child_by_field_name(name)
                .map(|node| self.plain(node))
        };
        let is_async = function
            .child(0)
            .is_some_and(|first| first.kind() == "async");
        format!(
            "{}{}{} -> {}",
            if is_async { "async " } else { "" },
            self.name(function),
            part("parameters").unwrap_or_default(),
            part("return_type").unwrap_or_else(|| "?".to_owned())
        )
    }

    /// The text of a node without white space, comments and a last comma.
    pub fn plain(&self, node: Node) -> String {
        let mut text = String::new();
        every(node, &mut |leaf| {
            if leaf.child_count() == 0 && leaf.kind() != "comment" {
                text.push_str(self.text_of(leaf));
            }
        });
        let text: String = text.split_whitespace().collect();
        text.replace(",)", ")")
    }

    /// The decorators of a definition, as `dataclass` or `abc.abstractmethod`.
    pub fn decorators(&self, definition: Node) -> Vec<String> {
        let Some(parent) = definition
            .parent()
            .filter(|parent| parent.kind() == "decorated_definition")
        else {
            return Vec::new();
        };
        let mut cursor = parent.walk();
        parent
            .children(&mut cursor)
            .filter(|child| child.kind() == "decorator")
            .map(|child| self.plain(child).trim_start_matches('@').to_owned())
            .collect()
    }

    /// The base classes of a class as written, such as `(Protocol)`.
    pub fn bases(&self, class: Node) -> String {
        class
            .child_by_field_name("superclasses")
            .map_or(String::new(), |bases| self.plain(bases))
    }
}

/// The statements of a block or module, without comments.
pub fn statements(block: Node) -> Vec<Node> {
    let mut cursor = block.walk();
    block
        .named_children(&mut cursor)
        .filter(|child| child.kind() != "comment")
        .collect()
}

/// The function or class that a statement defines.
pub fn definition(statement: Node) -> Option<Node> {
    let node = match statement.kind() {
        "decorated_definition" => statement.child_by_field_name("definition")?,
        _ => statement,
    };
    ["function_definition", "class_definition"]
        .contains(&node.kind())
        .then_some(node)
}

/// Whether a statement is a lone string.
pub fn is_docstring(statement: Node) -> bool {
    statement.kind() == "expression_statement"
        && statement
            .named_child(0)
            .is_some_and(|inner| ["string", "concatenated_string"].contains(&inner.kind()))
}

/// Visits a node and everything below it, in the order of the text.
pub fn every<'tree>(node: Node<'tree>, visit: &mut impl FnMut(Node<'tree>)) {
    visit(node);
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        every(child, visit);
    }
}
