//! What Jobs say of themselves, in the words of shards, and what to type.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use super::super::engine::Seen;
use super::manifest::shards;
use super::pods::{self, JOB_NAME, name_of, said};
use crate::domain::shard::ranges;

/// Shards of a Job that wait or run; none when it is over.
pub(super) fn unfinished(job: &Job) -> BTreeSet<u32> {
    if is_over(job) {
        return BTreeSet::new();
    }
    let mut unfinished: BTreeSet<u32> = shards(job).into_iter().collect();
    for shard in [succeeded(job), failed(job)].concat() {
        unfinished.remove(&shard);
    }
    unfinished
}

/// Shards whose Pods have ended with 0.
pub(super) fn succeeded(job: &Job) -> Vec<u32> {
    let status = job.status.as_ref();
    of_indexes(
        job,
        status.and_then(|status| status.completed_indexes.as_deref()),
    )
}

/// Shards that are given up.
fn failed(job: &Job) -> Vec<u32> {
    let status = job.status.as_ref();
    of_indexes(
        job,
        status.and_then(|status| status.failed_indexes.as_deref()),
    )
}

/// The shards of indexes, which a Job writes as `0,2-4`.
fn of_indexes(job: &Job, text: Option<&str>) -> Vec<u32> {
    let shards = shards(job);
    let parts = text.unwrap_or_default().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.parse().ok()?, last.parse().ok()?))
    });
    parts
        .filter_map(|(first, last): (usize, usize)| shards.get(first..=last))
        .flatten()
        .copied()
        .collect()
}

pub(super) fn seen(namespace: &str, jobs: &[Job], pods: &[Pod]) -> Seen {
    let unfinished: BTreeSet<u32> = jobs.iter().flat_map(unfinished).collect();
    let of_job: BTreeMap<&str, Vec<u32>> = jobs
        .iter()
        .map(|job| (name_of(&job.metadata.name), shards(job)))
        .collect();
    let mut running = BTreeSet::new();
    let mut obstacles: Vec<String> = jobs
        .iter()
        .flat_map(|job| of_a_job(namespace, job))
        .collect();
    for pod in pods {
        let Some((job, shard)) = pods::shard(pod, &of_job) else {
            continue;
        };
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        if phase == Some("Running") && unfinished.contains(&shard) {
            running.insert(shard);
        }
        obstacles.extend(pods::obstacles(namespace, job, pod, shard));
    }
    Seen {
        n_running: running.len(),
        n_waiting: unfinished.len() - running.len(),
        is_over: jobs.iter().all(is_over),
        obstacles,
    }
}

/// Of a Job: the conditions that are true, with what they say.
fn conditions(job: &Job) -> impl Iterator<Item = (&str, String)> {
    let conditions = job
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions.filter(|one| one.status == "True").map(|one| {
        let said = said(one.reason.as_deref(), one.message.as_deref());
        (one.type_.as_str(), said)
    })
}

fn is_over(job: &Job) -> bool {
    conditions(job).any(|(kind, _)| ["Complete", "Failed"].contains(&kind))
}

fn of_a_job(namespace: &str, job: &Job) -> Vec<String> {
    let name = name_of(&job.metadata.name);
    let mut told = Vec::new();
    if job
        .spec
        .as_ref()
        .is_some_and(|spec| spec.suspend == Some(true))
    {
        told.push(format!(
            "Job {name} is suspended and waits until somebody resumes it, a queue of the cluster may do so; else type: \
             kubectl patch job {name} -n {namespace} --type=merge -p '{{\"spec\":{{\"suspend\":false}}}}'"
        ));
    }
    let failed = failed(job);
    if !failed.is_empty() {
        told.push(format!(
            "shards {} have failed as often as they may; their words: kubectl logs -n {namespace} -l {JOB_NAME}={name} \
             --prefix; to give them another Job submit again",
            ranges(&failed)
        ));
    }
    let ends = conditions(job).filter(|(kind, _)| *kind == "Failed");
    told.extend(ends.map(|(_, said)| format!("Job {name} has failed ({said})")));
    told
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::pods::INDEX;
    use super::*;

    /// The Job `plan-1` of the shards 3, 5, 7 and 8.
    fn job(suspend: bool, status: Value) -> Job {
        let container =
            json!({ "name": "shard", "env": [{ "name": "SHARDS", "value": "3 5 7 8" }] });
        let value = json!({
            "metadata": { "name": "plan-1" },
            "spec": { "suspend": suspend, "template": { "spec": { "containers": [container] } } },
            "status": status,
        });
        serde_json::from_value(value).expect("a Job")
    }

    fn pod(index: u32, status: Value) -> Pod {
        let value = json!({
            "metadata": {
                "name": format!("plan-1-{index}-abcde"),
                "labels": { INDEX: index.to_string(), JOB_NAME: "plan-1" },
            },
            "status": status,
        });
        serde_json::from_value(value).expect("a Pod")
    }

    #[test]
    fn shards_are_counted_by_what_job_and_pods_say() {
        let check = |job: &Job, pods: &[Pod], expected: (usize, usize, bool)| {
            let seen = seen("lab", std::slice::from_ref(job), pods);
            assert_eq!((seen.n_running, seen.n_waiting, seen.is_over), expected);
        };
        let running = |index| pod(index, json!({ "phase": "Running" }));
        check(&job(false, json!({})), &[], (0, 4, false));
        let some = json!({ "active": 3, "completedIndexes": "0" });
        check(
            &job(false, some.clone()),
            &[running(1), running(1), running(0)],
            (1, 2, false),
        );
        // Pods of another Job of this name, or of an index that it lacks, are nobody's.
        check(&job(false, some), &[running(9)], (0, 3, false));
        let none = json!({ "completedIndexes": "0,2-3", "failedIndexes": "1" });
        check(&job(false, none.clone()), &[], (0, 0, false));
        let mut over = none;
        over["conditions"] = json!([
            { "type": "Suspended", "status": "False" },
            { "type": "Failed", "status": "True", "reason": "FailedIndexes", "message": "Job has failed indexes" },
        ]);
        let over = job(false, over);
        check(&over, &[], (0, 0, true));
        assert_eq!(unfinished(&over), BTreeSet::new());
        assert_eq!(succeeded(&over), [3, 7, 8]);
        let told = seen("lab", &[over], &[]).obstacles.join("\n");
        assert!(
            told.contains("shards 5 have failed as often as they may"),
            "{told}"
        );
        assert!(
            told.contains("plan-1 has failed (FailedIndexes: Job has failed indexes)"),
            "{told}"
        );
        // What is no list of indexes of this Job names no shard.
        for odd in ["x", "2-", "3-9", "9", "3-1", ""] {
            let odd = job(false, json!({ "completedIndexes": odd }));
            assert_eq!(succeeded(&odd), [] as [u32; 0]);
        }
        let held = seen("lab", &[job(true, json!({}))], &[]).obstacles;
        assert!(
            held[0].contains("kubectl patch job plan-1 -n lab"),
            "{held:?}"
        );
    }
}
