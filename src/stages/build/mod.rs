//! Building candidates with a model: a builder harness works in a cell that holds the skeleton and the rendered document,
//! and has no way out but a gateway to its model. It submits with a command; what passes the contract check is frozen,
//! what fails comes back with the findings.

mod builder;
mod opencode;
mod progress;
mod room;
mod session;
mod settings;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde::Serialize;

use super::contract::{self, Bench};
use super::document::{self, Format};
use super::sandboxes::{self, SandboxKind};
use super::{Classify, Context, Failure, Kind, Result};
use crate::adapters::gateway::Upstream;
use crate::domain::digest;
use crate::storage::builds::{self, Build, BuildFolder, State};
use crate::storage::candidates;
use builder::{Builder, CommandBuilder};
use opencode::OpenCode;
use progress::{Line, Lines};
use session::Session;
pub use settings::Settings;

#[derive(Debug, Clone)]
pub struct Config {
    /// A name of `pipeline/build.toml`.
    pub model: Option<String>,
    /// A command that builds in the place of OpenCode.
    pub builder: Option<String>,
    /// Host folders that such a command sees, read-only, as `/shown/NAME` with the last part of their path.
    pub show: Vec<PathBuf>,
    /// How many builds there are to be; those that are there already count.
    pub builds: usize,
    /// The builds are NAME-1, NAME-2, …; a single one is NAME. The model's name unless given.
    pub name: Option<String>,
    /// Where builds lie.
    pub folder: PathBuf,
    pub sandbox: SandboxKind,
    pub settings: Settings,
    pub check: contract::Settings,
    pub sandboxes: sandboxes::Settings,
}

#[derive(Debug, Serialize)]
pub struct Summary {
    /// Builds whose process had died.
    pub voided: Vec<String>,
    /// Builds of this model, builder, document, skeleton and settings that were there already.
    pub known: Vec<String>,
    /// What was built now, in the order in which it ended.
    pub built: Vec<Built>,
    /// What our side broke now.
    pub broken: Vec<Broken>,
}

#[derive(Debug, Serialize)]
pub struct Built {
    pub folder: PathBuf,
    /// The frozen candidate.
    pub candidate: Option<PathBuf>,
    pub build: Build,
}

/// A build that is void, or that could not even begin.
#[derive(Debug, Serialize)]
pub struct Broken {
    pub name: String,
    pub why: String,
    #[serde(skip)]
    failure: Failure,
}

/// What all builds of a run share.
struct Plan<'a> {
    context: &'a Context,
    config: &'a Config,
    bench: Bench<'a>,
    builder: Box<dyn Builder>,
    upstream: Option<Upstream>,
    document: String,
    lines: Lines,
    /// What a record begins with.
    record: Build,
}

/// Builds until there are as many as wanted. What breaks one build leaves those beside it alone; an error is that of the
/// first when all broke.
pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let summary = runtime.block_on(build_all(context, config));
    runtime.shutdown_timeout(Duration::from_secs(2));
    summary
}

async fn build_all(context: &Context, config: &Config) -> Result<Summary> {
    let voided = builds::void_dead(&config.folder)?;
    let plan = plan(context, config).await?;
    let known: Vec<String> = match config.model {
        None => Vec::new(),
        Some(_) => builds::read_all(&config.folder)?
            .into_iter()
            .filter(|build| build.state.counts() && is_alike(build, &plan.record))
            .map(|build| build.name)
            .collect(),
    };
    let n_missing = config.builds.saturating_sub(known.len());
    context.progress.begin("build", Some(n_missing as u64));
    let ended: Vec<std::result::Result<Built, Broken>> = futures_util::stream::iter(0..n_missing)
        .map(|_| build(&plan))
        .buffer_unordered(config.settings.jobs)
        .collect()
        .await;
    let (mut built, mut broken) = (Vec::new(), Vec::new());
    for one in ended {
        match one {
            Ok(one) => built.push(one),
            Err(one) => broken.push(one),
        }
    }
    if built.is_empty() && !broken.is_empty() {
        return Err(broken.swap_remove(0).failure);
    }
    let n_passed = built.iter().filter(|one| one.candidate.is_some()).count();
    context.progress.end(&format!(
        "{} built, {n_passed} of them pass; {} broke; {} were there already",
        built.len(),
        broken.len(),
        known.len()
    ));
    Ok(Summary {
        voided,
        known,
        built,
        broken,
    })
}

async fn plan<'a>(context: &'a Context, config: &'a Config) -> Result<Plan<'a>> {
    let settings = &config.settings;
    let model = match &config.model {
        Some(name) => Some(settings.model(name)?),
        None => None,
    };
    let upstream = model.map(settings::Model::upstream).transpose()?;
    let builder: Box<dyn Builder> = match (&config.builder, model) {
        (Some(command), _) => Box::new(CommandBuilder::new(command, &config.show)?),
        (None, Some(model)) => Box::new(OpenCode::new(context, model, settings.compact_at)?),
        (None, None) => {
            return Err(Failure::user("OpenCode builds with a model")
                .hint("pipeline build --model NAME, or --builder COMMAND"));
        }
    };
    let sandbox = sandboxes::open(context, config.sandbox, &config.sandboxes.image).await?;
    let document = document::render(context, Format::Markdown)?;
    let record = Build {
        name: String::new(),
        state: State::Running,
        why: None,
        builder: builder.name(),
        packages: builder.packages(),
        model: config.model.clone(),
        started_at: context.timestamp(),
        duration_ms: 0,
        settings: settings.digest(model),
        document: digest::of([&document]),
        skeleton: candidates::digest(&context.project.skeleton())?,
        sandbox: sandbox.name().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        turns: Vec::new(),
        submissions: Vec::new(),
    };
    Ok(Plan {
        context,
        config,
        bench: Bench {
            context,
            sandbox: Arc::clone(&sandbox),
            limits: config.sandboxes.limits.clone(),
            install_limit: config.sandboxes.install_limit(),
            cells: sandboxes::cells(context, &config.sandboxes.cells)?,
            settings: config.check.clone(),
        },
        builder,
        upstream,
        document,
        lines: Lines::default(),
        record,
    })
}

/// Whether two builds are repetitions of each other.
fn is_alike(one: &Build, other: &Build) -> bool {
    let key = |build: &Build| {
        [
            build.model.clone(),
            Some(build.builder.clone()),
            build.packages.clone(),
            Some(build.settings.clone()),
            Some(build.document.clone()),
            Some(build.skeleton.clone()),
        ]
    };
    key(one) == key(other)
}

/// One build.
async fn build(plan: &Plan<'_>) -> std::result::Result<Built, Broken> {
    let config = plan.config;
    let base = config.name.as_ref().or(config.model.as_ref());
    let base = base.map_or("build", String::as_str).replace('/', "-");
    let exact = config.name.is_some() && config.builds == 1;
    let frozen = plan.context.project.frozen();
    // A record says which tree a name stands for, and says so for good.
    let is_frozen =
        |name: &str| candidates::read_record(&frozen, name).map_or(true, |it| it.is_some());
    let broken = |name: &str, failure: Failure| Broken {
        name: name.to_owned(),
        why: failure.to_string(),
        failure,
    };
    let (folder, name) = BuildFolder::create(&config.folder, &base, exact, is_frozen)
        .kind(Kind::User)
        .map_err(|failure| broken(&base, failure))?;
    let built = build_in(plan, &folder, &name).await;
    plan.context.progress.advance(1);
    built.map_err(|failure| {
        plan.context
            .progress
            .note(&format!("{name}: void: {failure}"));
        broken(&name, failure)
    })
}

/// When our side breaks the build is void, and the error says why; but a submission that passed has passed.
async fn build_in(plan: &Plan<'_>, folder: &BuildFolder, name: &str) -> Result<Built> {
    let line = Line {
        context: plan.context,
        lines: &plan.lines,
        name: name.to_owned(),
    };
    let record = Build {
        name: name.to_owned(),
        ..plan.record.clone()
    };
    folder.write(&record)?;
    let mut session = Session::new(
        &plan.bench,
        &*plan.builder,
        &plan.config.settings,
        folder,
        line,
        record,
    );
    let ended = in_cell(plan, &mut session).await;
    let mut build = session.build.clone();
    if let Err(failure) = ended {
        if build.state == State::Running {
            build.state = State::Void;
            build.why = Some(failure.to_string());
            // The first error is the one to tell.
            let _ = folder.write(&build);
            return Err(failure);
        }
        let why = build.why.unwrap_or_default();
        build.why = Some(format!("{why}; then our side broke: {failure}"));
        session.line.note(&format!("our side broke: {failure}"));
    }
    folder.write(&build)?;
    Ok(Built {
        candidate: (build.state == State::Passed).then(|| folder.candidate(&build.name)),
        folder: folder.path.clone(),
        build,
    })
}

async fn in_cell(plan: &Plan<'_>, session: &mut Session<'_>) -> Result<()> {
    let root = plan.bench.cells.make()?;
    let cell = room::open(
        &plan.bench,
        &*plan.builder,
        &session.build.name,
        root.path(),
        &plan.document,
        &plan.config.settings.limits,
    )
    .await?;
    session.run(cell, plan.upstream.clone()).await?;
    Ok(root.remove()?)
}
