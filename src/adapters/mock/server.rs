//! The listener's side: one server a cell, which lives through all its launches and keeps every request.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::launches::Launches;
use super::wire::{self, Answer};
use crate::domain::case::Reply;
use crate::domain::evidence::{Exchange, KEPT_HEADERS, ReplyKind};

/// What comes before `/chat/completions`; launches beside others have a folder of their own before it.
pub const BASE_PATH: &str = "/v1";

/// A request's body may be so long; a longer one is refused and kept as a bad request.
const BODY_LIMIT_BYTES: usize = 32 << 20;
/// Requests kept of a launch, and bytes of them; more are answered but not kept, and count as overruns.
const KEPT_REQUESTS: usize = 2_000;
const KEPT_BYTES: usize = 64 << 20;
/// Connections served at the same time; further ones wait.
const CONNECTIONS: usize = 64;
/// Between the last byte of a cut reply and the end of its connection.
const FLUSH_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
pub enum MockError {
    #[error("the mock model cannot serve on its listener")]
    Listener(#[from] io::Error),
}

/// A running mock. Dropped, it closes the listener and every connection.
#[derive(Debug)]
pub struct Mock {
    state: Arc<State>,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    launches: Mutex<Launches>,
    /// Counts what happened: a request came, a held one was released.
    news: watch::Sender<u64>,
}

impl Mock {
    /// Serves on a bound listener; has to be called inside a tokio runtime.
    pub fn serve(listener: TcpListener) -> Result<Self, MockError> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let state = Arc::new(State {
            launches: Mutex::new(Launches::default()),
            news: watch::Sender::new(0),
        });
        let server = tokio::spawn(accept(listener, state.clone()));
        Ok(Self { state, server })
    }

    /// A launch begins: from now on this script answers what is asked below `base_path`. The replies to the requests
    /// of these numbers (from 1, among those with tools) wait until they are released or the launch is over.
    pub fn begin(&self, base_path: &str, replies: Vec<Reply>, held: BTreeSet<usize>) {
        self.state.launches().begin(base_path, replies, held);
    }

    /// The launch is over: everything that it asked, in the order of arrival.
    pub fn end(&self, base_path: &str) -> Vec<Exchange> {
        let exchanges = self.state.launches().end(base_path);
        self.state.tell();
        exchanges
    }

    /// Requests with tools that the launch has made.
    pub fn n_requests(&self, base_path: &str) -> usize {
        self.state.launches().n_main(base_path)
    }

    /// Lets the reply to a held request go.
    pub fn release(&self, base_path: &str, request: usize) {
        self.state.launches().release(base_path, request);
        self.state.tell();
    }

    /// Changes whenever a request comes.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.state.news.subscribe()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl State {
    fn launches(&self) -> MutexGuard<'_, Launches> {
        self.launches.lock().expect("no holder of this lock panics")
    }

    fn tell(&self) {
        self.news.send_modify(|n| *n += 1);
    }

    async fn until_released(&self, base_path: &str, request: usize) {
        let released = |_: &u64| !self.launches().is_held(base_path, request);
        // The sender lives as long as we do.
        let _ = self.news.subscribe().wait_for(released).await;
    }
}

async fn accept(listener: tokio::net::TcpListener, state: Arc<State>) {
    // The set dies with this task, and all connections with it.
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTIONS {
            connections.join_next().await;
        }
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // The peer is gone already, or descriptors are short; both pass.
            Err(_) => {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let state = state.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let state = state.clone();
                async move { Ok::<_, Infallible>(respond(request, &state).await) }
            });
            // A peer that breaks the protocol ends its own connection, nothing else.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

type Body = BoxBody<Bytes, io::Error>;

async fn respond(request: Request<Incoming>, state: &State) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_LIMIT_BYTES).collect().await;
    let bytes = body.map(|body| body.to_bytes()).unwrap_or_default();
    let (answer, main) = answer(&head, &bytes, &mut state.launches());
    state.tell();
    if let Some((base_path, request)) = main {
        state.until_released(&base_path, request).await;
    }
    send(answer).await
}

/// The answer to a request, which is kept; and for one with tools its launch and its number there.
fn answer(
    head: &Parts,
    bytes: &Bytes,
    launches: &mut Launches,
) -> (Answer, Option<(String, usize)>) {
    let Some(served) = launches.of(head.uri.path()) else {
        return (wire::error(404, "not_found", None), None);
    };
    let parsed: Option<Value> = serde_json::from_slice(bytes).ok().filter(Value::is_object);
    let known = head.method == Method::POST
        && head.uri.path() == format!("{}/chat/completions", served.base_path);
    // An empty list is that of a role without tools: still the conversation.
    let side = parsed
        .as_ref()
        .is_some_and(|body| body.get("tools").is_none_or(Value::is_null));
    let main = (known && parsed.is_some() && !side).then(|| {
        served.n_main += 1;
        (served.base_path.clone(), served.n_main)
    });
    served.n_requests += 1;
    let (kind, answer) = match (&parsed, known) {
        (_, false) => (ReplyKind::NotFound, wire::error(404, "not_found", None)),
        (None, true) => (ReplyKind::BadRequest, wire::error(400, "bad_request", None)),
        (Some(body), true) => {
            let (kind, reply) = served.script.next(side);
            let answer = wire::answer(served.n_requests, body, &reply);
            (kind, answer)
        }
    };
    served.n_bytes += bytes.len();
    let kept = served.exchanges.len() < KEPT_REQUESTS && served.n_bytes <= KEPT_BYTES;
    let at_ms = u64::try_from(served.since.elapsed().as_millis()).unwrap_or(u64::MAX);
    let body = match (kept, parsed) {
        (true, Some(body)) => body,
        (true, None) => Value::String(String::from_utf8_lossy(bytes).into_owned()),
        (false, _) => Value::Null,
    };
    if kept || served.exchanges.len() < 2 * KEPT_REQUESTS {
        served.exchanges.push(Exchange {
            at_ms,
            method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            headers: kept_headers(&head.headers),
            body,
            side,
            reply: if kept { kind } else { ReplyKind::Overrun },
        });
    }
    (answer, main)
}

fn kept_headers(headers: &hyper::HeaderMap) -> BTreeMap<String, String> {
    KEPT_HEADERS
        .into_iter()
        .filter_map(|name| {
            let value = headers.get(name)?;
            Some((
                name.to_owned(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            ))
        })
        .collect()
}

async fn send(answer: Answer) -> Response<Body> {
    match answer {
        Answer::Whole {
            status,
            content_type,
            retry_after_s,
            body,
        } => {
            let mut response = Response::new(whole(body));
            *response.status_mut() =
                StatusCode::from_u16(status).expect("a checked script gives a status");
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, content_type.parse().expect("a constant"));
            if let Some(seconds) = retry_after_s {
                headers.insert(RETRY_AFTER, seconds.into());
            }
            response
        }
        Answer::Cut { content_type, body } => {
            // An error right behind the piece would take it along: what is not sent yet is dropped with the connection.
            let piece = stream::iter([Ok(Frame::data(Bytes::from(body)))]);
            let cut = stream::once(async {
                tokio::time::sleep(FLUSH_PAUSE).await;
                Err(io::Error::other("cut by the script"))
            });
            let mut response = Response::new(BodyExt::boxed(StreamBody::new(piece.chain(cut))));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, content_type.parse().expect("a constant"));
            response
        }
        Answer::Hang => {
            std::future::pending::<()>().await;
            Response::new(Empty::new().map_err(|never| match never {}).boxed())
        }
    }
}

fn whole(body: Vec<u8>) -> Body {
    Full::new(Bytes::from(body))
        .map_err(|never| match never {})
        .boxed()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};

    use super::*;
    use crate::domain::case::Fault;

    /// One request over a connection of its own; everything that comes back until the end.
    fn ask(at: SocketAddr, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(at).expect("connects");
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer k\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("writes");
        let mut out = Vec::new();
        let _ = stream.read_to_end(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn requests_are_answered_in_order_and_kept() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let _guard = runtime.enter();
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let at = listener.local_addr().expect("bound");
        let mock = Mock::serve(listener).expect("serves");
        let begin = |replies| mock.begin(BASE_PATH, replies, BTreeSet::new());
        begin(vec![
            Reply {
                say: Some("first".into()),
                ..Reply::default()
            },
            Reply {
                fault: Some(Fault::Status),
                code: Some(429),
                retry_after_s: Some(7),
                ..Reply::default()
            },
            Reply {
                fault: Some(Fault::Cut),
                after_bytes: Some(20),
                ..Reply::default()
            },
        ]);
        let tools = r#"{"model":"m","messages":[],"tools":[{}]}"#;
        assert!(ask(at, "/v1/chat/completions", tools).contains("first"));
        let limited = ask(at, "/v1/chat/completions", tools);
        assert!(limited.starts_with("HTTP/1.1 429") && limited.contains("retry-after: 7"));
        let cut = ask(at, "/v1/chat/completions", tools);
        assert!(
            cut.contains("{\"id\":") && !cut.contains("finish_reason"),
            "{cut}"
        );
        assert!(ask(at, "/v1/models", "{}").starts_with("HTTP/1.1 404"));
        assert!(ask(at, "/v1/chat/completions", "{").starts_with("HTTP/1.1 400"));
        assert!(ask(at, "/v1/chat/completions", tools).contains("end of script"));

        let kinds: Vec<ReplyKind> = mock
            .end(BASE_PATH)
            .into_iter()
            .map(|exchange| exchange.reply)
            .collect();
        let expected = [
            ReplyKind::Step(1),
            ReplyKind::Step(2),
            ReplyKind::Step(3),
            ReplyKind::NotFound,
            ReplyKind::BadRequest,
            ReplyKind::Overrun,
        ];
        assert_eq!(kinds, expected);
        drop(mock);
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(TcpStream::connect(at).is_err(), "the listener is closed");
    }

    #[test]
    fn launches_are_told_apart_by_their_path_and_a_held_reply_waits() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let _guard = runtime.enter();
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let at = listener.local_addr().expect("bound");
        let mock = Mock::serve(listener).expect("serves");
        let say = |text: &str| {
            vec![Reply {
                say: Some(text.into()),
                ..Reply::default()
            }]
        };
        let tools = r#"{"model":"m","messages":[],"tools":[{}]}"#;
        mock.begin(BASE_PATH, say("first"), BTreeSet::from([1]));
        mock.begin("/launch-2/v1", say("second"), BTreeSet::new());
        let held = std::thread::spawn(move || ask(at, "/v1/chat/completions", tools));
        let mut news = mock.news();
        runtime.block_on(async {
            while mock.n_requests(BASE_PATH) == 0 {
                news.changed().await.expect("the mock lives");
            }
        });
        assert!(ask(at, "/launch-2/v1/chat/completions", tools).contains("second"));
        assert!(ask(at, "/elsewhere", "{}").starts_with("HTTP/1.1 404"));
        assert!(!held.is_finished());
        mock.release(BASE_PATH, 1);
        assert!(held.join().expect("answers").contains("first"));
        assert_eq!(
            mock.end(BASE_PATH).len(),
            2,
            "with what lies below no base path"
        );
        assert_eq!(mock.end("/launch-2/v1").len(), 1);
    }
}
