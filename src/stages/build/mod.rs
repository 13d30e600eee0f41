//! Building candidates with a model: a builder harness works in a cell that holds the skeleton and the rendered document,
//! and has no way out but a gateway to its model. It submits with a command; what passes the contract check is frozen,
//! what fails comes back with the findings.

mod builder;
mod launched;
mod opencode;
mod progress;
mod room;
mod session;
mod settings;
mod team;

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
use crate::domain::build::{Build, State};
use crate::storage::builds::{self, BuildFolder};
use crate::storage::candidates;
use progress::{Line, Lines};
use session::Session;
pub use settings::{Model, Settings};
use team::Team;

#[derive(Debug, Clone)]
pub struct Config {
    pub orders: Vec<Order>,
    /// A command that builds in the place of OpenCode.
    pub builder: Option<String>,
    /// Host folders that such a command sees, read-only, as `/shown/NAME` with the last part of their path.
    pub show: Vec<PathBuf>,
    /// Where builds lie.
    pub folder: PathBuf,
    pub sandbox: SandboxKind,
    pub settings: Settings,
    pub check: contract::Settings,
    pub sandboxes: sandboxes::Settings,
}

/// Builds of one model.
#[derive(Debug, Clone)]
pub struct Order {
    /// A name of [`Settings::model`]; none for a command that needs no model.
    pub model: Option<String>,
    /// How many builds there are to be; those that are there already count.
    pub builds: usize,
    /// The builds are NAME-1, NAME-2, …; a single one is NAME. The model's name unless given.
    pub name: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct Summary {
    /// Builds whose process had died.
    pub voided: Vec<String>,
    /// Builds of these models with the same builder, document, skeleton and settings that were there already.
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
struct Site<'a> {
    context: &'a Context,
    config: &'a Config,
    bench: Bench<'a>,
    document: String,
    lines: Lines,
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

/// What there is of an order.
#[derive(Debug)]
pub struct Made {
    /// The builder's harness with its version, or a command.
    pub builder: String,
    /// Digest of the rendered document.
    pub document: String,
    /// In whatever state, the earliest first.
    pub builds: Vec<Build>,
}

/// What there is of each order. Nothing is changed.
pub fn known(context: &Context, config: &Config) -> Result<Vec<Made>> {
    let document = document::render(context, Format::Markdown)?;
    let all = builds::read_all(&config.folder)?;
    let teams = team::teams(context, config, &document)?;
    let made = teams.into_iter().map(|team| Made {
        builds: team.made(&all),
        builder: team.record.builder,
        document: team.record.document,
    });
    Ok(made.collect())
}

async fn build_all(context: &Context, config: &Config) -> Result<Summary> {
    let voided = builds::void_dead(&config.folder)?;
    let document = document::render(context, Format::Markdown)?;
    let all = builds::read_all(&config.folder)?;
    let teams = team::teams(context, config, &document)?;
    let (mut known, mut missing) = (Vec::new(), Vec::new());
    for team in &teams {
        let counted = team.made(&all).into_iter();
        let counted = counted.filter(|build| build.state.counts());
        let n_before = known.len();
        known.extend(counted.map(|build| build.name));
        let n_missing = (team.order.builds + n_before).saturating_sub(known.len());
        if n_missing > 0 {
            missing.extend(std::iter::repeat_n(
                (team, team.upstream(config.settings.silence_limit())?),
                n_missing,
            ));
        }
    }
    context.progress.begin("build", Some(missing.len() as u64));
    let ended = match missing.is_empty() {
        true => Vec::new(),
        false => build_missing(context, config, document, missing).await?,
    };
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

type Ended = std::result::Result<Built, Broken>;

async fn build_missing(
    context: &Context,
    config: &Config,
    document: String,
    missing: Vec<(&Team<'_>, Option<Upstream>)>,
) -> Result<Vec<Ended>> {
    let sandbox = sandboxes::open(context, config.sandbox, &config.sandboxes.image).await?;
    let site = Site {
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
        document,
        lines: Lines::default(),
    };
    let ended = futures_util::stream::iter(missing)
        .map(|(team, upstream)| build(&site, team, upstream))
        .buffer_unordered(config.settings.jobs)
        .collect()
        .await;
    Ok(ended)
}

/// One build.
async fn build(site: &Site<'_>, team: &Team<'_>, upstream: Option<Upstream>) -> Ended {
    let order = team.order;
    let base = order.name.as_ref().or(order.model.as_ref());
    let base = base.map_or("build", String::as_str).replace('/', "-");
    let exact = order.name.is_some() && order.builds == 1;
    let frozen = site.context.project.frozen();
    // A record says which tree a name stands for, and says so for good.
    let is_frozen =
        |name: &str| candidates::read_record(&frozen, name).map_or(true, |it| it.is_some());
    let broken = |name: &str, failure: Failure| Broken {
        name: name.to_owned(),
        why: failure.to_string(),
        failure,
    };
    let (folder, name) = BuildFolder::create(&site.config.folder, &base, exact, is_frozen)
        .kind(Kind::User)
        .map_err(|failure| broken(&base, failure))?;
    let built = build_in(site, team, upstream, &folder, &name).await;
    site.context.progress.advance(1);
    built.map_err(|failure| {
        site.context
            .progress
            .note(&format!("{name}: void: {failure}"));
        broken(&name, failure)
    })
}

/// When our side breaks the build is void, and the error says why; but a submission that passed has passed.
async fn build_in(
    site: &Site<'_>,
    team: &Team<'_>,
    upstream: Option<Upstream>,
    folder: &BuildFolder,
    name: &str,
) -> Result<Built> {
    let line = Line {
        context: site.context,
        lines: &site.lines,
        name: name.to_owned(),
    };
    let record = Build {
        name: name.to_owned(),
        ..team.record.clone()
    };
    folder.write(&record)?;
    let mut session = Session::new(
        &site.bench,
        &*team.builder,
        &site.config.settings,
        folder,
        line,
        record,
    );
    let ended = in_cell(site, team, upstream, &mut session).await;
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
        candidate: (build.state == State::Passed).then(|| builds::candidate_in(&folder.path)),
        folder: folder.path.clone(),
        build,
    })
}

async fn in_cell(
    site: &Site<'_>,
    team: &Team<'_>,
    upstream: Option<Upstream>,
    session: &mut Session<'_>,
) -> Result<()> {
    let root = site.bench.cells.make()?;
    let cell = room::open(
        &site.bench,
        &*team.builder,
        &session.build.name,
        root.path(),
        &site.document,
        &site.config.settings.limits,
    )
    .await?;
    session.run(cell, upstream).await?;
    Ok(root.remove()?)
}
