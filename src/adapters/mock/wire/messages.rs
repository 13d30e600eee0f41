//! Anthropic messages.

use serde_json::{Value, json};

use super::form::{self, Messages as Conversation};
use super::{Problem, Target, Turn, Wire, halves, named_frame};
use crate::domain::case::Finish;

pub struct Messages;

impl Wire for Messages {
    fn to_chat(&self, _: &Target<'_>, body: &Value) -> Option<Value> {
        let mut messages = Conversation::default();
        if !body["system"].is_null() {
            messages.push(form::message("system", content(&body["system"])));
        }
        for message in form::list(&body["messages"]) {
            match message["role"].as_str() {
                Some("assistant") => assistant(&message["content"], &mut messages),
                Some("user") => user(&message["content"], &mut messages),
                _ => messages.push(message.clone()),
            }
        }
        let tools = form::list(&body["tools"])
            .iter()
            .map(|tool| match &tool["input_schema"] {
                // One of the service's own tools.
                Value::Null => tool.clone(),
                schema => form::tool(&tool["name"], &tool["description"], schema),
            })
            .collect();
        let format = &body["output_config"]["format"];
        let format = (!format.is_null()).then(|| form::json_format(format.get("schema")));
        Some(form::request(
            body["model"].clone(),
            body["stream"] == true,
            messages.into_vec(),
            tools,
            format,
        ))
    }

    fn whole(&self, turn: &Turn<'_>) -> Value {
        let text = turn
            .text
            .map(|text| json!({ "type": "text", "text": text }));
        let calls = turn.calls.iter().map(|call| {
            json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.parsed() })
        });
        let content: Vec<Value> = text.into_iter().chain(calls).collect();
        message(
            turn,
            content.into(),
            stop_reason(turn).into(),
            turn.usage.output,
        )
    }

    fn events(&self, turn: &Turn<'_>) -> Vec<Value> {
        let opening = message(turn, json!([]), Value::Null, 1);
        let mut events = vec![
            json!({ "type": "message_start", "message": opening }),
            json!({ "type": "ping" }),
        ];
        let mut block = |block: Value, deltas: Vec<Value>| {
            let index = events
                .iter()
                .filter(|event| event["type"] == "content_block_stop")
                .count();
            events.push(
                json!({ "type": "content_block_start", "index": index, "content_block": block }),
            );
            for delta in deltas {
                events
                    .push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
            }
            events.push(json!({ "type": "content_block_stop", "index": index }));
        };
        if let Some(text) = turn.text {
            block(
                json!({ "type": "text", "text": "" }),
                halves(text)
                    .map(|piece| json!({ "type": "text_delta", "text": piece }))
                    .collect(),
            );
        }
        for call in &turn.calls {
            block(
                json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} }),
                halves(&call.arguments)
                    .map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }))
                    .collect(),
            );
        }
        events.push(json!({
            "type": "message_delta",
            "delta": { "stop_reason": stop_reason(turn), "stop_sequence": null },
            "usage": { "output_tokens": turn.usage.output },
        }));
        events.push(json!({ "type": "message_stop" }));
        events
    }

    fn frame(&self, event: &Value) -> String {
        named_frame(event)
    }

    fn error(&self, problem: &Problem) -> Value {
        let (kind, message) = match problem {
            Problem::ContextLength { n_tokens } => (
                "invalid_request_error",
                format!(
                    "prompt is too long: {n_tokens} tokens > {} maximum",
                    n_tokens.saturating_sub(1)
                ),
            ),
            Problem::Status { status, .. } => {
                let kind = match status {
                    401 => "authentication_error",
                    402 => "billing_error",
                    403 => "permission_error",
                    404 => "not_found_error",
                    413 => "request_too_large",
                    429 => "rate_limit_error",
                    504 => "timeout_error",
                    529 => "overloaded_error",
                    500.. => "api_error",
                    _ => "invalid_request_error",
                };
                (kind, problem.message())
            }
        };
        json!({ "type": "error", "error": { "type": kind, "message": message } })
    }
}

/// A string, or a list of blocks.
fn content(content: &Value) -> Value {
    match content {
        Value::Array(blocks) => form::content(&blocks.iter().map(part).collect::<Vec<_>>()),
        other => other.clone(),
    }
}

fn part(block: &Value) -> Value {
    let source = &block["source"];
    match (block["type"].as_str(), source["type"].as_str()) {
        (Some("text"), _) => form::text(&block["text"]),
        (Some("image"), Some("url")) => form::image(source["url"].clone()),
        (Some("image"), Some("base64")) => {
            let text = |key: &str| source[key].as_str().unwrap_or_default();
            let url = format!("data:{};base64,{}", text("media_type"), text("data"));
            form::image(url.into())
        }
        _ => block.clone(),
    }
}

/// Results of tools become messages of their own; what else was said keeps its place among them.
fn user(content: &Value, messages: &mut Conversation) {
    let Value::Array(blocks) = content else {
        messages.push(form::message("user", content.clone()));
        return;
    };
    let mut parts = Vec::new();
    let flush = |parts: &mut Vec<Value>, messages: &mut Conversation| {
        if !parts.is_empty() {
            messages.push(form::message("user", form::content(parts)));
            parts.clear();
        }
    };
    for block in blocks {
        if block["type"] == "tool_result" {
            flush(&mut parts, messages);
            let result = self::content(&block["content"]);
            messages.push(form::tool_result(&block["tool_use_id"], result));
        } else {
            parts.push(part(block));
        }
    }
    flush(&mut parts, messages);
}

fn assistant(content: &Value, messages: &mut Conversation) {
    let Value::Array(blocks) = content else {
        messages.push(form::message("assistant", content.clone()));
        return;
    };
    let (calls, said): (Vec<&Value>, Vec<&Value>) =
        blocks.iter().partition(|block| block["type"] == "tool_use");
    let said: Vec<Value> = said.into_iter().map(part).collect();
    let said = match said.is_empty() {
        true => Value::Null,
        false => form::content(&said),
    };
    messages.push(form::message("assistant", said));
    for call in calls {
        let arguments = call["input"].to_string().into();
        messages.push_call(form::call(call["id"].clone(), &call["name"], arguments));
    }
}

fn message(turn: &Turn<'_>, content: Value, stop_reason: Value, n_output: usize) -> Value {
    json!({
        "id": format!("msg-{}", turn.n),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": {
            "input_tokens": turn.usage.input,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": n_output,
        },
    })
}

fn stop_reason(turn: &Turn<'_>) -> &'static str {
    match turn.finish {
        Some(Finish::Length) => "max_tokens",
        Some(Finish::Filter) => "refusal",
        None if turn.calls.is_empty() => "end_turn",
        None => "tool_use",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_into_the_form_of_chat_completions() {
        let body = json!({
            "model": "m",
            "stream": true,
            "system": [{ "type": "text", "text": "be" }, { "type": "text", "text": "good", "cache_control": {} }],
            "tools": [
                { "name": "read", "description": "d", "input_schema": { "type": "object" } },
                { "type": "web_search_20250305", "name": "web_search" },
            ],
            "messages": [
                { "role": "user", "content": "hello" },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "I read" },
                    { "type": "tool_use", "id": "a", "name": "read", "input": { "path": "x" } },
                    { "type": "tool_use", "id": "b", "name": "read", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "a", "content": "one" },
                    { "type": "tool_result", "tool_use_id": "b", "is_error": true,
                      "content": [{ "type": "text", "text": "two" }] },
                    { "type": "text", "text": "go on" },
                    { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA" } },
                ] },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "hm", "signature": "s" },
                    { "type": "text", "text": "done" },
                ] },
            ],
        });
        let target = Target {
            model: "",
            stream: false,
        };
        let form = Messages.to_chat(&target, &body).expect("another form");
        let call = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "read", "arguments": arguments } });
        let expected = json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "be\ngood" },
                { "role": "user", "content": "hello" },
                { "role": "assistant", "content": "I read",
                  "tool_calls": [call("a", "{\"path\":\"x\"}"), call("b", "{}")] },
                { "role": "tool", "tool_call_id": "a", "content": "one" },
                { "role": "tool", "tool_call_id": "b", "content": "two" },
                { "role": "user", "content": [
                    { "type": "text", "text": "go on" },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA" } },
                ] },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "hm", "signature": "s" },
                    { "type": "text", "text": "done" },
                ] },
            ],
            "stream": true,
            "tools": [
                { "type": "function", "function":
                    { "name": "read", "description": "d", "parameters": { "type": "object" } } },
                { "type": "web_search_20250305", "name": "web_search" },
            ],
        });
        assert_eq!(form, expected);
    }
}
