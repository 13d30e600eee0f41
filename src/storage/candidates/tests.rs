//! Candidates on the disk, found, written out, digested and sealed in temporary folders.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::*;

/// A `candidates/` with a tree `reference`.
fn candidates() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("reference");
    fs::create_dir_all(tree.join("pkg/__pycache__")).expect("makes");
    fs::write(tree.join("harness"), "#!/bin/sh\n").expect("writes");
    set_mode(&tree.join("harness"), 0o700).expect("sets");
    fs::write(tree.join("pkg/a.py"), "limit = 1\nlimit = 2\n").expect("writes");
    fs::write(tree.join("pkg/__pycache__/a.pyc"), "x").expect("writes");
    symlink("pkg/a.py", tree.join("link")).expect("links");
    folder
}

fn mutant(candidates: &Path, find: &str) {
    fs::create_dir_all(candidates.join("mutants")).expect("makes");
    let text = format!(
        "title = \"t\"\nbreaks = [\"tools.read.range\"]\n[[edit]]\nfile = \"pkg/a.py\"\nfind = \"{find}\"\nreplace = \"limit = 3\"\n"
    );
    fs::write(candidates.join("mutants/m.toml"), text).expect("writes");
}

#[test]
fn candidates_are_found_by_name_and_by_path() {
    let folder = candidates();
    let root = folder.path();
    mutant(root, "limit = 1");
    let check = |given: &str, name: &str| {
        let found = find(root, given).expect("found");
        assert_eq!(found.name, name);
    };
    check("reference", "reference");
    check("reference/", "reference");
    check("mutants/m", "mutants/m");
    check(
        &root.join("mutants/m.toml").display().to_string(),
        "mutants/m",
    );
    check(&root.join("reference").display().to_string(), "reference");
    check(
        &root.join("reference/pkg").display().to_string(),
        "reference/pkg",
    );
    assert_eq!(mutants(root).expect("lists"), ["mutants/m"]);
    for absent in ["nobody", "../mutants/m", ""] {
        let missing = find(&root.join("mutants"), absent);
        assert!(
            matches!(missing, Err(CandidatesError::NotFound { .. })),
            "{absent}"
        );
    }
}

#[test]
fn a_mutant_is_its_origin_but_for_the_edits() {
    let folder = candidates();
    let into = folder.path().join("out");
    mutant(folder.path(), "limit = 1");
    let found = find(folder.path(), "mutants/m").expect("found");
    materialise(&found, &into).expect("writes");
    let text = fs::read_to_string(into.join("pkg/a.py")).expect("reads");
    assert_eq!(text, "limit = 3\nlimit = 2\n");
    assert!(!into.join("pkg/__pycache__").exists());
    assert!(fs::read_link(into.join("link")).is_ok());
    assert_eq!(
        candidate_digest(&found).expect("digests"),
        digest(&into).expect("digests")
    );
    let again = materialise(&found, &into);
    assert!(
        matches!(again, Err(CandidatesError::File { .. })),
        "the folder is not empty"
    );
}

#[test]
fn an_edit_must_match_exactly_once() {
    let check = |find_text: &str, expected: &str| {
        let folder = candidates();
        mutant(folder.path(), find_text);
        let found = find(folder.path(), "mutants/m").expect("found");
        let error = materialise(&found, &folder.path().join("out")).expect_err("must fail");
        let shown = error.to_string();
        assert!(
            shown.contains("m.toml:3: ") && shown.contains(expected),
            "{shown}"
        );
    };
    check("limit = ", "occurs 2 times");
    check("absent", "occurs 0 times");
    check("", "occurs 0 times");
}

#[test]
fn the_digest_sees_paths_bits_and_contents_and_no_byte_code() {
    let change = |act: &dyn Fn(&Path)| {
        let folder = candidates();
        let tree = folder.path().join("reference");
        let before = digest(&tree).expect("digests");
        act(&tree);
        before != digest(&tree).expect("digests")
    };
    assert!(change(
        &|tree| fs::write(tree.join("pkg/a.py"), "x").expect("writes")
    ));
    assert!(change(
        &|tree| set_mode(&tree.join("harness"), 0o600).expect("sets")
    ));
    assert!(change(&|tree| fs::rename(
        tree.join("pkg/a.py"),
        tree.join("pkg/b.py")
    )
    .expect("moves")));
    assert!(change(
        &|tree| fs::remove_file(tree.join("link")).expect("removes")
    ));
    assert!(!change(&|tree| fs::write(
        tree.join("pkg/__pycache__/b.pyc"),
        "x"
    )
    .expect("writes")));
    assert!(!change(
        &|tree| set_mode(&tree.join("harness"), 0o755).expect("sets")
    ));
}

#[test]
fn a_sealed_tree_stays_and_records_come_back() {
    let folder = candidates();
    let frozen = folder.path().join("frozen");
    let draft = folder.path().join("draft");
    let found = find(folder.path(), "reference").expect("found");
    materialise(&found, &draft).expect("writes");
    let sum = digest(&draft).expect("digests");
    let place = seal(&draft, &frozen, &sum).expect("seals");
    assert_eq!(digest(&place).expect("digests"), sum);
    assert!(!draft.exists());
    let mode = fs::metadata(place.join("pkg/a.py"))
        .expect("stands")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o444);

    materialise(&found, &draft).expect("writes");
    assert_eq!(seal(&draft, &frozen, &sum).expect("seals"), place);
    assert!(!draft.exists(), "the second copy is removed");

    assert_eq!(frozen_digest(&frozen, "reference").expect("reads"), None);
    let record = FreezeRecord {
        candidate: "mutants/m".into(),
        digest: sum.clone(),
        checked_at: "2026-12-01T00:00:00Z".into(),
        version: "0".into(),
    };
    write_record(&frozen, &record).expect("writes");
    assert_eq!(
        frozen_digest(&frozen, "mutants/m").expect("reads"),
        Some(sum)
    );
    remove(&place).expect("removes");
}
