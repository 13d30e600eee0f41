//! The skeleton filled in by a few lines, changed in one place at a time.

use sha2::{Digest, Sha256};

use super::*;
use crate::domain::candidate::FileKind;

fn skeleton() -> Vec<TreeFile> {
    let files = [
        ("harness", include_str!("../../../skeleton/harness")),
        (
            "harness_agent/api.py",
            include_str!("../../../skeleton/harness_agent/api.py"),
        ),
        (
            "harness_agent/cli.py",
            include_str!("../../../skeleton/harness_agent/cli.py"),
        ),
        (
            "harness_agent/headless.py",
            include_str!("../../../skeleton/harness_agent/headless.py"),
        ),
        (
            "harness_agent/protocols.py",
            include_str!("../../../skeleton/harness_agent/protocols.py"),
        ),
        (
            "harness_agent/types.py",
            include_str!("../../../skeleton/harness_agent/types.py"),
        ),
        ("install.sh", include_str!("../../../skeleton/install.sh")),
        (
            "pyproject.toml",
            include_str!("../../../skeleton/pyproject.toml"),
        ),
    ];
    files.map(|(path, text)| tree_file(path, text)).to_vec()
}

fn tree_file(path: &str, text: &str) -> TreeFile {
    let executable = ["harness", "install.sh"].contains(&path);
    TreeFile {
        path: path.into(),
        kind: if executable {
            FileKind::Executable
        } else {
            FileKind::Plain
        },
        content: text.into(),
    }
}

/// The contracts are fixed: a byte changed here is a change of every candidate ever built. The digests are those of
/// `sha256sum`.
#[test]
fn the_skeleton_is_unchanged() {
    let pinned = [
        (
            "harness",
            "a28b4f7fab63eb9211a3ccae91a9532570e8f66a436b0e281b1666c673b74531",
        ),
        (
            "harness_agent/api.py",
            "5784b2ff29e39f1ffa9f6e013f6e470ad22637591e42270f54f4f58c9163b1f6",
        ),
        (
            "harness_agent/cli.py",
            "b8ead6c9be4b1441026a34807e7386c247ad0f99d1f3f644716abeb54e97c876",
        ),
        (
            "harness_agent/headless.py",
            "1c7d17b6188dacd579baabd2afa98bdb3da5fc95521763e403c1d2487936ea4b",
        ),
        (
            "harness_agent/protocols.py",
            "48b9d129278cc18b9a5f42d93597dd7e0e6d5ea320142953284417747899fc39",
        ),
        (
            "harness_agent/types.py",
            "ce684ed99ac0616f419c17c51419e5184d4b3f1d4907c6a36312fb7316a9e5f0",
        ),
        (
            "install.sh",
            "9b4c238f8de3d2915071c680cd6d6735ea881ab7b252fd9193acf21bcc7c49c7",
        ),
        (
            "pyproject.toml",
            "e9e35d9a3c43ba6fc4aa530f8fad2568d009c5a14ba8f0948599a23c05c4b412",
        ),
    ];
    for (file, (path, expected)) in skeleton().iter().zip(pinned) {
        assert_eq!(file.path, path);
        let digest: String = Sha256::digest(&file.content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(digest, expected, "{path}");
    }
}

/// A candidate that keeps the contract.
fn filled() -> Vec<TreeFile> {
    let mut tree = skeleton();
    for file in &mut tree {
        let text = file
            .text()
            .expect("is text")
            .replace("raise NotImplementedError", "return work(locals())");
        file.content = text.into_bytes();
    }
    tree.insert(1, tree_file("harness_agent/__init__.py", ""));
    tree.push(tree_file(
        "tests/test_a.py",
        "def test_a():\n    pass  # TODO\n",
    ));
    tree
}

fn findings(tree: &[TreeFile]) -> Vec<String> {
    super::check(&skeleton(), tree)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_filled_skeleton_has_no_findings() {
    assert_eq!(findings(&filled()), Vec::<String>::new());
}

#[test]
fn the_bare_skeleton_is_all_placeholders() {
    let expected = [
        "harness_agent/api.py:4: the body of `evaluate` is a placeholder: it only raises that it is not implemented; where nothing is to be done, say `return`",
        "harness_agent/api.py:6: raises that something is not implemented",
        "harness_agent/api.py:9: the body of `serve` is a placeholder: it only raises that it is not implemented; where nothing is to be done, say `return`",
        "harness_agent/api.py:11: raises that something is not implemented",
        "harness_agent/cli.py:4: the body of `main` is a placeholder: it only raises that it is not implemented; where nothing is to be done, say `return`",
        "harness_agent/cli.py:9: raises that something is not implemented",
        "harness_agent/headless.py:6: the body of `run_headless` is a placeholder: it only raises that it is not implemented; where nothing is to be done, say `return`",
        "harness_agent/headless.py:8: raises that something is not implemented",
    ];
    assert_eq!(findings(&skeleton()), expected);
}

/// One replacement in one file gives exactly one finding.
#[test]
fn each_change_of_the_contract_is_found_with_its_place() {
    let check = |path: &str, from: &str, to: &str, expected: &str| {
        let mut tree = filled();
        let file = tree
            .iter_mut()
            .find(|file| file.path == path)
            .expect("a file");
        let text = file.text().expect("is text");
        assert!(text.contains(from), "{path} lacks {from:?}");
        file.content = text.replacen(from, to, 1).into_bytes();
        assert_eq!(findings(&tree), [expected], "{path}: {from:?} to {to:?}");
    };
    let none = |path: &str, from: &str, to: &str| {
        let mut tree = filled();
        let file = tree
            .iter_mut()
            .find(|file| file.path == path)
            .expect("a file");
        file.content = file
            .text()
            .expect("is text")
            .replacen(from, to, 1)
            .into_bytes();
        assert_eq!(
            findings(&tree),
            Vec::<String>::new(),
            "{path}: {from:?} to {to:?}"
        );
    };
    let (cli, headless) = ("harness_agent/cli.py", "harness_agent/headless.py");
    let (api, types) = ("harness_agent/api.py", "harness_agent/types.py");
    check(
        cli,
        "argv: list[str]",
        "args: list[str]",
        "harness_agent/cli.py:4: the contract is `main(argv:list[str]) -> int`, not `main(args:list[str]) -> int`",
    );
    check(
        cli,
        "argv: list[str]",
        "argv: list",
        "harness_agent/cli.py:4: the contract is `main(argv:list[str]) -> int`, not `main(argv:list) -> int`",
    );
    check(
        cli,
        "def main",
        "async def main",
        "harness_agent/cli.py:4: the contract is `main(argv:list[str]) -> int`, not `async main(argv:list[str]) -> int`",
    );
    check(
        cli,
        "def main",
        "def start",
        "harness_agent/cli.py:1: does not define `main(argv:list[str]) -> int`",
    );
    check(
        headless,
        "-> Result",
        "-> str",
        "harness_agent/headless.py:6: the contract is `run_headless(prompt:str,options:Options) -> Result`, not `run_headless(prompt:str,options:Options) -> str`",
    );
    check(
        api,
        "request: dict)",
        "request: dict, more=None)",
        "harness_agent/api.py:4: the contract is `evaluate(request:dict) -> dict`, not `evaluate(request:dict,more=None) -> dict`",
    );
    check(
        api,
        "def serve",
        "def evaluate(request: dict) -> dict:\n    return work()\n\n\ndef serve",
        "harness_agent/api.py:9: defines `evaluate` a second time",
    );
    check(
        types,
        "exit_code: int = 0",
        "code: int = 0",
        "harness_agent/types.py:38: `Result` lacks the field `exit_code: int = 0`",
    );
    check(
        types,
        "exit_code: int = 0",
        "exit_code: str = 0",
        "harness_agent/types.py:42: the contract is `exit_code: int = 0` in `Result`, not `exit_code: str = 0`",
    );
    check(
        types,
        "@dataclass\nclass Options",
        "class Options",
        "harness_agent/types.py:29: the class `Options` is neither a `@dataclass` nor has an `__init__`",
    );
    check(
        types,
        "class Message",
        "class Note",
        "harness_agent/types.py:1: does not define the class `Message`",
    );
    check(
        "harness",
        "#!/usr/bin/env python3",
        "# python3",
        "harness:1: does not begin with `#!/` and an interpreter",
    );
    check(
        "harness",
        "main(sys.argv[1:])",
        "main(sys.argv)",
        "harness:1: does not have `main(sys.argv[1:])`",
    );
    check(
        "install.sh",
        "#!/bin/sh",
        "",
        "install.sh:1: does not begin with `#!/` and an interpreter",
    );
    check(
        "pyproject.toml",
        "dependencies = []",
        "dependencies = [\"requests\"]",
        "pyproject.toml:1: project.dependencies is not []",
    );
    check(
        "pyproject.toml",
        "[project]",
        "[project",
        "pyproject.toml:1: unclosed table, expected `]`",
    );
    // What may change.
    none(cli, "argv: list[str]", " argv : list[ str ] ,");
    none(
        types,
        "exit_code: int = 0",
        "exit_code: int = 0\n    more: str = \"\"",
    );
    none("install.sh", "set -eu", "set -eu\npython3 -c 'print(1)'");
    none("harness_agent/protocols.py", "def complete", "def stream");
}

/// A plain class in place of a dataclass keeps the names of the fields, and which of them have a default.
#[test]
fn data_may_cross_in_plain_classes() {
    let check = |init: &str, expected: &[&str]| {
        let mut tree = filled();
        let file = tree
            .iter_mut()
            .find(|file| file.path == "harness_agent/types.py")
            .expect("a file");
        let text = file.text().expect("is text");
        let (before, rest) = text
            .split_once("@dataclass\nclass ToolResult:")
            .expect("a class");
        let (_, after) = rest.split_once("\n\n\n").expect("another class");
        file.content = format!("{before}class ToolResult:\n{init}\n\n\n{after}").into_bytes();
        assert_eq!(findings(&tree), expected, "{init}");
    };
    let body = "        self.text = text\n        self.denied = bool(denied)";
    let init = |parameters: &str| format!("    def __init__(self, {parameters}):\n{body}");
    check(&init("text, denied=False"), &[]);
    check(&init("text: str, denied: bool = False, more=0"), &[]);
    check(
        &init("text, denied"),
        &[
            "harness_agent/types.py:22: the contract is `denied: bool = False` in `ToolResult`, not `denied`",
        ],
    );
    check(
        &init("text=\"\", denied=False"),
        &[
            "harness_agent/types.py:22: the contract is `text: str` in `ToolResult`, not `text=\"\"`",
        ],
    );
    check(
        &init("content, denied=False"),
        &["harness_agent/types.py:21: `ToolResult` lacks the field `text: str`"],
    );
    check(
        "    def __init__(self, text, denied=False):\n        self.text = text",
        &["harness_agent/types.py:21: `ToolResult` lacks the field `denied: bool = False`"],
    );
}

#[test]
fn each_kind_of_placeholder_is_found_with_its_place() {
    let check = |text: &str, expected: &[&str]| {
        let mut tree = filled();
        tree.push(tree_file("harness_agent/x.py", text));
        assert_eq!(findings(&tree), expected, "{text}");
    };
    let placeholder = "harness_agent/x.py:1: the body of `f` is a placeholder: ";
    check(
        "def f():\n    pass\n",
        &[&format!(
            "{placeholder}`pass` or `...`; where nothing is to be done, say `return`"
        )],
    );
    check(
        "def f(): ...\n",
        &[&format!(
            "{placeholder}`pass` or `...`; where nothing is to be done, say `return`"
        )],
    );
    check(
        "def f():\n    \"Doc.\"\n    # soon\n",
        &[&format!(
            "{placeholder}nothing but a docstring; where nothing is to be done, say `return`"
        )],
    );
    check(
        "def f():\n    'Doc.'\n    ...\n",
        &[&format!(
            "{placeholder}`pass` or `...`; where nothing is to be done, say `return`"
        )],
    );
    check(
        "def f():\n    raise NotImplementedError(\"later\")\n",
        &[
            &format!(
                "{placeholder}it only raises that it is not implemented; where nothing is to be done, say `return`"
            ),
            "harness_agent/x.py:2: raises that something is not implemented",
        ],
    );
    check(
        "class A:\n    async def f(self, x):\n        if x:\n            raise RuntimeError('Not yet implemented')\n        return 1\n",
        &["harness_agent/x.py:4: raises that something is not implemented"],
    );
    check(
        "x = 1  # TODO later\n",
        &["harness_agent/x.py:1: is marked `TODO`"],
    );
    check(
        "def f():\n    \"\"\"Doc.\n\n    FIXME: all\n    \"\"\"\n    return g()\n",
        &["harness_agent/x.py:4: is marked `FIXME`"],
    );
    check("def f(:\n", &["harness_agent/x.py:1: is not valid Python"]);
    // What is none.
    check(
        "def f():\n    \"\"\"Nothing to do here.\"\"\"\n    return None\n",
        &[],
    );
    check("class E(Exception):\n    \"\"\"An error.\"\"\"\n", &[]);
    check(
        "import abc\nclass A(abc.ABC):\n    @abc.abstractmethod\n    def f(self):\n        raise NotImplementedError\n",
        &[],
    );
    check(
        "from typing import Protocol\nclass P(Protocol):\n    def f(self) -> int: ...\n",
        &[],
    );
    check(
        "NAMES = ['todo', 'TODO']\nprompt = 'Write TODO where work is left'\n",
        &[],
    );
    check(
        "def f(kind):\n    try:\n        g()\n    except ValueError:\n        pass\n    return [kind]\n",
        &[],
    );
}

#[test]
fn a_contract_function_must_not_return_a_constant() {
    let check = |path: &str, name: &str, value: &str, is_found: bool| {
        let mut tree = filled();
        let file = tree
            .iter_mut()
            .find(|file| file.path == path)
            .expect("a file");
        let text = file
            .text()
            .expect("is text")
            .replace("return work(locals())", format!("return {value}").trim());
        file.content = text.into_bytes();
        let found = findings(&tree);
        let expected = format!("the body of `{name}` is a placeholder: it only returns");
        assert_eq!(
            found.iter().any(|one| one.contains(&expected)),
            is_found,
            "{value}: {found:?}"
        );
    };
    check("harness_agent/cli.py", "main", "0", true);
    check("harness_agent/cli.py", "main", "-1", true);
    check("harness_agent/cli.py", "main", "", true);
    check(
        "harness_agent/headless.py",
        "run_headless",
        "Result()",
        true,
    );
    check(
        "harness_agent/headless.py",
        "run_headless",
        "Result(text='', exit_code=1)",
        true,
    );
    check(
        "harness_agent/api.py",
        "evaluate",
        "{'ok': False, 'error': {'code': 'x'}}",
        true,
    );
    check("harness_agent/api.py", "serve", "0", true);
    check("harness_agent/cli.py", "main", "run(argv)", false);
    check(
        "harness_agent/headless.py",
        "run_headless",
        "Result(text=prompt)",
        false,
    );
    check("harness_agent/api.py", "evaluate", "{'id': request}", false);
}

#[test]
fn faults_of_the_tree_are_found() {
    let check = |change: &dyn Fn(&mut Vec<TreeFile>), expected: &str| {
        let mut tree = filled();
        change(&mut tree);
        let found = findings(&tree);
        assert!(
            found.iter().any(|one| one == expected),
            "{expected:?} is not among {found:?}"
        );
    };
    let link = |path: &str, target: &str| TreeFile {
        path: path.into(),
        kind: FileKind::Link,
        content: target.into(),
    };
    check(
        &|tree| tree.retain(|file| file.path != "harness_agent/types.py"),
        "harness_agent/types.py:1: is missing",
    );
    check(
        &|tree| tree[0].kind = FileKind::Plain,
        "harness:1: is not executable",
    );
    check(
        &|tree| tree[0] = link("harness", "install.sh"),
        "harness:1: is a link, not a file",
    );
    check(
        &|tree| tree.push(link("data", "/etc")),
        "data:1: is a link out of the tree, to /etc",
    );
    check(
        &|tree| tree.push(link("a/b", "../../x")),
        "a/b:1: is a link out of the tree, to ../../x",
    );
    check(
        &|tree| tree[2].content = vec![0xff],
        "harness_agent/api.py:1: is not UTF-8",
    );
    let mut tree = filled();
    tree.push(link("a/b", "../harness"));
    assert_eq!(findings(&tree), Vec::<String>::new());
}
