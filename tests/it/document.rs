//! `pipeline document`: the document of this repository is sound, and one change of a copy is found with its place.

use serde_json::Value;

use crate::project::{Project, ran, repository};

const MAPPED: &str = "\
harness = \"x\"
version = \"1\"
sources = []

[[feature]]
id = \"x/tool/read\"
kind = \"tool\"
chapter = \"tools\"
name = \"read\"
invocation = \"read(path)\"
clause = \"tools.read.range\"
";

/// A copy of the document with a small inventory.
fn project() -> Project {
    let project = Project::new();
    let reasons = std::fs::read_to_string(repository().join("data/inventory/reasons.toml"))
        .expect("the reasons are there");
    project.write("data/inventory/reasons.toml", &reasons);
    project.write("data/inventory/x.toml", MAPPED);
    project
}

fn change(project: &Project, file: &str, from: &str, to: &str) {
    let text = std::fs::read_to_string(project.path(file)).expect("reads");
    assert!(text.contains(from), "{file} lacks {from:?}");
    project.write(file, &text.replacen(from, to, 1));
}

/// What is wrong with the document is told here; the inventory is judged by `pipeline document check` alone.
#[test]
fn the_document_is_sound() {
    let project = Project::new();
    let mut command = project.command(&["--json", "document", "check"]);
    let checked = ran(command.arg("--project").arg(repository())).json();
    let of_document: Vec<&Value> = checked["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|found| {
            let file = found["file"].as_str().expect("a text");
            file.starts_with("data/document")
        })
        .collect();
    assert!(of_document.is_empty(), "{of_document:#?}");
    assert_eq!(checked["n_chapters"], 11);
    assert_eq!(checked["harnesses"].as_array().expect("a list").len(), 12);
}

#[test]
fn a_sound_copy_gives_exit_code_0() {
    let checked = project().json(&["document", "check"]);
    assert_eq!(checked["findings"], Value::Array(Vec::new()));
}

#[test]
fn one_change_is_found_with_its_place() {
    let check = |file: &str, from: &str, to: &str, place: &str, expected: &str| {
        let project = project();
        change(&project, file, from, to);
        let ran = project.run(&["document", "check"]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let found = |line: &str| line.starts_with(place) && line.contains(expected);
        assert!(
            ran.stdout.lines().any(found),
            "no line {place}…{expected}… in\n{}",
            ran.stdout
        );
    };
    // A clause that others name is gone.
    check(
        "data/document/02-tools.md",
        "### tools.read.range ·",
        "### tools.read.span ·",
        "data/inventory/x.toml:6: ",
        "`tools.read.range` is no clause",
    );
    check(
        "data/document/01-deliverable.md",
        "`max_retries` (default 3)",
        "`max_retries` (default 4)",
        "data/document/01-deliverable.md:",
        "the default of max_retries is 4 here and 3 at data/document/05-flags.md:",
    );
    check(
        "data/document/03-commands.md",
        "`harness sessions delete ID`",
        "`harness sessions delete ID` or `/compress`",
        "data/document/03-commands.md:",
        "\"/compress\" is another name of \"/compact\"",
    );
    check(
        "data/document/04-permissions.md",
        "exit code 3",
        "exit code 8",
        "data/document/04-permissions.md:",
        "exit code 8 is not in the table",
    );
    // A clause that cannot be parsed.
    check(
        "data/document/10-exit-codes.md",
        "**Meaning**",
        "**Sense**",
        "data/document/10-exit-codes.md:",
        "it needs",
    );
    check(
        "data/inventory/x.toml",
        "clause = \"tools.read.range\"\n",
        "",
        "data/inventory/x.toml:6: ",
        "1 of 1 features have no state (clause, clauses or pruned): x/tool/read (line 6)",
    );
}

#[test]
fn coverage_counts_by_chapter_clause_and_harness() {
    let project = project();
    let coverage = project.json(&["document", "coverage"]);
    assert_eq!(coverage["chapters"][1]["n_features"], 1);
    assert_eq!(coverage["harnesses"][0]["n_merged"], 1);
    let backed = |row: &&Value| row["features"]["x"][0] == "x/tool/read";
    let rows = coverage["clauses"].as_array().expect("a list");
    assert_eq!(rows.iter().filter(backed).count(), 1);

    let table = project.run(&["document", "coverage", "--by", "clause"]);
    let row = |line: &str| line.split_whitespace().eq(["tools.read.range", "1", "x"]);
    assert!(table.stdout.lines().any(row), "{}", table.stdout);
}

#[test]
fn the_rendered_document_has_an_anchor_for_each_clause() {
    let project = project();
    let n_clauses = project.json(&["document", "check"])["n_clauses"].as_u64();
    let markdown = project.run(&["document", "render"]).stdout;
    let n_anchors = markdown.matches("<a id=\"").count() as u64;
    assert_eq!(n_clauses.map(|n| n + 11), Some(n_anchors));

    let file = project.path("document.html");
    let arguments = ["document", "render", "--format", "html", "--out"];
    let mut command = project.command(&arguments);
    assert_eq!(ran(command.arg(&file)).code, 0);
    let page = std::fs::read_to_string(file).expect("is written");
    assert_eq!(n_clauses, Some(page.matches("<h3 id=\"").count() as u64));
    for target in page
        .split("href=\"#")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
    {
        assert!(page.contains(&format!(" id=\"{target}\"")), "{target}");
    }
}
