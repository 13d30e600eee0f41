//! What the case language can say about launches, fixtures and assertions, played against a small candidate in both
//! sandboxes. Docker's half runs with `PIPELINE_TEST_DOCKER=1`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use doc2harness::adapters::sandbox::{Limits, Sandbox};
use doc2harness::domain::case::{Case, CaseId};
use doc2harness::domain::evidence::Evidence;
use doc2harness::domain::verdict::Outcome;
use doc2harness::methods::judge::judge;
use doc2harness::stages::trial::{self, Bench, Subject};

use crate::both_sandboxes::promises;

/// A harness with a shell tool, sessions that are written before each request, and a prompt in a terminal.
const HARNESS: &str = r#"#!/usr/bin/env python3
import json, os, signal, subprocess, sys, urllib.request

args = sys.argv[1:]
state = os.environ["HARNESS_HOME"]

def ask(messages):
    body = json.dumps({"messages": messages, "tools": [{"type": "function"}]}).encode()
    headers = {"authorization": "Bearer " + os.environ["HARNESS_API_KEY"], "content-type": "application/json"}
    url = os.environ["HARNESS_BASE_URL"] + "/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as reply:
        return json.loads(reply.read())["choices"][0]["message"]

def save(session, messages):
    os.makedirs(state + "/sessions", exist_ok=True)
    with open(f"{state}/sessions/{session}.jsonl", "w") as file:
        file.writelines(json.dumps(message) + "\n" for message in messages)

def turn(session, messages, prompt):
    messages.append({"role": "user", "content": prompt})
    while True:
        save(session, messages)
        message = ask(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            save(session, messages)
            return message["content"]
        for call in message["tool_calls"]:
            command = json.loads(call["function"]["arguments"])["command"]
            ran = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, errors="replace")
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": ran.stdout + ran.stderr})

def told(number, frame):
    print("interrupted", flush=True)
    os._exit(130)

signal.signal(signal.SIGTERM, told)
if "-p" in args:
    session, messages = os.urandom(6).hex(), []
    if "--resume" in args:
        session = args[args.index("--resume") + 1]
        try:
            messages = [json.loads(line) for line in open(f"{state}/sessions/{session}.jsonl")]
        except FileNotFoundError:
            sys.exit(6)
    answer = turn(session, messages, args[args.index("-p") + 1])
    print(json.dumps({"type": "init", "session_id": session}))
    print(json.dumps({"type": "result", "text": answer, "session_id": session}))
elif "stdin" in args:
    print(sys.stdin.readline().strip() if sys.stdin else "no stdin")
else:
    signal.signal(signal.SIGINT, told)
    while True:
        sys.stdout.write("> ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            break
        print(turn("terminal", [], line.strip()))
"#;

const HEAD: &str = "title = \"t\"\npurpose = \"p\"\nclause = \"tools.roots.links\"\ncategory = \"headless\"\n\
    scenario = \"ordinary\"\n";

struct Place {
    tree: tempfile::TempDir,
    bench: Bench,
}

impl From<Box<dyn Sandbox>> for Place {
    fn from(sandbox: Box<dyn Sandbox>) -> Self {
        let tree = tempfile::tempdir().expect("a folder");
        let entry = tree.path().join("harness");
        std::fs::write(&entry, HARNESS).expect("writes");
        for path in [tree.path(), &entry] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("sets");
        }
        let bench = Bench {
            sandbox: Arc::from(sandbox),
            run: "test".into(),
            seed: "s".into(),
        };
        Self { tree, bench }
    }
}

impl Place {
    async fn play(&self, case: &Case) -> Evidence {
        let subject = Subject {
            tree: self.tree.path().to_path_buf(),
            packages: Vec::new(),
            limits: Limits::default(),
        };
        trial::run(&self.bench, case, &subject)
            .await
            .unwrap_or_else(|broken| panic!("{:?}", broken.fault))
    }

    /// Plays a case that has to pass.
    async fn passes(&self, rest: &str) -> Evidence {
        let case = case(rest);
        let evidence = self.play(&case).await;
        match judge(&case, &evidence) {
            Outcome::Passed => evidence,
            other => panic!("{other:#?}\n{:#?}", evidence.launches),
        }
    }

    /// Plays a case that has to fail, and returns what the verdict says.
    async fn fails(&self, rest: &str) -> String {
        let case = case(rest);
        let evidence = self.play(&case).await;
        match judge(&case, &evidence) {
            Outcome::Failed(failure) => format!(
                "{}: expected {}; saw {} @ {}",
                failure.reason, failure.expected, failure.saw, failure.place
            ),
            other => panic!("{other:?}\n{:#?}", evidence.launches),
        }
    }
}

fn case(rest: &str) -> Case {
    let text = format!("{HEAD}{rest}");
    Case::parse(CaseId::new("headless/x"), Path::new("x.toml"), &text).unwrap_or_else(|findings| {
        let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
        panic!("{}", findings.join("\n"))
    })
}

promises! {
    a_launch_runs_inside_another,
    launches_run_beside_each_other_from_a_moment_on,
    a_launch_waits_for_the_screen_of_another,
    a_killed_session_is_resumed_under_its_own_name,
    a_signal_comes_when_a_file_is_there,
    keys_wait_for_requests_and_files,
    what_never_comes_is_said,
    standard_input_is_open_or_closed,
    a_repository_has_its_history,
    odd_names_and_large_files_are_laid_and_read_back,
}

/// While the first holds its second reply, the second runs from its start to its end.
async fn a_launch_runs_inside_another(place: Place) {
    let evidence = place
        .passes(
            r#"
[[launch]]
route  = "headless"
prompt = "first"
script = [
  { call = "bash", with = { command = "cat note.txt 2>&1; echo one > note.txt" } },
  { call = "bash", with = { command = "cat note.txt" } },
  { say = "done {nonce:first}" },
]

[[launch]]
route     = "headless"
prompt    = "second"
alongside = { launch = 1, once = { request = 2 } }
script = [
  { call = "bash", with = { command = "cat note.txt; echo two > note.txt" } },
  { say = "done {nonce:second}" },
]

[[expect]]
channel = "requests"
launch  = 1
request = "last"
at      = "$.messages[-1].content"
equals  = "two\n"

[[expect]]
channel = "requests"
launch  = 2
at      = "$.messages[-1].content"
has     = "one"

[[expect]]
channel = "requests"
at      = "$.messages[-1].content"
order   = [{ equals = "first" }, { has = "No such file" }, { equals = "second" }, { equals = "one\n" }, { equals = "two\n" }]

[[expect]]
channel = "requests"
header  = "authorization"
equals  = "Bearer test-key"
count   = 5

[[expect]]
channel = "output"
launch  = 1
has     = "{nonce:first}"

[[expect]]
channel = "output"
launch  = 2
has     = "{nonce:second}"
"#,
        )
        .await;
    let paths: Vec<&str> = evidence
        .launches
        .iter()
        .map(|launch| launch.requests[0].path.as_str())
        .collect();
    assert_eq!(
        paths,
        ["/v1/chat/completions", "/launch-2/v1/chat/completions"]
    );
}

async fn launches_run_beside_each_other_from_a_moment_on(place: Place) {
    // Each waits in the shell for what the other does.
    place
        .passes(
            r#"
[[launch]]
route        = "headless"
prompt       = "first"
time_limit_s = 20
script = [
  { call = "bash", with = { command = "echo a > a; while [ ! -e b ]; do sleep 0.02; done; echo {nonce:met}" } },
  { say = "done" },
]

[[launch]]
route        = "headless"
prompt       = "second"
time_limit_s = 20
alongside    = { launch = 1, once = { request = 1 }, until = { request = 1 } }
script = [
  { call = "bash", with = { command = "while [ ! -e a ]; do sleep 0.02; done; echo b > b" } },
  { say = "done" },
]

[[expect]]
channel = "requests"
launch  = 1
at      = "$.messages[-1].content"
has     = "{nonce:met}"
"#,
        )
        .await;
}

async fn a_launch_waits_for_the_screen_of_another(place: Place) {
    place
        .passes(
            r#"
[[launch]]
route  = "terminal"
keys = [
  { wait = "> " },
  { type = "look" },
  { press = "enter" },
  { wait = "{nonce:answer}" },
  { press = "ctrl-d" },
]
script = [
  { call = "bash", with = { command = "cat note.txt" } },
  { say = "{nonce:answer}" },
]

[[launch]]
route     = "headless"
prompt    = "second"
alongside = { launch = 1, once = { screen = "> " } }
script = [
  { call = "bash", with = { command = "echo {nonce:note} > note.txt" } },
  { say = "done" },
]

[[expect]]
channel = "requests"
launch  = 1
request = 2
at      = "$.messages[-1].content"
has     = "{nonce:note}"

[[expect]]
channel = "exit"
launch  = 1
equals  = 0
"#,
        )
        .await;
}

/// What a session is called is caught from the screen of one launch and used in the next.
async fn a_killed_session_is_resumed_under_its_own_name(place: Place) {
    let case = r#"
[[launch]]
route  = "headless"
prompt = "one {nonce:one}"
bind   = { session = { lines = true, at = "$[?@.type == 'result'].session_id" } }
script = [{ say = "done" }]

[[launch]]
route   = "headless"
prompt  = "two {nonce:two}"
args    = ["--resume", "{bound:session}"]
signals = [{ send = "kill", once = { request = 1 } }]
script  = [{ say = "never heard" }]

[[launch]]
route  = "headless"
prompt = "three"
args   = ["--resume", "{bound:session}"]
script = [{ say = "done" }]

[[expect]]
channel = "exit"
launch  = 2
equals  = 137

[[expect]]
channel = "files"
path    = "{state}/sessions/{bound:session}.jsonl"
lines   = true
at      = "$[*].content"
order   = [{ has = "{nonce:one}" }, { has = "{nonce:two}" }, { equals = "three" }]

[[expect]]
channel = "files"
path    = "{state}/sessions/*.jsonl"
lacks   = "never heard"

[[expect]]
channel = "output"
matches = '"session_id": "([0-9a-f]+)"'
bind    = "again"

[[expect]]
channel = "output"
launch  = 1
has     = "{bound:again}"

[[expect]]
channel = "files"
path    = "{state}"
changed = ["{state}/sessions/{bound:again}.jsonl"]
"#;
    place.passes(case).await;
    let said = place
        .fails(&case.replace("'result'].session_id", "'result'].nothing"))
        .await;
    assert!(said.contains("is bound to {bound:session}"), "{said}");
    assert!(said.ends_with("@ launch 1, output"), "{said}");
}

async fn a_signal_comes_when_a_file_is_there(place: Place) {
    place
        .passes(
            r#"
[[launch]]
route        = "headless"
prompt       = "wait"
time_limit_s = 20
signals      = [{ send = "term", once = { file = "{outside}/ready" } }]
script = [
  { call = "bash", with = { command = "echo > /outside/ready; sleep 30" } },
]

[[expect]]
channel = "exit"
equals  = 130

[[expect]]
channel = "output"
equals  = "interrupted\n"
"#,
        )
        .await;
}

/// Ctrl-C ends the first launch while it hears nothing, and the second while its command runs.
async fn keys_wait_for_requests_and_files(place: Place) {
    place
        .passes(
            r#"
[[launch]]
route = "terminal"
keys = [
  { wait = "> " },
  { type = "one" },
  { press = "enter" },
  { wait = { request = 1 } },
  { press = "ctrl-c" },
]
script = [
  { fault = "hang" },
]

[[launch]]
route = "terminal"
keys = [
  { wait = "> " },
  { type = "two" },
  { press = "enter" },
  { wait = { file = "{outside}/ready" } },
  { press = "ctrl-c" },
]
script = [
  { call = "bash", with = { command = "echo > /outside/ready; sleep 30" } },
  { say = "done" },
]

[[expect]]
channel = "exit"
launch  = 1
equals  = 130

[[expect]]
channel = "exit"
launch  = 2
equals  = 130
"#,
        )
        .await;
    let said = place
        .fails(
            r#"
[[launch]]
route = "terminal"
keys = [
  { wait = { file = "never" } },
  { type = "one" },
]

[[expect]]
channel = "exit"
equals  = 0
"#,
        )
        .await;
    assert!(said.contains("2 keys never typed"), "{said}");
}

async fn what_never_comes_is_said(place: Place) {
    let case = r#"
[[launch]]
route  = "headless"
prompt = "one"
signals = [{ send = "int", once = { file = "never" } }]
script = [{ say = "done" }, { say = "not asked for" }]

[[launch]]
route     = "headless"
prompt    = "two"
alongside = { launch = 1, once = { request = 2 } }

[[expect]]
channel = "exit"
launch  = 1
equals  = 0
"#;
    let said = place.fails(case).await;
    assert!(
        said.contains("signal int is sent once never is there"),
        "{said}"
    );
    let said = place.fails(&case.replace("signals = ", "#")).await;
    let expected = "it starts alongside launch 1 once request 2 is made there; saw it was never started @ launch 2";
    assert!(said.contains(expected), "{said}");
}

async fn standard_input_is_open_or_closed(place: Place) {
    place
        .passes(
            r#"
[[launch]]
route    = "cli"
args     = ["stdin"]
stdin    = "{nonce:line}\nrest"
stdin_is = "open"

[[launch]]
route    = "cli"
args     = ["stdin"]
stdin_is = "closed"

[[expect]]
channel = "output"
launch  = 1
equals  = "{nonce:line}\n"

[[expect]]
channel = "output"
launch  = 2
equals  = "no stdin\n"
"#,
        )
        .await;
}

async fn a_repository_has_its_history(place: Place) {
    let case = r#"
[fixture]
"{workspace}" = { git = { commits = [
  { message = "first", files = { "a.txt" = "one\n", "folder/b.txt" = "b\n" } },
  { message = "aside", branch = "side", files = { "c.txt" = "c\n" }, tag = "v1" },
  { message = "second", files = { "a.txt" = "two\n" }, remove = ["folder/b.txt"] },
  { message = "joined", merge = "side", files = { "c.txt" = "c\n" } },
] } }
"a.txt"    = "changed\n"
"new.txt"  = "new\n"
"{home}/.gitconfig" = "[safe]\n\tdirectory = *\n"

[[launch]]
route  = "headless"
prompt = "look"
script = [
  { call = "bash", with = { command = "git log --all --graph --format='%s %an %ad' --date=unix; git status --short; git rev-parse v1 main; git fsck 2>&1" } },
  { say = "done" },
]

[[expect]]
channel = "requests"
at      = "$.messages[?@.role == 'tool'].content"
has     = ["joined Fixture 1767225780\n", "aside Fixture 1767225660\n", " M a.txt\n?? new.txt\n"]
matches = '(?s)\?\? new.txt\n([0-9a-f]{40}\n){2}$'

[[expect]]
channel = "files"
path    = "{workspace}"
changed = []
"#;
    let first = place.passes(case).await;
    let again = place.play(&self::case(case)).await;
    let main = |evidence: &Evidence| evidence.files_after[".git/refs/heads/main"].text.clone();
    assert!(main(&first).is_some_and(|id| id.len() == 41));
    assert_eq!(main(&first), main(&again), "the same ids in every run");
}

async fn odd_names_and_large_files_are_laid_and_read_back(place: Place) {
    let evidence = place
        .passes(
            r#"
[fixture]
"caf{byte:e9}.txt" = "{nonce:odd}"
"link"             = { link = "caf{byte:e9}.txt" }
"large.txt"        = { text = "0123456789", times = 10000000 }
"closed.txt"       = { text = "{nonce:closed}", mode = "000" }

[[launch]]
route  = "headless"
prompt = "look"
script = [
  { call = "bash", with = { command = "cat link; wc -c < large.txt; cat closed.txt; touch $(printf 'new\\377')" } },
  { say = "done" },
]

[[expect]]
channel = "requests"
at      = "$.messages[?@.role == 'tool'].content"
has     = ["{nonce:odd}", "100000000", "Permission denied"]

[[expect]]
channel = "files"
path    = "{workspace}"
changed = ["new{byte:ff}"]
"#,
        )
        .await;
    assert_eq!(evidence.files_before["large.txt"].size, 100_000_000);
}
