//! The mock model over real connections: what it sends in every protocol, what it keeps, and what it withstands.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use doc2harness::adapters::mock::{BASE_PATH, Mock};
use doc2harness::domain::case::Reply;
use doc2harness::domain::evidence::{Exchange, ReplyKind, SentEnd};
use serde_json::{Value, json};

use crate::docs::same;
use crate::project::{Project, ran, repository};

const CHAT: &str = "/v1/chat/completions";
const TOOLS: &str = r#"{"model":"m","messages":[],"tools":[{}]}"#;

/// A mock on a port of this machine.
struct Server {
    mock: Mock,
    at: SocketAddr,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    /// The script is a list of steps in TOML.
    fn start(script: &str) -> Self {
        #[derive(serde::Deserialize)]
        struct Script {
            script: Vec<Reply>,
        }
        let script: Script = toml::from_str(&format!("script = [{script}]")).expect("a script");
        Self::serve(script.script)
    }

    fn serve(script: Vec<Reply>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let guard = runtime.enter();
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let at = listener.local_addr().expect("is bound");
        let mock = Mock::serve(listener).expect("serves");
        drop(guard);
        mock.begin(BASE_PATH, script, BTreeSet::new());
        Self { mock, at, runtime }
    }

    /// Another launch, whose script is empty.
    fn begin_empty(&self) {
        self.mock.begin(BASE_PATH, Vec::new(), BTreeSet::new());
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).expect("connects");
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).expect("sets");
        stream
    }

    /// Sends bytes; everything that comes back until the end of the connection.
    fn raw(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).expect("writes");
        rest(&mut stream)
    }

    /// HTTP/1.0: the body that comes back ends with the connection and has no framing.
    fn ask(&self, path: &str, body: &str) -> String {
        self.raw(post(path, body, "HTTP/1.0").as_bytes())
    }

    /// Everything that was asked, once the mock has seen that clients are gone.
    fn end(&self) -> Vec<Exchange> {
        for _ in 0..3 {
            self.ask("/settle", "");
        }
        let mut asked = self.mock.end(BASE_PATH);
        assert_eq!(asked.n_unkept, 0);
        asked
            .exchanges
            .retain(|exchange| exchange.path != "/settle");
        asked.exchanges
    }
}

fn post(path: &str, body: &str, version: &str) -> String {
    format!(
        "POST {path} {version}\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn rest(stream: &mut TcpStream) -> String {
    let mut out = Vec::new();
    let _ = stream.read_to_end(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Reads a head and the body that its length promises.
fn one_reply(stream: &mut BufReader<TcpStream>) -> String {
    let (mut out, mut length) = (String::new(), 0);
    loop {
        let at = out.len();
        stream.read_line(&mut out).expect("a line");
        let line = &out[at..];
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().expect("a number");
        }
        if line == "\r\n" || line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a body");
    out + &String::from_utf8_lossy(&body)
}

fn body_of(reply: &str) -> &str {
    reply.split_once("\r\n\r\n").expect("a head and a body").1
}

fn json_of(reply: &str) -> Value {
    serde_json::from_str(body_of(reply)).unwrap_or_else(|error| panic!("{error}: {reply}"))
}

/// The steps of `replies.toml`, by name.
fn replies() -> BTreeMap<String, Reply> {
    let file = repository().join("tests/fixtures/mock/replies.toml");
    toml::from_str(&std::fs::read_to_string(file).expect("reads")).expect("steps by name")
}

/// A question that offers a tool, in each protocol: name, path and body, whole and streamed.
fn questions() -> Vec<(String, String, String)> {
    let mut questions = Vec::new();
    for (mode, stream) in [("whole", false), ("stream", true)] {
        let method = match stream {
            false => "generateContent",
            true => "streamGenerateContent?alt=sse",
        };
        let mut ask = |protocol: &str, path: String, body: Value| {
            questions.push((format!("{protocol}.{mode}"), path, body.to_string()));
        };
        ask(
            "chat",
            CHAT.to_owned(),
            json!({ "model": "m", "stream": stream, "stream_options": { "include_usage": true },
                "messages": [{ "role": "user", "content": "hello" }], "tools": [{ "type": "function" }] }),
        );
        ask(
            "responses",
            "/v1/responses".to_owned(),
            json!({ "model": "m", "stream": stream, "input": "hello", "tools": [{ "type": "function" }] }),
        );
        ask(
            "messages",
            "/v1/messages?beta=true".to_owned(),
            json!({ "model": "m", "stream": stream, "max_tokens": 9, "tools": [{ "input_schema": {} }],
                "messages": [{ "role": "user", "content": "hello" }] }),
        );
        ask(
            "gemini",
            format!("/v1beta/models/m:{method}"),
            json!({ "contents": [{ "role": "user", "parts": [{ "text": "hello" }] }],
                "tools": [{ "functionDeclarations": [{ "name": "read" }] }] }),
        );
    }
    questions
}

#[test]
fn every_reply_is_sent_in_the_words_of_every_protocol() {
    let mut replies = replies();
    // These have no end to read to.
    replies.retain(|name, _| !["hang", "stall"].contains(&name.as_str()));
    for (name, path, body) in questions() {
        let server = Server::serve(replies.values().cloned().collect());
        let mut text = String::new();
        for step in replies.keys() {
            text += &format!("=== {step}\n{}\n", server.ask(&path, &body));
        }
        same(&format!("tests/fixtures/mock/{name}.txt"), &text);
    }
}

#[test]
fn requests_are_answered_in_order_and_kept() {
    let server = Server::start(
        "{ say = 'first' }, { fault = 'status', code = 429, retry_after_s = 7 }, { fault = 'cut', after_bytes = 20 }",
    );
    assert!(server.ask(CHAT, TOOLS).contains("first"));
    let limited = server.ask(CHAT, TOOLS);
    assert!(limited.contains(" 429 ") && limited.contains("retry-after: 7"));
    let cut = server.ask(CHAT, TOOLS);
    assert_eq!(body_of(&cut), "{\"id\":\"chatcmpl-3\",\"");
    assert!(server.ask("/v1/embeddings", "{}").contains(" 404 "));
    assert!(server.ask(CHAT, "{").contains(" 400 "));
    assert!(server.ask(CHAT, TOOLS).contains("end of script"));

    let exchanges = server.end();
    let seen: Vec<(ReplyKind, Option<u16>, SentEnd)> = exchanges
        .iter()
        .map(|exchange| {
            let sent = exchange.sent.expect("is kept");
            assert!(exchange.at_ms <= sent.began_ms.expect("began"));
            assert!(sent.began_ms <= sent.ended_ms);
            (exchange.reply, sent.status, sent.end)
        })
        .collect();
    let expected = [
        (ReplyKind::Step(1), Some(200), SentEnd::Whole),
        (ReplyKind::Step(2), Some(429), SentEnd::Whole),
        (ReplyKind::Step(3), Some(200), SentEnd::Cut),
        (ReplyKind::NotFound, Some(404), SentEnd::Whole),
        (ReplyKind::BadRequest, Some(400), SentEnd::Whole),
        (ReplyKind::Overrun, Some(200), SentEnd::Whole),
    ];
    assert_eq!(seen, expected);
    assert_eq!(exchanges[2].sent.expect("is kept").n_bytes, 20);

    // The next launch begins anew.
    server.begin_empty();
    assert!(server.ask(CHAT, TOOLS).contains("chatcmpl-1"));
    let Server {
        mock,
        at,
        runtime: _runtime,
    } = server;
    drop(mock);
    let since = Instant::now();
    while TcpStream::connect(at).is_ok() {
        assert!(
            since.elapsed() < Duration::from_secs(60),
            "the listener is closed"
        );
        std::thread::yield_now();
    }
}

#[test]
fn launches_are_told_apart_by_their_path_and_a_held_reply_waits() {
    let server = Server::start("{ say = 'first' }");
    server.mock.end(BASE_PATH);
    let say = |text: &str| {
        let text = Some(text.to_owned());
        vec![Reply {
            say: text,
            ..Reply::default()
        }]
    };
    let (mock, second) = (&server.mock, "/launch-2/v1");
    mock.begin(BASE_PATH, say("first"), BTreeSet::from([1]));
    mock.begin(
        second,
        [say("second"), say("third")].concat(),
        BTreeSet::new(),
    );
    std::thread::scope(|scope| {
        let held = scope.spawn(|| server.ask(CHAT, TOOLS));
        let mut news = mock.news();
        server.runtime.block_on(async {
            while mock.n_requests(BASE_PATH) == 0 {
                news.changed().await.expect("the mock lives");
            }
        });
        assert!(
            server
                .ask("/launch-2/v1/chat/completions", TOOLS)
                .contains("second")
        );
        // The folder of a launch is that of every protocol.
        let gemini = r#"{"tools":[{"functionDeclarations":[{"name":"read"}]}]}"#;
        let reply = server.ask("/launch-2/v1beta/models/m:generateContent", gemini);
        assert!(reply.contains("third"));
        assert!(server.ask("/elsewhere", "{}").starts_with("HTTP/1.0 404"));
        assert!(!held.is_finished());
        mock.release(BASE_PATH, 1);
        assert!(held.join().expect("answers").contains("first"));
    });
    let n_with_what_lies_below_no_base_path = mock.end(BASE_PATH).exchanges.len();
    assert_eq!(n_with_what_lies_below_no_base_path, 2);
    assert_eq!(mock.end(second).exchanges.len(), 2);
    assert_eq!(server.ask(CHAT, TOOLS), "", "no launch runs");
}

#[test]
fn the_same_form_is_kept_whatever_the_protocol() {
    let server = Server::start("{ say = 'x', times = 4 }");
    for (_, path, body) in questions()
        .into_iter()
        .filter(|(name, ..)| name.ends_with("whole"))
    {
        server.ask(&path, &body);
    }
    let exchanges = server.end();
    assert_eq!(exchanges.len(), 4);
    for exchange in &exchanges {
        let chat = exchange.chat();
        assert_eq!(chat["model"], "m", "{}", exchange.path);
        assert_eq!(chat["stream"], false);
        assert_eq!(
            chat["messages"],
            json!([{ "role": "user", "content": "hello" }])
        );
        assert_eq!(chat["tools"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            exchange.chat.is_none(),
            exchange.path == CHAT,
            "{}",
            exchange.path
        );
    }
    // What came stays as it came, and the path with its query.
    assert_eq!(exchanges[1].body["input"], "hello");
    assert_eq!(exchanges[2].path, "/v1/messages?beta=true");
}

#[test]
fn side_calls_consume_no_step_in_any_protocol() {
    let server = Server::start("{ say = 'main' }, { say = 'a title', when = 'tools absent' }");
    let paths = [
        CHAT,
        "/v1/responses",
        "/v1/messages",
        "/v1beta/models/m:generateContent",
    ];
    // The script's own side reply first, then the canned one.
    assert!(server.ask(CHAT, "{}").contains("a title"));
    for path in paths {
        let reply = server.ask(path, "{\"contents\":[]}");
        assert!(reply.contains("(side reply)"), "{path}: {reply}");
    }
    // A router wants JSON, and reads it.
    let router = json!({ "contents": [], "generationConfig": {
        "responseMimeType": "application/json",
        "responseJsonSchema": {
            "type": "object", "required": ["reasoning", "model_choice"],
            "properties": {
                "reasoning": { "type": "string" },
                "model_choice": { "type": "string", "enum": ["flash", "pro"] },
            },
        },
    } });
    let reply = json_of(&server.ask(paths[3], &router.to_string()));
    let text = &reply["candidates"][0]["content"]["parts"][0]["text"];
    let choice: Value = serde_json::from_str(text.as_str().expect("a text")).expect("JSON");
    assert_eq!(
        choice,
        json!({ "reasoning": "(side reply)", "model_choice": "flash" })
    );
    // What is no call of the model takes no step either.
    assert!(
        server
            .raw(b"HEAD / HTTP/1.0\r\n\r\n")
            .starts_with("HTTP/1.0 200")
    );
    assert!(
        server
            .raw(b"GET /v1/models HTTP/1.0\r\n\r\n")
            .contains("\"mock-model\"")
    );
    assert!(
        server
            .ask("/v1/messages/count_tokens", "{}")
            .contains("input_tokens")
    );
    assert!(server.ask(CHAT, TOOLS).contains("main"));

    let exchanges = server.end();
    assert!(exchanges[..9].iter().all(|exchange| exchange.side));
    assert_eq!(exchanges[0].reply, ReplyKind::Step(2));
    assert_eq!(exchanges[5].reply, ReplyKind::Side);
    assert_eq!(exchanges[6].reply, ReplyKind::Service);
    assert!(!exchanges[9].side);
}

#[test]
fn what_the_script_sends_as_it_stands_arrives_so() {
    let server = Server::start(
        "{ body = { choices = 5 } }, { body = 'no JSON', code = 503, headers = { Content-Type = 'text/plain' } }, \
         { body = { choices = 5 } }, { events = [{ a = 1 }, 'b'] }, { body = \": comment\\n\\n\" }, \
         { events = ['x'], fault = 'error-event' }",
    );
    let stream = r#"{"stream":true,"tools":[{}]}"#;
    assert_eq!(body_of(&server.ask(CHAT, TOOLS)), "{\"choices\":5}");
    let text = server.ask(CHAT, TOOLS);
    assert!(
        text.contains(" 503 ")
            && text.contains("content-type: text/plain")
            && text.ends_with("no JSON")
    );
    assert_eq!(
        body_of(&server.ask(CHAT, stream)),
        "data: {\"choices\":5}\n\n"
    );
    assert_eq!(
        body_of(&server.ask(CHAT, stream)),
        "data: {\"a\":1}\n\ndata: b\n\n"
    );
    assert_eq!(body_of(&server.ask(CHAT, stream)), ": comment\n\n");
    assert!(body_of(&server.ask(CHAT, stream)).starts_with("data: x\n\ndata: {\"error\""));
}

#[test]
fn a_candidate_that_leaves_is_told_from_one_that_stays() {
    let server = Server::start(
        "{ fault = 'stall', after_bytes = 10 }, { fault = 'hang' }, { say = 'late', delay_ms = 60000 }, \
         { fault = 'drop' }, { fault = 'stall', after_bytes = 9 }",
    );
    let request = post(CHAT, TOOLS, "HTTP/1.0");
    let mut stalled = server.connect();
    stalled.write_all(request.as_bytes()).expect("writes");
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n{\"id\":\"cha") {
        let mut byte = [0];
        stalled
            .read_exact(&mut byte)
            .expect("the bytes before the silence");
        seen.push(byte[0]);
    }
    drop(stalled);
    // Steps are taken in the order of the requests, so each is there before the next is sent; and a request whose sender
    // leaves before it is read is none.
    for n_before in [1, 2] {
        let mut left = server.connect();
        left.write_all(request.as_bytes()).expect("writes");
        while server.mock.n_requests(BASE_PATH) <= n_before {
            std::thread::sleep(Duration::from_millis(2));
        }
        left.shutdown(std::net::Shutdown::Write).expect("shuts");
        assert_eq!(rest(&mut left), "", "request {n_before} gets nothing");
    }
    assert_eq!(server.raw(request.as_bytes()), "", "dropped");
    let mut half = server.connect();
    half.write_all(format!("POST {CHAT} HTTP/1.1\r\ncontent-length: 99\r\n\r\n{{\"mod").as_bytes())
        .expect("writes");
    half.shutdown(std::net::Shutdown::Write).expect("shuts");
    rest(&mut half);
    let mut open = server.connect();
    open.write_all(request.as_bytes()).expect("writes");
    open.read_exact(&mut [0; 20]).expect("it began");

    let exchanges = server.end();
    let seen: Vec<(ReplyKind, Option<u16>, usize, SentEnd)> = exchanges
        .iter()
        .map(|exchange| {
            let sent = exchange.sent.expect("is kept");
            (exchange.reply, sent.status, sent.n_bytes, sent.end)
        })
        .collect();
    let expected = [
        (ReplyKind::Step(1), Some(200), 10, SentEnd::Left),
        (ReplyKind::Step(2), None, 0, SentEnd::Left),
        (ReplyKind::Step(3), None, 0, SentEnd::Left),
        (ReplyKind::Step(4), None, 0, SentEnd::Cut),
        (ReplyKind::Unfinished, None, 0, SentEnd::Left),
        (ReplyKind::Step(5), Some(200), 9, SentEnd::Open),
    ];
    assert_eq!(seen, expected);
    assert_eq!(exchanges[4].body, "{\"mod");
    assert_eq!(exchanges[5].sent.expect("is kept").ended_ms, None);
}

#[test]
fn every_way_of_sending_a_request_is_understood() {
    let server = Server::start("{ say = 'yes', times = 6 }");
    let mut stream = BufReader::new(server.connect());
    let mut send = |bytes: &str| {
        stream
            .get_mut()
            .write_all(bytes.as_bytes())
            .expect("writes")
    };
    // Three at once on one connection, in their order.
    send(&post(CHAT, TOOLS, "HTTP/1.1").repeat(3));
    for n in 1..=3 {
        assert!(one_reply(&mut stream).contains(&format!("chatcmpl-{n}\"")));
    }
    // In chunks, on the same connection.
    let (head, tail) = TOOLS.split_at(7);
    let chunks = format!(
        "{:x}\r\n{head}\r\n{:x}\r\n{tail}\r\n0\r\n\r\n",
        head.len(),
        tail.len()
    );
    let head = format!("POST {CHAT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    stream
        .get_mut()
        .write_all((head + &chunks).as_bytes())
        .expect("writes");
    assert!(one_reply(&mut stream).contains("chatcmpl-4\""));
    // A client that waits to be asked for the body.
    let request =
        post(CHAT, TOOLS, "HTTP/1.1").replace("host: x", "host: x\r\nexpect: 100-continue");
    let (head, body) = request.split_at(request.len() - TOOLS.len());
    stream.get_mut().write_all(head.as_bytes()).expect("writes");
    assert!(one_reply(&mut stream).starts_with("HTTP/1.1 100"));
    stream.get_mut().write_all(body.as_bytes()).expect("writes");
    assert!(one_reply(&mut stream).contains("chatcmpl-5\""));
    assert!(server.ask(CHAT, TOOLS).starts_with("HTTP/1.0 200"));
    assert_eq!(server.end().len(), 6);
}

#[test]
fn hostile_requests_cost_their_sender_alone() {
    let server = Server::start("{ say = 'yes', times = 9 }");
    // Heads that never end, more than there is room for; the first are closed for the next.
    let slow: Vec<TcpStream> = (0..80)
        .map(|_| {
            let mut stream = server.connect();
            stream
                .write_all(b"POST /v1/chat/completions HTTP/1.1\r\nx-a: ")
                .expect("writes");
            stream
        })
        .collect();
    assert!(server.ask(CHAT, TOOLS).contains("yes"));
    drop(slow);
    // Bodies that never end are unfinished requests, and not busy ones.
    let half = format!("POST {CHAT} HTTP/1.1\r\ncontent-length: 99\r\n\r\n{{");
    let slow: Vec<TcpStream> = (0..80)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(half.as_bytes()).expect("writes");
            stream
        })
        .collect();
    assert!(server.ask(CHAT, TOOLS).contains("yes"));
    drop(slow);
    let bomb = format!("GET / HTTP/1.1\r\n{}\r\n", "x-a: b\r\n".repeat(5_000));
    assert!(server.raw(bomb.as_bytes()).starts_with("HTTP/1.1 431"));
    let bomb = format!("GET / HTTP/1.1\r\nx-a: {}\r\n\r\n", "b".repeat(1 << 20));
    let refused = server.raw(bomb.as_bytes());
    assert!(
        refused.is_empty() || refused.starts_with("HTTP/1.1 431"),
        "{refused}"
    );
    assert!(
        server
            .raw(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
            .starts_with("HTTP/1.1 400")
    );
    // Too long, and too heavy: a small text of very many values.
    let long = format!(
        "POST {CHAT} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{}",
        40 << 20,
        " ".repeat(33 << 20)
    );
    let refused = server.raw(long.as_bytes());
    assert!(
        refused.is_empty() || refused.starts_with("HTTP/1.1 413"),
        "{refused}"
    );
    let heavy = format!("{{\"a\":[{}0]}}", "0,".repeat(3 << 20));
    assert!(server.ask(CHAT, &heavy).contains(" 413 "));
    let deep = "[".repeat(1 << 20);
    assert!(
        server
            .ask(CHAT, &format!("{{\"a\":{deep}"))
            .contains(" 400 ")
    );
    let long_path = format!("/{}", "a".repeat(20_000));
    assert!(server.ask(&long_path, "").contains(" 404 "));
    assert!(server.ask(CHAT, TOOLS).contains("yes"));

    let exchanges = server.end();
    let count = |kind: ReplyKind| exchanges.iter().filter(|one| one.reply == kind).count();
    assert_eq!(count(ReplyKind::Step(1)), 3);
    assert_eq!(count(ReplyKind::TooLarge), 2);
    assert_eq!(count(ReplyKind::BadRequest), 1);
    assert!(exchanges.iter().all(|one| one.path.len() <= 1_000));
}

#[test]
fn a_flood_is_answered_counted_and_kept_in_part() {
    const N: usize = 10_000;
    let server = Server::start("{ say = 'yes' }");
    let request = post(CHAT, TOOLS, "HTTP/1.1");
    let mut stream = BufReader::new(server.connect());
    for _ in 0..N / 100 {
        stream
            .get_mut()
            .write_all(request.repeat(100).as_bytes())
            .expect("writes");
        for _ in 0..100 {
            assert!(one_reply(&mut stream).starts_with("HTTP/1.1 200"));
        }
    }
    let asked = server.mock.end(BASE_PATH);
    assert_eq!(asked.exchanges.len() + asked.n_unkept, N);
    assert_eq!(asked.exchanges.len(), 2_000);

    // Bodies that are too heavy to keep are answered all the same.
    server.begin_empty();
    let heavy = format!("{{\"tools\":[{{}}],\"a\":[{}0]}}", "0,".repeat(1 << 19));
    for _ in 0..5 {
        assert!(server.ask(CHAT, &heavy).contains("end of script"));
    }
    let asked = server.mock.end(BASE_PATH);
    assert_eq!((asked.exchanges.len(), asked.n_unkept), (3, 2));
}

/// A harness that asks without end, on one connection and on new ones.
const FLOOD: &str = r#"#!/usr/bin/env python3
import socket, threading
body = b'{"model":"m","messages":[],"tools":[{}]}'
request = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body
def kept():
    one = socket.create_connection(("127.0.0.1", 8400))
    threading.Thread(target=lambda: [one.recv(1 << 20) for _ in iter(int, 1)], daemon=True).start()
    while True:
        one.sendall(request * 50)
def fresh():
    while True:
        one = socket.create_connection(("127.0.0.1", 8400))
        one.sendall(request)
        one.recv(1 << 16)
        one.close()
threading.Thread(target=kept, daemon=True).start()
fresh()
"#;

const FLOOD_CASE: &str = r#"title = "a flood ends at the time limit"
purpose = "The limit holds whatever the candidate asks."
clause = "tools.read.format"
category = "headless"
scenario = "ordinary"
[[launch]]
route = "headless"
prompt = "x"
time_limit_s = 6
script = [{ say = "done" }]
[[expect]]
channel = "requests"
at = "$.model"
equals = "m"
"#;

#[test]
fn a_flood_does_not_hold_up_the_time_limit() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    project.write("cases/headless/flood.toml", FLOOD_CASE);
    project.write("candidates/flood/harness", FLOOD);
    project.write("candidates/flood/install.sh", "chmod +x harness\n");
    for folder in ["", "data", "candidates/flood/harness"] {
        let open = PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(project.path(folder), open).expect("sets");
    }
    let run = project.run(&[
        "--json",
        "evaluate",
        "-c",
        "flood",
        "--case",
        "headless/flood",
    ]);
    let verdict = &run.json()["verdicts"][0]["outcome"];
    assert_eq!(
        verdict["reason"], "timeout",
        "{}\n{}",
        run.stdout, run.stderr
    );
    let run = run.json()["run"].as_str().expect("a run").to_owned();
    let shown = project.run(&["show", &run, "headless/flood"]);
    assert!(
        shown.stdout.contains("requests left out"),
        "{}\n{}",
        shown.stdout,
        shown.stderr
    );
}

/// Whether this run of the tests was asked to drive the official clients; said aloud when it was not.
fn clients_asked() -> bool {
    let asked = std::env::var_os("PIPELINE_TEST_CLIENTS").is_some_and(|asked| asked == "1");
    if !asked {
        // Past the capture of the test runner, so that it is seen in a run that passes.
        let text = b"\nThe official clients were not asked for; set PIPELINE_TEST_CLIENTS=1\n";
        std::io::stderr().write_all(text).expect("stderr takes it");
    }
    asked
}

/// The folder of the pinned clients, installed once below `target/`.
fn clients() -> PathBuf {
    let requirements = repository().join("tests/fixtures/mock/requirements.txt");
    let wanted = std::fs::read_to_string(&requirements).expect("reads");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("clients");
    let stamp = folder.join("installed.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return folder;
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("removes");
    }
    let installed = ran(Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--requirement"])
        .arg(&requirements)
        .arg("--target")
        .arg(&folder));
    assert_eq!(installed.code, 0, "pip install: {}", installed.stderr);
    std::fs::write(stamp, wanted).expect("writes");
    folder
}

#[test]
fn the_official_clients_read_every_reply() {
    if !clients_asked() {
        return;
    }
    let clients = clients();
    let replies = replies();
    let n_protocols = questions().len();
    let script: Vec<Reply> = (0..n_protocols)
        .flat_map(|_| replies.values().cloned())
        .collect();
    let server = Server::serve(script);
    let seen = ran(Command::new("python3")
        .arg(repository().join("tests/fixtures/mock/clients.py"))
        .arg(format!("http://{}", server.at))
        .args(replies.keys())
        .env("PYTHONPATH", clients)
        .env("NO_PROXY", "*"));
    assert_eq!(seen.code, 0, "{}", seen.stderr);
    same("tests/fixtures/mock/clients.txt", &seen.stdout);

    // One request a call, and none out of step.
    let exchanges = server.end();
    assert_eq!(exchanges.len(), n_protocols * replies.len());
    for (idx, exchange) in exchanges.iter().enumerate() {
        assert_eq!(exchange.reply, ReplyKind::Step(idx + 1));
        let chat = exchange.chat();
        assert_eq!(
            chat["messages"][0],
            json!({ "role": "user", "content": "hello" })
        );
        assert_eq!(chat["tools"][0]["function"]["name"], "read");
    }
}
