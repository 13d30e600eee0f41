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
fn an_explanation_names_clauses_terms_and_fields() {
    let project = collected();
    project.json(&["rank"]);
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
    let number = |value: &Value| value.as_f64().expect("a number");
    let of_fields = |value: &Value| -> f64 {
        let fields = value["fields"].as_object().expect("an object");
        fields.values().map(number).sum()
    };
    let terms = best["terms"].as_array().expect("a list");
    let score = number(&clauses[0]["score"]);
    let sum: f64 = terms.iter().map(|term| number(&term["score"])).sum();
    assert!((sum - score).abs() < 1e-3, "terms add up: {sum} {score}");
    assert!((of_fields(best) - score).abs() < 1e-3, "fields add up");
    for term in terms {
        assert!(
            (of_fields(term) - number(&term["score"])).abs() < 1e-9,
            "{term}"
        );
    }
    assert!(number(&best["fields"]["title"]) > 0.0, "{best}");
    assert_eq!(explained["language"], "eng");

    let billing = project.json(&["rank", "--explain", "example/harness-a#1693"]);
    assert!(billing["relevance"]["factor"].as_f64().expect("a number") < 1.0);
    let unknown = project.run(&["rank", "--explain", "o/n#1"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
}

/// Place, score and clauses of an issue, as explained.
fn explained(project: &Project, key: &str) -> Value {
    project.json(&["rank", "--explain", key])
}

#[test]
fn a_few_new_issues_move_no_score_and_many_renew_all() {
    let project = collected();
    project.json(&["rank"]);
    let before = explained(&project, "example/harness-a#1540");
    let row = |number: u64, title: &str| {
        format!(r#"{{"number": {number}, "title": "{title}", "repository": "o/n"}}"#) + "\n"
    };
    let title = "deny rule of permissions does not stop edit, write and patch";
    project.write("more.jsonl", &(row(1, title) + &row(2, title)));
    project.json(&["collect", "--from", "more.jsonl"]);
    let added = project.json(&["rank"]);
    assert_eq!(
        (&added["n_ranked"], &added["n_issues"]),
        (&2.into(), &97.into())
    );
    let after = explained(&project, "example/harness-a#1540");
    assert_eq!(after["relevance"], before["relevance"]);
    let place = |key: &str| {
        explained(&project, key)["place"]
            .as_u64()
            .expect("a number")
    };
    assert_eq!(place("o/n#2"), place("o/n#1") + 1, "ties go by key");
    let score = |key: &str| explained(&project, key)["relevance"]["score"].clone();
    assert_eq!(score("o/n#1"), score("o/n#2"));
    assert_eq!(project.json(&["rank"])["unchanged"], true);

    // Anew it is as if all had been collected at once.
    let again = order(&project.json(&["rank", "--again"]));
    let at_once = collected();
    at_once.write("more.jsonl", &(row(1, title) + &row(2, title)));
    at_once.json(&["collect", "--from", "more.jsonl"]);
    assert_eq!(again, order(&at_once.json(&["rank"])));

    project.write(
        "many.jsonl",
        &(10..20)
            .map(|number| row(number, "edit"))
            .collect::<String>(),
    );
    project.json(&["collect", "--from", "many.jsonl"]);
    assert_eq!(project.json(&["rank"])["n_ranked"], 107);
}

#[test]
fn what_is_not_ranked_as_it_is_now_is_not_explained() {
    let project = collected();
    let check = || {
        let ran = project.run(&["rank", "--explain", "example/harness-a#1540"]);
        assert_eq!(ran.code, 2, "{}", ran.stdout);
        assert!(ran.stderr.contains("pipeline rank"), "{}", ran.stderr);
    };
    check();
    project.json(&["rank"]);
    let settings = std::fs::read_to_string(project.path("pipeline/rank.toml")).expect("reads");
    project.write(
        "pipeline/rank.toml",
        &settings.replace("title = 1.5", "title = 1.6"),
    );
    check();
}

#[test]
fn without_issues_the_next_step_is_named() {
    let ran = Project::new().run(&["rank"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("pipeline collect"), "{}", ran.stderr);
}
