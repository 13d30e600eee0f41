//! The manifest: an Indexed Job, from typed structures, so that it has no field that an API server does not know.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{
    Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::{
    Container, EnvVar, PersistentVolumeClaimVolumeSource, PodSpec, PodTemplateSpec,
    ResourceRequirements, SeccompProfile, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::Cluster;
use super::super::places::Places;
use super::LABEL;
use crate::stages::{Failure, Result};

pub(super) struct Manifest<'a> {
    pub places: &'a Places,
    pub cluster: &'a Cluster,
    pub cpus: u32,
    /// Of all trials at the same time.
    pub memory_mib: u64,
}

/// How often an index is tried again; then it has failed, and the others go on.
const RETRIES: i32 = 3;
/// Exit codes of a shard that no other try would change: usage, settings, never.
const HOPELESS: [i32; 3] = [2, 3, 78];
/// The list of shards is one variable of the environment, whose length the kernel bounds (128 KiB).
const MOST_SHARDS: usize = 10_000;
const CONTAINER: &str = "shard";
const VOLUME: &str = "project";
const SHARDS: &str = "SHARDS";

impl Manifest<'_> {
    pub fn job(&self, shards: &[u32], number: u32) -> Result<Job> {
        if shards.len() > MOST_SHARDS {
            return Err(Failure::user(format!(
                "{} shards are more than the {MOST_SHARDS} of one Job",
                shards.len()
            ))
            .hint("plan fewer and longer shards: pipeline plan --shards N"));
        }
        let n = i32::try_from(shards.len()).expect("there are at most ten thousand");
        let name = &self.places.name;
        let labels = BTreeMap::from([
            (
                "app.kubernetes.io/name".to_owned(),
                "doc2harness".to_owned(),
            ),
            (LABEL.to_owned(), name.clone()),
        ]);
        Ok(Job {
            metadata: ObjectMeta {
                name: Some(format!("{name}-{number}")),
                namespace: Some(self.cluster.namespace.clone()),
                labels: Some(labels.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(JobSpec {
                completion_mode: text("Indexed"),
                completions: Some(n),
                // Pods that find no place wait.
                parallelism: Some(n),
                backoff_limit_per_index: Some(RETRIES),
                // Two Pods of an index do no harm, and save nothing.
                pod_replacement_policy: text("Failed"),
                pod_failure_policy: Some(PodFailurePolicy { rules: rules() }),
                template: PodTemplateSpec {
                    metadata: Some(ObjectMeta {
                        labels: Some(labels),
                        ..ObjectMeta::default()
                    }),
                    spec: Some(self.pod(shards)),
                },
                ..JobSpec::default()
            }),
            status: None,
        })
    }

    fn pod(&self, shards: &[u32]) -> PodSpec {
        PodSpec {
            restart_policy: text("Never"),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            // A user namespace of the Pod's own, in which it may make others for its cells.
            host_users: Some(false),
            containers: vec![self.container(shards)],
            volumes: Some(vec![Volume {
                name: VOLUME.to_owned(),
                persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                    claim_name: self.cluster.claim.clone(),
                    read_only: None,
                }),
                ..Volume::default()
            }]),
            ..PodSpec::default()
        }
    }

    fn container(&self, shards: &[u32]) -> Container {
        let command = format!(
            "set -- ${SHARDS}; shift \"$JOB_COMPLETION_INDEX\"; exec pipeline {}",
            self.places.evaluate("$1", self.cpus)
        );
        let root = self.places.root.display().to_string();
        let numbers: Vec<String> = shards.iter().map(u32::to_string).collect();
        Container {
            name: CONTAINER.to_owned(),
            image: Some(self.cluster.image.clone()),
            command: Some(["/bin/sh", "-c", &command].map(str::to_owned).to_vec()),
            working_dir: Some(root.clone()),
            env: Some(vec![EnvVar {
                name: SHARDS.to_owned(),
                value: Some(numbers.join(" ")),
                value_from: None,
            }]),
            resources: Some(ResourceRequirements {
                requests: Some(BTreeMap::from([
                    ("cpu".to_owned(), Quantity(self.cpus.to_string())),
                    (
                        "memory".to_owned(),
                        Quantity(format!("{}Mi", self.memory_mib)),
                    ),
                ])),
                ..ResourceRequirements::default()
            }),
            // The sandbox of cells makes namespaces and mounts /proc in them, which the usual profile forbids.
            security_context: Some(SecurityContext {
                proc_mount: text("Unmasked"),
                seccomp_profile: Some(SeccompProfile {
                    type_: "Unconfined".to_owned(),
                    localhost_profile: None,
                }),
                ..SecurityContext::default()
            }),
            volume_mounts: Some(vec![VolumeMount {
                name: VOLUME.to_owned(),
                mount_path: root,
                ..VolumeMount::default()
            }]),
            ..Container::default()
        }
    }
}

/// What an index that fails costs: nothing when its Pod was taken away, all tries when no try would help.
fn rules() -> Vec<PodFailurePolicyRule> {
    vec![
        PodFailurePolicyRule {
            action: "Ignore".to_owned(),
            on_pod_conditions: Some(vec![PodFailurePolicyOnPodConditionsPattern {
                type_: "DisruptionTarget".to_owned(),
                status: "True".to_owned(),
            }]),
            on_exit_codes: None,
        },
        PodFailurePolicyRule {
            action: "FailIndex".to_owned(),
            on_exit_codes: Some(PodFailurePolicyOnExitCodesRequirement {
                container_name: text(CONTAINER),
                operator: "In".to_owned(),
                values: HOPELESS.to_vec(),
            }),
            on_pod_conditions: None,
        },
    ]
}

fn text(word: &str) -> Option<String> {
    Some(word.to_owned())
}

/// The number of a Job among those of its plan; 0 of one that somebody else has named.
pub(super) fn number(name: &str) -> u32 {
    let number = name.rsplit('-').next().and_then(|end| end.parse().ok());
    number.unwrap_or(0)
}

/// The shards of a Job by index, as its own manifest lists them.
pub(super) fn shards(job: &Job) -> Vec<u32> {
    let pod = job
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    let containers = pod.map_or(&[][..], |pod| &pod.containers);
    let variables = containers.iter().flat_map(|one| one.env.iter().flatten());
    let listed = variables.filter(|variable| variable.name == SHARDS);
    listed
        .filter_map(|variable| variable.value.as_deref())
        .flat_map(str::split_whitespace)
        .filter_map(|number| number.parse().ok())
        .collect()
}
