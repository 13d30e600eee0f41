//! Evidence of a run by content: `evidence/ab/abcd….json.gz`, named by the SHA-256 of its JSON.

use std::cmp::Ordering;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::{RunError, file_error, hex};
use crate::domain::evidence::Evidence;

/// Files that are being written begin so; those of a killed process are removed when the run goes on.
const DRAFT: &str = ".draft-";
/// More than any trial can leave; what unpacks to more is not read to its end.
const MOST_BYTES: u64 = 1 << 30;

/// Where a run keeps evidence. Several threads may store at the same time.
#[derive(Debug, Clone)]
pub struct EvidenceStore {
    folder: PathBuf,
}

impl EvidenceStore {
    /// The folder `evidence` below that of a run or of an attempt at a shard.
    pub(in crate::storage) fn below(folder: &Path) -> Self {
        Self {
            folder: folder.join("evidence"),
        }
    }

    /// Stores evidence by content and returns its digest when it is on the disk; the same evidence is stored once.
    pub fn store(&self, evidence: &Evidence) -> Result<String, RunError> {
        let write = || -> std::io::Result<String> {
            let draft = tempfile::Builder::new()
                .prefix(DRAFT)
                .tempfile_in(&self.folder)?;
            // Packed and digested piece by piece: what a candidate left may be large.
            let packer = GzEncoder::new(draft, Compression::fast());
            let mut pieces = BufWriter::with_capacity(
                1 << 16,
                Packing {
                    digester: Sha256::new(),
                    packer,
                },
            );
            serde_json::to_writer(&mut pieces, evidence)?;
            let packing = pieces.into_inner().map_err(|error| error.into_error())?;
            let Packing { digester, packer } = packing;
            let draft = packer.finish()?;
            let digest = hex(&digester.finalize());
            let path = self.path(&digest);
            if !path.exists() {
                std::fs::create_dir_all(path.parent().expect("evidence lies in a folder"))?;
                draft.as_file().sync_data()?;
                draft.persist(&path)?;
            }
            Ok(digest)
        };
        write().map_err(|source| file_error(&self.folder, source))
    }

    pub fn read(&self, digest: &str) -> Result<Evidence, RunError> {
        let path = self.path(if is_digest(digest) { digest } else { "none" });
        let file = File::open(&path).map_err(|_| RunError::NoEvidence {
            folder: self.folder.clone(),
            digest: digest.to_owned(),
        })?;
        unpacked(file, digest).map_err(|message| RunError::Broken { path, message })
    }

    /// Whether the evidence that somebody else wrote is there as a plain file, has its digest and is evidence; the error
    /// says what is wrong, and where.
    pub fn verify(&self, digest: &str) -> Result<(), String> {
        let path = self.path(digest);
        let wrong = |why: &str| format!("{}: {why}", path.display());
        let shelf = path.parent().expect("evidence lies in a folder");
        let is_folder = |folder: &Path| {
            let about = folder.symlink_metadata();
            about.is_ok_and(|about| about.is_dir())
        };
        if !is_digest(digest) || !is_folder(&self.folder) || !is_folder(shelf) {
            return Err(wrong("is not there"));
        }
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&path)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => wrong("is not there"),
                _ => wrong(&error.to_string()),
            })?;
        let about = file.metadata().map_err(|error| wrong(&error.to_string()))?;
        if !about.is_file() {
            return Err(wrong("is no plain file"));
        }
        unpacked(file, digest).map_err(|why| wrong(&why)).map(drop)
    }

    /// Whether the packed files of a digest in two stores are the same to the byte; which comes first is told by them.
    pub fn compare(&self, other: &Self, digest: &str) -> Ordering {
        let packed = |store: &Self| std::fs::read(store.path(digest)).ok();
        packed(self).cmp(&packed(other))
    }

    /// Takes over evidence from another store of the same disk or of another one.
    pub(super) fn take(&self, from: &Self, digest: &str) -> std::io::Result<()> {
        let (source, target) = (from.path(digest), self.path(digest));
        std::fs::create_dir_all(target.parent().expect("evidence lies in a folder"))?;
        match std::fs::hard_link(&source, &target) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            // On another disk, or somebody else's file.
            Err(_) => std::fs::copy(&source, &target).map(drop),
            Ok(()) => Ok(()),
        }
    }

    /// Removes what a killed process was writing. Nobody may store meanwhile.
    pub(super) fn sweep(&self) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(DRAFT) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    pub(super) fn path(&self, digest: &str) -> PathBuf {
        let shelf = digest.get(..2).unwrap_or("no");
        self.folder.join(shelf).join(format!("{digest}.json.gz"))
    }
}

/// Whether a text has lower-case hexadecimal digits only.
pub fn is_hex(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text is a SHA-256 in lower-case hexadecimal, so that it names a file and no path.
pub fn is_digest(text: &str) -> bool {
    text.len() == 64 && is_hex(text)
}

/// Evidence from its packed file, in which nothing else may lie.
fn unpacked(file: File, digest: &str) -> Result<Evidence, String> {
    let mut packed = GzDecoder::new(BufReader::with_capacity(1 << 16, file));
    let mut json = Vec::new();
    let said = |error: std::io::Error| error.to_string();
    packed
        .by_ref()
        .take(MOST_BYTES)
        .read_to_end(&mut json)
        .map_err(said)?;
    if hex(&Sha256::digest(&json)) != digest {
        return Err("its content does not have this digest".to_owned());
    }
    if !packed.into_inner().fill_buf().map_err(said)?.is_empty() {
        return Err("goes on behind its content".to_owned());
    }
    serde_json::from_slice(&json).map_err(|error| error.to_string())
}

struct Packing<W: Write> {
    digester: Sha256,
    packer: GzEncoder<W>,
}

impl<W: Write> Write for Packing<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.packer.write_all(bytes)?;
        self.digester.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.packer.flush()
    }
}
