//! The listener's side: one server a cell, which lives through all its launches and keeps every request.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::task::{JoinHandle, JoinSet};

use super::script::Script;
use super::wire::{self, Answer};
use crate::domain::case::Reply;
use crate::domain::evidence::{Exchange, ReplyKind};

/// What comes before `/chat/completions`.
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
    state: Arc<Mutex<State>>,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    script: Script,
    since: Instant,
    exchanges: Vec<Exchange>,
    n_requests: usize,
    n_bytes: usize,
}

impl Mock {
    /// Serves on a bound listener; has to be called inside a tokio runtime.
    pub fn serve(listener: TcpListener) -> Result<Self, MockError> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let state = Arc::new(Mutex::new(State {
            script: Script::default(),
            since: Instant::now(),
            exchanges: Vec::new(),
            n_requests: 0,
            n_bytes: 0,
        }));
        let server = tokio::spawn(accept(listener, state.clone()));
        Ok(Self { state, server })
    }

    /// A launch begins: from now on this script answers.
    pub fn begin(&self, replies: Vec<Reply>) {
        let mut state = lock(&self.state);
        state.script = Script::new(replies);
        state.since = Instant::now();
        state.exchanges.clear();
        state.n_requests = 0;
        state.n_bytes = 0;
    }

    /// The launch is over: everything that it asked, in the order of arrival.
    pub fn end(&self) -> Vec<Exchange> {
        let mut state = lock(&self.state);
        state.script = Script::default();
        std::mem::take(&mut state.exchanges)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no holder of this lock panics")
}

async fn accept(listener: tokio::net::TcpListener, state: Arc<Mutex<State>>) {
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

async fn respond(request: Request<Incoming>, state: &Mutex<State>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_LIMIT_BYTES).collect().await;
    let bytes = body.map(|body| body.to_bytes()).unwrap_or_default();
    let parsed: Option<Value> = serde_json::from_slice(&bytes).ok().filter(Value::is_object);
    let known =
        head.method == Method::POST && head.uri.path() == format!("{BASE_PATH}/chat/completions");
    // An empty list is that of a role without tools: still the conversation.
    let side = parsed
        .as_ref()
        .is_some_and(|body| body.get("tools").is_none_or(Value::is_null));
    let answer = {
        let mut state = lock(state);
        state.n_requests += 1;
        let n = state.n_requests;
        let (kind, answer) = match (&parsed, known) {
            (_, false) => (ReplyKind::NotFound, wire::error(404, "not_found", None)),
            (None, true) => (ReplyKind::BadRequest, wire::error(400, "bad_request", None)),
            (Some(body), true) => {
                let (kind, reply) = state.script.next(side);
                let answer = wire::answer(n, body, &reply);
                (kind, answer)
            }
        };
        state.n_bytes += bytes.len();
        let kept = state.exchanges.len() < KEPT_REQUESTS && state.n_bytes <= KEPT_BYTES;
        let at_ms = u64::try_from(state.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let body = match (kept, parsed) {
            (true, Some(body)) => body,
            (true, None) => Value::String(String::from_utf8_lossy(&bytes).into_owned()),
            (false, _) => Value::Null,
        };
        if kept || state.exchanges.len() < 2 * KEPT_REQUESTS {
            state.exchanges.push(Exchange {
                at_ms,
                method: head.method.to_string(),
                path: head.uri.path().to_owned(),
                headers: kept_headers(&head.headers),
                body,
                side,
                reply: if kept { kind } else { ReplyKind::Overrun },
            });
        }
        answer
    };
    send(answer).await
}

fn kept_headers(headers: &hyper::HeaderMap) -> BTreeMap<String, String> {
    ["authorization", "content-type", "accept", "user-agent"]
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
        mock.begin(vec![
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
            .end()
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
}
