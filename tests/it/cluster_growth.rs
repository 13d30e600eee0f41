//! `pipeline cluster` when issues and decisions come to clusters that are there: what they touch is made anew, and
//! nothing else.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::project::{Project, repository};

const DATABASE: &str = "data/db/pipeline.sqlite";

fn decisions() -> Vec<String> {
    let text = std::fs::read_to_string(repository().join("reviews/issues.jsonl")).expect("reads");
    text.lines().map(str::to_owned).collect()
}

/// The sample, ranked, with some decisions; clustered.
fn clustered(decisions: &[String]) -> Project {
    let project = Project::new();
    let sample = repository().join("data/sample/issues.jsonl");
    project.json(&["collect", "--from", sample.to_str().expect("UTF-8")]);
    project.json(&["rank"]);
    decide(&project, decisions);
    project.json(&["cluster"]);
    project
}

fn decide(project: &Project, lines: &[String]) {
    project.write("reviews/issues.jsonl", &(lines.join("\n") + "\n"));
}

fn sql(project: &Project, statement: &str) {
    let connection = rusqlite::Connection::open(project.path(DATABASE)).expect("opens");
    connection.execute(statement, []).expect("runs");
}

fn background(project: &Project) -> String {
    let connection = rusqlite::Connection::open(project.path(DATABASE)).expect("opens");
    let sql = "SELECT background FROM cluster_background";
    connection
        .query_row(sql, [], |row| row.get(0))
        .expect("is there")
}

/// The clusters by id.
fn clusters(summary: &Value) -> BTreeMap<String, Value> {
    let clusters = summary["clusters"].as_array().expect("a list").iter();
    clusters
        .map(|cluster| {
            let id = cluster["id"].as_str().expect("an id").to_owned();
            (id, cluster.clone())
        })
        .collect()
}

/// Collects issues that were opened later, ranks them, and reads all of them as relevant.
fn later(project: &Project, issues: &[Value]) -> Value {
    let lines: Vec<String> = issues.iter().map(Value::to_string).collect();
    project.write("later.jsonl", &lines.join("\n"));
    project.json(&["collect", "--from", "later.jsonl"]);
    let ranked = project.json(&["rank"]);
    let mut all = decisions();
    all.extend(issues.iter().map(|issue| {
        let key = format!("issue:{}#{}", issue["repository"].as_str().expect("a text"), issue["number"]);
        json!({"at": "2026-12-01T00:00:00Z", "by": "sample", "on": key, "digest": "", "decision": "approve", "why": ""})
            .to_string()
    }));
    decide(project, &all);
    ranked
}

fn opened(number: u64, title: &str, body: &str) -> Value {
    json!({
        "repository": "example/harness-a", "number": number, "title": title, "body": body,
        "updated_at": "2027-01-01T00:00:00Z",
    })
}

#[test]
fn an_increment_finds_what_grouping_all_of_them_finds() {
    let mut first = decisions();
    let later: Vec<String> = [20, 10, 5].map(|idx| first.remove(idx)).into();
    assert!(later.iter().all(|line| line.contains("approve")));
    let (quick, thorough) = (clustered(&first), clustered(&first));
    // Without it everything is counted and looked at.
    sql(&thorough, "DELETE FROM cluster_background");
    sql(
        &quick,
        "UPDATE cluster_clusters SET effect = 'as it was stored'",
    );
    for project in [&quick, &thorough] {
        decide(project, &decisions());
    }
    let mut found = clusters(&quick.json(&["cluster"]));
    let expected = clusters(&thorough.json(&["cluster"]));
    let is_stored = |cluster: &&mut Value| cluster["effect"] == "as it was stored";
    let (n_clusters, mut n_stayed) = (found.len(), 0);
    for cluster in found.values_mut().filter(is_stored) {
        cluster["effect"] = expected[cluster["id"].as_str().expect("an id")]["effect"].clone();
        n_stayed += 1;
    }
    assert!(
        n_stayed > 0 && n_stayed < n_clusters,
        "{n_stayed} of {n_clusters}"
    );
    assert_eq!(found, expected);
}

#[test]
fn what_was_counted_is_kept_until_all_issues_are_ranked_anew() {
    let project = clustered(&decisions());
    let before = clusters(&project.json(&["cluster"]));
    let counted = background(&project);
    let hook = "A before_tool hook that runs longer than its limit is killed and the call goes on.";
    let ranked = later(
        &project,
        &[opened(9001, "Hook is killed at its limit", hook)],
    );
    assert_eq!(ranked["n_ranked"], 1);
    let summary = project.json(&["cluster"]);
    assert_eq!(summary["n_before"], before.len());
    assert_eq!(background(&project), counted);
    stays(&before, &clusters(&summary));

    let many: Vec<Value> = (9001..9021)
        .map(|number| opened(number, &format!("Zebra {number}"), "Quagga okapi tapir."))
        .collect();
    let ranked = later(&project, &many);
    assert_eq!(ranked["n_ranked"], ranked["n_issues"]);
    let before = clusters(&summary);
    let summary = project.json(&["cluster"]);
    assert_ne!(background(&project), counted);
    stays(&before, &clusters(&summary));
    assert_eq!(summary["n_issues"], 67 + 20);
}

/// Every issue is in the cluster that it was in.
fn stays(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) {
    for (id, cluster) in before {
        let now = after[id]["members"].as_array().expect("a list");
        for member in cluster["members"].as_array().expect("a list") {
            assert!(now.contains(member), "{member} left {id}");
        }
    }
}

#[test]
fn a_cluster_says_what_its_issues_say_now() {
    let project = clustered(&decisions());
    let told = "The answer to a zebra is an okapi.";
    later(&project, &[opened(9001, "Zebra crossing", told)]);
    let of = |summary: &Value, id: &str| clusters(summary).remove(id);
    let first = project.json(&["cluster"]);
    let zebra = of(&first, "zebra-crossing").expect("it is alone");
    assert_eq!(zebra["label"], "Zebra crossing");
    let mut changed = opened(9001, "Zebra in the zoo", told);
    changed["updated_at"] = json!("2027-06-01T00:00:00Z");
    assert_eq!(later(&project, &[changed])["n_ranked"], 1);
    let second = project.json(&["cluster"]);
    let zebra = of(&second, "zebra-crossing").expect("it keeps its id");
    assert_eq!(zebra["label"], "Zebra in the zoo");
    assert_eq!(clusters(&second).len(), clusters(&first).len());
}
