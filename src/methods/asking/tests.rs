//! One adapter, and cases that differ from one that it is asked in one thing each.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::domain::case::Reply;

const ADAPTER: &str = r#"
harness    = "x"
version    = "1"
categories = ["file-operations"]
routes     = ["headless"]
files      = ["AGENTS.md", ".harness/settings.json"]
settings   = ["permissions.deny"]
leave_out  = { "tools.grep.*" = "its search is another" }
[flags]
"--permission-mode" = ["auto"]
"--deny"            = ["*"]
"--continue"        = []
[tools.read]
name      = "Read"
arguments = { path = "file", limit = "ms" }
absolute  = ["path"]
times     = { limit = 1000 }
plus      = { limit = -1 }
constants = { file = "{workspace}", why = "asked" }
[tools.write]
name      = "Write"
arguments = { path = "file", content = "text" }
[say]
call = "Finish"
with = { text = "<{say}>" }
[limits]
time_limit_s = 100
"#;

const CASE: &str = r#"title    = "t"
purpose  = "p"
clause   = "tools.read.range"
category = "file-operations"
scenario = "boundary"
controls = ["c"]
[fixture]
"notes.txt" = "notes {nonce:n}"
[[launch]]
route        = "headless"
prompt       = "look"
args         = ["--permission-mode=auto", "--continue"]
time_limit_s = 30
script       = [{ call = "read", with = { path = "notes.txt" } }, { say = "done" }]
[[expect]]
channel = "requests"
at      = "$.messages[?@.role == 'tool'].content"
lacks   = "{nonce:n}"
"#;

fn adapter() -> Adapter {
    toml::from_str(ADAPTER).expect("an adapter")
}

/// The questions made of the case and its control, which is the case but for `has`, each with some text replaced.
fn questions(case: &[(&str, &str)], control: &[(&str, &str)]) -> (Question, Question) {
    let parse = |id: &str, text: &str, edits: &[(&str, &str)]| {
        let text = edits.iter().fold(text.to_owned(), |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replace(old, new)
        });
        Case::parse(CaseId::new(id), Path::new("x.toml"), &text)
            .unwrap_or_else(|findings| panic!("{findings:?}\n{text}"))
    };
    let start = CASE.find("category").expect("is there");
    let end = CASE.find("[fixture]").expect("is there");
    let head = "class = \"channel\"\n";
    let control_text =
        format!("{}{head}{}", &CASE[..start], &CASE[end..]).replace("lacks ", "has   ");
    let suite = Suite::new([
        parse("file-operations/a", CASE, case),
        parse("controls/c", &control_text, control),
    ]);
    let ids: Vec<&CaseId> = suite.all().map(|case| &case.id).collect();
    let mut questions = ask(&suite, &ids, &adapter());
    let mut take = |id: &str| questions.remove(&CaseId::new(id)).expect("was put");
    (take("file-operations/a"), take("controls/c"))
}

fn asked(edits: &[(&str, &str)]) -> Question {
    questions(edits, &[]).0
}

#[test]
fn calls_are_translated() {
    let call = |with: &str| {
        let edit = [("with = { path = \"notes.txt\" }", with)];
        let case = asked(&edit).expect("is asked");
        case.launches[0].script[0].with.clone().expect("has some")
    };
    let case = asked(&[]).expect("is asked");
    let launch = &case.launches[0];
    assert_eq!(launch.script[0].call.as_deref(), Some("Read"));
    assert_eq!(
        call("with = { path = \"notes.txt\" }"),
        json!({ "file": "{workspace}/notes.txt", "why": "asked" })
    );
    assert_eq!(
        call("with = { path = \"{outside}/x\", limit = 2 }"),
        json!({ "file": "{outside}/x", "why": "asked", "ms": 1999 })
    );
    assert_eq!(call("with = {}")["file"], "{workspace}");
    // Broken JSON stays as it is; a text that is an object is translated as one.
    assert_eq!(call(r#"with = '{"path": '"#), r#"{"path": "#);
    let whole = Adapter {
        whole_arguments: true,
        ..adapter()
    };
    let mut broken = Reply {
        call: Some("read".into()),
        with: Some("{".into()),
        ..Reply::default()
    };
    assert!(calls::translate(&mut broken, &whole).is_err());
    let Value::String(raw) = call(r#"with = '{"limit": 2.0}'"#) else {
        panic!("stays a text");
    };
    assert_eq!(
        serde_json::from_str::<Value>(&raw).expect("JSON")["ms"],
        json!(2.0)
    );
    // A text that ends the turn is a call of this harness.
    assert_eq!(launch.script[1].call.as_deref(), Some("Finish"));
    assert_eq!(launch.script[1].with, Some(json!({ "text": "<done>" })));
    assert_eq!((&launch.script[1].say, launch.time_limit_s()), (&None, 100));
}

#[test]
fn what_an_adapter_cannot_express_is_not_asked() {
    let check = |old: &str, new: &str, why: &str| {
        let refused = asked(&[(old, new)]).expect_err(new);
        assert!(refused.contains(why), "{new}: {refused}");
    };
    check("\"file-operations\"", "\"headless\"", "category headless");
    check(
        "tools.read.range",
        "tools.grep.range",
        "its search is another",
    );
    check("\"headless\"\nprompt       = \"look\"", "\"cli\"", "route");
    check("\"look\"", "\"/compact\"", "command");
    check("\"look\"", "\"look at @notes.txt\"", "command");
    check("\"--continue\"]", "\"--fork\"]", "--fork");
    check("=auto", "=plan", "--permission-mode plan");
    check(
        "\"--continue\"]",
        "\"--deny\", \"bash(x)\"]",
        "the rule bash(x)",
    );
    check(
        "time_limit_s = 30",
        "env = { HARNESS_HOME = \"x\" }",
        "HARNESS_HOME",
    );
    check(
        "time_limit_s = 30",
        "bind = { id = { matches = 'x' } }",
        "catches a value",
    );
    check("call = \"read\"", "call = \"list\"", "no tool like list");
    check(
        "path = \"notes.txt\" }",
        "path = \"x\", offset = 1 }",
        "offset",
    );
    check("{ say = \"done\" }", "{ fault = \"hang\" }", "fault");
    let file = |path: &str| format!("\"{path}\" = '{{}}'\n\"notes.txt\"");
    check(
        "\"notes.txt\" =",
        &(file("{state}/settings.json") + " ="),
        "{state}",
    );
    check(
        "\"notes.txt\" =",
        &(file("a/.harness/x") + " ="),
        "a/.harness/x",
    );
    let settings = |text: &str| format!("\".harness/settings.json\" = '{text}'\n\"notes.txt\" =");
    let check_settings = |text: &str, why: &str| check("\"notes.txt\" =", &settings(text), why);
    check_settings("{", "broken");
    check_settings(r#"{"hooks": {}}"#, "hooks");
    check_settings(r#"{"permissions": {"allow": []}}"#, "permissions.allow");
    check_settings(r#"{"permissions": {"deny": ["bash"]}}"#, "the rule bash");
    // A mode that it does not have matters only to tools that a mode can forbid.
    let no_mode = ("\"--permission-mode=auto\", ", "");
    asked(&[no_mode]).expect("reads only");
    let refused = asked(&[
        no_mode,
        ("\"read\", with = {", "\"write\", with = { content = \"x\","),
    ]);
    assert!(refused.expect_err("writes").contains("mode like ask"));
    for allowed in ["app/AGENTS.md", "app/harness.md"] {
        let edit = file(allowed) + " =";
        asked(&[("\"notes.txt\" =", &edit)]).expect(allowed);
    }
    let rule = settings(r#"{"permissions": {"deny": ["read(a/**)"]}}"#);
    asked(&[("\"notes.txt\" =", &rule)]).expect("a rule that it knows");
}

#[test]
fn a_case_and_its_controls_are_asked_together() {
    let list = [("\"read\"", "\"list\"")];
    let (case, _) = questions(&[], &list);
    let why = case.expect_err("its control cannot be asked");
    assert_eq!(why, "its control c: it has no tool like list");
    let (case, control) = questions(&list, &[]);
    assert!(case.is_err());
    let why = control.expect_err("gates nothing");
    assert_eq!(why, "no case that it gates is asked");
    let (case, control) = questions(&[], &[]);
    assert!(case.is_ok() && control.is_ok());
}

#[test]
fn assertions_keep_what_does_not_speak_the_contract() {
    const OLD: &str = "channel = \"requests\"\nat      = \"$.messages[?@.role == 'tool'].content\"\nlacks   = \"{nonce:n}\"\n";
    let neutral = "[[expect]]\nchannel = \"files\"\npath = \"notes.txt\"\nunchanged = true\n";
    // Beside an assertion that any harness can meet, so that something is left.
    let check = |expect: &str, left: &str| {
        let case = asked(&[(OLD, &format!("{expect}\n{neutral}"))]).expect(expect);
        let shown: Vec<String> = case.expects.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown.len(),
            if left.is_empty() { 1 } else { 2 },
            "{shown:?}"
        );
        if !left.is_empty() {
            assert_eq!(shown[0], left);
        }
    };
    let on = |channel: &str, rest: &str| format!("channel = \"{channel}\"\n{rest}");
    let at = |path: &str, rest: &str| on("requests", &format!("at = \"{path}\"\n{rest}"));
    let all = "$.messages[*].content";
    let shown_all = "requests $.messages[*].content";
    check(
        &at(all, "has = \"look\""),
        &format!("{shown_all} has \"look\""),
    );
    check(
        &at(all, "has = \"1\\tnotes {nonce:n}\""),
        &format!("{shown_all} has \"{{nonce:n}}\""),
    );
    check(&at(all, "equals = \"error: x\""), "");
    check(
        &at(all, "lacks = [\"error\", \"{nonce:n}\"]"),
        &format!("{shown_all} lacks \"{{nonce:n}}\""),
    );
    check(&at(all, "matches = \"^{nonce:n}\""), "");
    check(
        &at("$.messages[1].content", "equals = \"a {nonce:n}\""),
        &format!("{shown_all} has \"{{nonce:n}}\""),
    );
    check(&at("$.messages[1].content", "lacks = \"{nonce:n}\""), "");
    check(
        &at("$.messages[?@.content == 'error: x']", "has = \"look\""),
        "",
    );
    check(&at("$.tools[*].function.name", "has = \"read\""), "");
    check(
        &at("$.model", "equals = \"m\""),
        "requests $.model equals \"m\"",
    );
    check(&on("requests", "count = 0"), "requests counts 0");
    check(&on("requests", "count = 2"), "");
    check(&on("exit", "equals = 0"), "exit equals 0");
    check(&on("exit", "equals = 4"), "exit differs from 0");
    check(&on("exit", "one_of = [0, 4]"), "");
    check(
        &on("output", "equals = \"answer {nonce:n}\\n\""),
        "output has \"{nonce:n}\"",
    );
    check(
        &on("output", "stream = \"stderr\"\nhas = \"{nonce:n}\""),
        "",
    );
    check(&on("output", "at = \"$.ok\"\nequals = true"), "");
    check(&on("files", "path = \"{state}/x\"\nexists = true"), "");
    let any = |second: &str| {
        format!("any = [{{ channel = \"exit\", equals = 4 }}, {{ channel = \"exit\", {second} }}]")
    };
    check(
        &any("equals = 0"),
        "any of: exit differs from 0 | exit equals 0",
    );
    check(&any("not_equals = 4"), "");
    check(
        "all = [{ channel = \"exit\", equals = 0 }, { channel = \"requests\", count = 2 }]",
        "all of: exit equals 0",
    );
    let not = |inner: &str| format!("not = {{ channel = \"exit\", {inner} }}");
    check(&not("equals = 0"), "not: exit equals 0");
    check(&not("equals = 4"), "");
    check(&on("files", "path = \"{home}/x\"\nexists = true"), "");
    check(&at(all, "bind = \"id\""), "");
    check(
        &on(
            "requests",
            "request = 2\nafter_ms = { min = 9 }\nat = \"$.model\"\nhas = \"m\"",
        ),
        "",
    );
    for expect in [at(all, "equals = \"error: x\""), on("exit", "equals = 0")] {
        let why = asked(&[(OLD, &expect)]).expect_err("nothing tells");
        assert_eq!(why, "it asserts in words of the contract only");
    }
}
