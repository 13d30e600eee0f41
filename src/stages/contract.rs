//! The contract check of one candidate: its form is judged by parsing, then in cells without network it is compiled,
//! installed, and each of its commands is called once. Behaviour is for the suite.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::install::{self, Installed};
use super::trial::{CANDIDATE, Cells, PORT};
use super::{Classify, Context, Failure, Kind, Result};
use crate::adapters::folders;
use crate::adapters::mock::BASE_PATH;
use crate::adapters::sandbox::{
    Cell, CellSpec, Ended, Exit, Launch, Limits, Mount, Sandbox, SandboxError,
};
use crate::domain::candidate::Candidate;
use crate::domain::place::{Finding, Place};
use crate::domain::visible::visible_line;
use crate::methods::contract::{self, ENTRY, INSTALL};
use crate::storage::candidates::{self, FreezeRecord};

/// Compiles every Python file and prints `path TAB line TAB message` for each that is refused.
const COMPILE: &str = r#"
import os, sys
root = sys.argv[1]
for folder, names, files in os.walk(root):
    names[:] = sorted(name for name in names if name not in ("__pycache__", ".git", "tests"))
    for path in sorted(os.path.join(folder, name) for name in files if name.endswith(".py")):
        try:
            with open(path, "rb") as file:
                compile(file.read(), path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            print(os.path.relpath(path, root), line, getattr(error, "msg", None) or error, sep="\t")
"#;

/// `pipeline/check.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// For one call.
    pub time_limit_s: u64,
    /// Every one has `help NAME` and `NAME --help`.
    pub commands: Vec<String>,
    pub call: Vec<Call>,
}

/// One call of the entry script, and what it must end with.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub args: Vec<String>,
    pub exit: Vec<i32>,
    /// Nothing is expected on standard output.
    #[serde(default)]
    pub silent: bool,
}

impl Settings {
    pub fn read(context: &Context) -> Result<Self> {
        crate::storage::settings::read(&context.project.settings("check")).kind(Kind::Settings)
    }

    /// All calls, in order.
    fn calls(&self) -> Vec<Call> {
        let help = |args: [&str; 2]| Call {
            args: args.map(str::to_owned).to_vec(),
            exit: vec![0],
            silent: false,
        };
        let commands = self.commands.iter();
        self.call
            .iter()
            .cloned()
            .chain(commands.flat_map(|name| [help(["help", name]), help([name, "--help"])]))
            .collect()
    }
}

/// What all checks of a run share.
pub struct Bench<'a> {
    pub context: &'a Context,
    pub sandbox: Arc<dyn Sandbox>,
    pub limits: Limits,
    pub install_limit: Duration,
    pub cells: Cells,
    pub settings: Settings,
}

/// How the check of one candidate ended.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub candidate: String,
    pub digest: String,
    pub passed: bool,
    /// Files are paths below the candidate's root.
    pub findings: Vec<Found>,
    pub n_files: usize,
    /// Calls of the entry script that were made.
    pub n_calls: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct Found {
    pub file: String,
    pub line: usize,
    pub message: String,
}

impl Report {
    /// The report on a tree that could not even be read.
    pub fn refused(name: &str, why: &str) -> Self {
        Self {
            candidate: name.to_owned(),
            digest: String::new(),
            passed: false,
            findings: vec![Found {
                file: ".".to_owned(),
                line: 1,
                message: visible_line(why).into_owned(),
            }],
            n_files: 0,
            n_calls: 0,
        }
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// Checks a candidate; a fault of it is a finding, an error is ours.
pub async fn check(bench: &Bench<'_>, candidate: &Candidate) -> Result<Report> {
    let root = bench.cells.make()?;
    let report = check_in(bench, candidate, root.path()).await;
    root.remove()?;
    report
}

/// Keeps the record that the candidate passed in this state; a candidate with a record is not evaluated in another.
pub fn freeze(context: &Context, report: &Report) -> Result<()> {
    let record = FreezeRecord {
        candidate: report.candidate.clone(),
        digest: report.digest.clone(),
        checked_at: context.timestamp(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(candidates::write_record(
        &context.project.frozen(),
        &record,
    )?)
}

async fn check_in(bench: &Bench<'_>, candidate: &Candidate, root: &Path) -> Result<Report> {
    let project = &bench.context.project;
    let tree = root.join("tree");
    candidates::materialise(candidate, &tree).kind(Kind::User)?;
    let files = candidates::files(&tree)?;
    let digest = candidates::digest(&tree)?;
    let skeleton = candidates::files(&project.skeleton())?;
    let mut findings = contract::check(&skeleton, &files);
    compile(bench, &tree, &mut findings).await?;
    let mut n_calls = 0;
    let has = |path: &str| files.iter().any(|file| file.path == path);
    if has(INSTALL) && has(ENTRY) {
        let place = candidates::installed(&project.frozen(), &digest);
        let installed = if place.exists() {
            Installed::Tree(place)
        } else {
            let (limits, frozen) = (&bench.limits, project.frozen());
            install::install(
                &*bench.sandbox,
                limits,
                bench.install_limit,
                &frozen,
                candidate,
                &digest,
                Vec::new(),
            )
            .await?
        };
        match installed {
            Installed::Tree(tree) => {
                n_calls = call_all(bench, &tree, &mut findings).await?;
            }
            Installed::Refused(why) => findings.push(at(INSTALL, 1, shown(&why))),
        }
    }
    findings.sort();
    findings.dedup();
    Ok(Report {
        candidate: candidate.name.clone(),
        digest,
        passed: findings.is_empty(),
        findings: findings
            .into_iter()
            .map(|finding| Found {
                file: visible_line(&finding.place.file.display().to_string()).into_owned(),
                line: finding.place.line,
                message: visible_line(&finding.message).into_owned(),
            })
            .collect(),
        n_files: files.len(),
        n_calls,
    })
}

async fn compile(bench: &Bench<'_>, tree: &Path, findings: &mut Vec<Finding>) -> Result<()> {
    let mut cell = open(bench, "compile", tree).await?;
    let argv = ["/usr/bin/env", "python3", "-I", "-c", COMPILE, CANDIDATE];
    let launch = launch(bench, argv.map(str::to_owned).to_vec(), CANDIDATE);
    let ended = cell.launch(launch).await;
    cell.close().await.map_err(ours)?;
    let ended = ended.map_err(ours)?;
    if ended.exit != Exit::Code(0) {
        let said = String::from_utf8_lossy(&ended.stderr);
        return Err(Failure::environment(format!(
            "python3 does not run in the sandbox: {:?}: {}",
            ended.exit,
            shown(&said)
        )));
    }
    for line in String::from_utf8_lossy(&ended.stdout).lines() {
        let mut parts = line.splitn(3, '\t');
        if let (Some(file), Some(line), Some(message)) = (parts.next(), parts.next(), parts.next())
        {
            let message = format!("does not compile: {}", shown(message));
            findings.push(at(file, line.parse().unwrap_or(1), message));
        }
    }
    Ok(())
}

/// Makes each call in one cell; returns how many were made. When the first fails, no other is tried.
async fn call_all(bench: &Bench<'_>, tree: &Path, findings: &mut Vec<Finding>) -> Result<usize> {
    let mut cell = open(bench, "commands", tree).await?;
    let mut n_calls = 0;
    let mut fault = None;
    for call in bench.settings.calls() {
        let mut argv = vec![format!("{CANDIDATE}/{ENTRY}")];
        argv.extend(call.args.iter().cloned());
        n_calls += 1;
        match cell.launch(launch(bench, argv, folders::WORKSPACE)).await {
            Ok(ended) => {
                let Some(message) = judge(&call, &ended) else {
                    continue;
                };
                findings.push(at(ENTRY, 1, message));
                if n_calls == 1 {
                    findings.push(at(ENTRY, 1, "no other command was tried".to_owned()));
                    break;
                }
            }
            Err(error) => {
                fault = Some(error);
                break;
            }
        }
    }
    cell.close().await.map_err(ours)?;
    match fault {
        Some(error) => Err(ours(error)),
        None => Ok(n_calls),
    }
}

/// What is wrong with the answer to a call.
fn judge(call: &Call, ended: &Ended) -> Option<String> {
    let command = format!("`harness {}`", call.args.join(" "));
    let stderr = String::from_utf8_lossy(&ended.stderr);
    let said = match stderr.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) => format!(": {}", shown(line)),
        None => String::new(),
    };
    let expected: Vec<String> = call.exit.iter().map(ToString::to_string).collect();
    match &ended.exit {
        Exit::Code(code) if !call.exit.contains(code) => Some(format!(
            "{command} ends with {code}, not {}{said}",
            expected.join(" or ")
        )),
        Exit::Code(_) if stderr.contains("Traceback (most recent call last)") => {
            Some(format!("{command} prints a traceback{said}"))
        }
        Exit::Code(_) if !call.silent && ended.stdout.trim_ascii().is_empty() => {
            Some(format!("{command} prints nothing"))
        }
        Exit::Code(_) => None,
        Exit::Signal(signal) => Some(format!("{command} dies of signal {signal}{said}")),
        Exit::TimedOut => Some(format!("{command} does not end in time")),
        Exit::NotStarted(why) => Some(format!("{command} does not start: {}", shown(why))),
    }
}

async fn open(bench: &Bench<'_>, what: &str, tree: &Path) -> Result<Cell> {
    let spec = CellSpec {
        label: format!("check/{what}"),
        mounts: vec![Mount::read_only(tree, CANDIDATE)],
        folders: [folders::WORKSPACE, folders::HOME]
            .map(PathBuf::from)
            .to_vec(),
        limits: bench.limits.clone(),
        port: PORT,
    };
    let mut cell = bench.sandbox.open(spec).await.map_err(ours)?;
    // Nobody answers: no call contacts the model.
    drop(cell.take_listener());
    Ok(cell)
}

fn launch(bench: &Bench, argv: Vec<String>, cwd: &str) -> Launch {
    let base_url = format!("http://127.0.0.1:{PORT}{BASE_PATH}");
    let env = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", folders::HOME),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("TERM", "dumb"),
        ("HARNESS_BASE_URL", &base_url),
        ("HARNESS_API_KEY", "check-key"),
        ("HARNESS_MODEL", "check-model"),
        ("HARNESS_HOME", folders::STATE),
    ];
    Launch {
        argv,
        env: env
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        cwd: cwd.to_owned(),
        stdin: Vec::new(),
        time_limit: Duration::from_secs(bench.settings.time_limit_s),
        leave_running: false,
    }
}

fn at(file: &str, line: usize, message: String) -> Finding {
    Finding::new(Place::new(Path::new(file), line), message)
}

/// What a candidate said, not too long.
fn shown(text: &str) -> String {
    const LONGEST: usize = 300;
    let text = text.trim();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn ours(error: SandboxError) -> Failure {
    Failure::environment(error.to_string())
}
