//! Content digests: SHA-256 over parts, each with its length, so that no two lists of parts collide.

use sha2::{Digest as _, Sha256};

/// Takes parts in order.
#[derive(Debug, Clone, Default)]
pub struct Digester(Sha256);

impl Digester {
    pub fn part(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// 64 lower-case hexadecimal digits.
    pub fn finish(self) -> String {
        self.0
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// The digest of a list of parts.
pub fn of<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> String {
    let mut digester = Digester::default();
    for part in parts {
        digester.part(part);
    }
    digester.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_together() {
        assert_eq!(of(["ab", "c"]), of(["ab", "c"]));
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
        assert_ne!(of(["ab"]), of(["ab", ""]));
        assert_eq!(of(["ab"]).len(), 64);
    }
}
