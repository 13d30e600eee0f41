//! The merge of a large run: `cargo bench --bench merge`. Sixty candidates and four hundred cases, in thirty shards, each
//! unit with evidence of its own of the size that real units leave (9 KB, packed 2 KB). Beside it, as an anchor, what
//! reading and unpacking the same evidence takes that any merge must do.
//!
//! Limits: 2 s and 200 MB for 24,000 outcomes.

mod large;

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

use large::{median, pipeline};

const N_CANDIDATES: usize = 60;
const N_CASES: usize = 400;
const N_SHARDS: usize = 30;
const ROUNDS: usize = 5;

fn main() {
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
    let (wall, anchor) = (median(wall), median(anchor));
    println!(
        "merge of {} outcomes in {N_SHARDS} shards: {wall:.2} s (limit 2), {:.2} s of processor time, {:.0} MB (limit \
         200); reading and unpacking the evidence alone, on one core: {anchor:.2} s, ratio {:.2}",
        plan.units().len(),
        median(cpu),
        median(memory),
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
    };
    let durations =
        vec![(0..N_CASES as u64).map(|idx| 200 + idx * 7 % 300).collect(); N_CANDIDATES];
    let shards = sharding::deal(&durations, N_SHARDS);
    let place = |(candidate, case): (usize, usize)| candidate * N_CASES + case;
    ShardPlan {
        format: SHARD_PLAN_FORMAT,
        evidence_format: EVIDENCE_FORMAT,
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
