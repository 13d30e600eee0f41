//! OpenAI responses.

use serde_json::{Value, json};

use super::form::{self, Messages};
use super::{Problem, Target, Turn, Wire, chat, halves, named_frame};
use crate::domain::case::Finish;

pub struct Responses;

impl Wire for Responses {
    fn to_chat(&self, _: &Target<'_>, body: &Value) -> Option<Value> {
        let mut messages = Messages::default();
        if !body["instructions"].is_null() {
            messages.push(form::message("system", body["instructions"].clone()));
        }
        match &body["input"] {
            Value::Array(items) => items.iter().for_each(|item| read(item, &mut messages)),
            Value::Null => {}
            input => messages.push(form::message("user", input.clone())),
        }
        let tools = form::list(&body["tools"])
            .iter()
            .map(|tool| match tool["type"].as_str() {
                Some("function") => {
                    form::tool(&tool["name"], &tool["description"], &tool["parameters"])
                }
                // One of the service's own tools, or a form that chat completions lack.
                _ => tool.clone(),
            })
            .collect();
        let format = &body["text"]["format"];
        let format = match format["type"].as_str() {
            Some("json_schema") => Some(form::json_format(format.get("schema"))),
            Some("json_object") => Some(form::json_format(None)),
            _ => None,
        };
        Some(form::request(
            body["model"].clone(),
            body["stream"] == true,
            messages.into_vec(),
            tools,
            format,
        ))
    }

    fn whole(&self, turn: &Turn<'_>) -> Value {
        let status = match turn.finish {
            None => "completed",
            Some(_) => "incomplete",
        };
        response(turn, status, items(turn))
    }

    fn events(&self, turn: &Turn<'_>) -> Vec<Value> {
        let opening = response(turn, "in_progress", Vec::new());
        let mut events = vec![
            json!({ "type": "response.created", "response": opening }),
            json!({ "type": "response.in_progress", "response": opening }),
        ];
        for (idx, item) in items(turn).into_iter().enumerate() {
            match item["type"].as_str() {
                Some("message") => message_events(idx, &item, &mut events),
                _ => call_events(idx, &item, &mut events),
            }
        }
        let whole = self.whole(turn);
        let end = match turn.finish {
            None => "response.completed",
            Some(_) => "response.incomplete",
        };
        events.push(json!({ "type": end, "response": whole }));
        for (idx, event) in events.iter_mut().enumerate() {
            event["sequence_number"] = idx.into();
        }
        events
    }

    fn frame(&self, event: &Value) -> String {
        named_frame(event)
    }

    fn error(&self, problem: &Problem) -> Value {
        chat::error(problem, "input")
    }

    fn error_event(&self, problem: &Problem, n_before: usize) -> Value {
        let error = &self.error(problem)["error"];
        json!({
            "type": "error",
            "code": error["code"].as_str().or(error["type"].as_str()),
            "message": error["message"],
            "param": error["param"],
            "sequence_number": n_before,
        })
    }
}

/// One item of the input.
fn read(item: &Value, messages: &mut Messages) {
    let id = || item["call_id"].clone();
    match item["type"].as_str() {
        None | Some("message") => {
            let role = match item["role"].as_str() {
                // The newer word for the same rank.
                Some("developer") => "system",
                Some(role) => role,
                None => return messages.push(item.clone()),
            };
            messages.push(form::message(role, content(&item["content"])));
        }
        Some("function_call") => {
            messages.push_call(form::call(id(), &item["name"], item["arguments"].clone()));
        }
        Some("custom_tool_call") => messages.push_call(json!({
            "id": item["call_id"],
            "type": "custom",
            "custom": { "name": item["name"], "input": item["input"] },
        })),
        // Reasoning has no place in chat completions.
        Some("reasoning") => {}
        Some(kind) if kind.ends_with("_output") => {
            messages.push(form::tool_result(&id(), content(&item["output"])));
        }
        Some(_) => messages.push(item.clone()),
    }
}

/// A string, or a list of parts.
fn content(content: &Value) -> Value {
    let Value::Array(parts) = content else {
        return content.clone();
    };
    let parts: Vec<Value> = parts
        .iter()
        .map(|part| match part["type"].as_str() {
            Some("input_text" | "output_text" | "text") => form::text(&part["text"]),
            Some("input_image") => form::image(part["image_url"].clone()),
            _ => part.clone(),
        })
        .collect();
    form::content(&parts)
}

fn items(turn: &Turn<'_>) -> Vec<Value> {
    let status = match turn.finish {
        None => "completed",
        Some(_) => "incomplete",
    };
    let text = turn.text.map(|text| {
        json!({
            "id": format!("msg-{}", turn.n),
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": [{ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }],
        })
    });
    let calls = turn.calls.iter().enumerate().map(|(idx, call)| {
        json!({
            "id": format!("fc-{}-{}", turn.n, idx + 1),
            "type": "function_call",
            "status": status,
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        })
    });
    text.into_iter().chain(calls).collect()
}

fn message_events(idx: usize, item: &Value, events: &mut Vec<Value>) {
    let mut opening = item.clone();
    opening["status"] = "in_progress".into();
    opening["content"] = json!([]);
    events.push(
        json!({ "type": "response.output_item.added", "output_index": idx, "item": opening }),
    );
    let part = &item["content"][0];
    let mut event = |kind: &str, key: &str, value: Value| {
        let mut event = json!({
            "type": kind,
            "item_id": item["id"],
            "output_index": idx,
            "content_index": 0,
        });
        event[key] = value;
        if kind.starts_with("response.output_text") {
            event["logprobs"] = json!([]);
        }
        events.push(event);
    };
    let mut empty = part.clone();
    empty["text"] = "".into();
    event("response.content_part.added", "part", empty);
    for piece in halves(part["text"].as_str().unwrap_or_default()) {
        event("response.output_text.delta", "delta", piece.into());
    }
    event("response.output_text.done", "text", part["text"].clone());
    event("response.content_part.done", "part", part.clone());
    events.push(json!({ "type": "response.output_item.done", "output_index": idx, "item": item }));
}

fn call_events(idx: usize, item: &Value, events: &mut Vec<Value>) {
    let mut opening = item.clone();
    opening["status"] = "in_progress".into();
    opening["arguments"] = "".into();
    events.push(
        json!({ "type": "response.output_item.added", "output_index": idx, "item": opening }),
    );
    for piece in halves(item["arguments"].as_str().unwrap_or_default()) {
        events.push(json!({
            "type": "response.function_call_arguments.delta",
            "item_id": item["id"],
            "output_index": idx,
            "delta": piece,
        }));
    }
    events.push(json!({
        "type": "response.function_call_arguments.done",
        "item_id": item["id"],
        "output_index": idx,
        "name": item["name"],
        "arguments": item["arguments"],
    }));
    events.push(json!({ "type": "response.output_item.done", "output_index": idx, "item": item }));
}

fn response(turn: &Turn<'_>, status: &str, output: Vec<Value>) -> Value {
    let incomplete = match turn.finish {
        Some(Finish::Length) => json!({ "reason": "max_output_tokens" }),
        Some(Finish::Filter) => json!({ "reason": "content_filter" }),
        None => Value::Null,
    };
    let running = status == "in_progress";
    let usage = json!({
        "input_tokens": turn.usage.input,
        "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": turn.usage.output,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": turn.usage.total(),
    });
    json!({
        "id": format!("resp-{}", turn.n),
        "object": "response",
        "created_at": 0,
        "status": status,
        "error": null,
        "incomplete_details": if running { Value::Null } else { incomplete },
        "instructions": null,
        "metadata": {},
        "model": turn.model,
        "output": output,
        "parallel_tool_calls": true,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": if running { Value::Null } else { usage },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_into_the_form_of_chat_completions() {
        let read = |body: Value| {
            let target = Target {
                model: "",
                stream: false,
            };
            Responses.to_chat(&target, &body).expect("another form")
        };
        let form = read(json!({
            "model": "m",
            "instructions": "be good",
            "stream": true,
            "tools": [
                { "type": "function", "name": "read", "parameters": { "type": "object" }, "strict": false },
                { "type": "web_search" },
            ],
            "input": [
                { "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "mind" }] },
                { "role": "user", "content": "hello" },
                { "type": "reasoning", "summary": [] },
                { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I read" }] },
                { "type": "function_call", "call_id": "a", "name": "read", "arguments": "{\"path\": " },
                { "type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "x" },
                { "type": "function_call_output", "call_id": "a", "output": "one" },
                { "type": "custom_tool_call_output", "call_id": "b",
                  "output": [{ "type": "input_text", "text": "two" }] },
                { "type": "function_call", "call_id": "c", "name": "read", "arguments": "{}" },
            ],
        }));
        let call = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "read", "arguments": arguments } });
        let custom =
            json!({ "id": "b", "type": "custom", "custom": { "name": "patch", "input": "x" } });
        let expected = json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "be good" },
                { "role": "system", "content": "mind" },
                { "role": "user", "content": "hello" },
                { "role": "assistant", "content": "I read",
                  "tool_calls": [call("a", "{\"path\": "), custom] },
                { "role": "tool", "tool_call_id": "a", "content": "one" },
                { "role": "tool", "tool_call_id": "b", "content": "two" },
                { "role": "assistant", "content": null, "tool_calls": [call("c", "{}")] },
            ],
            "stream": true,
            "tools": [
                { "type": "function", "function": { "name": "read", "parameters": { "type": "object" } } },
                { "type": "web_search" },
            ],
        });
        assert_eq!(form, expected);

        let plain = read(
            json!({ "model": "m", "input": "hello", "text": { "format": { "type": "json_object" } } }),
        );
        assert_eq!(
            plain["messages"],
            json!([{ "role": "user", "content": "hello" }])
        );
        assert_eq!(plain["response_format"], json!({ "type": "json_object" }));
        assert_eq!(plain.get("tools"), None);
    }
}
