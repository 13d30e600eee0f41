//! `pipeline check`: a candidate that answers every call passes and is frozen, and each fault is found.

use serde_json::Value;

use crate::project::{Project, repository};

/// Answers every call with a line, and does nothing else.
const CLI: &str = r#""""Contract 1, the command line: `./harness ARGS...` calls `main`."""

import sys

CODES = {"sessions show": 6, "sessions export": 6, "sessions delete": 6, "no-such-command": 2}


def main(argv: list[str]) -> int:
    """Run one command and return its exit code."""
    code = CODES.get(" ".join(argv[:2]), 0)
    if code == 0 and argv != ["api"]:
        print("harness", *argv)
    return code
"#;
pub const HEADLESS: &str = r#""""Contract 2, the headless entry: `./harness -p PROMPT` ends here."""

from .types import Options, Result


def run_headless(prompt: str, options: Options) -> Result:
    """Answer one prompt without asking anybody."""
    return Result(text=prompt)
"#;
pub const API: &str = r#""""Contract 3, the evaluation API: `./harness api` calls `serve`."""


def evaluate(request: dict) -> dict:
    """Answer one request."""
    return {"id": request["id"], "ok": True}
"#;

/// A project with the skeleton, and a candidate `small` that keeps the contract.
pub fn project() -> Project {
    let project = Project::new();
    for (path, text) in tree(&repository().join("skeleton")) {
        write(&project, &format!("skeleton/{path}"), &text);
        write(&project, &format!("candidates/small/{path}"), &text);
    }
    project.write("candidates/small/harness_agent/cli.py", CLI);
    project.write("candidates/small/harness_agent/headless.py", HEADLESS);
    project.write("candidates/small/harness_agent/api.py", API);
    project
}

fn tree(folder: &std::path::Path) -> Vec<(String, String)> {
    let files = [
        "harness",
        "install.sh",
        "pyproject.toml",
        "harness_agent/api.py",
        "harness_agent/cli.py",
        "harness_agent/headless.py",
        "harness_agent/protocols.py",
        "harness_agent/types.py",
    ];
    let read =
        |file: &str| std::fs::read_to_string(folder.join(file)).expect("the skeleton is there");
    files.map(|file| (file.to_owned(), read(file))).to_vec()
}

fn write(project: &Project, path: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let file = project.write(path, text);
    if text.starts_with("#!") {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(file, mode).expect("sets the mode");
    }
}

fn change(project: &Project, path: &str, from: &str, to: &str) {
    let text = std::fs::read_to_string(project.path(path)).expect("reads");
    assert!(text.contains(from), "{path} lacks {from:?}");
    project.write(path, &text.replacen(from, to, 1));
}

#[test]
fn a_candidate_that_passes_is_frozen() {
    let project = project();
    let checked = project.json(&["check", "small"]);
    let report = &checked["candidates"][0];
    assert_eq!(
        (&report["passed"], &report["n_calls"]),
        (&Value::Bool(true), &Value::from(52))
    );
    let digest = report["digest"].as_str().expect("a text");
    let record =
        std::fs::read_to_string(project.path("data/frozen/records/small.json")).expect("is kept");
    let record: Value = serde_json::from_str(&record).expect("is JSON");
    assert_eq!(record["digest"], digest);
    assert_eq!(record["checked_at"], "2026-12-01T00:00:00Z");
    let installed = project.path("data/frozen").join(digest);
    let mode = |path: &str| {
        use std::os::unix::fs::PermissionsExt;
        let about = std::fs::metadata(installed.join(path)).expect("is installed");
        about.permissions().mode() & 0o777
    };
    assert_eq!(
        (
            mode("harness"),
            mode("harness_agent/cli.py"),
            mode("harness_agent")
        ),
        (0o555, 0o444, 0o555)
    );

    // The same tree has the same digest, and another tree another one.
    assert_eq!(
        project.json(&["check", "candidates/small"])["candidates"][0]["digest"],
        digest
    );
    change(
        &project,
        "candidates/small/harness_agent/cli.py",
        "print(\"harness\"",
        "print(\"Harness\"",
    );
    let again = project.json(&["check", "--no-freeze", "small"]);
    assert_ne!(again["candidates"][0]["digest"], digest);
    let kept =
        std::fs::read_to_string(project.path("data/frozen/records/small.json")).expect("is kept");
    assert!(kept.contains(digest), "--no-freeze leaves the record");
}

#[test]
fn the_bare_skeleton_does_not_pass() {
    let project = project();
    let ran = project.run(&["check", "skeleton"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for expected in [
        "skeleton/harness_agent/cli.py:4: the body of `main` is a placeholder",
        "skeleton/harness_agent/headless.py:6: the body of `run_headless` is a placeholder",
        "skeleton/harness_agent/api.py:4: the body of `evaluate` is a placeholder",
        "skeleton/harness:1: `harness version` ends with 1, not 0: NotImplementedError",
        "skeleton/harness:1: no other command was tried",
    ] {
        assert!(
            ran.stdout.contains(expected),
            "{expected} is not in\n{}",
            ran.stdout
        );
    }
    assert!(!project.path("data/frozen/records/skeleton.json").exists());
}

#[test]
fn each_fault_is_found_with_its_place() {
    let check = |file: &str, from: &str, to: &str, expected: &[&str]| {
        let project = project();
        change(
            &project,
            "pipeline/check.toml",
            "time_limit_s = 20",
            "time_limit_s = 10",
        );
        change(&project, &format!("candidates/small/{file}"), from, to);
        let ran = project.run(&["check", "small"]);
        assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
        let found: Vec<&str> = ran
            .stdout
            .lines()
            .filter(|line| line.starts_with("small/"))
            .collect();
        assert_eq!(found.len(), expected.len(), "{}", ran.stdout);
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                found.starts_with(expected),
                "{found} does not begin {expected}"
            );
        }
        assert!(!project.path("data/frozen/records/small.json").exists());
    };
    let cli = "harness_agent/cli.py";
    check(
        cli,
        "argv: list[str]",
        "argv",
        &["small/harness_agent/cli.py:8: the contract is"],
    );
    check(
        cli,
        "import sys\n",
        "import sys\n\nasync def f():\n    yield 1\n    return 2\n",
        &[
            "small/harness_agent/cli.py:7: does not compile: 'return' with value in async generator",
            "small/install.sh:1: install.sh ended with 1:",
        ],
    );
    check(
        "install.sh",
        "set -eu",
        "set -eu\necho no >&2; exit 3",
        &["small/install.sh:1: install.sh ended with 3: no"],
    );
    check(
        cli,
        "\"sessions show\": 6, ",
        "",
        &["small/harness:1: `harness sessions show absent` ends with 0, not 6"],
    );
    check(
        cli,
        "    return code",
        "    if argv == [\"tools\"]:\n        raise ValueError(argv)\n    return code",
        &["small/harness:1: `harness tools` ends with 1, not 0: ValueError: ['tools']"],
    );
    check(
        cli,
        "    return code",
        "    if argv == [\"skills\"]:\n        import time\n        time.sleep(600)\n    return code",
        &["small/harness:1: `harness skills` does not end in time"],
    );
    check(
        cli,
        "argv != [\"api\"]",
        "argv not in ([\"api\"], [\"help\", \"init\"])",
        &["small/harness:1: `harness help init` prints nothing"],
    );
    check(
        cli,
        "    return code",
        "    if argv == [\"agents\"]:\n        import os\n        os.kill(os.getpid(), 9)\n    return code",
        &["small/harness:1: `harness agents` dies of signal 9"],
    );
}

#[test]
fn the_calls_are_those_of_the_document() {
    let read = |path: &str| std::fs::read_to_string(repository().join(path)).expect("reads");
    let chapter = read("data/document/03-commands.md");
    let clause = chapter
        .lines()
        .find(|line| line.starts_with("**Behaviour** The names are "))
        .expect("the clause lists the names");
    let list = clause.split('.').next().expect("a sentence");
    let mut named: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    let settings: toml::Table = toml::from_str(&read("pipeline/check.toml")).expect("is TOML");
    let commands = settings["commands"].as_array().expect("a list");
    let mut called: Vec<&str> = commands.iter().filter_map(|name| name.as_str()).collect();
    named.sort_unstable();
    called.sort_unstable();
    assert_eq!(called, named);
}

#[test]
fn an_unknown_candidate_is_the_users_mistake() {
    let ran = project().run(&["check", "nobody"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("there is no candidate nobody"),
        "{}",
        ran.stderr
    );
}
