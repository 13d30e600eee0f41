//! Which sandbox the trials run in, and the folders of its cells.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::trial::Cells;
use super::{Classify, Context, Failure, Kind, Result, install};
use crate::adapters::left_groups;
use crate::adapters::sandbox::{
    Docker, DockerConfig, Limits, Namespaces, Sandbox, docker_image_id,
};
use crate::methods::repetition::Rule;
use crate::storage::runs::Run;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxKind {
    /// Kernel namespaces; no daemon, no image
    Namespace,
    /// A hardened container a case, through the Docker API
    Docker,
}

impl SandboxKind {
    /// As in stored plans, and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Docker => "docker",
        }
    }
}

/// `pipeline/evaluate.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub sandbox: SandboxKind,
    /// The image of Docker cells.
    pub image: String,
    /// Cores to keep busy; 0 means all there are.
    pub jobs: usize,
    /// Cells at the same time at most, those that wait for something included.
    pub most_cells: usize,
    /// How often a trial that our side broke is tried in all.
    pub attempts: u32,
    /// How long a candidate's `install.sh` may take.
    pub install_limit_s: u64,
    /// Where the folders of cells are made.
    pub cells: PathBuf,
    pub limits: Limits,
    /// What may differ between repetitions of a unit.
    pub normalise: Vec<Rule>,
}

/// Memory that must be left when all folders are full, so that who fills them is told so and not killed, and process 1
/// of the cell lives. What files cost beside their content is in it.
const ROOM_MIB: u64 = 128;

impl Settings {
    pub fn read(context: &Context) -> Result<Self> {
        let path = context.project.settings("evaluate");
        let settings: Self = crate::storage::settings::read(&path)
            .map_err(|error| Failure::settings(error.to_string()))?;
        let Limits {
            memory_mib,
            folder_mib,
            tmp_mib,
            ..
        } = settings.limits;
        let needed = 3 * folder_mib + 2 * tmp_mib + ROOM_MIB;
        if memory_mib < needed {
            return Err(Failure::settings(format!(
                "{}: memory_mib is {memory_mib}, but three folders of folder_mib, two of tmp_mib and {ROOM_MIB} for \
                 programs are {needed}",
                path.display()
            )));
        }
        Ok(settings)
    }

    pub fn install_limit(&self) -> Duration {
        Duration::from_secs(self.install_limit_s)
    }

    pub fn jobs(&self) -> usize {
        match self.jobs {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            jobs => jobs,
        }
    }
}

/// Opens the sandbox, and sweeps away what killed runs have left.
pub async fn open(context: &Context, kind: SandboxKind, image: &str) -> Result<Arc<dyn Sandbox>> {
    let sandbox: Arc<dyn Sandbox> = match kind {
        SandboxKind::Namespace => Arc::new(Namespaces::default()),
        SandboxKind::Docker => {
            let config = DockerConfig {
                image: image.to_owned(),
                ..DockerConfig::default()
            };
            let docker = Docker::connect(config).await;
            Arc::new(docker.map_err(|error| Failure::environment(error.to_string()))?)
        }
    };
    sweep(context, &*sandbox).await?;
    Ok(sandbox)
}

/// The id of the image that cells run on; none in a sandbox without images.
pub fn image_id(kind: SandboxKind, image: &str) -> Result<Option<String>> {
    match kind {
        SandboxKind::Namespace => Ok(None),
        SandboxKind::Docker => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let id = runtime.block_on(docker_image_id(image));
            id.map(Some)
                .map_err(|error| Failure::environment(error.to_string()))
        }
    }
}

/// Removes what killed runs have left, but for folders of cells.
pub async fn sweep(context: &Context, sandbox: &dyn Sandbox) -> Result<()> {
    let swept = sandbox
        .sweep()
        .await
        .map_err(|error| Failure::environment(error.to_string()))?;
    let n_swept = swept.containers
        + swept.cgroups
        + swept.folders
        + left_groups::sweep()
        + install::sweep(&context.project.frozen())?
        + usize::from(Run::sweep(&context.project.runs()).kind(Kind::Environment)?);
    if n_swept > 0 {
        context.progress.note(&format!(
            "removed {n_swept} things that killed runs had left"
        ));
    }
    Ok(())
}

/// Makes the folder of this process's cells.
pub fn cells(context: &Context, base: &Path) -> Result<Cells> {
    let (cells, n_swept) = Cells::new(base).map_err(|error| {
        Failure::environment(format!(
            "cannot make folders of cells in {}: {error}",
            base.display()
        ))
        .hint("name another folder as `cells` in pipeline/evaluate.toml")
    })?;
    if n_swept > 0 {
        context
            .progress
            .note(&format!("removed the folders of {n_swept} killed runs"));
    }
    Ok(cells)
}
