//! Documents that the program could write itself are what it would write. `PIPELINE_ACCEPT=1 cargo test docs` makes
//! them anew.

use std::fmt::Write;
use std::process::Command;

use crate::project::repository;

/// Compares a file of the repository with what it should be, or makes it so.
pub fn same(file: &str, expected: &str) {
    let path = repository().join(file);
    if std::env::var_os("PIPELINE_ACCEPT").is_some() {
        std::fs::write(&path, expected).expect("writes");
        return;
    }
    let seen = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        seen == expected,
        "{file} is out of date; make it anew: PIPELINE_ACCEPT=1 cargo test --test it"
    );
}

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pipeline"))
        .args(arguments)
        .arg("--help")
        .env_clear()
        .env("COLUMNS", "100")
        .output()
        .expect("starts");
    assert!(output.status.success(), "{arguments:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The subcommands that a help text lists.
fn subcommands(help: &str) -> Vec<String> {
    let listed = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "));
    listed
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_command_line_is_documented_as_it_is() {
    let mut text =
        String::from("# Command line\n\nThe texts of `--help`, as `cargo test docs` checks.\n");
    let top = help(&[]);
    write!(text, "\n```text\n{top}\n```\n").expect("a string");
    for name in subcommands(&top) {
        let part = help(&[&name]);
        write!(text, "\n## {name}\n\n```text\n{part}\n```\n").expect("a string");
        for below in subcommands(&part) {
            let part = help(&[&name, &below]);
            write!(text, "\n### {name} {below}\n\n```text\n{part}\n```\n").expect("a string");
        }
    }
    same("docs/cli.md", &text);
}

#[test]
fn the_schema_of_a_case_is_published() {
    let schema = doc2harness::domain::case::schema();
    let text = serde_json::to_string_pretty(&schema).expect("JSON");
    same("docs/case.schema.json", &format!("{text}\n"));
}

#[test]
fn the_readme_shows_the_exit_codes_of_the_program() {
    let top = help(&[]);
    let (_, codes) = top
        .split_once("Exit codes:\n")
        .expect("the help ends with the exit codes");
    let readme = std::fs::read_to_string(repository().join("README.md")).expect("reads");
    assert!(
        readme.contains(codes.trim_end()),
        "README.md lacks\n{codes}"
    );
}
