//! Large runs: a project, the program run in it, and trials made up for it.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use doc2harness::domain::evidence::Evidence;

/// Runs the parts of a benchmark that the command line names, or all of them.
pub fn run_asked(parts: &[(&str, fn())]) {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let named = |name: &str| asked.iter().any(|word| word == name);
    let any = parts.iter().any(|(name, _)| named(name));
    for (name, part) in parts {
        if !any || named(name) {
            part();
        }
    }
}

/// A project with these parts of the repository.
pub fn project(parts: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for part in parts {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(part);
        let to = folder.path().join(part);
        std::fs::create_dir_all(to.parent().expect("is below")).expect("makes");
        let copied = Command::new("cp").arg("-a").args([from, to]).status();
        assert!(copied.expect("starts").success());
    }
    std::fs::create_dir_all(folder.path().join("data")).expect("makes");
    // The processes of cells belong to another user.
    for path in [folder.path(), &folder.path().join("data")] {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, open).expect("sets");
    }
    folder
}

/// What a command took: seconds of wall and of processor time, and the largest memory of it or of one below it, in MiB.
pub struct Took {
    pub wall_s: f64,
    pub cpu_s: f64,
    pub memory_mib: f64,
}

/// Runs the program in a project; verdicts may have failed.
#[expect(
    clippy::zombie_processes,
    reason = "`wait4` waits for it, and tells its memory"
)]
pub fn pipeline(root: &Path, arguments: &[&str]) -> Took {
    let began = Instant::now();
    let child = Command::new(env!("CARGO_BIN_EXE_pipeline"))
        .args(arguments)
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    // SAFETY: the structure is plain numbers, and the call fills it; the child is waited for here and nowhere else.
    let (status, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let mut status = 0;
        assert!(libc::wait4(child.id() as i32, &mut status, 0, &mut usage) > 0);
        (std::process::ExitStatus::from_raw(status), usage)
    };
    assert!(
        matches!(status.code(), Some(0 | 1)),
        "{arguments:?}: {status}"
    );
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Took {
        wall_s: began.elapsed().as_secs_f64(),
        cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        memory_mib: usage.ru_maxrss as f64 / 1024.0,
    }
}

/// Evidence of a trial with one launch, which sent these texts to the model.
pub fn evidence(sent: &[String]) -> Evidence {
    let requests = sent.iter().enumerate().map(|(idx, content)| {
        let n = idx + 1;
        serde_json::json!({
            "at_ms": n, "method": "POST", "path": "/v1/chat/completions", "headers": {}, "side": false,
            "body": { "messages": [{ "role": "user", "content": content }] },
            "reply": { "step": n },
        })
    });
    let value = serde_json::json!({
        "format": 1, "case": "a/b", "bindings": {},
        "launches": [{
            "argv": ["harness"], "exit": { "code": 0 }, "screen": null, "keys_unsent": 0,
            "stdout": { "text": "a line\n".repeat(50), "cut": false },
            "stderr": { "text": "", "cut": false },
            "requests": requests.collect::<Vec<_>>(),
            "duration_ms": 1, "cpu_ms": 1, "out_of_memory": false,
        }],
        "files_before": {}, "files_after": {},
    });
    serde_json::from_value(value).expect("evidence")
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
