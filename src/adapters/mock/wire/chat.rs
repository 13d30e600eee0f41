//! OpenAI chat completions: the protocol of the development document.

use serde_json::{Value, json};

use super::{Problem, Target, Turn, Wire, halves};
use crate::domain::case::Finish;

pub struct Chat;

impl Wire for Chat {
    fn to_chat(&self, _: &Target<'_>, _: &Value) -> Option<Value> {
        None
    }

    fn whole(&self, turn: &Turn<'_>) -> Value {
        let mut message = json!({ "role": "assistant", "content": turn.text });
        if !turn.calls.is_empty() {
            message["tool_calls"] = calls(turn).into();
        }
        json!({
            "id": format!("chatcmpl-{}", turn.n),
            "object": "chat.completion",
            "created": 0,
            "model": turn.model,
            "choices": [{ "index": 0, "message": message, "finish_reason": finish(turn) }],
            "usage": usage(turn),
        })
    }

    fn events(&self, turn: &Turn<'_>) -> Vec<Value> {
        let chunk = |choices: Value| {
            json!({
                "id": format!("chatcmpl-{}", turn.n),
                "object": "chat.completion.chunk",
                "created": 0,
                "model": turn.model,
                "choices": choices,
            })
        };
        let delta = |delta: Value, finish: Option<&str>| {
            chunk(json!([{ "index": 0, "delta": delta, "finish_reason": finish }]))
        };
        let mut events = vec![delta(json!({ "role": "assistant", "content": "" }), None)];
        for piece in halves(turn.text.unwrap_or_default()) {
            events.push(delta(json!({ "content": piece }), None));
        }
        for (idx, (mut head, call)) in calls(turn).into_iter().zip(&turn.calls).enumerate() {
            head["index"] = idx.into();
            head["function"]["arguments"] = "".into();
            events.push(delta(json!({ "tool_calls": [head] }), None));
            for piece in halves(&call.arguments) {
                let piece = json!({ "index": idx, "function": { "arguments": piece } });
                events.push(delta(json!({ "tool_calls": [piece] }), None));
            }
        }
        let mut last = delta(json!({}), Some(finish(turn)));
        if turn.usage_event {
            events.push(last);
            last = chunk(json!([]));
        }
        last["usage"] = usage(turn);
        events.push(last);
        events.push("[DONE]".into());
        events
    }

    fn frame(&self, event: &Value) -> String {
        match event {
            Value::String(raw) => format!("data: {raw}\n\n"),
            event => format!("data: {event}\n\n"),
        }
    }

    fn error(&self, problem: &Problem) -> Value {
        error(problem, "messages")
    }
}

/// The error object of all of OpenAI's protocols; `parameter` is what a request can be too long in.
pub fn error(problem: &Problem, parameter: &str) -> Value {
    let (message, kind, parameter, code) = match problem {
        Problem::ContextLength { n_tokens } => (
            format!(
                "This model's maximum context length is {} tokens. However, your messages resulted in {n_tokens} \
                 tokens. Please reduce the length of the messages.",
                n_tokens.saturating_sub(1)
            ),
            "invalid_request_error",
            Some(parameter),
            Some("context_length_exceeded"),
        ),
        Problem::Status { status, .. } => {
            let (kind, code) = match status {
                401 => ("invalid_request_error", Some("invalid_api_key")),
                404 => ("invalid_request_error", Some("not_found")),
                429 => ("requests", Some("rate_limit_exceeded")),
                500.. => ("server_error", None),
                _ => ("invalid_request_error", None),
            };
            (problem.message(), kind, None, code)
        }
    };
    json!({ "error": { "message": message, "type": kind, "param": parameter, "code": code } })
}

fn calls(turn: &Turn<'_>) -> Vec<Value> {
    turn.calls
        .iter()
        .map(|call| {
            json!({
                "id": call.id,
                "type": "function",
                "function": { "name": call.name, "arguments": call.arguments },
            })
        })
        .collect()
}

fn finish(turn: &Turn<'_>) -> &'static str {
    match turn.finish {
        Some(Finish::Length) => "length",
        Some(Finish::Filter) => "content_filter",
        None if turn.calls.is_empty() => "stop",
        None => "tool_calls",
    }
}

fn usage(turn: &Turn<'_>) -> Value {
    json!({
        "prompt_tokens": turn.usage.input,
        "completion_tokens": turn.usage.output,
        "total_tokens": turn.usage.total(),
    })
}
