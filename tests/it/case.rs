//! `pipeline case`: what it finds in a suite with faults, and one case in words.

use crate::project::Project;

const CASE: &str = r#"title    = "read refuses a link that leaves the workspace"
purpose  = "A file tool must judge the target of a link."
clause   = "tools.paths.outside"
category = "file-operations"
scenario = "boundary"
controls = ["inside-link-readable"]

[fixture]
"sub/link.txt"         = { link = "{outside}/secret.txt" }
"sub/other.txt"        = { link = "plain.txt" }
"sub/plain.txt"        = "{nonce:secret}"
"{outside}/secret.txt" = "{nonce:secret}"

[[launch]]
route  = "headless"
prompt = "Show me link.txt"
args   = ["--permission-mode", "auto"]
script = [
  { call = "read", with = { path = "sub/link.txt" } },
  { say = "done" },
]

[[expect]]
channel = "requests"
at      = "$.messages[?@.role == 'tool'].content"
lacks   = "{nonce:secret}"
"#;

fn control() -> String {
    CASE.replace("refuses a link that leaves", "follows a link inside")
        .replace(
            "category = \"file-operations\"\nscenario = \"boundary\"\n",
            "class = \"reverse\"\n",
        )
        .replace("controls = [\"inside-link-readable\"]\n", "")
        .replace(
            "{ path = \"sub/link.txt\" }",
            "{ path = \"sub/other.txt\" }",
        )
        .replace("lacks   =", "has     =")
}

fn project(case: &str, control: &str) -> Project {
    let project = Project::new();
    project.write("cases/file-operations/link.toml", case);
    project.write("cases/controls/inside-link-readable.toml", control);
    project
}

#[test]
fn lint_tells_faults_with_file_and_line() {
    let check = |case: &str, control: &str, code: i32, expected: &[&str]| {
        let ran = project(case, control).run(&["case", "lint"]);
        assert_eq!(ran.code, code, "{}\n{}", ran.stdout, ran.stderr);
        for expected in expected {
            assert!(ran.stdout.contains(expected), "{expected}\n{}", ran.stdout);
        }
    };
    let control = control();
    check(
        CASE,
        &control,
        0,
        &["1 case and 1 control: 0 errors, 0 notes"],
    );
    // What an evaluation refuses, also when one file cannot be read at all.
    check(
        &CASE.replace("tools.paths.outside", "tools.paths.nowhere"),
        &control,
        1,
        &[
            "cases/file-operations/link.toml:3: error: the document has no clause tools.paths.nowhere",
        ],
    );
    check(
        &CASE.replace("route  =", "rout  ="),
        &control,
        1,
        &["cases/file-operations/link.toml:15: error: unknown field `rout`"],
    );
    check(
        CASE,
        &control.replace("\"sub/plain.txt\"        = \"{nonce:secret}\"\n", ""),
        1,
        &[
            "cases/file-operations/link.toml:6: error: control inside-link-readable differs in the fixture (sub/plain.txt) and in a launch",
            "    launch 1, script, step 1, path: \"sub/link.txt\" → \"sub/other.txt\"",
        ],
    );
    check(
        CASE,
        &control.replace("sub/other.txt\" }", "sub/link.txt\" }"),
        1,
        &["error: control inside-link-readable is the same scenario"],
    );
    check(
        CASE,
        &control.replace("\"auto\"", "\"plan\""),
        0,
        &[
            "link.toml:6: note: control inside-link-readable changes 2 things: launch 1, args; launch 1, script",
        ],
    );
    check(
        &CASE.replace("--permission-mode", "--permision-mode"),
        &control,
        0,
        &["link.toml:14: note: the document has no flag --permision-mode"],
    );
}

#[test]
fn lint_keeps_to_what_it_is_asked_for_and_tells_copies() {
    let copy = CASE.replace("read refuses", "read still refuses");
    let project = project(CASE, &control());
    project.write("cases/file-operations/copy.toml", &copy);
    let found = project.json(&["case", "lint"]);
    assert_eq!(found["n_notes"], 1);
    assert_eq!(found["found"][0]["file"], "cases/file-operations/link.toml");
    let message = found["found"][0]["message"].as_str().expect("a text");
    assert!(
        message.contains("nearly that of file-operations/copy"),
        "{message}"
    );
    for asked in [
        "file-operations/copy",
        "cases/file-operations/copy.toml",
        "controls",
    ] {
        assert_eq!(
            project.json(&["case", "lint", asked])["n_notes"],
            0,
            "{asked}"
        );
    }
    let ran = project.run(&["case", "lint", "nothing"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}

#[test]
fn show_tells_a_case_in_words() {
    let project = project(CASE, &control());
    let ran = project.run(&["case", "show", "link"]);
    let lines = [
        "file-operations/link  cases/file-operations/link.toml",
        "  file-operations, boundary, clause tools.paths.outside",
        "  workspace",
        "    sub/",
        "      link.txt  → {outside}/secret.txt",
        "  outside",
        "    secret.txt  \"{nonce:secret}\"",
        "launch 1  harness -p 'Show me link.txt' --permission-mode auto",
        "  model     1. calls read {\"path\":\"sub/link.txt\"}",
        "  model     2. says \"done\"",
        "  1. In the requests to the model, none of the results of tools may contain \"{nonce:secret}\".",
        "     requests $.messages[?@.role == 'tool'].content lacks \"{nonce:secret}\"",
        "  inside-link-readable (reverse): read follows a link inside the workspace",
        "    launch 1, script, step 1, path: \"sub/link.txt\" → \"sub/other.txt\"",
    ];
    for line in lines {
        assert!(
            ran.stdout.lines().any(|shown| shown == line),
            "{line}\n{}",
            ran.stdout
        );
    }
    let shown = project.json(&["case", "show", "inside-link-readable"]);
    assert_eq!(shown["story"]["gates"][0], "file-operations/link");
    assert_eq!(shown["story"]["kind"], "control, reverse");
    let ran = project.run(&["case", "show", "nothing"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
}
