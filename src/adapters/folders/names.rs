//! File names that are no UTF-8, written as text: a byte that belongs to no character is `{byte:e9}`.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

const OPEN: &str = "{byte:";

/// The name that a text of a fixture stands for.
pub fn named(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(OPEN) {
        let hex = rest.get(at + OPEN.len()..at + OPEN.len() + 3);
        let byte = hex
            .and_then(|hex| hex.strip_suffix('}'))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let (kept, n_taken) = match byte {
            Some(_) => (at, at + OPEN.len() + 3),
            None => (at + OPEN.len(), at + OPEN.len()),
        };
        bytes.extend_from_slice(&rest.as_bytes()[..kept]);
        bytes.extend(byte);
        rest = &rest[n_taken..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    OsString::from_vec(bytes)
}

/// The text that stands for a name.
pub(super) fn shown(name: &OsStr) -> String {
    let mut text = String::new();
    for chunk in name.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "{OPEN}{byte:02x}}}").expect("a String takes everything");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were() {
        let check = |text: &str, bytes: &[u8]| {
            assert_eq!(named(text).as_bytes(), bytes, "{text}");
            assert_eq!(shown(OsStr::from_bytes(bytes)), text);
        };
        check("plain.txt", b"plain.txt");
        check("caf{byte:e9}.txt", b"caf\xe9.txt");
        check("{byte:ff}{byte:fe}", b"\xff\xfe");
        check(
            "gr\u{fc}n {byte:zz} {byte:e9",
            "gr\u{fc}n {byte:zz} {byte:e9".as_bytes(),
        );
    }
}
