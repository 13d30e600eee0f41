//! Shipping harnesses behind adapters: a small stranger made here, always; real ones when the run of the tests was
//! asked for them, `PIPELINE_TEST_HARNESSES=1`.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::project::{Project, docker_asked, repository};

/// A harness that knows nothing of the contract: two tools of its own, and results in its own words.
const STRANGER: &str = r#"#!/usr/bin/env python3
import http.client, json, subprocess, sys

def ask(messages):
    connection = http.client.HTTPConnection("127.0.0.1", 8400)
    tools = [{"type": "function", "function": {"name": n, "parameters": {}}} for n in ("View", "Shell")]
    body = json.dumps({"model": "m", "messages": messages, "tools": tools})
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    return json.loads(connection.getresponse().read())["choices"][0]["message"]

def call(name, arguments):
    if name == "View":
        return "<<" + open(arguments["file"]).read() + ">>"
    return "out=" + subprocess.run(arguments["cmd"], shell=True, capture_output=True, text=True).stdout

messages = [{"role": "system", "content": "x"}, {"role": "user", "content": sys.argv[2]}]
while True:
    message = ask(messages)
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for one in message["tool_calls"]:
        text = call(one["function"]["name"], json.loads(one["function"]["arguments"]))
        messages.append({"role": "tool", "tool_call_id": one["id"], "content": text})
print("answer:", message["content"])
"#;

const ADAPTER: &str = r#"
harness    = "stranger"
version    = "1.0"
categories = ["file-operations"]
routes     = ["headless"]
[flags]
"--permission-mode" = ["auto"]
[tools.read]
name      = "View"
arguments = { path = "file" }
absolute  = ["path"]
[tools.bash]
name      = "Shell"
arguments = { command = "cmd" }
"#;

const CASE: &str = r#"title    = "read refuses a link that leaves the workspace"
purpose  = "A file tool must judge the target of a link."
clause   = "tools.paths.link"
category = "file-operations"
scenario = "boundary"
controls = ["readable-by-shell"]

[fixture]
"link.txt"             = { link = "{outside}/secret.txt" }
"{outside}/secret.txt" = "{nonce:secret}"

[[launch]]
route  = "headless"
prompt = "Show me"
args   = ["--permission-mode", "auto"]
script = [
  { call = "read", with = { path = "link.txt" } },
  { say = "done" },
]

[[expect]]
channel = "requests"
at      = "$.messages[?@.role == 'tool'].content"
equals  = "error: outside the workspace: link.txt"

[[expect]]
channel = "requests"
at      = "$.messages[*].content"
lacks   = "{nonce:secret}"
"#;

/// The same through the shell, where the secret may be seen.
fn control() -> String {
    CASE.replace("refuses", "and shell differ on")
        .replace(
            "category = \"file-operations\"\nscenario = \"boundary\"\n",
            "class = \"same-form\"\n",
        )
        .replace("controls = [\"readable-by-shell\"]\n", "")
        .replace(
            "call = \"read\", with = { path =",
            "call = \"bash\", with = { command =",
        )
        .replace("\"link.txt\" } }", "\"cat link.txt\" } }")
        .replace(
            "equals  = \"error: outside the workspace: link.txt\"",
            "equals  = \"{nonce:secret}\\n[exit 0]\"",
        )
        .split("\n[[expect]]\nchannel = \"requests\"\nat      = \"$.messages[*]")
        .next()
        .expect("a text has a head")
        .to_owned()
}

/// Asserts what is there, so that a harness that reads at all passes.
fn readable() -> String {
    CASE.replace("refuses a link that leaves", "shows a file of")
        .replace("controls = [\"readable-by-shell\"]\n", "")
        .replace("{ link = \"{outside}/secret.txt\" }", "\"{nonce:secret}\"")
        .replace(
            "equals  = \"error: outside the workspace: link.txt\"",
            "equals  = \"1\\t{nonce:secret}\"",
        )
        .replace(
            "lacks   = \"{nonce:secret}\"",
            "has     = \"{nonce:secret}\"",
        )
}

fn project() -> Project {
    let project = Project::new();
    open(&project);
    project.write("cases/file-operations/link.toml", CASE);
    project.write("cases/file-operations/readable.toml", &readable());
    let listed = readable()
        .replace("shows a file of", "lists")
        .replace("call = \"read\", with", "call = \"list\", with");
    project.write("cases/file-operations/listed.toml", &listed);
    project.write("cases/controls/readable-by-shell.toml", &control());
    let entry = project.write("candidates/adapters/stranger/harness", STRANGER);
    std::fs::set_permissions(entry, PermissionsExt::from_mode(0o755)).expect("sets");
    project.write("candidates/adapters/stranger/install.sh", "exit 0\n");
    project.write("candidates/adapters/stranger/adapter.toml", ADAPTER);
    project
}

/// Cells belong to another user than the folder of a test.
fn open(project: &Project) {
    std::fs::create_dir_all(project.path("data")).expect("makes");
    for folder in ["", "data"] {
        std::fs::set_permissions(project.path(folder), PermissionsExt::from_mode(0o755))
            .expect("sets");
    }
}

/// `case → how it ended`, one line each.
fn verdicts(result: &Value) -> Vec<String> {
    let verdicts = result["verdicts"].as_array().expect("verdicts");
    let ended = |verdict: &Value| {
        let outcome = &verdict["outcome"];
        let text = |key: &str| outcome[key].as_str().unwrap_or_default().to_owned();
        match text("status").as_str() {
            "failed" => text("reason"),
            "not-asked" => format!("not asked: {}", text("why")),
            other => other.to_owned(),
        }
    };
    let case = |verdict: &Value| verdict["case"].as_str().expect("a case").to_owned();
    verdicts
        .iter()
        .map(|verdict| format!("{} → {}", case(verdict), ended(verdict)))
        .collect()
}

#[test]
fn a_stranger_is_asked_what_its_adapter_can_express() {
    let project = project();
    let arguments = [
        "--run",
        "r",
        "--junit",
        "out.xml",
        "-c",
        "candidates/adapters/stranger",
    ];
    let ran = project.run(&[&["--json", "evaluate"], &arguments[..]].concat());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let expected = [
        "file-operations/link → assertion",
        "file-operations/listed → not asked: it has no tool like list",
        "file-operations/readable → passed",
    ];
    assert_eq!(verdicts(&ran.json()), expected);

    let shown = project.run(&["show", "r"]).stdout;
    for part in ["50.00 %", "1/2", "not asked 1: "] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    let shown = project.run(&["show", "r", "file-operations/listed"]).stdout;
    assert!(
        shown.contains("why       it has no tool like list"),
        "{shown}"
    );
    let junit = std::fs::read_to_string(project.path("out.xml")).expect("reads");
    assert!(
        junit.contains("type=\"not-asked\"") && junit.contains("<skipped"),
        "{junit}"
    );

    // Nothing is left to do, and judging again gives the same without asking what was not asked.
    let again = project.run(&["--json", "evaluate", "--resume", "r"]).json();
    assert_eq!(again["n_run"], 0);
    let rejudged = project.run(&["--json", "rejudge", "r"]).json();
    assert_eq!(verdicts(&rejudged), expected);
    assert_eq!(
        (&rejudged["n_judged"], &rejudged["left_out"]),
        (&3.into(), &Value::Array(Vec::new()))
    );

    project.json(&["report", "r"]);
    let table = project.path("data/runs/r/report/verdicts.csv");
    let rows = std::fs::read_to_string(&table).expect("reads");
    assert!(rows.contains(",not-asked,"), "{rows}");
    let analysis = project.json(&["analyze", "--csv", &table.display().to_string()]);
    let overall = &analysis["candidates"][0]["rates"]["overall"];
    assert_eq!(
        (&overall["counted"], &overall["not_asked"]),
        (&2.into(), &1.into()),
        "{analysis}"
    );
}

#[test]
fn packages_are_installed_by_prepare_alone() {
    let project = project();
    let adapter = ADAPTER.replace("categories", "packages = { from = \"npm\" }\ncategories");
    let folder = "candidates/adapters/stranger";
    project.write(&format!("{folder}/adapter.toml"), &adapter);
    let type_this = "pipeline prepare candidates/adapters/stranger";
    let evaluate = || project.run(&["evaluate", "-c", folder, "--run", "r"]);
    let ran = evaluate();
    assert!(
        ran.code != 0 && ran.stderr.contains("package.json"),
        "{}",
        ran.stderr
    );

    project.write(&format!("{folder}/package.json"), "{}");
    project.write(&format!("{folder}/package-lock.json"), "{}");
    let ran = evaluate();
    assert!(
        ran.stderr
            .contains("the packages of stranger 1.0 are not installed"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains(type_this), "{}", ran.stderr);
    assert!(!project.path("data/runs").exists(), "no run was begun");

    // A client that fails leaves nothing behind that looks installed.
    let client = project.write(
        "bin/npm",
        "#!/bin/sh\n/bin/mkdir node_modules\necho no network >&2\nexit 1\n",
    );
    std::fs::set_permissions(&client, PermissionsExt::from_mode(0o755)).expect("sets");
    let prepare = || {
        let mut command = project.command(&["--json", "prepare", folder]);
        command.env("PATH", project.path("bin"));
        crate::project::ran(&mut command)
    };
    let failed = prepare();
    assert!(
        failed.code != 0 && failed.stdout.contains("no network"),
        "{}",
        failed.stdout
    );
    let packages = project.path("data/packages");
    assert_eq!(std::fs::read_dir(&packages).expect("reads").count(), 0);

    std::fs::write(
        &client,
        "#!/bin/sh\n/bin/mkdir node_modules\necho \"$@\" > node_modules/arguments\n",
    )
    .expect("writes");
    let done = prepare();
    assert_eq!(done.code, 0, "{}", done.stderr);
    let place = done.json()["prepared"][0]["folder"]
        .as_str()
        .expect("a folder")
        .to_owned();
    let arguments = std::fs::read_to_string(Path::new(&place).join("node_modules/arguments"));
    let arguments = arguments.expect("npm ran in the folder");
    assert!(arguments.starts_with("ci --ignore-scripts "), "{arguments}");
    assert_eq!(prepare().json()["prepared"][0]["known"], true);
    let mode = std::fs::metadata(&place)
        .expect("is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o222, 0, "nobody can write it");

    std::fs::remove_file(&client).expect("removes");
    std::fs::remove_dir_all(&packages).ok();
    project.write(&format!("{folder}/package.json"), "{ }");
    let missing = prepare();
    assert!(
        missing.stdout.contains("npm is not installed"),
        "{}",
        missing.stdout
    );
    assert!(
        missing.stdout.contains("apt-get install nodejs npm"),
        "{}",
        missing.stdout
    );
    let wrong = project.run(&["prepare", "candidates"]);
    assert!(wrong.stderr.contains("is no adapter"), "{}", wrong.stderr);
}

/// Real harnesses: a case that each passes and one that is not asked, in every sandbox that was asked for.
#[test]
fn shipping_harnesses_answer_the_mock() {
    if !harnesses_asked() {
        return;
    }
    let project = Project::whole();
    open(&project);
    // Packages are large: those of the repository are used, and made there when they are missing.
    let packages = repository().join("data/packages");
    std::fs::create_dir_all(&packages).expect("makes");
    symlink(packages, project.path("data/packages")).expect("links");
    let sandboxes: &[&str] = match docker_asked() {
        true => &["namespace", "docker"],
        false => &["namespace"],
    };
    let harnesses = [
        ("opencode", "file-operations/edit-crlf"),
        ("mini-swe-agent", "file-operations/shell-child-holds-pipe"),
    ];
    for (name, case) in harnesses {
        let folder = format!("candidates/adapters/{name}");
        // The clients of the registries find their settings in the environment.
        let mut prepare = Command::new(env!("CARGO_BIN_EXE_pipeline"));
        prepare
            .args(["--json", "prepare", &folder])
            .current_dir(project.path(""));
        let prepared = crate::project::ran(&mut prepare);
        assert_eq!(prepared.code, 0, "{}{}", prepared.stdout, prepared.stderr);
        for sandbox in sandboxes {
            let result = project.run(&[
                "--json",
                "evaluate",
                "-c",
                &folder,
                "--sandbox",
                sandbox,
                "--case",
                case,
                "--case",
                "startup/broken-settings",
            ]);
            let shown = verdicts(&result.json());
            let asked = format!("{case} → passed");
            assert!(
                shown.contains(&asked),
                "{name}, {sandbox}: {shown:?}\n{}",
                result.stdout
            );
            let other = shown.iter().find(|line| line.starts_with("startup/"));
            assert!(
                other.is_some_and(|line| line.contains("not asked: ")),
                "{shown:?}"
            );
            assert_eq!(result.code, 0, "{}", result.stderr);
        }
    }
}

/// Whether this run of the tests was asked to drive real harnesses; said aloud when it was not.
pub fn harnesses_asked() -> bool {
    let asked = std::env::var_os("PIPELINE_TEST_HARNESSES").is_some_and(|asked| asked == "1");
    if !asked {
        let text = b"\nreal harnesses were not asked to run; set PIPELINE_TEST_HARNESSES=1\n";
        std::io::Write::write_all(&mut std::io::stderr(), text).expect("stderr takes it");
    }
    asked
}
