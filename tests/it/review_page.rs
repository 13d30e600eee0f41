//! `review serve` over HTTP: who is let in, that decisions land in the files of the command line at once, and that two
//! pages do not overwrite each other.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use doc2harness::domain::certificate::CERTIFICATE_FORMAT;
use doc2harness::storage::clusters;
use doc2harness::storage::database::Database;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::project::{Project, repository};

/// A running server, killed when it is dropped.
pub struct Server {
    child: Child,
    pub port: u16,
    /// By reader: name and token.
    pub tokens: Vec<(String, String)>,
}

impl Server {
    pub fn start(project: &Project, arguments: &[&str]) -> Self {
        let all = [&["review", "serve", "--port", "0"], arguments].concat();
        let mut child = project
            .command(&all)
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
        let n_readers = arguments.iter().filter(|one| **one == "--by").count();
        let (mut port, mut tokens) = (0, Vec::new());
        for _ in 0..n_readers {
            let mut line = String::new();
            lines.read_line(&mut line).expect("an address");
            let (name, url) = line.trim().split_once("  ").expect("name and address");
            let (host, token) = url.split_once("/?token=").expect("a token");
            port = host
                .rsplit_once(':')
                .expect("a port")
                .1
                .parse()
                .expect("a number");
            tokens.push((name.to_owned(), token.to_owned()));
        }
        Self {
            child,
            port,
            tokens,
        }
    }

    pub fn visitor(&self, name: &str) -> Visitor {
        let (_, token) = self
            .tokens
            .iter()
            .find(|(reader, _)| reader == name)
            .expect("a reader");
        Visitor {
            port: self.port,
            host: format!("127.0.0.1:{}", self.port),
            origin: Some(format!("http://127.0.0.1:{}", self.port)),
            cookie: Some(format!("review-{}={token}", self.port)),
        }
    }

    /// As a crash would.
    pub fn kill(&mut self) {
        self.child.kill().expect("kills");
        self.child.wait().expect("ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Somebody who sends requests, with these headers.
#[derive(Clone)]
pub struct Visitor {
    port: u16,
    host: String,
    origin: Option<String>,
    cookie: Option<String>,
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Visitor {
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "")
    }

    pub fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        self.send("POST", path, &body)
    }

    /// The page of an issue.
    pub fn issue(&self, key: &str) -> Answer {
        let key = key.replace('/', "%2F").replace('#', "%23");
        self.get(&format!("/read?issue={key}"))
    }

    /// Presses a button of the form of an issue's page.
    pub fn press(&self, page: &Answer, verb: &str, why: &str) -> Answer {
        self.decide("/read/decide", page, verb, why)
    }

    fn decide(&self, path: &str, page: &Answer, verb: &str, why: &str) -> Answer {
        let (form, on, seen) = (page.hidden("form"), page.hidden("on"), page.hidden("seen"));
        let mut fields = vec![
            ("form", form.as_str()),
            ("on", &on),
            ("seen", &seen),
            ("why", why),
        ];
        if !verb.is_empty() {
            fields.push(("verb", verb));
        }
        self.post(path, &fields)
    }

    fn send(&self, method: &str, path: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connects");
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
            self.host
        );
        for (name, value) in [("Origin", &self.origin), ("Cookie", &self.cookie)] {
            if let Some(value) = value {
                text += &format!("{name}: {value}\r\n");
            }
        }
        text += &format!(
            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).expect("sends");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status");
        Answer {
            status: status.parse().expect("a number"),
            head: head.to_lowercase(),
            body: body.to_owned(),
        }
    }
}

impl Answer {
    /// The value of a hidden field.
    pub fn hidden(&self, name: &str) -> String {
        let sign = format!("name=\"{name}\" value=\"");
        let at = self
            .body
            .find(&sign)
            .unwrap_or_else(|| panic!("{name}: {}", self.body));
        let rest = &self.body[at + sign.len()..];
        rest[..rest.find('"').expect("it ends")].to_owned()
    }
}

/// The sample, collected and ranked.
pub fn sample() -> Project {
    let project = Project::new();
    let sample = repository().join("data/sample/issues.jsonl");
    project.json(&["collect", "--from", sample.to_str().expect("UTF-8")]);
    project.json(&["rank"]);
    project
}

fn lines(project: &Project) -> Vec<Value> {
    std::fs::read_to_string(project.path("reviews/issues.jsonl"))
        .unwrap_or_default()
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

const HOSTILE: &str = concat!(
    r#"{"repository":"o/n","number":1,"title":"<script>alert(1)</script> denied","html_url":"javascript:alert(1)","#,
    r#""body":"<img src=x onerror=alert(2)> deny rule\n\n```\n</pre><script>alert(3)</script>\n```\n\u202ereversed"}"#,
    "\n",
    r#"{"repository":"o/n","number":2,"title":"Edit denied by a rule","body":"","html_url":"https://example.invalid/2"}"#,
    "\n",
);

fn hostile() -> Project {
    let project = Project::new();
    project.write("issues.jsonl", HOSTILE);
    project.json(&["collect", "--from", "issues.jsonl"]);
    project.json(&["rank"]);
    project
}

#[test]
fn only_who_has_the_address_is_let_in() {
    let project = hostile();
    let server = Server::start(&project, &["--by", "ana"]);
    let ana = server.visitor("ana");
    let check = |visitor: &Visitor, status: u16| {
        let got = visitor.get("/read");
        assert_eq!(got.status, status, "{}", got.body);
        got
    };
    let page = check(&ana, 200);
    for expected in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: same-origin",
    ] {
        assert!(page.head.contains(expected), "{expected}: {}", page.head);
    }
    assert!(!page.head.contains("access-control"), "{}", page.head);
    check(
        &Visitor {
            cookie: None,
            ..ana.clone()
        },
        403,
    );
    check(
        &Visitor {
            cookie: Some(format!("review-{}=0", server.port)),
            ..ana.clone()
        },
        403,
    );
    check(
        &Visitor {
            host: format!("evil.invalid:{}", server.port),
            ..ana.clone()
        },
        403,
    );
    check(
        &Visitor {
            host: format!("localhost:{}", server.port),
            ..ana.clone()
        },
        200,
    );

    // What changes something needs our origin and a form of ours.
    let pressed = |visitor: &Visitor, page: &Answer| visitor.press(page, "approve", "").status;
    assert_eq!(
        pressed(
            &Visitor {
                origin: None,
                ..ana.clone()
            },
            &page
        ),
        403
    );
    let elsewhere = Some("http://evil.invalid".to_owned());
    assert_eq!(
        pressed(
            &Visitor {
                origin: elsewhere,
                ..ana.clone()
            },
            &page
        ),
        403
    );
    let foreign = Answer {
        body: page.body.replace(&page.hidden("form"), "0"),
        ..page
    };
    assert_eq!(pressed(&ana, &foreign), 403);
    assert_eq!(lines(&project), [Value::Null; 0]);

    let first = Visitor {
        cookie: None,
        ..ana.clone()
    }
    .get(&format!("/?token={}", server.tokens[0].1));
    assert_eq!(first.status, 303);
    assert!(
        first.head.contains("httponly; samesite=strict"),
        "{}",
        first.head
    );
    assert!(first.head.contains("location: /read"), "{}", first.head);
    let wrong = Visitor {
        cookie: None,
        ..ana
    }
    .get("/?token=0");
    assert_eq!(wrong.status, 403);
}

#[test]
fn text_of_strangers_is_never_markup() {
    let project = hostile();
    let server = Server::start(&project, &["--by", "ana"]);
    let ana = server.visitor("ana");
    let page = ana.issue("o/n#1");
    for bad in [
        "<script>alert",
        "<img",
        "javascript:",
        "\u{202e}",
        "</pre><script",
    ] {
        assert!(!page.body.contains(bad), "{bad}: {}", page.body);
    }
    assert!(page.body.contains("⟨U+202E⟩"), "{}", page.body);
    let list = ana.get("/issues").body;
    assert!(
        list.contains("&lt;script&gt;alert(1)&lt;/script&gt;"),
        "{list}"
    );
    assert!(!list.contains("<script>alert"), "{list}");
    let odd = ana.get("/read?issue=%3Cscript%3Ealert(1)%3C/script%3E&done=approve&on=%3Cb%3E");
    assert_eq!(odd.status, 404);
    assert!(!odd.body.contains("<script>alert"), "{}", odd.body);
}

#[test]
fn a_decision_is_in_the_file_before_the_page_answers_and_a_kill_loses_none() {
    let project = sample();
    let mut server = Server::start(&project, &["--by", "ana"]);
    let ana = server.visitor("ana");
    let mut said = Vec::new();
    for (idx, verb) in ["approve", "reject", "unsure"].into_iter().enumerate() {
        let page = ana.get("/read");
        let on = page.hidden("on");
        let answer = ana.press(
            &page,
            verb,
            if idx == 1 {
                " no test can show it "
            } else {
                ""
            },
        );
        assert_eq!(answer.status, 303, "{}", answer.body);
        said.push((on, verb));
        let last = lines(&project).pop().expect("a line");
        assert_eq!(last["on"], format!("issue:{}", said[idx].0));
        assert_eq!(
            (&last["decision"], &last["by"]),
            (&verb.into(), &"ana".into())
        );
    }
    assert_eq!(lines(&project)[1]["why"], "no test can show it");
    server.kill();
    let server = Server::start(&project, &["--by", "ana"]);
    let ana = server.visitor("ana");
    let page = ana.get("/read");
    assert!(
        page.body.contains("<b>2</b> of 95 read, <b>1</b> relevant"),
        "{}",
        page.body
    );
    assert!(said.iter().all(|(on, _)| *on != page.hidden("on")));
    let unsure = ana.get("/issues?state=unsure");
    assert!(
        unsure.body.contains(&said[2].0) && !unsure.body.contains(&said[0].0),
        "{}",
        unsure.body
    );

    // The command line says the same, and what it writes is on the next page.
    let listing = project.json(&["review", "read", "-n", "95"]);
    assert_eq!(listing["reading"]["n_read"], 2);
    let batch = listing["batch"].as_array().expect("a list");
    assert_eq!(batch.len(), 92, "what is unsure is not offered again");
    let key = page.hidden("on");
    let subject = format!("issue:{key}");
    project.json(&["review", "reject", &subject, "--by", "ben"]);
    assert_ne!(ana.get("/read").hidden("on"), key);
    assert!(ana.issue(&key).body.contains("Not relevant</b> by ben"));

    // Undo goes to the last own decision, across a restart.
    let answer = ana.post("/read/undo", &[("form", &page.hidden("form"))]);
    assert_eq!(answer.status, 303, "{}", answer.body);
    let back = said[2].0.replace('/', "%2f").replace('#', "%23");
    assert!(
        answer.head.contains(&format!("issue={back}")),
        "{}",
        answer.head
    );
    assert!(
        ana.get("/read").body.contains("<b>3</b> of 95 read"),
        "ben's counts"
    );
}

#[test]
fn two_pages_do_not_overwrite_each_other() {
    let project = sample();
    let server = Server::start(&project, &["--by", "ana", "--by", "ben"]);
    let (ana, ben) = (server.visitor("ana"), server.visitor("ben"));
    let key = ana.get("/read").hidden("on");
    let (of_ana, of_ben) = (ana.issue(&key), ben.issue(&key));
    assert_eq!(ana.press(&of_ana, "approve", "").status, 303);
    let late = ben.press(&of_ben, "reject", "my <reason>");
    assert_eq!(late.status, 409);
    assert!(
        late.body.contains("my &lt;reason&gt;"),
        "what was written is kept: {}",
        late.body
    );
    assert_eq!(
        ana.press(&of_ana, "approve", "").status,
        409,
        "pressed twice"
    );
    assert_eq!(lines(&project).len(), 1);
    // Who has seen the decision may say otherwise.
    assert_eq!(ben.press(&ben.issue(&key), "reject", "").status, 303);
    assert_eq!(lines(&project).len(), 2);

    // Many at once: each line is whole, and of each issue only the first one counts.
    let keys: Vec<String> = (0..8)
        .map(|_| {
            let page = ana.get("/read");
            let key = page.hidden("on");
            ana.press(&page, "unsure", "");
            key
        })
        .collect();
    let before = lines(&project).len();
    std::thread::scope(|scope| {
        for key in &keys {
            let pages = [(&ana, ana.issue(key)), (&ben, ben.issue(key))];
            for (visitor, page) in pages {
                scope.spawn(move || visitor.press(&page, "approve", "at once"));
            }
        }
    });
    assert_eq!(lines(&project).len(), before + keys.len());
}

#[test]
fn a_blind_reader_sees_nothing_of_others() {
    let project = sample();
    let server = Server::start(&project, &["--by", "ana", "--by", "ben", "--blind"]);
    let (ana, ben) = (server.visitor("ana"), server.visitor("ben"));
    ready(&ana);
    ready(&ben);
    let page = ana.get("/read");
    let key = page.hidden("on");
    let before = ben.issue(&key).body;
    assert_eq!(ana.press(&page, "approve", "because of ana").status, 303);
    assert_eq!(ben.issue(&key).body, before, "not a trace");
    assert_eq!(ben.get("/read").hidden("on"), key);
    assert_eq!(ben.press(&ben.issue(&key), "reject", "").status, 303);
    assert_eq!(lines(&project).len(), 2);
}

#[test]
fn reasons_likeness_and_search_come_with_all_issues() {
    let project = sample();
    let server = Server::start(&project, &["--by", "ana"]);
    let ana = server.visitor("ana");
    ready(&ana);
    let page = ana.get("/read").body;
    for expected in [
        "Why it is here",
        "class=\"words\"",
        "<mark class=\"for\">",
        "Place 1 of the ranking",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let found = ana.get("/issues?text=symlink").body;
    let n = |page: &str| page.matches("<tr>").count() - 1;
    assert!((1..30).contains(&n(&found)), "{found}");
    assert_eq!(n(&ana.get("/issues?text=symlink+qqqxyz").body), 0);
    assert_eq!(n(&ana.get("/issues").body), 95);
    let clause = ana.get("/issues?clause=tools.").body;
    assert!((1..95).contains(&n(&clause)), "{clause}");
    // Another report on links that lead out stands near it.
    let near = ana.issue("example/harness-a#1217").body;
    let alike = near.split("<h2>Alike</h2>").nth(1).expect("some are alike");
    let alike = alike.split("</section>").next().expect("it ends");
    assert!(
        alike.contains("example/harness-a#1234") && alike.contains(" % · not read"),
        "{alike}"
    );

    // The yield is drawn from the first decision on, with the figures of whether to read on.
    let progress = ana.get("/progress").body;
    assert!(
        progress.contains("read on: nothing is read yet") && !progress.contains("<svg"),
        "{progress}"
    );
    for verb in ["approve", "reject", "approve"] {
        assert_eq!(ana.press(&ana.get("/read"), verb, "").status, 303);
    }
    let progress = ana.get("/progress").body;
    for expected in [
        "aria-label=\"2 relevant issues in 3 that were read\"",
        "class=\"found\"",
        "Recall at least",
        "Chance that less than 95 %",
    ] {
        assert!(progress.contains(expected), "{expected}: {progress}");
    }
}

/// Waits until all issues are read in.
pub fn ready(visitor: &Visitor) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while visitor.get("/read").body.contains("id=\"waits\"") {
        assert!(std::time::Instant::now() < end, "it never ends");
        std::thread::yield_now();
    }
}

const VARIANT: &str = r#"title    = "a <b>variant</b>"
purpose  = "It waits."
clause   = "tools.read.format"
category = "headless"
scenario = "boundary"
origin   = { method = "expansion", seed = "headless/seed", variable = "tool" }

[fixture]
"src/a.txt" = "one\ntwo"

[[launch]]
route  = "headless"
prompt = "read it"
script = [
  { call = "read", with = { path = "src/a.txt" } },
  { say = "done" },
]

[[expect]]
channel = "exit"
equals  = 0
"#;

pub fn variant() -> Project {
    let project = hostile();
    project.write("data/variants/headless/v.toml", VARIANT);
    let seed = VARIANT
        .replace(
            "origin   = { method = \"expansion\", seed = \"headless/seed\", variable = \"tool\" }",
            "origin   = { method = \"document\" }",
        )
        .replace("src/a.txt", "src/b.txt");
    project.write("cases/headless/seed.toml", &seed);
    project
}

impl Visitor {
    /// Presses a button of a case's page.
    fn press_case(&self, page: &Answer, verb: &str, why: &str) -> Answer {
        self.decide("/case/decide", page, verb, why)
    }
}

#[test]
fn a_case_is_told_and_joins_the_suite_when_it_is_approved() {
    let project = variant();
    let server = Server::start(&project, &["--by", "ana"]);
    let ana = server.visitor("ana");
    let list = ana.get("/cases").body;
    assert!(
        list.contains("Waiting for a decision: 1") && list.contains("In the suite: 1"),
        "{list}"
    );
    let page = ana.get("/case?id=headless/v");
    for expected in [
        "a &lt;b&gt;variant&lt;/b&gt;",
        "harness -p",
        "calls read",
        "The exit code of the last launch must be exactly 0.",
        "exit equals 0",
        "Clause tools.read.format",
        "<ins>+ &quot;src/a.txt&quot;",
        "<del>- &quot;src/b.txt&quot;",
        "It is in no certificate yet.",
    ] {
        assert!(page.body.contains(expected), "{expected}: {}", page.body);
    }
    assert_eq!(
        ana.press_case(&page, "approve", "").status,
        400,
        "a decision on a case has a reason"
    );
    assert_eq!(ana.press_case(&page, "change", "name the file").status, 303);
    let listing = project.json(&["review", "list", "--kind", "case", "--all"]);
    assert_eq!(listing["items"][0]["decided"]["decision"], "change");
    assert_eq!(
        listing["n_waiting"], 0,
        "it waits for its author, not for a reviewer"
    );
    assert!(project.path("data/variants/headless/v.toml").exists());
    assert_eq!(ana.press_case(&page, "approve", "late").status, 409);

    let page = ana.get("/case?id=headless/v");
    assert!(
        page.body.contains("sent back for a change"),
        "{}",
        page.body
    );
    assert_eq!(
        ana.press_case(&page, "approve", "it tells two apart")
            .status,
        303
    );
    assert!(project.path("cases/headless/v.toml").exists());
    let page = ana.get("/case?id=headless/v");
    assert_eq!(ana.decide("/case/undo", &page, "", "").status, 303);
    assert!(project.path("data/variants/headless/v.toml").exists());
    let page = ana.get("/case?id=headless/v");
    assert!(page.body.contains("/case/redo"), "{}", page.body);
    assert_eq!(ana.decide("/case/redo", &page, "", "").status, 303);
    assert!(project.path("cases/headless/v.toml").exists());

    // What was no variant can be remarked on and sent back, not moved.
    let page = ana.get("/case?id=headless/seed");
    let refused = ana.press_case(&page, "reject", "no");
    assert_eq!(refused.status, 400);
    assert!(
        refused.body.contains("is in the suite and was no variant"),
        "{}",
        refused.body
    );
    assert_eq!(ana.press_case(&page, "note", "good").status, 303);
    assert!(project.path("cases/headless/seed.toml").exists());
    assert_eq!(ana.get("/case?id=nothing/there").status, 400);
}

#[test]
fn a_case_is_shown_with_what_proves_it() {
    let project = variant();
    let server = Server::start(&project, &["--by", "ana"]);
    let ana = server.visitor("ana");
    let page = || ana.get("/case?id=headless/seed").body;
    assert!(page().contains("It is in no certificate yet."));
    let text = std::fs::read_to_string(project.path("cases/headless/seed.toml")).expect("reads");
    let digest = Sha256::digest(text.as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let certify = |of_reference: Value| {
        let certificate = json!({
            "format": CERTIFICATE_FORMAT,
            "tool_version": "0",
            "tool_sources": "0",
            "cases": { "headless/seed": digest },
            "reference": { "digest": "r", "fails": of_reference },
            "mutants": {
                "mutants/numbers-from-0": { "digest": "a", "fails": { "headless/seed": "assertion" } },
                "mutants/hangs": { "digest": "b", "fails": { "headless/seed": "timeout", "headless/other": "crash" } },
                "mutants/other": { "digest": "c", "fails": { "headless/other": "assertion" } },
            },
        });
        project.write("cases/CERTIFICATE.json", &certificate.to_string());
    };
    certify(json!({}));
    let proved = page();
    for expected in [
        "<span class=\"yes-text\">Passes</span> on the reference.",
        "Failed by <b>2</b> of 3 mutants.",
        "<dt>assertion</dt><dd>mutants/numbers-from-0</dd>",
        "<dt>timeout</dt><dd>mutants/hangs</dd>",
        // Each can be run here and now.
        "<option value=\"mutants/hangs\">",
    ] {
        assert!(proved.contains(expected), "{expected}: {proved}");
    }
    assert!(!proved.contains("mutants/other"), "{proved}");
    certify(json!({ "headless/seed": "<b>crash" }));
    let failed = page();
    assert!(
        failed.contains("Fails</span> on the reference: &lt;b&gt;crash"),
        "{failed}"
    );
    project.write("cases/headless/seed.toml", &text.replace("two", "three"));
    let changed = page();
    assert!(
        changed.contains("It has changed since it was certified.") && !changed.contains("mutants."),
        "{changed}"
    );
}

#[test]
fn two_reviewers_see_how_far_they_agree() {
    let project = sample();
    let server = Server::start(&project, &["--by", "ana", "--by", "ben", "--blind"]);
    let (ana, ben) = (server.visitor("ana"), server.visitor("ben"));
    let votes = [
        ("approve", "approve"),
        ("reject", "reject"),
        ("approve", "reject"),
    ];
    let mut last = String::new();
    for (first, second) in votes {
        let page = ana.get("/read");
        last = page.hidden("on");
        assert_eq!(ana.press(&page, first, "").status, 303);
        assert_eq!(ben.press(&ben.issue(&last), second, "").status, 303);
    }
    let said = project.json(&["review", "agreement"]);
    assert_eq!(said["n_twice"], 3);
    // 2 of 3 agreed; by chance 2/3 × 1/3 + 1/3 × 2/3 = 4/9.
    let kappa = said["agreements"][0]["kappa"].as_f64().expect("a figure");
    assert!((kappa - 0.4).abs() < 1e-9, "{kappa}");
    assert_eq!(said["conflicts"][0]["subject"], format!("issue:{last}"));
    let page = ana.get("/agreement").body;
    for expected in ["67 %", "0.40", "Conflicts: 1", &last] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    // Whoever decides once more resolves it; the figures are of first votes.
    assert_eq!(ana.press(&ana.issue(&last), "reject", "").status, 303);
    let said = project.json(&["review", "agreement"]);
    assert_eq!(said["conflicts"], serde_json::json!([]));
    assert_eq!(
        said["agreements"][0]["agreed"]
            .as_f64()
            .map(|share| share < 0.7),
        Some(true)
    );
}

/// What the sample reports of these, all read as relevant, clustered.
const PHENOMENA: [&str; 6] = [
    "deny-ignored-in-auto",
    "link-escape-read",
    "edit-line-ends",
    "session-lost-on-kill",
    "model-error-exit-0",
    "unknown-slash-command",
];

pub fn clustered() -> Project {
    let project = Project::new();
    let lines = |file: &str| -> Vec<Value> {
        let path = repository().join("data/sample").join(file);
        let text = std::fs::read_to_string(path).expect("reads");
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        lines.collect()
    };
    let key = |one: &Value| {
        format!(
            "{}#{}",
            one["repository"].as_str().expect("a text"),
            one["number"]
        )
    };
    let chosen: BTreeSet<String> = lines("judgements.jsonl")
        .iter()
        .filter(|one| PHENOMENA.iter().any(|name| one["phenomenon"] == *name))
        .map(key)
        .collect();
    let mut issues = lines("issues.jsonl");
    issues.retain(|issue| chosen.contains(&key(issue)));
    assert_eq!(issues.len(), chosen.len());
    let text: Vec<String> = issues.iter().map(|issue| format!("{issue}\n")).collect();
    project.write("issues.jsonl", &text.concat());
    let said: Vec<String> = chosen
        .iter()
        .map(|key| format!("approve {key} a test can show it\n"))
        .collect();
    project.write("said.txt", &said.concat());
    project.json(&["collect", "--from", "issues.jsonl"]);
    project.json(&["rank"]);
    project.json(&["review", "read", "--say", "said.txt", "--by", "ana"]);
    project.json(&["cluster"]);
    project
}

#[test]
fn clusters_are_parted_and_merged_by_decisions_on_pairs() {
    let project = clustered();
    let server = Server::start(&project, &["--by", "ana"]);
    let ana = server.visitor("ana");
    let clusters =
        |project: &Project| -> Vec<Vec<String>> { told(project).iter().map(members).collect() };
    let ids: Vec<String> = told(&project).into_iter().map(|[id, ..]| id).collect();
    let before = clusters(&project);
    let big = before
        .iter()
        .position(|members| members.len() >= 3)
        .expect("a cluster of three");
    let page = ana.get(&format!("/cluster?id={}", ids[big]));
    let form = page.hidden("form");
    for key in &before[big] {
        assert!(
            page.body.contains(&format!("value=\"{key}\"")),
            "{key}: {}",
            page.body
        );
    }
    // The page of the cluster is opened anew for each act, unless an old `seen` is named.
    let act = |fields: &[(&str, &str)]| {
        let id = fields
            .iter()
            .find(|(name, _)| *name == "id")
            .expect("one")
            .1;
        let seen = ana.get(&format!("/cluster?id={id}")).hidden("seen");
        let all = [
            &[("form", form.as_str()), ("why", "another phenomenon")],
            fields,
            &[("seen", seen.as_str())],
        ]
        .concat();
        ana.post("/cluster/mend", &all)
    };
    let parted = before[big][1].as_str();
    let answer = act(&[("id", &ids[big]), ("act", "part"), ("member", parted)]);
    assert_eq!(answer.status, 303, "{}", answer.body);
    let after = clusters(&project);
    assert_eq!(after.len(), before.len() + 1);
    assert!(after.contains(&vec![parted.to_owned()]), "{after:?}");
    let rest: Vec<String> = before[big]
        .iter()
        .filter(|key| *key != parted)
        .cloned()
        .collect();
    assert!(after.contains(&rest), "the others stay together: {after:?}");

    // Nothing ticked, all ticked, itself: nothing is written.
    let file = || std::fs::read_to_string(project.path("reviews/pairs.jsonl")).expect("reads");
    let written = file();
    let other = (0..ids.len()).find(|idx| *idx != big).expect("another one");
    for fields in [
        &[("id", ids[other].as_str()), ("act", "part")][..],
        &[("id", &ids[other]), ("act", "merge"), ("to", &ids[other])],
    ] {
        assert_eq!(act(fields).status, 400);
    }
    assert_eq!(file(), written);

    let answer = act(&[("id", &ids[other]), ("act", "merge"), ("to", &ids[big])]);
    assert_eq!(answer.status, 303, "{}", answer.body);
    let merged = clusters(&project);
    assert_eq!(merged.len(), before.len());
    let first = &before[other][0];
    let holder = merged
        .iter()
        .find(|members| members.contains(first))
        .expect("it is somewhere");
    assert!(rest.iter().all(|key| holder.contains(key)), "{holder:?}");
    // The command line finds nothing to do.
    let made = project.json(&["cluster"]);
    assert_eq!(made["unchanged"], true);
    assert_eq!(made["n_clusters"], merged.len());
}

/// Id, name, representative and members of each cluster.
fn told(project: &Project) -> Vec<[String; 4]> {
    let database = Database::open(&project.path("data/db/pipeline.sqlite")).expect("opens");
    let all = clusters::all(&database).expect("reads").into_iter();
    let told = all.map(|cluster| {
        let members = serde_json::to_string(&cluster.members).expect("is data");
        [
            cluster.id,
            cluster.label,
            cluster.representative.to_string(),
            members,
        ]
    });
    told.collect()
}

fn members(cluster: &[String; 4]) -> Vec<String> {
    serde_json::from_str(&cluster[3]).expect("a list")
}

#[test]
fn each_act_on_clusters_is_taken_back_and_made_again_as_a_whole() {
    let project = clustered();
    let mend = |arguments: &[&str]| project.json(&[&["review", "mend"], arguments].concat());
    let saying = ["--why", "one phenomenon", "--by", "ana"];
    let before = told(&project);
    let big = before
        .iter()
        .find(|cluster| members(cluster).len() >= 3)
        .expect("a cluster of three");
    let other = before.iter().find(|one| *one != big).expect("another one");
    let id = big[0].as_str();
    let all = members(big);
    let member = all.iter().find(|key| **key != big[2]).expect("another one");
    let acts: [&[&str]; 5] = [
        &["rename", id, "Rules are skipped"],
        &["represent", id, member],
        &["part", id, member],
        &["move", id, &other[0], member],
        &["merge", id, &other[0]],
    ];
    for act in acts {
        let saying = if act[0] == "rename" {
            &saying[2..]
        } else {
            &saying
        };
        mend(&[act, saying].concat());
        let after = told(&project);
        assert_ne!(after, before, "{act:?}");
        mend(&["undo", "--by", "ana"]);
        assert_eq!(told(&project), before, "{act:?} taken back");
        mend(&["redo", "--by", "ana"]);
        assert_eq!(told(&project), after, "{act:?} made again");
        mend(&["undo", "--by", "ana"]);
    }
    assert_eq!(told(&project), before, "all taken back once more");

    // Two acts, back and forth in their order; another act ends what can be made again.
    mend(&["rename", id, "Rules are skipped", "--by", "ana"]);
    mend(&[&["represent", id, member], &saying[..]].concat());
    let both = told(&project);
    let now = both.iter().find(|one| one[0] == id).expect("its id stays");
    assert_eq!([&now[1], &now[2]], ["Rules are skipped", member.as_str()]);
    mend(&["undo", "--by", "ana"]);
    mend(&["undo", "--by", "ana"]);
    assert_eq!(told(&project), before);
    mend(&["redo", "--by", "ana"]);
    mend(&["redo", "--by", "ana"]);
    assert_eq!(told(&project), both);
    let nothing = project.run(&["review", "mend", "redo", "--by", "ana"]);
    assert!(
        nothing.stderr.contains("has taken no act on clusters back"),
        "{}",
        nothing.stderr
    );
    let nothing = project.run(&["review", "mend", "undo", "--by", "ben"]);
    assert!(
        nothing.stderr.contains("ben has no act on clusters"),
        "{}",
        nothing.stderr
    );
    mend(&["undo", "--by", "ana"]);
    mend(&["rename", id, "Denied", "--by", "ana"]);
    assert_eq!(
        project.run(&["review", "mend", "redo", "--by", "ana"]).code,
        2
    );
}

#[test]
fn a_member_that_moves_away_and_back_changes_no_id() {
    let project = clustered();
    let ids = |project: &Project| -> BTreeSet<(String, Vec<String>)> {
        let told = told(project).into_iter();
        told.map(|cluster| (cluster[0].clone(), members(&cluster)))
            .collect()
    };
    let before = told(&project);
    let big = before
        .iter()
        .find(|cluster| members(cluster).len() >= 3)
        .expect("a cluster of three");
    let other = before.iter().find(|one| *one != big).expect("another one");
    // The first one: a cluster that is made anew begins with it.
    let member = &members(big)[0];
    let go = |from: &str, to: &str| {
        let why = ["--why", "so it is", "--by", "ana"];
        project.json(&[&["review", "mend", "move", from, to, member], &why[..]].concat());
    };
    let was = ids(&project);
    go(&big[0], &other[0]);
    let away = ids(&project);
    assert!(
        was.iter()
            .map(|one| &one.0)
            .eq(away.iter().map(|one| &one.0))
    );
    assert!(
        away.iter()
            .any(|(id, members)| *id == other[0] && members.contains(member))
    );
    go(&other[0], &big[0]);
    assert_eq!(ids(&project), was);
}

#[test]
fn two_pages_do_not_mend_one_cluster_over_each_other() {
    let project = clustered();
    let server = Server::start(&project, &["--by", "ana", "--by", "ben"]);
    let (ana, ben) = (server.visitor("ana"), server.visitor("ben"));
    let cluster = &told(&project)[0];
    let address = format!("/cluster?id={}", cluster[0]);
    let pages = [ana.get(&address), ben.get(&address)];
    let rename = |visitor: &Visitor, page: &Answer, name: &str| {
        let (form, seen) = (page.hidden("form"), page.hidden("seen"));
        let fields = [
            ("form", form.as_str()),
            ("id", &cluster[0]),
            ("seen", &seen),
        ];
        let all = [&fields[..], &[("act", "rename"), ("name", name)]].concat();
        visitor.post("/cluster/mend", &all)
    };
    assert_eq!(rename(&ana, &pages[0], "<b>first</b>").status, 303);
    let late = rename(&ben, &pages[1], "second");
    assert_eq!(late.status, 409, "{}", late.body);
    assert!(ana.get(&address).body.contains("&lt;b&gt;first&lt;/b&gt;"));
    let form = pages[0].hidden("form");
    let back = ana.post("/cluster/undo", &[("form", &form), ("id", &cluster[0])]);
    assert_eq!(back.status, 303);
    assert_eq!(&told(&project)[0], cluster);
    let again = ana.post("/cluster/redo", &[("form", &form), ("id", &cluster[0])]);
    assert_eq!(again.status, 303);
    assert_eq!(told(&project)[0][1], "<b>first</b>");
}

#[test]
fn a_decision_that_was_taken_back_is_made_again() {
    let project = sample();
    let server = Server::start(&project, &["--by", "ana"]);
    let ana = server.visitor("ana");
    let page = ana.get("/read");
    let (form, on) = (page.hidden("form"), page.hidden("on"));
    assert!(
        !page.body.contains("/read/redo"),
        "there is nothing to make again"
    );
    assert_eq!(ana.press(&page, "approve", "it is testable").status, 303);
    assert_eq!(ana.post("/read/undo", &[("form", &form)]).status, 303);
    assert!(ana.issue(&on).body.contains("/read/redo"));
    assert_eq!(ana.post("/read/redo", &[("form", &form)]).status, 303);
    let made = lines(&project);
    let last = made.last().expect("a line");
    assert_eq!(
        (&last["decision"], &last["why"]),
        (&"approve".into(), &"it is testable".into())
    );
    assert_eq!(made.len(), 3);
    assert_eq!(ana.post("/read/redo", &[("form", &form)]).status, 404);

    // The command line does the same.
    let subject = format!("issue:{on}");
    project.json(&["review", "undo", &subject, "--by", "ana"]);
    project.json(&["review", "redo", &subject, "--by", "ana"]);
    assert_eq!(lines(&project).len(), 5);
    let again = project.run(&["review", "redo", &subject, "--by", "ana"]);
    assert!(
        again.stderr.contains("has taken no decision on"),
        "{}",
        again.stderr
    );
}

#[test]
fn blind_reviewers_vote_on_a_case_without_a_sight_of_each_other() {
    let project = variant();
    let server = Server::start(&project, &["--by", "ana", "--by", "ben", "--blind"]);
    let (ana, ben) = (server.visitor("ana"), server.visitor("ben"));
    let address = "/case?id=headless/v";
    let page = ana.get(address);
    assert_eq!(ana.press_case(&page, "approve", "told by ana").status, 303);
    for page in [ben.get("/cases"), ben.get(address)] {
        for told in [
            "told by ana",
            "approved",
            "cases/headless/v.toml",
            "suite</td>",
        ] {
            assert!(!page.body.contains(told), "{told}: {}", page.body);
        }
    }
    assert!(ben.get("/cases").body.contains("Waiting for a decision: 1"));
    assert_eq!(
        ben.press_case(&ben.get(address), "reject", "no").status,
        303
    );
    let said = project.json(&["review", "agreement", "--kind", "case"]);
    assert_eq!(said["n_twice"], 1);
    assert_eq!(said["conflicts"][0]["subject"], "case:headless/v");
}

#[test]
fn a_case_is_run_here_and_now_and_its_end_is_told() {
    let project = crate::evaluate::project();
    project.write("issues.jsonl", HOSTILE);
    project.json(&["collect", "--from", "issues.jsonl"]);
    project.json(&["rank"]);
    let server = Server::start(&project, &["--by", "ana"]);
    let ana = server.visitor("ana");
    let form = ana.get("/case?id=file-operations/link").hidden("form");
    let run = |form: &str, candidate: &str| {
        let id = ("id", "file-operations/link");
        ana.post("/case/run", &[("form", form), id, ("candidate", candidate)])
    };
    let passed = run(&form, "reference").body;
    for expected in [
        "file-operations/link on reference",
        "to do",
        "Passed",
        "</html>",
    ] {
        assert!(passed.contains(expected), "{expected}: {passed}");
    }
    let failed = run(&form, "leaky").body;
    for expected in ["Failed: assertion", "expected", "saw"] {
        assert!(failed.contains(expected), "{expected}: {failed}");
    }
    let missing = run(&form, "<b>nobody").body;
    assert!(
        missing.contains("role=\"alert\"") && !missing.contains("<b>nobody"),
        "{missing}"
    );
    assert_eq!(run("made up", "reference").status, 403);
    assert!(!project.path("data/runs").exists(), "nothing is stored");
}
