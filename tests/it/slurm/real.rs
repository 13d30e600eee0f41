//! What becomes of a plan on a real cluster whose nodes, links and disks fail: always what one machine gives.

use super::cluster::Cluster;

const NOT_ONE: &str = "the report is not that of one machine";
/// Many units for one shard, so that it runs for a minute and is still at it when Slurm has given its node up.
const LONG: [&str; 4] = ["-c", "slow", "--repeat", "8"];

#[test]
fn a_cluster_gives_what_one_machine_gives_when_a_node_is_lost_or_all_is_cancelled() {
    let Some(cluster) = Cluster::asked() else {
        return;
    };
    let quick = ["-c", "reference", "-c", "blind", "-c", "leaky"];
    let expected = cluster.expected(&quick, 1);
    let plan = cluster.plan(&[&quick[..], &["-n", "4"]].concat());
    let ran = cluster.submit(&plan, &[]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    // The job that merges writes the same bytes.
    cluster.until_idle();
    assert!(cluster.report() == expected, "{NOT_ONE}");

    // A node is lost in mid-array; its tasks are started elsewhere, and what they had finished is not run again.
    let slow = ["-c", "slow", "--repeat", "2"];
    let expected = cluster.expected(&slow, 0);
    let plan = cluster.plan(&[&slow[..], &["-n", "3"]].concat());
    let follower = cluster.follower(&plan, &[]);
    let node = cluster.until("a running task", || cluster.running_on());
    // Another one goes on below.
    follower.kill();
    cluster.act(&["lose", &node]);
    let ran = cluster.submit(&plan, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains(&format!("node {node} is down")),
        "{}",
        ran.stderr
    );
    cluster.until_idle();
    assert!(cluster.report() == expected, "{NOT_ONE}");

    // Everything is cancelled, and submitted again: only what is missing.
    let shards = cluster.project.path("data/shards");
    std::fs::remove_dir_all(&shards).expect("removes");
    let ran = cluster.submit(&plan, &["--detach"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    cluster.until("a running task", || cluster.running_on());
    let cancelled = cluster.user(&["scancel", "--me"]);
    assert_eq!(cancelled.code, 0, "{}", cancelled.stderr);
    cluster.until_idle();
    assert_eq!(cluster.pipeline(&["merge", &plan]).code, 75);
    let ran = cluster.submit(&plan, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(cluster.report() == expected, "{NOT_ONE}");
}

#[test]
fn a_link_that_is_cut_and_healed_makes_duplicates_that_do_no_harm() {
    let Some(cluster) = Cluster::asked() else {
        return;
    };
    let expected = cluster.expected(&LONG, 0);
    let plan = cluster.plan(&[&LONG[..], &["-n", "1"]].concat());
    let mut follower = cluster.follower(&plan, &[]);
    let node = cluster.until("a running task", || cluster.running_on());
    cluster.until("a finished unit", || {
        let attempts = cluster.attempts();
        attempts
            .iter()
            .any(|one| !one.units.is_empty())
            .then_some(())
    });
    cluster.act(&["cut", &node]);
    // Slurm starts the shard elsewhere, while it runs on behind the cut: both finish the same unit.
    let is_unsealed = cluster.until("a unit that both have finished", || {
        let attempts = cluster.attempts();
        let [one, other] = &attempts[..] else {
            return None;
        };
        let name = |unit: &serde_json::Value| (unit["case"].clone(), unit["repetition"].clone());
        let is_there = |unit| other.units.iter().any(|twin| name(twin) == name(unit));
        one.units
            .iter()
            .any(is_there)
            .then_some(!one.is_sealed && !other.is_sealed)
    });
    assert!(is_unsealed, "both were still running");
    cluster.act(&["heal", &node]);
    let code = cluster.until("the end", || follower.left());
    assert_eq!(code, 0, "{}", follower.told());
    cluster.until_idle();
    let merged = cluster.pipeline(&["--json", "merge", &plan]);
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    let merged = merged.json();
    assert_eq!(merged["n_attempts"], 2);
    assert_ne!(merged["n_repeated"], 0, "{merged}");
    assert_eq!(merged["n_agreed"], merged["n_repeated"]);
    assert_eq!(merged["unstable"], serde_json::json!([]));
    assert!(cluster.report() == expected, "{NOT_ONE}");
}

#[test]
fn a_node_that_comes_back_with_its_old_job_holds_the_task_until_what_is_told_is_typed() {
    let Some(cluster) = Cluster::asked() else {
        return;
    };
    let slow = ["-c", "slow", "--repeat", "2"];
    let expected = cluster.expected(&slow, 0);
    let plan = cluster.plan(&[&slow[..], &["-n", "1"]].concat());
    // Nowhere else may it be started again.
    let mut follower = cluster.follower(&plan, &["--sbatch-arg=--nodelist=n1"]);
    cluster.until("a finished unit", || {
        let attempts = cluster.attempts();
        attempts
            .iter()
            .any(|one| !one.units.is_empty())
            .then_some(())
    });
    cluster.act(&["cut", "n1"]);
    cluster.until("a task that waits again", || {
        let queue = cluster.queue();
        queue
            .iter()
            .any(|[id, state, _]| id.contains('_') && state == "PENDING")
            .then_some(())
    });
    cluster.until("the seal of the old attempt", || {
        let attempts = cluster.attempts();
        attempts.iter().any(|one| one.is_sealed).then_some(())
    });
    // The controller goes on telling the node for a while that the job is to end, and does not say when it gives up.
    std::thread::sleep(std::time::Duration::from_secs(25));
    cluster.act(&["heal", "n1"]);
    let typed = |begin: &str| {
        let told = follower.told();
        let (_, rest) = told.split_once(begin)?;
        let end = rest.find('\n')?;
        Some(format!("{begin}{}", &rest[..end]))
    };
    let release = cluster.until("what to type for the task", || typed("scontrol release"));
    let resume = cluster.until("what to type for the node", || {
        typed("scontrol update NodeName=n1")
    });
    assert!(
        follower.told().contains("Duplicate jobid"),
        "{}",
        follower.told()
    );
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let resume = words(&resume);
    let resumed = cluster.admin(&resume.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(resumed.code, 0, "{resume:?}: {}", resumed.stderr);
    let release = words(&release);
    let released = cluster.user(&release.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(released.code, 0, "{release:?}: {}", released.stderr);
    let code = cluster.until("the end", || follower.left());
    assert_eq!(code, 0, "{}", follower.told());
    cluster.until_idle();
    assert!(cluster.report() == expected, "{NOT_ONE}");
}

#[test]
fn a_task_that_ends_with_75_is_told_with_its_reason_and_submitted_again() {
    let Some(cluster) = Cluster::asked() else {
        return;
    };
    let quick = ["-c", "reference", "-c", "blind"];
    let expected = cluster.expected(&quick, 1);
    let plan = cluster.plan(&[&quick[..], &["-n", "3"]].concat());
    // A disk that cannot be written to, for one of the shards.
    let name = std::path::Path::new(&plan).file_stem().expect("a name");
    let folder = cluster
        .project
        .path("data/shards")
        .join(name)
        .join("2-of-3");
    std::fs::create_dir_all(&folder).expect("makes");
    cluster.give(&cluster.project.path("data/shards"));
    std::os::unix::fs::chown(&folder, Some(0), Some(0)).expect("gives");
    let ran = cluster.submit(&plan, &[]);
    assert_eq!(ran.code, 75, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("shard 2 is not sealed"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("Permission denied"), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("shards to run again: 2 "),
        "{}",
        ran.stdout
    );
    cluster.until_idle();
    cluster.give(&folder);
    let ran = cluster.submit(&plan, &[]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("submitted shards 2 as"),
        "{}",
        ran.stderr
    );
    cluster.until_idle();
    assert!(cluster.report() == expected, "{NOT_ONE}");
}
