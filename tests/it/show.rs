//! `pipeline show`.

use doc2harness::domain::verdict::Outcome;

use crate::project::Project;
use crate::stored_run::store;

#[test]
fn shows_the_table_then_a_case_with_its_evidence() {
    let project = Project::new();
    store(&project, "r1", Outcome::Passed);

    let table = project.run(&["show"]);
    assert_eq!(table.code, 0, "{}", table.stderr);
    let check = |text: &str, part: &str| assert!(text.contains(part), "{part:?} not in:\n{text}");
    check(&table.stdout, "a/one      100.00 %   3/3");
    check(&table.stdout, "b/two      0.00 %     0/2");
    check(
        &table.stdout,
        "1 of them passed on their own, but a control",
    );
    check(&table.stdout, "invalid  1 (sandbox 1)");

    // The part of the name after the slash is enough.
    let case = project.run(&["show", "r1", "deny", "--candidate", "two"]);
    assert_eq!(case.code, 0, "{}", case.stderr);
    check(&case.stdout, "permissions/deny");
    check(&case.stdout, "FAIL    control");
    check(&case.stdout, "controls  readable timeout");
    check(&case.stdout, "launch 1  harness -p 'read {nonce:secret}'");
    check(&case.stdout, "user      read {nonce:secret}");
    check(&case.stdout, "│ done ␛[2J<script>alert(1)</script>⟨U+202E⟩");
    check(&case.stdout, "changed  notes.txt  (6 → 8 bytes)");
    check(&case.stdout, "+changed");
    assert!(
        !case.stdout.contains(['\x1b', '\u{202e}']),
        "{:?}",
        case.stdout
    );

    // Without a candidate there are the verdicts of both, and what to type for evidence.
    let both = project.run(&["show", "headless/x"]);
    check(&both.stdout, "candidate a/one");
    check(&both.stdout, "pipeline show r1 headless/x --candidate NAME");
    let control = project.run(&["show", "r1", "readable", "-c", "one"]);
    check(&control.stdout, "gates permissions/deny");
}

#[test]
fn names_that_are_not_there_say_what_is() {
    let project = Project::new();
    let check = |arguments: &[&str], part: &str| {
        let ran = project.run(arguments);
        assert_eq!(ran.code, 2, "{}", ran.stdout);
        assert!(
            ran.stderr.contains(part),
            "{part:?} not in:\n{}",
            ran.stderr
        );
    };
    check(&["show"], "there is no run yet");
    store(&project, "r1", Outcome::Passed);
    check(&["show", "r2"], "one of the newest runs: r1");
    check(&["show", "r1", "absent"], "the run has no case \"absent\"");
    check(
        &["show", "r1", "e"],
        "names 4 cases: controls/readable, headless/x",
    );
    check(&["show", "r1", "-c", "c"], "the run has no candidate \"c\"");
}
