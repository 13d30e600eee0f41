//! The sandbox made of Docker containers: one container a cell, started once, nothing executed in it from outside.
//!
//! Our own program is the container's process. It connects to a Unix socket in a folder mounted for this one cell, so
//! the runner needs no rights over the container's network and asks the daemon for three things only: create, start,
//! and wait until removed. The daemon removes the container when process 1 ends, also when the runner was killed.

mod container;
mod daemon;

use std::collections::HashMap;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, ImageInspect};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, LogsOptionsBuilder, StartContainerOptions,
};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryFutureExt};
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{Instant, timeout};

use self::container::{Container, LABEL_MAKER, SOCKET};
use self::daemon::sort;
use super::error::SandboxError;
use super::init::{SPEAKER, put_first};
use super::maker::{Maker, owner};
use super::protocol::Setup;
use super::spec::Limits;
use super::{Cell, CellSpec, INIT_ARGUMENT, Sandbox, Swept};

/// Our folders in the temporary directory begin with this; the maker follows.
const FOLDER_PREFIX: &str = "doc2harness-";

/// How long a started container may take to call back.
const CALL_LIMIT: Duration = Duration::from_secs(60);
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

/// The id of an image on this machine: a digest of its content.
pub async fn image_id(image: &str) -> Result<String, SandboxError> {
    let client = daemon::connect(None).await?;
    let about = inspect(&client, image).await?;
    about.id.ok_or_else(|| SandboxError::ImageMissing {
        image: image.to_owned(),
    })
}

async fn inspect(client: &bollard::Docker, image: &str) -> Result<ImageInspect, SandboxError> {
    client
        .inspect_image(image)
        .await
        .map_err(|error| match error {
            Error::DockerResponseServerError {
                status_code: 404, ..
            } => SandboxError::ImageMissing {
                image: image.to_owned(),
            },
            error => sort(image, "look for the image", error),
        })
}

impl Docker {
    /// Finds the daemon and the image.
    pub async fn connect(config: DockerConfig) -> Result<Self, SandboxError> {
        let client = daemon::connect(config.socket.as_deref()).await?;
        let maker = Maker::this();
        inspect(&client, &config.image).await?;
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
            folders,
            limits,
            port,
        } = spec;
        let folder = self
            .folder
            .path()
            .join(self.next_cell.fetch_add(1, Ordering::Relaxed).to_string());
        let socket =
            open_socket(&folder).map_err(|error| full_or("the control socket", error, &label))?;
        let body = self.body(&label, &mounts, &folders, &limits, &folder);
        let called = self.call(&label, body, &socket).await;
        // Exactly one may call; the candidate, which comes later, finds nothing here.
        drop(socket);
        let _ = fs::remove_dir_all(&folder);
        let (stream, mut container) = called?;
        // Who called; nobody where the daemon is on another machine.
        let caller = stream.peer_cred().ok().and_then(|caller| caller.pid());
        container.process = caller.and_then(|pid| u32::try_from(pid).ok().filter(|pid| *pid > 0));
        Cell::set_up(
            label,
            stream,
            Setup {
                port,
                limits,
                folders,
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
        body: ContainerCreateBody,
        socket: &UnixListener,
    ) -> Result<(UnixStream, Container), SandboxError> {
        let container = self.create(label, body).await?;
        let called = async {
            let started = self
                .client
                .start_container(&container.id, None::<StartContainerOptions>)
                .map_err(|error| sort(label, "start a container", error));
            tokio::pin!(started);
            // Process 1 often calls while the daemon is still busy telling that it has started.
            tokio::select! {
                biased;
                called = socket.accept() => {
                    started.await?;
                    called.map(|(stream, _)| stream).map_err(|error| full_or("the control socket", error, label))
                }
                answer = &mut started => {
                    answer?;
                    self.wait_for_call(label, &container, socket).await
                }
            }
        };
        match called.await {
            Ok(stream) => {
                if let Some(pid) = stream.peer_cred().ok().and_then(|peer| peer.pid()) {
                    put_first(pid);
                }
                Ok((stream, container))
            }
            Err(error) => {
                container.remove().await;
                Err(error)
            }
        }
    }

    /// Waits for the call from a container that has been started, as long as it runs.
    async fn wait_for_call(
        &self,
        label: &str,
        container: &Container,
        socket: &UnixListener,
    ) -> Result<UnixStream, SandboxError> {
        let deadline = Instant::now() + CALL_LIMIT;
        while Instant::now() < deadline {
            if let Ok(called) = timeout(Duration::from_secs(1), socket.accept()).await {
                return called
                    .map(|(stream, _)| stream)
                    .map_err(|error| full_or("the control socket", error, label));
            }
            if !container.is_running().await {
                return Err(self.why_it_died(label).await);
            }
        }
        let why = "its container did not call back in time".into();
        Err(SandboxError::Lost {
            label: label.into(),
            why,
        })
    }

    /// Runs our program once more in the image, this time to hear what it says before it dies.
    async fn why_it_died(&self, label: &str) -> SandboxError {
        let mut body = self.body(label, &[], &[], &Limits::default(), self.folder.path());
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
                    swept.containers += usize::from(container::remove(&self.client, &id).await);
                }
            }
            Ok(swept)
        }
        .boxed()
    }
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
