//! `pipeline expand` on the small cases of `tests/fixtures/expand`.

use std::collections::BTreeMap;
use std::path::Path;

use doc2harness::domain::case::{Case, CaseId, Entry, Variable};
use serde_json::Value;

use crate::project::{Project, repository};

fn project() -> Project {
    let project = Project::new();
    let fixtures = repository().join("tests/fixtures/expand");
    for (path, text) in files(&fixtures) {
        project.write(&format!("cases/{path}"), &text);
    }
    project
}

/// All files below a folder by their path.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(here) = folders.pop() {
        for entry in std::fs::read_dir(&here).into_iter().flatten() {
            let path = entry.expect("reads").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let below = path
                    .strip_prefix(folder)
                    .expect("is below")
                    .display()
                    .to_string();
                files.insert(below, std::fs::read_to_string(&path).expect("reads"));
            }
        }
    }
    files
}

fn variants(project: &Project) -> BTreeMap<String, String> {
    files(&project.path("data/variants"))
}

fn expand(project: &Project, seed: &str) -> Value {
    project.json(&["expand", "--seed", seed])
}

fn operators(summary: &Value, kept: bool) -> Vec<&str> {
    let all = summary["variants"].as_array().expect("a list");
    all.iter()
        .filter(|variant| variant["kept"] == kept)
        .map(|variant| variant["operator"].as_str().expect("a text"))
        .collect()
}

const LINK: &str = "file-operations/link-outside";

#[test]
fn kept_variants_are_cases_that_differ_in_one_variable() {
    let project = project();
    let summary = expand(&project, LINK);
    let kept = operators(&summary, true);
    for operator in [
        "by-grep",
        "by-edit",
        "folder-link",
        "link-chain",
        "relative-link",
        "dot-dot",
        "absolute",
        "unicode-name",
        "blank-in-name",
        "capitals-in-name",
        "stream-json",
    ] {
        assert!(kept.contains(&operator), "{operator}: {kept:?}");
    }
    let written = variants(&project);
    for (path, text) in &written {
        let id = path.trim_end_matches(".toml");
        Case::parse(CaseId::new(id), Path::new(path), text)
            .unwrap_or_else(|findings| panic!("{findings:?}\n{text}"));
    }
    let text = &written["file-operations/link-outside--link-chain.toml"];
    assert!(
        text.contains(r#"origin   = { method = "expansion", seed = "file-operations/link-outside", variable = "input-form" }"#),
        "{text}"
    );
    assert!(
        text.contains("{ call = \"read\", with = { path = \"outside.txt\" } }, # the only call"),
        "{text}"
    );
    assert!(
        text.contains("\"outside-hop-2.txt\"    = { link = \"{outside}/secret.txt\" }\n"),
        "{text}"
    );
    // The assertion is the seed's to the byte.
    let seed = std::fs::read_to_string(project.path("cases/file-operations/link-outside.toml"))
        .expect("reads");
    let expects = |text: &str| text[text.find("[[expect]]").expect("asserts")..].to_owned();
    assert_eq!(expects(text), expects(&seed));
}

#[test]
fn controls_are_mapped_like_the_seed() {
    let project = project();
    expand(&project, LINK);
    let written = variants(&project);
    let parse = |path: &str| {
        let text = written
            .get(path)
            .unwrap_or_else(|| panic!("{path}: {:?}", written.keys()));
        Case::parse(
            CaseId::new(path.trim_end_matches(".toml")),
            Path::new(path),
            text,
        )
        .expect("a case")
    };
    let variant = parse("file-operations/link-outside--folder-link.toml");
    let controls = [
        "link-outside--folder-link--outside-by-shell",
        "link-outside--folder-link--inside-link",
    ];
    assert_eq!(variant.controls(), controls);
    let shell = parse("controls/link-outside--folder-link--outside-by-shell.toml");
    let inside = parse("controls/link-outside--folder-link--inside-link.toml");
    assert_eq!(shell.fixture, variant.fixture);
    assert_eq!(inside.fixture, variant.fixture);
    let call = |case: &Case| serde_json::to_string(&case.launches[0].script[0]).expect("JSON");
    assert!(
        call(&variant).contains("linked/secret.txt"),
        "{}",
        call(&variant)
    );
    assert!(
        call(&shell).contains("cat linked/secret.txt"),
        "{}",
        call(&shell)
    );
    assert!(
        call(&inside).contains("linked-2/notes.txt"),
        "{}",
        call(&inside)
    );
    // Another tool does not change what a control does with its own.
    let by_grep = parse("file-operations/link-outside--by-grep.toml");
    assert_eq!(
        by_grep.controls(),
        ["outside-by-shell", "link-outside--by-grep--inside-link"]
    );
}

#[test]
fn a_control_that_cannot_be_mapped_is_said_to_be_made() {
    let project = project();
    let summary = expand(&project, LINK);
    let all = summary["variants"].as_array().expect("a list");
    let by_edit = all
        .iter()
        .find(|one| one["operator"] == "by-edit")
        .expect("is there");
    assert_eq!(by_edit["kept"], true);
    assert!(
        by_edit["why"]
            .as_str()
            .expect("a text")
            .contains("a control has to be made: inside-link"),
        "{by_edit}"
    );
    let text = &variants(&project)["file-operations/link-outside--by-edit.toml"];
    assert!(
        text.starts_with("# A control has to be made: inside-link: "),
        "{text}"
    );
    assert!(text.contains("controls = [\"outside-by-shell\"]"), "{text}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_a_second_run_writes_nothing() {
    let (one, two) = (project(), project());
    let first = expand(&one, LINK);
    expand(&two, LINK);
    assert_eq!(variants(&one), variants(&two));
    assert_ne!(first["n_written"], 0);
    let again = expand(&one, LINK);
    assert_eq!(again["n_written"], 0);
    assert_eq!(again["variants"], first["variants"]);
}

#[test]
fn what_a_person_changed_is_left_unless_told() {
    let project = project();
    expand(&project, LINK);
    let path = "data/variants/file-operations/link-outside--dot-dot.toml";
    let written = std::fs::read_to_string(project.path(path)).expect("reads");
    let changed = project.write(path, &format!("# mine\n{written}"));
    let summary = expand(&project, LINK);
    let all = summary["variants"].as_array().expect("a list");
    let one = all
        .iter()
        .find(|one| one["operator"] == "dot-dot")
        .expect("is there");
    assert_eq!(one["left"][0], "file-operations/link-outside--dot-dot");
    assert!(
        std::fs::read_to_string(&changed)
            .expect("reads")
            .starts_with("# mine")
    );
    project.json(&["expand", "--seed", LINK, "--overwrite"]);
    assert_eq!(std::fs::read_to_string(&changed).expect("reads"), written);
}

#[test]
fn a_variant_too_close_is_dropped_with_its_distance() {
    let project = project();
    let settings = std::fs::read_to_string(project.path("pipeline/expand.toml")).expect("reads");
    let line = settings
        .lines()
        .find(|line| line.starts_with("least_distance"))
        .expect("is there");
    project.write(
        "pipeline/expand.toml",
        &settings.replace(line, "least_distance = 0.25"),
    );
    let summary = expand(&project, LINK);
    let why = |operator: &str| {
        let all = summary["variants"].as_array().expect("a list");
        let one = all.iter().find(|one| one["operator"] == operator);
        let one = one.unwrap_or_else(|| panic!("{operator}: {summary:#}"));
        assert_eq!(one["kept"], false, "{one}");
        one["why"].as_str().expect("a text").to_owned()
    };
    let seed = why("absolute");
    assert!(seed.starts_with("too close to the seed: 0."), "{seed}");
    assert!(seed.ends_with(" < 0.250"), "{seed}");
    let kept = why("json");
    assert!(
        kept.starts_with("too close to link-outside--stream-json: 0."),
        "{kept}"
    );
    assert!(!variants(&project).contains_key("file-operations/link-outside--absolute.toml"));
}

#[test]
fn what_changes_more_than_one_variable_is_rejected() {
    let project = project();
    let settings = std::fs::read_to_string(project.path("pipeline/expand.toml")).expect("reads");
    // An operator for another tool that works on another path, too.
    let crooked = settings.replace(
        "with        = { pattern = \".\", path = \"{path}\" }",
        "with        = { pattern = \".\", path = \"sub/{path}\" }",
    );
    assert_ne!(crooked, settings);
    project.write("pipeline/expand.toml", &crooked);
    let summary = expand(&project, LINK);
    assert_eq!(
        rejected(&summary, "by-grep"),
        "tool: call 1: read → grep; input-form: call 1: outside.txt is not worked on"
    );
    assert!(!variants(&project).contains_key("file-operations/link-outside--by-grep.toml"));
}

fn rejected(summary: &Value, operator: &str) -> String {
    let all = summary["rejected"].as_array().expect("a list");
    let one = all.iter().find(|one| one["operator"] == operator);
    let one = one.unwrap_or_else(|| panic!("{operator}: {summary:#}"));
    one["why"].as_str().expect("a text").to_owned()
}

#[test]
fn a_mistake_moves_to_another_parameter_and_the_assertion_follows() {
    let project = project();
    let summary = expand(&project, "file-operations/limit-zero");
    let kept = operators(&summary, true);
    assert!(
        kept.contains(&"offset-zero") && kept.contains(&"limit-negative"),
        "{kept:?}"
    );
    let text = &variants(&project)["file-operations/limit-zero--offset-negative.toml"];
    assert!(
        text.contains("{ path = \"lines.txt\", offset = -1 }"),
        "{text}"
    );
    assert!(
        text.contains("equals  = 'error: parameter \"offset\" must be at least 1: -1'"),
        "{text}"
    );
    let other = expand(&project, LINK);
    assert_eq!(rejected(&other, "any"), "no call has an erroneous argument");
}

#[test]
fn a_result_is_looked_for_where_else_it_is_returned() {
    let project = project();
    let summary = expand(&project, "headless/model-error");
    assert_eq!(
        operators(&summary, true),
        ["streamed", "stream-json", "json", "api"]
    );
    let text = &variants(&project)["direct-drive/model-error--api.toml"];
    for line in [
        "category = \"direct-drive\"",
        "requests = [{ id = \"run\", op = \"run\", prompt = \"hello\" }]",
        "at      = \"$[0].result.error.message\"",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let text = &variants(&project)["headless/model-error--json.toml"];
    assert!(
        text.contains("args   = [\"--output-format\", \"json\"]"),
        "{text}"
    );
    assert!(
        text.contains(
            "channel = \"output\"\nat      = \"$.error.message\"\nhas     = \"HTTP 401\""
        ),
        "{text}"
    );
    // Another channel than the seed's clause has: the clause of the site takes its place.
    expand(&project, LINK);
    let text = &variants(&project)["file-operations/link-outside--stream-json.toml"];
    assert!(
        text.contains("clause   = \"flags.format.stream-rounds\""),
        "{text}"
    );
}

#[test]
fn a_kept_variant_can_be_the_next_seed() {
    let project = project();
    expand(&project, LINK);
    let summary = expand(&project, "file-operations/link-outside--by-grep");
    assert!(operators(&summary, true).contains(&"folder-link"));
    let path = "file-operations/link-outside--by-grep--folder-link.toml";
    let text = &variants(&project)[path];
    let case =
        Case::parse(CaseId::new("file-operations/x"), Path::new(path), text).expect("a case");
    assert!(
        text.contains("seed = \"file-operations/link-outside--by-grep\""),
        "{text}"
    );
    assert!(
        matches!(&case.fixture["linked"], Entry::Made(made) if made.link.as_deref() == Some("{outside}"))
    );
    assert_eq!(Variable::ALL.len(), 4);
}

#[test]
fn a_seed_that_is_none_is_refused() {
    let project = project();
    let check = |seed: &str, code: i32, expected: &str| {
        let ran = project.run(&["expand", "--seed", seed]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    };
    check(
        "link-outside",
        2,
        "try: pipeline expand --seed file-operations/link-outside",
    );
    check("controls/inside-link", 2, "is a control");
    let path = "cases/headless/model-error.toml";
    let text = std::fs::read_to_string(project.path(path)).expect("reads");
    project.write(
        path,
        &text.replace("flags.format.error", "flags.format.nothing"),
    );
    check(
        "headless/model-error",
        3,
        "has no clause flags.format.nothing",
    );
    project.write(
        path,
        &text.replace("origin ", "controls = [\"none\"]\norigin "),
    );
    check("headless/model-error", 3, "there is no control \"none\"");
}
