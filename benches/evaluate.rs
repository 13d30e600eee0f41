//! What a case costs beyond the candidate's own process: `pipeline evaluate` in the namespace sandbox, beside the same
//! candidate against the same mock without any sandbox, interleaved in one run.
//!
//! `cargo bench --bench evaluate` prints CPU (user + system of all processes, from getrusage) and wall time a case,
//! medians over the rounds, and the time from the start of the program to the end of a run of one empty case.

mod limits;

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use doc2harness::adapters::mock::{BASE_PATH, Mock};
use doc2harness::domain::case::{Case, CaseId};
use limits::limit;

const N_CASES: usize = 40;
const ROUNDS: usize = 5;

/// Asks the model twice and reads one file: the smallest harness that a case can be about.
const HARNESS: &str = r#"#!/usr/bin/env python3
import http.client, json, os, sys
host, port = os.environ["HARNESS_BASE_URL"].split("/")[2].split(":")
messages = [{"role": "user", "content": sys.argv[2]}]
while True:
    connection = http.client.HTTPConnection(host, int(port))
    body = json.dumps({"model": "m", "messages": messages, "tools": [{"type": "function"}]})
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    message = json.loads(connection.getresponse().read())["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        text = open(json.loads(call["function"]["arguments"])["path"]).read()
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
print(message["content"])
"#;

const CASE: &str = r#"title = "case NUMBER"
purpose = "It costs something."
clause = "tools.read.format"
category = "headless"
scenario = "ordinary"
[fixture]
"notes.txt" = "{nonce:a}"
[[launch]]
route = "headless"
prompt = "Show me notes.txt"
script = [{ call = "read", with = { path = "notes.txt" } }, { say = "done" }]
[[expect]]
channel = "requests"
at = "$.messages[?@.role == 'tool'].content"
has = "{nonce:a}"
"#;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let write = |below: &str, text: &str| {
        let path = root.join(below);
        std::fs::create_dir_all(path.parent().expect("is below")).expect("makes");
        std::fs::write(path, text).expect("writes");
    };
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    for part in ["pipeline/evaluate.toml", "data/document/02-tools.md"] {
        write(
            part,
            &std::fs::read_to_string(repository.join(part)).expect("reads"),
        );
    }
    for n in 0..N_CASES {
        write(
            &format!("cases/headless/c{n}.toml"),
            &CASE.replace("NUMBER", &n.to_string()),
        );
    }
    write("candidates/small/harness", HARNESS);
    write("candidates/small/install.sh", "chmod +x harness\n");
    write("candidates/empty/harness", "#!/bin/sh\nexit 0\n");
    write("candidates/empty/install.sh", "chmod +x harness\n");
    write("bare/notes.txt", "text");
    write("bare/harness", HARNESS);
    for path in [root, &root.join("data")] {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, open).expect("sets");
    }
    // Installs both, so that no round pays for it.
    evaluate(root, "small", "headless/c0");
    evaluate(root, "empty", "headless/c0");

    let (mut bare_cpu, mut bare_wall, mut ours_cpu, mut ours_wall, mut start) =
        (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let (cpu, wall) = measured(|| bare(root));
        bare_cpu.push(cpu / N_CASES as f64);
        bare_wall.push(wall / N_CASES as f64);
        let (cpu, wall) = measured(|| evaluate(root, "small", "headless"));
        ours_cpu.push(cpu / N_CASES as f64);
        ours_wall.push(wall / N_CASES as f64);
        let (_, wall) = measured(|| evaluate(root, "empty", "headless/c0"));
        start.push(wall);
    }
    let (bare_cpu, ours_cpu) = (median(bare_cpu), median(ours_cpu));
    println!("{N_CASES} cases, {ROUNDS} rounds, one at a time; medians a case");
    println!(
        "bare candidate     {bare_cpu:7.1} ms CPU  {:7.1} ms wall",
        median(bare_wall)
    );
    println!(
        "evaluate           {ours_cpu:7.1} ms CPU  {:7.1} ms wall",
        median(ours_wall)
    );
    let above = ours_cpu - bare_cpu;
    println!(
        "above the bare one {above:7.1} ms CPU  ({})",
        limit(above, 15.0)
    );
    let start = median(start);
    println!(
        "start to the end of a run of one empty case {start:.0} ms wall ({})",
        limit(start, 150.0)
    );
    drop(folder);
    limits::end();
}

fn evaluate(root: &Path, candidate: &str, case: &str) {
    let status = Command::new(env!("CARGO_BIN_EXE_pipeline"))
        .args(["evaluate", "-q", "-j", "1", "-c", candidate, "--case", case])
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("starts");
    assert!(matches!(status.code(), Some(0 | 1)), "{status}");
}

/// The same candidate and the same replies, without cell, fixture, evidence or judgement.
fn bare(root: &Path) {
    let case = Case::parse(CaseId::new("headless/c"), Path::new("c"), CASE).expect("a case");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let _guard = runtime.enter();
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let port = listener.local_addr().expect("is bound").port();
    let mock = Mock::serve(listener).expect("serves");
    for _ in 0..N_CASES {
        mock.begin(BASE_PATH, case.launches[0].script.clone(), BTreeSet::new());
        let status = Command::new("/usr/bin/python3")
            .args([
                root.join("bare/harness").as_os_str(),
                "-p".as_ref(),
                "Show me".as_ref(),
            ])
            .current_dir(root.join("bare"))
            .env("HARNESS_BASE_URL", format!("http://127.0.0.1:{port}/v1"))
            .stdout(Stdio::null())
            .status()
            .expect("starts");
        assert!(status.success());
        assert_eq!(mock.end(BASE_PATH).exchanges.len(), 2);
    }
}

/// CPU of children and wall time, in milliseconds. The bare mock's own CPU is ours and is left out, in its favour.
fn measured(act: impl FnOnce()) -> (f64, f64) {
    let (cpu, began) = (children_ms(), Instant::now());
    act();
    (children_ms() - cpu, began.elapsed().as_secs_f64() * 1e3)
}

fn children_ms() -> f64 {
    // SAFETY: the structure is plain numbers, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let ms = |time: libc::timeval| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3;
    ms(usage.ru_utime) + ms(usage.ru_stime)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
