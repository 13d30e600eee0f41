//! `pipeline collect` from files.

use serde_json::json;

use crate::project::{Project, ran, repository};

#[test]
fn the_sample_is_collected_once_and_a_second_time_changes_nothing() {
    let project = Project::new();
    let sample = repository().join("data/sample/issues.jsonl");
    let sample = sample.to_str().expect("a path in UTF-8");
    let first = project.json(&["collect", "--from", sample]);
    assert_eq!(first["n_new"], 95);
    assert_eq!(first["n_pull_requests"], 4);
    assert_eq!(first["unchanged"], false);
    let second = project.json(&["collect", "--from", sample]);
    assert_eq!(
        (&second["n_new"], &second["n_changed"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(second["n_same"], 95);
    assert_eq!(second["unchanged"], true);
    assert_eq!(second["repositories"], first["repositories"]);
}

#[test]
fn broken_rows_are_named_and_the_others_are_kept() {
    let project = Project::new();
    project.write(
        "in/a.jsonl",
        concat!(
            r#"{"number": 1, "title": "one", "repository": "o/n", "body": null, "user": null}"#,
            "\n{\"number\": 2\n",
            r#"{"number": "3", "title": "three", "repository": "o/n"}"#,
            "\n",
            r#"{"number": 4, "title": "four", "repository": "o/n", "pull_request": {}}"#,
            "\n",
            r#"{"number": 5, "title": "five", "repository": "o/n"}"#,
        ),
    );
    project.write(
        "in/b/gh.json",
        r#"[{"number": 6, "title": "six", "body": "x", "createdAt": "2026-01-01T00:00:00Z", "state": "OPEN"},
            {"number": 5, "title": "five again"}]"#,
    );
    let ran = project.run(&["--json", "collect", "--from", "in", "--repository", "o/n"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let summary = ran.json();
    assert_eq!(summary["n_new"], 3);
    assert_eq!(summary["n_pull_requests"], 1);
    assert_eq!(summary["n_repeated"], 1);
    assert_eq!(
        summary["broken"],
        json!([
            "in/a.jsonl:2: not valid JSON: EOF while parsing an object",
            "in/a.jsonl:3: number is \"3\", not a positive integer"
        ])
    );
    assert_eq!(
        summary["repositories"],
        json!({"o/n": {"n_issues": 3, "n_pull_requests": 1}})
    );
}

#[test]
fn a_row_without_a_repository_needs_one_to_be_named() {
    let project = Project::new();
    project.write("gh.json", r#"[{"number": 6, "title": "six"}]"#);
    let ran = project.run(&["--json", "collect", "--from", "gh.json"]);
    assert_eq!(ran.code, 3);
    let summary = ran.json();
    let broken = summary["broken"][0].as_str().expect("a text");
    assert!(
        broken.contains("gh.json:1: names no repository"),
        "{broken}"
    );
}

#[test]
fn files_that_use_a_former_name_belong_to_the_present_one() {
    let project = Project::new();
    let row = |repository: &str, updated_at: &str| json!({"number": 7, "title": "seven", "repository": repository, "updated_at": updated_at});
    let old = row("SST/opencode", "2026-01-01T00:00:00Z");
    let new = row("anomalyco/opencode", "2026-01-02T00:00:00Z");
    project.write("a.jsonl", &format!("{old}\n{new}\n"));
    let summary = project.json(&["collect", "--from", "a.jsonl"]);
    assert_eq!(
        summary["repositories"],
        json!({"anomalyco/opencode": {"n_issues": 1, "n_pull_requests": 0}})
    );
}

#[test]
fn a_path_that_is_not_there_is_a_fault_of_the_words() {
    let project = Project::new();
    let ran = project.run(&["collect", "--from", "nowhere"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("nowhere"), "{}", ran.stderr);
}

#[test]
fn a_database_that_can_only_be_read_is_read_and_a_writer_says_what_is_wrong() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let project = Project::new();
    let sample = repository().join("data/sample/issues.jsonl");
    project.json(&["collect", "--from", sample.to_str().expect("UTF-8")]);
    for folder in ["cases", "candidates", "reviews"] {
        std::fs::create_dir_all(project.path(folder)).expect("makes");
    }
    let mode = |below: &str, bits: u32| {
        std::fs::set_permissions(project.path(below), std::fs::Permissions::from_mode(bits))
            .expect("sets");
    };
    for (below, bits) in [
        ("", 0o755),
        ("data/db/pipeline.sqlite", 0o444),
        ("data/db", 0o555),
    ] {
        mode(below, bits);
    }
    let as_reader = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        // SAFETY: it takes nothing and gives a number.
        if unsafe { libc::geteuid() } == 0 {
            // Root writes everywhere.
            command.uid(65_534);
        }
        ran(&mut command)
    };
    let status = as_reader(&["--json", "status"]);
    assert_eq!(status.code, 0, "{}", status.stderr);
    assert!(status.stdout.contains("95"), "{}", status.stdout);
    let rank = as_reader(&["rank"]);
    assert_eq!(rank.code, 4, "{}", rank.stderr);
    assert!(
        rank.stderr.contains("pipeline.sqlite can only be read"),
        "{}",
        rank.stderr
    );
    mode("data/db", 0o755);
}
