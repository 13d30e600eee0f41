//! The listener's side: one server a cell, which lives through all its launches. What a candidate does to it (floods,
//! half requests, bodies without end) costs bounded memory: bodies are limited, the larger ones are read one at a time,
//! and no more than so many connections are open.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::JoinHandle;

use super::answer::{self, Answer, Outgoing, Question};
use super::connections::{Busy, Connections, Slot};
use super::launches::Asked;
use super::record::{self, Arrived, Record, Taken, Want};
use super::sample::side_text;
use super::sending::{Sending, response};
use super::wire::{self, Problem, Target, Wanted, Wire};
use crate::domain::case::Reply;
use crate::domain::evidence::{KEPT_HEADERS, ReplyKind, SentEnd};

/// A request's body may be so long, and weigh so much once it is parsed; one over that is answered 413.
const BODY_LIMIT_BYTES: usize = 32 << 20;
const BODY_LIMIT_WEIGHT: usize = 128 << 20;
/// Bodies over this are read and parsed one at a time.
const SMALL_BODY_BYTES: usize = 1 << 20;
/// The head of a request may be so long.
const HEAD_LIMIT_BYTES: usize = 64 << 10;
/// So much of a path and of a header is kept.
const KEPT_CHARS: usize = 1_000;

#[derive(Debug, thiserror::Error)]
pub enum MockError {
    #[error("the mock model cannot serve on its listener")]
    Listener(#[from] io::Error),
}

/// A running mock. Dropped, it closes the listener and every connection.
#[derive(Debug)]
pub struct Mock {
    record: Record,
    server: JoinHandle<()>,
}

impl Mock {
    /// Serves on a bound listener; has to be called inside a tokio runtime.
    pub fn serve(listener: TcpListener) -> Result<Self, MockError> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let record = Record::new();
        let server = tokio::spawn(accept(listener, record.clone()));
        Ok(Self { record, server })
    }

    /// A launch begins: from now on this script answers what is asked below `base_path`. The replies to the requests
    /// of these numbers (from 1, among those with tools) wait until they are released or the launch is over.
    pub fn begin(&self, base_path: &str, replies: Vec<Reply>, held: BTreeSet<usize>) {
        self.record.begin(base_path, replies, held);
    }

    /// The launch is over: everything that it asked.
    pub fn end(&self, base_path: &str) -> Asked {
        self.record.end(base_path)
    }

    /// Requests with tools that the launch has made.
    pub fn n_requests(&self, base_path: &str) -> usize {
        self.record.n_main(base_path)
    }

    /// Lets the reply to a held request go.
    pub fn release(&self, base_path: &str, request: usize) {
        self.record.release(base_path, request);
    }

    /// Changes whenever a request comes.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.record.news()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// What all connections of a mock share.
struct Shared {
    record: Record,
    large_body: Semaphore,
}

async fn accept(listener: tokio::net::TcpListener, record: Record) {
    let mut connections = Connections::default();
    let shared = Arc::new(Shared {
        record,
        large_body: Semaphore::new(1),
    });
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // The peer is gone already, or descriptors are short; both pass.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        connections.room().await;
        let shared = shared.clone();
        connections.serve(|slot| async move {
            let service = service_fn(move |request| {
                let (shared, slot) = (shared.clone(), slot.clone());
                async move { respond(request, &shared, &slot).await }
            });
            // A peer that breaks the protocol ends its own connection, nothing else.
            let _ = hyper::server::conn::http1::Builder::new()
                .auto_date_header(false)
                .max_buf_size(HEAD_LIMIT_BYTES)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// An error ends the connection without an answer.
async fn respond(
    request: Request<Incoming>,
    shared: &Shared,
    slot: &Arc<Slot>,
) -> io::Result<Response<Sending>> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let (launch, path) = shared.record.launch_of(&path).unwrap_or((0, &path));
    let mut upload = Upload {
        record: &shared.record,
        launch,
        head: Some(head),
        bytes: BytesMut::new(),
    };
    let body = upload.read(body, &shared.large_body).await?;
    let head = upload.head.take().expect("taken here only");
    let busy = Busy::on(slot);
    let asked = Wanted::of(head.method.as_str(), path);
    let question = match body {
        Some((bytes, _one_at_a_time)) => read(&head, asked, &bytes),
        None => outside(&head, asked, Value::Null, ReplyKind::TooLarge),
    };
    let Some(taken) = shared.record.take(launch, question.arrived) else {
        // Asked between two launches.
        return Err(io::Error::other("no launch runs"));
    };
    match question.answer {
        Answered::Already(out) => Ok(response(out, taken.entry, busy)),
        Answered::ByScript(wire, question) => scripted(wire, &question, taken, busy).await,
    }
}

/// A request on its way in. Dropped before its end, it is kept as one that the candidate broke off.
struct Upload<'a> {
    record: &'a Record,
    launch: usize,
    head: Option<Parts>,
    bytes: BytesMut,
}

impl Upload<'_> {
    /// The whole body; `None` when it is too large. A larger one comes with the permit that its like wait for.
    async fn read<'s>(
        &mut self,
        mut body: Incoming,
        large_body: &'s Semaphore,
    ) -> io::Result<Option<(Bytes, Option<SemaphorePermit<'s>>)>> {
        let mut permit = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(io::Error::other)?.into_data() else {
                continue;
            };
            let n_bytes = self.bytes.len() + data.len();
            if n_bytes > BODY_LIMIT_BYTES {
                return Ok(None);
            }
            if n_bytes > SMALL_BODY_BYTES && permit.is_none() {
                permit = Some(large_body.acquire().await.expect("is never closed"));
            }
            self.bytes.extend_from_slice(&data);
        }
        let bytes = self.bytes.split().freeze();
        Ok((record::weight(&bytes) <= BODY_LIMIT_WEIGHT).then_some((bytes, permit)))
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        if let Some(head) = self.head.take() {
            let text = String::from_utf8_lossy(&self.bytes).into_owned();
            let want = Want::Nothing(ReplyKind::Unfinished);
            let _left = self
                .record
                .take(self.launch, arrived(&head, text.into(), want));
        }
    }
}

/// A request as it was understood.
struct Understood {
    arrived: Arrived,
    answer: Answered,
}

enum Answered {
    Already(Outgoing),
    ByScript(&'static dyn Wire, Question),
}

fn read(head: &Parts, asked: Wanted<'_>, bytes: &[u8]) -> Understood {
    let parsed = serde_json::from_slice(bytes).ok().filter(Value::is_object);
    let mut understood = match (asked, parsed) {
        (Wanted::Turn(wire, target), Some(body)) => turn(head, wire, &target, body),
        (asked, parsed) => {
            let kind = match asked {
                Wanted::Turn(..) => ReplyKind::BadRequest,
                Wanted::Service(_) => ReplyKind::Service,
                Wanted::Unknown => ReplyKind::NotFound,
            };
            let body = parsed.unwrap_or_else(|| String::from_utf8_lossy(bytes).into());
            outside(head, asked, body, kind)
        }
    };
    let n_forms = 1 + usize::from(understood.arrived.chat.is_some());
    understood.arrived.weight = record::weight(bytes) * n_forms;
    understood
}

/// A call of the model.
fn turn(head: &Parts, wire: &'static dyn Wire, target: &Target<'_>, body: Value) -> Understood {
    let chat = wire.to_chat(target, &body);
    let form = chat.as_ref().unwrap_or(&body);
    let question = Question::of(form);
    // An empty list is that of a role without tools: still the conversation.
    let want = match form.get("tools").is_none_or(Value::is_null) {
        true => Want::Side(side_text(form)),
        false => Want::Step,
    };
    let mut arrived = arrived(head, body, want);
    arrived.chat = chat;
    Understood {
        arrived,
        answer: Answered::ByScript(wire, question),
    }
}

/// What takes nothing from the script.
fn outside(head: &Parts, asked: Wanted<'_>, body: Value, kind: ReplyKind) -> Understood {
    let error = |status: u16| {
        let problem = Problem::of(status);
        let body = match asked {
            Wanted::Turn(wire, _) => wire.error(&problem),
            _ => wire::unknown(&problem),
        };
        answer::error(problem, body)
    };
    let out = match (kind, &asked) {
        (ReplyKind::Service, Wanted::Service(body)) => answer::fixed(body),
        (ReplyKind::TooLarge, _) => error(413),
        (ReplyKind::BadRequest, _) => error(400),
        _ => error(404),
    };
    Understood {
        arrived: arrived(head, body, Want::Nothing(kind)),
        answer: Answered::Already(out),
    }
}

async fn scripted(
    wire: &dyn Wire,
    question: &Question,
    taken: Taken,
    busy: Busy,
) -> io::Result<Response<Sending>> {
    taken.released().await;
    let Taken {
        n,
        reply,
        mut entry,
        ..
    } = taken;
    let reply = reply.expect("a call of the model gets a reply");
    if let Some(ms) = reply.delay_ms {
        tokio::time::sleep(Duration::from_millis(ms.into())).await;
    }
    match answer::answer(wire, n, question, &reply) {
        Answer::Send(out) => Ok(response(out, entry, busy)),
        Answer::Hang => std::future::pending().await,
        Answer::Drop => {
            entry.ended(SentEnd::Cut);
            Err(io::Error::other("dropped by the script"))
        }
    }
}

fn arrived(head: &Parts, body: Value, want: Want) -> Arrived {
    let cut = |text: &str| text.chars().take(KEPT_CHARS).collect::<String>();
    let headers: BTreeMap<String, String> = KEPT_HEADERS
        .iter()
        .filter_map(|name| {
            let value = head.headers.get(*name)?;
            Some((
                (*name).to_owned(),
                cut(&String::from_utf8_lossy(value.as_bytes())),
            ))
        })
        .collect();
    let path = head.uri.path_and_query();
    Arrived {
        method: cut(head.method.as_str()),
        path: cut(path.map_or_else(|| head.uri.path(), |path| path.as_str())),
        headers,
        body,
        chat: None,
        weight: 0,
        want,
    }
}
