//! What many machines cost: `cargo bench --bench merge -- [large] [shards]`, both unless said.
//!
//! `large`  the merge of sixty candidates and four hundred cases, in thirty shards, each unit with evidence of its own of
//!          the size that real units leave (9 KB, packed 2 KB); beside it, as an anchor, what reading and unpacking the
//!          same evidence takes that any merge must do. Limits: 2 s and 200 MB for 24,000 outcomes;
//! `shards` one run of the reference on the whole suite, and beside it eight shards of the same units on the same cores,
//!          with their plan and merge. Limit: 1.05 times the processor time of all processes.

mod large;
mod limits;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use doc2harness::domain::case::{CaseId, Category};
use doc2harness::domain::clause::Scenario;
use doc2harness::domain::evidence::{EVIDENCE_FORMAT, Evidence};
use doc2harness::domain::verdict::{Failure, Outcome, Reason};
use doc2harness::methods::sharding;
use doc2harness::storage::plans::{self, SHARD_PLAN_FORMAT, ShardPlan, StoredPlan};
use doc2harness::storage::runs::{
    PLAN_FORMAT, Plan, PlannedCandidate, PlannedCase, Unit, UnitOutcome,
};
use doc2harness::storage::shards::{self, Attempt, Claim, Machine, Measured, SHARD_FORMAT};

use large::{median, pipeline, project, run_asked};
use limits::limit;

const N_CANDIDATES: usize = 60;
const N_CASES: usize = 400;
const N_SHARDS: usize = 30;
const ROUNDS: usize = 5;

fn main() {
    run_asked(&[("large", large_merge as fn()), ("shards", eight_shards)]);
    limits::end();
}

const SUITE_SHARDS: u32 = 8;
/// Each is the whole suite twice.
const SUITE_ROUNDS: usize = 3;

fn eight_shards() {
    let folder = project(&["pipeline", "cases", "candidates/reference", "data/document"]);
    let root = folder.path();
    let fixed = ["-c", "reference", "--nonce-seed", "s"];
    let one = |run| [&["evaluate", "--fresh", "--run", run], &fixed[..]].concat();
    // Installs the reference, and leaves durations by which units are dealt and ordered.
    pipeline(root, &one("warm"));
    let remove = |name: &str| std::fs::remove_dir_all(root.join(name)).expect("removes");
    let one_run = || {
        let took = pipeline(root, &one("one"));
        remove("data/runs/one");
        took.cpu_s
    };
    let many = || {
        let n = SUITE_SHARDS.to_string();
        let plan = [
            "plan",
            "--shards",
            &n,
            "--run",
            "many",
            "--out",
            "plan.json",
        ];
        let mut around_s = pipeline(root, &[&plan[..], &fixed].concat()).cpu_s;
        let shards: f64 = (1..=SUITE_SHARDS)
            .map(|index| {
                let shard = format!("{index}/{n}");
                let command = ["evaluate", "--plan", "plan.json", "--shard", &shard];
                pipeline(root, &command).cpu_s
            })
            .sum();
        around_s += pipeline(root, &["merge", "plan.json"]).cpu_s;
        remove("data/runs/many");
        remove("data/shards");
        (shards, around_s)
    };
    let (mut alone, mut shards, mut all, mut ratio) = (vec![], vec![], vec![], vec![]);
    for round in 0..SUITE_ROUNDS {
        // Which of them is first makes no difference to the medians.
        let (one_s, (shards_s, around_s)) = match round % 2 {
            0 => {
                let one_s = one_run();
                (one_s, many())
            }
            _ => {
                let many_s = many();
                (one_run(), many_s)
            }
        };
        alone.push(one_s);
        shards.push(shards_s);
        all.push(shards_s + around_s);
        ratio.push((shards_s + around_s) / one_s);
    }
    let (alone, shards, all) = (median(alone), median(shards), median(all));
    ratio.sort_by(f64::total_cmp);
    let (least, most) = (ratio[0], ratio[SUITE_ROUNDS - 1]);
    let ratio = median(ratio);
    println!(
        "the reference on the whole suite, medians of {SUITE_ROUNDS} rounds: {SUITE_SHARDS} shards {shards:.2} s of \
         processor time, {all:.2} s with plan and merge; one run {alone:.2} s; a shard more costs {:.0} ms; ratio {ratio:.3}, \
         from {least:.3} to {most:.3} ({})",
        (shards - alone) * 1e3 / f64::from(SUITE_SHARDS),
        limit(ratio, 1.05)
    );
}

fn large_merge() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    for part in ["pipeline", "data/document", "data/plans"] {
        std::fs::create_dir_all(root.join(part)).expect("makes");
    }
    let file = root.join("data/plans/plan.json");
    plans::write(&file, &plan()).expect("writes");
    let plan = plans::read(&file).expect("reads");
    for shard in plan.shards() {
        record(root, &plan, shard);
    }
    let (mut wall, mut cpu, mut memory, mut anchor) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        anchor.push(unpacked(&root.join("data/shards")));
        let took = pipeline(root, &["--quiet", "merge", file.to_str().expect("text")]);
        wall.push(took.wall_s);
        cpu.push(took.cpu_s);
        memory.push(took.memory_mib * 1.048_576);
        std::fs::remove_dir_all(root.join("data/runs")).expect("removes");
    }
    let (wall, anchor, memory) = (median(wall), median(anchor), median(memory));
    println!(
        "merge of {} outcomes in {N_SHARDS} shards: {wall:.2} s ({}), {:.2} s of processor time, {memory:.0} MB ({}); \
         reading and unpacking the evidence alone, on one core: {anchor:.2} s, ratio {:.2}",
        plan.units().len(),
        limit(wall, 2.0),
        median(cpu),
        limit(memory, 200.0),
        wall / anchor
    );
}

fn plan() -> ShardPlan {
    let cases = (0..N_CASES).map(|idx| {
        let category = Category::ALL[idx % 6];
        let id = CaseId::new(format!("{category}/does-what-it-should-{idx:03}"));
        PlannedCase {
            title: "a tool keeps what the document promises when its input is at the limit".into(),
            clause: "tools.read.range".parse().expect("a clause id"),
            category: Some(category),
            scenario: Some(Scenario::Boundary),
            family: Some(id.clone()),
            controls: Vec::new(),
            digest: "d".into(),
            scenario_digest: "s".into(),
            id,
        }
    });
    let mut cases: Vec<PlannedCase> = cases.collect();
    cases.sort_by(|a, b| a.id.cmp(&b.id));
    let run = Plan {
        format: PLAN_FORMAT,
        run: "large".into(),
        created_at: "2026-12-01T00:00:00Z".into(),
        tool_version: env!("CARGO_PKG_VERSION").into(),
        sandbox: "namespace".into(),
        seed: "s".into(),
        suite: "s".into(),
        repeat: 1,
        candidates: (0..N_CANDIDATES)
            .map(|n| PlannedCandidate {
                name: format!("builds/model-{n}"),
                source: "x".into(),
                digest: "d".into(),
            })
            .collect(),
        cases,
        clauses: BTreeMap::new(),
    };
    let durations =
        vec![(0..N_CASES as u64).map(|idx| 200 + idx * 7 % 300).collect(); N_CANDIDATES];
    let shards = sharding::deal(&durations, N_SHARDS);
    let place = |(candidate, case): (usize, usize)| candidate * N_CASES + case;
    ShardPlan {
        format: SHARD_PLAN_FORMAT,
        evidence_format: EVIDENCE_FORMAT,
        build: None,
        image: None,
        run,
        settings: serde_json::json!({}),
        shards: shards
            .into_iter()
            .map(|shard| shard.into_iter().map(place).collect())
            .collect(),
    }
}

fn record(root: &Path, plan: &StoredPlan, shard: doc2harness::domain::shard::ShardId) {
    let run = &plan.plan.run;
    let claim = Claim {
        format: SHARD_FORMAT,
        attempt: format!("{:032x}", shard.index()),
        shard,
        measured: Measured {
            plan: plan.digest.clone(),
            tool_version: run.tool_version.clone(),
            build: "b".into(),
            image: None,
            evidence_format: EVIDENCE_FORMAT,
            sandbox: run.sandbox.clone(),
            suite: run.suite.clone(),
            candidates: run
                .candidates
                .iter()
                .map(|one| (one.name.clone(), one.digest.clone()))
                .collect(),
        },
        machine: Machine {
            host: "h".into(),
            kernel: "k".into(),
            pid: 1,
            started_at: "2026-12-01T00:00:00Z".into(),
            engine: BTreeMap::new(),
        },
    };
    let folder = shards::folder_of_shard(&root.join("data/shards"), plan, shard);
    let mut attempt = Attempt::begin(&folder, claim).expect("begins");
    let units = plan.places(shard).iter().map(|place| {
        let digest = attempt.evidence().store(&evidence(*place)).expect("stores");
        outcome(&plan.units()[*place], *place, digest)
    });
    let units: Vec<UnitOutcome> = units.collect();
    attempt.record(&units).expect("records");
    attempt.seal(BTreeMap::new()).expect("seals");
}

fn outcome(unit: &Unit, idx: usize, evidence: String) -> UnitOutcome {
    UnitOutcome {
        candidate: unit.candidate.clone(),
        case: unit.case.clone(),
        repetition: 1,
        attempt: 1,
        outcome: match idx % 3 {
            0 => Outcome::Passed,
            _ => Outcome::Failed(Failure {
                reason: Reason::Assertion,
                expected: "requests $.messages[?@.role == 'tool'].content lacks {nonce:secret}"
                    .into(),
                saw: "request 2, message 4: \"a result of a tool & more of it\"".into(),
                place: "launch 1, request 2, $['messages'][3]['content']".into(),
            }),
        },
        evidence: Some(evidence),
        duration_ms: 300,
        cpu_ms: 200,
    }
}

fn evidence(idx: usize) -> Evidence {
    let sent = (1..5).map(|n| {
        let text = format!(
            "say {idx} {n} {:x}",
            idx.wrapping_mul(0x9e37_79b9_7f4a_7c15 + n)
        );
        text.repeat(60)
    });
    large::evidence(&sent.collect::<Vec<_>>())
}

/// Seconds that it takes to read and unpack every archive below a folder.
fn unpacked(folder: &Path) -> f64 {
    let began = Instant::now();
    let mut folders: Vec<PathBuf> = vec![folder.to_path_buf()];
    let mut json = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("reads").flatten() {
            let path = entry.path();
            if entry.file_type().expect("reads").is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "gz") {
                json.clear();
                flate2::read::GzDecoder::new(&std::fs::read(path).expect("reads")[..])
                    .read_to_end(&mut json)
                    .expect("unpacks");
            }
        }
    }
    began.elapsed().as_secs_f64()
}
