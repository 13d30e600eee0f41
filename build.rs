//! Digests the sources that decide how a unit ends, so that a certificate that other sources made is told apart.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// From the case's file to the outcome: the words, the cell, the model, the launches, the judgement.
const DECIDING: [&str; 10] = [
    "src/adapters/folders",
    "src/adapters/mock",
    "src/adapters/sandbox",
    "src/domain/case",
    "src/domain/evidence.rs",
    "src/domain/expect",
    "src/domain/verdict.rs",
    "src/methods/judge",
    "src/stages/install.rs",
    "src/stages/trial",
];

fn main() {
    let mut files = Vec::new();
    for place in DECIDING {
        println!("cargo::rerun-if-changed={place}");
        collect(Path::new(place), &mut files);
    }
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        let text = std::fs::read(&file).expect("a source file is readable");
        digest.update(file.to_str().expect("a source file has a plain name"));
        digest.update([0]);
        digest.update(text.len().to_le_bytes());
        digest.update(text);
    }
    let hex: String = digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    println!("cargo::rustc-env=DECIDING_SOURCES={hex}");
}

fn collect(place: &Path, files: &mut Vec<PathBuf>) {
    if place.is_file() {
        files.push(place.to_owned());
        return;
    }
    for entry in std::fs::read_dir(place).expect("a source folder is readable") {
        let path = entry.expect("a source folder is readable").path();
        // Tests decide nothing.
        let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
        if !is_test {
            collect(&path, files);
        }
    }
}
