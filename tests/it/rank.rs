//! `pipeline rank` on the sample.

use serde_json::Value;

use crate::project::{Project, repository};

fn sample() -> String {
    let path = repository().join("data/sample/issues.jsonl");
    path.to_str().expect("a path in UTF-8").to_owned()
}

fn collected() -> Project {
    let project = Project::new();
    project.json(&["collect", "--from", &sample()]);
    project
}

/// Keys in the order of the ranking.
fn order(summary: &Value) -> Vec<String> {
    let top = summary["top"].as_array().expect("a list");
    top.iter()
        .map(|issue| issue["key"].as_str().expect("a key").to_owned())
        .collect()
}

#[test]
fn a_second_ranking_does_nothing_until_something_changes() {
    let project = collected();
    let first = project.json(&["rank"]);
    assert_eq!(first["n_issues"], 95);
    assert_eq!(first["unchanged"], false);
    let second = project.json(&["rank"]);
    assert_eq!(second["unchanged"], true);
    assert_eq!(second["top"], first["top"]);
    assert_eq!(project.json(&["rank", "--again"])["unchanged"], false);
    // Each of these is an input.
    let settings = std::fs::read_to_string(project.path("pipeline/rank.toml")).expect("reads");
    project.write(
        "pipeline/rank.toml",
        &settings.replace("title = 1.5", "title = 1.6"),
    );
    assert_eq!(project.json(&["rank"])["unchanged"], false);
    project.write(
        "more.jsonl",
        r#"{"number": 1, "title": "deny rule ignored", "repository": "o/n"}"#,
    );
    project.json(&["collect", "--from", "more.jsonl"]);
    assert_eq!(project.json(&["rank"])["n_issues"], 96);
}

#[test]
fn the_ranking_does_not_depend_on_the_order_of_collecting() {
    let forward = collected().json(&["rank"]);
    let text = std::fs::read_to_string(sample()).expect("reads");
    let backward: Vec<&str> = text.lines().rev().collect();
    let project = Project::new();
    project.write("backward.jsonl", &backward.join("\n"));
    project.json(&["collect", "--from", "backward.jsonl"]);
    assert_eq!(order(&project.json(&["rank"])), order(&forward));
}

#[test]
fn the_sample_is_ranked_well() {
    let folder = repository().join("data/sample");
    let judged = Project::new().json(&["rank", "--judge", folder.to_str().expect("UTF-8")]);
    assert_eq!(
        (&judged["n_issues"], &judged["n_relevant"]),
        (&95.into(), &67.into())
    );
    let at_least = |figure: &str, least: f64| {
        let value = judged["judged"][figure].as_f64().expect("a number");
        assert!(value >= least, "{figure} is {value}");
    };
    at_least("average_precision", 0.98);
    at_least("ndcg_50", 0.98);
    at_least("wss_95", 0.2);
    assert_eq!(judged["ranking"][0]["relevant"], 2);
}

#[test]
fn a_judged_set_can_be_hidden_among_other_issues() {
    let project = Project::new();
    let row = |repository: &str, number: u64, title: &str| {
        format!(r#"{{"repository": "{repository}", "number": {number}, "title": "{title}"}}"#)
            + "\n"
    };
    let others: String = (1..6)
        .map(|number| row("o/n", number, "deny rule does not stop the edit tool"))
        .collect();
    // Of an issue that is there twice the set's own stays.
    project.write(
        "others.jsonl",
        &(others + &row("example/harness-a", 1540, "x")),
    );
    let folder = repository().join("data/sample");
    let sample = folder.to_str().expect("UTF-8");
    let judged = project.json(&["rank", "--judge", sample, "--among", "others.jsonl"]);
    assert_eq!(
        (&judged["n_issues"], &judged["n_unjudged"]),
        (&95.into(), &5.into())
    );
    let precision = |of: &str| judged[of]["average_precision"].as_f64().expect("a number");
    assert!(
        precision("hidden") < precision("judged"),
        "{}",
        judged["hidden"]
    );
    let places = judged["ranking"].as_array().expect("a list");
    assert!(
        places
            .iter()
            .any(|issue| { issue["key"] == "example/harness-a#1540" && issue["title"] != "x" })
    );
    assert_eq!(places.len(), 95);
    assert!(places[94]["place"].as_u64() > Some(95), "places count all");
}

#[test]
fn an_explanation_names_clauses_and_terms() {
    let project = collected();
    let explained = project.json(&["rank", "--explain", "example/harness-a#1540"]);
    assert_eq!(
        explained["title"],
        "retry-after header is not respected on 429"
    );
    let clauses = explained["relevance"]["clauses"]
        .as_array()
        .expect("a list");
    assert_eq!(clauses.len(), 5);
    assert_eq!(clauses[0]["clause"], "deliverable.retry.after");
    let best = &explained["matched_terms"][0];
    assert_eq!(best["clause"], "deliverable.retry.after");
    let sum: f64 = best["terms"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|term| term[1].as_f64().expect("a number"))
        .sum();
    let score = clauses[0]["score"].as_f64().expect("a number");
    assert!((sum - score).abs() < 1e-3, "terms add up: {sum} {score}");

    let billing = project.json(&["rank", "--explain", "example/harness-a#1693"]);
    assert!(billing["relevance"]["factor"].as_f64().expect("a number") < 1.0);
    let unknown = project.run(&["rank", "--explain", "o/n#1"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
}

#[test]
fn without_issues_the_next_step_is_named() {
    let ran = Project::new().run(&["rank"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("pipeline collect"), "{}", ran.stderr);
}
