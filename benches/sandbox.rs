//! What a cell costs: `python3 -c pass` bare, in a cell of each sandbox, and through the plain Docker API.
//!
//! `cargo bench --bench sandbox -- [ROUNDS]`. All ways take turns within a round, so that a busy machine is busy for
//! each. Processor time counts this process and its children; for Docker also the daemon, containerd, shims and
//! containers, which takes root and control groups. Work that the kernel does later on its own account (freeing
//! namespaces and control groups) is in no figure.

mod limits;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptions, StartContainerOptions, WaitContainerOptions,
};
use doc2harness::adapters::sandbox::{
    CellSpec, Docker, DockerConfig, Exit, Launch, Limits, Namespaces, Sandbox,
};
use futures_util::StreamExt;
use limits::limit;
use nix::sys::resource::{UsageWho, getrusage};

const PIPELINE: &str = env!("CARGO_BIN_EXE_pipeline");
const PYTHON: [&str; 3] = ["/usr/bin/python3", "-c", "pass"];

/// Processor time and wall time of one run, in ms.
type Cost = (f64, f64);

fn main() {
    let rounds = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(30);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(bench(rounds));
    limits::end();
}

async fn bench(rounds: usize) {
    let namespaces = Namespaces::new(PIPELINE);
    let config = DockerConfig {
        program: PIPELINE.into(),
        ..DockerConfig::default()
    };
    let image = config.image.clone();
    let docker = Docker::connect(config).await;
    if let Err(error) = &docker {
        println!("without docker: {error}");
    }
    let engine = if docker.is_ok() { Engine::find() } else { None };
    let client = bollard::Docker::connect_with_unix_defaults();
    let mut costs: BTreeMap<&str, Vec<Cost>> = BTreeMap::new();
    // The first round warms caches up.
    for round in 0..=rounds {
        let mut note = |way, cost| {
            if round > 0 {
                costs.entry(way).or_default().push(cost);
            }
        };
        note("1 bare", measure(None, async { bare() }).await);
        note("2 namespace cell", measure(None, cell(&namespaces)).await);
        if let (Ok(docker), Ok(client)) = (&docker, &client) {
            note(
                "3 docker floor",
                measure(engine.as_ref(), floor(client, &image)).await,
            );
            note(
                "4 docker cell",
                measure(engine.as_ref(), cell(docker)).await,
            );
        }
    }
    drop(engine);
    report(rounds, &costs);
}

async fn measure(engine: Option<&Engine>, work: impl Future<Output = ()>) -> Cost {
    let before = cpu() + engine.map_or(Duration::ZERO, Engine::cpu);
    let started = Instant::now();
    work.await;
    let wall = started.elapsed();
    let used = cpu() + engine.map_or(Duration::ZERO, Engine::cpu) - before;
    (used.as_secs_f64() * 1e3, wall.as_secs_f64() * 1e3)
}

fn bare() {
    let output = std::process::Command::new(PYTHON[0])
        .args(&PYTHON[1..])
        .output()
        .expect("python3 runs");
    assert!(output.status.success());
}

async fn cell(sandbox: &dyn Sandbox) {
    let spec = CellSpec {
        label: "bench".into(),
        mounts: Vec::new(),
        folders: ["/workspace", "/outside", "/home/user"]
            .map(PathBuf::from)
            .to_vec(),
        limits: Limits::default(),
        port: 8400,
    };
    let mut cell = sandbox
        .open(spec)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let launch = Launch {
        argv: PYTHON.map(String::from).to_vec(),
        env: Vec::new(),
        cwd: "/tmp".into(),
        stdin: Vec::new(),
        time_limit: Duration::from_secs(60),
        leave_running: false,
    };
    let ended = cell
        .launch(launch)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(ended.exit, Exit::Code(0));
    cell.close().await.unwrap_or_else(|error| panic!("{error}"));
}

/// The least that Docker can do: create, start, wait, remove.
async fn floor(client: &bollard::Docker, image: &str) {
    let body = ContainerCreateBody {
        image: Some(image.into()),
        cmd: Some(PYTHON.map(String::from).to_vec()),
        host_config: Some(HostConfig {
            network_mode: Some("none".into()),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let id = client
        .create_container(None::<CreateContainerOptions>, body)
        .await
        .expect("create")
        .id;
    let mut wait = client.wait_container(&id, None::<WaitContainerOptions>);
    client
        .start_container(&id, None::<StartContainerOptions>)
        .await
        .expect("start");
    assert_eq!(
        wait.next()
            .await
            .expect("an answer")
            .expect("exit code 0")
            .status_code,
        0
    );
    client.remove_container(&id, None).await.expect("remove");
}

/// Of this process and of its children that have ended.
fn cpu() -> Duration {
    let usage = |who| {
        let usage = getrusage(who).expect("getrusage knows this process");
        let time = |t: nix::sys::time::TimeVal| {
            Duration::new(t.tv_sec() as u64, t.tv_usec() as u32 * 1000)
        };
        time(usage.user_time()) + time(usage.system_time())
    };
    usage(UsageWho::RUSAGE_SELF) + usage(UsageWho::RUSAGE_CHILDREN)
}

/// Docker's processes, moved for the time of the measurement into a control group that adds up what they use. Shims and
/// what they start are born into it; containers are counted by the group that Docker makes for them.
struct Engine {
    folder: PathBuf,
    containers: PathBuf,
    moved: Vec<(u32, PathBuf)>,
}

impl Engine {
    fn find() -> Option<Self> {
        let accounting = Path::new("/sys/fs/cgroup/cpuacct");
        let (root, controller) = if accounting.exists() {
            (accounting.to_path_buf(), "cpuacct")
        } else {
            (PathBuf::from("/sys/fs/cgroup"), "")
        };
        let folder = root.join("doc2harness-bench");
        if let Err(error) = fs::create_dir_all(&folder) {
            println!(
                "processor time of docker's own processes is left out: {}: {error}",
                folder.display()
            );
            return None;
        }
        let mut engine = Engine {
            containers: root.join("docker"),
            folder,
            moved: Vec::new(),
        };
        for entry in Path::new("/proc")
            .read_dir()
            .expect("/proc can be read")
            .flatten()
        {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<u32>().ok())
            else {
                continue;
            };
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            if !matches!(name.trim(), "dockerd" | "containerd") {
                continue;
            }
            let groups = fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
            let home = groups.lines().find_map(|line| {
                let (names, path) = line.split_once(':')?.1.split_once(':')?;
                names
                    .split(',')
                    .any(|name| name == controller)
                    .then(|| root.join(path.trim_start_matches('/')))
            });
            if let Some(home) = home
                .filter(|_| fs::write(engine.folder.join("cgroup.procs"), pid.to_string()).is_ok())
            {
                engine.moved.push((pid, home));
            }
        }
        println!(
            "processor time of docker: {} daemons in {}, and containers",
            engine.moved.len(),
            engine.folder.display()
        );
        Some(engine)
    }

    fn cpu(&self) -> Duration {
        used(&self.folder) + used(&self.containers)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for (pid, home) in &self.moved {
            let _ = fs::write(home.join("cgroup.procs"), pid.to_string());
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Processor time of a control group since it was made; of both versions.
fn used(group: &Path) -> Duration {
    if let Ok(ns) = fs::read_to_string(group.join("cpuacct.usage")) {
        return Duration::from_nanos(ns.trim().parse().unwrap_or(0));
    }
    let stat = fs::read_to_string(group.join("cpu.stat")).unwrap_or_default();
    let us = stat
        .lines()
        .find_map(|line| line.strip_prefix("usage_usec ")?.parse().ok());
    Duration::from_micros(us.unwrap_or(0))
}

fn report(rounds: usize, costs: &BTreeMap<&str, Vec<Cost>>) {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "{rounds} rounds, load {}",
        load.split(' ').next().unwrap_or_default()
    );
    println!(
        "{:<18} {:>12} {:>12} {:>12} {:>12}",
        "", "cpu ms med", "min", "wall ms med", "min"
    );
    let mut medians = BTreeMap::new();
    for (way, costs) in costs {
        let column = |pick: fn(&Cost) -> f64| {
            let mut values: Vec<f64> = costs.iter().map(pick).collect();
            values.sort_by(f64::total_cmp);
            (values[values.len() / 2], values[0])
        };
        let (cpu, wall) = (column(|cost| cost.0), column(|cost| cost.1));
        println!(
            "{:<18} {:>12.1} {:>12.1} {:>12.1} {:>12.1}",
            &way[2..],
            cpu.0,
            cpu.1,
            wall.0,
            wall.1
        );
        medians.insert(&way[2..], (cpu.0, wall.0));
    }
    let difference = medians["namespace cell"].0 - medians["bare"].0;
    println!(
        "namespace cell: {difference:+.1} ms of processor time over bare ({})",
        limit(difference, 15.0)
    );
    if let (Some(floor), Some(cell)) = (medians.get("docker floor"), medians.get("docker cell")) {
        let over = |cell: f64, floor: f64| (cell / floor - 1.0) * 100.0;
        let cpu = over(cell.0, floor.0);
        println!(
            "docker cell: {cpu:+.0} % of processor time over the floor ({}), {:+.0} % of wall time",
            limit(cpu, 10.0),
            over(cell.1, floor.1)
        );
    }
}
