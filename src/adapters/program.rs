//! The running program as a file: which build of it this is.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256};

/// Names the build of the running program: `build-id:…` as its linker drew it from all that it linked, or, where it did
/// not, `sha256:…` of the file. Two builds of one version differ in it unless they are the same to the byte; a stripped
/// copy does not.
pub fn build() -> io::Result<String> {
    let mut file = File::open("/proc/self/exe")?;
    if let Some(id) = build_id(&file)? {
        return Ok(format!("build-id:{}", hex(&id)));
    }
    let mut digester = Sha256::new();
    let mut part = vec![0; 1 << 20];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(format!("sha256:{}", hex(&digester.finalize()))),
            n => digester.update(&part[..n]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A note is a few dozen bytes; a segment of them is small.
const MOST_NOTES: u64 = 1 << 16;

/// The GNU build id of an ELF file of 64 bits, lowest byte first; none of another file, or where there is none.
fn build_id(file: &File) -> io::Result<Option<Vec<u8>>> {
    const NOTES: u64 = 4;
    let mut head = [0; 64];
    if file.read_exact_at(&mut head, 0).is_err() || !head.starts_with(b"\x7fELF\x02\x01") {
        return Ok(None);
    }
    let (table, entry_size, n_entries) = (
        number(&head[32..40]),
        number(&head[54..56]),
        number(&head[56..58]),
    );
    for idx in 0..n_entries {
        let mut entry = [0; 56];
        file.read_exact_at(&mut entry, table + idx * entry_size)?;
        let (kind, at, size) = (
            number(&entry[0..4]),
            number(&entry[8..16]),
            number(&entry[32..40]),
        );
        if kind == NOTES {
            let mut notes = vec![0; size.min(MOST_NOTES) as usize];
            file.read_exact_at(&mut notes, at)?;
            if let Some(id) = in_notes(&notes) {
                return Ok(Some(id.to_vec()));
            }
        }
    }
    Ok(None)
}

/// A note: lengths of name and content, its type, the name, the content, both filled up to four bytes.
fn in_notes(mut notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: u64 = 3;
    while notes.len() >= 12 {
        let (name, content, kind) = (
            number(&notes[0..4]) as usize,
            number(&notes[4..8]) as usize,
            number(&notes[8..12]),
        );
        let begin = 12 + name.next_multiple_of(4);
        let found = notes.get(begin..begin + content)?;
        if kind == BUILD_ID && notes[12..].starts_with(b"GNU\0") && !found.is_empty() {
            return Some(found);
        }
        notes = notes.get(begin + content.next_multiple_of(4)..)?;
    }
    None
}

/// Lowest byte first.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_has_a_name_that_is_the_same_each_time() {
        let name = build().expect("reads");
        let (kind, digits) = name.split_once(':').expect("a kind");
        assert!(["build-id", "sha256"].contains(&kind), "{name}");
        assert!(digits.len() >= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(build().expect("reads"), name);
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let other = b"\x04\0\0\0\x02\0\0\0\x01\0\0\0GNU\0ab\0\0";
        let id = b"\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0\x01\x02\xff";
        assert_eq!(
            in_notes(&[&other[..], id].concat()),
            Some(&b"\x01\x02\xff"[..])
        );
        assert_eq!(in_notes(other), None);
        for n in 0..id.len() {
            assert_eq!(in_notes(&id[..n]), None, "cut after {n}");
        }
        let text = tempfile::tempfile().expect("a file");
        assert_eq!(build_id(&text).expect("reads"), None);
    }
}
