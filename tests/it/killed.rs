//! `evaluate` killed (SIGKILL) at random instants: the same command goes on, nothing that is finished runs again, nothing
//! is left on the machine, and the report is that of a run which nobody killed, to the byte.
//!
//! `PIPELINE_TEST_SEED=N` repeats the instants of a run; the seed is printed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use doc2harness::adapters::sandbox::Maker;

use crate::evaluate::{HARNESS, LINK_CASE, candidate, project};
use crate::project::{Project, docker_asked};

const KILLS: usize = 100;
const DOCKER_KILLS: usize = 10;

/// A number generator (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// When a start is killed.
#[derive(Debug, Clone, Copy)]
enum Instants {
    /// After so long.
    After(Duration),
    /// As soon as a candidate is being installed.
    Installing,
    /// As soon as evidence is being written.
    Storing,
}

/// What the kills met; the instants that matter most must be among them.
#[derive(Debug, Default)]
struct Met {
    n_kills: usize,
    half_installed: usize,
    half_stored: usize,
    before_the_plan: usize,
    n_runs: usize,
}

#[test]
fn a_run_killed_a_hundred_times_ends_like_one_that_was_not() {
    let met = killed_many_times("namespace", KILLS, 1);
    assert!(
        met.half_installed > 0 && met.half_stored > 0 && met.before_the_plan > 0,
        "{met:?}"
    );
}

#[test]
fn a_run_killed_in_docker_ends_like_one_that_was_not() {
    if docker_asked() {
        let met = killed_many_times("docker", DOCKER_KILLS, 6);
        assert!(met.before_the_plan < met.n_kills, "{met:?}");
    }
}

/// `slowness`: how many times as long as in namespaces things take.
fn killed_many_times(sandbox: &str, n_kills: usize, slowness: u64) -> Met {
    let seed = match std::env::var("PIPELINE_TEST_SEED") {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => std::process::id().into(),
    };
    eprintln!("PIPELINE_TEST_SEED={seed}");
    let mut dice = Dice(seed);
    let arguments = [
        "evaluate",
        "-c",
        "reference",
        "-c",
        "leaky",
        "-c",
        "chatty",
        "-c",
        "refuses",
        "--run",
        "r",
        "--nonce-seed",
        "s",
        "-j",
        "2",
        "--sandbox",
        sandbox,
    ];
    let project = suite();
    let whole = project.run(&arguments);
    assert_eq!(whole.code, 1, "{}", whole.stderr);
    let expected = report(&project);
    remove_runs(&project);

    let mut met = Met::default();
    let mut pids = BTreeSet::new();
    while met.n_kills < n_kills {
        met.n_runs += 1;
        let mut seen = String::new();
        while met.n_kills < n_kills {
            let begun = project.path("data/runs/r").exists();
            let mut after = |ms| Instants::After(Duration::from_millis(dice.below(ms * slowness)));
            let (early, late) = (after(60), after(500));
            let at = match dice.below(6) {
                0..3 if !begun => early,
                0 => Instants::Installing,
                1 | 2 => Instants::Storing,
                3 => early,
                _ => late,
            };
            let Some(pid) = start_and_kill(&project, &arguments, at, &mut dice) else {
                break;
            };
            pids.insert(pid);
            met.n_kills += 1;
            met.before_the_plan += usize::from(!project.path("data/runs/r").exists());
            met.half_installed += begin_with(&project.path("data/frozen"), ".new-");
            met.half_stored += begin_with(&project.path("data/runs/r/evidence"), ".draft-");
            seen = grown(&project, &seen);
        }
        let ended = project.run(&arguments);
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        grown(&project, &seen);
        each_ran_once(&project);
        let got = report(&project);
        for (name, bytes) in &expected {
            let same = got.iter().any(|(other, got)| other == name && got == bytes);
            assert!(same, "{name} differs; PIPELINE_TEST_SEED={seed}");
        }
        nothing_is_left(&project, &pids);
        remove_runs(&project);
    }
    eprintln!("{sandbox}: {met:?}");
    met
}

/// The suite of the tests of `evaluate`, with a candidate that cannot be installed and evidence that takes a while.
fn suite() -> Project {
    let project = project();
    candidate(&project, "refuses", HARNESS, "sleep 0.02; exit 3\n");
    let large = LINK_CASE.replace(
        "[fixture]\n",
        "[fixture]\n\"large\" = { text = \"0123456789abcdef\", times = 12000 }\n",
    );
    project.write("cases/file-operations/link.toml", &large);
    let control = std::fs::read_to_string(project.path("cases/controls/plain-file-readable.toml"));
    let control = control.expect("reads").replace(
        "[fixture]\n",
        "[fixture]\n\"large\" = { text = \"0123456789abcdef\", times = 12000 }\n",
    );
    project.write("cases/controls/plain-file-readable.toml", &control);
    project
}

/// Starts the command and kills it. None when it ended before.
fn start_and_kill(
    project: &Project,
    arguments: &[&str],
    at: Instants,
    dice: &mut Dice,
) -> Option<u32> {
    let mut child = project
        .command(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let began = Instant::now();
    let due = || match at {
        Instants::After(delay) => began.elapsed() >= delay,
        Instants::Installing => begin_with(&project.path("data/frozen"), ".new-") > 0,
        Instants::Storing => begin_with(&project.path("data/runs/r/evidence"), ".draft-") > 0,
    };
    while !due() {
        if child.try_wait().expect("waits").is_some() {
            return None;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    if matches!(at, Instants::Installing) {
        std::thread::sleep(Duration::from_millis(dice.below(15)));
    }
    let pid = child.id();
    child.kill().expect("kills");
    let status = child.wait().expect("waits");
    // It may have ended by itself in the last moment.
    status.code().is_none().then_some(pid)
}

fn begin_with(folder: &Path, prefix: &str) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with(prefix))
        .count()
}

/// Whole lines of the log; none that was there before is lost or changed.
fn grown(project: &Project, before: &str) -> String {
    let text = std::fs::read_to_string(project.path("data/runs/r/outcomes.jsonl"));
    let text = text.unwrap_or_default();
    assert!(text.starts_with(before), "finished outcomes were lost");
    text[..text.rfind('\n').map_or(0, |end| end + 1)].to_owned()
}

fn each_ran_once(project: &Project) {
    let text = std::fs::read_to_string(project.path("data/runs/r/outcomes.jsonl"));
    let units: Vec<(String, String)> = text
        .expect("reads")
        .lines()
        .map(|line| {
            let unit: serde_json::Value = serde_json::from_str(line).expect("whole lines");
            let word = |key: &str| unit[key].as_str().expect("text").to_owned();
            (word("candidate"), word("case"))
        })
        .collect();
    let different: BTreeSet<_> = units.iter().collect();
    assert_eq!((units.len(), different.len()), (12, 12), "{units:?}");
}

fn report(project: &Project) -> Vec<(String, Vec<u8>)> {
    let ran = project.run(&["report", "r"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let folder = project.path("data/runs/r/report");
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .expect("reads")
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(entry.path()).expect("reads"))
        })
        .collect();
    files.sort();
    assert_eq!(files.len(), 4);
    files
}

/// The next run begins from nothing, so that candidates are installed again.
fn remove_runs(project: &Project) {
    for folder in ["data/runs", "data/frozen"] {
        std::fs::remove_dir_all(project.path(folder)).expect("removes");
    }
}

fn nothing_is_left(project: &Project, pids: &BTreeSet<u32>) {
    let names = |folder: PathBuf| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    };
    assert_eq!(names(project.path("cells")), [""; 0], "folders of cells");
    let runs = names(project.path("data/runs"));
    assert!(
        runs.iter().all(|name| name == "r" || name == ".lock"),
        "{runs:?}"
    );
    assert_eq!(begin_with(&project.path("data/frozen"), "."), 0);
    assert_eq!(begin_with(&project.path("data/runs/r"), "."), 0);
    assert_eq!(begin_with(&project.path("data/runs/r/evidence"), "."), 0);
    let temporary = names(std::env::temp_dir());
    let ours = temporary.iter().filter(|name| {
        let mut parts = name.split('-').filter_map(|part| part.parse().ok());
        name.starts_with("doc2harness-") && parts.any(|pid: u32| pids.contains(&pid))
    });
    assert_eq!(ours.count(), 0, "{temporary:?}");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("reads");
    let root = project.path("");
    let root = root.to_str().expect("is text").trim_end_matches('/');
    assert!(!mounts.contains(root), "{mounts}");
    let containers = containers();
    assert!(
        !containers
            .iter()
            .any(|pid| pid.parse().is_ok_and(|pid| pids.contains(&pid))),
        "{containers:?}"
    );
    // The kernel takes a moment to end the processes of a cell whose runner is gone.
    let began = Instant::now();
    loop {
        let processes = processes_in(root);
        let groups = dead_groups();
        if processes.is_empty() && groups.is_empty() {
            break;
        }
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{processes:?} {groups:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The makers' process ids of all containers of ours; none where there is no Docker.
fn containers() -> Vec<String> {
    let listed = Command::new("docker")
        .args(["ps", "-a", "--filter", "label=doc2harness.pid"])
        .args(["--format", "{{.Label \"doc2harness.pid\"}}"])
        .output();
    let text = listed.map_or_else(|_| Vec::new(), |output| output.stdout);
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().map(str::to_owned).collect()
}

/// Processes whose working folder lies in the project: runners, and what cells consist of outside.
fn processes_in(root: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("reads").flatten();
    processes
        .filter_map(|process| {
            let folder = std::fs::read_link(process.path().join("cwd")).ok()?;
            folder
                .starts_with(root)
                .then(|| process.file_name().to_string_lossy().into_owned())
        })
        .collect()
}

/// Control groups of ours whose makers are dead.
fn dead_groups() -> Vec<PathBuf> {
    let mut dead = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let maker = name.strip_prefix("doc2harness-").and_then(Maker::parse);
            if maker.is_some_and(|maker| maker.is_dead()) {
                dead.push(entry.path());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    dead
}
