//! A server on this machine that answers like GitHub's list of issues, with whatever goes wrong in a test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

pub struct FakeGitHub {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

#[derive(Debug, Clone)]
pub struct Request {
    /// Path and query.
    pub target: String,
    pub body: Vec<u8>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Clone)]
pub struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    /// Send half of the body and close.
    cut: bool,
    delay: Duration,
}

impl Response {
    pub fn new(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.to_string(),
            cut: false,
            delay: Duration::ZERO,
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A Link header to the next page.
    pub fn next(self, url: &str) -> Self {
        self.header(
            "link",
            &format!("<{url}>; rel=\"next\", <{url}>; rel=\"last\""),
        )
    }

    pub fn cut(mut self) -> Self {
        self.cut = true;
        self
    }

    pub fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

impl FakeGitHub {
    /// `answer` gets the request, how many came before it, and the address of the server.
    pub fn start(
        answer: impl Fn(&Request, usize, &str) -> Response + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (log, base, answer) = (requests.clone(), url.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let (log, base, answer) = (log.clone(), base.clone(), answer.clone());
                std::thread::spawn(move || {
                    let Some(request) = read(&stream) else { return };
                    let n_before = {
                        let mut log = log.lock().expect("no holder panics");
                        log.push(request.clone());
                        log.len() - 1
                    };
                    // The client may be gone, as when it was killed.
                    let _ = write(stream, &answer(&request, n_before, &base));
                });
            }
        });
        Self { url, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no holder panics").clone()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut lines = reader.by_ref().lines();
    let first = lines.next()?.ok()?;
    let target = first.split(' ').nth(1)?.to_owned();
    let headers: Vec<(String, String)> = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_lowercase(), value.trim().to_owned()))
        })
        .collect();
    let mut request = Request {
        target,
        body: Vec::new(),
        headers,
    };
    let length = request
        .header("content-length")
        .and_then(|text| text.parse().ok());
    request.body.resize(length.unwrap_or(0), 0);
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn write(mut stream: TcpStream, response: &Response) -> std::io::Result<()> {
    std::thread::sleep(response.delay);
    let mut head = format!(
        "HTTP/1.1 {} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n",
        response.status,
        response.body.len()
    );
    for (name, value) in &response.headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(head.as_bytes())?;
    stream.write_all(b"\r\n")?;
    let len = if response.cut {
        response.body.len() / 2
    } else {
        response.body.len()
    };
    stream.write_all(&response.body.as_bytes()[..len])
}

/// An issue as GitHub lists it.
pub fn issue(repository: &str, number: u64) -> Value {
    json!({
        "number": number,
        "title": format!("issue {number}"),
        "body": if number.is_multiple_of(3) { Value::Null } else { json!("text") },
        "user": if number.is_multiple_of(2) { Value::Null } else { json!({"login": "a"}) },
        "labels": [{"name": "bug"}],
        "state": "open",
        "state_reason": null,
        "comments": 1,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-02T00:00:00Z",
        "html_url": format!("https://github.com/{repository}/issues/{number}"),
        "repository_url": format!("https://api.github.com/repos/{repository}"),
    })
}

/// A pull request as GitHub lists it among issues.
pub fn pull_request(repository: &str, number: u64) -> Value {
    let mut row = issue(repository, number);
    row["pull_request"] = json!({"url": "x"});
    row
}

/// A comment as GitHub lists it.
pub fn comment(repository: &str, number: u64, id: u64, body: &str) -> Value {
    json!({
        "id": id,
        "body": body,
        "user": null,
        "issue_url": format!("https://api.github.com/repos/{repository}/issues/{number}"),
        "created_at": format!("2026-01-01T00:00:{id}Z"),
        "updated_at": format!("2026-01-02T00:00:{id}Z"),
    })
}
