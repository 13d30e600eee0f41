//! An answer on its way from the endpoint to the builder: metered, kept, and the key taken out of it. A stream is passed
//! on line by line, so that nothing of a key can stand across two pieces.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedSender;

use super::meter::Meter;
use super::owed::Owed;
use super::server::Event;
use super::upstream::Upstream;
use crate::domain::model_call::ModelCall;
use crate::domain::visible::innermost;

/// Of an answer as a whole.
const MOST_BYTES: usize = 64 << 20;
/// Of an answer's head, what a client needs to know when to try again.
const PASSED_BACK: [&str; 6] = [
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "x-request-id",
    "request-id",
    "cache-control",
];

/// A call under way. Dropped, it is told: as a whole one, or as one that broke off.
pub struct Call {
    pub told: ModelCall,
    began: Instant,
    events: UnboundedSender<Event>,
    /// So many calls may be under way.
    _permit: OwnedSemaphorePermit,
}

impl Call {
    pub fn new(
        told: ModelCall,
        events: UnboundedSender<Event>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            told,
            began: Instant::now(),
            events,
            _permit: permit,
        }
    }

    /// Answers with an error of the gateway's own.
    pub fn fail(mut self, status: StatusCode, message: &str) -> Response {
        let text = error_text(message);
        self.told.status = Some(status.as_u16());
        self.told.response.clone_from(&text);
        self.told.whole = true;
        respond(status, text)
    }

    /// Passes the endpoint's answer back.
    pub fn relay(
        mut self,
        upstream: Upstream,
        owed: Arc<Owed>,
        answer: reqwest::Response,
    ) -> Response {
        let status = answer.status();
        self.told.status = Some(status.as_u16());
        let headers = answer.headers().clone();
        let streamed = headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let pieces = Pieces {
            call: self,
            upstream,
            owed,
            status: status.as_u16(),
            answer: Some(answer),
            line: Vec::new(),
            n_bytes: 0,
            meter: Meter::default(),
            by_line: streamed,
        };
        let stream = futures_util::stream::unfold(pieces, |mut pieces| async move {
            let piece = pieces.next().await?;
            Some((piece, pieces))
        });
        let mut response = Response::new(Body::from_stream(stream));
        *response.status_mut() = status;
        let kept = PASSED_BACK.iter().map(|name| HeaderName::from_static(name));
        for name in kept.chain([header::CONTENT_TYPE]) {
            if let Some(value) = headers.get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        response
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.told.duration_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Nobody listens any more when the build is over.
        let _ = self.events.send(Event::Call(Box::new(self.told.clone())));
    }
}

/// An error in a form that clients of both protocols read.
pub fn error_text(message: &str) -> String {
    json!({ "type": "error", "error": { "type": "gateway_error", "message": message } }).to_string()
}

pub fn respond(status: StatusCode, json: String) -> Response {
    let mut response = Response::new(Body::from(json));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

struct Pieces {
    call: Call,
    upstream: Upstream,
    owed: Arc<Owed>,
    status: u16,
    /// None behind the last piece.
    answer: Option<reqwest::Response>,
    /// What has come and is not passed on yet.
    line: Vec<u8>,
    n_bytes: usize,
    meter: Meter,
    /// Else the answer is passed on when all of it has come.
    by_line: bool,
}

impl Pieces {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match self.answer.as_mut()?.chunk().await {
                Ok(Some(bytes)) => {
                    self.owed.piece(self.status);
                    self.n_bytes += bytes.len();
                    if self.n_bytes > MOST_BYTES {
                        return Some(Err(self.broken("the answer is too long")));
                    }
                    self.line.extend_from_slice(&bytes);
                    let end = self.line.iter().rposition(|byte| *byte == b'\n');
                    if let (true, Some(end)) = (self.by_line, end) {
                        let rest = self.line.split_off(end + 1);
                        return Some(Ok(self.pass(rest)));
                    }
                }
                Ok(None) => {
                    self.answer = None;
                    let last = self.pass(Vec::new());
                    self.end();
                    return Some(Ok(last));
                }
                Err(error) => return Some(Err(self.broken(&innermost(&error)))),
            }
        }
    }

    /// Passes on what has come, and begins again with `rest`.
    fn pass(&mut self, rest: Vec<u8>) -> Bytes {
        let come = std::mem::replace(&mut self.line, rest);
        match self.by_line {
            true => {
                for line in come.split(|byte| *byte == b'\n') {
                    self.meter.read(line);
                    // Nobody has to read further than this.
                    if is_last(line) {
                        self.end();
                    }
                }
            }
            false => self.meter.read(&come),
        }
        self.call.told.tokens = self.meter.tokens();
        let text = self.upstream.without_key(&String::from_utf8_lossy(&come));
        self.call.told.response.push_str(&text);
        text.into()
    }

    fn end(&mut self) {
        self.call.told.whole = true;
        self.owed.end(self.status);
    }

    fn broken(&mut self, why: &str) -> io::Error {
        self.answer = None;
        io::Error::other(self.upstream.without_key(why))
    }
}

/// Whether a line of an event stream says that nothing follows.
fn is_last(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line == b"data: [DONE]" || line == b"event: message_stop"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_both_protocols_say_when_they_end() {
        for line in ["data: [DONE]\r", "event: message_stop"] {
            assert!(is_last(line.as_bytes()), "{line}");
        }
        for line in ["", "data: {\"choices\":[]}", "event: message_delta"] {
            assert!(!is_last(line.as_bytes()), "{line}");
        }
    }
}
