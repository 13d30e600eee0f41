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

/// Expressions are worked out so deep; what lies deeper is nobody's constant or message, and the stack has an end.
pub const MOST_DEPTH: usize = 200;

/// This node and every named one below it, each before those below it. Strangers nest as deep as they like.
pub fn each<'n>(node: Node<'n>, of: &mut dyn FnMut(Node<'n>)) {
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        of(node);
        waiting.extend(children(node).into_iter().rev());
    }
}

/// The named nodes right below this one.
pub fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::source::units;

    #[test]
    fn source_that_is_nested_without_end_is_read() {
        const N: usize = 100_000;
        let nested = format!("x = {}1{}\n", "(".repeat(N), ")".repeat(N));
        let added = format!("x = 'a'{}\n", " + 'a'".repeat(N));
        for file in ["a.py", "a.ts"] {
            for text in [&nested, &added] {
                let units = units(Path::new(file), text, &|_| false);
                assert_eq!(units.len(), 1, "{file}");
            }
        }
    }
}
