//! Slurm, by its command line. Its text output with a fixed format is the same from version to version, which its JSON is
//! not; and accounting, which many sites lack, is not asked for.

use std::io::Write;
use std::process::{Command, Stdio};

use serde::Serialize;

use crate::domain::visible::in_short;

#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    #[error("{0} cannot be started; is this a machine of a Slurm cluster?")]
    NotThere(&'static str),
    #[error("{command} refused: {said}")]
    Refused { command: &'static str, said: String },
    #[error("{command} said {said:?}, which is not understood")]
    Odd { command: &'static str, said: String },
}

/// A job or a task of an array that is waiting or running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// `12`, or `12_3` for the third task of an array.
    pub id: String,
    /// `PENDING`, `RUNNING`, `COMPLETING`, …
    pub state: String,
    /// Why it waits.
    pub reason: String,
}

/// A node that takes no new jobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Closed {
    pub node: String,
    pub state: String,
    pub reason: String,
}

impl Task {
    /// The number of the job, without that of the task.
    pub fn job(&self) -> &str {
        self.id.split('_').next().unwrap_or(&self.id)
    }

    /// The number of the task in its array.
    pub fn index(&self) -> Option<u32> {
        self.id.split_once('_')?.1.parse().ok()
    }

    /// It waits until somebody releases it, for ever if nobody does.
    pub fn is_held(&self) -> bool {
        self.state == "PENDING" && self.reason.to_lowercase().contains("held")
    }
}

/// Submits a script and returns the number of its job.
pub fn submit(script: &str) -> Result<String, SlurmError> {
    let said = said("sbatch", &["--parsable"], Some(script))?;
    // `12`, or `12;cluster` where there are several.
    let id = said.trim().split(';').next().unwrap_or_default();
    match !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(id.to_owned()),
        false => Err(SlurmError::Odd {
            command: "sbatch",
            said: in_short(&said),
        }),
    }
}

/// What this user has waiting or running under a name, each task of an array by itself.
pub fn tasks(name: &str) -> Result<Vec<Task>, SlurmError> {
    let named = format!("--name={name}");
    let arguments = ["--me", "--noheader", "--array", &named, "--format=%i|%T|%r"];
    parsed(&said("squeue", &arguments, None)?)
}

fn parsed(text: &str) -> Result<Vec<Task>, SlurmError> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let tasks = lines.map(|line| {
        let mut parts = line.trim().splitn(3, '|').map(in_short);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(id), Some(state), Some(reason)) => Ok(Task { id, state, reason }),
            _ => Err(SlurmError::Odd {
                command: "squeue",
                said: in_short(line),
            }),
        }
    });
    tasks.collect()
}

/// Nodes that are down or drained, sorted.
pub fn closed_nodes() -> Result<Vec<Closed>, SlurmError> {
    let arguments = ["--noheader", "--Node", "--format=%N|%T|%E"];
    Ok(closed(&said("sinfo", &arguments, None)?))
}

fn closed(text: &str) -> Vec<Closed> {
    let mut found: Vec<Closed> = text
        .lines()
        .filter_map(|line| {
            let mut parts = line.trim().splitn(3, '|').map(in_short);
            let (node, state, reason) = (parts.next()?, parts.next()?, parts.next()?);
            let is_closed = state.starts_with("drain") || state.starts_with("down");
            is_closed.then_some(Closed {
                node,
                state,
                reason,
            })
        })
        .collect();
    // A node is listed once for each of its partitions.
    found.sort();
    found.dedup();
    found
}

fn said(
    command: &'static str,
    arguments: &[&str],
    input: Option<&str>,
) -> Result<String, SlurmError> {
    let missing = |_| SlurmError::NotThere(command);
    let mut child = Command::new(command)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(missing)?;
    let mut stdin = child.stdin.take().expect("it is piped");
    // One that ends without reading says why.
    let _ = stdin.write_all(input.unwrap_or_default().as_bytes());
    drop(stdin);
    let output = child.wait_with_output().map_err(missing)?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(SlurmError::Refused {
            command,
            said: in_short(&String::from_utf8_lossy(&output.stderr)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read_as_squeue_writes_them() {
        let text = "12_3|RUNNING|None\n12_4|PENDING|launch failed requeued held\n12_5|PENDING|JobHeldUser\n\
                    13|PENDING|Dependency\n";
        let tasks = parsed(text).expect("is read");
        let told: Vec<_> = tasks
            .iter()
            .map(|task| (task.job(), task.index(), task.is_held()))
            .collect();
        assert_eq!(
            told,
            [
                ("12", Some(3), false),
                ("12", Some(4), true),
                ("12", Some(5), true),
                ("13", None, false)
            ]
        );
        assert!(parsed("").expect("is read").is_empty());
        assert!(parsed("slurm_load_jobs error\n").is_err());
    }

    #[test]
    fn nodes_that_take_no_jobs_are_told_once() {
        let text = "n1|drained|Duplicate jobid\nn1|drained|Duplicate jobid\nn2|idle|none\nn3|down*|Not responding\n";
        let nodes: Vec<String> = closed(text).into_iter().map(|one| one.node).collect();
        assert_eq!(nodes, ["n1", "n3"]);
    }
}
