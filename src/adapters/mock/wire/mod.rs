//! The wire protocols that real harnesses speak, one a file, behind one shape: a request is read into the form of chat
//! completions, and a reply is written in the protocol's own words. Bytes are elsewhere ([`super::answer`]).

mod chat;
mod form;
mod gemini;
mod messages;
mod responses;
mod service;

use serde_json::Value;

use crate::domain::case::Finish;

/// What comes before `/chat/completions`; launches beside others have a folder of their own before it.
pub const BASE_PATH: &str = "/v1";

/// One protocol.
pub trait Wire: Sync {
    /// The request in the form of chat completions; `None` when it has that form already.
    fn to_chat(&self, target: &Target<'_>, body: &Value) -> Option<Value>;

    /// The body of a whole reply.
    fn whole(&self, turn: &Turn<'_>) -> Value;

    /// The events of a streamed reply; text and arguments in two pieces each, so that a client has to join them.
    fn events(&self, turn: &Turn<'_>) -> Vec<Value>;

    /// An event as it is sent; a string stands for itself.
    fn frame(&self, event: &Value) -> String;

    /// The body of an error status.
    fn error(&self, problem: &Problem) -> Value;

    /// The event that ends a stream with an error; the last of `n_before` others was sent.
    fn error_event(&self, problem: &Problem, _n_before: usize) -> Value {
        self.error(problem)
    }
}

/// What a path says of a request beyond its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// The model, where it stands in the path.
    pub model: &'a str,
    /// The path itself asks for a stream.
    pub stream: bool,
}

/// What a request wants.
pub enum Wanted<'a> {
    /// A reply of the model.
    Turn(&'static dyn Wire, Target<'a>),
    /// Something around it, with its fixed answer.
    Service(Value),
    /// Nothing that any protocol knows.
    Unknown,
}

impl<'a> Wanted<'a> {
    /// By method and path below the folder of the launch; the query says nothing.
    pub fn of(method: &str, path: &'a str) -> Self {
        let plain = Target {
            model: "",
            stream: false,
        };
        match (method, path) {
            ("POST", "/v1/chat/completions") => Self::Turn(&chat::Chat, plain),
            ("POST", "/v1/responses") => Self::Turn(&responses::Responses, plain),
            ("POST", "/v1/messages") => Self::Turn(&messages::Messages, plain),
            ("POST", "/v1/messages/count_tokens") => Self::Service(service::anthropic_tokens()),
            ("POST", path) => match gemini::method(path) {
                Some((model, "generateContent")) => Self::Turn(
                    &gemini::Gemini,
                    Target {
                        model,
                        stream: false,
                    },
                ),
                Some((model, "streamGenerateContent")) => Self::Turn(
                    &gemini::Gemini,
                    Target {
                        model,
                        stream: true,
                    },
                ),
                Some((_, "countTokens")) => Self::Service(service::gemini_tokens()),
                _ => Self::Unknown,
            },
            ("HEAD", _) => Self::Service(Value::Null),
            ("GET", "/v1/models") => Self::Service(service::models()),
            ("GET", "/v1beta/models") => Self::Service(service::gemini_models()),
            _ => Self::Unknown,
        }
    }
}

/// The words of an error where no protocol was recognised.
pub fn unknown(problem: &Problem) -> Value {
    chat::Chat.error(problem)
}

/// A reply of the model, before any protocol.
pub struct Turn<'a> {
    /// The number of the request in its launch, from 1; ids are made of it.
    pub n: usize,
    /// As the request names it.
    pub model: &'a Value,
    pub text: Option<&'a str>,
    pub calls: Vec<TurnCall>,
    pub finish: Option<Finish>,
    pub usage: Usage,
    /// Chat completions: the usage comes in an event of its own.
    pub usage_event: bool,
}

pub struct TurnCall {
    pub id: String,
    pub name: String,
    /// JSON, if the script wants it.
    pub arguments: String,
}

impl TurnCall {
    /// The arguments for a protocol that sends them as JSON; a text that is no JSON stays a text.
    fn parsed(&self) -> Value {
        serde_json::from_str(&self.arguments).unwrap_or_else(|_| self.arguments.clone().into())
    }
}

/// In tokens.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    pub input: usize,
    pub output: usize,
}

impl Usage {
    fn total(self) -> usize {
        self.input + self.output
    }
}

/// What goes wrong, before any protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    Status {
        status: u16,
        retry_after_s: Option<u32>,
    },
    /// The request is too long for the model.
    ContextLength { n_tokens: usize },
}

impl Problem {
    pub fn of(status: u16) -> Self {
        Self::Status {
            status,
            retry_after_s: None,
        }
    }

    pub fn status(self) -> u16 {
        match self {
            Self::Status { status, .. } => status,
            Self::ContextLength { .. } => 400,
        }
    }

    /// Says in a candidate's output where the error comes from.
    fn message(self) -> String {
        format!("scripted {}", self.status())
    }
}

/// A text in two pieces; fewer when it is too short for that.
fn halves(text: &str) -> impl Iterator<Item = &str> {
    let middle = text
        .char_indices()
        .nth(text.chars().count() / 2)
        .map_or(0, |(at, _)| at);
    let (head, tail) = text.split_at(middle);
    [head, tail].into_iter().filter(|piece| !piece.is_empty())
}

/// An event under its own name, as OpenAI responses and Anthropic messages send it.
fn named_frame(event: &Value) -> String {
    match event {
        Value::String(raw) => format!("data: {raw}\n\n"),
        event => match event["type"].as_str() {
            Some(name) => format!("event: {name}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_is_asked() {
        let check = |method: &str, path: &str, expected: &str| {
            let seen = match Wanted::of(method, path) {
                Wanted::Turn(_, target) => format!("turn {} {}", target.model, target.stream),
                Wanted::Service(answer) => format!("service {}", answer.is_object()),
                Wanted::Unknown => "unknown".to_owned(),
            };
            assert_eq!(seen, expected, "{method} {path}");
        };
        check("POST", "/v1/chat/completions", "turn  false");
        check("POST", "/v1/responses", "turn  false");
        check("POST", "/v1/messages", "turn  false");
        check(
            "POST",
            "/v1beta/models/g-2.5:generateContent",
            "turn g-2.5 false",
        );
        check(
            "POST",
            "/v1beta/models/g:streamGenerateContent",
            "turn g true",
        );
        check("POST", "/v1beta/models/g:countTokens", "service true");
        check("POST", "/v1beta/models/g:embedContent", "unknown");
        check("POST", "/v1beta/models/:generateContent", "unknown");
        check("HEAD", "/anything", "service false");
        check("GET", "/v1/models", "service true");
        check("GET", "/v1/chat/completions", "unknown");
        check("POST", "/chat/completions", "unknown");
    }

    #[test]
    fn a_text_falls_in_two_between_characters() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(halves(text).collect::<Vec<_>>(), expected);
        };
        check("", &[]);
        check("ö", &["ö"]);
        check("größer", &["grö", "ßer"]);
    }
}
