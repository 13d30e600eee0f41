//! `review`: decisions land in files made for git, and the folders follow them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::project::{Project, repository};

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
        &["review", "note", one, "--by", "ana"],
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
    project.write("candidates/small/tools.py", "def shout():\n    'Aloud.'\n");
    project.write(
        "big/tools/read.py",
        "class ReadFile:\n    def run(self, path):\n        # A NUL byte in the first bytes of the file.\n        \
         if is_binary(path):\n            raise ToolError(f'cannot read the binary file: {path}')\n",
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
        "tools/read.py:5",
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

/// The sample, collected and ranked.
fn sample() -> Project {
    let project = Project::new();
    let sample = repository().join("data/sample/issues.jsonl");
    project.json(&["collect", "--from", sample.to_str().expect("UTF-8")]);
    project.json(&["rank"]);
    project
}

/// What the sample's judge says of the issues of a batch, as lines for `--say`.
fn said(summary: &Value) -> String {
    let path = repository().join("data/sample/judgements.jsonl");
    let text = std::fs::read_to_string(path).expect("reads");
    let relevant: BTreeMap<String, bool> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .map(|one| {
            let repository = one["repository"].as_str().expect("a text");
            let relevant = one["relevant"].as_u64().expect("a number") > 0;
            (format!("{repository}#{}", one["number"]), relevant)
        })
        .collect();
    keys(summary)
        .iter()
        .map(|key| match relevant[key] {
            true => format!("approve {key} a test can show it\n"),
            false => format!("reject {key} no test can show it\n"),
        })
        .collect()
}

fn keys(summary: &Value) -> Vec<String> {
    let batch = summary["batch"].as_array().expect("a list");
    let key = |unread: &Value| unread["key"].as_str().expect("a key").to_owned();
    batch.iter().map(key).collect()
}

#[test]
fn issues_are_read_in_batches_and_the_order_is_learned() {
    let project = sample();
    let first = project.json(&["review", "read", "-n", "75"]);
    assert_eq!(first["order"], "ranking");
    assert_eq!(keys(&first).len(), 75);
    let mut read = project.command(&["review", "read"]);
    // Who is set for good says nothing yet.
    let text = crate::project::ran(read.env("PIPELINE_REVIEWER", "ana")).stdout;
    assert!(text.starts_with("read on: nothing is read yet"), "{text}");

    project.write("said.txt", &said(&first));
    let say = ["review", "read", "--say", "said.txt", "--by", "ana"];
    let second = project.json(&[&say[..], &["-n", "20"]].concat());
    assert_eq!(second["order"], "learned");
    assert_eq!(second["reading"]["n_read"], 75);
    let rest: std::collections::BTreeSet<String> = keys(&second).into_iter().collect();
    assert_eq!(rest.len(), 20);
    assert!(keys(&first).iter().all(|key| !rest.contains(key)));
    let places: Vec<u64> = second["batch"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|unread| unread["place"].as_u64().expect("a number"))
        .collect();
    assert!(
        !places.is_sorted(),
        "another order than that of the ranking"
    );
    assert!(
        second["batch"][0]["words"]
            .as_array()
            .is_some_and(|words| !words.is_empty()),
        "{}",
        second["batch"][0]
    );
    assert_eq!(
        project.json(&["review", "read", "-n", "20"])["batch"],
        second["batch"]
    );
    project.write("cases/README.md", "No case yet.");
    let status = project.json(&["status"]);
    let sentence = status["reading"].as_str().expect("a sentence");
    assert!(sentence.starts_with("read on: 75 of 95 read"), "{sentence}");

    project.write("said.txt", &said(&second));
    let last = project.json(&say);
    assert_eq!(keys(&last), [""; 0]);
    assert_eq!(last["reading"]["stop"], true);
    assert_eq!(last["reading"]["recall_at_least"], 1.0);
    let text = project.run(&["review", "read"]).stdout;
    assert!(
        text.starts_with("stop now: 95 of 95 read, 67 relevant"),
        "{text}"
    );
}

#[test]
fn a_closing_sample_is_read_first_and_bounds_what_is_left() {
    let project = sample();
    let first = project.json(&["review", "read", "-n", "60"]);
    project.write("said.txt", &said(&first));
    project.json(&["review", "read", "--say", "said.txt", "--by", "ana"]);
    let drawn = project.json(&["review", "read", "--sample", "12", "-n", "100"]);
    assert_eq!(drawn["order"], "sample");
    assert_eq!(keys(&drawn).len(), 12);
    assert_eq!(
        drawn["reading"]["elusion"],
        Value::Null,
        "it is not read yet"
    );
    let mut by_place = keys(&drawn);
    by_place.sort();
    project.write("said.txt", &said(&drawn));
    let read = project.json(&[
        "review", "read", "--say", "said.txt", "--by", "ana", "-n", "100",
    ]);
    assert_ne!(read["order"], "sample");
    assert_eq!(keys(&read).len(), 95 - 60 - 12);
    let elusion = &read["reading"]["elusion"];
    assert_eq!(elusion["n_sampled"], 12);
    let n_hits = said(&drawn).matches("approve").count();
    assert_eq!(elusion["n_relevant"], n_hits);
    let bound = read["reading"]["recall_at_least_by_sample"]
        .as_f64()
        .expect("a figure");
    let found = read["reading"]["n_relevant"].as_f64().expect("a number");
    assert!(bound <= found / 67.0, "the bound holds: {bound}");
    let refused = project.run(&["review", "read", "--sample", "90"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

#[test]
fn reading_is_simulated_on_a_judged_set() {
    let project = Project::new();
    let folder = crate::project::repository().join("data/sample");
    let noise: Vec<String> = (1..=150)
        .map(|number| {
            let title = format!("{} nap in the {} tree", number % 7, number % 11);
            json!({"repository": "x/y", "number": number, "title": title, "body": "Koalas."})
                .to_string()
        })
        .collect();
    project.write("noise.jsonl", &noise.join("\n"));
    let simulate = |shuffles: &str| {
        let folder = folder.to_str().expect("UTF-8");
        let judge = [
            "review",
            "read",
            "--judge",
            folder,
            "--among",
            "noise.jsonl",
        ];
        project.json(&[&judge[..], &["--shuffles", shuffles]].concat())
    };
    let simulated = simulate("3");
    assert_eq!(
        (&simulated["n_issues"], &simulated["n_relevant"]),
        (&245.into(), &67.into())
    );
    let figure = |value: &Value, name: &str| value[name].as_f64().expect("a number");
    assert!(figure(&simulated, "wss_95_learned") > 0.5, "{simulated}");
    let ours = &simulated["rules"][0];
    assert_eq!(
        (&ours["rule"], &ours["n_reached"]),
        (&"ours".into(), &3.into())
    );
    // Behind the last relevant one fifty are read, and a batch at most.
    assert!(figure(ours, "mean_read") < 0.7, "{ours}");
    for rule in simulated["rules"].as_array().expect("a list") {
        assert!(
            figure(rule, "lowest_recall") <= figure(rule, "median_recall"),
            "{rule}"
        );
        assert!(figure(rule, "mean_read") > 0.2, "{rule}");
    }
    assert_eq!(simulate("3"), simulated, "the same in every process");
}

#[test]
fn decisions_of_a_file_are_recorded_all_or_none() {
    let project = sample();
    let check = |text: &str, expected: &str| {
        project.write("said.txt", text);
        let ran = project.run(&["review", "read", "--say", "said.txt", "--by", "ana"]);
        assert_eq!(ran.code, 2, "{}", ran.stdout);
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
        assert!(!project.path("reviews/issues.jsonl").exists());
    };
    let good = "approve example/harness-a#1540 it is asserted\n";
    check(
        &format!("{good}maybe example/harness-a#1693 x\n"),
        "said.txt:2: write approve",
    );
    check(
        &format!("{good}reject o/n#1 x\n"),
        "o/n#1 was not collected",
    );
    check(
        &format!("{good}reject example/harness-a#1693\n"),
        "a decision has a reason",
    );
}
