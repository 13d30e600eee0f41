//! `plan`, `evaluate --plan` and `merge`: many machines give the run of one machine, whatever becomes of them. Most
//! shards here hold outcomes that were recorded once, so that only what has to be run is run.

mod builds;
mod hostile;
mod killed;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use doc2harness::domain::shard::ShardId;
use doc2harness::domain::verdict::{Outcome, Reason};
use doc2harness::storage::plans::{self, StoredPlan};
use doc2harness::storage::runs::{Run, UnitOutcome};
use doc2harness::storage::shards::{self, Attempt, Claim, Machine, Measured, SHARD_FORMAT};
use serde_json::Value;

use crate::project::Project;

/// Of the suite of the tests of `evaluate`: a pass, a control that fails, an assertion that fails.
const CANDIDATES: [&str; 6] = ["-c", "reference", "-c", "blind", "-c", "leaky"];
const N_UNITS: usize = 9;

/// A project in which one machine has run all; what it gave is kept aside as the run `one`.
struct Recorded {
    project: Project,
    run: Run,
    report: BTreeMap<String, Vec<u8>>,
}

impl Recorded {
    fn new() -> Self {
        let project = crate::evaluate::project();
        let command = [
            &["evaluate", "--run", "r", "--nonce-seed", "s"],
            &CANDIDATES[..],
        ]
        .concat();
        let ran = project.run(&command);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let report = report(&project, "r");
        let one = project.path("one");
        std::fs::create_dir(&one).expect("makes");
        std::fs::rename(project.path("data/runs/r"), one.join("r")).expect("moves");
        let run = Run::open(&one, "r").expect("opens");
        Self {
            project,
            run,
            report,
        }
    }

    /// Plans the same run for `n` machines.
    fn plan(&self, n: u32) -> (StoredPlan, String) {
        let n = n.to_string();
        self.plan_with(&[&["--shards", &n], &CANDIDATES[..]].concat())
    }

    fn plan_with(&self, words: &[&str]) -> (StoredPlan, String) {
        let command = ["plan", "--run", "r", "--nonce-seed", "s"];
        let planned = self.project.json(&[&command[..], words].concat());
        let file = planned["file"].as_str().expect("a file").to_owned();
        (plans::read(Path::new(&file)).expect("reads"), file)
    }

    fn folder(&self, plan: &StoredPlan, shard: ShardId) -> PathBuf {
        shards::folder_of_shard(&self.project.path("data/shards"), plan, shard)
    }

    /// The recorded outcome of a unit of the plan.
    fn outcome(&self, plan: &StoredPlan, place: usize) -> UnitOutcome {
        let unit = &plan.units()[place];
        let outcomes = self.run.outcomes().expect("reads");
        let mut found = outcomes.into_iter().filter(|one| one.unit() == *unit);
        found.next().expect("was recorded")
    }

    fn begin(&self, plan: &StoredPlan, shard: ShardId, attempt: u128) -> Attempt {
        Attempt::begin(&self.folder(plan, shard), claim(plan, shard, attempt)).expect("begins")
    }

    /// Stores the evidence of a unit, then its line.
    fn record(&self, attempt: &mut Attempt, unit: &UnitOutcome) {
        self.store(attempt, unit);
        attempt.record(std::slice::from_ref(unit)).expect("records");
    }

    fn store(&self, attempt: &Attempt, unit: &UnitOutcome) {
        if let Some(digest) = &unit.evidence {
            let evidence = self.run.evidence().read(digest).expect("reads");
            attempt.evidence().store(&evidence).expect("stores");
        }
    }

    /// A sealed attempt with the recorded outcomes of the whole shard.
    fn sealed(&self, plan: &StoredPlan, shard: ShardId, attempt: u128) -> PathBuf {
        let mut attempt = self.begin(plan, shard, attempt);
        for place in plan.places(shard) {
            self.record(&mut attempt, &self.outcome(plan, *place));
        }
        let folder = attempt.folder().to_path_buf();
        attempt.seal(BTreeMap::new()).expect("seals");
        folder
    }

    /// Merges, expects what one machine gave, and returns what the merge said.
    fn merged_like_one(&self, file: &str, more: &[&str]) -> Value {
        let ran = self
            .project
            .run(&[&["--json", "merge", file], more].concat());
        assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
        let run = Run::open(&self.project.path("data/runs"), "r").expect("opens");
        assert_eq!(
            run.verdicts().expect("reads"),
            self.run.verdicts().expect("reads")
        );
        assert!(
            report(&self.project, "r") == self.report,
            "the report is not that of one machine"
        );
        std::fs::remove_dir_all(self.project.path("data/runs/r/report")).expect("removes");
        ran.json()
    }
}

fn claim(plan: &StoredPlan, shard: ShardId, attempt: u128) -> Claim {
    let run = &plan.plan.run;
    let digests = run.candidates.iter();
    Claim {
        format: SHARD_FORMAT,
        attempt: format!("{attempt:032x}"),
        shard,
        measured: Measured {
            plan: plan.digest.clone(),
            tool_version: run.tool_version.clone(),
            build: match &plan.plan.build {
                Some(build) => build.clone(),
                None => format!("build-id:{attempt:x}"),
            },
            image: None,
            evidence_format: plan.plan.evidence_format,
            sandbox: run.sandbox.clone(),
            suite: run.suite.clone(),
            candidates: digests
                .map(|candidate| (candidate.name.clone(), candidate.digest.clone()))
                .collect(),
        },
        machine: Machine {
            host: "somewhere".into(),
            kernel: "6".into(),
            pid: 1,
            started_at: "2026-12-01T00:00:00Z".into(),
            engine: BTreeMap::new(),
        },
    }
}

fn report(project: &Project, run: &str) -> BTreeMap<String, Vec<u8>> {
    project.json(&["report", run]);
    files(&project.path(&format!("data/runs/{run}/report")))
}

/// Every file below a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("reads").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type().expect("reads").is_dir() {
            true => {
                let below = files(&entry.path()).into_iter();
                found.extend(below.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
            }
            false => {
                found.insert(name, std::fs::read(entry.path()).expect("reads"));
            }
        }
    }
    found
}

#[test]
fn shards_that_are_run_make_the_run_of_one_machine() {
    let recorded = Recorded::new();
    let project = &recorded.project;
    let (plan, file) = recorded.plan(3);
    let (again, _) = recorded.plan(3);
    assert_eq!(plan.digest, again.digest, "the same input is the same plan");
    let early = project.run(&["merge", &file]);
    assert_eq!(early.code, 75, "{}", early.stdout);
    assert!(early.stdout.contains("9 of 9 units"), "{}", early.stdout);
    // From the last to the first, so that controls are run after what they gate.
    for shard in ["3/3", "1/3", "2/3"] {
        let command = ["evaluate", "--plan", &file, "--shard", shard];
        let ran = project.json(&command);
        assert_eq!(ran["n_run"], ran["n_units"], "{ran}");
        assert_eq!(ran["sealed"], true);
        let nothing = project.json(&command);
        assert_eq!(
            (&nothing["n_run"], &nothing["folder"]),
            (&0.into(), &Value::Null)
        );
    }
    let merged = recorded.merged_like_one(&file, &[]);
    assert_eq!(
        (&merged["stored"], &merged["n_attempts"]),
        (&"new".into(), &3.into())
    );
    let merged = recorded.merged_like_one(&file, &[]);
    assert_eq!(merged["stored"], "same");
    for reader in [
        &["show", "r", "headless/exit"][..],
        &["analyze", "r"],
        &["rejudge", "r"],
    ] {
        let ran = project.run(reader);
        assert!(ran.code < 2, "{reader:?}: {}", ran.stderr);
    }
    let resumed = project.run(&["evaluate", "--resume", "r"]);
    assert_eq!(resumed.code, 2);
    assert!(
        resumed.stderr.contains("was merged from the shards"),
        "{}",
        resumed.stderr
    );
}

#[test]
fn any_number_of_shards_in_any_order_gives_the_same_bytes() {
    let recorded = Recorded::new();
    let mut outcomes = None;
    for n in [1, 3, 8, 60] {
        let (plan, file) = recorded.plan(n);
        let mut folders: Vec<String> = plan
            .shards()
            .map(|shard| {
                let attempt = u128::from(shard.index()) << 64 | u128::from(n);
                recorded.sealed(&plan, shard, attempt).display().to_string()
            })
            .collect();
        let runs = recorded.project.path("data/runs/r");
        let mut bytes = None;
        for order in 0..3 {
            let half = folders.len() / 2;
            folders.rotate_left(half);
            let mut given: Vec<&str> = folders.iter().map(String::as_str).collect();
            if order == 1 {
                given.reverse();
                given.push(&folders[0]);
            }
            let merged = recorded.merged_like_one(&file, &given);
            assert_eq!(merged["n_attempts"], n);
            let seen = files(&runs);
            assert!(
                *bytes.get_or_insert(seen.clone()) == seen,
                "{n} shards, order {order}"
            );
            std::fs::remove_dir_all(&runs).expect("removes");
        }
        let seen = bytes.expect("was merged")["outcomes.jsonl"].clone();
        assert!(*outcomes.get_or_insert(seen.clone()) == seen, "{n} shards");
    }
}

#[test]
fn a_duplicate_is_harmless_and_a_contradiction_is_unstable() {
    let recorded = Recorded::new();
    let (plan, file) = recorded.plan(1);
    let shard = ShardId::new(1, 1).expect("a shard");
    recorded.sealed(&plan, shard, 7);
    recorded.sealed(&plan, shard, 9);
    let merged = recorded.merged_like_one(&file, &[]);
    assert_eq!(
        (&merged["n_repeated"], &merged["n_agreed"]),
        (&9.into(), &9.into())
    );
    let before = files(&recorded.project.path("data/runs/r"));

    // A third machine saw the reference fail on a case that it passes elsewhere.
    let is_case = |place: &&usize| {
        let unit = &plan.units()[**place];
        (unit.candidate.as_str(), unit.case.as_str()) == ("reference", "headless/exit")
    };
    let place = *plan.places(shard).iter().find(is_case).expect("is planned");
    let passed = recorded.outcome(&plan, place);
    let mut evidence = recorded
        .run
        .evidence()
        .read(passed.evidence.as_ref().expect("evidence"))
        .expect("reads");
    evidence.launches[0].duration_ms += 1;
    let mut attempt = recorded.begin(&plan, shard, 8);
    let other = attempt.evidence().store(&evidence).expect("stores");
    let failed = UnitOutcome {
        outcome: Outcome::failed(Reason::Assertion),
        evidence: Some(other.clone()),
        ..passed.clone()
    };
    attempt.record(&[failed]).expect("records");
    let folder = attempt.folder().to_path_buf();
    drop(attempt);

    let ran = recorded.project.run(&["merge", &file]);
    assert_eq!(ran.code, 6, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("invalid  1 (unstable 1)"),
        "{}",
        ran.stdout
    );
    let run = Run::open(&recorded.project.path("data/runs"), "r").expect("opens");
    let outcomes = run.outcomes().expect("reads");
    let unit = outcomes.iter().find(|one| one.unit() == passed.unit());
    let Outcome::Invalid(fault) = &unit.expect("is there").outcome else {
        panic!("{unit:?}");
    };
    for digest in [passed.evidence.as_ref().expect("evidence"), &other] {
        assert!(fault.message.contains(digest.as_str()), "{}", fault.message);
        run.evidence().read(digest).expect("is kept");
    }
    // The assertions of today cannot tell which machine to believe.
    let ran = recorded.project.run(&["rejudge", "r"]);
    assert!(
        ran.stdout.contains("two machines saw different things"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    let outcomes = run.outcomes().expect("reads");
    assert!(outcomes.iter().any(|one| one.outcome.is_unstable()));
    // Without it everything is as before, to the byte.
    std::fs::remove_dir_all(folder).expect("removes");
    let merged = recorded.merged_like_one(&file, &[]);
    assert_eq!(merged["stored"], "replaced");
    assert!(files(&recorded.project.path("data/runs/r")) == before);
}

#[test]
fn what_is_missing_is_named_and_a_part_is_ranked_by_nothing() {
    let recorded = Recorded::new();
    let project = &recorded.project;
    let (plan, file) = recorded.plan(8);
    let kept: Vec<ShardId> = plan
        .shards()
        .filter(|shard| ![3, 5, 6].contains(&shard.index()))
        .collect();
    for shard in kept {
        recorded.sealed(&plan, shard, u128::from(shard.index()));
    }
    let n_missing: usize = plan
        .shards()
        .filter(|shard| [3, 5, 6].contains(&shard.index()))
        .map(|shard| plan.places(shard).len())
        .sum();
    let ran = project.run(&["merge", &file]);
    assert_eq!(ran.code, 75, "{}{}", ran.stdout, ran.stderr);
    for part in [
        &format!("nothing was written: {n_missing} of 9 units"),
        "sbatch --array=3,5-6",
        "(shard 5)",
    ] {
        assert!(
            ran.stdout.contains(part),
            "{part:?} is not in:\n{}",
            ran.stdout
        );
    }
    assert!(!project.path("data/runs/r").exists());

    let ran = project.run(&["merge", &file, "--partial"]);
    assert_eq!(ran.code, 75, "{}{}", ran.stdout, ran.stderr);
    for command in [
        &["report", "r"][..],
        &["analyze", "r"],
        &["report", "--baseline", "r"],
    ] {
        let ran = project.run(command);
        assert_eq!(ran.code, 2, "{command:?}: {}", ran.stdout);
        assert!(
            ran.stderr.contains("is a part of its plan"),
            "{}",
            ran.stderr
        );
    }
    let shown = project.run(&["show", "r"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("not finished"), "{}", shown.stdout);

    for index in [3, 5, 6] {
        let shard = ShardId::new(index, 8).expect("a shard");
        recorded.sealed(&plan, shard, u128::from(index));
    }
    let merged = recorded.merged_like_one(&file, &[]);
    assert_eq!(merged["stored"], "replaced");

    // Nor does a part take the place of the whole.
    let nothing = project.path("data/nothing");
    std::fs::create_dir(&nothing).expect("makes");
    let before = files(&project.path("data/runs/r"));
    let nothing = nothing.to_str().expect("text");
    let ran = project.run(&["merge", &file, nothing, "--partial"]);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    assert!(files(&project.path("data/runs/r")) == before);
}

#[test]
fn a_name_that_is_taken_is_left_alone() {
    let recorded = Recorded::new();
    let (plan, file) = recorded.plan(1);
    recorded.sealed(&plan, ShardId::new(1, 1).expect("a shard"), 1);
    let runs = recorded.project.path("data/runs");
    std::fs::rename(recorded.project.path("one/r"), runs.join("r")).expect("moves");
    let before = files(&runs);
    let ran = recorded.project.run(&["merge", &file]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("--run ID"), "{}", ran.stderr);
    assert!(files(&runs) == before);
    let ran = recorded.project.run(&["merge", &file, "--run", "other"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
}
