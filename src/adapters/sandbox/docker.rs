//! The sandbox made of Docker containers: one container a cell, started once, nothing executed in it from outside.
//!
//! Our own program is the container's process. It connects to a Unix socket in a folder mounted for this one cell, so
//! the runner needs no rights over the container's network and asks the daemon for three things only: create, start,
//! and wait until removed. The daemon removes the container when process 1 ends, also when the runner was killed.

use std::collections::HashMap;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount as DockerMount, MountType,
};
use bollard::query_parameters::{
    CreateContainerOptions, InspectContainerOptions, ListContainersOptionsBuilder,
    LogsOptionsBuilder, RemoveContainerOptionsBuilder, StartContainerOptions,
    WaitContainerOptionsBuilder,
};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{Instant, timeout};

use super::cell::Remains;
use super::error::SandboxError;
use super::init::SPEAKER;
use super::maker::{Maker, owner};
use super::protocol::Setup;
use super::spec::{Limits, Mount};
use super::{Cell, CellSpec, INIT_ARGUMENT, Sandbox, Swept};

/// The oldest interface we know to work.
const API: (u32, u32) = (1, 41);

/// Containers carry these labels: what they are for, and who made them.
const LABEL_RUN: &str = "doc2harness.run";
const LABEL_PID: &str = "doc2harness.pid";
const LABEL_MAKER: &str = "doc2harness.maker";

/// Our folders in the temporary directory begin with this; the maker follows.
const FOLDER_PREFIX: &str = "doc2harness-";

/// Where our program and the control socket are inside.
const PROGRAM: &str = "/.doc2harness/pipeline";
const SOCKET_FOLDER: &str = "/.doc2harness/run";
const SOCKET: &str = "control.sock";

/// How long a started container may take to call back.
const CALL_LIMIT: Duration = Duration::from_secs(60);
/// How long the daemon may take to remove a container whose process has ended.
const REMOVE_LIMIT: Duration = Duration::from_secs(60);

const HINT: &str = "start it with `systemctl start docker` or `.ci/start-docker`, join the group `docker` if it is a \
                    matter of rights, or use `--sandbox namespace`";

/// How to use Docker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DockerConfig {
    /// The image that candidates run on.
    pub image: String,
    /// The program that becomes process 1: this very program, or in tests the binary that they belong to. The image
    /// must have the C library that it was built for.
    pub program: PathBuf,
    /// The daemon's socket; absent for that of `DOCKER_HOST`, or else the usual one.
    pub socket: Option<PathBuf>,
}

impl Default for DockerConfig {
    fn default() -> Self {
        DockerConfig {
            image: "doc2harness-base:1".into(),
            program: "/proc/self/exe".into(),
            socket: None,
        }
    }
}

/// Cells made of Docker containers.
#[derive(Debug)]
pub struct Docker {
    client: bollard::Docker,
    image: String,
    maker: Maker,
    /// Holds the program, and a folder for each cell until it has called back.
    folder: TempDir,
    next_cell: AtomicU64,
}

impl Docker {
    /// Finds the daemon and the image.
    pub async fn connect(config: DockerConfig) -> Result<Self, SandboxError> {
        let client = connect_client(config.socket.as_deref()).await?;
        let maker = Maker::this();
        match client.inspect_image(&config.image).await {
            Ok(_) => {}
            Err(Error::DockerResponseServerError {
                status_code: 404, ..
            }) => {
                return Err(SandboxError::ImageMissing {
                    image: config.image,
                });
            }
            Err(error) => return Err(sort(&config.image, "look for the image", error)),
        }
        let folder = tempfile::Builder::new()
            .prefix(&format!("{FOLDER_PREFIX}{maker}-"))
            .tempdir()
            .and_then(|folder| {
                // A copy of our own: the original may be rebuilt while cases run. It can be executed but not read,
                // because the candidate is to learn nothing from it.
                let copy = folder.path().join("pipeline");
                fs::copy(&config.program, &copy)?;
                fs::set_permissions(&copy, fs::Permissions::from_mode(0o111))?;
                Ok(folder)
            })
            .map_err(|error| full_or("the temporary folder", error, "docker sandbox"))?;
        Ok(Docker {
            client,
            image: config.image,
            maker,
            folder,
            next_cell: AtomicU64::new(0),
        })
    }

    async fn open_cell(&self, spec: CellSpec) -> Result<Cell, SandboxError> {
        let CellSpec {
            label,
            mounts,
            limits,
            port,
        } = spec;
        let folder = self
            .folder
            .path()
            .join(self.next_cell.fetch_add(1, Ordering::Relaxed).to_string());
        let socket =
            open_socket(&folder).map_err(|error| full_or("the control socket", error, &label))?;
        let called = self.call(&label, &mounts, &limits, &folder, &socket).await;
        // Exactly one may call; the candidate, which comes later, finds nothing here.
        drop(socket);
        let _ = fs::remove_dir_all(&folder);
        let (stream, container) = called?;
        Cell::set_up(
            label,
            stream,
            Setup {
                port,
                limits,
                confine: None,
            },
            Box::new(container),
        )
        .await
    }

    /// Starts a container and waits for its process 1 to call back.
    async fn call(
        &self,
        label: &str,
        mounts: &[Mount],
        limits: &Limits,
        folder: &Path,
        socket: &UnixListener,
    ) -> Result<(UnixStream, Container), SandboxError> {
        let container = self
            .create(label, self.body(label, mounts, limits, folder))
            .await?;
        let called = async {
            let deadline = Instant::now() + CALL_LIMIT;
            loop {
                if let Ok(called) = timeout(Duration::from_secs(1), socket.accept()).await {
                    return called
                        .map(|(stream, _)| stream)
                        .map_err(|error| full_or("the control socket", error, label));
                }
                if !container.is_running().await {
                    return Err(self.why_it_died(label).await);
                }
                if Instant::now() > deadline {
                    let why = "its container did not call back in time".into();
                    return Err(SandboxError::Lost {
                        label: label.into(),
                        why,
                    });
                }
            }
        };
        let started = async {
            let started = self
                .client
                .start_container(&container.id, None::<StartContainerOptions>)
                .await;
            started.map_err(|error| sort(label, "start a container", error))
        };
        let stream = async {
            // Process 1 calls while the daemon is still busy telling that it has started.
            tokio::pin!(started, called);
            tokio::select! {
                biased;
                answer = &mut started => { answer?; called.await }
                stream = &mut called => { started.await?; stream }
            }
        };
        match stream.await {
            Ok(stream) => Ok((stream, container)),
            Err(error) => {
                container.remove().await;
                Err(error)
            }
        }
    }

    async fn create(
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
            removed: false,
        })
    }

    fn body(
        &self,
        label: &str,
        mounts: &[Mount],
        limits: &Limits,
        folder: &Path,
    ) -> ContainerCreateBody {
        let own = [
            Mount::read_only(self.folder.path().join("pipeline"), PROGRAM),
            Mount::read_only(folder, SOCKET_FOLDER),
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
            tmpfs: Some(HashMap::from([(
                "/tmp".into(),
                format!("rw,exec,nosuid,nodev,mode=1777,size={}m", limits.tmp_mib),
            )])),
            shm_size: Some((limits.tmp_mib << 20) as i64),
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

    /// Runs our program once more in the image, this time to hear what it says before it dies.
    async fn why_it_died(&self, label: &str) -> SandboxError {
        let mut body = self.body(label, &[], &Limits::default(), self.folder.path());
        body.cmd = Some(vec![
            INIT_ARGUMENT.into(),
            "--connect".into(),
            "/nobody".into(),
        ]);
        let host = body.host_config.get_or_insert_default();
        (host.auto_remove, host.log_config) = (Some(false), None);
        let mut said = String::new();
        if let Ok(container) = self.create(label, body).await {
            let _ = self
                .client
                .start_container(&container.id, None::<StartContainerOptions>)
                .await;
            let _ = timeout(CALL_LIMIT, container.wait("not-running")).await;
            let options = LogsOptionsBuilder::default()
                .stdout(true)
                .stderr(true)
                .tail("5")
                .build();
            let mut lines = self.client.logs(&container.id, Some(options));
            while let Ok(Some(Ok(line))) = timeout(Duration::from_secs(5), lines.next()).await {
                said.push_str(&line.to_string());
            }
            container.remove().await;
        }
        // What is said by anybody else comes from a loader that cannot load us.
        if !said.is_empty() && !said.contains(SPEAKER) {
            let why = format!(
                "this program does not run in image {} ({})",
                self.image,
                said.trim()
            );
            return SandboxError::Setup {
                label: label.into(),
                why,
            };
        }
        SandboxError::Lost {
            label: label.into(),
            why: "its container ended before the cell was set up".into(),
        }
    }
}

impl Sandbox for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn owner(&self) -> (u32, u32) {
        owner()
    }

    fn open(&self, spec: CellSpec) -> BoxFuture<'_, Result<Cell, SandboxError>> {
        self.open_cell(spec).boxed()
    }

    fn sweep(&self) -> BoxFuture<'_, Result<Swept, SandboxError>> {
        async {
            let filter = HashMap::from([("label".to_string(), vec![LABEL_MAKER.to_string()])]);
            let options = ListContainersOptionsBuilder::default()
                .all(true)
                .filters(&filter)
                .build();
            let listed = self.client.list_containers(Some(options)).await;
            let mut swept = Swept {
                folders: sweep_folders(),
                ..Swept::default()
            };
            for container in listed.map_err(|error| sort("sweep", "list containers", error))? {
                let maker = container
                    .labels
                    .as_ref()
                    .and_then(|labels| Maker::parse(labels.get(LABEL_MAKER)?));
                if let (true, Some(id)) = (maker.is_some_and(|maker| maker.is_dead()), container.id)
                {
                    swept.containers += usize::from(remove(&self.client, &id).await);
                }
            }
            Ok(swept)
        }
        .boxed()
    }
}

/// A container that has not been removed yet. When this is dropped it is removed in the background.
struct Container {
    client: bollard::Docker,
    id: String,
    label: String,
    removed: bool,
}

impl Container {
    async fn is_running(&self) -> bool {
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
    async fn wait(&self, condition: &str) {
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
    async fn remove(mut self) -> bool {
        self.removed = true;
        remove(&self.client, &self.id).await
    }
}

async fn remove(client: &bollard::Docker, id: &str) -> bool {
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

/// A client of a daemon that is new enough.
async fn connect_client(socket: Option<&Path>) -> Result<bollard::Docker, SandboxError> {
    let unusable = |why: String| SandboxError::Daemon {
        why,
        hint: HINT.into(),
    };
    let client = match socket {
        Some(socket) => {
            let timeout_s = REMOVE_LIMIT.as_secs() * 2;
            bollard::Docker::connect_with_unix(
                &socket.to_string_lossy(),
                timeout_s,
                bollard::API_DEFAULT_VERSION,
            )
        }
        None => match std::env::var("DOCKER_HOST") {
            Ok(host) if !host.starts_with("unix://") => {
                let why = format!(
                    "DOCKER_HOST is {host}, but only a daemon on this machine can show folders"
                );
                return Err(unusable(why));
            }
            _ => bollard::Docker::connect_with_unix_defaults(),
        },
    };
    let client = client.map_err(|error| unusable(error.to_string()))?;
    let client = client
        .negotiate_version()
        .await
        .map_err(|error| unusable(error.to_string()))?;
    let version = client
        .version()
        .await
        .map_err(|error| unusable(error.to_string()))?;
    let api = version.api_version.unwrap_or_default();
    let parsed = api
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    if parsed.is_none_or(|parsed: (u32, u32)| parsed < API) {
        return Err(unusable(format!(
            "its interface is version {api}, and {}.{} is needed",
            API.0, API.1
        )));
    }
    Ok(client)
}

/// Makes a cell's folder and listens on the control socket in it. Only the cell's user can reach it: the folder above is
/// ours alone.
fn open_socket(folder: &Path) -> std::io::Result<UnixListener> {
    let (uid, gid) = owner();
    let socket = folder.join(SOCKET);
    fs::create_dir(folder)?;
    // A socket's path has little room; a temporary directory's may be long.
    let opened = fs::File::open(folder)?;
    let listener = UnixListener::bind(format!("/proc/self/fd/{}/{SOCKET}", opened.as_raw_fd()))?;
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600))?;
    chown(&socket, Some(uid), Some(gid))?;
    chown(folder, Some(uid), Some(gid))?;
    Ok(listener)
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

/// Removes our folders whose maker is dead. Returns how many.
fn sweep_folders() -> usize {
    let Ok(entries) = std::env::temp_dir().read_dir() else {
        return 0;
    };
    let dead = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        // The last part was drawn at random.
        let maker = name
            .to_str()
            .and_then(|name| name.strip_prefix(FOLDER_PREFIX)?.rsplit_once('-'));
        maker
            .and_then(|(maker, _)| Maker::parse(maker))
            .is_some_and(|maker| maker.is_dead())
    });
    dead.filter(|entry| fs::remove_dir_all(entry.path()).is_ok())
        .count()
}

/// Sorts what the daemon, or the way to it, answered.
fn sort(label: &str, what: &str, error: Error) -> SandboxError {
    let (label, why) = (label.to_string(), format!("{what}: {error}"));
    match error {
        Error::DockerResponseServerError { message, .. }
            if message.contains("no space left on device") =>
        {
            SandboxError::DiskFull { what: why }
        }
        Error::DockerResponseServerError {
            status_code: 400, ..
        } => SandboxError::Setup { label, why },
        Error::DockerResponseServerError { .. } | Error::RequestTimeoutError => {
            SandboxError::Lost { label, why }
        }
        _ => SandboxError::Daemon {
            why,
            hint: HINT.into(),
        },
    }
}

fn full_or(what: &str, error: std::io::Error, label: &str) -> SandboxError {
    let what = format!("{what}: {error}");
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => SandboxError::DiskFull { what },
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => SandboxError::Lost {
            label: label.into(),
            why: what,
        },
        _ => SandboxError::Setup {
            label: label.into(),
            why: what,
        },
    }
}
