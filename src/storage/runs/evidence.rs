//! Evidence of a run by content: `evidence/ab/abcd….json.gz`, named by the SHA-256 of its JSON.

use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::{RunError, file_error, hex};
use crate::domain::evidence::Evidence;

/// Files that are being written begin so; those of a killed process are removed when the run goes on.
const DRAFT: &str = ".draft-";

/// Where a run keeps evidence. Several threads may store at the same time.
#[derive(Debug, Clone)]
pub struct EvidenceStore {
    folder: PathBuf,
}

impl EvidenceStore {
    pub(super) fn new(run: &Path) -> Self {
        Self {
            folder: run.join("evidence"),
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
        let plain = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let path = self.path(if plain { digest } else { "none" });
        let packed = std::fs::read(&path).map_err(|_| RunError::NoEvidence {
            folder: self.folder.clone(),
            digest: digest.to_owned(),
        })?;
        let broken = |message: String| RunError::Broken {
            path: path.clone(),
            message,
        };
        let mut json = Vec::new();
        GzDecoder::new(&packed[..])
            .read_to_end(&mut json)
            .map_err(|error| broken(error.to_string()))?;
        if hex(&Sha256::digest(&json)) != digest {
            return Err(broken("its content does not have this digest".to_owned()));
        }
        serde_json::from_slice(&json).map_err(|error| broken(error.to_string()))
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
