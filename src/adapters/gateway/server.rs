//! The cell's side of the gateway: what may be asked, and by how many at a time.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinHandle;

use super::SUBMIT_PATH;
use super::owed::Owed;
use super::relay::{Call, error_text, respond};
use super::upstream::{GatewayError, Upstream};
use crate::domain::model_call::ModelCall;

/// Of one request to the model.
const REQUEST_BYTES: usize = 32 << 20;
/// Of a submitted archive.
const ARCHIVE_BYTES: usize = 64 << 20;
/// Calls under way at a time; a builder and its sub-agents need few.
const CALLS: usize = 16;

/// What happens at a gateway.
#[derive(Debug)]
pub enum Event {
    /// A call is over.
    Call(Box<ModelCall>),
    Submission(Submission),
}

/// A tree that somebody in the cell submits and waits for the reply to.
#[derive(Debug)]
pub struct Submission {
    /// A tar archive, made in the cell: nothing in it is to be trusted.
    pub archive: Bytes,
    pub reply: oneshot::Sender<Reply>,
    /// There is one at a time; the next is read when this is dropped.
    _permit: OwnedSemaphorePermit,
}

/// What the submitting command ends with and prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reply {
    pub code: u8,
    pub text: String,
}

/// A running gateway. Dropped, it takes no new connections.
#[derive(Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    /// None for a build without a model.
    upstream: Option<Upstream>,
    events: UnboundedSender<Event>,
    turn: AtomicUsize,
    owed: Arc<Owed>,
    calls: Arc<Semaphore>,
    submissions: Arc<Semaphore>,
    opened: Instant,
}

impl Gateway {
    /// Serves on a bound listener; has to be called inside a tokio runtime.
    pub fn serve(
        listener: TcpListener,
        upstream: Option<Upstream>,
        events: UnboundedSender<Event>,
    ) -> Result<Self, GatewayError> {
        listener
            .set_nonblocking(true)
            .map_err(GatewayError::Listener)?;
        let listener =
            tokio::net::TcpListener::from_std(listener).map_err(GatewayError::Listener)?;
        let shared = Arc::new(Shared {
            upstream,
            events,
            turn: AtomicUsize::new(0),
            owed: Arc::default(),
            calls: Arc::new(Semaphore::new(CALLS)),
            submissions: Arc::new(Semaphore::new(1)),
            opened: Instant::now(),
        });
        let router = Router::new()
            .route(SUBMIT_PATH, post(submit))
            .fallback(call)
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            // It ends with this task only.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { shared, server })
    }

    /// Calls from now on are those of this turn.
    pub fn begin_turn(&self, turn: usize) {
        self.shared.turn.store(turn, Ordering::Relaxed);
    }

    /// How long the endpoint has owed an answer: since the first call, or the first one after an answer had come to its
    /// end, that it gave nothing but errors or silence; since the last piece of an answer that has not ended.
    pub fn owed(&self) -> Duration {
        self.shared.owed.duration()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn submit(State(shared): State<Arc<Shared>>, body: Body) -> Response {
    let permit = permit(&shared.submissions).await;
    let Ok(archive) = to_bytes(body, ARCHIVE_BYTES).await else {
        let message = format!("a submission has at most {} MiB", ARCHIVE_BYTES >> 20);
        return respond(StatusCode::PAYLOAD_TOO_LARGE, error_text(&message));
    };
    let (reply, replied) = oneshot::channel();
    let submission = Submission {
        archive,
        reply,
        _permit: permit,
    };
    let sent = shared.events.send(Event::Submission(submission));
    match (sent, replied.await) {
        (Ok(()), Ok(reply)) => {
            let text = serde_json::to_string(&reply).expect("a reply is plain data");
            respond(StatusCode::OK, text)
        }
        _ => respond(StatusCode::GONE, error_text("the build is over")),
    }
}

async fn call(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let permit = permit(&shared.calls).await;
    let told = ModelCall {
        turn: shared.turn.load(Ordering::Relaxed),
        at_ms: u64::try_from(shared.opened.elapsed().as_millis()).unwrap_or(u64::MAX),
        duration_ms: 0,
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        refused: None,
        status: None,
        whole: false,
        tokens: None,
        request: Value::Null,
        response: String::new(),
    };
    let mut call = Call::new(told, shared.events.clone(), permit);
    let Ok(body) = to_bytes(body, REQUEST_BYTES).await else {
        let why = format!("a request has at most {} MiB", REQUEST_BYTES >> 20);
        call.told.refused = Some(why.clone());
        return call.fail(StatusCode::PAYLOAD_TOO_LARGE, &why);
    };
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let (method, path) = (head.method.as_str(), head.uri.path());
    let upstream = match &shared.upstream {
        Some(upstream) => upstream
            .refusal(method, path, &body)
            .map_or(Ok(upstream), Err),
        None => Err("this build has no model".to_owned()),
    };
    match upstream {
        Err(why) => {
            call.told.refused = Some(why.clone());
            call.fail(StatusCode::FORBIDDEN, &why)
        }
        Ok(upstream) => {
            call.told.request = body;
            shared.owed.begin();
            // What was judged is sent, and not bytes that the endpoint may read in another way.
            match upstream.send(&head.headers, &call.told.request).await {
                Ok(answer) => call.relay(upstream.clone(), Arc::clone(&shared.owed), answer),
                Err(why) => call.fail(StatusCode::BAD_GATEWAY, &why),
            }
        }
    }
}

async fn permit(of: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let permit = Arc::clone(of).acquire_owned().await;
    permit.expect("is never closed")
}
