//! Counts what the architecture of a candidate is described by.

use std::collections::BTreeMap;

use tree_sitter::{Parser, Tree};

use crate::domain::candidate::{FileKind, TreeFile};
use crate::domain::case::Category;
use crate::domain::source_facts::SourceFacts;

/// Of every Python file of the tree, tests of the candidate's own counted in. Links are not counted; bytes that are no
/// UTF-8 are read as far as lines go.
///
/// A category has a dedicated module when the name of a file, without its folders and in lower case, holds one of the
/// category's keywords.
pub fn source_facts(files: &[TreeFile], keywords: &BTreeMap<Category, Vec<String>>) -> SourceFacts {
    let mut facts = SourceFacts {
        dedicated: Some(Default::default()),
        ..SourceFacts::default()
    };
    for file in files {
        if file.kind == FileKind::Link || !file.path.ends_with(".py") {
            continue;
        }
        let text = String::from_utf8_lossy(&file.content);
        let code_lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        facts.modules += 1;
        facts.code_lines += code_lines;
        facts.functions += functions(&text);
        facts.largest_module = facts.largest_module.max(code_lines);
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let name = name.trim_end_matches(".py").to_lowercase();
        for (category, words) in keywords {
            if words.iter().any(|word| name.contains(word.as_str())) {
                let dedicated = facts.dedicated.as_mut().expect("was set above");
                dedicated.insert(*category);
            }
        }
    }
    facts
}

fn functions(text: &str) -> usize {
    let tree = parse(text);
    let mut cursor = tree.walk();
    let mut n = 0;
    loop {
        n += usize::from(cursor.node().kind() == "function_definition");
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return n;
            }
        }
    }
}

fn parse(text: &str) -> Tree {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_python::LANGUAGE.into())
        .expect("the grammar fits the library");
    parser
        .parse(text, None)
        .expect("there is a language and no limit of time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_by_hand() {
        let file = |path: &str, kind, text: &str| TreeFile {
            path: path.to_owned(),
            kind,
            content: text.as_bytes().to_vec(),
        };
        let nested =
            "class A:\n    def f(self):\n\n        async def g(): pass\n        return lambda: 1\n";
        let files = [
            file(
                "harness",
                FileKind::Executable,
                "def not_a_module(): pass\n",
            ),
            file("pkg/Permission_rules.py", FileKind::Plain, nested),
            file("pkg/__init__.py", FileKind::Plain, "\n \n"),
            file("pkg/link.py", FileKind::Link, "Permission_rules.py"),
            file(
                "tests/test_it.py",
                FileKind::Plain,
                "def test(): ...\n# end",
            ),
        ];
        let keywords = BTreeMap::from([
            (Category::Permissions, vec!["permission".to_owned()]),
            (Category::Headless, vec!["pkg".to_owned()]),
        ]);
        let facts = source_facts(&files, &keywords);
        let expected = SourceFacts {
            code_lines: 6,
            modules: 3,
            functions: 3,
            largest_module: 4,
            dedicated: Some([Category::Permissions].into()),
        };
        assert_eq!(facts, expected);
    }
}
