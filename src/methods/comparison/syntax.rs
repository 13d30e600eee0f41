//! What the readers of all languages ask of a node and its text.

use tree_sitter::{Language, Node, Parser, Tree};

/// Characters of source that are shown of a branch, and twice as many are read of what it says.
pub const N_SHOWN: usize = 160;

/// The tree of a text; where it has syntax errors, of what could be understood.
pub fn parsed(language: &Language, text: &str) -> Tree {
    let mut parser = Parser::new();
    parser
        .set_language(language)
        .expect("the grammar fits the library it is built with");
    parser
        .parse(text, None)
        .expect("parsing has neither a time limit nor a way to cancel")
}

/// The line of a node's beginning, from 1.
pub fn line(node: Node<'_>) -> usize {
    node.start_position().row + 1
}

/// Every named node below this one, and itself.
pub fn each<'n>(node: Node<'n>, of: &mut dyn FnMut(Node<'n>)) {
    of(node);
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor).collect::<Vec<_>>() {
        each(child, of);
    }
}

/// The last statement of a block, comments aside.
pub fn last_statement(block: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = block.walk();
    block
        .named_children(&mut cursor)
        .filter(|statement| statement.kind() != "comment")
        .last()
}

/// The last part of a dotted name.
pub fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name).trim()
}

/// On one line.
pub fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// On one line, and cut.
pub fn short(text: &str) -> String {
    let text = squeezed(text);
    match text.char_indices().nth(N_SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
