//! Whole runs: `cargo bench --bench runs -- [suite] [long] [report] [certify]`, all of them unless said.
//!
//! `suite`  the reference on the whole suite, beside the processor time that its own processes took in the same run;
//! `long`   the runner's memory after 1,000 and after 10,000 units;
//! `report` the report of 10,000 stored verdicts;
//! `certify` the certificate after one case has changed: its units on the reference and on the mutants that reach it.
//!
//! Wall time says something on an idle machine only; the shares of processor time hold on a busy one too.

mod large;
mod limits;

use std::path::Path;
use std::process::{Command, Stdio};

use doc2harness::domain::evidence::Evidence;
use doc2harness::domain::verdict::{Failure, Outcome, Reason};
use doc2harness::storage::runs::{
    PLAN_FORMAT, Plan, PlannedCandidate, PlannedCase, Run, UnitOutcome,
};
use doc2harness::storage::{documents, suite};

use large::{median, pipeline, project, run_asked};
use limits::limit;

const ROUNDS: usize = 3;

fn main() {
    run_asked(&[
        ("suite", suite as fn()),
        ("long", long),
        ("report", report),
        ("certify", certify),
    ]);
    limits::end();
}

fn suite() {
    let folder = project(&["pipeline", "cases", "candidates/reference", "data/document"]);
    let root = folder.path();
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    // Installs the reference, and leaves durations for the order.
    pipeline(root, &["evaluate", "-c", "reference", "--run", "warm"]);
    println!("the reference on the whole suite, {cores} cores, medians of {ROUNDS} rounds");
    for repeat in ["1", "4"] {
        let (mut wall, mut share, mut total, mut own, mut longest) =
            (vec![], vec![], vec![], vec![], vec![]);
        for round in 0..ROUNDS {
            let id = format!("r{repeat}-{round}");
            let command = [
                "evaluate",
                "-c",
                "reference",
                "--run",
                &id,
                "--repeat",
                repeat,
            ];
            let took = pipeline(root, &command);
            let run = Run::open(&root.join("data/runs"), &id).expect("opens");
            let outcomes = run.outcomes().expect("reads");
            let own_s = outcomes.iter().map(|unit| unit.cpu_ms).sum::<u64>() as f64 / 1e3;
            let longest_ms = outcomes.iter().map(|unit| unit.duration_ms).max();
            wall.push(took.wall_s);
            share.push(took.wall_s / (own_s / cores));
            total.push(took.cpu_s / own_s);
            own.push(own_s / cores);
            longest.push(longest_ms.unwrap_or(0) as f64 / 1e3);
        }
        let (wall, ratio) = (median(wall), median(share));
        // Of all cases once; more repetitions have no limit of their own.
        let most_s = if repeat == "1" { 90.0 } else { f64::INFINITY };
        println!(
            "  --repeat {repeat}: wall {wall:.2} s ({}), own processor time ÷ cores {:.2} s, ratio {ratio:.2} ({}); \
             all processor time ÷ own {:.2}; no run can end before its longest unit, {:.2} s",
            limit(wall, most_s),
            median(own),
            limit(ratio, 1.25),
            median(total),
            median(longest)
        );
    }
}

/// The first case that talks to the model, so that many mutants reach it; in each round another line more is a change.
fn certify() {
    let folder = project(&["pipeline", "cases", "candidates", "data/document"]);
    let root = folder.path();
    let check = Command::new(env!("CARGO_BIN_EXE_pipeline"))
        .args(["certify", "--check"])
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("starts");
    // Everything would be run, which says nothing of one case.
    assert!(
        check.success(),
        "cases/CERTIFICATE.json does not prove this suite: `pipeline certify` first"
    );
    let cases = suite::read(&root.join("cases")).expect("is a suite");
    let case = cases
        .tests()
        .find(|case| case.text.contains("script"))
        .expect("one talks to the model");
    let file = root.join("cases").join(format!("{}.toml", case.id));
    let mut wall = vec![];
    for round in 0..ROUNDS {
        let text = format!("{}# Round {round}.\n", case.text);
        std::fs::write(&file, text).expect("writes");
        wall.push(pipeline(root, &["certify"]).wall_s);
    }
    let wall = median(wall);
    println!(
        "certify after {} has changed, median of {ROUNDS} rounds: {wall:.1} s ({})",
        case.id,
        limit(wall, 60.0)
    );
}

const CASE: &str = r#"title = "case NUMBER"
purpose = "It costs something."
clause = "exit-codes.success.answer"
category = "headless"
scenario = "ordinary"
[[launch]]
route = "headless"
prompt = "nothing"
[[expect]]
channel = "exit"
equals = 0
"#;

fn long() {
    let folder = project(&["pipeline", "data/document/10-exit-codes.md"]);
    let root = folder.path();
    let write = |below: &str, text: &str| {
        let path = root.join(below);
        std::fs::create_dir_all(path.parent().expect("is below")).expect("makes");
        std::fs::write(path, text).expect("writes");
    };
    for n in 0..100 {
        let text = CASE.replace("NUMBER", &n.to_string());
        write(&format!("cases/headless/c{n}.toml"), &text);
    }
    write("candidates/empty/harness", "#!/bin/sh\nexit 0\n");
    write("candidates/empty/install.sh", "chmod +x harness\n");
    println!("memory of the runner");
    for repeat in ["10", "100"] {
        let took = pipeline(root, &["evaluate", "-c", "empty", "--repeat", repeat]);
        println!(
            "  {repeat:>3} × 100 units: {:.0} MiB ({}), {:.1} ms processor time and {:.1} ms wall a unit",
            took.memory_mib,
            limit(took.memory_mib, 150.0),
            took.cpu_s * 10.0 / repeat.parse::<f64>().expect("a number"),
            took.wall_s * 10.0 / repeat.parse::<f64>().expect("a number")
        );
    }
}

fn report() {
    for n_candidates in [30, 60] {
        let folder = project(&["pipeline", "data/document", "cases"]);
        let root = folder.path();
        let n_verdicts = stored(root, n_candidates);
        let mut times = vec![];
        let mut memory = vec![];
        for _ in 0..ROUNDS {
            let took = pipeline(root, &["report", "large"]);
            times.push(took.wall_s);
            memory.push(took.memory_mib);
        }
        let page = std::fs::metadata(root.join("data/runs/large/report/report.html"));
        let (time, page_mb) = (median(times), page.expect("is there").len() as f64 / 1e6);
        // The limits are for 10,000 verdicts, which thirty candidates exceed; the second row tells how it grows.
        let (most_s, most_mb) = match n_candidates {
            30 => (2.0, 20.0),
            _ => (f64::INFINITY, f64::INFINITY),
        };
        println!(
            "report of {n_verdicts} verdicts on {n_candidates} candidates: {time:.2} s ({}), {page_mb:.1} MB ({}), \
             {:.0} MiB of memory",
            limit(time, most_s),
            limit(page_mb, most_mb),
            median(memory)
        );
    }
}

/// All cases as they are, so that the report tells them in words. A third passes; what fails says as much as real
/// failures do, and has evidence. Returns how many verdicts there are.
fn stored(root: &Path, n_candidates: usize) -> usize {
    let suite = suite::read(&root.join("cases")).expect("is a suite");
    let document = documents::read(&root.join("data/document")).expect("is a document");
    let cases = suite.tests().map(|case| PlannedCase {
        id: case.id.clone(),
        title: case.title.clone(),
        clause: case.clause.clone(),
        category: case.category(),
        scenario: case.scenario(),
        family: Some(case.id.clone()),
        controls: Vec::new(),
        digest: suite::case_digest(case),
        scenario_digest: suite::scenario_digest(case),
    });
    let candidates = (0..n_candidates).map(|n| PlannedCandidate {
        name: format!("builds/model-{n}"),
        source: "x".into(),
        digest: "d".into(),
    });
    let plan = Plan {
        format: PLAN_FORMAT,
        run: "large".into(),
        created_at: "2026-12-01T00:00:00Z".into(),
        tool_version: "0".into(),
        sandbox: "none".into(),
        seed: "s".into(),
        suite: "s".into(),
        repeat: 1,
        candidates: candidates.collect(),
        cases: cases.collect(),
        clauses: document
            .clauses()
            .map(|clause| (clause.id.clone(), clause.digest()))
            .collect(),
    };
    let mut run = Run::create(&root.join("data/runs"), plan).expect("creates");
    let units: Vec<_> = run.plan.units().collect();
    let mut outcomes = Vec::new();
    for (idx, unit) in units.into_iter().enumerate() {
        let outcome = match idx % 3 {
            0 => Outcome::Passed,
            _ => Outcome::Failed(Failure {
                reason: Reason::Assertion,
                expected: "requests $.messages[?@.role == 'tool'].content lacks {nonce:secret}"
                    .repeat(2),
                saw: "request 2, message 4: \"a result of a tool & more of it\" ".repeat(3),
                place: "launch 1, request 2, $['messages'][3]['content']".into(),
            }),
        };
        let evidence = match outcome.passed() {
            true => None,
            false => Some(run.evidence().store(&evidence(idx)).expect("stores")),
        };
        outcomes.push(UnitOutcome {
            candidate: unit.candidate,
            case: unit.case,
            repetition: 1,
            attempt: 1,
            outcome,
            evidence,
            duration_ms: 300 + idx as u64,
            cpu_ms: 200,
        });
    }
    run.record(&outcomes).expect("records");
    outcomes.len()
}

fn evidence(idx: usize) -> Evidence {
    large::evidence(&vec![format!("say {idx} {}", "x".repeat(400)); 5])
}
