//! Every channel, every test, and launches that end badly.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use super::judge;
use crate::domain::case::CaseId;
use crate::domain::case::{Bindings, Case};
use crate::domain::evidence::{EVIDENCE_FORMAT, FileKind, ReplyKind, Text};
use crate::domain::evidence::{Evidence, Exchange, Exit, FileState, LaunchEvidence};
use crate::domain::verdict::{Outcome, Reason};

fn state(text: &str) -> FileState {
    FileState {
        kind: FileKind::File,
        mode: 0o644,
        size: text.len() as u64,
        digest: Some(text.into()),
        text: Some(text.into()),
        target: None,
    }
}

fn evidence() -> Evidence {
    let exchange = |content: &str, side: bool| Exchange {
        at_ms: 1,
        method: "POST".into(),
        path: "/v1/chat/completions".into(),
        headers: BTreeMap::new(),
        body: json!({ "messages": [
            { "role": "user", "content": "hi" },
            { "role": "tool", "content": content },
        ] }),
        chat: None,
        side,
        reply: ReplyKind::Step(1),
        sent: None,
    };
    Evidence {
        format: EVIDENCE_FORMAT,
        case: CaseId::new("headless/x"),
        bindings: Bindings(BTreeMap::from([
            ("nonce:a".into(), "n17.".into()),
            ("outside".into(), "/outside".into()),
            ("workspace".into(), "/workspace".into()),
        ])),
        launches: vec![LaunchEvidence {
            argv: vec![],
            exit: Exit::Code(0),
            stdout: Text {
                text: "{\"type\":\"init\"}\n{\"type\":\"result\",\"text\":\"n17.\"}\n".into(),
                cut: false,
            },
            stderr: Text::default(),
            screen: None,
            keys_unsent: 0,
            signals_unsent: 0,
            unbound: Vec::new(),
            started_ms: 0,
            n_requests_unkept: 0,
            requests: vec![
                exchange("one n17.", false),
                exchange("side", true),
                exchange("two", false),
            ],
            duration_ms: 5,
            cpu_ms: 5,
            out_of_memory: false,
        }],
        files_before: BTreeMap::from([
            ("a.txt".into(), state("old")),
            ("b.txt".into(), state("same")),
        ]),
        files_cut: false,
        files_after: BTreeMap::from([
            ("a.txt".into(), state("new n17.")),
            ("b.txt".into(), state("same")),
            ("{outside}/c-1.json".into(), state("{\"k\": [1, 2]}")),
        ]),
    }
}

fn case(expect: &str) -> Case {
    let text = format!(
        "title = \"t\"\npurpose = \"p\"\nclause = \"tools.read.range\"\ncategory = \"headless\"\n\
         scenario = \"ordinary\"\n[[launch]]\nroute = \"headless\"\nprompt = \"{{nonce:a}}\"\n\
         script = [{{ say = \"a\" }}, {{ say = \"b\" }}]\n[[expect]]\n{expect}\n"
    );
    Case::parse(CaseId::new("headless/x"), Path::new("x.toml"), &text).expect("a case")
}

#[test]
fn assertions_read_the_four_channels() {
    let check = |expect: &str, expected: &str| {
        let outcome = judge(&case(expect), &evidence());
        let seen = match &outcome {
            Outcome::Failed(failure) => format!("{} @ {}", failure.saw, failure.place),
            other => other.reason().to_owned(),
        };
        assert!(seen.contains(expected), "{expect}: {seen}");
    };
    let tool = "channel = \"requests\"\nat = \"$.messages[?@.role == 'tool'].content\"\n";
    check(&format!("{tool}has = \"{{nonce:a}}\""), "pass");
    check(
        &format!("{tool}lacks = \"{{nonce:a}}\""),
        "request 1, message 2, .content",
    );
    check(
        &format!("{tool}request = \"last\"\nlacks = \"{{nonce:a}}\""),
        "pass",
    );
    check(&format!("{tool}request = 2\nequals = \"two\""), "pass");
    check(
        &format!("{tool}request = \"side\"\nequals = \"side\""),
        "pass",
    );
    check(&format!("{tool}has = [\"one\", \"absent\"]"), "two");
    check(&format!("{tool}count = 3"), "pass");
    check(&format!("{tool}count = {{ max = 2 }}"), "3 of them");
    check(&format!("{tool}matches = \"{{nonce:a}}$\""), "pass");
    check(
        "channel = \"requests\"\nat = \"$.nothing\"\nhas = \"x\"",
        "nothing at that path in 3",
    );
    check("channel = \"exit\"\nequals = 0", "pass");
    check("channel = \"exit\"\none_of = [1, 2]", "exit 0");
    check("channel = \"exit\"\nnot_equals = 0", "exit 0");
    check("channel = \"output\"\nhas = \"init\"", "pass");
    check(
        "channel = \"output\"\nlines = true\nat = \"$[-1].text\"\nequals = \"{nonce:a}\"",
        "pass",
    );
    check(
        "channel = \"output\"\nat = \"$.text\"\nhas = \"x\"",
        "no JSON",
    );
    check(
        "channel = \"output\"\nstream = \"stderr\"\nhas = \"x\"",
        "stderr",
    );
    check(
        "channel = \"files\"\npath = \"a.txt\"\nhas = \"{nonce:a}\"",
        "pass",
    );
    check(
        "channel = \"files\"\npath = \"b.txt\"\nunchanged = true",
        "pass",
    );
    check(
        "channel = \"files\"\npath = \"a.txt\"\nunchanged = true",
        "new {nonce:a}",
    );
    check(
        "channel = \"files\"\npath = \"z.txt\"\nunchanged = true",
        "never there",
    );
    check(
        "channel = \"files\"\npath = \"z.txt\"\nexists = false",
        "pass",
    );
    check(
        "channel = \"files\"\npath = \"a.txt\"\nexists = false",
        "8 bytes",
    );
    check(
        "channel = \"files\"\npath = \"a.txt\"\nmode = \"600\"",
        "mode 644",
    );
    check(
        "channel = \"files\"\npath = \"{outside}/*.json\"\nat = \"$.k[1]\"\nequals = 2",
        "pass",
    );
    check(
        "channel = \"files\"\npath = \"{outside}/nope\"\nhas = \"x\"",
        "no such file",
    );
    check(
        "any = [{ channel = \"exit\", equals = 3 }, { channel = \"exit\", equals = 0 }]",
        "pass",
    );
    check(
        "any = [{ channel = \"exit\", equals = 3 }, { channel = \"exit\", equals = 4 }]",
        "exit 0 | exit 0",
    );
}

#[test]
fn a_launch_that_ends_badly_fails_whatever_is_asserted() {
    let check = |change: fn(&mut LaunchEvidence), expected: Reason| {
        let mut evidence = evidence();
        change(&mut evidence.launches[0]);
        let expect = "channel = \"files\"\npath = \"z.txt\"\nexists = false";
        match judge(&case(expect), &evidence) {
            Outcome::Failed(failure) => assert_eq!(failure.reason, expected),
            other => panic!("{other:?}"),
        }
    };
    check(|launch| launch.exit = Exit::TimedOut, Reason::Timeout);
    check(|launch| launch.exit = Exit::Signal(11), Reason::Crash);
    check(|launch| launch.out_of_memory = true, Reason::Crash);
    check(
        |launch| {
            launch.exit = Exit::Code(127);
            launch.requests.clear();
        },
        Reason::Contract,
    );
    check(
        |launch| launch.requests[2].reply = ReplyKind::Overrun,
        Reason::ScriptOverrun,
    );
    check(|launch| launch.stderr.cut = true, Reason::Limit);
}

#[test]
fn nothing_is_absent_from_files_that_were_not_all_looked_at() {
    let mut evidence = evidence();
    let case = case("channel = \"files\"\npath = \"z.txt\"\nexists = false");
    assert_eq!(judge(&case, &evidence), Outcome::Passed);
    evidence.files_cut = true;
    let Outcome::Failed(failure) = judge(&case, &evidence) else {
        panic!("an absence in half of the files");
    };
    assert_eq!(failure.reason, Reason::Limit);
}
