//! Kubernetes as an engine: an Indexed Job with an index a shard. Its Pods see the project on a volume; the merge is the
//! follower's. Never run on a live cluster: the manifest is held by its types, the rest by a server that a test plays.

mod manifest;
mod pods;
mod seen;

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::Job;

use super::engine::{Blind, Engine, Queue, Seen};
use super::places::Places;
use super::{Cluster, Config};
use crate::adapters::kubernetes::{Api, ApiError};
use crate::domain::shard::ranges;
use crate::stages::{Failure, Kind, Result, plan};
use crate::storage::plans::StoredPlan;
use manifest::Manifest;

/// The label by which the Jobs of a plan and their Pods are found.
const LABEL: &str = "doc2harness/plan";

pub(super) struct Kubernetes<'a> {
    places: &'a Places,
    plan: &'a StoredPlan,
    manifest: Manifest<'a>,
    api: Api,
    namespace: &'a str,
}

impl<'a> Kubernetes<'a> {
    pub fn new(
        places: &'a Places,
        config: &Config,
        cluster: &'a Cluster,
        plan: &'a StoredPlan,
    ) -> Result<Self> {
        for path in [&places.plan, &places.shards] {
            if !path.starts_with(&places.root) {
                let message = format!(
                    "{} is not below the project, which is all that Pods see",
                    path.display()
                );
                return Err(Failure::user(message));
            }
        }
        let limits = plan::limits(plan)?;
        Ok(Self {
            places,
            plan,
            manifest: Manifest {
                places,
                cluster,
                cpus: config.cpus,
                memory_mib: u64::from(config.cpus) * limits.memory_mib,
            },
            api: Api::new(cluster.api.clone(), &cluster.namespace).map_err(failure)?,
            namespace: &cluster.namespace,
        })
    }

    /// What would be submitted for these shards as the Job of this number.
    pub fn manifest(&self, shards: &[u32], number: u32) -> Result<Job> {
        self.manifest.job(shards, number)
    }

    fn selector(&self) -> String {
        format!("{LABEL}={}", self.places.name)
    }

    /// Shards that have succeeded by the word of the Jobs, and of which no seal is seen here.
    fn unseen(&self, jobs: &[Job]) -> Option<String> {
        let open = self.places.open(self.plan, &BTreeSet::new());
        let succeeded: BTreeSet<u32> = jobs.iter().flat_map(seen::succeeded).collect();
        let unseen: Vec<u32> = open
            .into_iter()
            .filter(|one| succeeded.contains(one))
            .collect();
        (!unseen.is_empty()).then(|| {
            format!(
                "shards {} have succeeded, but no seal is in {}: does this machine see the volume? else copy that \
                 folder here and type: pipeline merge PLAN DIR",
                ranges(&unseen),
                self.places.folder.display()
            )
        })
    }

    async fn jobs(&self) -> std::result::Result<Vec<Job>, ApiError> {
        self.api.jobs(&self.selector()).await
    }
}

impl Engine for Kubernetes<'_> {
    const NAME: &'static str = "kubernetes";

    async fn queue(&self) -> Result<Queue> {
        let jobs = self.jobs().await.map_err(failure)?;
        Ok(Queue {
            shards: jobs.iter().flat_map(seen::unfinished).collect(),
            arrays: jobs
                .into_iter()
                .filter_map(|job| job.metadata.name)
                .collect(),
        })
    }

    /// The number comes from the list that told which shards are open: of two who submit now, one finds the name taken.
    async fn submit(&self, shards: &[u32], queue: &Queue) -> Result<String> {
        let numbers = queue.arrays.iter().map(|name| manifest::number(name));
        let number = numbers.max().unwrap_or(0).saturating_add(1);
        let job = self.manifest(shards, number)?;
        let name = job.metadata.name.clone().unwrap_or_default();
        if self.api.create(&job).await.map_err(failure)? {
            return Ok(name);
        }
        // It is this one when the answer to a first request was lost.
        let jobs = self.jobs().await.map_err(failure)?;
        let there = jobs
            .iter()
            .find(|one| one.metadata.name.as_ref() == Some(&name));
        let what = match there.map(manifest::shards) {
            Some(theirs) if theirs == shards => return Ok(name),
            Some(theirs) => format!("with the shards {}", ranges(&theirs)),
            None => "and is none of this plan".to_owned(),
        };
        let message = format!("the Job {name} is there already, {what}; nothing was submitted");
        Err(Failure::new(Kind::Environment, message).hint(
            "somebody else has submitted at the same time: type the same again, and what is open then is submitted",
        ))
    }

    async fn submit_merge(&self, _arrays: &BTreeSet<String>) -> Result<Option<String>> {
        Ok(None)
    }

    async fn look(&self) -> std::result::Result<Seen, Blind> {
        let blind = |error| match error {
            ApiError::Silent { .. } | ApiError::Busy { .. } => Blind::Now(error.to_string()),
            error => Blind::Forever(failure(error)),
        };
        let jobs = self.jobs().await.map_err(blind)?;
        let pods = self.api.pods(&self.selector()).await.map_err(blind)?;
        let mut seen = seen::seen(self.namespace, &jobs, &pods);
        if seen.is_over {
            seen.obstacles.extend(self.unseen(&jobs));
        }
        Ok(seen)
    }

    fn last_words(&self, _shard: u32) -> Option<String> {
        None
    }
}

fn failure(error: ApiError) -> Failure {
    let is_silent = matches!(error, ApiError::Silent { .. });
    let failure = Failure {
        kind: Kind::Environment,
        source: error.into(),
        hints: Vec::new(),
    };
    match is_silent {
        true => failure.hint(
            "kubectl proxy shows the API server: start it here, or name another with --api URL",
        ),
        false => failure,
    }
}
