//! From a step of the script to the bytes of its answer, in whatever protocol was asked.

use bytes::Bytes;
use serde_json::Value;

use super::wire::{Problem, Turn, TurnCall, Usage, Wire};
use crate::domain::case::{Fault, Reply};

/// What a reply depends on beside the script.
pub struct Question {
    pub model: Value,
    pub stream: bool,
    /// The usage is wanted in an event of its own.
    pub usage_event: bool,
    pub n_input_tokens: usize,
}

impl Question {
    /// From a request in the form of chat completions.
    pub fn of(chat: &Value) -> Self {
        Self {
            model: chat["model"].clone(),
            stream: chat["stream"] == true,
            usage_event: chat["stream_options"]["include_usage"] == true,
            n_input_tokens: chat.get("messages").map_or(0, |messages| {
                let mut count = CharCount(0);
                serde_json::to_writer(&mut count, messages).expect("a counter takes everything");
                tokens(count.0)
            }),
        }
    }
}

/// What goes out on the connection.
#[derive(Debug)]
pub enum Answer {
    Send(Outgoing),
    /// Nothing, until the candidate gives up.
    Hang,
    /// The connection ends without a byte.
    Drop,
}

/// A head and what is sent of a body.
#[derive(Debug)]
pub struct Outgoing {
    pub status: u16,
    /// Names in small letters.
    pub headers: Vec<(String, String)>,
    /// Each goes out by itself.
    pub pieces: Vec<Bytes>,
    /// The length that the head promises; none for a stream.
    pub length: Option<u64>,
    pub end: End,
}

/// What comes after the last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Whole,
    /// The end of the connection.
    Cut,
    /// Nothing.
    Stall,
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// The answer to the nth request (from 1) of a launch.
pub fn answer(wire: &dyn Wire, n: usize, question: &Question, reply: &Reply) -> Answer {
    let mut out = match reply.fault {
        Some(Fault::Hang) => return Answer::Hang,
        Some(Fault::Drop) => return Answer::Drop,
        Some(Fault::Status) => {
            let status = reply.code.expect("a checked script gives the code");
            let retry_after_s = reply.retry_after_s;
            let problem = Problem::Status {
                status,
                retry_after_s,
            };
            let mut out = error(problem, wire.error(&problem));
            if let Some(seconds) = retry_after_s {
                out.headers
                    .push(("retry-after".to_owned(), seconds.to_string()));
            }
            out
        }
        Some(Fault::ContextLength) => {
            let n_tokens = question.n_input_tokens;
            let problem = Problem::ContextLength { n_tokens };
            error(problem, wire.error(&problem))
        }
        Some(Fault::ErrorEvent) => broken_by_error(wire, n, question, reply),
        _ => model_reply(wire, n, question, reply),
    };
    if matches!(reply.fault, Some(Fault::Cut | Fault::Stall)) {
        // A break after the last byte would be none.
        let n_bytes: usize = out.pieces.iter().map(Bytes::len).sum();
        let wanted = reply.after_bytes.unwrap_or(0) as usize;
        truncate(&mut out.pieces, wanted.min(n_bytes.saturating_sub(1)));
        out.end = match reply.fault {
            Some(Fault::Cut) => End::Cut,
            _ => End::Stall,
        };
    }
    if let Some(size) = reply.piece_bytes {
        out.pieces = resized(&out.pieces, size as usize);
    }
    for (name, value) in &reply.headers {
        let name = name.to_ascii_lowercase();
        out.headers.retain(|(other, _)| *other != name);
        out.headers.push((name, value.clone()));
    }
    Answer::Send(out)
}

/// An answer outside of any script.
pub fn error(problem: Problem, body: Value) -> Outgoing {
    whole(problem.status(), body.to_string())
}

/// A body of JSON; nothing for null.
pub fn fixed(body: &Value) -> Outgoing {
    match body {
        Value::Null => whole(200, String::new()),
        body => whole(200, body.to_string()),
    }
}

fn whole(status: u16, body: String) -> Outgoing {
    Outgoing {
        status,
        headers: vec![("content-type".to_owned(), JSON.to_owned())],
        length: Some(body.len() as u64),
        pieces: vec![Bytes::from(body)],
        end: End::Whole,
    }
}

fn stream(status: u16, pieces: Vec<Bytes>) -> Outgoing {
    Outgoing {
        status,
        headers: vec![("content-type".to_owned(), EVENTS.to_owned())],
        pieces,
        length: None,
        end: End::Whole,
    }
}

/// What the model says, or what the script sends in its place.
fn model_reply(wire: &dyn Wire, n: usize, question: &Question, reply: &Reply) -> Outgoing {
    let status = reply.code.unwrap_or(200);
    if reply.fault == Some(Fault::Malformed) {
        return malformed(wire, n, question, reply);
    }
    if question.stream || (reply.body.is_none() && !reply.events.is_empty()) {
        if let (Some(Value::String(raw)), true) = (&reply.body, reply.events.is_empty()) {
            return stream(status, vec![raw.clone().into()]);
        }
        let frames = events(wire, n, question, reply);
        let frames = frames.iter().map(|event| wire.frame(event).into());
        return stream(status, frames.collect());
    }
    whole(
        status,
        match &reply.body {
            Some(Value::String(raw)) => raw.clone(),
            Some(body) => body.to_string(),
            None => wire.whole(&turn(n, question, reply)).to_string(),
        },
    )
}

/// The body, or the first event of a stream, with its JSON broken off halfway.
fn malformed(wire: &dyn Wire, n: usize, question: &Question, reply: &Reply) -> Outgoing {
    let turn = turn(n, question, reply);
    let (json, frame) = match question.stream {
        true => {
            let first = wire.events(&turn).swap_remove(0);
            (first.to_string(), wire.frame(&first))
        }
        false => {
            let body = wire.whole(&turn).to_string();
            (body.clone(), body)
        }
    };
    let half: String = json.chars().take(json.chars().count() / 2).collect();
    let sent = frame.replace(&json, &half);
    match question.stream {
        true => stream(200, vec![sent.into()]),
        false => whole(200, sent),
    }
}

/// The events of a stream; those of the script before its body before what the model says.
fn events(wire: &dyn Wire, n: usize, question: &Question, reply: &Reply) -> Vec<Value> {
    match &reply.body {
        _ if !reply.events.is_empty() => reply.events.clone(),
        Some(body) => vec![body.clone()],
        None => wire.events(&turn(n, question, reply)),
    }
}

/// Half of a stream, then an error; the error alone where nothing is streamed.
fn broken_by_error(wire: &dyn Wire, n: usize, question: &Question, reply: &Reply) -> Outgoing {
    let problem = Problem::of(reply.code.unwrap_or(500));
    if !question.stream {
        return error(problem, wire.error(&problem));
    }
    let mut events = events(wire, n, question, reply);
    events.truncate(events.len().div_ceil(2));
    events.push(wire.error_event(&problem, events.len()));
    let frames = events.iter().map(|event| wire.frame(event).into());
    stream(200, frames.collect())
}

fn turn<'a>(n: usize, question: &'a Question, reply: &'a Reply) -> Turn<'a> {
    // Calls are `call-N-M` unless the script says otherwise: the Mth call of the Nth reply.
    let calls: Vec<TurnCall> = reply
        .all_calls()
        .into_iter()
        .enumerate()
        .map(|(idx, call)| TurnCall {
            id: call.id.unwrap_or_else(|| format!("call-{n}-{}", idx + 1)),
            name: call.call,
            arguments: match call.with {
                None => "{}".to_owned(),
                Some(Value::String(raw)) => raw,
                Some(table) => table.to_string(),
            },
        })
        .collect();
    let breaks_off = reply.fault.is_some_and(Fault::breaks_off);
    let text = match &reply.say {
        None if breaks_off && calls.is_empty() => Some("this reply is cut"),
        text => text.as_deref(),
    };
    let n_chars =
        text.map_or(0, |text| text.chars().count()) + calls.iter().map(n_call_chars).sum::<usize>();
    Turn {
        n,
        model: &question.model,
        text,
        finish: reply.finish,
        usage: Usage {
            input: question.n_input_tokens,
            output: tokens(n_chars),
        },
        usage_event: question.usage_event,
        calls,
    }
}

/// A token is four characters of JSON, rounded up: deterministic, and near enough to act on.
fn tokens(n_chars: usize) -> usize {
    n_chars.div_ceil(4)
}

/// Characters of a call as chat completions write it.
fn n_call_chars(call: &TurnCall) -> usize {
    let json = serde_json::json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": call.arguments },
    });
    json.to_string().chars().count()
}

/// Counts characters of what is written into it.
struct CharCount(usize);

impl std::io::Write for CharCount {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // A byte of the form 10xxxxxx goes on with a character.
        self.0 += bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn truncate(pieces: &mut Vec<Bytes>, n_bytes: usize) {
    let mut left = n_bytes;
    for piece in pieces.iter_mut() {
        piece.truncate(left);
        left -= piece.len();
    }
    pieces.retain(|piece| !piece.is_empty());
}

fn resized(pieces: &[Bytes], size: usize) -> Vec<Bytes> {
    let whole = Bytes::from(pieces.concat());
    (0..whole.len())
        .step_by(size)
        .map(|at| whole.slice(at..whole.len().min(at + size)))
        .collect()
}
