//! Who made something that outlives a killed run, so that it is swept exactly when its maker is dead.
//!
//! A process id alone does not tell: ids are reused, and several machines or containers may share one Docker daemon or
//! one temporary folder, each with its own ids.

use std::fs;
use std::path::Path;

/// One process of this or another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maker {
    pid: u32,
    /// In clock ticks since the machine started.
    started: u64,
    /// Start of the machine and namespace of process ids.
    world: String,
}

impl Maker {
    /// This process.
    pub fn this() -> Self {
        let pid = std::process::id();
        Maker {
            pid,
            started: started(pid).unwrap_or(0),
            world: world(),
        }
    }

    /// Reads what [`Maker::to_string`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        Some(Maker {
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
            world: parts.next()?.into(),
        })
    }

    /// Whether it is certain that this process lives no more. Of strangers nothing is certain.
    pub fn is_dead(&self) -> bool {
        self.world == world() && started(self.pid) != Some(self.started)
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl std::fmt::Display for Maker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}-{}", self.pid, self.started, self.world)
    }
}

/// The host user and group behind user 1000 of a cell: ourselves, unless we may act for others.
pub fn owner() -> (u32, u32) {
    let (uid, gid) = (
        nix::unistd::geteuid().as_raw(),
        nix::unistd::getegid().as_raw(),
    );
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if uid == 0 && maps(&map, ROOTS_OWNER.0) {
        ROOTS_OWNER
    } else {
        (uid, gid)
    }
}

/// The owner when we run as root.
const ROOTS_OWNER: (u32, u32) = (1000, 1000);

/// Whether a user exists in the namespace described by this text of `/proc/self/uid_map`.
fn maps(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line
            .split_whitespace()
            .map(|word| word.parse::<u64>().unwrap_or(0));
        let (first, _, count) = (numbers.next(), numbers.next(), numbers.next().unwrap_or(0));
        first.is_some_and(|first| (first..first + count).contains(&u64::from(id)))
    })
}

/// When a living process started.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the name, may hold anything but ends with the last parenthesis.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn world() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link(Path::new("/proc/self/ns/pid")).unwrap_or_default();
    let digits: String = namespace
        .to_string_lossy()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    format!(
        "{}-{digits}",
        boot.trim().split('-').next().unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_living_the_dead_and_strangers() {
        let this = Maker::this();
        assert!(!this.is_dead());
        assert_eq!(Maker::parse(&this.to_string()), Some(this.clone()));
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let gone = Maker {
            pid: child.id(),
            started: started(child.id()).unwrap_or(1),
            ..this.clone()
        };
        child.wait().unwrap();
        assert!(gone.is_dead());
        assert!(
            Maker {
                started: this.started + 1,
                ..this.clone()
            }
            .is_dead(),
            "an id used again"
        );
        assert!(
            !Maker {
                world: "elsewhere-1".into(),
                ..gone
            }
            .is_dead()
        );
    }

    #[test]
    fn root_of_a_small_user_namespace_cannot_act_for_others() {
        assert!(maps("         0          0 4294967295\n", 1000));
        assert!(!maps("         0       1001          1\n", 1000));
        assert!(maps("0 1001 1\n1 100000 65536\n", 1000));
    }
}
