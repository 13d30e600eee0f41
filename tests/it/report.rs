//! `pipeline report`.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::Path;

use doc2harness::domain::case::{Case, CaseId, Category};
use doc2harness::domain::clause::Scenario;
use doc2harness::domain::results::{CaseFacts, Facts, rows};
use doc2harness::domain::suite::Suite;
use doc2harness::domain::verdict::{Failure, Fault, FaultKind, Outcome, Reason, Verdict};
use doc2harness::methods::analysis::analyse;
use doc2harness::methods::cases::story::tell;
use doc2harness::methods::report::{
    CandidateFacts, CaseWords, ClauseWords, Inputs, Report, RunFacts, UnitFacts, compose, html,
    markdown,
};
use doc2harness::methods::timeline::Timeline;
use nix::sys::resource::{UsageWho, getrusage};

use crate::project::Project;
use crate::report_reasons::CASE;
use crate::stored_run::store;

#[test]
fn one_page_says_everything_and_text_of_strangers_stays_text() {
    let project = Project::new();
    store(&project, "r1", Outcome::Passed);
    let summary = project.json(&["report"]);
    assert_eq!(summary["n_failed"], 2);
    assert_eq!(summary["n_invalid"], 1);
    let page = read_to_string(project.path("data/runs/r1/report/report.html")).expect("is there");
    let has = |part: &str| assert!(page.contains(part), "{part:?} is not in the page");
    has("0.00 %");
    has("passes prove nothing");
    has("the daemon is gone");
    has("launch 1, request 2");
    has("␛[2J&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩");
    has("launch 1  harness -p 'read {nonce:secret}'");
    let lacks = |part: &str| assert!(!page.contains(part), "{part:?} is in the page");
    lacks("<script>alert");
    lacks("\x1b");
    lacks("\u{202e}");
    // Nothing is fetched: no source or style sheet, and links only into the page.
    lacks("src=");
    lacks("<link");
    lacks("url(");
    lacks("http://");
    lacks("https://");
    for link in page.split("href=\"").skip(1) {
        let target = link.split('"').next().unwrap_or_default();
        let id = target.strip_prefix('#').expect("a link into the page");
        assert!(
            page.contains(&format!("id=\"{id}\"")),
            "{target} is nowhere"
        );
    }

    let folder = project.path("data/runs/r1/report");
    let markdown = read_to_string(folder.join("report.md")).expect("is there");
    assert!(markdown.contains("| b/two | 0.00 % | 0/2 |"), "{markdown}");
    assert!(!markdown.contains('\x1b'), "{markdown}");
    let table = read_to_string(folder.join("verdicts.csv")).expect("is there");
    assert_eq!(table.lines().count(), 7);
    let table = folder.join("verdicts.csv");
    let again = project.json(&["analyze", "--csv", &table.display().to_string()]);
    assert_eq!(
        again["candidates"],
        project.json(&["analyze", "r1"])["candidates"]
    );

    project.json(&["report", "r1", "--out", "again"]);
    for file in ["report.html", "report.md", "report.json", "verdicts.csv"] {
        let one = std::fs::read(folder.join(file)).expect("is there");
        let two = std::fs::read(project.path("again").join(file)).expect("is there");
        assert!(one == two, "{file} differs the second time");
    }
}

#[test]
fn a_baseline_shows_what_got_worse() {
    let project = Project::new();
    store(&project, "good", Outcome::failed(Reason::Crash));
    store(&project, "bad", Outcome::failed(Reason::Crash));
    let same = project.run(&["report", "bad", "--baseline", "good"]);
    assert_eq!(same.code, 0, "{}", same.stderr);
    assert!(same.stdout.contains("0 regressions"), "{}", same.stdout);
    // `a/one` passes where `b/two` fails, so the runs of single candidates differ.
    for (run, gone) in [("good", "b/two"), ("bad", "a/one")] {
        let plan = project.path(&format!("data/runs/{run}/plan.json"));
        let text = read_to_string(&plan).expect("is there");
        let mut value: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
        let candidates = value["candidates"].as_array_mut().expect("is a list");
        candidates.retain(|candidate| candidate["name"] != gone);
        std::fs::write(&plan, value.to_string()).expect("writes");
    }
    let worse = project.run(&["report", "bad", "--baseline", "good"]);
    assert_eq!(worse.code, 1, "{}", worse.stderr);
    assert!(worse.stdout.contains("2 regressions"), "{}", worse.stdout);
    assert!(
        worse
            .stdout
            .contains("regression b/two · headless/x: pass → assertion"),
        "{}",
        worse.stdout
    );
    assert!(
        worse
            .stdout
            .contains("lost       b/two · startup/help: pass → sandbox"),
        "{}",
        worse.stdout
    );
    let page = read_to_string(project.path("data/runs/bad/report/report.html")).expect("is there");
    assert!(page.contains("2 regressions"));
    assert!(page.contains("1 verdicts are lost:"));
    let file = project.path("junit.xml");
    let file = file.to_str().expect("is text");
    project.run(&["report", "bad", "--baseline", "good", "--junit", file]);
    let xml = read_to_string(file).expect("is there");
    assert!(xml.contains("bad against good"), "{xml}");
    assert!(
        xml.contains("tests=\"3\" failures=\"2\" errors=\"1\""),
        "{xml}"
    );
}

/// A third passes, and what fails says as much as real failures do.
fn large(n_cases: usize, n_candidates: usize) -> (Facts, Vec<Verdict>, Vec<UnitFacts>) {
    let mut facts = Facts::new();
    for idx in 0..n_cases {
        let category = Category::ALL[idx % 6];
        let id = CaseId::new(format!("{category}/does-what-it-should-{idx}"));
        facts.insert(
            id.clone(),
            CaseFacts {
                category,
                scenario: Scenario::Boundary,
                title: "a tool keeps what the document promises when its input is at the limit"
                    .into(),
                clause: "tools.read.range".parse().expect("a clause id"),
                controls: vec!["inside-link-readable".into()],
                family: id,
            },
        );
    }
    let mut verdicts = Vec::new();
    let mut units = Vec::new();
    for candidate in 0..n_candidates {
        let candidate = format!("builds/model-{candidate}");
        for (idx, case) in facts.keys().enumerate() {
            let own = match idx % 30 {
                0..10 => Outcome::Passed,
                29 => Outcome::Invalid(Fault {
                    kind: FaultKind::Sandbox,
                    message: "gone".into(),
                }),
                _ => Outcome::Failed(Failure {
                    reason: Reason::Assertion,
                    expected:
                        "requests $.messages[?@.role == 'tool'].content lacks {nonce:secret} "
                            .repeat(2),
                    saw: "request 2, message 4: \"a result of a tool & more of it\" ".repeat(3),
                    place: "launch 1, request 2, $['messages'][3]['content']".into(),
                }),
            };
            units.push(UnitFacts {
                candidate: candidate.clone(),
                case: case.clone(),
                outcome: own.clone(),
                attempt: 1,
                duration_ms: 300 + idx as u64,
                cpu_ms: 200,
            });
            let controls = vec![("inside-link-readable".to_owned(), Outcome::Passed)];
            verdicts.push(Verdict::gated(&candidate, case, own, controls));
        }
    }
    (facts, verdicts, units)
}

/// Each case told at length.
fn words(facts: &Facts) -> BTreeMap<CaseId, CaseWords> {
    let told = facts.keys().map(|id| {
        let case = Case::parse(id.clone(), Path::new("x.toml"), CASE).expect("is a case");
        let words = CaseWords {
            story: tell(&case, &Suite::default()),
            clause: Some(ClauseWords {
                syntax: "`read(path)` ".repeat(5),
                meaning: "Shows the lines of a file. ".repeat(5),
                behaviour: "A newline at the end makes no further line. ".repeat(20),
            }),
        };
        (id.clone(), words)
    });
    told.collect()
}

fn report(facts: &Facts, verdicts: Vec<Verdict>, units: &[UnitFacts]) -> Report {
    let mut names: Vec<String> = verdicts.iter().map(|v| v.candidate.clone()).collect();
    names.sort();
    names.dedup();
    let analysis = analyse(&rows(&verdicts, facts, &BTreeMap::new()));
    compose(Inputs {
        run: RunFacts {
            id: "large".into(),
            created_at: "2026-12-01T00:00:00Z".into(),
            tool_version: "0".into(),
            sandbox: "none".into(),
            seed: "s".into(),
            suite: "s".into(),
            repeat: 1,
            candidates: names
                .into_iter()
                .map(|name| CandidateFacts {
                    name,
                    digest: "d".into(),
                })
                .collect(),
        },
        facts,
        controls: BTreeMap::new(),
        words: words(facts),
        verdicts,
        units,
        n_unfinished: 0,
        analysis,
        baseline: None,
        unsteady: Vec::new(),
        times: false,
    })
}

fn cpu_ms() -> i64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("is told");
    let ms = |time: nix::sys::time::TimeVal| time.tv_sec() * 1000 + time.tv_usec() / 1000;
    ms(usage.user_time()) + ms(usage.system_time())
}

/// Processor time of this thread, so that a busy machine does not fail it; the optimised program is much faster.
#[test]
fn ten_thousand_verdicts_stay_small_and_fast() {
    let (facts, verdicts, units) = large(334, 30);
    assert!(verdicts.len() > 10_000);
    let mut reversed = verdicts.clone();
    reversed.reverse();
    let began = cpu_ms();
    let first = report(&facts, verdicts, &units);
    let none = |_: &str, _: &CaseId| -> Option<Timeline> { None };
    let page = html(&first, &none);
    let text = markdown(&first);
    let took_ms = cpu_ms() - began;
    eprintln!("{} bytes in {took_ms} ms of processor", page.len());
    assert!(page.len() + text.len() < 20_000_000, "{} bytes", page.len());
    assert!(took_ms < 2000, "{took_ms} ms");
    assert!(
        page == html(&report(&facts, reversed, &units), &none),
        "the order of verdicts shows"
    );
    if let Ok(path) = std::env::var("PIPELINE_KEEP_LARGE_REPORT") {
        std::fs::write(path, page).expect("writes");
    }
}
