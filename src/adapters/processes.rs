//! What a process of this machine and everything below it does: how much processor time it has used, and whether it
//! wants more right now. Read from `/proc`; nothing is asked of the process.

use std::fs;
use std::time::Duration;

/// Of a process and all its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// User and system, in the kernel's clock ticks, those of ended children included.
    pub cpu: Duration,
    /// One of them runs, waits for a core, or waits for the disk.
    pub is_busy: bool,
}

/// None when the process is gone, or dead and not yet waited for.
pub fn usage(pid: u32) -> Option<Usage> {
    let mut usage = Usage {
        cpu: Duration::ZERO,
        is_busy: false,
    };
    (add(pid, &mut usage)? != 'Z').then_some(usage)
}

/// How many threads of this machine run or want to, the one that asks left out. None where the kernel does not say.
pub fn n_runnable() -> Option<usize> {
    runnable(&fs::read_to_string("/proc/loadavg").ok()?)
}

/// Returns the state of the process; none when it is gone.
fn add(pid: u32, usage: &mut Usage) -> Option<char> {
    let (state, ticks) = parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    usage.is_busy |= matches!(state, 'R' | 'D');
    usage.cpu += TICK * ticks;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            if let Ok(child) = child.parse() {
                add(child, usage);
            }
        }
    }
    Some(state)
}

fn runnable(loadavg: &str) -> Option<usize> {
    let (now, _) = loadavg.split(' ').nth(3)?.split_once('/')?;
    now.parse::<usize>().ok()?.checked_sub(1)
}

/// A clock tick of `/proc`, which is the same on all machines that Linux supports today.
const TICK: Duration = Duration::from_millis(10);

/// State, and ticks of itself and of its ended children.
fn parse(stat: &str) -> Option<(char, u32)> {
    // The second field, the name, may hold anything but ends with the last parenthesis.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let state = fields.first()?.chars().next()?;
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u32>());
    Some((state, ticks.sum::<Result<u32, _>>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read_whatever_the_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 3 4 5 6 20 0 1 0 9 1 1";
        assert_eq!(parse(stat), Some(('S', 18)));
        assert_eq!(parse("7 (a) S 1"), None);
        assert_eq!(runnable("0.50 0.40 0.30 3/207 29872\n"), Some(2));
        assert_eq!(runnable("0.50 0.40 0.30\n"), None);
        assert!(n_runnable().is_some());
    }

    #[test]
    fn a_sleeper_wants_nothing_and_a_loop_below_a_shell_is_seen() {
        let shell = |command: &str| {
            std::process::Command::new("/bin/sh")
                .args(["-c", command])
                .spawn()
                .expect("starts")
        };
        let mut sleeper = shell("sleep 60 & wait");
        let mut looper = shell("(while :; do :; done) & wait");
        let began = std::time::Instant::now();
        // On a busy machine it may take a while to get a core.
        let used = |pid: u32| usage(pid).expect("lives").cpu;
        while used(looper.id()) < Duration::from_millis(50) {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(usage(looper.id()).expect("lives").is_busy);
        assert!(used(sleeper.id()) < Duration::from_millis(50));
        for child in [&mut sleeper, &mut looper] {
            let below = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()));
            for pid in below.expect("reads").split_whitespace() {
                let pid = nix::unistd::Pid::from_raw(pid.parse().expect("a number"));
                nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("kills");
            }
            child.wait().expect("waits");
            assert_eq!(usage(child.id()), None);
        }
    }
}
