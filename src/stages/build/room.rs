//! The cell that is built in: the skeleton, the document, the command `submit` and the builder, and nothing else. That
//! this is so, and that the builder starts, is looked at from inside before the first turn.

use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::builder::Builder;
use crate::adapters::folders;
use crate::adapters::sandbox::{Cell, CellSpec, Exit, Launch, Limits, Mount, SandboxError};
use crate::domain::visible::{shortened, visible_line};
use crate::stages::contract::Bench;
use crate::stages::trial::PORT;
use crate::stages::{Failure, Result};
use crate::storage::candidates;

/// The document beside the skeleton; ours, not submitted.
pub const DOCUMENT: &str = "DOCUMENT.md";
/// Where the command `submit` lies inside.
const TOOLS: &str = "/tools";
const SUBMIT: &str = include_str!("submit");
/// For each command of the preflight.
const PREFLIGHT_LIMIT: Duration = Duration::from_secs(120);
const SHOWN_CHARS: usize = 300;

/// Opens the cell, and lays the skeleton and the document in its working folder. `root` holds what it is shown.
pub async fn open(
    bench: &Bench<'_>,
    builder: &dyn Builder,
    name: &str,
    root: &Path,
    document: &str,
    limits: &Limits,
) -> Result<Cell> {
    let tools = root.join("tools");
    std::fs::create_dir(&tools)?;
    std::fs::write(tools.join("submit"), SUBMIT)?;
    for path in [&tools, &tools.join("submit")] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    }
    let mut mounts = vec![Mount::read_only(&tools, TOOLS)];
    mounts.extend(builder.mounts());
    let spec = CellSpec {
        label: format!("build/{name}"),
        mounts,
        // In memory, with bounds: a builder cannot fill the disk.
        folders: [folders::WORKSPACE, folders::HOME].map(Into::into).to_vec(),
        limits: limits.clone(),
        port: PORT,
    };
    let mut cell = bench.sandbox.open(spec).await.map_err(ours)?;
    let handed_over = cell.take_folders();
    let workspace = handed_over.first().expect("the cell has two folders");
    let workspace = PathBuf::from(format!("/proc/self/fd/{}", workspace.as_raw_fd()));
    let skeleton = candidates::files(&bench.context.project.skeleton())?;
    // Nobody but its user can make files in a folder of a cell.
    folders::acting_as(bench.sandbox.owner(), || -> Result<()> {
        candidates::write(&skeleton, &workspace)?;
        Ok(std::fs::write(workspace.join(DOCUMENT), document)?)
    })?;
    Ok(cell)
}

/// Why the build cannot begin; none when all is as it has to be.
pub async fn preflight(
    bench: &Bench<'_>,
    builder: &dyn Builder,
    cell: &mut Cell,
) -> Result<Option<String>> {
    let skeleton = candidates::files(&bench.context.project.skeleton())?;
    let expected: BTreeSet<String> = skeleton
        .iter()
        .map(|file| file.path.as_str())
        .chain([DOCUMENT])
        .map(|path| format!("{}/{path}", folders::WORKSPACE))
        .collect();
    // Where a builder can write, and where a cell of a candidate has something.
    let find = "for folder in /workspace /home/user /outside /candidate /tmp; do \
                if [ -d $folder ]; then find $folder ! -type d || exit 1; fi; done";
    let argv = ["/bin/sh", "-c", find].map(str::to_owned).to_vec();
    let ended = cell
        .launch(launch(builder, argv, PREFLIGHT_LIMIT))
        .await
        .map_err(ours)?;
    let said = String::from_utf8_lossy(&ended.stdout);
    let seen: BTreeSet<String> = said.lines().map(str::to_owned).collect();
    if ended.exit != Exit::Code(0) {
        let said = String::from_utf8_lossy(&ended.stderr);
        return Ok(Some(format!(
            "the files of the cell cannot be listed: {}",
            shown(&said)
        )));
    }
    if let Some(why) = difference(&expected, &seen) {
        return Ok(Some(why));
    }
    let Some((argv, expected)) = builder.start() else {
        return Ok(None);
    };
    let command = argv.join(" ");
    let ended = cell
        .launch(launch(builder, argv, PREFLIGHT_LIMIT))
        .await
        .map_err(ours)?;
    let said = String::from_utf8_lossy(&ended.stdout);
    if ended.exit == Exit::Code(0) && said.trim() == expected {
        return Ok(None);
    }
    let all = format!("{said} {}", String::from_utf8_lossy(&ended.stderr));
    Ok(Some(format!(
        "the builder does not start: `{command}` ends with {} and says {:?}, not {expected:?}",
        how(&ended.exit),
        shown(&all)
    )))
}

/// What the files of a cell have too much or too little.
fn difference(expected: &BTreeSet<String>, seen: &BTreeSet<String>) -> Option<String> {
    let odd = seen.difference(expected).next();
    let odd = odd.map(|path| format!("the cell holds a file that it should not: {}", shown(path)));
    odd.or_else(|| {
        let lacks = expected.difference(seen).next();
        lacks.map(|path| format!("the cell lacks {path}"))
    })
}

/// A command of the builder's in its folder.
pub fn launch(builder: &dyn Builder, argv: Vec<String>, time_limit: Duration) -> Launch {
    let path = format!("{TOOLS}:/usr/local/bin:/usr/bin:/bin");
    let env = [
        ("PATH", path.as_str()),
        ("HOME", folders::HOME),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("TERM", "dumb"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Launch {
        argv,
        env: env.into_iter().chain(builder.env()).collect(),
        cwd: folders::WORKSPACE.to_owned(),
        stdin: Vec::new(),
        time_limit,
        leave_running: false,
    }
}

/// How a command ended, in words.
pub fn how(exit: &Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::TimedOut => "time limit".to_owned(),
        Exit::NotStarted(why) => format!("not started: {why}"),
    }
}

pub fn ours(error: SandboxError) -> Failure {
    Failure::environment(error.to_string())
}

fn shown(text: &str) -> String {
    shortened(&visible_line(text.trim()), SHOWN_CHARS).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_holds_what_it_has_to_and_nothing_else() {
        let set = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        let check = |seen: &[&str], expected: Option<&str>| {
            let why = difference(&set(&["/workspace/a", "/workspace/b"]), &set(seen));
            assert_eq!(why.as_deref(), expected);
        };
        check(&["/workspace/a", "/workspace/b"], None);
        check(&["/workspace/a"], Some("the cell lacks /workspace/b"));
        check(
            &["/tmp/\u{1b}x", "/workspace/a", "/workspace/b"],
            Some("the cell holds a file that it should not: /tmp/␛x"),
        );
    }
}
