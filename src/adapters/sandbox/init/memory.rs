//! The memory limit as process 1 sees it: the kernel's count of kills where a control group exists, else the sum of
//! what the processes of the cell hold.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use super::super::cgroup;
use super::super::spec::Limits;

/// How often the processes are added up when no control group does it for us.
pub const TICK: Duration = Duration::from_millis(100);

/// Tells whether the cell reached its memory limit.
#[derive(Debug)]
pub enum Watch {
    /// The kernel enforces the limit and counts its kills in this file.
    Kernel(File),
    /// We enforce it.
    Ours { limit_kib: u64 },
}

impl Watch {
    pub fn ours(limits: &Limits) -> Self {
        Watch::Ours {
            limit_kib: limits.memory_mib * 1024,
        }
    }

    /// In a container the kernel's files are at fixed places.
    pub fn in_container(limits: &Limits) -> Self {
        [
            "/sys/fs/cgroup/memory.events",
            "/sys/fs/cgroup/memory/memory.oom_control",
        ]
        .iter()
        .find_map(|path| File::open(path).ok())
        .map_or_else(|| Watch::ours(limits), Watch::Kernel)
    }

    /// Kills by the kernel so far; 0 when we enforce the limit ourselves.
    pub fn kills(&self) -> u64 {
        let Watch::Kernel(file) = self else { return 0 };
        let mut text = [0; 1024];
        let n = file.read_at(&mut text, 0).unwrap_or(0);
        cgroup::kills(&String::from_utf8_lossy(&text[..n])).unwrap_or(0)
    }

    /// Whether the limit is ours to enforce and has been passed. Pages shared between processes count once.
    pub fn is_passed(&self) -> bool {
        let Watch::Ours { limit_kib } = self else {
            return false;
        };
        let pids = other_processes();
        let resident: u64 = pids.iter().map(|pid| resident_kib(*pid)).sum();
        resident > *limit_kib
            && pids.iter().map(|pid| proportional_kib(*pid)).sum::<u64>() > *limit_kib
    }

    pub fn needs_ticks(&self) -> bool {
        matches!(self, Watch::Ours { .. })
    }
}

fn other_processes() -> Vec<u32> {
    let Ok(entries) = Path::new("/proc").read_dir() else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != 1)
        .collect()
}

fn resident_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    text.split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok())
        .unwrap_or(0)
        * 4
}

/// The share of memory that would be free if this process ended. A process that ended meanwhile has none.
fn proportional_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    text.lines()
        .find_map(|line| {
            line.strip_prefix("Pss:")?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()
        })
        .unwrap_or_else(|| resident_kib(pid))
}
