//! `pipeline build` with builders of one line.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::check;
use crate::project::{Project, ran};

fn build(project: &Project, builder: &str) -> (i32, Value) {
    let small = project.path("candidates/small").display().to_string();
    let builder = builder.replace("SMALL", "/shown/small");
    let ran = project.run(&[
        "--json",
        "build",
        "--name",
        "b",
        "--builder",
        &builder,
        "--show",
        &small,
    ]);
    assert!(!ran.stdout.is_empty(), "{}", ran.stderr);
    (ran.code, ran.json())
}

#[test]
fn a_builder_that_fills_the_skeleton_in_gets_a_frozen_candidate() {
    let project = check::project();
    let (code, built) = build(&project, "find . -type f | sort; cp -r SMALL/. .");
    assert_eq!(
        (code, &built["build"]["state"]),
        (0, &Value::from("passed")),
        "{built:#}"
    );
    let transcript =
        std::fs::read_to_string(project.path("data/builds/b/round-1.stdout")).expect("is kept");
    let expected = [
        "./DOCUMENT.md",
        "./harness",
        "./harness_agent/api.py",
        "./harness_agent/cli.py",
        "./harness_agent/headless.py",
        "./harness_agent/protocols.py",
        "./harness_agent/types.py",
        "./install.sh",
        "./pyproject.toml",
    ];
    assert_eq!(
        transcript.lines().collect::<Vec<_>>(),
        expected,
        "the folder is fresh"
    );

    assert!(project.path("data/builds/b/b/harness").exists());
    assert!(!project.path("data/builds/b/b/DOCUMENT.md").exists());
    let record =
        std::fs::read_to_string(project.path("data/frozen/records/b.json")).expect("is frozen");
    let record: Value = serde_json::from_str(&record).expect("is JSON");
    assert_eq!(record["digest"], built["build"]["rounds"][0]["digest"]);
    assert_eq!(
        project.json(&["check", "data/builds/b/b"])["candidates"][0]["digest"],
        record["digest"]
    );
}

#[test]
fn findings_come_back_until_the_submissions_are_used_up() {
    let project = check::project();
    let (code, built) = build(&project, "true");
    assert_eq!(
        (code, &built["build"]["state"]),
        (1, &Value::from("failed"))
    );
    let rounds = built["build"]["rounds"].as_array().expect("a list");
    assert_eq!(rounds.len(), 5);
    let first = rounds[0]["findings"][0].as_str().expect("a text");
    assert!(
        first.starts_with("harness:1: `harness version` ends with 1"),
        "{first}"
    );
    assert!(!project.path("data/frozen/records/b.json").exists());
}

#[test]
fn the_next_round_sees_the_findings() {
    let project = check::project();
    let (code, built) = build(
        &project,
        "if [ -e FINDINGS.md ]; then cat FINDINGS.md; cp -r SMALL/. .; fi",
    );
    assert_eq!(
        (code, &built["build"]["state"]),
        (0, &Value::from("passed")),
        "{built:#}"
    );
    assert_eq!(built["build"]["rounds"].as_array().map(Vec::len), Some(2));
    let transcript =
        std::fs::read_to_string(project.path("data/builds/b/round-2.stdout")).expect("is kept");
    assert!(
        transcript.starts_with("# Findings in submission 1\n\n- harness:1: "),
        "{transcript}"
    );
    assert!(
        transcript.contains("- harness_agent/cli.py:4: the body of `main` is a placeholder"),
        "{transcript}"
    );
    assert!(!project.path("data/builds/b/b/FINDINGS.md").exists());
}

#[test]
fn a_builder_that_fails_has_submitted_nothing() {
    let project = check::project();
    let (code, built) = build(&project, "cp -r SMALL/. .; echo why >&2; exit 3");
    assert_eq!(
        (code, &built["build"]["state"]),
        (1, &Value::from("not-delivered"))
    );
    assert_eq!(built["build"]["rounds"][0]["ended"], "exit 3");
    let said =
        std::fs::read_to_string(project.path("data/builds/b/round-1.stderr")).expect("is kept");
    assert_eq!(said, "why\n");
    assert_eq!(
        ran(&mut project.command(&["build", "--name", "b", "--builder", "true"])).code,
        2,
        "the name is taken"
    );
}

#[test]
fn what_cannot_be_copied_is_a_finding() {
    let project = check::project();
    let (code, built) = build(&project, "touch \"$(printf 'a\\377')\"");
    assert_eq!(
        (code, &built["build"]["state"]),
        (1, &Value::from("failed"))
    );
    let first = built["build"]["rounds"][0]["findings"][0]
        .as_str()
        .expect("a text");
    assert_eq!(
        first,
        ".:1: a\u{fffd} is neither a file, a folder nor a link with a name in UTF-8"
    );
}

#[test]
fn a_killed_build_is_void() {
    let project = check::project();
    let mut command = project.command(&["build", "--name", "dead", "--builder", "echo; sleep 600"]);
    let mut child = command.spawn().expect("starts");
    let record = project.path("data/builds/dead/build.json");
    let began = Instant::now();
    while !record.exists() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("is killed");
    child.wait().expect("is gone");
    let state = || -> Value {
        let text = std::fs::read_to_string(&record).expect("there is a record");
        serde_json::from_str(&text).expect("is JSON")
    };
    assert_eq!(state()["state"], "running");
    let (_, built) = build(&project, "exit 1");
    assert_eq!(built["voided"][0], "dead");
    assert_eq!(state()["state"], "void");
}
