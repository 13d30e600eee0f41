//! Repositories with history: made inside the cell by its git, before the first launch. Dates, names and configuration
//! are fixed, so that the same description gives the same ids.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use crate::adapters::folders::{self, named};
use crate::adapters::sandbox::{Cell, Exit, Launch, SandboxError};
use crate::domain::case::{Bindings, Git};

/// 2026-01-01 00:00:00 UTC; each commit is a minute later than the one before.
const FIRST_COMMIT: u64 = 1_767_225_600;
const NAME: &str = "Fixture";
const EMAIL: &str = "fixture@example.com";
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Reads the history from standard input. What is checked out is older than the index, and the index does not change
/// by being looked at.
const MAKE: &str = r#"set -e
mkdir -p "$1" && cd "$1"
git init -q --template= -b "$2"
git config core.checkStat minimal
git config core.trustctime false
git fast-import --quiet
if git rev-parse -q --verify HEAD > /dev/null; then
  git reset -q --hard
  git ls-files -z | xargs -0 -r touch -h -d @1767225600
  git update-index -q --refresh
fi
"#;

/// Makes the repository at a path of a fixture. `Err` inside: why it could not be made.
pub(super) async fn make(
    path: &str,
    git: &Git,
    bindings: &Bindings,
    cell: &mut Cell,
) -> Result<Result<(), String>, SandboxError> {
    let date = format!("{FIRST_COMMIT} +0000");
    let variables = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/nonexistent"),
        ("LANG", "C.UTF-8"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", NAME),
        ("GIT_AUTHOR_EMAIL", EMAIL),
        ("GIT_AUTHOR_DATE", &date),
        ("GIT_COMMITTER_NAME", NAME),
        ("GIT_COMMITTER_EMAIL", EMAIL),
        ("GIT_COMMITTER_DATE", &date),
    ];
    let inside = bindings.expand(path);
    let argv = ["/bin/sh", "-c", MAKE, "sh", &inside, git.head()];
    let launch = Launch {
        argv: argv.map(str::to_owned).to_vec(),
        env: variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        cwd: folders::WORKSPACE.to_owned(),
        stdin: stream(git, bindings),
        time_limit: TIME_LIMIT,
        leave_running: false,
    };
    let ended = cell.launch(launch).await?;
    Ok(match ended.exit {
        Exit::Code(0) => Ok(()),
        other => {
            let said = String::from_utf8_lossy(&ended.stderr);
            Err(format!(
                "is a repository that cannot be made: {} ({other:?})",
                said.trim()
            ))
        }
    })
}

/// The history in the language of `git fast-import`.
fn stream(git: &Git, bindings: &Bindings) -> Vec<u8> {
    let mut out = Vec::new();
    let mut line = |text: &[u8]| {
        out.extend_from_slice(text);
        out.push(b'\n');
    };
    let mut branches: Vec<&str> = Vec::new();
    for (idx, commit) in git.commits.iter().enumerate() {
        let (mark, branch) = (idx + 1, commit.branch());
        let date = FIRST_COMMIT + 60 * idx as u64;
        line(format!("commit refs/heads/{branch}\nmark :{mark}").as_bytes());
        let who = format!("{NAME} <{EMAIL}> {date} +0000");
        line(format!("author {who}\ncommitter {who}").as_bytes());
        line(&data(&bindings.expand(&commit.message)));
        if !branches.contains(&branch) && idx > 0 {
            line(format!("from :{idx}").as_bytes());
        }
        if let Some(other) = &commit.merge {
            line(format!("merge refs/heads/{other}").as_bytes());
        }
        for path in &commit.remove {
            line(&[b"D ", quoted(&bindings.expand(path)).as_slice()].concat());
        }
        for (path, text) in &commit.files {
            let path = quoted(&bindings.expand(path));
            line(&[b"M 100644 inline ", path.as_slice()].concat());
            line(&data(&bindings.expand(text)));
        }
        if let Some(tag) = &commit.tag {
            line(format!("reset refs/tags/{tag}\nfrom :{mark}").as_bytes());
        }
        branches.push(branch);
    }
    out
}

fn data(text: &str) -> Vec<u8> {
    format!("data {}\n{text}", text.len()).into_bytes()
}

fn quoted(path: &str) -> Vec<u8> {
    let mut out = vec![b'"'];
    for byte in named(path).as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            plain => out.push(*plain),
        }
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::case::Commit;

    #[test]
    fn the_history_is_told_to_git() {
        let commit = |message: &str, branch: Option<&str>| Commit {
            message: message.into(),
            branch: branch.map(Into::into),
            ..Commit::default()
        };
        let git = Git {
            commits: vec![
                Commit {
                    files: [("a \"b\".txt".to_owned(), "gr\u{fc}n\n".to_owned())].into(),
                    ..commit("first", None)
                },
                Commit {
                    remove: vec!["caf{byte:e9}".into()],
                    tag: Some("v1".into()),
                    ..commit("second", Some("side"))
                },
                Commit {
                    merge: Some("side".into()),
                    ..commit("third", None)
                },
            ],
            head: None,
        };
        let told = stream(&git, &Bindings::default());
        let text = String::from_utf8_lossy(&told);
        let check = |part: &str| assert!(text.contains(part), "{part:?} in {text}");
        check("M 100644 inline \"a \\\"b\\\".txt\"\ndata 6\ngr\u{fc}n\n");
        check("commit refs/heads/side\nmark :2\n");
        check("from :1\nD \"caf\u{fffd}\"\nreset refs/tags/v1\nfrom :2\n");
        check(
            "commit refs/heads/main\nmark :3\nauthor Fixture <fixture@example.com> 1767225720 +0000\n",
        );
        check("data 5\nthird\nmerge refs/heads/side\n");
    }
}
