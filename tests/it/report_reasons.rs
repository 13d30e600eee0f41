//! What somebody who has never seen the program finds in a report about one failed case: for each reason why the
//! candidate failed, what the case does and why, and not what another case of the same name does today.

use std::collections::BTreeMap;
use std::fs::read_to_string;

use doc2harness::domain::case::{Bindings, Case, CaseId};
use doc2harness::domain::clause::Clause;
use doc2harness::domain::evidence::{
    EVIDENCE_FORMAT, Evidence, Exchange, Exit, LaunchEvidence, ReplyKind, Text,
};
use doc2harness::domain::verdict::Reason;
use doc2harness::methods::judge::judge;
use doc2harness::storage::runs::{
    PLAN_FORMAT, Plan, PlannedCandidate, PlannedCase, Run, UnitOutcome,
};
use doc2harness::storage::{documents, suite};
use serde_json::json;

use crate::project::Project;

pub const CASE: &str = r#"title    = "a rule that denies a file keeps its text from the model"
purpose  = "Who writes such a rule relies on it for secrets."
clause   = "permissions.rules.deny"
category = "permissions"
scenario = "boundary"
controls = ["readable"]

[fixture]
"keys/notes.txt" = "{nonce:secret}\n"

[[launch]]
route  = "headless"
prompt = "Show me the notes"
args   = ["--deny", "read(keys/*)"]
script = [
  { call = "read", with = { path = "keys/notes.txt" } },
  { say = "done" },
]

[[expect]]
channel = "requests"
at      = "$.messages[?@.role == 'tool'].content"
lacks   = "{nonce:secret}"

[[expect]]
channel = "exit"
equals  = 0
"#;

/// The same without the rule.
fn control() -> String {
    CASE.replace(
        "category = \"permissions\"\nscenario = \"boundary\"\ncontrols = [\"readable\"]\n",
        "class = \"same-form\"\n",
    )
    .replace(
        "a rule that denies a file keeps its text from the model",
        "without a rule the text is shown",
    )
    .replace(
        "Who writes such a rule relies on it for secrets.",
        "A harness that reads nothing keeps every secret.",
    )
    .replace("args   = [\"--deny\", \"read(keys/*)\"]\n", "")
    .replace("lacks ", "has   ")
}

/// What a candidate asked the model, and how its launch ended.
struct Seen {
    requests: Vec<Exchange>,
    exit: Exit,
    stdout_cut: bool,
    stderr: &'static str,
}

fn request(reply: ReplyKind, result: Option<&str>) -> Exchange {
    let mut messages = vec![json!({ "role": "user", "content": "Show me the notes" })];
    messages.extend(result.map(|text| json!({ "role": "tool", "content": text })));
    Exchange {
        at_ms: 10,
        method: "POST".into(),
        path: "/v1/chat/completions".into(),
        headers: BTreeMap::new(),
        body: json!({ "messages": messages, "tools": [{}] }),
        chat: None,
        side: false,
        reply,
        sent: None,
    }
}

/// A candidate that asks twice, and tells the model that as the tool's result.
fn telling(result: &str) -> Seen {
    Seen {
        requests: vec![
            request(ReplyKind::Step(1), None),
            request(ReplyKind::Step(2), Some(result)),
        ],
        exit: Exit::Code(0),
        stdout_cut: false,
        stderr: "",
    }
}

fn evidence(case: &Case, seen: Seen) -> Evidence {
    Evidence {
        format: EVIDENCE_FORMAT,
        case: case.id.clone(),
        bindings: Bindings(BTreeMap::from([("nonce:secret".into(), "s-7f3a".into())])),
        launches: vec![LaunchEvidence {
            argv: vec!["harness".into(), "-p".into(), "Show me the notes".into()],
            exit: seen.exit,
            stdout: Text {
                text: "done\n".into(),
                cut: seen.stdout_cut,
            },
            stderr: Text {
                text: seen.stderr.into(),
                cut: false,
            },
            screen: None,
            keys_unsent: 0,
            signals_unsent: 0,
            unbound: Vec::new(),
            started_ms: 0,
            requests: seen.requests,
            n_requests_unkept: 0,
            duration_ms: 900_000,
            cpu_ms: 100,
            out_of_memory: false,
        }],
        files_before: BTreeMap::new(),
        files_after: BTreeMap::new(),
        files_cut: false,
    }
}

/// One candidate a reason, in the order of [`Reason::ALL`]; what is seen of the case, and of its control.
fn candidate(reason: Reason) -> (Seen, Seen) {
    let denied = || telling("error: denied");
    let shows = || telling("1\ts-7f3a");
    let silent = |exit, stderr| Seen {
        requests: Vec::new(),
        exit,
        stdout_cut: false,
        stderr,
    };
    match reason {
        Reason::Assertion => (shows(), shows()),
        // It never reads anything.
        Reason::Control => (telling("error: denied"), telling("error: no such tool")),
        Reason::Timeout => (
            Seen {
                exit: Exit::TimedOut,
                ..denied()
            },
            shows(),
        ),
        Reason::Crash => (
            Seen {
                exit: Exit::Signal(11),
                ..denied()
            },
            shows(),
        ),
        Reason::Contract => (silent(Exit::Code(127), "sh: harness: not found"), shows()),
        Reason::ScriptOverrun => {
            let mut seen = denied();
            seen.requests
                .push(request(ReplyKind::Overrun, Some("error: denied")));
            (seen, shows())
        }
        Reason::Limit => (
            Seen {
                stdout_cut: true,
                ..denied()
            },
            shows(),
        ),
    }
}

/// A run in which each candidate fails the case for another reason, judged as runs are.
pub fn store(project: &Project) -> Clause {
    project.write("cases/permissions/deny.toml", CASE);
    project.write("cases/controls/readable.toml", &control());
    let suite = suite::read(&project.path("cases")).expect("is a suite");
    let document = documents::read(&project.path("data/document")).expect("is a document");
    let [control, case] = ["controls/readable", "permissions/deny"]
        .map(|id| suite.get(&CaseId::new(id)).expect("is there"));
    let clause = document.clause(&case.clause).expect("is there").clone();
    let plan = Plan {
        format: PLAN_FORMAT,
        run: "r".into(),
        created_at: "2026-12-01T00:00:00Z".into(),
        tool_version: "0".into(),
        sandbox: "none".into(),
        seed: "s".into(),
        suite: "0123456789abcdef".into(),
        repeat: 1,
        candidates: Reason::ALL
            .map(|reason| PlannedCandidate {
                name: format!("by/{reason}"),
                source: "x".into(),
                digest: "d".into(),
            })
            .into(),
        cases: [control, case]
            .map(|case| PlannedCase {
                id: case.id.clone(),
                title: case.title.clone(),
                clause: case.clause.clone(),
                category: case.category(),
                scenario: case.scenario(),
                family: None,
                controls: suite.gating(case).map(|one| one.id.clone()).collect(),
                digest: suite::case_digest(case),
                scenario_digest: suite::scenario_digest(case),
            })
            .into(),
        clauses: BTreeMap::from([(clause.id.clone(), clause.digest())]),
    };
    let mut run = Run::create(&project.path("data/runs"), plan).expect("creates");
    for reason in Reason::ALL {
        let (of_case, of_control) = candidate(reason);
        for (case, seen) in [(case, of_case), (control, of_control)] {
            let evidence = evidence(case, seen);
            let unit = UnitOutcome {
                candidate: format!("by/{reason}"),
                case: case.id.clone(),
                repetition: 1,
                attempt: 1,
                outcome: judge(case, &evidence),
                evidence: Some(run.store_evidence(&evidence).expect("stores")),
                duration_ms: 1,
                cpu_ms: 1,
            };
            run.record(&[unit]).expect("records");
        }
    }
    let ended: Vec<String> = run
        .verdicts()
        .expect("reads")
        .iter()
        .map(|verdict| verdict.outcome.reason().to_owned())
        .collect();
    assert_eq!(ended, Reason::ALL.map(|reason| reason.to_string()));
    clause
}

fn page(project: &Project) -> String {
    project.json(&["report", "r"]);
    read_to_string(project.path("data/runs/r/report/report.html")).expect("is there")
}

/// The text of an article of the page, by its id, as a reader sees it.
fn article(page: &str, id: &str) -> String {
    let (_, rest) = page
        .split_once(&format!("<article id=\"{id}\""))
        .unwrap_or_else(|| panic!("no article {id}"));
    let inner = rest.split_once("</article>").expect("it ends").0;
    let mut text = String::new();
    for (idx, part) in inner.split('<').enumerate() {
        let shown = match idx {
            0 => part.split_once('>').map_or("", |(_, shown)| shown),
            _ => part.split_once('>').expect("a tag").1,
        };
        text.push_str(shown);
    }
    for (coded, plain) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&amp;", "&"),
    ] {
        text = text.replace(coded, plain);
    }
    text
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn each_reason_of_a_failure_is_explained_with_the_case_and_its_clause() {
    let project = Project::new();
    let clause = store(&project);
    let page = page(&project);
    let lacks = "In the requests to the model, none of the results of tools may contain \"{nonce:secret}\".";
    let shown = "In the requests to the model, one of the results of tools must contain \"{nonce:secret}\".";
    for (idx, reason) in Reason::ALL.into_iter().enumerate() {
        let told = article(&page, &format!("f{idx}"));
        has(
            &told,
            &["permissions/deny", reason.as_str(), reason.meaning()],
        );
        has(
            &told,
            &["a rule that denies a file keeps its text from the model"],
        );
        has(&told, &["What the case does, and the clause that it tests"]);
        let facts: &[&str] = match reason {
            Reason::Assertion => &[
                lacks,
                "requests $.messages[?@.role == 'tool'].content lacks \"{nonce:secret}\"",
                "1\\t{nonce:secret}",
                "launch 1, request 2, message 2",
            ],
            Reason::Control => &[
                "readable: assertion",
                "without a rule the text is shown",
                Reason::Assertion.meaning(),
                shown,
                "\"error: no such tool\"",
                "launch 1, request 2, message 2",
                "What the control does",
                "Evidence of controls/readable",
            ],
            Reason::Timeout => &[
                "the launch ends by itself",
                "killed after 900 s",
                "launch 1",
            ],
            Reason::Crash => &["the launch ends by itself", "died of signal 11", "launch 1"],
            Reason::Contract => &["exit 127: \"sh: harness: not found\"", "launch 1"],
            Reason::ScriptOverrun => &[
                "no request beyond the script",
                "1 beyond it",
                "launch 1, request 3",
            ],
            Reason::Limit => &[
                "output that can all be looked at",
                "more than is kept",
                "launch 1",
            ],
        };
        has(&told, facts);
        assert!(
            page.contains(&format!("href=\"#f{idx}\"")),
            "{reason}: the matrix leads to it"
        );
    }

    // By id, the control first; each is told once.
    let told = article(&page, "c1");
    has(
        &told,
        &[
            "permissions/deny",
            "Who writes such a rule relies on it for secrets.",
            "permissions, boundary",
            "permissions.rules.deny",
            &clause.syntax,
            &clause.meaning,
            &clause.behaviour,
            "notes.txt",
            "$ harness -p 'Show me the notes' --deny 'read(keys/*)'",
            "1. calls read {\"path\":\"keys/notes.txt\"}",
            lacks,
            "The exit code of the last launch must be exactly 0.",
            "readable (same-form): without a rule the text is shown",
        ],
    );
    let told = article(&page, "c0");
    has(
        &told,
        &[
            "controls/readable",
            "A harness that reads nothing keeps every secret.",
            shown,
        ],
    );
    for (id, n) in [("c0", 1), ("c1", Reason::ALL.len() + 1)] {
        let n_links = page.matches(&format!("href=\"#{id}\"")).count();
        assert_eq!(
            n_links, n,
            "links to {id}: failures, and the row of the case"
        );
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1);
    }
    let markdown = read_to_string(project.path("data/runs/r/report/report.md")).expect("is there");
    has(
        &markdown,
        &[
            Reason::Timeout.meaning(),
            "Who writes such a rule relies on it for secrets.",
            lacks,
        ],
    );
}

#[test]
fn an_old_run_tells_no_case_of_today() {
    let project = Project::new();
    let clause = store(&project);
    let before = page(&project);

    // The clause is worded otherwise: the case is told, and the new wording is not.
    let path = project.path("data/document/04-permissions.md");
    let chapter = read_to_string(&path).expect("reads");
    let newer = chapter.replace(
        &clause.behaviour,
        &format!("{} Of today.", clause.behaviour),
    );
    assert_ne!(newer, chapter);
    std::fs::write(&path, newer).expect("writes");
    let told = article(&page(&project), "c1");
    has(
        &told,
        &[
            "Who writes such a rule relies on it for secrets.",
            "Its words are not told",
        ],
    );
    assert!(!told.contains("Of today."), "{told}");
    assert!(!told.contains(&clause.behaviour), "{told}");
    std::fs::write(&path, chapter).expect("writes");
    assert!(page(&project) == before, "as it was, it is told as it was");

    // The control is another one: the case tells what it knows, and not today's control.
    project.write(
        "cases/controls/readable.toml",
        &control().replace("without a rule", "of today"),
    );
    let page_of_case = page(&project);
    let told = article(&page_of_case, "c0");
    has(
        &told,
        &[
            "permissions/deny",
            "readable: its file is not as it was when the run was made",
        ],
    );
    assert!(!page_of_case.contains("of today"), "{page_of_case}");

    // So is the case, then gone: its verdicts are told, what it does is not.
    let newer = CASE.replace("relies on it for secrets", "of today");
    project.write("cases/permissions/deny.toml", &newer);
    let changed = page(&project);
    std::fs::remove_dir_all(project.path("cases")).expect("removes");
    for page in [changed, page(&project)] {
        let told = article(&page, "f0");
        has(
            &told,
            &[
                "What permissions/deny does is not told",
                Reason::Assertion.meaning(),
            ],
        );
        has(
            &told,
            &["requests $.messages[?@.role == 'tool'].content lacks \"{nonce:secret}\""],
        );
        assert!(!page.contains("of today") && !page.contains("id=\"cases\""));
    }
}
