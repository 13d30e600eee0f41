//! A run that never ran: two candidates, three cases and a control, with the evidence of nasty text.

use std::collections::BTreeMap;

use doc2harness::domain::case::{Bindings, CaseId, Category};
use doc2harness::domain::clause::Scenario;
use doc2harness::domain::evidence::{
    EVIDENCE_FORMAT, Evidence, Exchange, Exit, FileKind, FileState, LaunchEvidence, ReplyKind, Text,
};
use doc2harness::domain::verdict::{Failure, Fault, FaultKind, Outcome, Reason};
use doc2harness::storage::runs::{
    PLAN_FORMAT, Plan, PlannedCandidate, PlannedCase, Run, UnitOutcome,
};
use serde_json::json;

use crate::project::Project;

/// Text that must never reach a terminal or a browser as it stands.
pub const NASTY: &str = "\x1b[2J<script>alert(1)</script>\u{202e}`|&\"'";

/// Which outcome the candidate `b/two` has on `permissions/deny`; that of `a/one` is always a pass.
pub fn store(project: &Project, id: &str, deny: Outcome) -> Run {
    let case = |id: &str, category, controls: &[&str]| PlannedCase {
        id: CaseId::new(id),
        title: format!("says what {id} does {NASTY}"),
        clause: "tools.read.range".parse().expect("a clause id"),
        category,
        scenario: category.map(|_| Scenario::Boundary),
        family: None,
        controls: controls.iter().map(|id| CaseId::new(*id)).collect(),
        digest: "d".into(),
        scenario_digest: "s".into(),
    };
    let plan = Plan {
        format: PLAN_FORMAT,
        run: id.into(),
        created_at: "2026-12-01T00:00:00Z".into(),
        tool_version: "0".into(),
        sandbox: "none".into(),
        seed: "s".into(),
        suite: "0123456789abcdef".into(),
        repeat: 1,
        candidates: ["a/one", "b/two"]
            .map(|name| PlannedCandidate {
                name: name.into(),
                source: name.into(),
                digest: "fedcba9876543210".into(),
            })
            .into(),
        cases: vec![
            case("controls/readable", None, &[]),
            case("headless/x", Some(Category::Headless), &[]),
            case(
                "permissions/deny",
                Some(Category::Permissions),
                &["controls/readable"],
            ),
            case("startup/help", Some(Category::Startup), &[]),
        ],
        clauses: BTreeMap::new(),
    };
    let mut run = Run::create(&project.path("data/runs"), plan).expect("creates");
    let failed = Outcome::Failed(Failure {
        reason: Reason::Assertion,
        expected: "stdout lacks \"x\"".into(),
        saw: NASTY.into(),
        place: "launch 1, request 2".into(),
    });
    let invalid = Outcome::Invalid(Fault {
        kind: FaultKind::Sandbox,
        message: "the daemon is gone".into(),
    });
    let units = [
        ("a/one", "controls/readable", Outcome::Passed),
        ("a/one", "headless/x", Outcome::Passed),
        ("a/one", "permissions/deny", Outcome::Passed),
        ("a/one", "startup/help", Outcome::Passed),
        (
            "b/two",
            "controls/readable",
            Outcome::failed(Reason::Timeout),
        ),
        ("b/two", "headless/x", failed),
        ("b/two", "permissions/deny", deny),
        ("b/two", "startup/help", invalid),
    ];
    for (number, (candidate, case, outcome)) in units.into_iter().enumerate() {
        let kept = !matches!(outcome, Outcome::Invalid(_));
        let evidence = kept.then(|| {
            let evidence = evidence(case);
            run.store_evidence(&evidence).expect("stores")
        });
        run.record(&[UnitOutcome {
            candidate: candidate.into(),
            case: CaseId::new(case),
            repetition: 1,
            attempt: 1,
            outcome,
            evidence,
            duration_ms: 100 * (number as u64 + 1),
            cpu_ms: 10,
        }])
        .expect("records");
    }
    run
}

fn evidence(case: &str) -> Evidence {
    let file = |text: &str| FileState {
        kind: FileKind::File,
        mode: 0o644,
        size: text.len() as u64,
        digest: Some(text.to_owned()),
        text: Some(text.to_owned()),
        target: None,
    };
    Evidence {
        format: EVIDENCE_FORMAT,
        case: CaseId::new(case),
        bindings: Bindings(BTreeMap::from([(
            "nonce:secret".to_owned(),
            "s-7f3a".to_owned(),
        )])),
        launches: vec![LaunchEvidence {
            argv: vec!["harness".into(), "-p".into(), "read s-7f3a".into()],
            exit: Exit::Code(0),
            stdout: Text {
                text: format!("done {NASTY}\n"),
                cut: false,
            },
            stderr: Text::default(),
            screen: None,
            keys_unsent: 0,
            signals_unsent: 0,
            unbound: Vec::new(),
            started_ms: 0,
            n_requests_unkept: 0,
            requests: vec![Exchange {
                at_ms: 120,
                method: "POST".into(),
                path: "/v1/chat/completions".into(),
                headers: BTreeMap::new(),
                body: json!({"messages": [{"role": "user", "content": "read s-7f3a"}], "tools": [{}]}),
                chat: None,
                side: false,
                reply: ReplyKind::Step(1),
                sent: None,
            }],
            duration_ms: 310,
            cpu_ms: 200,
            out_of_memory: false,
        }],
        files_before: BTreeMap::from([("notes.txt".to_owned(), file("plain\n"))]),
        files_cut: false,
        files_after: BTreeMap::from([("notes.txt".to_owned(), file("changed\n"))]),
    }
}
