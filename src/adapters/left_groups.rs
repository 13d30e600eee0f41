//! Control groups that killed runs left anywhere on this machine. The sandbox sweeps where it makes groups itself; a run
//! that was killed may have lived in another group than this process does: another login, another job of a service.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::sandbox::Maker;

/// Names of the sandbox's groups begin with this and end with their maker.
const PREFIX: &str = "doc2harness-";

/// Removes groups whose maker is dead, with the processes that are left in them. Returns how many.
pub fn sweep() -> usize {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    hierarchies(&mounts)
        .iter()
        .map(|mount| sweep_below(mount))
        .sum()
}

/// Where hierarchies of both versions are mounted, from the text of `/proc/self/mountinfo`.
fn hierarchies(mounts: &str) -> Vec<PathBuf> {
    let lines = mounts
        .lines()
        .filter_map(|line| line.split_once(" - "))
        .filter(|(_, right)| right.starts_with("cgroup ") || right.starts_with("cgroup2 "));
    lines
        .filter_map(|(left, _)| left.split(' ').nth(4).map(PathBuf::from))
        .collect()
}

fn sweep_below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    groups
        .map(|group| {
            let name = group.file_name();
            let maker = name
                .to_str()
                .and_then(|name| Maker::parse(name.strip_prefix(PREFIX)?));
            match maker.is_some_and(|maker| maker.is_dead()) {
                true => usize::from(remove(&group.path())),
                false => sweep_below(&group.path()),
            }
        })
        .sum()
}

/// Says whether this did it.
fn remove(group: &Path) -> bool {
    let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    // Processes that this one cannot name are listed as 0.
    let members = members.lines().filter_map(|line| line.parse().ok());
    for pid in members.filter(|pid: &i32| *pid > 0) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    // The kernel lets go of the last process a moment after it is gone for everybody else.
    for _ in 0..100 {
        match fs::remove_dir(group) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(Duration::from_millis(2));
            }
            removed => return removed.is_ok(),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_both_versions_are_known() {
        let mounts = "25 1 0:5 / / rw - ext4 /dev/vda rw\n\
                      30 25 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let expected = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"];
        assert_eq!(hierarchies(mounts), expected.map(PathBuf::from));
    }
}
