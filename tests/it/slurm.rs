//! `submit --engine slurm`: its scripts, what it tells of a cluster that somebody else plays, and, when asked for by
//! `PIPELINE_TEST_SLURM=1`, a real one of three nodes.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::evaluate::{HARNESS, candidate};
use crate::project::{Project, Ran, ran, repository};

fn planned(project: &Project, more: &[&str]) -> String {
    let planned = project.json(&[&["plan", "--run", "r", "--nonce-seed", "s"], more].concat());
    planned["file"].as_str().expect("a file").to_owned()
}

#[test]
fn a_dry_run_prints_what_would_be_submitted() {
    let project = crate::evaluate::project();
    let plan = planned(&project, &["-c", "reference", "-n", "3"]);
    let command = [
        "submit",
        &plan,
        "--engine",
        "slurm",
        "--dry-run",
        "--cpus",
        "4",
    ];
    let site = ["--sbatch-arg=--account=lab", "--sbatch-arg=--time=0:30:00"];
    let ran = project.run(&[&command[..], &site].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let name = Path::new(&plan)
        .file_stem()
        .expect("a name")
        .to_str()
        .expect("text");
    let root = project
        .path("")
        .canonicalize()
        .expect("is there")
        .display()
        .to_string();
    let told = ran
        .stdout
        .replace(name, "PLAN")
        .replace(&root, "ROOT")
        .replace(env!("CARGO_BIN_EXE_pipeline"), "PIPELINE");
    let expected = "#!/bin/sh
#SBATCH --job-name=doc2harness-PLAN
#SBATCH --array=1-3
#SBATCH --cpus-per-task=4
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=\"ROOT/data/shards/PLAN/logs/%A_%a.log\"
#SBATCH --account=lab
#SBATCH --time=0:30:00
cd 'ROOT' || exit 75
exec 'PIPELINE' evaluate --plan 'ROOT/data/plans/PLAN.json' --shard \"$SLURM_ARRAY_TASK_ID/3\" \
                    --shards 'ROOT/data/shards' --jobs 4

# After it; ARRAY is the number that sbatch printed:
#!/bin/sh
#SBATCH --job-name=doc2harness-PLAN-merge
#SBATCH --dependency=afterany:ARRAY
#SBATCH --output=\"ROOT/data/shards/PLAN/logs/merge-%j.log\"
#SBATCH --account=lab
#SBATCH --time=0:30:00
cd 'ROOT' || exit 75
exec 'PIPELINE' merge 'ROOT/data/plans/PLAN.json' 'ROOT/data/shards/PLAN'
";
    assert_eq!(told, expected);
    assert!(!project.path("data/shards").exists(), "nothing is written");
    let wrong = project.run(&[&command[..], &["--sbatch-arg", "lab"]].concat());
    assert_eq!(wrong.code, 2, "{}", wrong.stdout);
    let absent = project
        .command(&["submit", &plan, "--engine", "slurm"])
        .env("PATH", "/nowhere")
        .output()
        .expect("starts");
    assert_eq!(absent.status.code(), Some(4));
}

/// Programs of a cluster that say what a test wants.
fn play(project: &Project, name: &str, script: &str) {
    let path = project.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("sets");
}

#[test]
fn what_holds_tasks_up_is_told_with_what_to_type() {
    let project = crate::evaluate::project();
    let plan = planned(&project, &["-c", "reference", "-n", "3"]);
    let bin = project.path("bin").display().to_string();
    play(
        &project,
        "sbatch",
        &format!("cat >> {bin}/submitted; echo 41"),
    );
    play(
        &project,
        "sinfo",
        "echo 'n1|drained|Duplicate jobid'; echo 'n2|idle|none'",
    );
    // Nothing before the submission, then two tasks, then a controller that does not answer, then nothing.
    play(
        &project,
        "squeue",
        &format!(
            "n=$(cat {bin}/n 2>/dev/null || echo 0); echo $((n + 1)) > {bin}/n\n\
             case $n in\n\
             1) echo '41_2|PENDING|launch failed requeued held'; echo '41_3|RUNNING|None' ;;\n\
             2) echo 'Unable to contact slurm controller' >&2; exit 1 ;;\n\
             esac"
        ),
    );
    let path = format!("{bin}:/usr/bin:/bin");
    let command = ["submit", &plan, "--engine", "slurm", "--poll", "1"];
    let followed = ran(project.command(&command).env("PATH", &path));
    assert_eq!(followed.code, 75, "{}{}", followed.stdout, followed.stderr);
    for part in [
        "submitted shards 1-3 as the array 41",
        "0 of 3 shards sealed, 1 running, 1 waiting",
        "type: scontrol release 41_2",
        "node n1 is drained (Duplicate jobid)",
        "scontrol update NodeName=n1 State=RESUME",
        "Unable to contact slurm controller",
        "0 of 3 shards sealed, 0 running, 0 waiting",
    ] {
        assert!(
            followed.stderr.contains(part),
            "{part:?} is not in:\n{}",
            followed.stderr
        );
    }
    assert!(!followed.stderr.contains("node n2"), "{}", followed.stderr);
    let submitted = std::fs::read_to_string(project.path("bin/submitted")).expect("reads");
    assert!(
        submitted.contains("--dependency=afterany:41\n"),
        "{submitted}"
    );

    // One is sealed and one is in the queue: the third is what is missing.
    let sealed = project.run(&["evaluate", "--plan", &plan, "--shard", "1/3"]);
    assert_eq!(sealed.code, 0, "{}", sealed.stderr);
    play(&project, "squeue", "echo '41_3|RUNNING|None'");
    std::fs::remove_file(project.path("bin/submitted")).expect("removes");
    let detached = ran(project
        .command(&[&["--json"], &command[..], &["--detach"]].concat())
        .env("PATH", &path));
    assert_eq!(detached.code, 0, "{}", detached.stderr);
    let told = detached.json();
    assert_eq!(
        (&told["n_sealed"], &told["queued"]),
        (&1.into(), &"3".into())
    );
    assert_eq!(told["submitted"]["shards"], "2");
    let name = Path::new(&plan)
        .file_stem()
        .expect("a name")
        .to_str()
        .expect("text");
    let kept = project.path(&format!("data/shards/{name}/submission.json"));
    let kept = std::fs::read_to_string(kept).expect("is kept");
    assert!(kept.contains("\"array\": \"41\""), "{kept}");
}

/// A cluster of three nodes, and a project that an ordinary user runs in it.
struct Cluster {
    project: Project,
    folder: tempfile::TempDir,
    program: PathBuf,
}

/// An ordinary user of every machine.
const NOBODY: &str = "65534";

impl Cluster {
    fn start(project: Project) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let program = project.path("bin/pipeline");
        std::fs::create_dir_all(project.path("bin")).expect("makes");
        std::fs::copy(env!("CARGO_BIN_EXE_pipeline"), &program).expect("copies");
        let cluster = Self {
            project,
            folder,
            program,
        };
        let up = cluster.script(&["up"]);
        assert_eq!(up.code, 0, "{}{}", up.stdout, up.stderr);
        cluster
    }

    fn script(&self, words: &[&str]) -> Ran {
        let mut command = Command::new(repository().join("tests/fixtures/slurm/cluster.sh"));
        command
            .arg(words[0])
            .arg(self.folder.path())
            .args(&words[1..]);
        // The daemons live on and would hold a pipe open.
        let said = self.folder.path().join("said");
        let log = std::fs::File::create(&said).expect("makes");
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("clones"))
            .stderr(log);
        let code = command.status().expect("starts").code().unwrap_or(-1);
        let stdout = std::fs::read_to_string(said).unwrap_or_default();
        Ran {
            code,
            stdout,
            stderr: String::new(),
        }
    }

    /// A command of the ordinary user.
    fn command(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"])
            .arg(program)
            .args(words)
            .current_dir(self.project.path(""))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("PIPELINE_NOW", "2026-12-01T00:00:00Z")
            .env("SLURM_CONF", self.folder.path().join("slurm.conf"));
        command
    }

    fn pipeline(&self, words: &[&str]) -> Ran {
        ran(&mut self.command(&self.program, words))
    }

    fn plan(&self, words: &[&str]) -> String {
        let fixed = ["--json", "plan", "--run", "r", "--nonce-seed", "s"];
        let planned = self.pipeline(&[&fixed[..], words].concat());
        assert_eq!(planned.code, 0, "{}", planned.stderr);
        planned.json()["file"].as_str().expect("a file").to_owned()
    }

    fn submit(&self, plan: &str, more: &[&str]) -> Ran {
        let fixed = [
            "submit", plan, "--engine", "slurm", "--poll", "1", "--cpus", "1",
        ];
        self.pipeline(&[&fixed[..], more].concat())
    }

    /// `id|state|node` of what is in the queue.
    fn queue(&self) -> Vec<String> {
        let words = ["--me", "--noheader", "--array", "--format=%i|%T|%N"];
        let said = ran(&mut self.command(Path::new("squeue"), &words));
        said.stdout.lines().map(str::to_owned).collect()
    }

    fn until<T>(&self, what: &str, seen: impl Fn() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(seen) = seen() {
                return seen;
            }
            let queue = self.queue();
            assert!(
                began.elapsed() < Duration::from_secs(180),
                "{what}: {queue:?}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The report of the merged run, which then goes.
    fn report(&self) -> Vec<u8> {
        let ran = self.pipeline(&["report", "r"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let report = std::fs::read(self.project.path("data/runs/r/report/report.json"));
        std::fs::remove_dir_all(self.project.path("data/runs/r")).expect("removes");
        report.expect("reads")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.script(&["down"]);
    }
}

#[test]
fn a_real_cluster_gives_what_one_machine_gives_whatever_becomes_of_its_nodes() {
    if std::env::var_os("PIPELINE_TEST_SLURM").is_none_or(|asked| asked != "1") {
        // Past the capture of the test runner, so that it is seen in a run that passes.
        let text = b"\nSlurm tests were not asked to run; set PIPELINE_TEST_SLURM=1\n";
        std::io::Write::write_all(&mut std::io::stderr(), text).expect("stderr takes it");
        return;
    }
    let project = crate::evaluate::project();
    let slow = HARNESS.replace("#BEHAVIOUR", "time.sleep(4)");
    candidate(&project, "slow", &slow, "exit 0\n");
    candidate(
        &project,
        "slower",
        &slow.replace("sleep(4)", "sleep(5)"),
        "exit 0\n",
    );
    let given = Command::new("chown")
        .arg("-R")
        .arg(format!("{NOBODY}:{NOBODY}"))
        .arg(project.path(""))
        .status();
    assert!(given.expect("starts").success());
    let cluster = Cluster::start(project);

    let quick = ["-c", "reference", "-c", "blind", "-c", "leaky"];
    let one = [&["evaluate", "--run", "r", "--nonce-seed", "s"], &quick[..]].concat();
    assert_eq!(cluster.pipeline(&one).code, 1);
    let expected = cluster.report();
    let plan = cluster.plan(&[&quick[..], &["-n", "4"]].concat());
    let ran = cluster.submit(&plan, &[]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    cluster.until("the merge of the array", || {
        cluster.queue().is_empty().then_some(())
    });
    assert!(
        cluster.report() == expected,
        "the report is not that of one machine"
    );

    // A node is lost in mid-array; its tasks are started elsewhere, and what they had finished is not run again.
    let slow = ["-c", "slow", "-c", "slower"];
    let one = [&["evaluate", "--run", "r", "--nonce-seed", "s"], &slow[..]].concat();
    assert_eq!(cluster.pipeline(&one).code, 0);
    let expected = cluster.report();
    let plan = cluster.plan(&[&slow[..], &["-n", "3"]].concat());
    let mut follower: Child = cluster
        .command(
            &cluster.program,
            &[
                "submit", &plan, "--engine", "slurm", "--poll", "1", "--cpus", "1",
            ],
        )
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let node = cluster.until("a running task", || {
        let queue = cluster.queue();
        let running = queue.iter().find(|line| line.contains("|RUNNING|"))?;
        Some(running.rsplit('|').next().expect("a node").to_owned())
    });
    // Whoever follows leaves without a word; another one goes on below.
    follower.kill().expect("kills");
    follower.wait().expect("waits");
    assert_eq!(cluster.script(&["lose", &node]).code, 0);
    let ran = cluster.submit(&plan, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains(&format!("node {node} is down")),
        "{}",
        ran.stderr
    );
    cluster.until("the merge of the array", || {
        cluster.queue().is_empty().then_some(())
    });
    assert!(
        cluster.report() == expected,
        "the report is not that of one machine"
    );

    // Everything is cancelled, and submitted again: only what is missing.
    let shards = cluster.project.path("data/shards");
    std::fs::remove_dir_all(&shards).expect("removes");
    let ran = cluster.submit(&plan, &["--detach"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    cluster.until("a running task", || {
        cluster
            .queue()
            .iter()
            .any(|line| line.contains("|RUNNING|"))
            .then_some(())
    });
    let cancelled = cluster.command(Path::new("scancel"), &["--me"]).status();
    assert!(cancelled.expect("starts").success());
    cluster.until("an empty queue", || {
        cluster.queue().is_empty().then_some(())
    });
    assert_eq!(cluster.pipeline(&["merge", &plan]).code, 75);
    let ran = cluster.submit(&plan, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(
        cluster.report() == expected,
        "the report is not that of one machine"
    );
}
