//! Building a candidate: a builder's command is run in a cell, in a folder that holds the skeleton and the rendered
//! document, and what it leaves is checked. A submission that fails comes back as findings; one that passes is frozen.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use super::contract::{self, Report};
use super::document::{self, Format};
use super::install::give_all;
use super::sandboxes::{self, SandboxKind};
use super::trial::PORT;
use super::{Classify, Context, Failure, Kind, Result};
use crate::adapters::folders::{self, Folders};
use crate::adapters::sandbox::{CellSpec, Ended, Exit, Launch, Limits, Mount};
use crate::domain::candidate::{Candidate, Source};
use crate::domain::digest;
use crate::storage::builds::{self, Build, BuildFolder, Round, State};
use crate::storage::candidates;

/// The document beside the skeleton, and what the check found in the submission before. Both are ours, not submitted.
pub const DOCUMENT: &str = "DOCUMENT.md";
pub const FINDINGS: &str = "FINDINGS.md";

/// Where the builder sees folders of this machine.
const SHOWN: &str = "/shown";

/// `pipeline/build.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How often the builder is run, the first time included.
    pub max_submissions: usize,
    /// For all rounds together.
    pub time_limit_s: u64,
    /// Of the builder's cell.
    pub limits: Limits,
}

impl Settings {
    pub fn read(context: &Context) -> Result<Self> {
        crate::storage::settings::read(&context.project.settings("build")).kind(Kind::Settings)
    }
}

#[derive(Debug, Clone)]
pub struct Config {
    /// Given to `/bin/sh -c` in the build's folder.
    pub builder: String,
    /// The day and a letter unless given.
    pub name: Option<String>,
    /// Where builds lie.
    pub builds: PathBuf,
    /// Host folders that the builder sees, read-only, as `/shown/NAME` with the last part of their path.
    pub show: Vec<PathBuf>,
    /// `HOST:PORT` that port 8400 of the cell leads to; nowhere unless given.
    pub gateway: Option<String>,
    pub sandbox: SandboxKind,
    pub settings: Settings,
    pub check: contract::Settings,
    pub sandboxes: sandboxes::Settings,
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub folder: PathBuf,
    /// The frozen candidate.
    pub candidate: Option<PathBuf>,
    /// Builds whose process had died.
    pub voided: Vec<String>,
    pub build: Build,
}

/// Runs the builder until a submission passes, none is made, or all are used up.
pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let summary = runtime.block_on(build(context, config));
    runtime.shutdown_timeout(Duration::from_secs(2));
    summary
}

async fn build(context: &Context, config: &Config) -> Result<Summary> {
    let voided = builds::void_dead(&config.builds)?;
    let sandbox = sandboxes::open(context, config.sandbox, &config.sandboxes.image).await?;
    let bench = contract::Bench {
        context,
        sandbox: Arc::clone(&sandbox),
        limits: config.sandboxes.limits.clone(),
        install_limit: config.sandboxes.install_limit(),
        cells: sandboxes::cells(context, &config.sandboxes.cells)?,
        settings: config.check.clone(),
    };
    let text = document::render(context, Format::Markdown)?;
    let day = context.now.format("%Y-%m-%d").to_string();
    let (folder, name) =
        BuildFolder::create(&config.builds, config.name.as_deref(), &day).kind(Kind::User)?;
    let mut build = Build {
        name: name.clone(),
        state: State::Running,
        builder: config.builder.clone(),
        started_at: context.timestamp(),
        document: digest::of([&text]),
        skeleton: candidates::digest(&context.project.skeleton())?,
        sandbox: sandbox.name().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        rounds: Vec::new(),
    };
    folder.write(&build)?;

    let root = bench.cells.make()?;
    let place = Folders::make(root.path(), sandbox.owner())?;
    lay(context, &place.workspace, &text)?;
    give_all(&place.workspace, sandbox.owner())?;
    let began = Instant::now();
    let whole = Duration::from_secs(config.settings.time_limit_s);
    context
        .progress
        .begin("build", Some(config.settings.max_submissions as u64));
    build.state = State::Failed;
    for round in 1..=config.settings.max_submissions {
        let left = whole.saturating_sub(began.elapsed());
        let ended = run_builder(config, &bench, &place, left).await?;
        folder.write_transcript(round, &ended.stdout, &ended.stderr)?;
        let mut told = Round {
            ended: said(&ended.exit),
            duration_ms: u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX),
            digest: None,
            findings: Vec::new(),
        };
        if ended.exit != Exit::Code(0) {
            build.rounds.push(told);
            build.state = State::NotDelivered;
            break;
        }
        let submission = Candidate {
            name: name.clone(),
            source: Source::Tree(folder.submission(round)),
        };
        let report = submit(&bench, &place.workspace, &submission).await?;
        told.findings = report.findings.iter().map(ToString::to_string).collect();
        told.digest = Some(report.digest.clone()).filter(|digest| !digest.is_empty());
        build.rounds.push(told);
        context.progress.advance(1);
        context.progress.note(&format!(
            "submission {round}: {} findings",
            report.findings.len()
        ));
        if report.passed {
            std::fs::rename(folder.submission(round), folder.candidate(&name))?;
            contract::freeze(context, &report)?;
            build.state = State::Passed;
            break;
        }
        let findings = place.workspace.join(FINDINGS);
        clear(&findings)?;
        std::fs::write(&findings, findings_text(round, &report))?;
        give_all(&findings, sandbox.owner())?;
    }
    root.remove()?;
    folder.write(&build)?;
    context
        .progress
        .end(&format!("{} rounds", build.rounds.len()));
    Ok(Summary {
        candidate: (build.state == State::Passed).then(|| folder.candidate(&name)),
        folder: folder.path.clone(),
        voided,
        build,
    })
}

/// The builder's folder: the skeleton and the document, and nothing else.
fn lay(context: &Context, workspace: &Path, document: &str) -> Result<()> {
    let skeleton = Candidate {
        name: "skeleton".to_owned(),
        source: Source::Tree(context.project.skeleton()),
    };
    candidates::materialise(&skeleton, workspace)?;
    std::fs::write(workspace.join(DOCUMENT), document)?;
    Ok(())
}

async fn run_builder(
    config: &Config,
    bench: &contract::Bench<'_>,
    place: &Folders,
    time_limit: Duration,
) -> Result<Ended> {
    let mut mounts = vec![
        Mount::writable(&place.workspace, folders::WORKSPACE),
        Mount::writable(&place.home, folders::HOME),
    ];
    for shown in &config.show {
        let host = shown
            .canonicalize()
            .map_err(|error| Failure::user(format!("cannot show {}: {error}", shown.display())))?;
        let name = host.file_name().unwrap_or_default();
        mounts.push(Mount::read_only(&host, Path::new(SHOWN).join(name)));
    }
    let spec = CellSpec {
        label: "build".to_owned(),
        mounts,
        folders: Vec::new(),
        limits: config.settings.limits.clone(),
        port: PORT,
    };
    let ours =
        |error: crate::adapters::sandbox::SandboxError| Failure::environment(error.to_string());
    let mut cell = bench.sandbox.open(spec).await.map_err(ours)?;
    let listener = cell.take_listener();
    let gateway = config
        .gateway
        .clone()
        .map(|gateway| tokio::spawn(forward(listener, gateway)));
    let env = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", folders::HOME),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("TERM", "dumb"),
    ];
    let launch = Launch {
        argv: vec!["/bin/sh".into(), "-c".into(), config.builder.clone()],
        env: env
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        cwd: folders::WORKSPACE.to_owned(),
        stdin: Vec::new(),
        time_limit,
        leave_running: false,
    };
    let ended = cell.launch(launch).await;
    if let Some(gateway) = gateway {
        gateway.abort();
    }
    cell.close().await.map_err(ours)?;
    ended.map_err(ours)
}

/// Leads every connection to the cell's port to the gateway; the only way out of the cell.
async fn forward(listener: std::net::TcpListener, gateway: String) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    while let Ok((mut inside, _)) = listener.accept().await {
        let gateway = gateway.clone();
        tokio::spawn(async move {
            if let Ok(mut outside) = TcpStream::connect(&gateway).await {
                // A connection that breaks is the builder's to notice.
                let _ = copy_bidirectional(&mut inside, &mut outside).await;
            }
        });
    }
}

/// Takes the builder's folder as a submission, and checks it. What cannot be copied is a finding.
async fn submit(
    bench: &contract::Bench<'_>,
    workspace: &Path,
    submission: &Candidate,
) -> Result<Report> {
    let Source::Tree(tree) = &submission.source else {
        unreachable!("a submission is a tree");
    };
    let folder = Candidate {
        name: submission.name.clone(),
        source: Source::Tree(workspace.to_path_buf()),
    };
    if let Err(error) = candidates::materialise(&folder, tree) {
        return Ok(Report::refused(&submission.name, workspace, &error));
    }
    for ours in [DOCUMENT, FINDINGS] {
        clear(&tree.join(ours))?;
    }
    contract::check(bench, submission).await
}

fn findings_text(round: usize, report: &Report) -> String {
    let mut text = format!("# Findings in submission {round}\n\n");
    for found in &report.findings {
        text.push_str(&format!("- {found}\n"));
    }
    text
}

/// Removes a file, or what the builder has put in its place.
fn clear(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(about) if about.is_dir() => std::fs::remove_dir_all(path)?,
        Ok(_) => std::fs::remove_file(path)?,
        Err(_) => {}
    }
    Ok(())
}

fn said(exit: &Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::TimedOut => "time limit".to_owned(),
        Exit::NotStarted(why) => format!("not started: {why}"),
    }
}
