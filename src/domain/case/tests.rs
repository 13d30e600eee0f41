//! What is written is read again, and what is wrong is found with its line.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::domain::clause::Channel;
use crate::domain::expect::{Condition, Count, CountRange, Pick, Texts};

const CASE: &str = "title = \"t\"\npurpose = \"p\"\nclause = \"a.b.c\"\nclass = \"channel\"\n[fixture]\n\
    [[launch]]\nroute = \"headless\"\nprompt = \"x\"\nscript = [{ say = \"a\" }]\n\
    [[launch]]\nroute = \"headless\"\nprompt = \"y\"\nscript = [{ say = \"b\" }]\n\
    [[expect]]\nchannel = \"exit\"\nequals = 0\n";

#[test]
fn faults_are_found_with_their_line() {
    let check = |from: &str, to: &str, expected: &[&str]| {
        let text = CASE.replacen(from, to, 1);
        assert!(from == to || text != CASE, "{from:?} is not there");
        let found = match Case::parse(CaseId::new("controls/x"), Path::new("x"), &text) {
            Ok(_) => Vec::new(),
            Err(findings) => findings.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(found.len(), expected.len(), "{to}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found} / {expected}");
        }
    };
    let second = "prompt = \"y\"\n";
    let launch = |rest: &str| format!("{second}{rest}\n");
    let expect =
        |text: &str, expected: &[&str]| check("channel = \"exit\"\nequals = 0", text, expected);
    let fixture = |text: &str, expected: &[&str]| {
        check("[fixture]\n", &format!("[fixture]\n{text}\n"), expected);
    };
    check("", "", &[]);

    check(
        second,
        &launch("alongside = { launch = 1, once = { request = 1 } }"),
        &[],
    );
    check(
        second,
        &launch("alongside = { launch = 2, once = { request = 1 } }"),
        &["x:10: `alongside` names an earlier launch"],
    );
    check(
        second,
        &launch("alongside = { launch = 1, once = { request = 2 } }"),
        &["once: request 2 is never made"],
    );
    check(
        second,
        &launch("alongside = { launch = 1, once = { screen = \">\" } }"),
        &["there is no screen"],
    );
    check(
        second,
        &launch("alongside = { launch = 1, once = { file = \"../a\" } }"),
        &["leaves its place"],
    );
    check(
        second,
        &launch("alongside = { launch = 1, once = { request = 1 }, until = { request = 3 } }"),
        &["until: request 3"],
    );
    check(
        second,
        &launch(
            "alongside = { launch = 1, once = { request = 1 } }\nenv = { HARNESS_BASE_URL = \"x\" }",
        ),
        &["told apart by its HARNESS_BASE_URL"],
    );
    check(
        second,
        &launch("alongside = { launch = 1, once = { moment = 1 } }"),
        &["unknown variant `moment`"],
    );
    check(
        second,
        &launch("signals = [{ send = \"kill\", once = { request = 9 } }]"),
        &["signal kill: request 9"],
    );
    check(
        second,
        &launch("stdin_is = \"closed\"\nstdin = \"x\""),
        &["nothing can be read"],
    );
    check(
        second,
        &launch("bind = { id = { at = \"$.a\", matches = \"b\" } }"),
        &["bind id: a value is captured by exactly one"],
    );
    check(
        second,
        &launch("bind = { Id = { matches = \"(\" } }"),
        &["is called \"Id\"", "not a regular expression"],
    );
    check(
        "prompt = \"y\"",
        "prompt = \"{bound:id}\"",
        &["x:10: {bound:id} is not bound yet"],
    );
    let bound = "prompt = \"x\"\nbind = { id = { matches = \"a\" } }";
    check("prompt = \"x\"", bound, &[]);
    let used = CASE
        .replace("prompt = \"x\"", bound)
        .replace("\"y\"", "\"{bound:id}\"");
    assert!(Case::parse(CaseId::new("controls/x"), Path::new("x"), &used).is_ok());
    let beside = used.replace(
        "{bound:id}\"",
        "{bound:id}\"\nalongside = { launch = 1, once = { request = 1 } }",
    );
    assert!(Case::parse(CaseId::new("controls/x"), Path::new("x"), &beside).is_err());

    expect(
        "channel = \"exit\"\nequals = \"{bound:id}\"",
        &["x:14: {bound:id} is not bound yet"],
    );
    expect(
        "channel = \"output\"\nmatches = \"a\"\nbind = \"id\"\n[[expect]]\nchannel = \"output\"\nhas = \"{bound:id}\"",
        &[],
    );
    expect(
        "any = [{ channel = \"exit\", equals = 0 }]\nall = [{ channel = \"exit\", equals = 0 }]",
        &["a group stands alone"],
    );
    expect(
        "not = { channel = \"output\", has = \"a\", bind = \"x\" }",
        &["no meaning inside a group"],
    );
    expect(
        "channel = \"output\"\nheader = \"accept\"\nhas = \"a\"",
        &["`header` and `after_ms` belong"],
    );
    expect(
        "channel = \"requests\"\nheader = \"cookie\"\nhas = \"a\"",
        &["these headers are kept"],
    );
    expect(
        "channel = \"requests\"\nrequest = \"first\"\nafter_ms = { min = 1 }",
        &["`after_ms` goes with `request`"],
    );
    expect(
        "channel = \"requests\"\nat = \"$\"\norder = [{}]",
        &["a condition of `order` has"],
    );
    expect(
        "channel = \"requests\"\nat = \"$\"\norder = [{ matches = \"(\" }]",
        &["not a regular expression"],
    );
    expect(
        "channel = \"files\"\npath = \"{workspace}\"\nchanged = []\nexists = true",
        &["`changed` stands alone"],
    );
    expect(
        "channel = \"exit\"\nbind = \"code\"",
        &["channel \"exit\" takes"],
    );

    let git = |rest: &str| {
        format!("\"{{workspace}}\" = {{ git = {{ commits = [{{ message = \"a\", {rest} }}] }} }}")
    };
    fixture(&git("files = { a = \"b\" }"), &[]);
    fixture("\"{workspace}\" = { dir = true }", &["leaves its place"]);
    fixture(
        &git("files = { \".git/config\" = \"b\" }"),
        &["no path in the repository"],
    );
    fixture(&git("merge = \"side\""), &["no other branch \"side\" yet"]);
    fixture(
        &git("branch = \"side\""),
        &["no commit is on the branch \"main\""],
    );
    fixture(&git("tag = \"-x\""), &["no name of a branch or a tag"]);
    fixture("\"caf{byte:e9}\" = \"x\"", &[]);
    fixture("\"caf{byte:zz}\" = \"x\"", &["{byte:zz} is no placeholder"]);
}

#[test]
fn the_cases_of_this_repository_are_read_again_as_they_are_written() {
    let mut pending = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")];
    let mut n_read = 0;
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("reads");
            pending.extend(entries.map(|entry| entry.expect("reads").path()));
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            let text = std::fs::read_to_string(&path).expect("reads");
            let parsed: CaseFile = toml::from_str(&text).expect("a case");
            let written = toml::to_string(&parsed).expect("writes");
            assert_eq!(
                toml::from_str::<CaseFile>(&written).expect("a case"),
                parsed
            );
            n_read += 1;
        }
    }
    assert!(n_read > 100, "{n_read}");
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,12}", Just("a\n'''\"\"\"\\ \t{nonce:a}".to_owned())]
}

/// What TOML can hold.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map(text(), inner, 0..3).prop_map(|members| json!(members)),
        ]
    })
}

fn moment() -> impl Strategy<Value = Moment> {
    prop_oneof![
        (1..9usize).prop_map(Moment::Request),
        text().prop_map(Moment::Screen),
        text().prop_map(Moment::File),
    ]
}

fn launch() -> impl Strategy<Value = Launch> {
    let alongside = (1..5usize, moment(), of(moment()));
    let parts = (
        text(),
        vec(text(), 0..3),
        of(text()),
        of(alongside),
        of(moment()),
        of(value()),
        vec(value(), 0..2),
    );
    parts.prop_map(
        |(prompt, args, say, alongside, signal, with, requests)| Launch {
            route: Route::Headless,
            prompt: Some(prompt.clone()),
            args,
            stdin: say.clone(),
            stdin_is: alongside.as_ref().map(|_| StdinIs::Open),
            env: BTreeMap::from([("A".to_owned(), prompt.clone())]),
            cwd: say.clone(),
            requests,
            size: Some([80, 24]),
            keys: vec![Key {
                wait: say.clone().map(KeyWait::Screen),
                r#type: None,
                press: None,
                paste: Some(prompt.clone()),
                resize: Some([1, 2]),
            }],
            script: vec![Reply {
                say,
                call: with.as_ref().map(|_| "read".to_owned()),
                with,
                ..Reply::default()
            }],
            time_limit_s: Some(3),
            alongside: alongside.map(|(launch, once, until)| Alongside {
                launch,
                once,
                until,
            }),
            signals: signal
                .map(|once| SignalSent {
                    send: Signal::Term,
                    once,
                })
                .into_iter()
                .collect(),
            bind: BTreeMap::from([(
                "id".to_owned(),
                Capture {
                    matches: Some(prompt),
                    lines: true,
                    ..Capture::default()
                },
            )]),
        },
    )
}

fn expect() -> impl Strategy<Value = Expect> {
    let leaf = (
        of(text()),
        vec(text(), 0..3),
        of(value()),
        of(0..9usize),
        any::<bool>(),
    )
        .prop_map(|(has, texts, equals, n, flag)| Expect {
            channel: Some(Channel::Files),
            request: n.map(Pick::Nth),
            path: has.clone(),
            lines: flag,
            has: has.clone().map(Texts::One),
            lacks: Some(Texts::All(texts.clone())),
            matches: has.clone(),
            equals: equals.clone(),
            order: vec![Condition {
                has: has.clone().map(Texts::One),
                like: equals
                    .map(|value| ("a".to_owned(), value))
                    .into_iter()
                    .collect(),
                ..Condition::default()
            }],
            bind: has,
            one_of: vec![1, 2],
            count: n.map(|min| {
                Count::Range(CountRange {
                    min: Some(min),
                    max: None,
                })
            }),
            exists: Some(flag),
            changed: flag.then_some(texts),
            ..Expect::default()
        });
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..3).prop_map(|any| Expect {
                any,
                ..Expect::default()
            }),
            vec(inner.clone(), 1..3).prop_map(|all| Expect {
                all,
                ..Expect::default()
            }),
            inner.prop_map(|inner| Expect {
                not: Some(Box::new(inner)),
                ..Expect::default()
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Also what a check would refuse.
    #[test]
    fn a_case_is_read_again_as_it_is_written(
        title in text(),
        launch in vec(launch(), 0..3),
        expect in vec(expect(), 0..3),
        fixture in btree_map(text(), text(), 0..3),
    ) {
        let git = Git {
            commits: vec![Commit { message: title.clone(), files: fixture.clone(), ..Commit::default() }],
            head: None,
        };
        let mut entries: BTreeMap<String, Entry> =
            fixture.into_iter().map(|(path, text)| (path, Entry::Text(text))).collect();
        entries.insert("{workspace}".to_owned(), Entry::Made(Made { git: Some(git), ..Made::default() }));
        let case = CaseFile {
            title: title.clone(),
            purpose: title,
            clause: "a.b.c".parse().expect("an id"),
            category: Some(Category::Headless),
            scenario: None,
            origin: None,
            controls: Vec::new(),
            class: None,
            fixture: entries,
            launch,
            expect,
        };
        let written = toml::to_string(&case).expect("writes");
        prop_assert_eq!(toml::from_str::<CaseFile>(&written).expect("reads"), case);
    }
}
