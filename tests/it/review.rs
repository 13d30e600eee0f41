//! `review`: decisions land in files made for git, and the folders follow them.

use crate::project::Project;

const ISSUES: &str = concat!(
    r#"{"repository":"example/harness","number":1,"title":"Edit converts CRLF files to LF","body":"The edit tool changes line ends.","html_url":"https://example.invalid/1"}"#,
    "\n",
    r#"{"repository":"example/harness","number":2,"title":"\u001b[31mInvoice is wrong","body":null,"html_url":"https://example.invalid/2"}"#,
    "\n",
);

const VARIANT: &str = r#"title    = "a variant"
purpose  = "It waits."
clause   = "tools.read.format"
category = "headless"
scenario = "boundary"
[[launch]]
route  = "headless"
prompt = "x"
[[expect]]
channel = "exit"
equals  = 0
"#;

fn project() -> Project {
    let project = Project::new();
    project.write("issues.jsonl", ISSUES);
    project.json(&["collect", "--from", "issues.jsonl"]);
    project.json(&["rank"]);
    project
}

fn subjects(project: &Project, arguments: &[&str]) -> Vec<String> {
    let listing = project.json(&[&["review", "list"], arguments].concat());
    let items = listing["items"].as_array().expect("items");
    items
        .iter()
        .map(|item| item["subject"].as_str().expect("a subject").to_owned())
        .collect()
}

#[test]
fn a_decision_is_a_line_and_an_undo_takes_it_back() {
    let project = project();
    let one = "issue:example/harness#1";
    assert_eq!(
        subjects(&project, &["--kind", "issue"])[0],
        one,
        "the relevant one is first"
    );
    project.json(&["review", "approve", one, "--why", "testable", "--by", "ana"]);
    assert_eq!(
        subjects(&project, &["--kind", "issue"]),
        ["issue:example/harness#2"]
    );
    let text = std::fs::read_to_string(project.path("reviews/issues.jsonl")).expect("reads");
    assert!(
        text.starts_with(
            "{\"at\":\"2026-12-01T00:00:00Z\",\"by\":\"ana\",\"on\":\"issue:example/harness#1\""
        ),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1);

    let other = project.run(&["review", "undo", one, "--by", "ben"]);
    assert_eq!(other.code, 2, "{}", other.stderr);
    project.json(&["review", "undo", one, "--by", "ana"]);
    assert_eq!(subjects(&project, &["--kind", "issue"]).len(), 2);
    let text = std::fs::read_to_string(project.path("reviews/issues.jsonl")).expect("reads");
    assert_eq!(text.lines().count(), 2, "nothing is taken out of the file");
    let again = project.run(&["review", "undo", one, "--by", "ana"]);
    assert_eq!(again.code, 2, "{}", again.stderr);
}

#[test]
fn a_decision_on_what_has_changed_since_waits_again() {
    let project = project();
    let one = "issue:example/harness#1";
    project.json(&["review", "reject", one, "--why", "no", "--by", "ana"]);
    let newer = ISSUES.replace("changes line ends", "changes all line ends");
    project.write("issues.jsonl", &newer);
    project.json(&["collect", "--from", "issues.jsonl"]);
    assert!(subjects(&project, &["--kind", "issue"]).contains(&one.to_owned()));
    let shown = project.run(&["review", "list", "--kind", "issue"]);
    assert!(
        shown.stdout.contains("rejected by ana, changed since"),
        "{}",
        shown.stdout
    );
}

#[test]
fn an_approved_variant_joins_the_suite_and_leaves_it_again() {
    let project = project();
    let gated = VARIANT.replace(
        "scenario = \"boundary\"\n",
        "scenario = \"boundary\"\ncontrols = [\"c\"]\n",
    );
    let control = VARIANT.replace("a variant", "a control").replace(
        "category = \"headless\"\nscenario = \"boundary\"",
        "class = \"channel\"",
    );
    project.write("data/variants/headless/v.toml", &gated);
    project.write("data/variants/controls/c.toml", &control);
    let one = "case:headless/v";
    assert_eq!(subjects(&project, &["--kind", "case"]), [one]);
    let done = project.json(&[
        "review",
        "approve",
        one,
        "--why",
        "it tells two apart",
        "--by",
        "ana",
    ]);
    assert_eq!(done["moved_to"], "cases/headless/v.toml");
    assert!(project.path("cases/headless/v.toml").exists());
    assert!(
        project.path("cases/controls/c.toml").exists(),
        "its control comes along"
    );
    project.json(&["review", "undo", one, "--by", "ana"]);
    assert!(project.path("data/variants/headless/v.toml").exists());
    assert!(
        project.path("data/variants/controls/c.toml").exists(),
        "and goes back"
    );
    assert!(!project.path("cases/headless/v.toml").exists());

    // As if the program had been killed between the decision and the move.
    project.json(&["review", "approve", one, "--why", "yes", "--by", "ana"]);
    std::fs::rename(
        project.path("cases/headless/v.toml"),
        project.path("data/variants/headless/v.toml"),
    )
    .expect("moves");
    subjects(&project, &[]);
    assert!(project.path("cases/headless/v.toml").exists());
}

#[test]
fn a_variant_without_its_control_does_not_join() {
    let project = project();
    let text = format!("# A control has to be made: inside-link-readable: why\n{VARIANT}");
    project.write("data/variants/headless/v.toml", &text);
    let ran = project.run(&[
        "review",
        "approve",
        "case:headless/v",
        "--why",
        "x",
        "--by",
        "ana",
    ]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("inside-link-readable"),
        "{}",
        ran.stderr
    );
    assert!(!project.path("cases/headless/v.toml").exists());
}

#[test]
fn what_cannot_be_decided_is_said() {
    let project = project();
    let check = |arguments: &[&str], expected: &str| {
        let ran = project.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(expected),
            "{} lacks {expected}",
            ran.stderr
        );
    };
    let one = "issue:example/harness#1";
    check(
        &["review", "approve", one, "--by", "ana"],
        "a decision has a reason",
    );
    check(
        &["review", "approve", one, "--why", "x", "--by", " "],
        "nobody knows who decides",
    );
    check(
        &[
            "review",
            "approve",
            "issue:example/harness#9",
            "--why",
            "x",
            "--by",
            "a",
        ],
        "there is no issue:example/harness#9",
    );
    check(
        &["review", "approve", "thing:x", "--why", "x"],
        "is no kind of subject",
    );
    check(
        &["review", "show", "cluster:none"],
        "there is no cluster:none",
    );
    project.write("reviews/issues.jsonl", "{\"at\":1}\n");
    let broken = project.run(&["review", "list"]);
    assert_eq!(broken.code, 3, "{}", broken.stderr);
    assert!(
        broken.stderr.contains("reviews/issues.jsonl:1:"),
        "{}",
        broken.stderr
    );
}

#[test]
fn text_of_others_cannot_move_the_cursor() {
    let project = project();
    for arguments in [
        &["review", "list"][..],
        &["review", "show", "issue:example/harness#2"],
    ] {
        let ran = project.run(arguments);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("Invoice is wrong"), "{}", ran.stdout);
        assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
    }
}

#[test]
fn a_variant_is_shown_with_its_seed_its_clause_and_its_controls() {
    let project = Project::new();
    let fixtures = crate::project::repository().join("tests/fixtures/expand");
    for path in [
        "file-operations/link-outside.toml",
        "controls/inside-link.toml",
        "controls/outside-by-shell.toml",
    ] {
        let text = std::fs::read_to_string(fixtures.join(path)).expect("reads");
        project.write(&format!("cases/{path}"), &text);
    }
    project.json(&["expand", "--seed", "file-operations/link-outside"]);
    let one = "case:file-operations/link-outside--folder-link";
    let ran = project.run(&["review", "show", one]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for expected in [
        "data/variants/file-operations/link-outside--folder-link.toml",
        "── clause tools.paths.link, boundary",
        "── what changed since its seed file-operations/link-outside",
        "+  { call = \"read\", with = { path = \"linked/secret.txt\" } }, # the only call",
        "── control link-outside--folder-link--inside-link, data/variants/controls/",
    ] {
        assert!(ran.stdout.contains(expected), "{expected}\n{}", ran.stdout);
    }
    let done = project.json(&[
        "review",
        "approve",
        one,
        "--why",
        "another way",
        "--by",
        "ana",
    ]);
    assert_eq!(
        done["moved_to"],
        "cases/file-operations/link-outside--folder-link.toml"
    );
    let control = "cases/controls/link-outside--folder-link--inside-link.toml";
    assert!(project.path(control).exists());
    let again = project.json(&["expand", "--seed", "file-operations/link-outside"]);
    let all = again["variants"].as_array().expect("a list");
    let present = all
        .iter()
        .find(|one| one["operator"] == "folder-link")
        .expect("is there");
    assert_eq!(present["why"], "the suite has it");

    let ungated = "case:file-operations/link-outside--by-edit";
    let ran = project.run(&["review", "approve", ungated, "--why", "yes", "--by", "ana"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(
        ran.stderr
            .contains("a control has to be made first: inside-link"),
        "{}",
        ran.stderr
    );
    let decided = std::fs::read_to_string(project.path("reviews/cases.jsonl")).expect("reads");
    assert!(!decided.contains("by-edit"), "{decided}");

    // Taking the comment out is not enough when nothing gates what must be absent.
    let path = "data/variants/file-operations/link-outside--by-edit.toml";
    let text = std::fs::read_to_string(project.path(path)).expect("reads");
    let bare: String = text
        .lines()
        .filter(|line| !line.starts_with(['#']) && !line.starts_with("controls"))
        .map(|line| format!("{line}\n"))
        .collect();
    project.write(path, &bare);
    let ran = project.run(&["review", "approve", ungated, "--why", "yes", "--by", "ana"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("no control gates it"), "{}", ran.stderr);
}

#[test]
fn a_difference_is_shown_with_both_sides_and_its_clause() {
    let project = Project::new();
    project.write(
        "candidates/small/tools.py",
        "def read_file(path):\n    'Read a file.'\n",
    );
    project.write(
        "big/tools/read.py",
        "class ReadFile:\n    def run(self, path):\n        raise ToolError(f'binary file: {path}')\n",
    );
    project.json(&["compare", "--candidate", "small", "--target", "big"]);
    let waiting = subjects(&project, &["--kind", "difference"]);
    let one = waiting
        .iter()
        .find(|subject| subject.contains("error"))
        .unwrap_or_else(|| panic!("{waiting:?}"));
    let ran = project.run(&["review", "show", one]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for expected in [
        "tools/read.py:3",
        "not in     small",
        "── clause tools.read.binary, boundary",
    ] {
        assert!(ran.stdout.contains(expected), "{expected}\n{}", ran.stdout);
    }
    project.json(&[
        "review",
        "reject",
        one,
        "--why",
        "the document says so already",
        "--by",
        "ana",
    ]);
    assert!(!subjects(&project, &["--kind", "difference"]).contains(one));
    let all = project.run(&["review", "list", "--all", "--kind", "difference"]);
    assert!(all.stdout.contains("rejected by ana"), "{}", all.stdout);
}
