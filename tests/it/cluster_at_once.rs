//! Two clusterings at once, and one that is killed: what is stored is always what one run made, with the inputs it had.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::DateTime;
use doc2harness::paths;
use doc2harness::stages::{Context, Progress, cluster};
use serde_json::{Value, json};

use crate::project::{Project, repository};

const DATABASE: &str = "data/db/pipeline.sqlite";

/// The sample with what was read of it, clustered.
fn clustered() -> (Project, Value) {
    let project = Project::new();
    let sample = repository().join("data/sample/issues.jsonl");
    project.json(&["collect", "--from", sample.to_str().expect("UTF-8")]);
    project.json(&["rank"]);
    let read = std::fs::read_to_string(repository().join("reviews/issues.jsonl")).expect("reads");
    project.write("reviews/issues.jsonl", &read);
    let summary = project.json(&["cluster"]);
    (project, summary)
}

/// The members of the clusters of several issues.
fn several(summary: &Value) -> Vec<Vec<String>> {
    let clusters = summary["clusters"].as_array().expect("a list").iter();
    let members = clusters.map(|cluster| {
        let keys = cluster["members"].as_array().expect("a list").iter();
        let keys = keys.map(|key| key.as_str().expect("a key").to_owned());
        keys.collect::<Vec<String>>()
    });
    members.filter(|members| members.len() > 1).collect()
}

/// Takes each issue of a cluster from the first one of it.
fn part(project: &Project, members: &[String]) {
    let lines: Vec<String> = members[1..]
        .iter()
        .map(|other| {
            let on = format!("pair:{}={other}", members[0]);
            json!({"at": "2026-12-01T00:00:00Z", "by": "sample", "on": on, "digest": "", "decision": "reject", "why": ""})
                .to_string()
        })
        .collect();
    project.write("reviews/pairs.jsonl", &(lines.join("\n") + "\n"));
}

fn in_one(summary: &Value, a: &str, b: &str) -> bool {
    let holds = |members: &Vec<String>, key: &str| members.iter().any(|member| member == key);
    let clusters = several(summary);
    clusters.iter().any(|one| holds(one, a) && holds(one, b))
}

/// What comes while a run is under way, once.
struct Meanwhile<F> {
    come: F,
    has_come: AtomicBool,
}

impl<F: Fn() + Send + Sync> Progress for Meanwhile<F> {
    fn begin(&self, _what: &str, _total: Option<u64>) {
        if !self.has_come.swap(true, Ordering::SeqCst) {
            (self.come)();
        }
    }
    fn advance(&self, _n: u64) {}
    fn note(&self, _text: &str) {}
    fn end(&self, _text: &str) {}
}

#[test]
fn a_run_that_another_one_overtook_goes_by_what_is_there_now() {
    let (project, first) = clustered();
    let members = several(&first).swap_remove(0);
    assert!(in_one(&first, &members[0], &members[1]));
    let project = Arc::new(project);
    // The first of the runs has a reason of its own to make clusters: one decision less than the sample has.
    let text = std::fs::read_to_string(project.path("reviews/issues.jsonl")).expect("reads");
    let (_, fewer) = text.split_once('\n').expect("there are lines");
    project.write("reviews/issues.jsonl", fewer);
    let other = Arc::clone(&project);
    let parted = members.clone();
    let meanwhile = Meanwhile {
        come: move || {
            part(&other, &parted);
            let summary = other.json(&["cluster"]);
            assert!(!in_one(&summary, &parted[0], &parted[1]));
        },
        has_come: AtomicBool::new(false),
    };
    let context = Context {
        project: paths::Project::find(&project.path("")).expect("it is a project"),
        progress: Box::new(meanwhile),
        now: DateTime::UNIX_EPOCH,
    };
    let config = cluster::Config::read(&context.project).expect("the settings are valid");
    let summary = cluster::run(&context, &config).expect("clusters");
    let summary = serde_json::to_value(summary).expect("is JSON");
    assert!(!in_one(&summary, &members[0], &members[1]));
    let last = project.json(&["cluster"]);
    assert_eq!(last["unchanged"], true);
    assert_eq!(last["clusters"], summary["clusters"]);
    let all = last["clusters"].as_array().expect("a list").iter();
    let n_members: usize = all
        .map(|one| one["members"].as_array().map_or(0, Vec::len))
        .sum();
    assert_eq!(last["n_issues"], n_members, "no issue is lost");
}

#[test]
fn clusters_are_stored_with_the_inputs_of_their_run_or_not_at_all() {
    let (project, first) = clustered();
    let sql = |statement: &str| {
        let connection = rusqlite::Connection::open(project.path(DATABASE)).expect("opens");
        connection.execute_batch(statement).expect("runs");
    };
    sql("CREATE TRIGGER cut BEFORE UPDATE ON stage_log BEGIN SELECT RAISE(ABORT, 'cut'); END");
    let members = several(&first).swap_remove(0);
    part(&project, &members);
    assert_ne!(project.run(&["cluster"]).code, 0);
    // The decision is taken away: the clusters are those that were made before it.
    std::fs::remove_file(project.path("reviews/pairs.jsonl")).expect("removes");
    let again = project.json(&["cluster"]);
    assert_eq!(again["unchanged"], true);
    assert_eq!(again["clusters"], first["clusters"]);
    sql("DROP TRIGGER cut");
    part(&project, &members);
    let parted = project.json(&["cluster"]);
    assert!(!in_one(&parted, &members[0], &members[1]));
}
