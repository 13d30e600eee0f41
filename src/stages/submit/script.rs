//! The scripts that Slurm is given: an array with a task a shard, and the merge after it.

use std::path::{Path, PathBuf};

use super::places::Places;

/// What the scripts are about.
pub(super) struct Scripts<'a> {
    pub program: PathBuf,
    pub places: &'a Places,
    pub cpus: u32,
    /// Options of `sbatch`, as the site wants them.
    pub options: &'a [String],
}

impl Scripts<'_> {
    /// Runs these shards, written as Slurm writes the tasks of an array.
    pub fn array(&self, shards: &str) -> String {
        let own = [
            format!("--job-name={}", self.places.name),
            format!("--array={shards}"),
            format!("--cpus-per-task={}", self.cpus),
            // A task whose node is lost begins anew elsewhere, and goes on with what is finished.
            "--requeue".to_owned(),
            "--open-mode=append".to_owned(),
            self.output("%A_%a"),
        ];
        let command = self.places.evaluate("$SLURM_ARRAY_TASK_ID", self.cpus);
        self.script(&own, &command)
    }

    /// Merges when these jobs are over, however they ended: it says itself what is missing.
    pub fn merge<'b>(&self, jobs: impl IntoIterator<Item = &'b str>) -> String {
        let jobs: Vec<&str> = jobs.into_iter().collect();
        let own = [
            format!("--job-name={}-merge", self.places.name),
            format!("--dependency=afterany:{}", jobs.join(":")),
            self.output("merge-%j"),
        ];
        let (plan, folder) = (quoted(&self.places.plan), quoted(&self.places.folder));
        self.script(&own, &format!("merge {plan} {folder}"))
    }

    fn output(&self, name: &str) -> String {
        format!("--output=\"{}/{name}.log\"", self.places.logs().display())
    }

    fn script(&self, own: &[String], command: &str) -> String {
        let mut text = "#!/bin/sh\n".to_owned();
        for option in own.iter().chain(self.options) {
            text += &format!("#SBATCH {option}\n");
        }
        let (root, program) = (quoted(&self.places.root), quoted(&self.program));
        text + &format!("cd {root} || exit 75\nexec {program} {command}\n")
    }
}

/// A path as a shell reads it.
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
