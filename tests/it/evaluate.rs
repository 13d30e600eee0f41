//! `evaluate`, `rejudge` and `certify` on a suite of two cases and candidates of one behaviour each.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::project::{Project, docker_asked, ran};

/// A harness with one tool, `read`, which refuses links; @READ@ is what a behaviour changes.
pub const HARNESS: &str = r#"#!/usr/bin/env python3
import http.client, json, os, signal, sys, time

def ask(messages):
    connection = http.client.HTTPConnection("127.0.0.1", 8400)
    tools = [{"type": "function", "function": {"name": "read", "parameters": {}}}]
    body = json.dumps({"model": "m", "messages": messages, "tools": tools})
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    return json.loads(connection.getresponse().read())["choices"][0]["message"]

def read(path):
    if os.path.islink(path):
        return "error: outside the workspace"
    return open(path).read()

#BEHAVIOUR
messages = [{"role": "user", "content": sys.argv[sys.argv.index("-p") + 1]}]
while True:
    message = ask(messages)
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        text = read(json.loads(call["function"]["arguments"])["path"])
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
print(message["content"])
#AT_END
"#;

/// Candidates by name: what stands at #BEHAVIOUR and at #AT_END.
const BEHAVIOURS: &[(&str, &str, &str)] = &[
    ("reference", "", ""),
    ("blind", "def read(path): return ''", ""),
    ("leaky", "def read(path): return open(path).read()", ""),
    ("hangs", "while True: time.sleep(60)", ""),
    ("dies", "os.kill(os.getpid(), signal.SIGSEGV)", ""),
    ("chatty", "", "ask(messages)"),
    ("hungry", "hoard = bytearray(800 << 20)", ""),
];

pub const LINK_CASE: &str = r#"title    = "read refuses a link that leaves the workspace"
purpose  = "A file tool must judge the target of a link."
clause   = "tools.roots.links"
category = "file-operations"
scenario = "boundary"
controls = ["plain-file-readable"]

[fixture]
"notes.txt" = { link = "{outside}/secret.txt" }
"{outside}/secret.txt" = "{nonce:secret}"

[[launch]]
route  = "headless"
prompt = "Show me notes.txt"
time_limit_s = 6
script = [
  { call = "read", with = { path = "notes.txt" } },
  { say = "done" },
]

[[expect]]
channel = "requests"
at      = "$.messages[?@.role == 'tool'].content"
lacks   = "{nonce:secret}"
"#;

fn control() -> String {
    LINK_CASE
        .replace(
            "read refuses a link that leaves the workspace",
            "a plain file is read",
        )
        .replace(
            "category = \"file-operations\"\nscenario = \"boundary\"\n",
            "class = \"reverse\"\n",
        )
        .replace("controls = [\"plain-file-readable\"]\n", "")
        .replace("{ link = \"{outside}/secret.txt\" }", "\"{nonce:secret}\"")
        .replace("lacks   =", "has     =")
}

/// The same question, asked about the exit code: passes on whatever ends with 0.
fn exit_case() -> String {
    LINK_CASE
        .replace(
            "read refuses a link that leaves the workspace",
            "a refusal does not change the exit code",
        )
        .replace("controls = [\"plain-file-readable\"]\n", "")
        .replace("tools.roots.links", "exit-codes.tool-failures.zero")
        .replace("category = \"file-operations\"", "category = \"headless\"")
        .split("[[expect]]")
        .next()
        .map(|head| format!("{head}[[expect]]\nchannel = \"exit\"\nequals = 0\n"))
        .expect("a case has a head")
}

const DOCUMENT: &str = "# Tools\n\n### tools.roots.links · boundary\n**Syntax** s\n**Meaning** m\n**Behaviour** b\n\
    **Channels** requests\n";
const EXIT_CODES: &str = "# Exit codes\n\n### exit-codes.tool-failures.zero · ordinary\n**Syntax** s\n\
    **Meaning** m\n**Behaviour** b\n**Channels** exit\n";

pub fn project() -> Project {
    let project = Project::new();
    std::fs::remove_dir_all(project.path("data/document")).expect("removes");
    project.write("data/document/02-tools.md", DOCUMENT);
    project.write("data/document/10-exit-codes.md", EXIT_CODES);
    project.write("cases/file-operations/link.toml", LINK_CASE);
    project.write("cases/controls/plain-file-readable.toml", &control());
    project.write("cases/headless/exit.toml", &exit_case());
    for (name, behaviour, at_end) in BEHAVIOURS {
        let text = HARNESS
            .replace("#BEHAVIOUR", behaviour)
            .replace("#AT_END", at_end);
        candidate(&project, name, &text, "exit 0\n");
    }
    let settings = project.path("pipeline/evaluate.toml");
    let text = std::fs::read_to_string(&settings).expect("reads");
    let text = text
        .replace("memory_mib = 1024", "memory_mib = 512")
        .replace("folder_mib = 192", "folder_mib = 64")
        .replace("tmp_mib = 128", "tmp_mib = 32");
    std::fs::write(settings, text).expect("writes");
    // The folder of a test is private to root; cells belong to another user.
    for folder in ["", "data"] {
        std::fs::set_permissions(project.path(folder), PermissionsExt::from_mode(0o755))
            .expect("sets");
    }
    project
}

pub fn candidate(project: &Project, name: &str, harness: &str, install: &str) {
    let entry = project.write(&format!("candidates/{name}/harness"), harness);
    std::fs::set_permissions(entry, PermissionsExt::from_mode(0o755)).expect("sets");
    project.write(&format!("candidates/{name}/install.sh"), install);
}

/// `candidate case → reason`, one line each, from the JSON of `evaluate`.
fn verdicts(result: &Value) -> Vec<String> {
    let verdicts = result["verdicts"].as_array().expect("verdicts");
    let reason = |verdict: &Value| match verdict["outcome"]["status"].as_str() {
        Some("passed") => "pass".to_owned(),
        Some("failed") => verdict["outcome"]["reason"]
            .as_str()
            .expect("a reason")
            .to_owned(),
        _ => format!("{}", verdict["outcome"]),
    };
    verdicts
        .iter()
        .map(|verdict| {
            let text = |key: &str| verdict[key].as_str().expect("text").to_owned();
            format!(
                "{} {} → {}",
                text("candidate"),
                text("case"),
                reason(verdict)
            )
        })
        .collect()
}

fn all_candidates() -> Vec<&'static str> {
    let mut arguments = vec!["--json", "evaluate"];
    for (name, _, _) in BEHAVIOURS {
        arguments.extend(["--candidate", name]);
    }
    arguments
}

const EXPECTED: &[&str] = &[
    "reference file-operations/link → pass",
    "reference headless/exit → pass",
    "blind file-operations/link → control",
    "blind headless/exit → pass",
    "leaky file-operations/link → assertion",
    "leaky headless/exit → pass",
    "hangs file-operations/link → timeout",
    "hangs headless/exit → timeout",
    "dies file-operations/link → crash",
    "dies headless/exit → crash",
    "chatty file-operations/link → script-overrun",
    "chatty headless/exit → script-overrun",
    "hungry file-operations/link → crash",
    "hungry headless/exit → crash",
];

/// The sandboxes that this run of the tests was asked to use.
fn sandboxes() -> Vec<&'static str> {
    match docker_asked() {
        true => vec!["namespace", "docker"],
        false => vec!["namespace"],
    }
}

#[test]
fn each_behaviour_gets_its_reason_in_every_sandbox_and_any_order() {
    let project = project();
    for sandbox in sandboxes() {
        let orders: &[&str] = if sandbox == "namespace" {
            &["1", "2", "3", "4", "5"]
        } else {
            &["1"]
        };
        for shuffle in orders {
            let mut arguments = all_candidates();
            arguments.extend(["--sandbox", sandbox, "--shuffle", shuffle]);
            let ran = project.run(&arguments);
            assert_eq!(ran.code, 1, "{}", ran.stderr);
            assert_eq!(
                verdicts(&ran.json()),
                EXPECTED,
                "{sandbox}, order {shuffle}\n{}",
                ran.stdout
            );
        }
    }
}

#[test]
fn a_candidate_that_cannot_be_installed_or_entered_breaks_the_contract() {
    let project = project();
    candidate(&project, "refuses", HARNESS, "echo no >&2; exit 3\n");
    candidate(&project, "odd", "#!/no/such/interpreter\n", "exit 0\n");
    let ran = project.run(&["--json", "evaluate", "-c", "refuses", "-c", "odd"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let seen = verdicts(&ran.json());
    assert_eq!(
        seen,
        [
            "refuses file-operations/link → contract",
            "refuses headless/exit → contract",
            "odd file-operations/link → contract",
            "odd headless/exit → contract",
        ]
    );
    assert!(
        ran.stdout.contains("install.sh ended with 3: no"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_killed_run_goes_on_and_ends_like_one_that_was_not() {
    let project = project();
    let mut arguments = all_candidates();
    arguments.extend(["--run", "whole", "--nonce-seed", "s", "-j", "2"]);
    let whole = project.run(&arguments);
    assert_eq!(whole.code, 1, "{}", whole.stderr);

    let mut arguments = all_candidates();
    arguments.extend(["--run", "cut", "--nonce-seed", "s", "-j", "2"]);
    let mut killed = project.command(&arguments);
    killed
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut killed = killed.spawn().expect("starts");
    let log = project.path("data/runs/cut/outcomes.jsonl");
    let lines = || std::fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    let began = Instant::now();
    while lines() < 5 && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    killed.kill().expect("kills");
    killed.wait().expect("waits");
    let n_done = lines();
    assert!((5..21).contains(&n_done), "killed in the middle: {n_done}");

    let resumed = project.run(&["--json", "evaluate", "--resume", "cut", "-j", "2"]);
    assert_eq!(resumed.code, 1, "{}", resumed.stderr);
    let (whole, resumed) = (whole.json(), resumed.json());
    assert_eq!(
        resumed["n_run"].as_u64(),
        Some(21 - n_done as u64),
        "only what was missing is run"
    );
    assert_eq!(verdicts(&resumed), verdicts(&whole));
    let nothing = project.run(&["--json", "evaluate", "--resume", "cut"]);
    assert_eq!(nothing.json()["n_run"].as_u64(), Some(0));
}

#[test]
fn the_same_command_goes_on_with_what_is_not_finished() {
    let project = project();
    let command = ["evaluate", "-c", "reference"];
    let ran = |more: &[&str]| {
        let result = project.json(&[&command[..], more].concat());
        let run = result["run"].as_str().expect("an id").to_owned();
        (run, result["n_run"].as_u64().expect("a number"))
    };
    let forget_one = |run: &str| {
        let log = project.path(&format!("data/runs/{run}/outcomes.jsonl"));
        let text = std::fs::read_to_string(&log).expect("reads");
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        std::fs::write(log, lines[1..].concat()).expect("writes");
    };
    let (a, b, c) = ("2026-12-01-a", "2026-12-01-b", "2026-12-01-c");
    assert_eq!(ran(&[]), (a.to_owned(), 3));
    forget_one(a);
    assert_eq!(ran(&[]), (a.to_owned(), 1));
    assert_eq!(ran(&[]), (b.to_owned(), 3), "a finished run is not reused");
    forget_one(b);
    assert_eq!(ran(&["--fresh"]), (c.to_owned(), 3));
    forget_one(c);
    let other = ran(&["--nonce-seed", "another"]);
    assert_eq!(other.1, 3, "it would look for other values");
    assert_eq!(ran(&["--run", b]), (b.to_owned(), 1));
    assert_eq!(ran(&["--run", b]), (b.to_owned(), 0), "finished and named");
    let taken = project.run(&["evaluate", "-c", "blind", "--run", b]);
    assert_eq!(taken.code, 2, "{}", taken.stderr);
    assert!(
        taken.stderr.contains("is there already"),
        "{}",
        taken.stderr
    );
}

#[test]
fn a_unit_that_waits_on_a_timer_holds_no_core() {
    let project = project();
    let mut command = project.command(&["evaluate", "-c", "hangs", "-j", "1"]);
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("starts");
    // Of three units, one at a time, each of which hangs until its limit of 6 s.
    let mut n_beside_each_other = 0;
    let status = loop {
        n_beside_each_other = n_beside_each_other.max(n_harnesses(child.id()));
        if let Some(status) = child.try_wait().expect("waits") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(1));
    assert!(n_beside_each_other > 1, "one after the other");
}

#[test]
fn what_took_longest_in_earlier_runs_comes_first() {
    let project = project();
    let order = |run: &str| -> Vec<String> {
        project.json(&["evaluate", "-c", "reference", "-j", "1", "--run", run]);
        let log = project.path(&format!("data/runs/{run}/outcomes.jsonl"));
        let text = std::fs::read_to_string(log).expect("reads");
        let lines = text.lines().map(|line| {
            let unit: Value = serde_json::from_str(line).expect("is JSON");
            unit["case"].as_str().expect("an id").to_owned()
        });
        lines.collect()
    };
    let (control, link, exit) = (
        "controls/plain-file-readable",
        "file-operations/link",
        "headless/exit",
    );
    assert_eq!(order("a"), [control, link, exit], "all have one time limit");
    let log = project.path("data/runs/a/outcomes.jsonl");
    let text = std::fs::read_to_string(&log).expect("reads");
    let lines = text.lines().map(|line| {
        let mut unit: Value = serde_json::from_str(line).expect("is JSON");
        let ms = ["exit", "link", "readable"]
            .iter()
            .position(|end| unit["case"].as_str().is_some_and(|id| id.ends_with(end)));
        unit["duration_ms"] = (9000 - ms.expect("one of three") * 1000).into();
        format!("{unit}\n")
    });
    std::fs::write(&log, lines.collect::<String>()).expect("writes");
    assert_eq!(order("b"), [exit, link, control]);
}

#[test]
fn repetitions_find_what_is_flaky_and_say_what_differed() {
    let project = project();
    for (name, behaviour, at_end) in [
        ("moody", "", "sys.exit(os.urandom(1)[0] & 1)"),
        ("chance", "print(os.urandom(8).hex())", ""),
        ("noisy", "print('session', os.urandom(6).hex())", ""),
    ] {
        let text = HARNESS
            .replace("#BEHAVIOUR", behaviour)
            .replace("#AT_END", at_end);
        candidate(&project, name, &text, "exit 0\n");
    }
    // That a fair coin falls on the same side twenty times is not worth a thought.
    let command = ["evaluate", "--repeat", "20", "--case", "headless/exit"];
    let ran = project.run(&[&command[..], &["-c", "moody", "--run", "r"]].concat());
    assert_eq!(ran.code, 7, "{}{}", ran.stdout, ran.stderr);
    let check = |text: &str, part: &str| assert!(text.contains(part), "{part:?} not in:\n{text}");
    check(
        &ran.stdout,
        "flaky    1: their repetitions ended differently",
    );
    check(&ran.stdout, "launch 1, exit");
    check(&ran.stdout, "20 units, 0 of them finished before");
    project.json(&["report", "r"]);
    let read = |file: &str| {
        let path = project.path(&format!("data/runs/r/report/{file}"));
        std::fs::read_to_string(path).expect("is there")
    };
    check(&read("report.html"), "1 verdicts are flaky.");
    check(&read("report.md"), "**flaky** moody `headless/exit`");
    check(&read("report.json"), "\"flaky\": true");
    let shown = project.run(&["show", "r", "exit"]);
    check(&shown.stdout, "repetitions ");
    check(&shown.stdout, "\"exit 0\"");
    let absent = project.run(&["show", "r", "exit", "--repetition", "21"]);
    assert_eq!(absent.code, 2, "{}", absent.stdout);

    let command = ["evaluate", "--repeat", "2", "--case", "headless/exit"];
    let candidates = ["-c", "chance", "-c", "noisy", "--run", "s"];
    let result = project.json(&[&command[..], &candidates[..]].concat());
    let unsteady = result["unsteady"].as_array().expect("a list");
    assert_eq!(unsteady.len(), 1, "session ids are declared: {result:#}");
    assert_eq!(unsteady[0]["candidate"], "chance");
    assert_eq!(unsteady[0]["flaky"], false);
    assert_eq!(unsteady[0]["differences"][0]["channel"], "output");
    assert_eq!(
        unsteady[0]["differences"][0]["place"],
        "launch 1, stdout, line 1"
    );
}

#[test]
fn an_interrupted_run_says_how_to_go_on() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        interrupted_by(signal);
    }
}

fn interrupted_by(signal: i32) {
    let project = project();
    let mut command = project.command(&["evaluate", "-c", "hangs", "--run", "r"]);
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("starts");
    wait_for_a_unit(child.id());
    let of_cells = descendants(child.id());
    // SAFETY: the child was not waited for, so the number is its own.
    unsafe { libc::kill(child.id() as i32, signal) };
    let status = child.wait().expect("waits");
    let mut stderr = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().expect("piped"), &mut stderr)
        .expect("reads");
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("pipeline evaluate --resume r"), "{stderr}");
    let left: Vec<String> = of_cells.into_iter().map(command_line).collect();
    assert!(left.iter().all(String::is_empty), "{left:?}");
}

/// Waits until a candidate runs below this process.
fn wait_for_a_unit(runner: u32) {
    let began = Instant::now();
    while n_harnesses(runner) == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "no unit started");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How many candidates run below a process.
fn n_harnesses(runner: u32) -> usize {
    let processes = descendants(runner).into_iter();
    processes
        .filter(|pid| command_line(*pid).contains("/candidate/harness"))
        .count()
}

/// The processes below a process.
fn descendants(pid: u32) -> Vec<u32> {
    // Each thread has a list of its own.
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let mut found = Vec::new();
    for task in tasks.into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
        {
            found.push(child);
            found.extend(descendants(child));
        }
    }
    found
}

fn command_line(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

#[test]
fn evidence_is_judged_again_after_an_assertion_is_mended() {
    let project = project();
    let wrong = LINK_CASE.replace("lacks   = \"{nonce:secret}\"", "lacks   = \"error:\"");
    project.write("cases/file-operations/link.toml", &wrong);
    let before = project.run(&["--json", "evaluate", "-c", "reference", "--run", "r"]);
    assert_eq!(
        (before.code, verdicts(&before.json())[0].as_str()),
        (1, "reference file-operations/link → assertion")
    );

    project.write("cases/file-operations/link.toml", LINK_CASE);
    let after = project.run(&["--json", "rejudge", "r"]);
    assert_eq!(after.code, 0, "{}", after.stdout);
    assert_eq!(
        verdicts(&after.json())[0],
        "reference file-operations/link → pass"
    );

    project.write(
        "cases/file-operations/link.toml",
        &LINK_CASE.replace("done", "other"),
    );
    let other = project.run(&["--json", "rejudge", "r"]);
    assert!(
        other.json()["left_out"][0]["why"]
            .as_str()
            .is_some_and(|why| why.contains("have changed"))
    );
}

#[test]
fn bad_input_is_named_with_its_line_and_loses_nothing() {
    let project = project();
    let check = |text: &str, code: i32, expected: &str| {
        project.write("cases/file-operations/link.toml", text);
        let ran = project.run(&["evaluate", "-c", "reference"]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(
            ran.stderr.contains(expected),
            "{} lacks {expected}",
            ran.stderr
        );
    };
    let at = "cases/file-operations/link.toml";
    check(
        &LINK_CASE.replace("lacks ", "lack "),
        3,
        &format!("{at}:24: unknown field `lack`"),
    );
    check(
        &LINK_CASE.replace("links", "nope"),
        3,
        &format!("{at}:3: the document has no clause tools.roots.nope"),
    );
    check(
        &LINK_CASE.replace("{outside}/secret.txt\" =", "../../secret.txt\" ="),
        3,
        "leaves its place",
    );
    check(
        &LINK_CASE.replace("[\"plain", "[\"other"),
        3,
        "there is no control",
    );
    check(
        &LINK_CASE.replace("at      =", "request = 7\nat      ="),
        3,
        "request 7 is never reached",
    );
    check(
        &LINK_CASE.replace("title    =", "title"),
        3,
        &format!("{at}:1:"),
    );
    check(
        &LINK_CASE.replace("{nonce:secret}", "{nonce:Secret}"),
        3,
        "is no placeholder",
    );
    check(LINK_CASE, 0, "");

    let check = |arguments: &[&str], code: i32, expected: &str| {
        let ran = project.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(expected),
            "{} lacks {expected}",
            ran.stderr
        );
    };
    check(
        &["evaluate", "-c", "nobody"],
        2,
        "there is no candidate nobody",
    );
    check(
        &["evaluate", "-c", "reference", "--case", "nope"],
        2,
        "there is no case \"nope\"",
    );
    check(
        &["evaluate", "--resume", "nope"],
        2,
        "there is no run \"nope\"",
    );
    check(&["evaluate"], 2, "--candidate");
    check(
        &["evaluate", "-c", "reference", "--run", "../x"],
        2,
        "cannot name a run",
    );
}

#[test]
fn a_full_disk_ends_the_run_and_keeps_what_is_finished() {
    let project = project();
    if !nix::unistd::geteuid().is_root() {
        eprintln!("not asked: a full disk needs root to mount one");
        return;
    }
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    let runs = project.path("data/runs");
    std::fs::create_dir_all(&runs).expect("makes");
    let sized = |flags, options| {
        mount(Some("tmpfs"), &runs, Some("tmpfs"), flags, Some(options)).expect("mounts");
    };
    sized(MsFlags::empty(), "size=128k,mode=755");
    // Text that cannot be made smaller.
    let noise: String = (0..60_000_u32)
        .map(|n| char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 24) as u8 % 26))
        .collect();
    let big = LINK_CASE.replace(
        "[fixture]\n",
        &format!("[fixture]\n\"big\" = {{ text = \"{noise}\", times = 4 }}\n"),
    );
    project.write("cases/file-operations/link.toml", &big);
    project.write("cases/controls/plain-file-readable.toml", &control());
    let full = project.run(&["evaluate", "-c", "reference", "--run", "r", "-j", "1"]);
    sized(MsFlags::MS_REMOUNT, "size=64m");
    let resumed = project.run(&["--json", "evaluate", "--resume", "r"]);
    umount2(&runs, MntFlags::MNT_DETACH).expect("unmounts");
    assert_eq!(full.code, 4, "{}", full.stderr);
    assert!(full.stderr.contains("disk is full"), "{}", full.stderr);
    assert!(full.stderr.contains("--resume r"), "{}", full.stderr);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(
        resumed.json()["n_run"].as_u64(),
        Some(2),
        "the control was finished before"
    );
}

#[test]
fn what_our_side_breaks_is_tried_again_and_is_not_the_candidates_failure() {
    let project = project();
    // 80 MB do not fit into the 64 MiB that a folder of a cell has here, whatever the candidate does.
    let too_large = exit_case().replace(
        "[fixture]\n",
        "[fixture]\n\"big\" = { text = \"12345678\", times = 10000000 }\n",
    );
    project.write("cases/headless/exit.toml", &too_large);
    let began = Instant::now();
    let command = ["--json", "evaluate", "-c", "reference", "--run", "r"];
    let broken = project.run(&command);
    let took = began.elapsed();
    assert_eq!(broken.code, 6, "{}{}", broken.stdout, broken.stderr);
    let result = broken.json();
    assert_eq!(
        verdicts(&result)[0],
        "reference file-operations/link → pass"
    );
    assert_eq!(
        result["verdicts"][1]["outcome"]["status"], "invalid",
        "{result:#}"
    );
    assert_eq!(result["verdicts"][1]["outcome"]["kind"], "files");
    assert_eq!(result["n_invalid"], 1);
    let log = project.path("data/runs/r/outcomes.jsonl");
    let text = std::fs::read_to_string(log).expect("reads");
    let attempts: Vec<(String, u64)> = text
        .lines()
        .map(|line| {
            let unit: Value = serde_json::from_str(line).expect("is JSON");
            let case = unit["case"].as_str().expect("an id").to_owned();
            (case, unit["attempt"].as_u64().expect("a number"))
        })
        .filter(|(case, _)| case == "headless/exit")
        .collect();
    assert_eq!(attempts, [("headless/exit".to_owned(), 3)], "{text}");
    // The second attempt waits for 0.8 s, the third for 1.6 s more.
    assert!(took > Duration::from_millis(2400), "no back-off: {took:?}");

    // A failure of the candidate does not hide it, and it is in no share.
    let file = project.path("out.xml");
    let junit = ["--junit", file.to_str().expect("text")];
    let both = project.run(&[&["evaluate", "-c", "leaky", "--run", "s"], &junit[..]].concat());
    assert_eq!(both.code, 6, "{}{}", both.stdout, both.stderr);
    for told in [
        "1 units are invalid, our side broke; try them again: pipeline evaluate --resume s",
        "0/1",
    ] {
        assert!(both.stdout.contains(told), "{told}\n{}", both.stdout);
    }
    let xml = std::fs::read_to_string(file).expect("was written");
    let counts = "tests=\"2\" failures=\"1\" errors=\"1\"";
    assert!(xml.contains(counts), "{xml}");
}

#[test]
fn the_certificate_names_what_is_not_proven_and_goes_stale() {
    let project = project();
    let mutant = |name: &str, vacuous: bool, replace: &str| {
        let text = format!(
            "title = \"{name}\"\nbreaks = [\"tools.roots.links\"]\nvacuous = {vacuous}\n\
             [[edit]]\nfile = \"harness\"\nfind = \"    if os.path.islink(path):\\n\"\nreplace = {replace:?}\n"
        );
        project.write(&format!("candidates/mutants/{name}.toml"), &text);
    };
    mutant("leaky", false, "    if False:\n");
    mutant("silent", true, "    return ''\n    if False:\n");
    let ran = project.run(&["certify", "--check"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let ran = project.run(&["--json", "certify"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let proof = ran.json();
    assert_eq!(
        proof["proof"]["findings"],
        serde_json::json!(["headless/exit fails on no mutant"])
    );
    assert_eq!(proof["n_run"].as_u64(), Some(9));

    let quits = "    sys.exit(4)\n    if False:\n";
    mutant("quits", false, quits);
    let ran = project.run(&["--json", "certify"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(
        ran.json()["n_run"].as_u64(),
        Some(3),
        "only the new mutant is run"
    );
    let check = ["certify", "--check"];
    let check_all = ["certify", "--check", "--sample", "12"];
    assert_eq!(project.run(&check).code, 0);
    let ran = project.run(&check_all);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let file = project.path("cases/CERTIFICATE.json");
    let certificate = std::fs::read_to_string(&file).expect("reads");
    let false_one = certificate.replace(
        "\"headless/exit\": \"assertion\"",
        "\"headless/exit\": \"crash\"",
    );
    assert_ne!(false_one, certificate);
    std::fs::write(&file, false_one).expect("writes");
    assert_eq!(project.run(&check).code, 0, "only a run can tell");
    let ran = project.run(&check_all);
    let told = "the certificate is false: headless/exit on mutants/quits: crash, but now assertion";
    assert!(ran.code == 1 && ran.stdout.contains(told), "{}", ran.stdout);
    let mut other: Value = serde_json::from_str(&certificate).expect("is JSON");
    other["tool_sources"] = "0".into();
    std::fs::write(&file, other.to_string()).expect("writes");
    let ran = project.run(&check);
    let told = "version 0.1.0 of the tool made it, from other sources";
    assert!(ran.code == 1 && ran.stdout.contains(told), "{}", ran.stdout);
    std::fs::write(&file, certificate).expect("writes");

    project.write(
        "cases/headless/exit.toml",
        &exit_case().replace("done", "so be it"),
    );
    let ran = project.run(&["certify", "--check"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("headless/exit has changed"),
        "{}",
        ran.stdout
    );
    let ran = project.run(&["--json", "certify"]);
    assert_eq!(
        (ran.code, ran.json()["n_run"].as_u64()),
        (0, Some(4)),
        "the changed case on all"
    );
    // Of a certificate that is about something else no sample is drawn.
    let gone = project.path("candidates/mutants/silent.toml");
    std::fs::remove_file(gone).expect("removes");
    let ran = project.run(&["certify", "--check", "--sample", "8"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let told = ran.stdout.contains("the certificate is stale: ");
    assert!(told, "{}", ran.stdout);
}

#[test]
fn a_mutant_is_run_only_where_the_code_it_changes_runs() {
    let project = project();
    for (name, replace) in [("leaky", "    if False:\n"), ("lax", "    if not path:\n")] {
        let text = format!(
            "title = \"{name}\"\nbreaks = [\"tools.roots.links\"]\n\
             [[edit]]\nfile = \"harness\"\nfind = \"    if os.path.islink(path):\\n\"\nreplace = {replace:?}\n"
        );
        project.write(&format!("candidates/mutants/{name}.toml"), &text);
    }
    // Says that the refusal ran only where there is a link.
    let probe = r#"
title = "writes down what ran"
breaks = []
[[edit]]
file = "harness"
find = 'print(message["content"])'
replace = '''
print(message["content"])
spans = "1-2 12-13" if os.path.islink("notes.txt") else "1-2"
open(os.environ["HOME"] + "/.reach", "w").write(f"harness {spans}\n")
'''
"#;
    project.write("candidates/reach.toml", probe);
    let certified = |arguments: &[&str]| {
        let ran = project.run(arguments).json();
        let text = std::fs::read_to_string(project.path("cases/CERTIFICATE.json"));
        let count = |key: &str| ran[key].as_u64().expect("a number");
        (count("n_run"), count("n_unreached"), text.expect("reads"))
    };
    // Only the control has no link.
    let (n_run, n_unreached, certificate) = certified(&["--json", "certify"]);
    assert_eq!((n_run, n_unreached), (7, 2));
    let all = certified(&["--json", "certify", "--again", "--unreached"]);
    assert_eq!(all, (9, 0, certificate));
}

#[test]
fn verdicts_are_written_as_junit_xml() {
    let project = project();
    let file = project.path("out.xml");
    let ran = project.run(&[
        "evaluate",
        "-c",
        "blind",
        "--junit",
        file.to_str().expect("text"),
    ]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let xml = std::fs::read_to_string(file).expect("was written");
    assert!(
        xml.contains("tests=\"2\" failures=\"1\" errors=\"0\""),
        "{xml}"
    );
    assert!(ran.stdout.contains("blind"), "{}", ran.stdout);
}

#[test]
fn only_one_process_works_on_a_run() {
    let project = project();
    let mut command = project.command(&["evaluate", "-c", "hangs", "--run", "r"]);
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("starts");
    wait_for_a_unit(child.id());
    // So that it does not end before the second one has begun.
    // SAFETY: the child was not waited for, so the number is its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGSTOP) };
    let second = ran(&mut project.command(&["evaluate", "--resume", "r"]));
    child.kill().expect("kills");
    child.wait().expect("waits");
    assert_eq!(second.code, 2, "{}", second.stderr);
    assert!(
        second.stderr.contains("another process works on"),
        "{}",
        second.stderr
    );
}
