//! Control groups, where the machine grants them to us: limits for a cell as a whole, and the kernel's count of what it
//! killed for want of memory. Both hierarchies, version 1 and version 2.
//!
//! The process outside a cell makes and removes its groups, so that they go away even when the runner was killed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::Pid;

use super::maker::Maker;
use super::spec::Limits;

/// Names of our groups begin with this and end with their maker.
const PREFIX: &str = "doc2harness-";

/// The groups of one cell. They are removed when this is dropped.
#[derive(Debug)]
pub struct Cgroup {
    folders: Vec<PathBuf>,
    events: PathBuf,
}

/// A place where groups can be made.
#[derive(Debug, PartialEq, Eq)]
struct Parent {
    folder: PathBuf,
    controllers: Vec<String>,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Cgroup {
    /// Makes the groups of a cell. `None` when the machine does not let us limit memory this way; the other limits are
    /// set where possible.
    pub fn create(limits: &Limits) -> Option<Self> {
        let name = format!("{PREFIX}{}", Maker::this());
        let mut groups = Cgroup {
            folders: Vec::new(),
            events: PathBuf::new(),
        };
        for parent in parents() {
            let folder = parent.folder.join(&name);
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            groups.folders.push(folder.clone());
            let memory = parent
                .controllers
                .iter()
                .any(|controller| controller == "memory");
            for (file, value, needed) in settings(parent.version, limits) {
                let path = folder.join(file);
                if path.exists() && fs::write(&path, value).is_err() && needed {
                    return None;
                }
            }
            if memory {
                groups.events = folder.join(match parent.version {
                    Version::One => "memory.oom_control",
                    Version::Two => "memory.events",
                });
            }
        }
        groups.events.exists().then_some(groups)
    }

    /// Puts a process, and what it will start, into the groups.
    pub fn add(&self, pid: Pid) -> std::io::Result<()> {
        self.folders
            .iter()
            .try_for_each(|folder| fs::write(folder.join("cgroup.procs"), pid.to_string()))
    }

    /// The file in which the kernel counts kills, see [`kills`].
    pub fn open_events(&self) -> Option<File> {
        File::open(&self.events).ok()
    }
}

/// What is known of groups of version 2 on this machine.
#[derive(Debug)]
pub enum Proof {
    Holds(String),
    Fails(String),
    /// There is no place to try.
    Nowhere(String),
}

/// Makes a group of version 2, puts a process into it, has the kernel empty it, and removes it.
pub fn prove_version_two() -> Proof {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let all = find_parents(&own, &mounts);
    let Some(parent) = all.iter().find(|parent| parent.version == Version::Two) else {
        return Proof::Nowhere("no hierarchy of version 2 is mounted".into());
    };
    let folder = parent.folder.join(format!("{PREFIX}{}", Maker::this()));
    if let Err(error) = fs::create_dir(&folder) {
        return Proof::Nowhere(format!(
            "no group may be made: {}: {error}",
            folder.display()
        ));
    }
    // Removes it on every way out.
    let group = Cgroup {
        folders: vec![folder.clone()],
        events: PathBuf::new(),
    };
    if let Err(error) = enter_and_empty(&group, &folder) {
        return Proof::Fails(format!("{}: {error}", folder.display()));
    }
    let there = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
    let missing: Vec<&str> = ["memory", "pids", "cpu"]
        .into_iter()
        .filter(|name| there.split_whitespace().all(|one| one != *name))
        .collect();
    let done = format!(
        "a group was made, entered, emptied and removed below {}",
        parent.folder.display()
    );
    match missing.as_slice() {
        [] => Proof::Holds(format!("{done}; memory, pids and cpu limit it")),
        missing => Proof::Nowhere(format!(
            "{done}; its limits could not be tried: {} belong to version 1, or to nobody, here",
            missing.join(", ")
        )),
    }
}

fn enter_and_empty(group: &Cgroup, folder: &Path) -> std::io::Result<()> {
    let mut sleeper = std::process::Command::new("/bin/sleep").arg("60").spawn()?;
    let pid = sleeper.id();
    let ended = group
        .add(Pid::from_raw(pid as i32))
        .and_then(|()| fs::read_to_string(folder.join("cgroup.procs")))
        .and_then(
            |members| match members.lines().any(|line| line == pid.to_string()) {
                true => fs::write(folder.join("cgroup.kill"), "1"),
                false => Err(std::io::Error::other("a process did not enter")),
            },
        );
    if ended.is_err() {
        let _ = sleeper.kill();
    }
    sleeper.wait()?;
    ended
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for folder in &self.folders {
            // The kernel lets go of the last process a moment after it is gone for everybody else.
            for _ in 0..100 {
                match fs::remove_dir(folder) {
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    _ => break,
                }
            }
        }
    }
}

/// Removes groups whose maker is dead. Returns how many.
pub fn sweep() -> usize {
    let left = parents()
        .into_iter()
        .filter_map(|parent| parent.folder.read_dir().ok())
        .flatten()
        .flatten();
    left.filter(|entry| {
        let name = entry.file_name();
        let maker = name
            .to_str()
            .and_then(|name| Maker::parse(name.strip_prefix(PREFIX)?));
        let dead = maker.is_some_and(|maker| maker.is_dead());
        dead && fs::remove_dir(entry.path()).is_ok()
    })
    .count()
}

/// The number of kills in the text of `memory.events` or `memory.oom_control`.
pub fn kills(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// File, value, and whether a failure to write it makes the groups useless.
fn settings(version: Version, limits: &Limits) -> Vec<(&'static str, String, bool)> {
    let memory = (limits.memory_mib << 20).to_string();
    // Process 1 is counted too.
    let pids = (limits.pids + 1).to_string();
    let quota = (limits.cpus * 100_000.0) as u64;
    match version {
        Version::One => vec![
            ("memory.limit_in_bytes", memory.clone(), true),
            ("memory.memsw.limit_in_bytes", memory, false),
            ("pids.max", pids, false),
            ("cpu.cfs_quota_us", quota.to_string(), false),
        ],
        Version::Two => vec![
            ("memory.max", memory, true),
            ("memory.swap.max", "0".into(), false),
            ("pids.max", pids, false),
            ("cpu.max", format!("{quota} 100000"), false),
        ],
    }
}

/// Where groups can be made, seen from this process.
fn parents() -> Vec<Parent> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    find_parents(&own, &mounts)
        .into_iter()
        .filter_map(|mut parent| {
            if parent.version == Version::Two {
                let enabled = parent.folder.join("cgroup.subtree_control");
                for controller in ["+memory", "+pids", "+cpu"] {
                    // Refused where groups are not ours to make; then the list below stays without it.
                    let _ = fs::write(&enabled, controller);
                }
                let enabled = fs::read_to_string(enabled).ok()?;
                parent.controllers = enabled.split_whitespace().map(String::from).collect();
            }
            (!parent.controllers.is_empty()).then_some(parent)
        })
        .collect()
}

/// Reads `/proc/self/cgroup` and `/proc/self/mountinfo`. In version 1 our groups are made inside our own; in version 2
/// beside it, because a group with processes in it cannot have others below it. The controllers of version 2 are left
/// empty.
fn find_parents(own: &str, mounts: &str) -> Vec<Parent> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(names), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (version, path) = match names {
            "" => (
                Version::Two,
                Path::new(path).parent().unwrap_or(Path::new("/")),
            ),
            _ if names
                .split(',')
                .any(|name| matches!(name, "memory" | "pids" | "cpu")) =>
            {
                (Version::One, Path::new(path))
            }
            _ => continue,
        };
        let Some(mount) = mount_point(mounts, names) else {
            continue;
        };
        let folder = mount.join(path.strip_prefix("/").unwrap_or(path));
        let controllers = names
            .split(',')
            .filter(|name| !name.is_empty())
            .map(String::from)
            .collect();
        found.push(Parent {
            folder,
            controllers,
            version,
        });
    }
    found
}

/// Where the hierarchy with these controllers is mounted.
fn mount_point(mounts: &str, controllers: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let (kind, options) = (right.next()?, right.nth(1)?);
        let fits = match controllers {
            "" => kind == "cgroup2",
            names => {
                kind == "cgroup"
                    && names
                        .split(',')
                        .all(|name| options.split(',').any(|option| option == name))
            }
        };
        fits.then(|| left.split(' ').nth(4).map(PathBuf::from))
            .flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_one_goes_inside_and_version_two_beside() {
        let own = "4:memory:/a/b\n3:cpuset:/\n2:cpu,cpuacct:/\n0::/user.slice/session-1.scope\n";
        let mounts = "30 25 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let folders: Vec<_> = find_parents(own, mounts)
            .into_iter()
            .map(|parent| parent.folder)
            .collect();
        assert_eq!(
            folders,
            [
                Path::new("/sys/fs/cgroup/memory/a/b"),
                Path::new("/sys/fs/cgroup/cpu,cpuacct"),
                Path::new("/sys/fs/cgroup/unified/user.slice")
            ]
        );
    }

    #[test]
    fn a_group_of_version_two_is_made_entered_emptied_and_removed() {
        let proof = prove_version_two();
        if let Proof::Fails(why) = &proof {
            panic!("{why}");
        }
        // On a machine that lets us, this is more than the absence of a fault.
        if nix::unistd::geteuid().is_root() && Path::new("/sys/fs/cgroup/unified").exists() {
            let (Proof::Holds(seen) | Proof::Nowhere(seen) | Proof::Fails(seen)) = proof;
            assert!(
                seen.starts_with("a group was made, entered, emptied and removed"),
                "{seen}"
            );
        }
    }

    #[test]
    fn each_version_is_told_the_limits_in_its_own_words() {
        let limits = Limits {
            memory_mib: 512,
            pids: 64,
            cpus: 1.5,
            ..Limits::default()
        };
        let told = |version| {
            let lines = settings(version, &limits).into_iter();
            let lines = lines.map(|(file, value, _)| format!("{file} {value}"));
            lines.collect::<Vec<_>>()
        };
        let one = [
            "memory.limit_in_bytes 536870912",
            "memory.memsw.limit_in_bytes 536870912",
            "pids.max 65",
            "cpu.cfs_quota_us 150000",
        ];
        assert_eq!(told(Version::One), one);
        let two = [
            "memory.max 536870912",
            "memory.swap.max 0",
            "pids.max 65",
            "cpu.max 150000 100000",
        ];
        assert_eq!(told(Version::Two), two);
    }

    #[test]
    fn kills_are_read_from_both_versions() {
        assert_eq!(
            kills("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
            Some(3)
        );
        assert_eq!(
            kills("low 0\nhigh 0\nmax 7\noom 2\noom_kill 2\noom_group_kill 0\n"),
            Some(2)
        );
        assert_eq!(kills("under_oom 0\n"), None);
    }
}
