//! The whole line on the bundled sample, and the bundled suite on the bundled candidates, in both sandboxes.

use serde_json::Value;

use crate::project::{Project, docker_asked};

/// Passed and failed cases of a candidate.
fn passes(verdicts: &Value, candidate: &str) -> (usize, usize) {
    let verdicts = verdicts.as_array().expect("verdicts");
    let mine = verdicts
        .iter()
        .filter(|verdict| verdict["candidate"] == candidate);
    let (passed, rest): (Vec<&Value>, Vec<&Value>) =
        mine.partition(|verdict| verdict["outcome"]["status"] == "passed");
    (passed.len(), rest.len())
}

fn states(run: &Value) -> Vec<(String, Option<bool>)> {
    let steps = run["steps"].as_array().expect("steps");
    steps
        .iter()
        .map(|step| {
            (
                step["stage"].as_str().expect("a name").to_owned(),
                step["done"].as_bool(),
            )
        })
        .collect()
}

#[test]
fn the_line_runs_end_to_end_and_then_has_nothing_to_do() {
    let project = Project::whole();
    let first = project.json(&["run"]);
    assert!(
        states(&first).iter().all(|(_, done)| *done != Some(false)),
        "{:?}",
        states(&first)
    );
    let verdicts = &first["evaluation"]["verdicts"];
    let (passed, failed) = passes(verdicts, "reference");
    assert!(
        passed >= 328 && failed == 0,
        "the reference passes everything: {passed}, {failed}"
    );
    assert_eq!(
        passes(verdicts, "unchanged").0,
        0,
        "the bare skeleton passes nothing"
    );
    let unmasked = verdicts
        .as_array()
        .expect("verdicts")
        .iter()
        .filter(|verdict| verdict["candidate"] == "mutants/tools-return-nothing")
        .filter(|verdict| verdict["outcome"]["reason"] == "control")
        .count();
    assert!(
        unmasked >= 10,
        "controls unmask what proves nothing: {unmasked}"
    );
    let page = project
        .path("data/runs")
        .join(first["evaluation"]["run"].as_str().expect("an id"));
    let page = std::fs::read_to_string(page.join("report/report.html")).expect("a report");
    assert!(page.contains("reference"));
    // The words of cases and clauses name addresses; nothing is loaded from one.
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"));

    let second = project.json(&["run"]);
    assert!(
        states(&second).iter().all(|(_, done)| *done != Some(true)),
        "{:?}",
        states(&second)
    );
    assert_eq!(second["evaluation"]["run"], first["evaluation"]["run"]);

    project.write("data/document/99-more.md", "# More\n\n### more.is.less · ordinary\n**Syntax** s\n**Meaning** m\n**Behaviour** b\n**Channels** exit\n");
    let third = states(&project.json(&["run"]));
    assert!(
        third.contains(&("rank".to_owned(), Some(true))),
        "a new clause: {third:?}"
    );
    assert!(
        third.contains(&("evaluate".to_owned(), Some(false))),
        "the suite is as before: {third:?}"
    );
}

#[test]
fn containers_give_the_same_verdicts() {
    if !docker_asked() {
        return;
    }
    let project = Project::whole();
    let candidates = ["-c", "reference", "-c", "mutants/tools-return-nothing"];
    let mut seen = Vec::new();
    for sandbox in ["namespace", "docker"] {
        let arguments = [
            &["--json", "evaluate", "--sandbox", sandbox, "--shuffle", "7"],
            &candidates[..],
        ]
        .concat();
        let ran = project.run(&arguments);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let verdicts = ran.json()["verdicts"].clone();
        let of_reference = |verdict: &&Value| verdict["candidate"] == "reference";
        let fails: Vec<&Value> = verdicts
            .as_array()
            .into_iter()
            .flatten()
            .filter(of_reference)
            .filter(|verdict| verdict["outcome"]["status"] != "passed")
            .collect();
        assert!(fails.is_empty(), "{sandbox}: {fails:#?}");
        seen.push(verdicts.as_array().expect("verdicts").clone());
    }
    let said = |verdict: &Value| {
        let outcome = &verdict["outcome"];
        let parts = [
            &verdict["candidate"],
            &verdict["case"],
            &outcome["status"],
            &outcome["reason"],
        ];
        parts.map(Value::to_string)
    };
    let differ = |(a, b): &(&Value, &Value)| said(a) != said(b);
    let different: Vec<(&Value, &Value)> = seen[0].iter().zip(&seen[1]).filter(differ).collect();
    assert!(different.is_empty(), "{different:#?}");
    assert_eq!(seen[0].len(), seen[1].len());
}

#[test]
fn the_suite_is_proven_and_its_certificate_is_current() {
    let project = Project::whole();
    let ran = project.run(&["--json", "certify", "--check", "--sample", "150"]);
    assert_eq!(
        ran.code, 0,
        "type `pipeline certify`\n{}{}",
        ran.stdout, ran.stderr
    );
    let proof = &ran.json()["proof"];
    let count = |of: &Value| of.as_u64().expect("a number");
    // What the suite promises of its size; it may only grow beyond.
    for (part, name, least) in [
        ("by_category", "permissions", 61),
        ("by_category", "file-operations", 75),
        ("by_category", "session-state", 84),
        ("by_category", "headless", 40),
        ("by_category", "direct-drive", 33),
        ("by_category", "interactive-terminal", 20),
        ("by_category", "artifact-checks", 7),
        ("by_category", "startup", 7),
        ("by_category", "extension-discovery", 1),
        ("by_origin", "issues", 120),
        ("by_origin", "comparison", 60),
        ("by_origin", "expansion", 100),
    ] {
        assert!(count(&proof[part][name]) >= least, "{name}: {proof:#}");
    }
    assert!(count(&proof["n_cases"]) >= 328 && count(&proof["n_mutants"]) >= 120);
    assert!(2 * count(&proof["n_boundary"]) > count(&proof["n_cases"]));
    assert_eq!(proof["n_killed"], proof["n_mutants"]);
    assert_eq!(proof["n_absence_gated"], proof["n_absence"]);
}
