//! Gemini: `generateContent`, whole and streamed.

use serde_json::{Value, json};

use super::form::{self, Messages};
use super::{Problem, Target, Turn, Wire, halves};
use crate::domain::case::Finish;

pub struct Gemini;

/// The model and the method of a path of this protocol.
pub fn method(path: &str) -> Option<(&str, &str)> {
    let rest = path
        .strip_prefix("/v1beta/models/")
        .or_else(|| path.strip_prefix("/v1/models/"))?;
    let (model, method) = rest.split_once(':')?;
    (!model.is_empty()).then_some((model, method))
}

impl Wire for Gemini {
    fn to_chat(&self, target: &Target<'_>, body: &Value) -> Option<Value> {
        let mut messages = Conversation::default();
        let system = either(body, "systemInstruction", "system_instruction");
        if !system.is_null() {
            let parts: Vec<Value> = form::list(&system["parts"]).iter().map(part).collect();
            messages
                .written
                .push(form::message("system", form::content(&parts)));
        }
        for content in form::list(&body["contents"]) {
            messages.read(content);
        }
        let mut tools = Vec::new();
        for tool in form::list(&body["tools"]) {
            match either(tool, "functionDeclarations", "function_declarations") {
                Value::Array(functions) => tools.extend(functions.iter().map(|function| {
                    let schema = match &function["parametersJsonSchema"] {
                        Value::Null => &function["parameters"],
                        schema => schema,
                    };
                    form::tool(&function["name"], &function["description"], schema)
                })),
                // One of the service's own tools.
                _ => tools.push(tool.clone()),
            }
        }
        let config = either(body, "generationConfig", "generation_config");
        let json = either(config, "responseMimeType", "response_mime_type") == "application/json";
        let schema = ["responseJsonSchema", "responseSchema", "response_schema"]
            .iter()
            .find_map(|key| config.get(key));
        Some(form::request(
            target.model.into(),
            target.stream,
            messages.written.into_vec(),
            tools,
            json.then(|| form::json_format(schema)),
        ))
    }

    fn whole(&self, turn: &Turn<'_>) -> Value {
        let text = turn.text.map(|text| json!({ "text": text }));
        let parts: Vec<Value> = text.into_iter().chain(call_parts(turn)).collect();
        chunk(turn, parts, true)
    }

    fn events(&self, turn: &Turn<'_>) -> Vec<Value> {
        let mut events: Vec<Value> = halves(turn.text.unwrap_or_default())
            .map(|piece| chunk(turn, vec![json!({ "text": piece })], false))
            .collect();
        // Calls come whole in this protocol.
        events.extend(call_parts(turn).map(|part| chunk(turn, vec![part], false)));
        events.push(chunk(turn, vec![json!({ "text": "" })], true));
        events
    }

    fn frame(&self, event: &Value) -> String {
        match event {
            Value::String(raw) => format!("data: {raw}\r\n\r\n"),
            event => format!("data: {event}\r\n\r\n"),
        }
    }

    fn error(&self, problem: &Problem) -> Value {
        let (status, message) = match problem {
            Problem::ContextLength { n_tokens } => (
                "INVALID_ARGUMENT",
                format!(
                    "The input token count ({n_tokens}) exceeds the maximum number of tokens allowed ({}).",
                    n_tokens.saturating_sub(1)
                ),
            ),
            Problem::Status { status, .. } => {
                let status = match status {
                    401 => "UNAUTHENTICATED",
                    403 => "PERMISSION_DENIED",
                    404 => "NOT_FOUND",
                    429 => "RESOURCE_EXHAUSTED",
                    503 => "UNAVAILABLE",
                    504 => "DEADLINE_EXCEEDED",
                    500.. => "INTERNAL",
                    _ => "INVALID_ARGUMENT",
                };
                (status, problem.message())
            }
        };
        let mut error = json!({ "code": problem.status(), "message": message, "status": status });
        if let Problem::Status {
            retry_after_s: Some(seconds),
            ..
        } = problem
        {
            // Clients of this protocol look here, not at the header.
            error["details"] = json!([{
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": format!("{seconds}s"),
            }]);
        }
        json!({ "error": error })
    }
}

/// Both spellings of a key are understood by the service.
fn either<'a>(value: &'a Value, camel: &str, snake: &str) -> &'a Value {
    match &value[camel] {
        Value::Null => &value[snake],
        found => found,
    }
}

fn part(part: &Value) -> Value {
    let inline = either(part, "inlineData", "inline_data");
    if let Some(data) = inline["data"].as_str() {
        let kind = either(inline, "mimeType", "mime_type")
            .as_str()
            .unwrap_or_default();
        return form::image(format!("data:{kind};base64,{data}").into());
    }
    match part["text"] {
        Value::String(_) => form::text(&part["text"]),
        _ => part.clone(),
    }
}

/// Calls may lack ids here; then they are `NAME-N`, N counted over the conversation, and a result answers the first
/// call of its name that has none.
#[derive(Default)]
struct Conversation {
    written: Messages,
    n_calls: usize,
    unanswered: Vec<(Value, Value)>,
}

impl Conversation {
    fn read(&mut self, content: &Value) {
        let role = match content["role"].as_str() {
            Some("model") => "assistant",
            Some(role) => role,
            None => "user",
        };
        let mut said = Vec::new();
        for part in form::list(&content["parts"]) {
            let call = either(part, "functionCall", "function_call");
            let response = either(part, "functionResponse", "function_response");
            if call.is_object() {
                self.said(role, &mut said);
                self.call(call);
            } else if response.is_object() {
                self.said(role, &mut said);
                self.response(response);
            } else if part["thought"] != true {
                said.push(self::part(part));
            }
        }
        self.said(role, &mut said);
    }

    fn said(&mut self, role: &str, parts: &mut Vec<Value>) {
        if !parts.is_empty() {
            self.written.push(form::message(role, form::content(parts)));
            parts.clear();
        }
    }

    fn call(&mut self, call: &Value) {
        self.n_calls += 1;
        let name = &call["name"];
        let id = match &call["id"] {
            Value::Null => format!("{}-{}", name.as_str().unwrap_or_default(), self.n_calls).into(),
            id => id.clone(),
        };
        let arguments = match &call["args"] {
            Value::Null => "{}".to_owned(),
            arguments => arguments.to_string(),
        };
        self.written
            .push_call(form::call(id.clone(), name, arguments.into()));
        self.unanswered.push((name.clone(), id));
    }

    fn response(&mut self, response: &Value) {
        let own = &response["id"];
        let answers = |(name, id): &(Value, Value)| match own {
            Value::Null => *name == response["name"],
            own => id == own,
        };
        let id = match self.unanswered.iter().position(answers) {
            Some(idx) => self.unanswered.remove(idx).1,
            None => own.clone(),
        };
        let result = &response["response"];
        let text = ["output", "error", "result"]
            .iter()
            .find_map(|key| result[*key].as_str());
        let text = text.map_or_else(|| result.to_string(), str::to_owned);
        self.written.push(form::tool_result(&id, text.into()));
    }
}

/// Arguments that are no JSON cannot be sent in this protocol; the model then stops for a malformed call.
fn malformed<'a>(turn: &'a Turn<'_>) -> Option<&'a super::TurnCall> {
    turn.calls
        .iter()
        .find(|call| serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments).is_err())
}

fn call_parts<'a>(turn: &'a Turn<'_>) -> impl Iterator<Item = Value> + 'a {
    let calls = match malformed(turn) {
        Some(_) => &[][..],
        None => &turn.calls,
    };
    calls.iter().map(|call| {
        json!({ "functionCall": { "id": call.id, "name": call.name, "args": call.parsed() } })
    })
}

/// A reply, or a piece of one.
fn chunk(turn: &Turn<'_>, parts: Vec<Value>, last: bool) -> Value {
    let mut candidate = json!({ "content": { "parts": parts, "role": "model" }, "index": 0 });
    let mut usage = json!({ "promptTokenCount": turn.usage.input });
    if last {
        candidate["finishReason"] = match turn.finish {
            Some(Finish::Length) => "MAX_TOKENS",
            Some(Finish::Filter) => "SAFETY",
            None => "STOP",
        }
        .into();
        if let Some(call) = malformed(turn) {
            candidate["finishReason"] = "MALFORMED_FUNCTION_CALL".into();
            candidate["finishMessage"] =
                format!("Malformed function call: {}({})", call.name, call.arguments).into();
        }
        usage["candidatesTokenCount"] = turn.usage.output.into();
        usage["totalTokenCount"] = turn.usage.total().into();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": turn.model,
        "responseId": format!("resp-{}", turn.n),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_into_the_form_of_chat_completions() {
        let target = Target {
            model: "g",
            stream: true,
        };
        let body = json!({
            "systemInstruction": { "role": "user", "parts": [{ "text": "be good" }] },
            "tools": [
                { "functionDeclarations": [
                    { "name": "read", "description": "d", "parametersJsonSchema": { "type": "object" } },
                    { "name": "list", "parameters": { "type": "OBJECT" } },
                ] },
                { "googleSearch": {} },
            ],
            "contents": [
                { "role": "user", "parts": [{ "text": "hello" }, { "text": "you" }] },
                { "role": "model", "parts": [
                    { "text": "hm", "thought": true },
                    { "text": "I read" },
                    { "functionCall": { "name": "read", "args": { "path": "x" } } },
                    { "functionCall": { "name": "read", "args": { "path": "y" } } },
                    { "functionCall": { "id": "own", "name": "list" } },
                ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "id": "own", "name": "list", "response": { "error": "three" } } },
                    { "functionResponse": { "name": "read", "response": { "output": "one" } } },
                    { "functionResponse": { "name": "read", "response": { "lines": 2 } } },
                    { "inlineData": { "mimeType": "image/png", "data": "AA" } },
                ] },
            ],
        });
        let call = |id: &str, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
        let expected = json!({
            "model": "g",
            "messages": [
                { "role": "system", "content": "be good" },
                { "role": "user", "content": "hello\nyou" },
                { "role": "assistant", "content": "I read", "tool_calls": [
                    call("read-1", "read", "{\"path\":\"x\"}"),
                    call("read-2", "read", "{\"path\":\"y\"}"),
                    call("own", "list", "{}"),
                ] },
                { "role": "tool", "tool_call_id": "own", "content": "three" },
                { "role": "tool", "tool_call_id": "read-1", "content": "one" },
                { "role": "tool", "tool_call_id": "read-2", "content": "{\"lines\":2}" },
                { "role": "user", "content": [
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA" } },
                ] },
            ],
            "stream": true,
            "tools": [
                { "type": "function", "function":
                    { "name": "read", "description": "d", "parameters": { "type": "object" } } },
                { "type": "function", "function": { "name": "list", "parameters": { "type": "OBJECT" } } },
                { "googleSearch": {} },
            ],
        });
        assert_eq!(Gemini.to_chat(&target, &body), Some(expected));

        let router = json!({
            "contents": [],
            "generationConfig": { "responseMimeType": "application/json", "responseSchema": { "type": "STRING" } },
        });
        let form = Gemini.to_chat(&target, &router).expect("another form");
        assert_eq!(
            form["response_format"]["json_schema"]["schema"]["type"],
            "STRING"
        );
        assert_eq!(form.get("tools"), None);
    }
}
