//! One launch of a case: the command of its route, its environment, and what came of it.

use std::time::Duration;

use super::terminal::{self, Terminal};
use super::{CANDIDATE, PORT};
use crate::adapters::folders;
use crate::adapters::mock::Asked;
use crate::adapters::sandbox::{Ended, Exit, Launch, Stdio};
use crate::domain::case::{self, Bindings, Reply, Route, StdinIs};
use crate::domain::evidence::{self, LaunchEvidence, Text};

/// A shell's code for a program that could not be started.
const NOT_STARTED: i32 = 127;

pub(super) fn evidence(
    argv: Vec<String>,
    ended: Ended,
    terminal: Option<Terminal>,
    asked: Asked,
) -> LaunchEvidence {
    let text = |bytes: &[u8], cut: bool| Text {
        text: String::from_utf8_lossy(bytes).into_owned(),
        cut,
    };
    let mut stderr = text(&ended.stderr, ended.stderr_cut);
    let exit = match ended.exit {
        Exit::Code(code) => evidence::Exit::Code(code),
        Exit::Signal(signal) => evidence::Exit::Signal(signal),
        Exit::TimedOut => evidence::Exit::TimedOut,
        Exit::NotStarted(why) => {
            stderr.text = why;
            evidence::Exit::Code(NOT_STARTED)
        }
    };
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let stdout = match &terminal {
        Some(terminal) => text(&terminal.output, terminal.cut),
        None => text(&ended.stdout, ended.stdout_cut),
    };
    LaunchEvidence {
        argv,
        exit,
        stdout,
        stderr,
        keys_unsent: terminal.as_ref().map_or(0, Terminal::n_unsent),
        screen: terminal.map(|terminal| terminal.text()),
        signals_unsent: 0,
        unbound: Vec::new(),
        started_ms: 0,
        requests: asked.exchanges,
        n_requests_unkept: asked.n_unkept,
        duration_ms: millis(ended.duration),
        cpu_ms: millis(ended.cpu),
        out_of_memory: ended.out_of_memory,
    }
}

/// What stands for a launch whose moment never came.
pub(super) fn never_started(launch: &case::Launch, bindings: &Bindings) -> LaunchEvidence {
    LaunchEvidence {
        argv: argv(launch, bindings),
        exit: evidence::Exit::NeverStarted,
        stdout: Text::default(),
        stderr: Text::default(),
        screen: None,
        keys_unsent: 0,
        signals_unsent: 0,
        unbound: Vec::new(),
        started_ms: 0,
        requests: Vec::new(),
        n_requests_unkept: 0,
        duration_ms: 0,
        cpu_ms: 0,
        out_of_memory: false,
    }
}

pub(super) fn stdio(launch: &case::Launch) -> Stdio {
    match (launch.route, launch.stdin_is) {
        (Route::Terminal, _) => Stdio::Terminal(terminal::size(launch)),
        (_, None) => Stdio::Pipes,
        (_, Some(StdinIs::Open)) => Stdio::OpenInput,
        (_, Some(StdinIs::Closed)) => Stdio::NoInput,
    }
}

pub(super) fn script(launch: &case::Launch, bindings: &Bindings) -> Vec<Reply> {
    let replies = launch.script.iter();
    replies.map(|reply| expand(reply, bindings)).collect()
}

/// What is started; its requests go below `base_path`.
pub(super) fn order(launch: &case::Launch, bindings: &Bindings, base_path: &str) -> Launch {
    let stdin = match launch.route {
        Route::Api => requests(launch, bindings),
        _ => bindings.expand(launch.stdin.as_deref().unwrap_or_default()),
    };
    let cwd = launch.cwd.as_deref().unwrap_or(folders::WORKSPACE);
    Launch {
        argv: argv(launch, bindings),
        env: environment(launch, bindings, base_path),
        cwd: bindings.expand(cwd),
        stdin: stdin.into_bytes(),
        time_limit: Duration::from_secs(launch.time_limit_s().into()),
        leave_running: false,
    }
}

fn argv(launch: &case::Launch, bindings: &Bindings) -> Vec<String> {
    let mut argv = vec![format!("{CANDIDATE}/harness")];
    match launch.route {
        Route::Headless => {
            let prompt = launch.prompt.as_deref().unwrap_or_default();
            argv.extend(["-p".to_owned(), bindings.expand(prompt)]);
        }
        Route::Api => argv.push("api".to_owned()),
        Route::Cli | Route::Terminal => {}
    }
    argv.extend(launch.args.iter().map(|arg| bindings.expand(arg)));
    argv
}

/// One request a line.
fn requests(launch: &case::Launch, bindings: &Bindings) -> String {
    let mut lines = String::new();
    for request in &launch.requests {
        match request {
            serde_json::Value::String(raw) => lines.push_str(&bindings.expand(raw)),
            table => lines.push_str(&bindings.expand_json(table).to_string()),
        }
        lines.push('\n');
    }
    lines
}

/// The whole environment of a launch; nothing of ours is inherited.
fn environment(
    launch: &case::Launch,
    bindings: &Bindings,
    base_path: &str,
) -> Vec<(String, String)> {
    let term = match launch.route {
        Route::Terminal => "xterm-256color",
        _ => "dumb",
    };
    let base_url = format!("http://127.0.0.1:{PORT}{base_path}");
    let mut env: std::collections::BTreeMap<String, String> = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", folders::HOME),
        ("USER", "user"),
        ("SHELL", "/bin/sh"),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("TERM", term),
        ("PYTHONHASHSEED", "0"),
        ("HARNESS_BASE_URL", &base_url),
        ("HARNESS_API_KEY", "test-key"),
        ("HARNESS_MODEL", "mock-model"),
        ("HARNESS_HOME", folders::STATE),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    for (name, value) in &launch.env {
        match value.as_str() {
            "" => drop(env.remove(name)),
            value => drop(env.insert(name.clone(), bindings.expand(value))),
        }
    }
    env.into_iter().collect()
}

fn expand(reply: &Reply, bindings: &Bindings) -> Reply {
    let mut reply = reply.clone();
    reply.say = reply.say.map(|text| bindings.expand(&text));
    reply.with = reply.with.map(|with| bindings.expand_json(&with));
    reply.body = reply.body.map(|body| bindings.expand_json(&body));
    for event in &mut reply.events {
        *event = bindings.expand_json(event);
    }
    for value in reply.headers.values_mut() {
        *value = bindings.expand(value);
    }
    for call in &mut reply.calls {
        call.with = call.with.as_ref().map(|with| bindings.expand_json(with));
    }
    reply
}
