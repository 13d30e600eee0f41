//! The real OpenCode as the builder, and the scripted mock as its model: only when the run of the tests was asked for real
//! harnesses. In Docker when that was asked for too, else in namespaces.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Once;

use doc2harness::adapters::mock::{BASE_PATH, Mock};
use doc2harness::domain::case::Reply;
use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};

use crate::adapters::harnesses_asked;
use crate::check::{API, HEADLESS};
use crate::evaluate;
use crate::leaderboard::CLI;
use crate::project::{Project, docker_asked, ran, repository};

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "call": tool, "with": arguments })
}

fn shell(command: &str) -> Value {
    call(
        "bash",
        json!({ "command": command, "description": "as asked" }),
    )
}

/// A call of the shell in an answer that tells so many tokens.
fn shell_at(command: &str, tokens: u64, id: &str) -> Value {
    let arguments = json!({ "command": command, "description": "as asked" }).to_string();
    let function = json!({ "name": "bash", "arguments": arguments });
    let delta = json!({ "role": "assistant", "tool_calls": [
        { "index": 0, "id": id, "type": "function", "function": function }
    ] });
    json!({ "events": [
        { "id": id, "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] },
        { "id": id, "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] },
        { "id": id, "choices": [], "usage": {
            "prompt_tokens": tokens - 10, "completion_tokens": 10, "total_tokens": tokens
        } },
        "[DONE]",
    ] })
}

fn say(text: &str) -> Value {
    json!({ "say": text })
}

fn write(path: &str, content: &str) -> Value {
    call(
        "write",
        json!({ "filePath": format!("/workspace/{path}"), "content": content }),
    )
}

/// The steps that make of the skeleton what passes the contract check and the suite of [`evaluate::project`].
fn good_tree() -> Vec<Value> {
    let files = [
        ("harness_agent/cli.py", CLI),
        ("harness_agent/headless.py", HEADLESS),
        ("harness_agent/api.py", API),
    ];
    let names = files.map(|(name, _)| name).join(" ");
    let remove = shell(&format!("rm {names}"));
    let written = files.map(|(name, content)| write(name, content));
    std::iter::once(remove).chain(written).collect()
}

/// A build of `scripted-1`.
struct Built {
    project: Project,
    code: i32,
    build: Value,
    /// Calls of the gateway.
    calls: Vec<Value>,
    traffic: String,
}

impl Built {
    fn state(&self) -> (&str, &str) {
        let text = |key: &str| self.build[key].as_str().unwrap_or_default();
        (text("state"), text("why"))
    }

    fn n_turns(&self) -> usize {
        self.build["turns"].as_array().map_or(0, Vec::len)
    }

    /// What the tools answered, as the model was told in the last call.
    fn told(&self) -> String {
        let last = self.calls.last().expect("calls");
        last["request"]["messages"].to_string()
    }
}

fn sandbox() -> &'static str {
    match docker_asked() {
        true => "docker",
        false => "namespace",
    }
}

/// Lets OpenCode build with a model that says what the script says, a step a call. `settings` are lines of
/// `pipeline/build.toml` in the place of those that begin alike.
fn build(protocol: &str, script: Vec<Value>, settings: &[(&str, u32)]) -> Built {
    let project = evaluate::project();
    for part in ["skeleton", "candidates/adapters/opencode"] {
        project.take(part);
    }
    // Packages are large: those of the repository are used, and made there when they are missing.
    let packages = repository().join("data/packages");
    std::fs::create_dir_all(&packages).expect("makes");
    symlink(packages, project.path("data/packages")).expect("links");
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        // The client of the registry finds its settings in the environment.
        let mut prepare = Command::new(env!("CARGO_BIN_EXE_pipeline"));
        prepare
            .args(["prepare", "adapters/opencode"])
            .current_dir(project.path(""));
        let prepared = ran(&mut prepare);
        assert_eq!(prepared.code, 0, "{}{}", prepared.stdout, prepared.stderr);
    });

    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let guard = runtime.enter();
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let at = listener.local_addr().expect("is bound");
    let mock = Mock::serve(listener).expect("serves");
    drop(guard);
    let steps = script.into_iter();
    let steps = steps.map(|step| serde_json::from_value(step).expect("a step"));
    mock.begin(BASE_PATH, steps.collect::<Vec<Reply>>(), BTreeSet::new());

    let file = project.path("pipeline/build.toml");
    let mut text = std::fs::read_to_string(&file).expect("is there");
    for (name, value) in settings {
        let line = text.lines().find(|line| line.starts_with(name));
        let line = line.expect("a setting").to_owned();
        text = text.replace(&line, &format!("{name} = {value}"));
    }
    text += &format!(
        "\n[model.scripted]\nprotocol = \"{protocol}\"\nendpoint = \"http://{at}{BASE_PATH}\"\nname = \"m-1\"\n\
         context_tokens = 200000\noutput_tokens = 1000\nkey_variable = \"TEST_KEY\"\n"
    );
    std::fs::write(&file, text).expect("writes");
    let arguments = [
        "--json",
        "build",
        "--model",
        "scripted",
        "--sandbox",
        sandbox(),
    ];
    let ran = ran(project.command(&arguments).env("TEST_KEY", "s-key-1"));
    drop(mock.end(BASE_PATH));
    assert!(!ran.stdout.is_empty(), "{}", ran.stderr);
    let build = ran.json()["built"][0]["build"].clone();
    assert_eq!(build["name"], "scripted-1", "{}{}", ran.stdout, ran.stderr);
    assert_eq!(build["builder"], "opencode 1.17.0");

    let mut traffic = String::new();
    let packed = std::fs::File::open(project.path("data/builds/scripted-1/traffic.jsonl.gz"));
    MultiGzDecoder::new(packed.expect("is kept"))
        .read_to_string(&mut traffic)
        .expect("unpacks");
    assert!(!traffic.contains("s-key-1"));
    let lines = traffic.lines();
    Built {
        calls: lines
            .map(|line| serde_json::from_str(line).expect("is JSON"))
            .collect(),
        project,
        code: ran.code,
        build,
        traffic,
    }
}

/// The model reads the document, is told to come later and fails, submits the skeleton as it is, and thinks that it is
/// done. In its second turn its history grows to just below 80 % of its window, and then beyond; at last it writes the
/// files.
#[test]
fn opencode_builds_is_returned_compacts_is_frozen_and_evaluated() {
    if !harnesses_asked() {
        return;
    }
    let mut script = vec![
        json!({ "fault": "status", "code": 429, "retry_after_s": 1 }),
        json!({ "fault": "status", "code": 503 }),
        call(
            "read",
            json!({ "filePath": "/workspace/DOCUMENT.md", "limit": 3 }),
        ),
        shell("submit; echo code $?"),
        say("It is finished."),
        shell_at("echo below", 159_999, "grown-1"),
        shell_at("echo beyond", 160_001, "grown-2"),
    ];
    script.extend(good_tree());
    script.push(shell("submit"));
    let built = build("openai", script, &[]);
    let record = &built.build;
    assert_eq!(
        (built.code, built.state()),
        (0, ("passed", "submission 2 passes")),
        "{record:#}"
    );
    assert_eq!(built.n_turns(), 2, "{record:#}");
    assert_eq!(record["turns"][0]["ended"], "exit 0");
    assert_eq!(record["turns"][0]["n_failed"], 2, "told to come later");
    assert_eq!(record["submissions"][1]["findings"], json!([]));
    assert!(built.traffic.contains("Submission 1 is returned. 2 left."));
    // Before it, the history grew to 159,999 tokens without.
    let is_compaction = |call: &&Value| {
        let request = &call["request"];
        request["tools"].is_null() && request["messages"].to_string().contains("echo beyond")
    };
    let compactions = built.calls.iter().filter(is_compaction).count();
    assert_eq!(compactions, 1, "{}", built.traffic);
    assert!(
        !built.told().contains("echo below"),
        "the history is compacted"
    );

    let candidate = "data/builds/scripted-1/scripted-1";
    let arguments = ["evaluate", "-c", candidate, "--sandbox", sandbox()];
    let scored = built.project.json(&arguments);
    let outcomes: Vec<&Value> = scored["verdicts"]
        .as_array()
        .expect("verdicts")
        .iter()
        .map(|verdict| &verdict["outcome"]["status"])
        .collect();
    assert_eq!(outcomes, ["passed", "passed"]);
}

/// It looks for a network and for the cases, says that it is done, and so again when it is told to go on.
#[test]
fn opencode_that_never_submits_finds_no_way_out_and_uses_its_turns_up() {
    if !harnesses_asked() {
        return;
    }
    let here = TcpListener::bind("127.0.0.1:0").expect("binds");
    let port = here.local_addr().expect("is bound").port();
    let look = format!(
        "python3 -c \"import socket
for address in (('127.0.0.1', {port}), ('192.0.2.1', 80), ('169.254.169.254', 80)):
    try: socket.create_connection(address, 5); print('reached', address)
    except OSError: print('no way')\"
find / -name link.toml 2>/dev/null | grep -c .; env | grep -c 's-key-[1]'
python3 -c \"import urllib.request, urllib.error
try: urllib.request.urlopen('http://127.0.0.1:8400/v1/models')
except urllib.error.HTTPError as error: print(error.code)\""
    );
    let script = vec![
        shell(&look),
        say("It is finished."),
        say("It is finished, I said."),
    ];
    let built = build("openai", script, &[("max_turns", 2)]);
    assert_eq!(
        (built.code, built.state()),
        (1, ("not-delivered", "2 turns are used up")),
        "{:#}",
        built.build
    );
    let told = built.told();
    let expected = "no way\\nno way\\nno way\\n0\\n0\\n403";
    assert!(told.contains(expected), "{told}");
    assert_eq!(built.build["turns"][0]["n_refused"], 1);
    assert!(!built.project.path("data/frozen/records").exists());
}

/// The protocol is Anthropic's; the model begins with errors of the endpoint.
#[test]
fn opencode_that_submits_three_bad_trees_is_at_its_end() {
    if !harnesses_asked() {
        return;
    }
    let script = vec![
        json!({ "fault": "status", "code": 529 }),
        shell("submit; submit"),
        shell("submit; submit"),
    ];
    let built = build("anthropic", script, &[]);
    assert_eq!(
        (built.code, built.state()),
        (1, ("failed", "no submission is left")),
        "{:#}",
        built.build
    );
    assert_eq!(built.build["submissions"].as_array().map(Vec::len), Some(3));
    assert_eq!(built.build["turns"][0]["n_failed"], 1);
    assert!(
        built
            .calls
            .iter()
            .all(|call| call["path"] == "/v1/messages")
    );
    assert!(built.told().contains("Submission 2 is returned. 1 left."));
}

#[test]
fn opencode_that_waits_is_ended_by_the_clock() {
    if !harnesses_asked() {
        return;
    }
    // Long enough for a busy machine to come to the first answer.
    let script = vec![shell("sleep 100"), shell("sleep 100")];
    let built = build("openai", script, &[("time_limit_s", 90)]);
    assert_eq!(
        (built.code, built.state()),
        (1, ("not-delivered", "90 s are over")),
        "{:#}",
        built.build
    );
    assert_eq!(built.build["turns"][0]["ended"], "time limit");
}

#[test]
fn opencode_whose_endpoint_refuses_is_no_result() {
    if !harnesses_asked() {
        return;
    }
    let refuses = json!({ "fault": "status", "code": 401, "times": 50 });
    let mut of_titles = refuses.clone();
    of_titles["when"] = "tools absent".into();
    let script = vec![refuses, of_titles];
    let built = build("openai", script, &[]);
    let (state, why) = built.state();
    assert_eq!((built.code, state), (1, "aborted"), "{:#}", built.build);
    assert!(
        why.starts_with("the model's endpoint refuses: status 401"),
        "{why}"
    );
    assert_eq!(built.n_turns(), 1);
}
