//! Acting with the rights of the user of the cells while files are made and read.

use nix::unistd::{Gid, Uid, setfsgid, setfsuid};

/// Runs `act` with the file rights of a user and group, in this thread. Only root changes anything by it: anybody else
/// is that user already. The files of a cell's own folders can be made by nobody but their owner, and reading what a
/// candidate left takes no more rights than the candidate had.
pub fn acting_as<T>((uid, gid): (u32, u32), act: impl FnOnce() -> T) -> T {
    let gid = setfsgid(Gid::from_raw(gid));
    let uid = setfsuid(Uid::from_raw(uid));
    let _back = Back { uid, gid };
    act()
}

/// Who we were.
struct Back {
    uid: Uid,
    gid: Gid,
}

impl Drop for Back {
    fn drop(&mut self) {
        setfsuid(self.uid);
        setfsgid(self.gid);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn files_belong_to_whom_we_act_as() {
        let me = (
            nix::unistd::geteuid().as_raw(),
            nix::unistd::getegid().as_raw(),
        );
        let who = if me.0 == 0 { (1000, 1000) } else { me };
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::chown(folder.path(), Some(who.0), Some(who.1)).expect("gives");
        let make = |name: &str| std::fs::write(folder.path().join(name), "").expect("writes");
        let owner = |name: &str| {
            let about = std::fs::metadata(folder.path().join(name)).expect("reads");
            (about.uid(), about.gid())
        };
        acting_as(who, || make("theirs"));
        let failed = std::panic::catch_unwind(|| acting_as(who, || panic!("in between")));
        make("ours");
        assert!(failed.is_err());
        assert_eq!((owner("theirs"), owner("ours")), (who, me));
    }
}
