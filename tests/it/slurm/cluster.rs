//! A Slurm cluster of three nodes on this machine, and a project that an ordinary user runs in it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::evaluate::{HARNESS, candidate};
use crate::project::{Project, Ran, asked, ran, repository};

/// An ordinary user of every machine.
const NOBODY: &str = "65534";
/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// One cluster at a time: nodes that are starved of processor time are taken for lost.
static ONE: Mutex<()> = Mutex::new(());

pub struct Cluster {
    pub project: Project,
    folder: tempfile::TempDir,
    program: PathBuf,
    _one: MutexGuard<'static, ()>,
}

/// Somebody who follows a submission; what is told so far is in a file.
pub struct Follower {
    child: Child,
    told: PathBuf,
}

impl Follower {
    pub fn told(&self) -> String {
        std::fs::read_to_string(&self.told).unwrap_or_default()
    }

    /// Its exit code, when it has left by itself.
    pub fn left(&mut self) -> Option<i32> {
        let status = self.child.try_wait().expect("waits")?;
        Some(status.code().unwrap_or(-1))
    }

    /// Leaves without a word.
    pub fn kill(mut self) {
        self.child.kill().expect("kills");
        self.child.wait().expect("waits");
    }
}

/// One attempt at a shard, as it lies on the disk.
pub struct Left {
    pub is_sealed: bool,
    /// Units that it has finished.
    pub units: Vec<Value>,
}

impl Cluster {
    /// None, said aloud, when this run of the tests was not asked to use Slurm.
    pub fn asked() -> Option<Self> {
        asked("Slurm tests", "PIPELINE_TEST_SLURM").then(Self::start)
    }

    fn start() -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let project = crate::evaluate::project();
        let slow = HARNESS.replace("#BEHAVIOUR", "time.sleep(3)");
        candidate(&project, "slow", &slow, "exit 0\n");
        // One unit after the other, though they only wait.
        let settings = project.path("pipeline/evaluate.toml");
        let text = std::fs::read_to_string(&settings).expect("reads");
        let text = text.replace("most_cells = 16", "most_cells = 1");
        std::fs::write(settings, text).expect("writes");
        let program = project.path("bin/pipeline");
        std::fs::create_dir_all(project.path("bin")).expect("makes");
        std::fs::copy(env!("CARGO_BIN_EXE_pipeline"), &program).expect("copies");
        let cluster = Self {
            project,
            folder: tempfile::tempdir().expect("a folder"),
            program,
            _one: one,
        };
        cluster.give(&cluster.project.path(""));
        cluster.act(&["up"]);
        cluster
    }

    /// Gives a folder and all in it to the ordinary user.
    pub fn give(&self, folder: &Path) {
        let owner = format!("{NOBODY}:{NOBODY}");
        let status = Command::new("chown")
            .arg("-R")
            .arg(owner)
            .arg(folder)
            .status();
        assert!(status.expect("starts").success());
    }

    fn script(&self, words: &[&str]) -> Command {
        let mut command = Command::new(repository().join("tests/fixtures/slurm/cluster.sh"));
        command
            .arg(words[0])
            .arg(self.folder.path())
            .args(&words[1..]);
        command
    }

    /// Does something to the cluster: `["lose", "n1"]`.
    pub fn act(&self, words: &[&str]) {
        // The daemons live on and would hold a pipe open.
        let said = self.folder.path().join("said");
        let log = std::fs::File::create(&said).expect("makes");
        let mut command = self.script(words);
        command.stdin(Stdio::null());
        command.stdout(log.try_clone().expect("clones")).stderr(log);
        let status = command.status().expect("starts");
        let said = std::fs::read_to_string(said).unwrap_or_default();
        assert!(status.success(), "{words:?}: {said}");
    }

    /// A command beside the controller; of the administrator, or of the ordinary user.
    fn command(&self, is_admin: bool, words: &[&str]) -> Command {
        let user = [
            "setpriv",
            "--reuid",
            NOBODY,
            "--regid",
            NOBODY,
            "--clear-groups",
            "--",
        ];
        let mut command = self.script(&["at"]);
        if !is_admin {
            command.args(user);
        }
        command
            .args(words)
            .current_dir(self.project.path(""))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("PIPELINE_NOW", "2026-12-01T00:00:00Z")
            .env("SLURM_CONF", self.folder.path().join("slurm.conf"));
        command
    }

    /// A command of the ordinary user.
    pub fn user(&self, words: &[&str]) -> Ran {
        ran(&mut self.command(false, words))
    }

    pub fn admin(&self, words: &[&str]) -> Ran {
        ran(&mut self.command(true, words))
    }

    pub fn pipeline(&self, words: &[&str]) -> Ran {
        let program = self.program.to_str().expect("text");
        self.user(&[&[program], words].concat())
    }

    /// The report of one machine on these candidates.
    pub fn expected(&self, words: &[&str], code: i32) -> Vec<u8> {
        let fixed = ["evaluate", "--run", "r", "--nonce-seed", "s", "--jobs", "8"];
        let ran = self.pipeline(&[&fixed[..], words].concat());
        assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
        self.report()
    }

    pub fn plan(&self, words: &[&str]) -> String {
        let fixed = ["--json", "plan", "--run", "r", "--nonce-seed", "s"];
        let planned = self.pipeline(&[&fixed[..], words].concat());
        assert_eq!(planned.code, 0, "{}", planned.stderr);
        planned.json()["file"].as_str().expect("a file").to_owned()
    }

    /// Submits, follows and merges.
    pub fn submit(&self, plan: &str, more: &[&str]) -> Ran {
        self.pipeline(&[&submission(plan), more].concat())
    }

    /// Submits, and somebody follows meanwhile.
    pub fn follower(&self, plan: &str, more: &[&str]) -> Follower {
        let told = self.folder.path().join("told");
        let program = self.program.to_str().expect("text");
        let words = [&[program], &submission(plan)[..], more].concat();
        let child = self
            .command(false, &words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&told).expect("makes"))
            .spawn()
            .expect("starts");
        Follower { child, told }
    }

    /// Tasks in the queue: number, state, node.
    pub fn queue(&self) -> Vec<[String; 3]> {
        let words = [
            "squeue",
            "--me",
            "--noheader",
            "--array",
            "--format=%i|%T|%N",
        ];
        let said = self.user(&words);
        said.stdout
            .lines()
            .filter_map(|line| {
                let mut parts = line.split('|').map(str::to_owned);
                Some([parts.next()?, parts.next()?, parts.next()?])
            })
            .collect()
    }

    /// The node of a running task.
    pub fn running_on(&self) -> Option<String> {
        let running = self
            .queue()
            .into_iter()
            .find(|[_, state, _]| state == "RUNNING");
        running.map(|[_, _, node]| node)
    }

    /// Attempts at all shards, in no order.
    pub fn attempts(&self) -> Vec<Left> {
        let mut found = Vec::new();
        let mut folders = vec![self.project.path("data/shards")];
        while let Some(folder) = folders.pop() {
            if folder.join("claim.json").exists() {
                let log =
                    std::fs::read_to_string(folder.join("outcomes.jsonl")).unwrap_or_default();
                let lines = log
                    .lines()
                    .filter_map(|line| serde_json::from_str(line).ok());
                found.push(Left {
                    is_sealed: folder.join("seal.json").exists(),
                    units: lines.collect(),
                });
                continue;
            }
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            folders.extend(
                entries
                    .map(|entry| entry.path())
                    .filter(|path| path.is_dir()),
            );
        }
        found
    }

    /// Waits until something is seen.
    pub fn until<T>(&self, what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(seen) = seen() {
                return seen;
            }
            if began.elapsed() > PATIENCE {
                let nodes = self.user(&["sinfo", "--Node", "--format=%N|%T|%E"]).stdout;
                panic!("{what} did not come: {:?}\n{nodes}", self.queue());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub fn until_idle(&self) {
        self.until("an empty queue", || self.queue().is_empty().then_some(()));
    }

    /// The report of the merged run, which then goes.
    pub fn report(&self) -> Vec<u8> {
        let ran = self.pipeline(&["report", "r"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let report = std::fs::read(self.project.path("data/runs/r/report/report.json"));
        std::fs::remove_dir_all(self.project.path("data/runs/r")).expect("removes");
        report.expect("reads")
    }
}

fn submission(plan: &str) -> [&str; 8] {
    [
        "submit", plan, "--engine", "slurm", "--poll", "1", "--cpus", "1",
    ]
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.act(&["down"]);
    }
}
