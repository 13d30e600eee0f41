//! What a container of ours looks like to the daemon, and how it goes away.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount as DockerMount, MountType,
};
use bollard::query_parameters::{
    CreateContainerOptions, InspectContainerOptions, RemoveContainerOptionsBuilder,
    WaitContainerOptionsBuilder,
};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use tokio::time::timeout;

use super::Docker;
use super::daemon::sort;
use crate::adapters::sandbox::INIT_ARGUMENT;
use crate::adapters::sandbox::cell::Remains;
use crate::adapters::sandbox::error::SandboxError;
use crate::adapters::sandbox::maker::owner;
use crate::adapters::sandbox::spec::{Limits, Mount};

/// Containers carry these labels: what they are for, and who made them.
const LABEL_RUN: &str = "doc2harness.run";
const LABEL_PID: &str = "doc2harness.pid";
pub(super) const LABEL_MAKER: &str = "doc2harness.maker";

/// Where our program and the control socket are inside.
const PROGRAM: &str = "/.doc2harness/pipeline";
const SOCKET_FOLDER: &str = "/.doc2harness/run";
pub(super) const SOCKET: &str = "control.sock";

/// How long the daemon may take to remove a container whose process has ended.
const REMOVE_LIMIT: Duration = Duration::from_secs(60);

impl Docker {
    pub(super) async fn create(
        &self,
        label: &str,
        body: ContainerCreateBody,
    ) -> Result<Container, SandboxError> {
        let created = self
            .client
            .create_container(None::<CreateContainerOptions>, body)
            .await
            .map_err(|error| match &error {
                Error::DockerResponseServerError {
                    status_code: 404,
                    message,
                } if message.contains("No such image") => SandboxError::ImageMissing {
                    image: self.image.clone(),
                },
                _ => sort(label, "create a container", error),
            })?;
        Ok(Container {
            client: self.client.clone(),
            id: created.id,
            label: label.into(),
            process: None,
            removed: false,
        })
    }

    pub(super) fn body(
        &self,
        label: &str,
        mounts: &[Mount],
        folders: &[PathBuf],
        limits: &Limits,
        socket_folder: &Path,
    ) -> ContainerCreateBody {
        let own = [
            Mount::read_only(self.folder.path().join("pipeline"), PROGRAM),
            Mount::read_only(socket_folder, SOCKET_FOLDER),
        ];
        let memory = (limits.memory_mib << 20) as i64;
        let host = HostConfig {
            auto_remove: Some(true),
            network_mode: Some("none".into()),
            readonly_rootfs: Some(true),
            cap_drop: Some(vec!["ALL".into()]),
            security_opt: Some(vec!["no-new-privileges:true".into()]),
            memory: Some(memory),
            memory_swap: Some(memory),
            // Process 1 is counted too.
            pids_limit: Some(limits.pids as i64 + 1),
            nano_cpus: Some((limits.cpus * 1e9) as i64),
            tmpfs: Some(in_memory(folders, limits)),
            // Ours, which has a bound on files too, stands in for the daemon's `/dev/shm`.
            ipc_mode: Some("none".into()),
            mounts: Some(own.iter().chain(mounts).map(bind).collect()),
            // Output does not pass through the daemon.
            log_config: Some(HostConfigLogConfig {
                typ: Some("none".into()),
                config: None,
            }),
            init: Some(false),
            ..HostConfig::default()
        };
        let (uid, gid) = owner();
        ContainerCreateBody {
            image: Some(self.image.clone()),
            entrypoint: Some(vec![PROGRAM.into()]),
            cmd: Some(vec![
                INIT_ARGUMENT.into(),
                "--connect".into(),
                format!("{SOCKET_FOLDER}/{SOCKET}"),
            ]),
            user: Some(format!("{uid}:{gid}")),
            hostname: Some("sandbox".into()),
            working_dir: Some("/".into()),
            labels: Some(HashMap::from([
                (LABEL_RUN.into(), label.into()),
                (LABEL_PID.into(), self.maker.pid().to_string()),
                (LABEL_MAKER.into(), self.maker.to_string()),
            ])),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        }
    }
}

/// A container that has not been removed yet. When this is dropped it is removed in the background.
pub(super) struct Container {
    client: bollard::Docker,
    pub(super) id: String,
    label: String,
    /// Process 1, once it has called.
    pub(super) process: Option<u32>,
    removed: bool,
}

impl Container {
    pub(super) async fn is_running(&self) -> bool {
        let inspected = self
            .client
            .inspect_container(&self.id, None::<InspectContainerOptions>)
            .await;
        inspected
            .ok()
            .and_then(|container| container.state?.running)
            .unwrap_or(false)
    }

    /// Waits for a condition of the daemon's; a container that is not there fulfils any.
    pub(super) async fn wait(&self, condition: &str) {
        let options = WaitContainerOptionsBuilder::default()
            .condition(condition)
            .build();
        // Exit codes other than 0 arrive as errors; none is of interest.
        let _ = self
            .client
            .wait_container(&self.id, Some(options))
            .next()
            .await;
    }

    /// Removes it by force; returns whether it was there.
    pub(super) async fn remove(mut self) -> bool {
        self.removed = true;
        remove(&self.client, &self.id).await
    }
}

pub(super) async fn remove(client: &bollard::Docker, id: &str) -> bool {
    let options = RemoveContainerOptionsBuilder::default()
        .force(true)
        .v(true)
        .build();
    matches!(
        timeout(REMOVE_LIMIT, client.remove_container(id, Some(options))).await,
        Ok(Ok(()))
    )
}

impl Remains for Container {
    fn process(&self) -> Option<u32> {
        self.process
    }

    fn gone(mut self: Box<Self>) -> BoxFuture<'static, Result<(), SandboxError>> {
        async move {
            if timeout(REMOVE_LIMIT, self.wait("removed")).await.is_ok() {
                self.removed = true;
                return Ok(());
            }
            let label = self.label.clone();
            if self.remove().await {
                return Ok(());
            }
            Err(SandboxError::Lost {
                label,
                why: "its container cannot be removed".into(),
            })
        }
        .boxed()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if let (false, Ok(runtime)) = (self.removed, tokio::runtime::Handle::try_current()) {
            let (client, id) = (self.client.clone(), std::mem::take(&mut self.id));
            runtime.spawn(async move { remove(&client, &id).await });
        }
    }
}

/// The writable file systems of a container, with their options.
fn in_memory(folders: &[PathBuf], limits: &Limits) -> HashMap<String, String> {
    let (uid, gid) = owner();
    let of_folder = format!("uid={uid},gid={gid},mode=755,{}", limits.of_folder());
    let mut all: HashMap<String, String> = folders
        .iter()
        .map(|inside| {
            let options = format!("rw,exec,nosuid,nodev,{of_folder}");
            (inside.to_string_lossy().into_owned(), options)
        })
        .collect();
    for (place, exec) in [("/tmp", "exec"), ("/dev/shm", "noexec")] {
        let options = format!("rw,{exec},nosuid,nodev,{}", limits.of_tmp());
        all.insert(place.into(), options);
    }
    all
}

fn bind(mount: &Mount) -> DockerMount {
    DockerMount {
        typ: Some(MountType::BIND),
        source: Some(mount.host.to_string_lossy().into_owned()),
        target: Some(mount.inside.to_string_lossy().into_owned()),
        read_only: Some(!mount.writable),
        ..DockerMount::default()
    }
}
