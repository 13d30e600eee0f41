//! Shards that are cut short. At each step of writing, simulated on what they leave; and for real, by SIGKILL.
//! `PIPELINE_TEST_SEED=N` repeats the cuts of a run; the seed is printed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use doc2harness::domain::shard::ShardId;
use doc2harness::storage::plans::StoredPlan;
use doc2harness::storage::shards;

use super::{Recorded, claim};
use crate::killed::Dice;

const CUTS: usize = 100;
const KILLS: usize = 6;

fn dice() -> Dice {
    let seed = match std::env::var("PIPELINE_TEST_SEED") {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => std::process::id().into(),
    };
    eprintln!("PIPELINE_TEST_SEED={seed}");
    Dice(seed)
}

/// Finished units in all attempts at a shard.
fn n_lines(folder: &Path) -> usize {
    let attempts = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let logs =
        attempts.filter_map(|attempt| std::fs::read(attempt.path().join("outcomes.jsonl")).ok());
    logs.map(|log| log.iter().filter(|byte| **byte == b'\n').count())
        .sum()
}

/// Attempts at one shard, each cut at another step of writing, until one is sealed. Returns how many were cut.
fn cut_until_sealed(
    recorded: &Recorded,
    plan: &StoredPlan,
    shard: ShardId,
    dice: &mut Dice,
    first: u128,
) -> usize {
    let folder = recorded.folder(plan, shard);
    let mut promised: Vec<usize> = Vec::new();
    for n_cuts in 0.. {
        let finished = shards::finished(&folder, plan, shard).expect("reads");
        assert_eq!(finished.refused, [], "a cut attempt is no broken one");
        for place in &promised {
            assert!(
                finished.done.contains(place),
                "what was on the disk is lost"
            );
        }
        let missing: Vec<usize> = plan
            .places(shard)
            .iter()
            .copied()
            .filter(|place| !finished.done.contains(place))
            .collect();
        let name = first + n_cuts as u128;
        // As `Attempt::begin` was cut: nothing but a folder, or half a claim under another name.
        if dice.below(8) == 0 {
            let attempt = folder.join(format!("{name:032x}"));
            std::fs::create_dir_all(&attempt).expect("makes");
            let text = serde_json::to_vec(&claim(plan, shard, name)).expect("text");
            half(&attempt.join(".claim.json.new"), &text, dice);
            continue;
        }
        let mut attempt = recorded.begin(plan, shard, name);
        let at = attempt.folder().to_path_buf();
        if dice.below(8) == 0 {
            std::fs::remove_file(at.join("outcomes.jsonl")).expect("removes");
            continue;
        }
        // Few at a time, so that many attempts are needed.
        let n = (dice.below(3) as usize).min(missing.len());
        for place in &missing[..n] {
            recorded.record(&mut attempt, &recorded.outcome(plan, *place));
            promised.push(*place);
        }
        if n < missing.len() {
            let next = recorded.outcome(plan, missing[n]);
            match dice.below(4) {
                0 => {}
                1 => half(&at.join("evidence/.draft-abc"), b"half of an archive", dice),
                2 => recorded.store(&attempt, &next),
                _ => {
                    recorded.store(&attempt, &next);
                    let line = serde_json::to_vec(&next).expect("text");
                    half(&at.join("outcomes.jsonl"), &line, dice);
                }
            }
        } else if dice.below(2) == 0 {
            half(&at.join(".seal.json.new"), b"{\"format\": 1", dice);
        } else {
            attempt.seal(finished.kept).expect("seals");
            return n_cuts;
        }
    }
    unreachable!("an attempt is sealed in the end")
}

/// Appends a part of the bytes, never all of them.
fn half(path: &Path, bytes: &[u8], dice: &mut Dice) {
    let n = dice.below(bytes.len() as u64) as usize;
    let mut file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(path)
        .expect("opens");
    file.write_all(&bytes[..n]).expect("writes");
}

#[test]
fn shards_cut_a_hundred_times_lose_nothing_and_contradict_nothing() {
    let recorded = Recorded::new();
    let mut dice = dice();
    let (plan, file) = recorded.plan(3);
    let mut n_cuts = 0;
    let mut first = 1;
    while n_cuts < CUTS {
        for shard in plan.shards() {
            n_cuts += cut_until_sealed(&recorded, &plan, shard, &mut dice, first);
            first += 1 << 20;
        }
        let merged = recorded.merged_like_one(&file, &[]);
        assert_eq!(merged["unstable"], serde_json::json!([]));
        assert_eq!(merged["n_repeated"], 0, "what was finished was run again");
        std::fs::remove_dir_all(recorded.project.path("data/shards")).expect("removes");
    }
}

#[test]
fn a_shard_that_is_killed_goes_on_in_another_attempt() {
    let recorded = Recorded::new();
    let mut dice = dice();
    let (plan, file) = recorded.plan(1);
    let shard = ShardId::new(1, 1).expect("a shard");
    let folder = recorded.folder(&plan, shard);
    let command = ["evaluate", "--plan", &file, "--shard", "1/1", "-j", "1"];
    let mut n_done = 0;
    let mut has_cut = false;
    for _ in 0..KILLS {
        let mut child = recorded
            .project
            .command(&command)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        // Once it has finished one unit more, or two, or at its end.
        let wanted = n_done + 1 + dice.below(2) as usize;
        while n_lines(&folder) < wanted && child.try_wait().expect("waits").is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().expect("kills");
        child.wait().expect("waits");
        let finished = shards::finished(&folder, &plan, shard).expect("reads");
        assert_eq!(finished.refused, []);
        assert!(finished.done.len() >= n_done, "what was finished is lost");
        has_cut |= (1..super::N_UNITS).contains(&finished.done.len());
        n_done = finished.done.len();
    }
    assert!(has_cut, "no attempt was cut between two units");
    let before = shards::finished(&folder, &plan, shard).expect("reads");
    let ran = recorded.project.json(&command);
    assert_eq!(ran["sealed"], true);
    let n_run = ran["n_run"].as_u64().expect("a number") as usize;
    assert_eq!(
        n_run + before.done.len(),
        super::N_UNITS,
        "only what was missing is run"
    );
    let kept: BTreeMap<String, usize> = before.kept;
    assert_eq!(kept.values().sum::<usize>(), before.done.len());
    recorded.merged_like_one(&file, &[]);
}
