//! Candidates written to break out, run through the whole of `evaluate`: each gets its verdict in time, nothing of it
//! is met by the next case or by the host, and what is written about it is safe to read.
//!
//! A candidate is `tests/fixtures/hostile/NAME.py` with the entry of `frame/`. Every candidate runs two cases one after
//! the other in the same slot: in the first it attacks, in the second it looks for what it left. Docker's half runs with
//! `PIPELINE_TEST_DOCKER=1`.

mod after;
mod install;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::project::{Project, docker_asked, repository};

/// What each attack ends with, and where that was seen: `pass` where every act was refused and the candidate said so.
const ATTACKS: &[(&str, &str)] = &[
    // It takes more than there is.
    ("busy_threads", "timeout: launch 1"),
    ("deep_tree", "limit: files"),
    ("eats_memory", "crash: launch 1"),
    ("eats_memory_in_files", "crash: launch 1"),
    ("fills_disk", "pass"),
    ("fork_bomb", "timeout: launch 1"),
    ("holds_watches", "pass"),
    ("many_files", "pass"),
    ("output_burst", "limit: launch 1"),
    ("output_flood", "timeout: launch 1"),
    ("raises_limits", "pass"),
    ("sparse_file", "pass"),
    ("sparse_files", "limit: files"),
    // It does not end, or pretends to.
    ("daemonises", "pass"),
    ("dumps_core", "crash: launch 1"),
    ("exits_at_once", "assertion: launch 1, stdout"),
    ("ignores_signals", "timeout: launch 1"),
    ("pesters_process_one", "timeout: launch 1"),
    ("spoofs_title", "pass"),
    ("stops_itself", "timeout: launch 1"),
    // It reaches for others.
    ("connects_elsewhere", "pass"),
    ("floods_mock", "script-overrun: launch 1, request 2"),
    ("harms_process_one", "pass"),
    ("inherited", "pass"),
    ("kills_mock", "pass"),
    ("leaves_traces", "pass"),
    ("reads_others", "pass"),
    // It changes what it is not to change.
    ("changes_itself", "pass"),
    ("clock_tricks", "pass"),
    ("kernel_doors", "pass"),
    ("mounts", "pass"),
    ("setuid", "pass"),
    ("writes_outside", "pass"),
    // It sets traps for whoever reads what it left.
    ("escapes", "assertion: launch 1, stdout"),
    ("locks_folders", "pass"),
    ("odd_names", "assertion: files, {outside}/canary.txt"),
    ("plants_links", "pass"),
    ("swaps_for_pipe", "assertion: files, {outside}/canary.txt"),
];

/// Of the attack; a case may take this and two seconds.
const LIMIT: Duration = Duration::from_secs(5);
const MARGIN: Duration = Duration::from_secs(2);
/// A machine on which a harmless unit takes more than a third of a second is busy with other things. Then the margin is
/// so many times what a harmless unit takes in the same run.
const MARGIN_IN_UNITS: u32 = 6;

/// How long a unit took. A unit that waits lets others run, so the time since the record before it, in which it was also
/// read back, judged and stored, may be shorter than its launch.
#[derive(Debug)]
struct Took {
    unit: String,
    launch: Duration,
    since_last: Duration,
}

const ATTACK: &str = r#"title    = "an attack is contained"
purpose  = "Whatever a candidate tries, its verdict is its own."
clause   = "sandbox.cell.own"
category = "headless"
scenario = "boundary"

[fixture]
"canary.txt" = "{nonce:canary}"
"{outside}/canary.txt" = "{nonce:canary}"

[[launch]]
route  = "headless"
prompt = "attack"
time_limit_s = 5
script = [{ say = "done" }]

[[expect]]
channel = "output"
has     = "contained"

[[expect]]
channel = "files"
path    = "{outside}/canary.txt"
has     = "{nonce:canary}"
"#;

const DOCUMENT: &str = "# Sandbox\n\n### sandbox.cell.own · boundary\n**Syntax** s\n**Meaning** m\n**Behaviour** b\n\
    **Channels** output, files\n";

fn look() -> String {
    ATTACK
        .replace("\"attack\"", "\"look\"")
        .replace("an attack is contained", "nothing is left of it")
}

/// What the host keeps for itself, and no candidate may read or change.
const SECRET: &str = "secret-of-the-host-5f0c";

#[test]
fn every_attack_is_in_the_table() {
    let folder = repository().join("tests/fixtures/hostile");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("reads")
        .map(|entry| entry.expect("reads").path())
        .filter(|path| path.is_file())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into())
        .collect();
    files.sort();
    let mut table: Vec<&str> = ATTACKS.iter().map(|(name, _)| *name).collect();
    table.sort_unstable();
    assert_eq!(files, table);
}

#[test]
fn hostile_candidates_are_contained_by_namespaces() {
    contained("namespace");
}

#[test]
fn hostile_candidates_are_contained_by_docker() {
    if docker_asked() {
        contained("docker");
    }
}

fn contained(sandbox: &str) {
    let listener = TcpListener::bind("0.0.0.0:0").expect("binds");
    listener.set_nonblocking(true).expect("sets");
    let port = listener.local_addr().expect("is bound").port();
    let project = project(port);
    let before = after::Host::look(&project);

    let (result, pid, took) = evaluate(&project, sandbox);
    let seen = verdicts(&result);
    let expected: Vec<String> = ATTACKS
        .iter()
        .flat_map(|(name, verdict)| {
            [
                format!("{name} 1-attack → {verdict}"),
                format!("{name} 2-look → pass"),
            ]
        })
        .collect();
    for one in &took {
        let (launch, since_last) = (one.launch.as_millis(), one.since_last.as_millis());
        println!("{launch:>6} {since_last:>6} ms  {}", one.unit);
    }
    let wrong: Vec<&String> = seen
        .iter()
        .filter(|unit| !expected.contains(unit))
        .collect();
    assert!(
        wrong.is_empty(),
        "{sandbox}: {wrong:#?}\n{}",
        explained(&result)
    );
    assert_eq!(took.len(), expected.len(), "one line of outcomes a unit");
    let mut harmless: Vec<Duration> = took
        .iter()
        .filter(|one| one.unit.contains("2-look"))
        .map(|one| one.since_last)
        .collect();
    harmless.sort_unstable();
    let margin = MARGIN.max(harmless[harmless.len() / 2] * MARGIN_IN_UNITS);
    for one in took {
        let longest = one.launch.max(one.since_last);
        assert!(longest <= LIMIT + margin, "{sandbox}: {one:?}");
    }

    assert!(
        listener.accept().is_err(),
        "a candidate reached a port of the host"
    );
    after::nothing_is_left(&project, pid);
    before.is_unchanged(&project);
    after::evidence_lacks(&project, SECRET);
    after::everything_is_safe_to_read(&project, sandbox, ATTACKS);
}

/// Runs all attacks, one after the other. Returns the result, the process id, and how long each unit took in all.
fn evaluate(project: &Project, sandbox: &str) -> (Value, u32, Vec<Took>) {
    let mut arguments = vec![
        "--json",
        "evaluate",
        "-j",
        "1",
        "--run",
        "r",
        "--sandbox",
        sandbox,
    ];
    for (name, _) in ATTACKS {
        arguments.extend(["-c", name]);
    }
    let mut command = project.command(&arguments);
    let out = std::fs::File::create(project.path("stdout")).expect("makes");
    let err = std::fs::File::create(project.path("stderr")).expect("makes");
    let mut child = command
        .stdout(Stdio::from(out))
        .stderr(Stdio::from(err))
        .spawn()
        .expect("starts");
    let log = project.path("data/runs/r/outcomes.jsonl");
    let mut since: Option<Instant> = None;
    let mut took = Vec::new();
    let ended = loop {
        let ended = child.try_wait().expect("waits");
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines: Vec<&str> = whole.lines().collect();
        // Candidates are installed before the first unit begins; that one is not timed from the start of the program.
        let begun = since.get_or_insert_with(Instant::now);
        if !log.exists() || (lines.is_empty() && installing(project)) {
            *begun = Instant::now();
        }
        for line in &lines[took.len()..] {
            let unit: Value = serde_json::from_str(line).expect("JSON");
            let launch_ms = unit["duration_ms"].as_u64().expect("a number");
            took.push(Took {
                unit: format!("{} {}", unit["candidate"], unit["case"]),
                launch: Duration::from_millis(launch_ms),
                since_last: begun.elapsed(),
            });
            *begun = Instant::now();
        }
        if let Some(ended) = ended {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let read = |name: &str| std::fs::read_to_string(project.path(name)).expect("reads");
    // Units that our side broke are in the verdicts.
    assert!(matches!(ended.code(), Some(1 | 6)), "{}", read("stderr"));
    let result = serde_json::from_str(&read("stdout")).expect("JSON");
    (result, child.id(), took)
}

/// Whether not all candidates have their sealed trees yet.
fn installing(project: &Project) -> bool {
    let sealed = std::fs::read_dir(project.path("data/frozen"));
    let n_sealed = sealed.map_or(0, |entries| {
        let names = entries.flatten().map(|entry| entry.file_name());
        names.filter(|name| name.len() == 64).count()
    });
    n_sealed < ATTACKS.len()
}

/// `candidate case → reason: place`, one line each.
fn verdicts(result: &Value) -> Vec<String> {
    let verdicts = result["verdicts"].as_array().expect("verdicts");
    verdicts
        .iter()
        .map(|verdict| {
            let outcome = &verdict["outcome"];
            let case = verdict["case"]
                .as_str()
                .expect("text")
                .trim_start_matches("headless/");
            let text = |key: &str| outcome[key].as_str().unwrap_or_default();
            let reason = match text("status") {
                "passed" => "pass".to_owned(),
                "failed" => format!("{}: {}", text("reason"), text("place")),
                _ => outcome.to_string(),
            };
            format!(
                "{} {case} → {reason}",
                verdict["candidate"].as_str().expect("text")
            )
        })
        .collect()
}

/// What was seen where something failed.
fn explained(result: &Value) -> String {
    let verdicts = result["verdicts"].as_array().expect("verdicts");
    verdicts
        .iter()
        .filter(|verdict| verdict["outcome"]["status"] != "passed")
        .map(|verdict| {
            format!(
                "{} {} {}\n",
                verdict["candidate"], verdict["case"], verdict["outcome"]
            )
        })
        .collect()
}

fn project(port: u16) -> Project {
    let project = Project::new();
    std::fs::remove_dir_all(project.path("data/document")).expect("removes");
    project.write("data/document/01-sandbox.md", DOCUMENT);
    project.write("cases/headless/1-attack.toml", ATTACK);
    project.write("cases/headless/2-look.toml", &look());
    // Readable for everybody, so that nothing but the sandbox hides it.
    let canary = project.write("canary", SECRET);
    let fixtures = repository().join("tests/fixtures/hostile");
    let read = |path: PathBuf| {
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    for (name, _) in ATTACKS {
        let attack = read(fixtures.join(format!("{name}.py")))
            .replace("@CANARY@", &canary.display().to_string())
            .replace("@FOLDER@", &project.path("").display().to_string())
            .replace("@PORT@", &port.to_string());
        project.write(&format!("candidates/{name}/attack.py"), &attack);
        for part in ["harness", "look.py", "tools.py"] {
            project.write(
                &format!("candidates/{name}/{part}"),
                &read(fixtures.join("frame").join(part)),
            );
        }
        project.write(&format!("candidates/{name}/install.sh"), "exit 0\n");
        open(&project.path(&format!("candidates/{name}/harness")));
    }
    let settings = project.path("pipeline/evaluate.toml");
    let text = read(settings.clone())
        .replace("memory_mib = 1024", "memory_mib = 512")
        .replace("file_mib = 256", "file_mib = 512")
        // Digests and packing are slow in a program that was built for tests.
        .replace("folder_mib = 192", "folder_mib = 3")
        .replace("tmp_mib = 128", "tmp_mib = 3")
        .replace("output_kib = 4096", "output_kib = 256");
    std::fs::write(settings, text).expect("writes");
    for folder in ["", "data"] {
        open(&project.path(folder));
    }
    project
}

fn open(path: &Path) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("sets");
}
