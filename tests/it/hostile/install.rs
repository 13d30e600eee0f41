//! Installation scripts written to break out: each ends within its limit, what it did is told with every case of the
//! candidate and harmlessly, and nothing of it stays on the host.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;

use super::{ATTACK, DOCUMENT, SECRET, after, open};
use crate::project::{Project, docker_asked};

/// Scripts by name, and how what is told of each begins; empty where nothing worked, the script said so by ending with 0,
/// and the candidate passes its case. @FOLDER@ is the project on the host, @PORT@ a port of the host that listens.
const SCRIPTS: &[(&str, &str, &str)] = &[
    (
        "forks",
        "b() { b | b & }\nb\nsleep 600\n",
        "install.sh took over 3 s",
    ),
    (
        "hangs",
        "trap '' TERM INT HUP\nwhile :; do sleep 60; done\n",
        "install.sh took over 3 s",
    ),
    ("floods", "yes\n", "install.sh took over 3 s"),
    (
        "scolds",
        "head -c 2000000 /dev/zero | tr '\\0' x >&2\nprintf '\\033]0;owned\\007 the end' >&2\nexit 3\n",
        "install.sh ended with 3: … xxx",
    ),
    (
        "fills",
        "head -c 500000000 /dev/zero > big\n",
        "install.sh ended with 1: head:",
    ),
    ("sparse", "truncate -s 150000000 a b\n", "install.sh left "),
    (
        "pipes",
        "mkfifo pipe\n",
        "install.sh left pipe, which is neither a file, a folder nor a link",
    ),
    (
        "deep",
        "n=0\nwhile [ $n -lt 90 ]; do mkdir d; cd d; n=$((n + 1)); done\n",
        "install.sh left d/",
    ),
    (
        "writes_outside",
        "for file in /etc/passwd /usr/x /bin/x /delivered/x /x @FOLDER@/x /proc/sys/kernel/core_pattern; do\n\
         if echo x > $file; then exit 9; fi; done 2> /dev/null\n",
        "",
    ),
    (
        "plants_links",
        "ln -s @FOLDER@/canary canary\nln -s / root\nln -s /proc/self/mem mem\nln -s loop loop\n\
         if ln /delivered/harness hard 2> /dev/null; then exit 9; fi\n",
        "",
    ),
    (
        "connects",
        "python3 -c 'import socket\ntry: socket.create_connection((\"127.0.0.1\", @PORT@), 5)\nexcept OSError: pass\n\
         else: raise SystemExit(9)'\n",
        "",
    ),
    ("daemonises", "setsid sleep 600 > /dev/null 2>&1 &\n", ""),
    ("kills", "kill -9 1\nkill -STOP 1\nkill -9 -1\nexit 0\n", ""),
];

#[test]
fn hostile_installations_are_contained_by_namespaces() {
    contained("namespace");
}

#[test]
fn hostile_installations_are_contained_by_docker() {
    if docker_asked() {
        contained("docker");
    }
}

fn contained(sandbox: &str) {
    let listener = TcpListener::bind("0.0.0.0:0").expect("binds");
    listener.set_nonblocking(true).expect("sets");
    let port = listener.local_addr().expect("is bound").port();
    let project = project(port);
    let mode_before = mode(&project);
    let mut arguments = vec!["--json", "evaluate", "--sandbox", sandbox, "--run", "r"];
    for (name, _, _) in SCRIPTS {
        arguments.extend(["-c", name]);
    }
    let mut command = project.command(&arguments);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let pid = child.id();
    let ended = child.wait_with_output().expect("waits");
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{stderr}");
    let result: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    let verdicts = result["verdicts"].as_array().expect("verdicts");
    assert_eq!(verdicts.len(), SCRIPTS.len());
    for (name, _, told) in SCRIPTS {
        let of = |one: &&Value| one["candidate"] == *name;
        let outcome = &verdicts.iter().find(of).expect("a verdict")["outcome"];
        if told.is_empty() {
            assert_eq!(outcome["status"], "passed", "{sandbox}: {name}: {outcome}");
            continue;
        }
        assert_eq!(
            outcome["reason"], "contract",
            "{sandbox}: {name}: {outcome}"
        );
        assert_eq!(outcome["place"], "installation", "{name}: {outcome}");
        let saw = outcome["saw"].as_str().expect("text");
        assert!(saw.starts_with(told), "{sandbox}: {name}: {saw}");
        assert!(saw.chars().count() < 300, "{name}: {saw}");
    }

    assert!(listener.accept().is_err(), "a script reached the host");
    after::nothing_is_left(&project, pid);
    let frozen = std::fs::read_dir(project.path("data/frozen")).expect("reads");
    let drafts = frozen.flatten().map(|entry| entry.file_name());
    let drafts: Vec<_> = drafts
        .filter(|name| name.to_string_lossy().starts_with('.'))
        .collect();
    assert!(drafts.is_empty(), "{drafts:?}");
    let canary = std::fs::read_to_string(project.path("canary")).expect("reads");
    assert_eq!((canary.as_str(), mode(&project)), (SECRET, mode_before));
    after::evidence_lacks(&project, SECRET);
    let report = project.run(&["report", "r"]);
    assert_eq!(report.code, 0, "{}", report.stderr);
    let page = project.path("data/runs/r/report/report.html");
    for text in [report.stdout, std::fs::read_to_string(page).expect("reads")] {
        after::harmless("report", &text);
    }
    let shown = project.run(&["show", "r", "attack", "-c", "scolds"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    after::harmless("show", &shown.stdout);
    assert!(shown.stdout.contains("the end"), "{}", shown.stdout);
}

/// Of the file that links of an installation point at.
fn mode(project: &Project) -> u32 {
    let about = std::fs::metadata(project.path("canary")).expect("is there");
    about.permissions().mode()
}

fn project(port: u16) -> Project {
    let project = Project::new();
    std::fs::remove_dir_all(project.path("data/document")).expect("removes");
    project.write("data/document/01-sandbox.md", DOCUMENT);
    project.write("cases/headless/attack.toml", ATTACK);
    project.write("canary", SECRET);
    for (name, script, _) in SCRIPTS {
        let script = script
            .replace("@FOLDER@", &project.path("").display().to_string())
            .replace("@PORT@", &port.to_string());
        project.write(&format!("candidates/{name}/install.sh"), &script);
        project.write(
            &format!("candidates/{name}/harness"),
            "#!/bin/sh\necho contained\n",
        );
        open(&project.path(&format!("candidates/{name}/harness")));
    }
    let settings = project.path("pipeline/evaluate.toml");
    let text = std::fs::read_to_string(&settings)
        .expect("reads")
        .replace("install_limit_s = 300", "install_limit_s = 3");
    std::fs::write(settings, text).expect("writes");
    for folder in ["", "data"] {
        open(&project.path(folder));
    }
    project
}
