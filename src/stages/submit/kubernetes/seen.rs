//! What Jobs and Pods say of themselves, in the words of shards, and what to type.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::super::engine::Seen;
use super::manifest::shards;
use crate::domain::shard::ranges;
use crate::domain::visible::{shortened, visible_line};

const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// Reasons for which a container waits whose image does not come.
const NO_IMAGE: [&str; 4] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
];
/// So much of what the cluster says is told.
const SHOWN_CHARS: usize = 300;

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
        let Some((job, shard)) = shard(pod, &of_job) else {
            continue;
        };
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        if phase == Some("Running") && unfinished.contains(&shard) {
            running.insert(shard);
        }
        obstacles.extend(of_a_pod(namespace, job, pod, shard));
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

/// The Job of a Pod, and its shard.
fn shard<'a>(pod: &'a Pod, of_job: &BTreeMap<&str, Vec<u32>>) -> Option<(&'a str, u32)> {
    let labels = pod.metadata.labels.as_ref()?;
    let annotations = pod.metadata.annotations.as_ref();
    let index = labels.get(INDEX).or_else(|| annotations?.get(INDEX))?;
    let job = labels.get(JOB_NAME)?.as_str();
    let shard = of_job.get(job)?.get(index.parse::<usize>().ok()?)?;
    Some((job, *shard))
}

fn of_a_pod(namespace: &str, job: &str, pod: &Pod, shard: u32) -> Vec<String> {
    let name = name_of(&pod.metadata.name);
    let describe = format!("kubectl describe pod {name} -n {namespace}");
    let Some(status) = &pod.status else {
        return Vec::new();
    };
    let phase = status.phase.as_deref();
    let mut told = Vec::new();
    for condition in status.conditions.iter().flatten() {
        let said = said(condition.reason.as_deref(), condition.message.as_deref());
        match (condition.type_.as_str(), condition.status.as_str()) {
            ("PodScheduled", "False") if phase == Some("Pending") => told.push(format!(
                "shard {shard} finds no node ({said}); it waits until one is free; more: {describe}"
            )),
            ("DisruptionTarget", "True") => told.push(format!(
                "the Pod of shard {shard} was taken from its node ({said}); another one goes on, nothing is to be typed"
            )),
            _ => {}
        }
    }
    if phase == Some("Failed") && status.reason.as_deref() == Some("Evicted") {
        told.push(format!(
            "the Pod of shard {shard} was evicted ({}); another one goes on; more: {describe}",
            said(None, status.message.as_deref())
        ));
    }
    if pod.metadata.deletion_timestamp.is_some() && phase == Some("Running") {
        told.push(format!(
            "Pod {name} of shard {shard} is being ended, and no other one begins before that; when its node is lost an \
             administrator types: kubectl delete pod {name} -n {namespace} --force --grace-period=0"
        ));
    }
    let containers = status.container_statuses.iter().flatten();
    told.extend(containers.filter_map(|one| of_a_container(one, namespace, job, name, shard)));
    told
}

fn of_a_container(
    container: &ContainerStatus,
    namespace: &str,
    job: &str,
    pod: &str,
    shard: u32,
) -> Option<String> {
    let state = container.state.as_ref()?;
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        let said = said(Some(reason), waiting.message.as_deref());
        return match reason {
            _ if NO_IMAGE.contains(&reason) => Some(format!(
                "the image of shard {shard} cannot be had ({said}); type: kubectl delete job {job} -n {namespace}, and \
                 submit again with another --image"
            )),
            "ContainerCreating" | "PodInitializing" | "" => None,
            _ => Some(format!(
                "the container of shard {shard} does not start ({said}); more: kubectl describe pod {pod} -n {namespace}"
            )),
        };
    }
    let ended = state.terminated.as_ref()?;
    let logs = format!("kubectl logs {pod} -n {namespace}");
    match (ended.exit_code, ended.reason.as_deref()) {
        (0, _) => None,
        (78, _) => Some(format!(
            "shard {shard} can never be run there (exit code 78): program, image, suite or candidates are not those of \
             the plan; its words: {logs}"
        )),
        (code, Some("OOMKilled")) => Some(format!(
            "shard {shard} took more memory than its node has (exit code {code}); submit with fewer --cpus"
        )),
        (code, _) => Some(format!(
            "shard {shard} ended with exit code {code}; its words: {logs}"
        )),
    }
}

fn name_of(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or_default()
}

/// A reason and a message of the cluster, on one line.
fn said(reason: Option<&str>, message: Option<&str>) -> String {
    let parts = [reason, message]
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty());
    let text = parts.collect::<Vec<_>>().join(": ");
    shortened(&visible_line(&text), SHOWN_CHARS).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
    }

    #[test]
    fn what_keeps_a_shard_up_is_told_with_what_to_type() {
        let check = |pod: Pod, expected: &[&str]| {
            let told = seen("lab", &[job(false, json!({}))], &[pod])
                .obstacles
                .join("\n");
            assert_eq!(told.is_empty(), expected.is_empty(), "{told}");
            for part in expected {
                assert!(told.contains(part), "{part:?} is not in {told}");
            }
        };
        let container = |state: Value| {
            let status = json!({
                "name": "shard", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state,
            });
            json!({ "phase": "Pending", "containerStatuses": [status] })
        };
        check(pod(0, json!({ "phase": "Running" })), &[]);
        check(
            pod(
                0,
                container(json!({ "waiting": { "reason": "ContainerCreating" } })),
            ),
            &[],
        );
        let pull = json!({ "waiting": { "reason": "ImagePullBackOff", "message": "Back-off pulling image" } });
        check(
            pod(1, container(pull)),
            &[
                "the image of shard 5",
                "Back-off",
                "kubectl delete job plan-1 -n lab",
                "--image",
            ],
        );
        let config =
            json!({ "waiting": { "reason": "CreateContainerConfigError", "message": "no claim" } });
        check(
            pod(1, container(config)),
            &[
                "shard 5 does not start",
                "no claim",
                "kubectl describe pod plan-1-1-abcde -n lab",
            ],
        );
        let nowhere = json!({
            "phase": "Pending",
            "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/3 nodes are available: 3 Insufficient cpu.",
            }],
        });
        check(
            pod(2, nowhere),
            &[
                "shard 7 finds no node",
                "3 Insufficient cpu",
                "kubectl describe pod",
            ],
        );
        let evicted = json!({
            "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
            "conditions": [{ "type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet" }],
        });
        check(
            pod(3, evicted),
            &[
                "shard 8 was evicted (The node was low",
                "TerminationByKubelet",
                "another one goes on",
            ],
        );
        let ended = |code: i32, reason: &str| {
            container(json!({ "terminated": { "exitCode": code, "reason": reason } }))
        };
        check(pod(0, ended(0, "Completed")), &[]);
        check(
            pod(0, ended(78, "Error")),
            &[
                "shard 3 can never be run there",
                "kubectl logs plan-1-0-abcde",
            ],
        );
        check(
            pod(0, ended(75, "Error")),
            &["shard 3 ended with exit code 75", "kubectl logs"],
        );
        check(
            pod(0, ended(137, "OOMKilled")),
            &["more memory", "fewer --cpus"],
        );
        let mut lost = pod(0, json!({ "phase": "Running" }));
        let when = json!("2026-12-01T00:00:00Z");
        lost.metadata.deletion_timestamp = Some(serde_json::from_value(when).expect("a time"));
        check(lost, &["kubectl delete pod plan-1-0-abcde -n lab --force"]);
        let told = seen("lab", &[job(true, json!({}))], &[]).obstacles;
        assert!(
            told[0].contains("kubectl patch job plan-1 -n lab"),
            "{told:?}"
        );
    }
}
