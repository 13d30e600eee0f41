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

/// Evidence of two launches that ran beside each other, the second in a terminal; a signal of the case ended it.
fn evidence_of_two() -> Evidence {
    let mut evidence = evidence();
    let first = &mut evidence.launches[0];
    first.requests[0]
        .headers
        .insert("authorization".into(), "Bearer k".into());
    first.requests[2].at_ms = 1_001;
    first.stderr.text = "one\ntwo n17.\n".into();
    let mut second = first.clone();
    second.started_ms = 500;
    second.screen = Some("first line\nlast line".into());
    second.exit = Exit::Signal(9);
    second.requests.truncate(1);
    second.requests[0].body = json!({ "messages": [{ "role": "user", "content": "between" }] });
    evidence.launches.push(second);
    evidence
        .files_before
        .insert("gone/old.txt".into(), state("old"));
    evidence
}

fn case_of_two(expect: &str) -> Case {
    let text = format!(
        "title = \"t\"\npurpose = \"p\"\nclause = \"tools.read.range\"\ncategory = \"headless\"\n\
         scenario = \"ordinary\"\n[[launch]]\nroute = \"headless\"\nprompt = \"{{nonce:a}}\"\n\
         script = [{{ say = \"a\" }}, {{ say = \"b\" }}]\n[[launch]]\nroute = \"terminal\"\n\
         alongside = {{ launch = 1, once = {{ request = 1 }} }}\n\
         signals = [{{ send = \"kill\", once = {{ request = 1 }} }}]\n\
         bind = {{ id = {{ matches = \"(last) line\" }} }}\nscript = [{{ say = \"c\" }}]\n[[expect]]\n{expect}\n"
    );
    Case::parse(CaseId::new("headless/x"), Path::new("x.toml"), &text)
        .unwrap_or_else(|findings| panic!("{expect}: {findings:?}"))
}

/// Every kind of assertion: what it says when it fails, and that it holds where it should.
#[test]
fn each_assertion_says_what_was_expected_what_was_seen_and_where() {
    let check = |expect: &str, expected: &str, saw: &str, place: &str| {
        let case = case_of_two(expect);
        match judge(&case, &evidence_of_two()) {
            Outcome::Failed(failure) => {
                let seen = (failure.saw.as_str(), failure.place.as_str());
                assert!(failure.expected.contains(expected), "{}", failure.expected);
                assert!(
                    seen.0.contains(saw) && seen.1 == place,
                    "{expect}: {seen:?}"
                );
            }
            other => panic!("{expect}: {other:?}"),
        }
    };
    let holds = |expect: &str| {
        let outcome = judge(&case_of_two(expect), &evidence_of_two());
        assert_eq!(outcome, Outcome::Passed, "{expect}");
    };
    let tool = |rest: &str| {
        format!("channel = \"requests\"\nlaunch = 1\nat = \"$.messages[1].content\"\n{rest}")
    };
    let third = "launch 1, request 3, message 2, .content";
    check(&tool("has = \"x\""), "has \"x\"", "\"two\"", third);
    check(
        &tool("lacks = \"side\""),
        "lacks \"side\"",
        "\"side\"",
        "launch 1, request 2, message 2, .content",
    );
    check(&tool("matches = \"^x\""), "matches /^x/", "\"two\"", third);
    check(
        &tool("lacks_match = \"^t\""),
        "matches nowhere /^t/",
        "\"two\"",
        third,
    );
    check(&tool("equals = 1"), "equals 1", "\"two\"", third);
    check(
        &tool("not_equals = \"two\""),
        "differs from \"two\"",
        "\"two\"",
        third,
    );
    check(
        &tool("count = 2"),
        "counts 2",
        "3 of them",
        "launch 1, requests",
    );
    check(
        &tool("order = [{ equals = \"two\" }, { has = \"side\" }]"),
        "in this order: equals \"two\", then has \"side\"",
        "condition 2 is met too early, by \"side\"",
        "launch 1, request 2, message 2, .content",
    );
    check(
        &tool("order = [{ has = \"one\" }, { matches = \"x\" }]"),
        "then matches /x/",
        "condition 2 is met by none of 3 values",
        third,
    );
    check(
        &tool("request = 2\nafter_ms = { max = 900 }"),
        "comes ..900 ms after the one before",
        "1000 ms",
        "launch 1, request 3",
    );
    check(
        "channel = \"requests\"\nlaunch = 2\nrequest = \"last\"\nafter_ms = { min = 1 }",
        "requests of launch 2 (last)",
        "no request with tools came before it",
        "launch 2, request 1",
    );
    check(
        "channel = \"requests\"\nrequest = \"first\"\nheader = \"authorization\"\nequals = \"Bearer x\"",
        "header authorization equals",
        "\"Bearer k\"",
        "launch 1, request 1, header authorization",
    );
    check(
        "channel = \"requests\"\nheader = \"accept\"\nhas = \"json\"",
        "header accept",
        "nothing at that path in 4 requests",
        "requests",
    );
    check(
        "channel = \"output\"\nlaunch = 1\nlacks = \"result\"",
        "output of launch 1 lacks",
        "result",
        "launch 1, stdout, line 2",
    );
    check(
        "channel = \"output\"\nlaunch = 1\nstream = \"stderr\"\nlacks = \"{nonce:a}\"",
        "stderr lacks",
        "two {nonce:a}",
        "launch 1, stderr, line 2",
    );
    check(
        "channel = \"output\"\nlaunch = 1\nlines = true\nat = \"$[*].type\"\nlacks = \"result\"",
        "$[*].type",
        "result",
        "launch 1, stdout, line 2, .type",
    );
    check(
        "channel = \"output\"\nlaunch = 1\nat = \"$.type\"\nhas = \"x\"",
        "$.type has",
        "no JSON",
        "launch 1, stdout, line 2",
    );
    check(
        "channel = \"output\"\nlaunch = 1\nlines = true\nat = \"$[*]\"\norder = [{ like = { type = \"result\" } }, { like = { type = \"init\" } }]",
        "with type \"result\", then with type \"init\"",
        "too early",
        "launch 1, stdout, line 1",
    );
    check(
        "channel = \"output\"\nhas = \"middle\"",
        "output has",
        "first line",
        "launch 2, screen",
    );
    check(
        "channel = \"output\"\nlacks = \"last\"",
        "output lacks",
        "last line",
        "launch 2, screen, line 2",
    );
    check(
        "channel = \"exit\"\nequals = 0",
        "exit equals 0",
        "exit 137, of signal 9",
        "launch 2, exit",
    );
    check(
        "channel = \"exit\"\nlaunch = 1\none_of = [1, 2]",
        "is one of [1, 2]",
        "exit 0",
        "launch 1, exit",
    );
    check(
        "channel = \"files\"\npath = \"a.txt\"\nlacks = \"new\"",
        "files a.txt lacks",
        "new {nonce:a}",
        "files, a.txt",
    );
    check(
        "channel = \"files\"\npath = \"a.txt\"\nmode = \"600\"",
        "has mode 600",
        "mode 644",
        "files, a.txt",
    );
    check(
        "channel = \"files\"\npath = \"b.txt\"\nexists = false",
        "is absent",
        "4 bytes",
        "files, b.txt",
    );
    check(
        "channel = \"files\"\npath = \"b.txt\"\nunchanged = false",
        "is changed",
        "as before",
        "files, b.txt",
    );
    check(
        "channel = \"files\"\npath = \"{outside}/*.json\"\nat = \"$.k[*]\"\nequals = 3",
        "$.k[*] equals 3",
        "\"2\"",
        "files, {outside}/c-1.json, $.k[1]",
    );
    check(
        "channel = \"files\"\npath = \"{workspace}\"\nchanged = [\"a.txt\"]",
        "has changes at a.txt and nowhere else",
        "gone/old.txt is gone",
        "files, gone/old.txt",
    );
    check(
        "channel = \"files\"\npath = \"{workspace}\"\nchanged = [\"a.txt\", \"b.txt\"]",
        "a.txt, b.txt",
        "no change of b.txt: as before",
        "files, {workspace}",
    );
    check(
        "channel = \"files\"\npath = \"{outside}\"\nchanged = []",
        "has no changes",
        "{outside}/c-1.json is new",
        "files, {outside}/c-1.json",
    );
    check(
        "all = [{ channel = \"exit\", launch = 1, equals = 0 }, { channel = \"exit\", equals = 1 }]",
        "all of: exit of launch 1 equals 0 & exit equals 1",
        "exit 137",
        "launch 2, exit",
    );
    check(
        "not = { any = [{ channel = \"exit\", equals = 1 }, { channel = \"exit\", equals = 137 }] }",
        "not: (any of: exit equals 1 | exit equals 137)",
        "it holds: \"137\"",
        "launch 2, exit",
    );
    check(
        "channel = \"output\"\nmatches = \"first ()\"\nbind = \"x\"",
        "is bound to {bound:x}",
        "no value to bind",
        "launch 2, screen",
    );

    holds(&tool("order = [{ has = \"one\" }, { equals = \"two\" }]"));
    holds(
        "channel = \"requests\"\nat = \"$.messages[-1].content\"\norder = [{ has = \"one\" }, { equals = \"between\" }, { equals = \"two\" }]",
    );
    holds(&tool("request = 2\nafter_ms = { min = 900, max = 1000 }"));
    holds("channel = \"exit\"\nequals = 137");
    holds("channel = \"files\"\npath = \"{workspace}\"\nchanged = [\"a.txt\", \"gone/*\"]");
    holds("not = { channel = \"exit\", equals = 0 }");
    holds(
        "any = [{ all = [{ channel = \"exit\", equals = 0 }] }, { not = { channel = \"exit\", equals = 0 } }]",
    );
    holds(
        "channel = \"output\"\nmatches = \"(l..t) line\"\nbind = \"word\"\n\
         [[expect]]\nchannel = \"output\"\nhas = \"{bound:word} line\"",
    );
}

#[test]
fn a_launch_that_does_not_come_to_its_moments_is_told() {
    let check = |change: fn(&mut Evidence), expected: &str, place: &str| {
        let mut evidence = evidence_of_two();
        change(&mut evidence);
        match judge(&case_of_two("channel = \"exit\"\nequals = 137"), &evidence) {
            Outcome::Failed(failure) => {
                assert!(failure.expected.contains(expected), "{}", failure.expected);
                assert_eq!(failure.place, place);
            }
            other => panic!("{other:?}"),
        }
    };
    check(
        |evidence| evidence.launches[1].signals_unsent = 1,
        "signal kill is sent once request 1 is made",
        "launch 2",
    );
    check(
        |evidence| evidence.launches[1].exit = Exit::NeverStarted,
        "it starts alongside launch 1 once request 1 is made there",
        "launch 2",
    );
    check(
        |evidence| evidence.launches[1].unbound = vec!["id".into()],
        "shows what is bound to {bound:id}",
        "launch 2, output",
    );
    check(
        |evidence| evidence.launches[1].keys_unsent = 1,
        "what the keys wait for",
        "launch 2, screen",
    );
    // Nobody sent this one.
    check(
        |evidence| evidence.launches[1].exit = Exit::Signal(15),
        "ends by itself",
        "launch 2",
    );
    check(
        |evidence| evidence.launches[0].requests[2].reply = ReplyKind::Overrun,
        "no request beyond the script",
        "launch 1, request 3",
    );
}

mod hostile {
    //! Whatever a candidate makes the evidence hold, judging it ends with an outcome.

    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    const ASSERTIONS: &[&str] = &[
        "channel = \"requests\"\nat = \"$..*\"\nlacks = \"{nonce:a}\"",
        "channel = \"requests\"\nat = \"$.messages[*].content\"\norder = [{ has = \"a\" }, { like = { a = 1 } }]",
        "channel = \"requests\"\nat = \"$[?@.a == '{bound:id}']\"\ncount = 0",
        "channel = \"requests\"\nheader = \"accept\"\nmatches = \"{bound:id}\"",
        "channel = \"requests\"\nrequest = \"last\"\nafter_ms = { min = 1, max = 9 }",
        "channel = \"output\"\nlines = true\nat = \"$[*].type\"\norder = [{ equals = \"{bound:id}\" }]",
        "channel = \"output\"\nlaunch = 1\nat = \"$..a\"\nnot_equals = 1",
        "channel = \"output\"\nlacks_match = \"{nonce:a}+\"",
        "channel = \"output\"\nstream = \"both\"\nmatches = \"(.*)\"\nbind = \"b\"",
        "channel = \"exit\"\nequals = 0",
        "channel = \"files\"\npath = \"*\"\nlacks = \"a\"",
        "channel = \"files\"\npath = \"a*/{bound:id}\"\nat = \"$.a\"\nequals = 1",
        "channel = \"files\"\npath = \"{workspace}\"\nchanged = [\"*/{bound:id}\"]",
        "channel = \"files\"\npath = \"{outside}/*\"\nunchanged = true",
        "not = { any = [{ channel = \"exit\", equals = 0 }, { channel = \"files\", path = \"*\", exists = true }] }",
    ];

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let name = prop_oneof![Just("messages".to_owned()), Just("a".to_owned()), text()];
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::from),
                vec((name, inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Texts that trip regular expressions, paths, lines and placeholders.
    fn text() -> impl Strategy<Value = String> {
        let tricky = prop_oneof![
            Just(String::new()),
            Just("'\"]$.a[?(*".to_owned()),
            Just("{\"type\":\"a\"}\n\n[".to_owned()),
            Just("{nonce:a} {bound:id} gr\u{fc}n\u{1F600}\r\n\0".to_owned()),
            Just("\u{e9}".repeat(200)),
        ];
        prop_oneof![tricky, "\\PC{0,12}"]
    }

    fn file() -> impl Strategy<Value = FileState> {
        (text(), any::<u64>(), any::<u32>(), 0..5u8).prop_map(|(text, size, mode, kind)| {
            FileState {
                kind: [
                    FileKind::File,
                    FileKind::Dir,
                    FileKind::Link,
                    FileKind::Fifo,
                    FileKind::Other,
                ][usize::from(kind)],
                mode,
                size,
                digest: None,
                target: (kind == 2).then(|| text.clone()),
                text: (kind == 0).then_some(text),
            }
        })
    }

    fn launch() -> impl Strategy<Value = LaunchEvidence> {
        let exit = prop_oneof![
            any::<i32>().prop_map(Exit::Code),
            any::<i32>().prop_map(Exit::Signal),
            Just(Exit::TimedOut),
            Just(Exit::NeverStarted),
            Just(Exit::Code(0)),
        ];
        let request = (any::<u64>(), json(), any::<bool>(), text());
        let parts = (
            exit,
            text(),
            proptest::option::of(text()),
            vec(request, 0..4),
            0..3usize,
            any::<u64>(),
        );
        parts.prop_map(|(exit, text, screen, requests, n_unsent, started_ms)| {
            let mut launch = evidence().launches.remove(0);
            let model = launch.requests[0].clone();
            launch.requests = requests
                .into_iter()
                .map(|(at_ms, body, side, header)| Exchange {
                    at_ms: at_ms / 2,
                    body,
                    side,
                    headers: BTreeMap::from([("accept".to_owned(), header)]),
                    ..model.clone()
                })
                .collect();
            launch.exit = exit;
            launch.stdout.text = text;
            launch.screen = screen;
            launch.signals_unsent = n_unsent;
            launch.started_ms = started_ms / 2;
            launch
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn judging_ends_with_an_outcome(
            which in 0..ASSERTIONS.len(),
            launches in vec(launch(), 0..4),
            before in btree_map(text(), file(), 0..4),
            after in btree_map(text(), file(), 0..4),
            nonce in text(),
            bound in text(),
        ) {
            let case = case_of_two(ASSERTIONS[which]);
            let mut evidence = evidence();
            evidence.launches = launches;
            evidence.files_before = before;
            evidence.files_after = after;
            evidence.bindings.0.insert("nonce:a".into(), nonce);
            evidence.bindings.0.insert("bound:id".into(), bound);
            if let Outcome::Failed(failure) = judge(&case, &evidence) {
                prop_assert!(!failure.place.is_empty() && !failure.expected.is_empty());
            }
        }
    }
}
