//! What Pods say of themselves, in the words of shards, and what to type.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use crate::domain::visible::in_short;

pub(super) const JOB_NAME: &str = "batch.kubernetes.io/job-name";
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Reasons for which a container waits whose image does not come.
const NO_IMAGE: [&str; 4] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
];

/// The Job of a Pod, and its shard.
pub(super) fn shard<'a>(pod: &'a Pod, of_job: &BTreeMap<&str, Vec<u32>>) -> Option<(&'a str, u32)> {
    let labels = pod.metadata.labels.as_ref()?;
    let annotations = pod.metadata.annotations.as_ref();
    let index = labels.get(INDEX).or_else(|| annotations?.get(INDEX))?;
    let job = labels.get(JOB_NAME)?.as_str();
    let shard = of_job.get(job)?.get(index.parse::<usize>().ok()?)?;
    Some((job, *shard))
}

/// What keeps a Pod from its work, and what to type.
pub(super) fn obstacles(namespace: &str, job: &str, pod: &Pod, shard: u32) -> Vec<String> {
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

pub(super) fn name_of(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or_default()
}

/// A reason and a message of the cluster, on one line.
pub(super) fn said(reason: Option<&str>, message: Option<&str>) -> String {
    let parts = [reason, message]
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty());
    in_short(&parts.collect::<Vec<_>>().join(": "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A Pod of the shard 5.
    fn pod(status: Value) -> Pod {
        let value = json!({ "metadata": { "name": "plan-1-1-abcde" }, "status": status });
        serde_json::from_value(value).expect("a Pod")
    }

    #[test]
    fn what_keeps_a_shard_up_is_told_with_what_to_type() {
        let check = |pod: Pod, expected: &[&str]| {
            let told = obstacles("lab", "plan-1", &pod, 5).join("\n");
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
        check(pod(json!({ "phase": "Running" })), &[]);
        check(
            pod(container(
                json!({ "waiting": { "reason": "ContainerCreating" } }),
            )),
            &[],
        );
        let pull = json!({ "waiting": { "reason": "ImagePullBackOff", "message": "Back-off pulling image" } });
        check(
            pod(container(pull)),
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
            pod(container(config)),
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
            pod(nowhere),
            &[
                "shard 5 finds no node",
                "3 Insufficient cpu",
                "kubectl describe pod",
            ],
        );
        let evicted = json!({
            "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
            "conditions": [{ "type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet" }],
        });
        check(
            pod(evicted),
            &[
                "shard 5 was evicted (The node was low",
                "TerminationByKubelet",
                "another one goes on",
            ],
        );
        let ended = |code: i32, reason: &str| {
            container(json!({ "terminated": { "exitCode": code, "reason": reason } }))
        };
        check(pod(ended(0, "Completed")), &[]);
        check(
            pod(ended(78, "Error")),
            &[
                "shard 5 can never be run there",
                "kubectl logs plan-1-1-abcde",
            ],
        );
        check(
            pod(ended(75, "Error")),
            &["shard 5 ended with exit code 75", "kubectl logs"],
        );
        check(
            pod(ended(137, "OOMKilled")),
            &["more memory", "fewer --cpus"],
        );
        let mut lost = pod(json!({ "phase": "Running" }));
        let when = json!("2026-12-01T00:00:00Z");
        lost.metadata.deletion_timestamp = Some(serde_json::from_value(when).expect("a time"));
        check(lost, &["kubectl delete pod plan-1-1-abcde -n lab --force"]);
    }
}
