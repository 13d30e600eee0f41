//! The recipes of docs/many-machines.md, run as they stand there: the text of the document is what is executed.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::evaluate::{HARNESS, candidate};
use crate::project::{Project, Ran, asked, ran, repository};

/// The first block of a language below a heading.
fn block(heading: &str, language: &str) -> String {
    let path = repository().join("docs/many-machines.md");
    let text = std::fs::read_to_string(path).expect("reads");
    let (_, below) = text.split_once(heading).expect("the heading is there");
    let fence = format!("```{language}\n");
    let (_, block) = below.split_once(&fence).expect("a block is there");
    let (block, _) = block.split_once("```").expect("it ends");
    block.to_owned()
}

/// A project with the candidates of the recipes, of which one fails, and what one machine gives for them.
struct Recipe {
    project: Project,
    expected: Vec<u8>,
}

impl Recipe {
    fn new() -> Self {
        let project = crate::evaluate::project();
        let wrong = HARNESS.replace("#BEHAVIOUR", "def read(path): return ''");
        candidate(&project, "builds/a", HARNESS, "exit 0\n");
        candidate(&project, "builds/b", &wrong, "exit 0\n");
        let one = ["evaluate", "-c", "builds/a", "-c", "builds/b"];
        let fixed = ["--run", "r", "--nonce-seed", "s"];
        let ran = project.run(&[&one[..], &fixed].concat());
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert_eq!(project.run(&["report", "r"]).code, 0);
        let expected = report(&project.path("")).expect("is written");
        std::fs::remove_dir_all(project.path("data/runs/r")).expect("removes");
        // What a recipe leaves to chance is fixed, so that its run can be compared.
        let program = env!("CARGO_BIN_EXE_pipeline");
        script(
            &project.path("bin/pipeline"),
            &format!(
                "[ \"$1\" != plan ] || set -- \"$@\" --run r --nonce-seed s\nexec {program} \"$@\""
            ),
        );
        Self { project, expected }
    }

    /// Runs a text of shell in a folder.
    fn shell(&self, folder: &Path, text: &str) -> Ran {
        let bin = self.project.path("bin").display().to_string();
        let mut command = Command::new("sh");
        command
            .args(["-e", "-c", text])
            .current_dir(folder)
            .env_clear()
            .env("PATH", format!("{bin}:/usr/bin:/bin"))
            .env("HOME", self.project.path(""))
            .env("SHELL", "/bin/sh")
            .env("LANG", "C.UTF-8")
            .env("PARALLEL_SSH", format!("{bin}/ssh"))
            .env("PIPELINE_NOW", "2026-12-01T00:00:00Z");
        ran(&mut command)
    }
}

/// The report of the run `r` of a project.
fn report(root: &Path) -> Option<Vec<u8>> {
    std::fs::read(root.join("data/runs/r/report/report.json")).ok()
}

fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("is below")).expect("makes");
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("writes");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("sets");
}

#[test]
fn gnu_parallel_over_hosts_gives_what_one_machine_gives() {
    if !asked("Tests with GNU parallel", "PIPELINE_TEST_PARALLEL") {
        return;
    }
    let recipe = Recipe::new();
    let project = &recipe.project;
    // Two hosts, which this machine plays; the disk of the second is full.
    project.write("hosts", "1/first\n1/second\n");
    script(
        &project.path("bin/ssh"),
        &format!(
            "while [ \"$1\" != first ] && [ \"$1\" != second ]; do shift; done\n\
             host=$1\nshift\n[ \"$1\" != -- ] || shift\n\
             echo $host >> {asked}\n[ $host = first ] || exit 75\ncd /\nexec sh -c \"$*\"",
            asked = project.path("asked").display()
        ),
    );
    let root = project.path("");
    let ran = recipe.shell(&root, &block("### GNU parallel over hosts", "sh"));
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let asked = std::fs::read_to_string(project.path("asked")).expect("hosts were asked");
    for host in ["first", "second"] {
        assert!(asked.contains(host), "{asked}{}", ran.stderr);
    }
    assert_eq!(recipe.shell(&root, "pipeline report r").code, 0);
    assert!(report(&root) == Some(recipe.expected), "{}", ran.stdout);
}

/// A step of a job: its keys, and those below `with`.
#[derive(Debug, Default, Clone)]
struct Step {
    keys: BTreeMap<String, String>,
    with: BTreeMap<String, String>,
}

/// Jobs of a workflow by name. Reads the form of the one in the document, and nothing else.
fn jobs(text: &str) -> BTreeMap<String, Vec<Step>> {
    let mut jobs: BTreeMap<String, Vec<Step>> = BTreeMap::new();
    let mut job = String::new();
    for line in text.lines().skip(1) {
        let key_of_job = line.strip_prefix("  ").filter(|key| !key.starts_with(' '));
        if let Some(name) = key_of_job {
            job = name.trim_end_matches(':').to_owned();
            continue;
        }
        let steps = jobs.entry(job.clone()).or_default();
        let key = match (line.strip_prefix("      - "), line.strip_prefix("        ")) {
            (Some(first), _) => {
                steps.push(Step::default());
                first
            }
            (None, Some(key)) => key,
            // Of the job.
            (None, None) => continue,
        };
        let (name, value) = key.split_once(": ").expect("a key has a value");
        // Below `strategy`, before the steps.
        let Some(step) = steps.last_mut() else {
            continue;
        };
        match value.strip_prefix("{ ") {
            None => drop(step.keys.insert(name.to_owned(), value.to_owned())),
            Some(inner) => {
                let pairs = inner.trim_end_matches(" }").split(", ");
                step.with.extend(pairs.map(|pair| {
                    let (name, value) = pair.split_once(": ").expect("a key has a value");
                    (name.to_owned(), value.trim_matches('"').to_owned())
                }));
            }
        }
    }
    jobs
}

/// What stands in for the service: machines that begin with what was checked out, and artifacts.
struct Service<'a> {
    recipe: &'a Recipe,
    jobs: BTreeMap<String, Vec<Step>>,
    /// Artifacts by name, and folders of jobs.
    artifacts: PathBuf,
    machines: PathBuf,
}

impl Service<'_> {
    /// Runs a job on a new machine. Returns that machine's folder, and what went wrong.
    fn run(&self, job: &str, shard: u32, run_attempt: u32) -> (PathBuf, Vec<Ran>) {
        let machine = self.machines.join(format!("{job}-{shard}-{run_attempt}"));
        std::fs::create_dir_all(machine.join("data")).expect("makes");
        for part in ["pipeline", "cases", "candidates", "data/document"] {
            let from = self.recipe.project.path(part);
            copied(&from, &machine.join(part), &|_| true);
        }
        let filled = |text: &str| {
            text.replace("${{ matrix.shard }}", &shard.to_string())
                .replace("${{ github.run_attempt }}", &run_attempt.to_string())
        };
        let mut failed = Vec::new();
        for step in &self.jobs[job] {
            if !failed.is_empty() && step.keys.get("if").is_none_or(|when| when != "always()") {
                continue;
            }
            let with = |name: &str| step.with.get(name).map(|text| filled(text));
            match (step.keys.get("run"), step.keys.get("uses")) {
                (Some(text), None) => {
                    let ran = self.recipe.shell(&machine, &filled(text));
                    if ran.code != 0 {
                        failed.push(ran);
                    }
                }
                (None, Some(action)) if action == "actions/checkout@v4" => {}
                (None, Some(action)) if action == "actions/upload-artifact@v4" => {
                    let path = with("path").expect("a path");
                    let artifact = self.artifacts.join(with("name").expect("a name"));
                    assert!(
                        !artifact.exists(),
                        "{} is there already",
                        artifact.display()
                    );
                    let from = machine.join(&path);
                    match from.is_dir() {
                        // Neither hidden files nor empty folders are kept.
                        true => copied(&from, &artifact, &|name| !name.starts_with('.')),
                        false if from.exists() => copied(&from, &artifact.join(path), &|_| true),
                        false => {}
                    }
                }
                (None, Some(action)) if action == "actions/download-artifact@v4" => {
                    let to = machine.join(with("path").unwrap_or_default());
                    self.download(with("name"), with("pattern"), with("merge-multiple"), &to);
                }
                _ => panic!("what does it do? {step:?}"),
            }
        }
        (machine, failed)
    }

    /// One artifact into a folder; or those of a pattern, each into a folder below it unless they are merged.
    fn download(
        &self,
        name: Option<String>,
        pattern: Option<String>,
        merge: Option<String>,
        to: &Path,
    ) {
        if let Some(name) = name {
            copied(&self.artifacts.join(name), to, &|_| true);
            return;
        }
        let pattern = pattern.expect("a name or a pattern");
        let begin = pattern.strip_suffix('*').expect("a pattern");
        for entry in std::fs::read_dir(&self.artifacts).expect("reads").flatten() {
            let name = entry.file_name().into_string().expect("text");
            if name.starts_with(begin) {
                let to = match merge.as_deref() {
                    Some("true") => to.to_path_buf(),
                    _ => to.join(name),
                };
                copied(&entry.path(), &to, &|_| true);
            }
        }
    }
}

/// Copies a file, or the files below a folder whose names are wanted.
fn copied(from: &Path, to: &Path, is_wanted: &dyn Fn(&str) -> bool) {
    if from.is_file() {
        std::fs::create_dir_all(to.parent().expect("is below")).expect("makes");
        std::fs::copy(from, to).expect("copies");
        return;
    }
    for entry in std::fs::read_dir(from).expect("reads").flatten() {
        let name = entry.file_name().into_string().expect("text");
        if is_wanted(&name) {
            copied(&entry.path(), &to.join(name), is_wanted);
        }
    }
}

#[test]
fn a_matrix_of_ci_jobs_gives_what_one_machine_gives() {
    let recipe = Recipe::new();
    let [artifacts, machines] = ["artifacts", "machines"].map(|name| recipe.project.path(name));
    std::fs::create_dir(&artifacts).expect("makes");
    let service = Service {
        recipe: &recipe,
        jobs: jobs(&block("### A CI matrix", "yaml")),
        artifacts,
        machines,
    };
    let codes = |failed: &[Ran]| failed.iter().map(|ran| ran.code).collect::<Vec<_>>();
    let run = |job, shard, run_attempt| {
        let (machine, failed) = service.run(job, shard, run_attempt);
        let said: Vec<String> = failed.iter().map(|ran| ran.stderr.clone()).collect();
        assert_eq!(codes(&failed), [] as [i32; 0], "{job} {shard}: {said:?}");
        machine
    };
    run("plan", 0, 1);
    for shard in (1..=8).filter(|shard| *shard != 3) {
        run("shard", shard, 1);
    }
    // The machine of the third has no program that starts; the merge says so.
    let program = recipe.project.path("bin/pipeline");
    let text = std::fs::read_to_string(&program).expect("reads");
    script(&program, "exit 75");
    assert_eq!(codes(&service.run("shard", 3, 1).1), [75]);
    std::fs::write(&program, text).expect("writes");
    let (machine, failed) = service.run("merge", 0, 1);
    assert_eq!(failed[0].code, 75, "{}", failed[0].stdout);
    assert!(
        failed[0].stdout.contains("shards to run again: 3 "),
        "{}",
        failed[0].stdout
    );
    assert_eq!(report(&machine), None);

    // Failed jobs are run again, and one that had not failed: it goes on with what it left.
    run("shard", 3, 2);
    let machine = run("shard", 1, 2);
    let attempts = |shard: &Path| std::fs::read_dir(shard).expect("reads").count();
    let plan = std::fs::read_dir(machine.join("left")).expect("reads");
    let plan = plan.flatten().next().expect("a plan").path();
    assert_eq!(attempts(&plan.join("1-of-8")), 1, "it was run anew");
    let (machine, failed) = service.run("merge", 0, 2);
    // One of the candidates is wrong: the job that merges is red, and there is a report.
    assert_eq!(codes(&failed), [1], "{}", failed[0].stderr);
    assert!(report(&machine) == Some(recipe.expected.clone()));
}
