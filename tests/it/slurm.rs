//! `submit --engine slurm`: its scripts, what it tells of a cluster that somebody else plays, and, when asked for by
//! `PIPELINE_TEST_SLURM=1`, a real one of three nodes.

mod cluster;
mod real;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::project::{Project, ran};

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
        &format!(
            "cat >> {bin}/submitted; echo 41\n\
             for logs in {data}/shards/*/logs; do echo 'error: the disk is full' > $logs/41_2.log; done",
            data = project.path("data").display()
        ),
    );
    play(
        &project,
        "sinfo",
        "echo 'n1|drained|Duplicate jobid'; echo 'n2|idle|none'",
    );
    // Nothing before the submissions, then two tasks, then a controller that does not answer, then nothing.
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
        "logs/41_2.log ends: error: the disk is full",
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

#[test]
fn a_merge_that_was_not_submitted_is_submitted_later_and_once() {
    let project = crate::evaluate::project();
    let plan = planned(&project, &["-c", "reference", "-n", "3"]);
    let bin = project.path("bin").display().to_string();
    // The controller goes away after it has taken the array.
    play(
        &project,
        "sbatch",
        &format!(
            "test -e {bin}/submitted && {{ echo 'no controller\u{1b}[2J' >&2; exit 1; }}\n\
             cat >> {bin}/submitted; echo 41"
        ),
    );
    play(&project, "squeue", "true");
    let path = format!("{bin}:/usr/bin:/bin");
    let command = ["submit", &plan, "--engine", "slurm", "--detach"];
    let submit = || ran(project.command(&command).env("PATH", &path));
    let cut = submit();
    assert_eq!(cut.code, 4, "{}{}", cut.stdout, cut.stderr);
    assert!(cut.stderr.contains("no controller␛[2J"), "{}", cut.stderr);

    let merges = || {
        let submitted = std::fs::read_to_string(project.path("bin/submitted")).expect("reads");
        submitted.matches("--dependency=afterany:41\n").count()
    };
    play(
        &project,
        "sbatch",
        &format!("cat >> {bin}/submitted; echo 42"),
    );
    play(
        &project,
        "squeue",
        "for n in 1 2 3; do echo \"41_$n|RUNNING|None\"; done",
    );
    assert_eq!(merges(), 0);
    let later = submit();
    assert_eq!(later.code, 0, "{}", later.stderr);
    let told = "submitted the merge 42, which was missing";
    assert!(later.stderr.contains(told), "{}", later.stderr);
    assert_eq!(merges(), 1);
    assert_eq!(submit().code, 0);
    assert_eq!(merges(), 1);
}
