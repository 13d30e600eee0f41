//! One message of a chat-completions request, as text.

use serde_json::Value;

use super::MessageStory;
use crate::domain::case::Bindings;

/// Whatever a candidate sent: what is not of the protocol is shown as JSON.
pub fn fresh(message: &Value, bindings: &Bindings) -> MessageStory {
    let string = |value: &Value| value.as_str().map(str::to_owned);
    let calls = message["tool_calls"].as_array();
    MessageStory {
        role: string(&message["role"]).unwrap_or_else(|| message["role"].to_string()),
        answers: string(&message["tool_call_id"]),
        text: bindings.redact(&text(&message["content"])),
        calls: calls
            .into_iter()
            .flatten()
            .map(|call| bindings.redact(&self::call(call)))
            .collect(),
    }
}

/// A string, or the texts of a list of parts.
fn text(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| match part["text"].as_str() {
                Some(text) => text.to_owned(),
                None => part.to_string(),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

fn call(call: &Value) -> String {
    let function = &call["function"];
    let Some(name) = function["name"].as_str() else {
        return call.to_string();
    };
    let arguments = match &function["arguments"] {
        Value::Null => String::new(),
        Value::String(text) => format!(" {text}"),
        other => format!(" {other}"),
    };
    match call["id"].as_str() {
        Some(id) => format!("{name}{arguments} [{id}]"),
        None => format!("{name}{arguments}"),
    }
}
