//! Folders of a cell's own: bounded, of the cell's user, readable when the cell is gone.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use doc2harness::adapters::folders::{Folders, acting_as};
use doc2harness::adapters::sandbox::{Cell, CellSpec, Exit, Limits};

use super::{Place, python, sh, text};

/// A cell whose folders, `/tmp` and `/dev/shm` are small.
async fn open(place: &Place) -> Cell {
    let limits = Limits {
        folder_mib: 2,
        tmp_mib: 2,
        folder_files: 50,
        ..Limits::default()
    };
    let spec = CellSpec {
        mounts: Vec::new(),
        folders: Folders::INSIDE.map(PathBuf::from).to_vec(),
        limits,
        ..place.spec()
    };
    place.sandbox.open(spec).await.unwrap()
}

fn path(folder: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", folder.as_raw_fd()).into()
}

pub async fn folders_are_filled_before_and_read_after(place: Place) {
    let mut cell = open(&place).await;
    let [workspace, _, home] = <[OwnedFd; 3]>::try_from(cell.take_folders()).unwrap();
    let owner = place.sandbox.owner();
    acting_as(owner, || {
        std::fs::create_dir(path(&home).join("deep")).unwrap();
        std::fs::write(path(&home).join("deep/file"), "laid").unwrap();
    });
    let script = "cat /home/user/deep/file; echo first > note; mkdir -m 000 shut";
    let ended = cell.launch(sh(script)).await.unwrap();
    assert_eq!(text(&ended.stdout), "laid", "{}", text(&ended.stderr));
    let ended = cell
        .launch(sh("cat note; echo second > note"))
        .await
        .unwrap();
    assert_eq!(text(&ended.stdout), "first\n", "of an earlier launch");
    cell.close().await.unwrap();
    acting_as(owner, || {
        let note = path(&workspace).join("note");
        let about = std::fs::metadata(&note).unwrap();
        assert_eq!((about.uid(), about.gid()), owner);
        assert_eq!(std::fs::read_to_string(note).unwrap(), "second\n");
        let shut = std::fs::read_dir(path(&workspace).join("shut")).unwrap_err();
        assert_eq!(
            shut.kind(),
            std::io::ErrorKind::PermissionDenied,
            "the rights of the owner only"
        );
    });
    let mut cell = open(&place).await;
    let ended = cell
        .launch(sh("ls -A . /outside /home/user"))
        .await
        .unwrap();
    assert_eq!(
        text(&ended.stdout),
        ".:\n\n/home/user:\n\n/outside:\n",
        "another cell's are empty"
    );
    cell.close().await.unwrap();
}

pub async fn folders_are_full_at_their_limits(place: Place) {
    const FILL: &str = r#"
import errno, os
for place in ("/workspace", "/outside", "/home/user", "/tmp", "/dev/shm"):
    try:
        with open(place + "/big", "wb", 0) as file:
            while True: file.write(bytes(65536))
    except OSError as error:
        print(place, errno.errorcode[error.errno], os.stat(place + "/big").st_size >> 20)
    os.remove(place + "/big")
    try:
        for n in range(1000): os.mkdir(f"{place}/{n}")
    except OSError as error:
        print(place, errno.errorcode[error.errno], 40 < n < 60)
    for n in range(n): os.rmdir(f"{place}/{n}")
"#;
    let mut cell = open(&place).await;
    let ended = cell.launch(python(FILL)).await.unwrap();
    let expected: String = ["/workspace", "/outside", "/home/user", "/tmp", "/dev/shm"]
        .iter()
        .map(|place| format!("{place} ENOSPC 2\n{place} ENOSPC True\n"))
        .collect();
    assert_eq!(text(&ended.stdout), expected, "{}", text(&ended.stderr));
    assert_eq!(ended.exit, Exit::Code(0));
    cell.close().await.unwrap();
}

pub async fn folders_stay_where_they_are(place: Place) {
    let mut cell = open(&place).await;
    let script = "import os
def tried(act):
    try: act(); return 'done'
    except OSError as error: return error.errno
print(tried(lambda: os.rmdir('/workspace')), tried(lambda: os.rename('/workspace', '/tmp/w')),
      tried(lambda: os.symlink('/etc', '/workspace2')), tried(lambda: os.mknod('dev', 0o20666, 259)))";
    let ended = cell.launch(python(script)).await.unwrap();
    // Busy or of a read-only file system, whichever the kernel looks at first; devices are root's to make.
    let said = text(&ended.stdout);
    assert!(
        [
            "16 16 30 1\n",
            "30 30 30 1\n",
            "16 18 30 1\n",
            "30 18 30 1\n"
        ]
        .contains(&said),
        "{said}"
    );
    cell.close().await.unwrap();
}
