//! The bytes of OpenAI chat completions: whole replies and server-sent events.

use serde_json::{Value, json};

use crate::domain::case::{Call, Fault, Reply};

/// What goes out on the connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// A whole body.
    Whole {
        status: u16,
        content_type: &'static str,
        retry_after_s: Option<u32>,
        body: Vec<u8>,
    },
    /// So much of a body, then the connection ends.
    Cut {
        content_type: &'static str,
        body: Vec<u8>,
    },
    /// Nothing, until the candidate gives up.
    Hang,
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// The answer to the nth request (from 1) of a launch.
pub fn answer(n: usize, request: &Value, reply: &Reply) -> Answer {
    match reply.fault {
        None => completion(n, request, reply),
        Some(Fault::Empty) => completion(n, request, &Reply::default()),
        Some(Fault::Hang) => Answer::Hang,
        Some(Fault::Malformed) => Answer::Whole {
            status: 200,
            content_type: JSON,
            retry_after_s: None,
            body: b"{\"id\": \"chatcmpl-1\", \"choices\": [{".to_vec(),
        },
        Some(Fault::Status) => {
            let status = reply.code.expect("a checked script gives the code");
            error(status, "scripted_error", reply.retry_after_s)
        }
        Some(Fault::ContextLength) => error(400, "context_length_exceeded", None),
        Some(Fault::Cut) => {
            let whole = if reply.say.is_none() && reply.all_calls().is_empty() {
                completion(
                    n,
                    request,
                    &Reply {
                        say: Some("this reply is cut".to_owned()),
                        ..Reply::default()
                    },
                )
            } else {
                completion(n, request, reply)
            };
            let Answer::Whole {
                content_type,
                mut body,
                ..
            } = whole
            else {
                unreachable!("a completion is whole");
            };
            // A cut after the last byte would be no cut.
            let end = (reply.after_bytes.unwrap_or(0) as usize).min(body.len().saturating_sub(1));
            body.truncate(end);
            Answer::Cut { content_type, body }
        }
    }
}

/// An error object as the service sends it.
pub fn error(status: u16, code: &str, retry_after_s: Option<u32>) -> Answer {
    let body = json!({ "error": {
        "message": format!("scripted {status}"),
        "type": if status < 500 { "invalid_request_error" } else { "server_error" },
        "code": code,
    } });
    Answer::Whole {
        status,
        content_type: JSON,
        retry_after_s,
        body: body.to_string().into_bytes(),
    }
}

fn completion(n: usize, request: &Value, reply: &Reply) -> Answer {
    let model = request.get("model").cloned().unwrap_or(Value::Null);
    let calls = calls(n, &reply.all_calls());
    let text = reply.say.as_deref();
    let finish = if calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    let usage = usage(request, text.unwrap_or_default(), &calls);
    let streamed = request.get("stream") == Some(&Value::Bool(true));
    let body = if streamed {
        events(n, &model, text, &calls, finish, &usage)
    } else {
        let mut message = json!({ "role": "assistant", "content": text });
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        json!({
            "id": format!("chatcmpl-{n}"),
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
            "usage": usage,
        })
        .to_string()
    };
    Answer::Whole {
        status: 200,
        content_type: if streamed { EVENTS } else { JSON },
        retry_after_s: None,
        body: body.into_bytes(),
    }
}

/// Ids are `call-N-M` unless the script says otherwise: the Mth call of the Nth reply.
fn calls(n: usize, calls: &[Call]) -> Vec<Value> {
    calls
        .iter()
        .enumerate()
        .map(|(idx, call)| {
            let id = call
                .id
                .clone()
                .unwrap_or_else(|| format!("call-{n}-{}", idx + 1));
            let arguments = match &call.with {
                None => "{}".to_owned(),
                Some(Value::String(raw)) => raw.clone(),
                Some(table) => table.to_string(),
            };
            json!({
                "id": id,
                "type": "function",
                "function": { "name": call.call, "arguments": arguments },
            })
        })
        .collect()
}

/// A token is four characters of JSON, rounded up: deterministic, and near enough to act on.
fn usage(request: &Value, text: &str, calls: &[Value]) -> Value {
    let tokens = |n_chars: usize| n_chars.div_ceil(4);
    let prompt = request
        .get("messages")
        .map_or(0, |messages| tokens(messages.to_string().chars().count()));
    let n_call_chars: usize = calls
        .iter()
        .map(|call| call.to_string().chars().count())
        .sum();
    let completion = tokens(text.chars().count() + n_call_chars);
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    })
}

/// Text and arguments go out in two pieces each, so that a client has to join them.
fn events(
    n: usize,
    model: &Value,
    text: Option<&str>,
    calls: &[Value],
    finish: &str,
    usage: &Value,
) -> String {
    let mut out = String::new();
    let mut event = |delta: Value, finish: Value, usage: Value| {
        let mut chunk = json!({
            "id": format!("chatcmpl-{n}"),
            "object": "chat.completion.chunk",
            "created": 0,
            "model": model,
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        });
        if !usage.is_null() {
            chunk["usage"] = usage;
        }
        out.push_str(&format!("data: {chunk}\n\n"));
    };
    event(
        json!({ "role": "assistant", "content": "" }),
        Value::Null,
        Value::Null,
    );
    for piece in halves(text.unwrap_or_default()) {
        event(json!({ "content": piece }), Value::Null, Value::Null);
    }
    for (idx, call) in calls.iter().enumerate() {
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let mut head = call.clone();
        head["index"] = idx.into();
        head["function"]["arguments"] = "".into();
        event(json!({ "tool_calls": [head] }), Value::Null, Value::Null);
        for piece in halves(arguments) {
            let delta = json!({ "index": idx, "function": { "arguments": piece } });
            event(json!({ "tool_calls": [delta] }), Value::Null, Value::Null);
        }
    }
    event(json!({}), finish.into(), usage.clone());
    out.push_str("data: [DONE]\n\n");
    out
}

fn halves(text: &str) -> Vec<&str> {
    let middle = text
        .char_indices()
        .nth(text.chars().count() / 2)
        .map_or(0, |(at, _)| at);
    let (head, tail) = text.split_at(middle);
    [head, tail]
        .into_iter()
        .filter(|piece| !piece.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(request: &Value, reply: &Reply) -> (u16, String) {
        match answer(3, request, reply) {
            Answer::Whole { status, body, .. } => (status, String::from_utf8(body).expect("text")),
            other => panic!("{other:?}"),
        }
    }

    fn call(with: Value) -> Reply {
        Reply {
            call: Some("read".into()),
            with: Some(with),
            ..Reply::default()
        }
    }

    #[test]
    fn a_whole_reply_carries_calls_and_raw_arguments() {
        let request = json!({ "model": "m", "messages": [] });
        let (_, text) = body(&request, &call(json!({ "path": "a" })));
        let reply: Value = serde_json::from_str(&text).expect("JSON");
        let message = &reply["choices"][0]["message"];
        assert_eq!(message["tool_calls"][0]["id"], "call-3-1");
        assert_eq!(
            message["tool_calls"][0]["function"]["arguments"],
            "{\"path\":\"a\"}"
        );
        assert_eq!(message["content"], Value::Null);
        let (_, text) = body(&request, &call("{\"path\": ".into()));
        let reply: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"],
            "{\"path\": "
        );
    }

    #[test]
    fn streamed_pieces_join_to_the_whole() {
        let request = json!({ "model": "m", "messages": [], "stream": true });
        let mut reply = call(json!({ "path": "größer" }));
        reply.say = Some("zwölf".into());
        let (_, text) = body(&request, &reply);
        let (mut said, mut arguments) = (String::new(), String::new());
        for line in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let Ok(chunk) = serde_json::from_str::<Value>(line) else {
                assert_eq!(line, "[DONE]");
                continue;
            };
            let delta = &chunk["choices"][0]["delta"];
            said.push_str(delta["content"].as_str().unwrap_or_default());
            let piece = &delta["tool_calls"][0]["function"]["arguments"];
            arguments.push_str(piece.as_str().unwrap_or_default());
        }
        assert_eq!(
            (said.as_str(), arguments.as_str()),
            ("zwölf", "{\"path\":\"größer\"}")
        );
    }

    #[test]
    fn faults_look_like_the_service() {
        let request = json!({ "model": "m", "messages": [] });
        let fault = |fault| Reply {
            fault: Some(fault),
            code: (fault == Fault::Status).then_some(429),
            after_bytes: Some(1 << 20),
            ..Reply::default()
        };
        assert_eq!(body(&request, &fault(Fault::Status)).0, 429);
        let (status, text) = body(&request, &fault(Fault::ContextLength));
        assert!(status == 400 && text.contains("context_length_exceeded"));
        let (status, text) = body(&request, &fault(Fault::Malformed));
        assert!(status == 200 && serde_json::from_str::<Value>(&text).is_err());
        assert_eq!(answer(1, &request, &fault(Fault::Hang)), Answer::Hang);
        let Answer::Cut { body, .. } = answer(1, &request, &fault(Fault::Cut)) else {
            panic!("a cut is a cut");
        };
        assert!(
            serde_json::from_slice::<Value>(&body).is_err(),
            "never whole"
        );
    }
}
