//! The body of an answer on its way out, in its pieces, to the end that the script wants.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::time::Sleep;

use super::answer::{End, Outgoing};
use super::connections::Busy;
use super::record::Entry;
use crate::domain::evidence::SentEnd;

/// Between the last byte of a cut reply and the end of its connection: an error right behind a piece would take along
/// what is not sent yet.
const FLUSH_PAUSE: Duration = Duration::from_millis(20);

pub struct Sending {
    pieces: std::vec::IntoIter<Bytes>,
    /// What the head promised of it and was not sent yet.
    left: Option<u64>,
    end: End,
    pause: Option<Pin<Box<Sleep>>>,
    entry: Entry,
    /// As long as this is sent, the connection is no idle one.
    _busy: Busy,
}

/// The head and the body that follows it.
pub fn response(out: Outgoing, mut entry: Entry, busy: Busy) -> Response<Sending> {
    entry.began(out.status);
    let status = StatusCode::from_u16(out.status).expect("a checked script gives a status");
    let mut pieces = out.pieces;
    if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        pieces.clear();
    }
    pieces.retain(|piece| !piece.is_empty());
    if pieces.is_empty() && out.end == End::Whole {
        // Nobody asks for pieces where there are none.
        entry.ended(SentEnd::Whole);
    }
    let mut response = Response::new(Sending {
        pieces: pieces.into_iter(),
        left: out.length,
        end: out.end,
        pause: None,
        entry,
        _busy: busy,
    });
    *response.status_mut() = status;
    for (name, value) in out.headers {
        let name = HeaderName::try_from(name).expect("a checked script gives headers");
        let value = HeaderValue::try_from(value).expect("a checked script gives headers");
        response.headers_mut().insert(name, value);
    }
    response
}

impl Sending {
    fn sent_all(&self) -> bool {
        self.pieces.as_slice().is_empty() && self.end == End::Whole
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        if let Some(piece) = this.pieces.next() {
            this.entry.add(piece.len());
            this.left = this
                .left
                .map(|left| left.saturating_sub(piece.len() as u64));
            if this.sent_all() {
                this.entry.ended(SentEnd::Whole);
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match this.end {
            End::Whole => Poll::Ready(None),
            End::Stall => {
                this.entry.stalled();
                Poll::Pending
            }
            End::Cut => {
                let pause = this
                    .pause
                    .get_or_insert_with(|| Box::pin(tokio::time::sleep(FLUSH_PAUSE)));
                std::task::ready!(pause.as_mut().poll(context));
                this.entry.ended(SentEnd::Cut);
                Poll::Ready(Some(Err(io::Error::other("cut by the script"))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.sent_all()
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
