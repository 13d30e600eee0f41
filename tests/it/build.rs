//! `pipeline build` with builders of one line: turns, submissions, limits and what is kept.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use doc2harness::domain::adapter::Packages;
use doc2harness::storage::candidates;
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::check;
use crate::project::{Project, ran};

/// A build with a command that sees the candidate `small` in place of `SMALL`; limits are lines of the settings.
fn command(project: &Project, builder: &str, limits: &[(&str, &str)]) -> Command {
    let settings = project.path("pipeline/build.toml");
    let mut text = std::fs::read_to_string(&settings).expect("is there");
    for (name, value) in limits {
        let line = text.lines().find(|line| line.starts_with(name));
        let line = line.expect("a setting").to_owned();
        text = text.replace(&line, &format!("{name} = {value}"));
    }
    std::fs::write(&settings, text).expect("writes");
    let small = project.path("candidates/small").display().to_string();
    let builder = builder.replace("SMALL", "/shown/small");
    project.command(&[
        "--json",
        "build",
        "--sandbox",
        "namespace",
        "--name",
        "b",
        "--builder",
        &builder,
        "--show",
        &small,
    ])
}

fn build(project: &Project, builder: &str, limits: &[(&str, &str)]) -> (i32, Value) {
    let ran = ran(&mut command(project, builder, limits));
    assert!(!ran.stdout.is_empty(), "{}", ran.stderr);
    (ran.code, ran.json()["built"][0]["build"].clone())
}

fn kept(project: &Project, file: &str) -> String {
    std::fs::read_to_string(project.path(&format!("data/builds/b/{file}"))).expect("is kept")
}

fn state(build: &Value) -> (&str, &str) {
    let text = |key: &str| build[key].as_str().unwrap_or_default();
    (text("state"), text("why"))
}

#[test]
fn a_builder_that_fills_the_skeleton_in_gets_a_frozen_candidate() {
    let project = check::project();
    let builder = "find . -type f | sort; echo \"$2 $1\"; cp -r SMALL/. .; mkdir .git; touch .git/x; submit; sleep 600";
    let (code, built) = build(&project, builder, &[]);
    assert_eq!(
        (code, state(&built)),
        (0, ("passed", "submission 1 passes")),
        "{built:#}"
    );
    let transcript = kept(&project, "turn-1.stdout");
    let expected = [
        "./DOCUMENT.md",
        "./harness",
        "./harness_agent/api.py",
        "./harness_agent/cli.py",
        "./harness_agent/headless.py",
        "./harness_agent/protocols.py",
        "./harness_agent/types.py",
        "./install.sh",
        "./pyproject.toml",
        "1 DOCUMENT.md in this folder specifies a coding-agent harness",
    ];
    // Of the prompt, the first sentence.
    let lines: Vec<&str> = transcript
        .lines()
        .take(expected.len())
        .map(|line| line.split(". ").next().unwrap_or(line))
        .collect();
    assert_eq!(lines, expected);
    assert_eq!(built["turns"][0]["ended"], "stopped: the build was over");

    assert!(project.path("data/builds/b/b/harness").exists());
    for left_out in ["DOCUMENT.md", ".git"] {
        assert!(!project.path("data/builds/b/b").join(left_out).exists());
    }
    let record =
        std::fs::read_to_string(project.path("data/frozen/records/b.json")).expect("is frozen");
    let record: Value = serde_json::from_str(&record).expect("is JSON");
    assert_eq!(record["digest"], built["submissions"][0]["digest"]);
    assert_eq!(
        project.json(&["check", "data/builds/b/b"])["candidates"][0]["digest"],
        record["digest"]
    );
    assert_eq!(
        ran(&mut command(&project, "true", &[])).code,
        2,
        "the name is taken"
    );
    std::fs::remove_dir_all(project.path("data/builds")).expect("removes");
    let again = ran(&mut command(&project, "true", &[]));
    assert_eq!(again.code, 2);
    assert!(
        again.stderr.contains("a frozen candidate, of the name b"),
        "{}",
        again.stderr
    );
}

#[test]
fn findings_come_back_until_a_submission_passes() {
    let project = check::project();
    let builder = "truncate -s 70M big; submit; echo \"code $?\"; rm big; ln -s harness a; submit; echo \"code $?\"; rm a; mkfifo p; submit; echo \"code $?\"; rm p; \
                   cp -r SMALL/. .; ln harness hard; submit";
    let (code, built) = build(&project, builder, &[]);
    assert_eq!(
        (code, state(&built)),
        (0, ("passed", "submission 3 passes")),
        "{built:#}"
    );
    let transcript = kept(&project, "turn-1.stdout");
    for expected in [
        "not taken: the folder has 71 MiB; a submission has at most 64 MiB\ncode 2\n",
        "Submission 1 is returned. 2 left. Findings:\nharness:1: ",
        "\nharness_agent/cli.py:4: the body of `main` is a placeholder: ",
        "code 1\nSubmission 2 is returned. 1 left. Findings:\n.:1: p is neither a file, a folder nor a link\n",
    ] {
        assert!(
            transcript.contains(expected),
            "{expected} is not in\n{transcript}"
        );
    }
    let submissions = built["submissions"].as_array().expect("a list");
    let is_tree = |one: &Value| one["digest"].is_string();
    let trees: Vec<bool> = submissions.iter().map(is_tree).collect();
    assert_eq!(trees, [true, false, true]);
    assert!(
        project
            .path("data/builds/b/submission-1/a")
            .symlink_metadata()
            .expect("the tree is kept")
            .is_symlink()
    );
}

#[test]
fn three_submissions_that_fail_are_the_end() {
    let project = check::project();
    // The next turn goes on where the one before ended.
    let builder = "echo \"$1\"; submit; submit; touch seen";
    let (code, built) = build(&project, &format!("ls; {builder}"), &[]);
    assert_eq!(
        (code, state(&built)),
        (1, ("failed", "no submission is left"))
    );
    assert_eq!(built["submissions"].as_array().map(Vec::len), Some(3));
    assert_eq!(built["turns"].as_array().map(Vec::len), Some(2));
    let second = kept(&project, "turn-2.stdout");
    assert!(
        second.contains("\nseen\n") && second.contains("No submission has passed yet."),
        "{second}"
    );
    assert!(!project.path("data/frozen/records/b.json").exists());
}

#[test]
fn turns_and_the_clock_end_a_build_that_submits_nothing() {
    let project = check::project();
    let (code, built) = build(&project, "exit 3", &[("max_turns", "2")]);
    assert_eq!(
        (code, state(&built)),
        (1, ("not-delivered", "2 turns are used up"))
    );
    assert_eq!(built["turns"][1]["ended"], "exit 3");

    let project = check::project();
    let (code, built) = build(&project, "sleep 600", &[("time_limit_s", "3")]);
    assert_eq!(
        (code, state(&built)),
        (1, ("not-delivered", "3 s are over"))
    );
    assert_eq!(built["turns"][0]["ended"], "time limit");
}

#[test]
fn a_submission_that_passes_has_passed_though_the_clock_ended_meanwhile() {
    let project = check::project();
    let builder = "cp -r SMALL/. .; sed -i '2a sleep 9' install.sh; submit; sleep 600";
    let (code, built) = build(&project, builder, &[("time_limit_s", "6")]);
    assert_eq!(
        (code, state(&built)),
        (0, ("passed", "submission 1 passes")),
        "{built:#}"
    );
    assert!(built["submissions"][0]["at_ms"].as_u64() < Some(6000));
    assert!(built["duration_ms"].as_u64() > Some(8000));
    assert!(project.path("data/frozen/records/b.json").exists());
}

#[test]
fn an_archive_that_cannot_be_written_out_is_the_builder_s_fault() {
    let project = check::project();
    let builder = r#"python3 - <<'END'
import http.client, io, json, tarfile
archive = io.BytesIO()
with tarfile.open(fileobj=archive, mode="w") as tar:
    entry = tarfile.TarInfo("link")
    entry.type = tarfile.SYMTYPE
    tar.addfile(entry)
connection = http.client.HTTPConnection("127.0.0.1", 8400)
connection.request("POST", "/submit", archive.getvalue())
print(json.loads(connection.getresponse().read())["text"])
END"#;
    let (code, built) = build(&project, builder, &[("max_turns", "1")]);
    assert_eq!(
        (code, state(&built)),
        (1, ("failed", "1 turns are used up")),
        "{built:#}"
    );
    assert_eq!(
        kept(&project, "turn-1.stdout"),
        "Submission 1 is returned. 2 left. Findings:\n.:1: link is a link to no path, or to too long a one\n"
    );
}

#[test]
fn what_breaks_one_build_leaves_those_beside_it_alone() {
    let project = check::project();
    let builder = "until [ -e SMALL/go ]; do sleep 0.1; done; cp -r SMALL/. .; submit";
    let mut command = command(&project, builder, &[("jobs", "2")]);
    let child = command
        .args(["--builds", "3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let is_there = |name: &str| {
        let record = project.path(&format!("data/builds/{name}/build.json"));
        record.exists()
    };
    let began = Instant::now();
    while !(is_there("b-1") && is_there("b-2")) && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!is_there("b-3"), "two at a time");
    // The first cannot keep its submission.
    project.write("data/builds/b-1/submission-1", "in the way");
    project.write("candidates/small/go", "");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(6));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    let mut built: Vec<(&str, &str)> = summary["built"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (&one["build"]["name"], &one["build"]["state"]))
        .map(|(name, state)| {
            (
                name.as_str().expect("a name"),
                state.as_str().expect("a word"),
            )
        })
        .collect();
    built.sort_unstable();
    assert_eq!(built, [("b-2", "passed"), ("b-3", "passed")]);
    assert_eq!(summary["broken"].as_array().map(Vec::len), Some(1));
    assert_eq!(summary["broken"][0]["name"], "b-1");
    let why = summary["broken"][0]["why"].as_str().expect("a text");
    assert!(why.contains("submission-1"), "{why}");
    let record = project.path("data/builds/b-1/build.json");
    let record = std::fs::read_to_string(record).expect("is kept");
    let record: Value = serde_json::from_str(&record).expect("is JSON");
    assert_eq!(state(&record), ("void", why));
}

#[test]
fn a_builder_reaches_neither_the_network_nor_the_cases() {
    let project = check::project();
    project.write("cases/secret.toml", "the cases");
    let here = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let port = here.local_addr().expect("is bound").port();
    let script = format!(
        r#"python3 - <<'END'
import os, socket, urllib.request, urllib.error
for address in (("127.0.0.1", {port}), ("192.0.2.1", 80), ("169.254.169.254", 80)):
    try:
        socket.create_connection(address, 5)
        print("reached", address)
    except OSError:
        print("not reached")
print(os.path.exists("{root}"), any("secret.toml" in files for _, _, files in os.walk("/")))
try:
    urllib.request.urlopen("http://127.0.0.1:8400/v1/chat/completions", b"{{}}")
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
END"#,
        root = project.path("cases").display()
    );
    let (_, built) = build(&project, &script, &[("max_turns", "1")]);
    let said = kept(&project, "turn-1.stdout");
    let expected = "not reached\nnot reached\nnot reached\nFalse False\n403 {\"type\":\"error\",\"error\":\
                    {\"type\":\"gateway_error\",\"message\":\"this build has no model\"}}\n";
    assert_eq!(said, expected, "{}", kept(&project, "turn-1.stderr"));
    assert_eq!(built["turns"][0]["n_refused"], 1);
}

#[test]
fn a_builder_fills_its_own_folder_and_not_the_disk() {
    let project = check::project();
    let builder = "i=0; while [ $i -lt 900 ] && touch f$i; do i=$((i+1)); done; echo made $i; rm f*; \
                   cp -r SMALL/. .; submit";
    let (code, built) = build(&project, builder, &[("folder_files", "200")]);
    assert_eq!(
        (code, state(&built)),
        (0, ("passed", "submission 1 passes")),
        "{built:#}"
    );
    let said = kept(&project, "turn-1.stdout");
    let made = said.lines().find_map(|line| line.strip_prefix("made "));
    let made: u32 = made.expect("says so").parse().expect("a number");
    assert!((100..200).contains(&made), "{made}");
    let said = kept(&project, "turn-1.stderr");
    assert!(said.contains("No space left on device"), "{said}");
}

/// A project in which OpenCode is a script: what it prints for `--version`, and what it does in a turn.
fn with_false_opencode(version: &str, turn: &str) -> Project {
    let project = check::project();
    project.take("candidates/adapters/opencode");
    let tree = project.path("candidates/adapters/opencode");
    let place = candidates::packages_place(&project.path("data/packages"), &tree, &Packages::Npm)
        .expect("has locks");
    let program = place.join("node_modules/opencode-linux-x64/bin/opencode");
    let program = program.strip_prefix(project.path("")).expect("is below");
    let script =
        format!("#!/bin/sh\nif [ \"$1\" = --version ]; then echo {version}; exit; fi\n{turn}\n");
    let program = project.write(&program.display().to_string(), &script);
    std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).expect("sets");
    add_model(&project, "openai", "http://127.0.0.1:9", "");
    project
}

#[test]
fn a_preflight_that_fails_aborts_and_yields_no_result() {
    let project = with_false_opencode("0.0.0", "submit");
    let arguments = [
        "--json",
        "build",
        "--sandbox",
        "namespace",
        "--model",
        "tested",
    ];
    for name in ["tested-1", "tested-2"] {
        let ran = project.run(&arguments);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let built = ran.json()["built"][0].clone();
        // The one before does not count.
        assert_eq!(built["build"]["name"], name);
        let (state, why) = state(&built["build"]);
        assert_eq!(state, "aborted");
        assert!(
            why.starts_with("the builder does not start: ")
                && why.ends_with("says \"0.0.0\", not \"1.17.0\""),
            "{why}"
        );
        assert_eq!(built["build"]["turns"], serde_json::json!([]));
        assert_eq!(built["candidate"], Value::Null);
    }
    assert!(!project.path("data/frozen/records").exists());
}

#[test]
fn a_turn_after_the_first_goes_on_with_the_session() {
    let project = with_false_opencode("1.17.0", "echo \"$1 $2 $3 $4 | $5\"; exit 5");
    let settings = project.path("pipeline/build.toml");
    let text = std::fs::read_to_string(&settings).expect("is there");
    let text = text.replace("max_turns       = 24", "max_turns = 2");
    std::fs::write(&settings, text).expect("writes");
    let arguments = [
        "--json",
        "build",
        "--sandbox",
        "namespace",
        "--model",
        "tested",
    ];
    let build = project.run(&arguments).json()["built"][0]["build"].clone();
    assert_eq!(build["turns"][1]["ended"], "exit 5", "{build:#}");
    let said = |turn: &str| {
        let file = project.path(&format!("data/builds/tested-1/turn-{turn}.stdout"));
        std::fs::read_to_string(file).expect("is kept")
    };
    let (first, second) = (said("1"), said("2"));
    assert!(
        first.starts_with("run --format json -- | DOCUMENT.md in"),
        "{first}"
    );
    assert!(
        second.starts_with("run --format json --continue | --"),
        "{second}"
    );
}

#[test]
fn what_the_machine_lacks_is_told_before_there_is_a_build() {
    let project = check::project();
    project.take("candidates/adapters/opencode");
    add_model(&project, "openai", "http://127.0.0.1:9", "");
    let check = |arguments: &[&str], expected: &[&str]| {
        let mut command = project.command(&[&["build"], arguments].concat());
        let ran = ran(command.env("DOCKER_HOST", "unix:///nowhere/docker.sock"));
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        for text in expected {
            assert!(ran.stderr.contains(text), "{text} is not in {}", ran.stderr);
        }
        assert!(!project.path("data/builds").exists());
    };
    check(
        &["--sandbox", "docker", "--builder", "true"],
        &[
            "docker daemon unusable",
            "systemctl start docker",
            "--sandbox namespace",
        ],
    );
    check(
        &["--sandbox", "namespace", "--model", "tested"],
        &[
            "the packages of opencode 1.17.0 are not installed",
            "pipeline prepare adapters/opencode",
        ],
    );
}

/// Calls the model as told by its arguments: path, model, whether streamed; prints what comes back.
const CALLER: &str = r#"cat > /tmp/call.py <<'END'
import http.client, json, os, sys
path, model = sys.argv[1:3]
connection = http.client.HTTPConnection("127.0.0.1", 8400)
body = json.dumps({"model": model, "messages": []})
connection.request("POST", path, body, {"authorization": "Bearer mine", "cookie": "mine"})
response = connection.getresponse()
print(response.status, response.getheader("retry-after"), response.read().decode())
END
env | grep -c s-key-1
call() { python3 /tmp/call.py "$@"; }
"#;

/// A model `m-1` that `--model tested` takes.
fn add_model(project: &Project, protocol: &str, endpoint: &str, more: &str) {
    let model = format!(
        "\n[model.tested]\nprotocol = \"{protocol}\"\nendpoint = \"{endpoint}\"\nname = \"m-1\"\n\
         context_tokens = 1000\noutput_tokens = 100\n{more}"
    );
    let settings = project.path("pipeline/build.toml");
    let text = std::fs::read_to_string(&settings).expect("is there");
    std::fs::write(&settings, text + &model).expect("writes");
}

#[test]
fn a_model_that_answers_no_more_or_never_is_no_result() {
    let check = |status: u16, calls: &str, expected: &str| {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let server = runtime.block_on(MockServer::start());
        let answered = Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(200).set_body_string("{}"))
            .with_priority(1)
            .up_to_n_times(1);
        runtime.block_on(answered.mount(&server));
        let failed = Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(status).set_body_string("no more"));
        runtime.block_on(failed.mount(&server));
        let project = check::project();
        add_model(&project, "openai", &server.uri(), "");
        let mut command = command(&project, &format!("{CALLER}{calls}"), &[("max_turns", "3")]);
        let ran = ran(command.args(["--model", "tested"]));
        let build = ran.json()["built"][0]["build"].clone();
        assert_eq!((ran.code, state(&build)), (1, ("aborted", expected)));
    };
    let call = "call /v1/chat/completions m-1";
    check(
        402,
        call,
        "the model's endpoint refuses: status 402: no more",
    );
    // Though it submitted something, it could not go on.
    check(
        500,
        &format!("{call}; if [ $2 = 2 ]; then submit; fi"),
        "3 turns are used up, and the model answered no more: status 500: no more",
    );
    check(
        500,
        "call /v1/files m-1",
        "3 turns are used up, and the model never answered",
    );
}

#[test]
fn an_endpoint_that_falls_silent_is_no_result_of_the_model() {
    let check = |fault: ResponseTemplate, calls: &str| {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let server = runtime.block_on(MockServer::start());
        let answered = Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(200).set_body_string("{}"))
            .with_priority(1)
            .up_to_n_times(1);
        runtime.block_on(answered.mount(&server));
        let failed = Mock::given(method("POST")).respond_with(fault);
        runtime.block_on(failed.mount(&server));
        let project = check::project();
        add_model(&project, "openai", &server.uri(), "");
        let builder = format!("{CALLER}call /v1/chat/completions m-1; submit; {calls}");
        let mut command = command(&project, &builder, &[("silence_limit_s", "4")]);
        let ran = ran(command.args(["--model", "tested"]));
        let build = ran.json()["built"][0]["build"].clone();
        let expected = "the model's endpoint gave no answer for 4 s";
        assert_eq!((ran.code, state(&build)), (1, ("aborted", expected)));
    };
    let hangs = ResponseTemplate::new(200).set_delay(Duration::from_secs(600));
    check(hangs, "call /v1/chat/completions m-1; sleep 600");
    // The builder tries again and again within one turn, in which the model answered once.
    let fails = ResponseTemplate::new(503);
    check(
        fails,
        "while :; do call /v1/chat/completions m-1; sleep 0.5; done",
    );
}

#[test]
fn the_gateway_passes_calls_of_the_model_on_and_keeps_the_key() {
    const KEY: &str = "s-key-1";
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime.block_on(MockServer::start());
    let answers = [
        // What an endpoint says of a key is not passed on with it.
        ResponseTemplate::new(429)
            .insert_header("retry-after", "7")
            .set_body_string(format!("slow down, {KEY}")),
        ResponseTemplate::new(200).set_body_raw(
            "data: {\"choices\":[]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":6}}\n\n\
             data: [DONE]\n\n",
            "text/event-stream",
        ),
        ResponseTemplate::new(200).set_body_raw(
            "{\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}",
            "application/json",
        ),
    ];
    for (idx, answer) in answers.into_iter().enumerate() {
        let mock = Mock::given(method("POST"))
            .and(path("/api/chat/completions"))
            .and(header("authorization", format!("Bearer {KEY}").as_str()))
            .respond_with(answer)
            .with_priority(idx as u8 + 1)
            .up_to_n_times(1);
        runtime.block_on(mock.mount(&server));
    }
    let project = check::project();
    let endpoint = format!("{}/api", server.uri());
    add_model(
        &project,
        "openai",
        &endpoint,
        "key_variable = \"TEST_KEY\"\n",
    );
    let calls = "call /v1/chat/completions m-1; call /v1/chat/completions m-1; call /v1/chat/completions m-1
call /v1/chat/completions dearer; call /v1/files m-1";
    let builder = format!("{CALLER}{calls}");
    let with_model = |builder: &str| {
        let mut command = command(&project, builder, &[("max_turns", "1")]);
        command.args(["--model", "tested"]);
        command
    };
    let refused = ran(&mut with_model(&builder));
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("TEST_KEY holds no key"));

    let built = ran(with_model(&builder).env("TEST_KEY", KEY));
    let build = &built.json()["built"][0]["build"];
    assert_eq!(build["state"], "not-delivered", "{build:#}");
    let said = kept(&project, "turn-1.stdout");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], ["0", "429 7 slow down, [key]"], "{said}");
    assert!(said.contains("data: [DONE]"), "{said}");
    assert!(said.contains("403 None ") && said.contains("has the model m-1 only"));
    assert!(said.contains("has POST /v1/chat/completions only"));
    let turn = &build["turns"][0];
    let counted = ["n_answered", "n_failed", "n_refused", "n_unmetered"].map(|key| &turn[key]);
    assert_eq!(counted, [2, 1, 2, 0]);
    assert_eq!(
        (&turn["tokens"]["input"], &turn["tokens"]["output"]),
        (&54.into(), &8.into())
    );

    let requests = runtime.block_on(server.received_requests());
    let requests = requests.expect("are recorded");
    assert_eq!(requests.len(), 3);
    assert!(
        requests
            .iter()
            .all(|one| !one.headers.contains_key("cookie"))
    );
    let mut traffic = String::new();
    let packed = std::fs::File::open(project.path("data/builds/b/traffic.jsonl.gz"));
    MultiGzDecoder::new(packed.expect("is kept"))
        .read_to_string(&mut traffic)
        .expect("unpacks");
    assert_eq!(traffic.lines().count(), 5);
    assert!(traffic.contains("slow down, [key]") && !traffic.contains(KEY));
    assert!(!traffic.contains("dearer"), "a refused request is not kept");
}

#[test]
fn an_endpoint_that_refuses_is_no_result_and_three_builds_are_made_once() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime.block_on(MockServer::start());
    let project = check::project();
    add_model(&project, "anthropic", &server.uri(), "");
    let small = project.path("candidates/small").display().to_string();
    let run = |builder: &str, builds: &str| {
        project.run(&[
            "--json",
            "build",
            "--sandbox",
            "namespace",
            "--model",
            "tested",
            "--builds",
            builds,
            "--builder",
            builder,
            "--show",
            &small,
        ])
    };
    // The server answers 404 to everything.
    let built = run(&format!("{CALLER}call /v1/messages m-1"), "1");
    let build = &built.json()["built"][0]["build"];
    assert_eq!(build["state"], "aborted", "{build:#}");
    let why = build["why"].as_str().expect("a text");
    assert!(
        why.starts_with("the model's endpoint refuses: status 404"),
        "{why}"
    );
    assert_eq!(build["turns"].as_array().map(Vec::len), Some(1));

    let good = "cp -r /shown/small/. .; submit";
    let built = run(good, "2");
    assert_eq!(built.code, 0, "{}", built.stderr);
    let mut names: Vec<String> = built.json()["built"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["build"]["name"].as_str().expect("a name").to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["tested-2", "tested-3"]);
    let again = run(good, "2").json();
    assert_eq!(again["known"].as_array().map(Vec::len), Some(2));
    assert_eq!(again["built"].as_array().map(Vec::len), Some(0));

    let unknown = project.run(&["build", "--model", "nobody"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown
            .stderr
            .contains("has no [model.nobody]; there are: tested")
    );
}

#[test]
fn a_killed_build_is_void() {
    let project = check::project();
    let mut command = command(&project, "echo; sleep 600", &[]);
    let mut child = command.spawn().expect("starts");
    let record = project.path("data/builds/b/build.json");
    let began = Instant::now();
    while !record.exists() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("is killed");
    child.wait().expect("is gone");
    let state = || -> Value {
        let text = std::fs::read_to_string(&record).expect("there is a record");
        serde_json::from_str(&text).expect("is JSON")
    };
    assert_eq!(state()["state"], "running");
    let next = project.run(&[
        "--json",
        "build",
        "--sandbox",
        "namespace",
        "--builder",
        "submit; submit; submit",
    ]);
    assert_eq!(next.json()["voided"][0], "b");
    assert_eq!(state()["state"], "void");
}
