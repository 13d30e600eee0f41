//! Building blocks of the chat-completions form that the other protocols are read into.

use serde_json::{Map, Value, json};

/// The form itself. `tools` and `response_format` are left out when there are none.
pub fn request(
    model: Value,
    stream: bool,
    messages: Vec<Value>,
    tools: Vec<Value>,
    response_format: Option<Value>,
) -> Value {
    let mut form = json!({ "model": model, "messages": messages, "stream": stream });
    if !tools.is_empty() {
        form["tools"] = tools.into();
    }
    if let Some(format) = response_format {
        form["response_format"] = format;
    }
    form
}

pub fn message(role: &str, content: Value) -> Value {
    json!({ "role": role, "content": content })
}

pub fn tool_result(id: &Value, content: Value) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": content })
}

/// Texts alone become one text, a line break between them; with anything else among them they stay a list of parts.
pub fn content(parts: &[Value]) -> Value {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part["type"].as_str() {
            Some("text") => part["text"].as_str(),
            _ => None,
        })
        .collect();
    match texts {
        Some(texts) => texts.join("\n").into(),
        None => parts.to_vec().into(),
    }
}

pub fn text(text: &Value) -> Value {
    json!({ "type": "text", "text": text })
}

pub fn image(url: Value) -> Value {
    json!({ "type": "image_url", "image_url": { "url": url } })
}

/// A call; `arguments` are JSON as text.
pub fn call(id: Value, name: &Value, arguments: Value) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

/// A function that can be called; what the request does not say is left out.
pub fn tool(name: &Value, description: &Value, parameters: &Value) -> Value {
    let mut function = Map::new();
    for (key, value) in [
        ("name", name),
        ("description", description),
        ("parameters", parameters),
    ] {
        if !value.is_null() {
            function.insert(key.to_owned(), value.clone());
        }
    }
    json!({ "type": "function", "function": function })
}

/// A reply in JSON is wanted, after a schema when one is given.
pub fn json_format(schema: Option<&Value>) -> Value {
    match schema {
        Some(schema) => json!({ "type": "json_schema", "json_schema": { "schema": schema } }),
        None => json!({ "type": "json_object" }),
    }
}

/// The conversation as it grows: what an assistant says and the calls that follow are one message.
#[derive(Default)]
pub struct Messages(Vec<Value>);

impl Messages {
    pub fn push(&mut self, message: Value) {
        self.0.push(message);
    }

    /// Adds a call to the assistant's message at the end, or begins one.
    pub fn push_call(&mut self, call: Value) {
        if self.0.last().is_none_or(|last| last["role"] != "assistant") {
            self.push(message("assistant", Value::Null));
        }
        let last = self.0.last_mut().expect("one is there now");
        match last["tool_calls"].as_array_mut() {
            Some(calls) => calls.push(call),
            None => last["tool_calls"] = json!([call]),
        }
    }

    pub fn into_vec(self) -> Vec<Value> {
        self.0
    }
}

/// The elements of a list; none of anything else.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
