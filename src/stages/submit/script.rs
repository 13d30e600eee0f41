//! The scripts that Slurm is given: an array with a task a shard, and the merge after it.

use std::path::Path;

/// What the scripts are about.
pub(super) struct Scripts<'a> {
    pub program: &'a Path,
    pub root: &'a Path,
    pub plan: &'a Path,
    /// Where attempts are kept, and those at this plan.
    pub shards: &'a Path,
    pub folder: &'a Path,
    /// Of the array; the merge has `-merge` at its end.
    pub name: &'a str,
    pub n_shards: u32,
    pub cpus: u32,
    /// Options of `sbatch`, as the site wants them.
    pub options: &'a [String],
    /// Where the output of jobs goes.
    pub logs: &'a Path,
}

impl Scripts<'_> {
    /// Runs these shards, written as Slurm writes the tasks of an array.
    pub fn array(&self, shards: &str) -> String {
        let own = [
            format!("--job-name={}", self.name),
            format!("--array={shards}"),
            format!("--cpus-per-task={}", self.cpus),
            // A task whose node is lost begins anew elsewhere, and goes on with what is finished.
            "--requeue".to_owned(),
            "--open-mode=append".to_owned(),
            self.output("%A_%a"),
        ];
        let command = format!(
            "evaluate --plan {} --shard \"$SLURM_ARRAY_TASK_ID/{}\" --shards {} --jobs {}",
            quoted(self.plan),
            self.n_shards,
            quoted(self.shards),
            self.cpus
        );
        self.script(&own, &command)
    }

    /// Merges when these jobs are over, however they ended: it says itself what is missing.
    pub fn merge(&self, jobs: &[String]) -> String {
        let own = [
            format!("--job-name={}-merge", self.name),
            format!("--dependency=afterany:{}", jobs.join(":")),
            self.output("merge-%j"),
        ];
        let command = format!("merge {} {}", quoted(self.plan), quoted(self.folder));
        self.script(&own, &command)
    }

    fn output(&self, name: &str) -> String {
        format!("--output=\"{}/{name}.log\"", self.logs.display())
    }

    fn script(&self, own: &[String], command: &str) -> String {
        let mut text = "#!/bin/sh\n".to_owned();
        for option in own.iter().chain(self.options) {
            text += &format!("#SBATCH {option}\n");
        }
        let (root, program) = (quoted(self.root), quoted(self.program));
        text + &format!("cd {root} || exit 75\nexec {program} {command}\n")
    }
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
