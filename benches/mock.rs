//! What a request to the mock model costs, beside the least that a hyper server can do: read the body and send a
//! constant one of the same length. Both take turns within a round, so that a busy machine is busy for each.
//!
//! `cargo bench --bench mock -- [ROUNDS]` prints medians over the rounds: requests a second as one client sees them, and
//! processor time of the serving process a request. Then a flood: 100,000 requests on one connection and 100,000 on new
//! ones, and the largest size of the serving process after each.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use doc2harness::adapters::mock::{BASE_PATH, Mock};
use doc2harness::domain::case::Reply;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::json;

/// Requests of one turn; all of them are kept.
const N: usize = 2_000;
const N_FLOOD: usize = 100_000;
/// Replies of the mock to the requests below have about this length.
const BARE_BODY_BYTES: usize = 330;

fn main() {
    let argument = std::env::args().nth(1);
    match argument.as_deref() {
        Some("serve-bare") => serve(false),
        Some("serve-mock") => serve(true),
        argument => measure(argument.and_then(|rounds| rounds.parse().ok()).unwrap_or(9)),
    }
}

fn measure(rounds: usize) {
    let small = request(4, 200);
    let large = request(40, 1_200);
    println!(
        "requests of {} and {} bytes; {rounds} rounds of {N}; medians",
        small.len(),
        large.len()
    );
    let mut bare = Server::start("serve-bare");
    let mut mock = Server::start("serve-mock");
    for (what, request, fresh) in [
        ("one connection, small", &small, false),
        ("one connection, large", &large, false),
        ("new connections, small", &small, true),
    ] {
        let (mut bare_seen, mut mock_seen) = (Vec::new(), Vec::new());
        for _ in 0..=rounds {
            bare_seen.push(bare.turn(request, N, fresh));
            mock_seen.push(mock.turn(request, N, fresh));
        }
        // The first round warms up.
        let (bare, mock) = (median(&bare_seen[1..]), median(&mock_seen[1..]));
        println!(
            "{what:<24} bare {:7.0} requests/s {:6.1} µs CPU   mock {:7.0} requests/s {:6.1} µs CPU   CPU ratio {:.2}",
            bare.0,
            bare.1,
            mock.0,
            mock.1,
            mock.1 / bare.1
        );
    }
    println!("largest size before the flood {:.0} MiB", mock.peak_mib());
    for (what, fresh) in [("one connection", false), ("new connections", true)] {
        let (rate, cpu) = mock.turn(&small, N_FLOOD, fresh);
        println!(
            "flood of {N_FLOOD} on {what:<16} {rate:7.0} requests/s {cpu:6.1} µs CPU, largest size {:.0} MiB",
            mock.peak_mib()
        );
    }
}

fn median(turns: &[(f64, f64)]) -> (f64, f64) {
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    (
        middle(turns.iter().map(|turn| turn.0).collect()),
        middle(turns.iter().map(|turn| turn.1).collect()),
    )
}

/// A conversation of so many messages, with a tool.
fn request(n_messages: usize, n_chars: usize) -> Vec<u8> {
    let messages: Vec<_> = (0..n_messages)
        .map(|_| json!({ "role": "user", "content": "x".repeat(n_chars) }))
        .collect();
    let tool = json!({ "type": "function", "function": { "name": "read", "parameters": {} } });
    let body = json!({ "model": "m", "messages": messages, "tools": [tool] }).to_string();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A server in a process of its own; it answers lines on its standard input.
struct Server {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    at: SocketAddr,
}

impl Server {
    fn start(what: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("has a path"))
            .arg(what)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let orders = child.stdin.take().expect("is piped");
        let mut answers = BufReader::new(child.stdout.take().expect("is piped")).lines();
        let at = answers.next().expect("a line").expect("reads");
        Self {
            child,
            orders,
            answers,
            at: at.parse().expect("an address"),
        }
    }

    fn order(&mut self, what: &str) -> f64 {
        writeln!(self.orders, "{what}").expect("is there");
        let answer = self.answers.next().expect("a line").expect("reads");
        answer.parse().expect("a number")
    }

    fn peak_mib(&mut self) -> f64 {
        self.order("peak")
    }

    /// Requests a second, and µs of the server's processor time a request.
    fn turn(&mut self, request: &[u8], n: usize, fresh: bool) -> (f64, f64) {
        self.order("begin");
        let (cpu, began) = (self.order("cpu"), Instant::now());
        let connect = || {
            let stream = TcpStream::connect(self.at).expect("connects");
            stream.set_nodelay(true).expect("sets");
            stream
        };
        let mut stream = connect();
        let mut reply = Vec::new();
        for _ in 0..n {
            if fresh {
                stream = connect();
            }
            stream.write_all(request).expect("writes");
            one_reply(&mut stream, &mut reply);
        }
        let wall = began.elapsed().as_secs_f64();
        let cpu = self.order("cpu") - cpu;
        (n as f64 / wall, cpu / n as f64)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a head and the body whose length it says.
fn one_reply(stream: &mut TcpStream, reply: &mut Vec<u8>) {
    reply.clear();
    let mut wanted = usize::MAX;
    let mut chunk = [0; 4096];
    while reply.len() < wanted {
        let n = stream.read(&mut chunk).expect("reads");
        assert!(n > 0, "the server left");
        reply.extend_from_slice(&chunk[..n]);
        if wanted == usize::MAX
            && let Some(end) = reply.windows(4).position(|four| four == b"\r\n\r\n")
        {
            let head = std::str::from_utf8(&reply[..end]).expect("text");
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            let length = head.split("content-length: ").nth(1).expect("a length");
            let length = length.split("\r\n").next().expect("a line");
            wanted = end + 4 + length.parse::<usize>().expect("a number");
        }
    }
}

fn serve(mock: bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let _guard = runtime.enter();
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    println!("{}", listener.local_addr().expect("is bound"));
    let mock = if mock {
        Some(Mock::serve(listener).expect("serves"))
    } else {
        runtime.spawn(bare(listener));
        None
    };
    for line in std::io::stdin().lines() {
        let answer = match line.expect("reads").as_str() {
            "begin" => {
                if let Some(mock) = &mock {
                    let script = vec![Reply {
                        call: Some("read".to_owned()),
                        with: Some(json!({ "path": "notes.txt" })),
                        times: Some(u32::MAX),
                        ..Reply::default()
                    }];
                    mock.end(BASE_PATH);
                    mock.begin(BASE_PATH, script, BTreeSet::new());
                }
                0.0
            }
            "cpu" => cpu().as_secs_f64() * 1e6,
            _ => peak_mib(),
        };
        println!("{answer}");
    }
}

async fn bare(listener: TcpListener) {
    listener.set_nonblocking(true).expect("sets");
    let listener = tokio::net::TcpListener::from_std(listener).expect("takes");
    let body = Bytes::from(vec![b' '; BARE_BODY_BYTES]);
    loop {
        let (stream, _) = listener.accept().await.expect("accepts");
        stream.set_nodelay(true).expect("sets");
        let body = body.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let body = body.clone();
                async move {
                    let read = request.into_body().collect().await.expect("a body");
                    assert!(!read.to_bytes().is_empty());
                    Ok::<_, Infallible>(Response::new(Full::new(body)))
                }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("always works");
    let time = |time: nix::sys::time::TimeVal| {
        Duration::new(
            u64::try_from(time.tv_sec()).expect("is positive"),
            u32::try_from(time.tv_usec()).expect("is small") * 1_000,
        )
    };
    time(usage.user_time()) + time(usage.system_time())
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("reads");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    kib.and_then(|kib| kib.parse::<f64>().ok())
        .expect("a number of KiB")
        / 1024.0
}
