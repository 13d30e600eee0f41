//! What a killed runner leaves, and what is swept.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use doc2harness::adapters::left_groups;
use doc2harness::adapters::sandbox::{DockerConfig, Launch, Mount, Sandbox};

use super::{Place, sh};

/// The folder in which a runner that is to be killed works; set in a process of its own.
const FOLDER: &str = "PIPELINE_TEST_FOLDER";

/// How long what happens by itself may take on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// A runner that does not end by itself.
async fn run_until_killed(place: Place, folder: OsString) {
    let mut spec = place.spec();
    spec.mounts = vec![Mount::writable(folder, "/workspace")];
    let mut cell = place.sandbox.open(spec).await.unwrap();
    let script = "setsid sleep 600 & echo > started; exec sleep 600";
    cell.launch(sh(script)).await.unwrap();
}

pub async fn dropped_cell_is_killed(place: Place) {
    let mut cell = place.open().await;
    let launch = Launch {
        leave_running: true,
        ..sh("setsid sleep 600 & sleep 600 &")
    };
    cell.launch(launch).await.unwrap();
    let workspace = place.host("workspace");
    assert!(processes_that_see(&workspace).len() >= 3);
    drop(cell);
    wait_until("its processes are gone", || {
        processes_that_see(&workspace).is_empty()
    })
    .await;
}

pub async fn killed_runner_leaves_nothing(place: Place) {
    // The runner is this test in another process.
    if let Some(folder) = std::env::var_os(FOLDER) {
        return run_until_killed(place, folder).await;
    }
    let workspace = place.host("workspace");
    let module = match place.sandbox.name() {
        "docker" => "docker",
        _ => "namespaces",
    };
    let test = format!("sandbox::{module}::killed_runner_leaves_nothing");
    let mut runner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &test])
        .env(FOLDER, &workspace)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the program has started", || {
        workspace.join("started").exists()
    })
    .await;
    let inside = processes_that_see(&workspace);
    assert!(inside.len() >= 3, "process 1 and two programs: {inside:?}");
    let groups = control_groups_of(&inside);
    let folders = folders_of(runner.id());
    runner.kill().unwrap();
    runner.wait().unwrap();
    wait_until("its processes are gone", || {
        processes_that_see(&workspace).is_empty()
    })
    .await;
    match place.sandbox.name() {
        "docker" => docker_is_clean(&*place.sandbox, runner.id(), &folders[0]).await,
        _ => {
            wait_until("its control groups are gone", || {
                groups.iter().all(|group| !group.exists())
            })
            .await;
            // What a killed process outside the cell would have left. Runs of other tests sweep too: a group that one of
            // them is taking away is busy for the others, and is seen until it has gone.
            if let Some(group) = groups.first() {
                std::fs::create_dir(group).unwrap();
                let deadline = Instant::now() + PATIENCE;
                while group.exists() {
                    assert!(Instant::now() < deadline, "{}: not swept", group.display());
                    place.sandbox.sweep().await.unwrap();
                }
                groups_with_programs_are_swept(group);
            }
        }
    }
}

/// A group that still has a program in it, and the same where another login or another job of a service has its groups.
fn groups_with_programs_are_swept(group: &Path) {
    let name = group.file_name().unwrap();
    let elsewhere = group.with_file_name(format!("elsewhere-{}", std::process::id()));
    let left = [group.to_owned(), elsewhere.join(name)];
    std::fs::create_dir(&elsewhere).unwrap();
    let mut programs = Vec::new();
    for group in &left {
        std::fs::create_dir(group).unwrap();
        let program = std::process::Command::new("sleep").arg("600").spawn();
        let program = program.unwrap();
        let entered = std::fs::write(group.join("cgroup.procs"), program.id().to_string());
        programs.push((program, entered.is_ok()));
    }
    let deadline = Instant::now() + PATIENCE;
    while let Some(group) = left.iter().find(|group| group.exists()) {
        assert!(Instant::now() < deadline, "{}: not swept", group.display());
        left_groups::sweep();
    }
    for (mut program, entered) in programs {
        if !entered {
            program.kill().unwrap();
        }
        let status = program.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "{status}");
    }
    std::fs::remove_dir(&elsewhere).unwrap();
}

/// `folder` is the killed runner's own, and says who made it. Runs of other tests sweep too, so that who took what away is
/// not told.
async fn docker_is_clean(sandbox: &dyn Sandbox, runner: u32, folder: &Path) {
    use bollard::query_parameters::{CreateContainerOptions, ListContainersOptionsBuilder};
    let client = bollard::Docker::connect_with_unix_defaults().unwrap();
    let labelled = |label: String| {
        let filters = std::collections::HashMap::from([("label", vec![label])]);
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let client = client.clone();
        async move { client.list_containers(Some(options)).await.unwrap() }
    };
    let deadline = Instant::now() + PATIENCE;
    let label = format!("doc2harness.pid={runner}");
    loop {
        let left = labelled(label.clone()).await;
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "{left:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // A container that its daemon forgot is left too.
    let maker = |folder: &Path| {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let (maker, _) = name.rsplit_once('-').unwrap();
        maker.strip_prefix("doc2harness-").unwrap().to_owned()
    };
    let dead = maker(folder);
    let alive = maker(&folders_of(std::process::id())[0]);
    let mut made = Vec::new();
    for maker in [&dead, &alive] {
        let body = bollard::models::ContainerCreateBody {
            image: Some(DockerConfig::default().image),
            cmd: Some(vec!["/bin/true".into()]),
            labels: Some([("doc2harness.maker".to_string(), maker.clone())].into()),
            ..Default::default()
        };
        made.push(
            client
                .create_container(None::<CreateContainerOptions>, body)
                .await
                .unwrap()
                .id,
        );
    }
    let deadline = Instant::now() + PATIENCE;
    while folder.exists()
        || !labelled(format!("doc2harness.maker={dead}"))
            .await
            .is_empty()
    {
        assert!(Instant::now() < deadline, "{dead}: not swept");
        sandbox.sweep().await.unwrap();
    }
    let left = labelled(format!("doc2harness.maker={alive}")).await;
    assert!(
        left.iter()
            .any(|container| container.id.as_ref() == made.last()),
        "a living run's container was swept"
    );
    client.remove_container(&made[1], None).await.unwrap();
}

fn folders_of(pid: u32) -> Vec<PathBuf> {
    let entries = std::env::temp_dir()
        .read_dir()
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let prefix = format!("doc2harness-{pid}-");
    entries
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
        })
        .collect()
}

/// Host processes in whose mount table a folder appears.
fn processes_that_see(folder: &Path) -> Vec<u32> {
    let name = folder.to_str().unwrap();
    let pids = Path::new("/proc")
        .read_dir()
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/mountinfo"))
            .is_ok_and(|mounts| mounts.contains(name))
    })
    .collect()
}

/// The control groups that hold these processes, apart from those that hold ours.
fn control_groups_of(pids: &[u32]) -> Vec<PathBuf> {
    let found = std::process::Command::new("find")
        .args(["/sys/fs/cgroup", "-name", "doc2harness-*"])
        .output()
        .unwrap();
    let all = String::from_utf8(found.stdout).unwrap();
    let is_theirs = |group: &PathBuf| {
        let members = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        members
            .lines()
            .any(|line| line.parse().is_ok_and(|pid: u32| pids.contains(&pid)))
    };
    all.lines().map(PathBuf::from).filter(is_theirs).collect()
}

async fn wait_until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
