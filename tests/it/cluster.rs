//! `pipeline cluster` and `pipeline filter` on the sample.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::project::{Project, repository};

fn text_of(below: &str) -> String {
    std::fs::read_to_string(repository().join(below)).expect("reads")
}

/// The sample, collected and ranked; nothing is read yet.
fn ranked() -> Project {
    let project = Project::new();
    let sample = repository().join("data/sample/issues.jsonl");
    project.json(&["collect", "--from", sample.to_str().expect("UTF-8")]);
    project.json(&["rank"]);
    project
}

fn read() -> Project {
    let project = ranked();
    project.write("reviews/issues.jsonl", &text_of("reviews/issues.jsonl"));
    project
}

/// Members by cluster.
fn members(summary: &Value) -> BTreeMap<String, Vec<String>> {
    let clusters = summary["clusters"].as_array().expect("a list");
    clusters
        .iter()
        .map(|cluster| {
            let members = cluster["members"].as_array().expect("a list");
            let keys = members
                .iter()
                .map(|key| key.as_str().expect("a key").to_owned());
            let id = cluster["id"].as_str().expect("an id");
            (id.to_owned(), keys.collect())
        })
        .collect()
}

#[test]
fn what_was_read_as_relevant_is_clustered_once() {
    let project = read();
    let first = project.json(&["cluster"]);
    assert_eq!(first["material"], "read");
    assert_eq!(
        (&first["n_issues"], &first["n_missing"]),
        (&67.into(), &0.into())
    );
    let clusters = members(&first);
    let all: BTreeSet<&String> = clusters.values().flatten().collect();
    assert_eq!(all.len(), 67, "every issue is in exactly one cluster");
    let second = project.json(&["cluster"]);
    assert_eq!(second["unchanged"], true);
    assert_eq!(second["clusters"], first["clusters"]);
    let again = project.json(&["cluster", "--again"]);
    assert_eq!(
        again["clusters"], first["clusters"],
        "the same in every process"
    );
}

#[test]
fn a_decision_that_is_taken_back_takes_one_issue_away_and_leaves_the_other_ids() {
    let project = read();
    let before = members(&project.json(&["cluster"]));
    let gone = before
        .values()
        .find(|members| members.len() == 1)
        .expect("there is a cluster of one")[0]
        .clone();
    let undo = format!(
        r#"{{"at": "2026-12-01T00:00:00Z", "by": "sample", "on": "issue:{gone}", "digest": "", "decision": "undo", "why": ""}}"#
    );
    let decisions = text_of("reviews/issues.jsonl");
    project.write("reviews/issues.jsonl", &format!("{decisions}{undo}\n"));
    let mut expected = before;
    expected.retain(|_, members| members[0] != gone);
    assert_eq!(members(&project.json(&["cluster"])), expected);
}

/// The clusters' members as sets, without their ids.
fn groups(summary: &Value) -> BTreeSet<Vec<String>> {
    members(summary).into_values().collect()
}

#[test]
fn issues_that_are_read_later_join_or_open_clusters_and_move_no_other() {
    let project = ranked();
    let decisions = text_of("reviews/issues.jsonl");
    let lines: Vec<&str> = decisions.lines().collect();
    let mut before: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut n_joined, mut n_opened) = (0, 0);
    for n in [30, 45, 60, lines.len()] {
        project.write("reviews/issues.jsonl", &(lines[..n].join("\n") + "\n"));
        let summary = project.json(&["cluster"]);
        assert_eq!(summary["n_before"], before.len());
        let after = members(&summary);
        for (id, members) in &before {
            let now = &after[id];
            assert!(members.iter().all(|key| now.contains(key)), "{id}: {now:?}");
            n_joined += now.len() - members.len();
        }
        n_opened += after.len() - before.len();
        before = after;
    }
    assert!(n_joined > 3 && n_opened > 20, "{n_joined} {n_opened}");
    // Clusters that grew are not the ones that are made at once; --again makes them so.
    let fresh = read();
    let at_once = fresh.json(&["cluster"]);
    assert_ne!(groups(&at_once), before.into_values().collect());
    assert_eq!(
        groups(&project.json(&["cluster", "--again"])),
        groups(&at_once)
    );
}

#[test]
fn what_reviewers_say_of_two_issues_survives_clustering() {
    let project = read();
    let first = members(&project.json(&["cluster"]));
    let big = first.values().find(|members| members.len() >= 3);
    let big = big.expect("there is a big cluster").clone();
    let mut singles = first.values().filter(|members| members.len() == 1);
    let single = singles.next().expect("there is a single issue")[0].clone();
    let say = |verb: &str, a: &str, b: &str| {
        let pair = format!("pair:{a}={b}");
        project.json(&["review", verb, &pair, "--by", "ana", "--why", "read both"]);
    };
    say("reject", &big[0], &big[2]);
    say("approve", &big[2], &single);
    let holding = |summary: &Value, key: &str| {
        let holds = |members: &Vec<String>| members.iter().any(|member| member == key);
        groups(summary).into_iter().find(holds).expect("is there")
    };
    for arguments in [&["cluster"][..], &["cluster", "--again"]] {
        let summary = project.json(arguments);
        let (apart, together) = (holding(&summary, &big[0]), holding(&summary, &big[2]));
        assert!(!apart.contains(&big[2]), "{arguments:?}: {apart:?}");
        assert!(together.contains(&single), "{arguments:?}: {together:?}");
        assert_eq!(summary["n_contradicted"], 0);
    }
    say("approve", &big[0], &single);
    let contradicted = project.json(&["cluster"]);
    assert_eq!(contradicted["n_contradicted"], 1);
    let words = project.run(&["cluster"]).stdout;
    assert!(words.contains("1 pair was taken apart"), "{words}");
    // What is taken back is as if it had not been said.
    for (a, b) in [(&big[0], &big[2]), (&big[2], &single), (&big[0], &single)] {
        say("undo", a, b);
    }
    let last = project.json(&["cluster"]);
    assert_eq!(groups(&last), first.into_values().collect());
    let unknown = project.run(&["review", "approve", "pair:o/n#1=o/n#2", "--why", "x"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
}

#[test]
fn before_anything_is_read_the_top_of_the_ranking_is_taken_only_when_asked() {
    let project = ranked();
    let refused = project.run(&["cluster"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("pipeline review"),
        "{}",
        refused.stderr
    );
    let summary = project.json(&["cluster", "--all"]);
    assert_eq!(summary["material"], "top-of-ranking");
    assert_eq!(summary["n_issues"], 95);
    let words = project.run(&["cluster", "--all"]);
    assert!(
        words.stdout.contains("nothing was read yet"),
        "{}",
        words.stdout
    );
}

#[test]
fn a_stale_ranking_is_not_clustered() {
    let project = read();
    project.write(
        "more.jsonl",
        r#"{"number": 1, "title": "deny rule ignored", "repository": "o/n"}"#,
    );
    project.json(&["collect", "--from", "more.jsonl"]);
    let ran = project.run(&["cluster"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("pipeline rank"), "{}", ran.stderr);
}

#[test]
fn the_phenomena_of_the_sample_are_found() {
    let folder = repository().join("data/sample");
    let judged = Project::new().json(&["cluster", "--judge", folder.to_str().expect("UTF-8")]);
    assert_eq!(
        (&judged["n_items"], &judged["n_true"]),
        (&67.into(), &34.into())
    );
    for (figure, least) in [("f1", 0.6), ("recall", 0.65), ("adjusted_rand", 0.6)] {
        let value = judged[figure].as_f64().expect("a number");
        assert!(value >= least, "{figure} is {value}");
    }
}

#[test]
fn a_threshold_is_judged_on_phenomena_that_had_no_part_in_its_choice() {
    let folder = repository().join("data/sample");
    let folder = folder.to_str().expect("UTF-8");
    let project = Project::new();
    let judged = project.json(&["cluster", "--judge", folder, "--folds", "5"]);
    let crossed = &judged["crossed"];
    let figure = |name: &str| crossed[name].as_f64().expect("a number");
    assert_eq!(
        (&crossed["n_pairs"], &crossed["n_parts"]),
        (&2211.into(), &5.into())
    );
    assert!(figure("f1") > 0.45, "{crossed}");
    // It is no better than the cut that was chosen on all of them.
    assert!(
        figure("f1") < judged["f1"].as_f64().expect("a number"),
        "{crossed}"
    );
    assert!(figure("lowest_f1") < figure("f1") && figure("f1") < figure("highest_f1"));
    assert!(judged["pairs"].is_null());

    // Named pairs: each two of the first issues, duplicates when they are of one phenomenon.
    let mut known: Vec<(String, String)> = Vec::new();
    for line in text_of("data/sample/judgements.jsonl").lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        if let (Some(phenomenon), true) = (row["phenomenon"].as_str(), row["relevant"] != 0) {
            let key = format!(
                "{}#{}",
                row["repository"].as_str().expect("a text"),
                row["number"]
            );
            known.push((key, phenomenon.to_owned()));
        }
    }
    let mut lines = String::new();
    for (idx, (a, of_a)) in known.iter().enumerate() {
        for (b, of_b) in &known[idx + 1..] {
            lines += &format!(
                r#"{{"a": "{a}", "b": "{b}", "duplicate": {}}}"#,
                of_a == of_b
            );
            lines.push('\n');
        }
    }
    project.write("pairs.jsonl", &lines);
    let named = project.json(&["cluster", "--judge", folder, "--pairs", "pairs.jsonl"]);
    let pairs = &named["pairs"];
    let figure = |name: &str| pairs[name].as_f64().expect("a number");
    assert_eq!(pairs["n_pairs"], 2211);
    // All called duplicates would be .04.
    assert!(figure("f1") > 0.2 && figure("f1") < 0.8, "{pairs}");
    assert!(figure("f1") < figure("f1_in_hindsight"), "{pairs}");
    let evidence = &pairs["weights"]["evidence"];
    assert!(evidence.as_f64().expect("a number") > 0.0, "{pairs}");
    project.write(
        "pairs.jsonl",
        r#"{"a": "o/n#1", "b": "o/n#2", "duplicate": true}"#,
    );
    let refused = project.run(&["cluster", "--judge", folder, "--pairs", "pairs.jsonl"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("o/n#1 is no relevant issue"),
        "{}",
        refused.stderr
    );
}

fn outcome<'a>(summary: &'a Value, cluster: &str) -> &'a Value {
    let outcomes = summary["outcomes"].as_array().expect("a list");
    let found = outcomes
        .iter()
        .find(|outcome| outcome["cluster"] == cluster);
    found.unwrap_or_else(|| panic!("{cluster} is there"))
}

#[test]
fn the_filter_names_a_rule_for_every_cluster_that_it_drops() {
    let project = read();
    let refused = project.run(&["filter"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let clusters = members(&project.json(&["cluster"]));
    let first = project.json(&["filter"]);
    assert_eq!(first["n_clusters"], clusters.len());
    let slow = outcome(&first, "startup-takes-eight-seconds-in-a-big-repository");
    assert_eq!(
        (&slow["kept"], &slow["rule"]),
        (&false.into(), &"timing".into())
    );
    assert!(slow["reason"].as_str().expect("a text").contains("slow"));
    let colours = "diff-colours-in-the-approval-prompt-are";
    assert_eq!(outcome(&first, colours)["rule"], "picture");
    let second = project.json(&["filter"]);
    assert_eq!(second["unchanged"], true);
    assert_eq!(second["outcomes"], first["outcomes"]);

    // Another run of `cluster` takes the outcomes along.
    project.json(&["cluster", "--again"]);
    assert_eq!(project.run(&["filter", "--list"]).code, 2);
}

#[test]
fn every_drop_is_listed_with_its_facts_and_can_be_restored() {
    let project = read();
    project.json(&["cluster"]);
    let first = project.json(&["filter"]);
    let list = || project.json(&["filter", "--list"]);
    let names = |listing: &Value, which: &str| -> Vec<String> {
        let rows = listing[which].as_array().expect("a list").iter();
        rows.map(|row| row["cluster"].as_str().expect("a text").to_owned())
            .collect()
    };
    let dropped = names(&list(), "dropped");
    let n_dropped = first["n_clusters"].as_u64().expect("n") - first["n_kept"].as_u64().expect("n");
    assert!(
        n_dropped >= 2 && dropped.len() as u64 == n_dropped,
        "{dropped:?}"
    );
    let words = project.run(&["filter", "--list"]).stdout;
    for id in &dropped {
        assert!(words.contains(id.as_str()), "{id}: {words}");
    }
    assert!(
        words.contains("not deterministic"),
        "the rule is explained: {words}"
    );
    assert!(words.contains("pipeline filter --restore"), "{words}");

    let refused = |arguments: &[&str], expected: &str| {
        let ran = project.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert!(
            ran.stderr.contains(expected),
            "{arguments:?}: {}",
            ran.stderr
        );
    };
    refused(
        &[
            "filter",
            "--restore",
            "nothing",
            "--why",
            "x",
            "--by",
            "ana",
        ],
        "--list",
    );
    refused(
        &["filter", "--restore", &dropped[0], "--by", "ana"],
        "--why",
    );
    // Each of them comes back, and stays when the clusters are filtered again.
    for id in &dropped {
        let restore = [
            "filter",
            "--restore",
            id,
            "--why",
            "an effect of its own",
            "--by",
            "ana",
        ];
        let outcome = outcome(&project.json(&restore), id).clone();
        assert_eq!(outcome["kept"], true, "{outcome}");
        let reason = outcome["reason"].as_str().expect("a text");
        assert!(reason.contains("ana: an effect of its own"), "{reason}");
    }
    assert_eq!(names(&list(), "dropped"), [""; 0]);
    assert_eq!(names(&list(), "restored").len(), dropped.len());
    let waiting = project.json(&["review", "list", "--kind", "cluster"]);
    assert_eq!(waiting["n_waiting"], first["n_clusters"]);
    // What is taken back is dropped again, with the reason that it had.
    let undone = format!("drop:{}", dropped[0]);
    assert!(
        project
            .run(&["review", "show", &undone])
            .stdout
            .contains(&undone)
    );
    project.json(&["review", "undo", &undone, "--by", "ana"]);
    let last = project.json(&["filter"]);
    assert_eq!(last["unchanged"], false);
    assert_eq!(outcome(&last, &dropped[0]), outcome(&first, &dropped[0]));
}

#[test]
fn a_case_covers_the_cluster_that_it_came_from() {
    let project = read();
    let clusters = members(&project.json(&["cluster"]));
    let (cluster, members) = clusters
        .iter()
        .find(|(_, members)| members.iter().any(|key| key == "example/harness-a#1217"))
        .expect("the issue is in a cluster");
    assert!(members.len() > 1);
    let before = project.json(&["filter"]);
    assert_eq!(outcome(&before, cluster)["kept"], true);
    project.write(
        "cases/file-operations/link.toml",
        r#"
title    = "another matter altogether"
purpose  = "Only its source says where it came from."
clause   = "exit-codes.success.answer"
category = "file-operations"
scenario = "boundary"
origin   = { method = "issues", sources = ["example/harness-a#1217"] }

[[launch]]
route  = "headless"
prompt = "hello"
script = [{ say = "done" }]

[[expect]]
channel = "exit"
equals  = 0
"#,
    );
    let after = project.json(&["filter"]);
    let covered = outcome(&after, cluster);
    assert_eq!(covered["rule"], "covered", "{covered}");
    assert_eq!(covered["counterpart"], "file-operations/link");
}
