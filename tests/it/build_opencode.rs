//! The real OpenCode as the builder, and the scripted mock as its model: only when the run of the tests was asked for real
//! harnesses. In Docker when that was asked for too, else in namespaces.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::Command;

use doc2harness::adapters::mock::{BASE_PATH, Mock};
use doc2harness::domain::case::Reply;
use serde_json::{Value, json};

use crate::adapters::harnesses_asked;
use crate::check;
use crate::project::{docker_asked, ran, repository};

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

/// A model that reads the document, is told to come later, submits the skeleton as it is, and thinks that it is done. In
/// its second turn its history grows to just below 80 % of its window, and then beyond; at last it writes the files.
fn script(small: &std::path::Path) -> Vec<Reply> {
    let mut steps = vec![
        json!({ "fault": "status", "code": 429, "retry_after_s": 1 }),
        call(
            "read",
            json!({ "filePath": "/workspace/DOCUMENT.md", "limit": 3 }),
        ),
        shell("submit; echo code $?"),
        json!({ "say": "It is finished." }),
        shell_at("echo below", 159_999, "grown-1"),
        shell_at("echo beyond", 160_001, "grown-2"),
        shell("rm harness_agent/cli.py harness_agent/headless.py harness_agent/api.py"),
    ];
    for name in ["cli", "headless", "api"] {
        let file = format!("harness_agent/{name}.py");
        let content = std::fs::read_to_string(small.join(&file)).expect("is there");
        let path = format!("/workspace/{file}");
        steps.push(call(
            "write",
            json!({ "filePath": path, "content": content }),
        ));
    }
    steps.push(shell("submit"));
    steps
        .into_iter()
        .map(|step| serde_json::from_value(step).expect("a step"))
        .collect()
}

#[test]
fn opencode_builds_is_returned_compacts_and_is_frozen() {
    if !harnesses_asked() {
        return;
    }
    let project = check::project();
    project.take("candidates/adapters/opencode");
    // Packages are large: those of the repository are used, and made there when they are missing.
    let packages = repository().join("data/packages");
    std::fs::create_dir_all(&packages).expect("makes");
    symlink(packages, project.path("data/packages")).expect("links");
    // The client of the registry finds its settings in the environment.
    let mut prepare = Command::new(env!("CARGO_BIN_EXE_pipeline"));
    prepare
        .args(["prepare", "adapters/opencode"])
        .current_dir(project.path(""));
    let prepared = ran(&mut prepare);
    assert_eq!(prepared.code, 0, "{}{}", prepared.stdout, prepared.stderr);

    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let guard = runtime.enter();
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let at = listener.local_addr().expect("is bound");
    let mock = Mock::serve(listener).expect("serves");
    drop(guard);
    mock.begin(
        BASE_PATH,
        script(&project.path("candidates/small")),
        BTreeSet::new(),
    );

    let settings = project.path("pipeline/build.toml");
    let text = std::fs::read_to_string(&settings).expect("is there");
    let model = format!(
        "\n[model.scripted]\nprotocol = \"openai\"\nendpoint = \"http://{at}{BASE_PATH}\"\nname = \"m-1\"\n\
         context_tokens = 200000\noutput_tokens = 1000\nkey_variable = \"TEST_KEY\"\n"
    );
    std::fs::write(&settings, text + &model).expect("writes");
    let sandbox = match docker_asked() {
        true => "docker",
        false => "namespace",
    };
    let arguments = [
        "--json",
        "build",
        "--model",
        "scripted",
        "--sandbox",
        sandbox,
    ];
    let ran = ran(project.command(&arguments).env("TEST_KEY", "s-key-1"));
    let asked = mock.end(BASE_PATH);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let result = ran.json();
    let build = &result["built"][0]["build"];
    assert_eq!(build["name"], "scripted-1");
    assert_eq!(build["builder"], "opencode 1.17.0");
    assert_eq!(build["state"], "passed", "{build:#}");
    assert_eq!(
        build["turns"].as_array().map(Vec::len),
        Some(2),
        "{build:#}"
    );
    assert_eq!(build["turns"][0]["ended"], "exit 0");
    assert_eq!(build["turns"][0]["n_failed"], 1, "told to come later");
    assert_eq!(build["submissions"].as_array().map(Vec::len), Some(2));
    assert_eq!(build["submissions"][1]["findings"], json!([]));
    assert!(
        project
            .path("data/builds/scripted-1/scripted-1/harness")
            .exists()
    );
    drop(asked);

    let mut traffic = String::new();
    let packed = std::fs::File::open(project.path("data/builds/scripted-1/traffic.jsonl.gz"));
    flate2::read::MultiGzDecoder::new(packed.expect("is kept"))
        .read_to_string(&mut traffic)
        .expect("unpacks");
    assert!(!traffic.contains("s-key-1"));
    let calls: Vec<Value> = traffic
        .lines()
        .map(|line| serde_json::from_str(line).expect("is JSON"))
        .collect();
    assert!(traffic.contains("Submission 1 is returned. 2 left."));
    // Before it, the history grew to 159,999 tokens without.
    let is_compaction = |call: &&Value| {
        call["request"]["tools"].is_null()
            && call["request"]["messages"]
                .to_string()
                .contains("echo beyond")
    };
    let compactions = calls.iter().filter(is_compaction).count();
    assert_eq!(compactions, 1, "{traffic}");
    let goes_on = calls.last().expect("calls")["request"]["messages"].to_string();
    assert!(!goes_on.contains("echo below"), "the history is compacted");
}
