//! The canned text of a side call. Where a reply in JSON is wanted (a router, a classifier), it is the least value that
//! its schema allows, so that whoever asked can read it and go on.

use serde_json::{Map, Value};

/// What a call without tools is told when the script has nothing for it.
pub const SIDE_TEXT: &str = "(side reply)";

/// Schemas may refer to themselves.
const DEPTH: usize = 16;

/// The text for a request, given in the form of chat completions.
pub fn side_text(chat: &Value) -> String {
    let format = &chat["response_format"];
    match format["type"].as_str() {
        Some("json_schema") => sample(&format["json_schema"]["schema"], DEPTH).to_string(),
        Some("json_object") => "{}".to_owned(),
        _ => SIDE_TEXT.to_owned(),
    }
}

fn sample(schema: &Value, depth: usize) -> Value {
    if depth == 0 {
        return Value::Null;
    }
    if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return value.clone();
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(first) = schema[key].get(0) {
            return sample(first, depth - 1);
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    // Gemini writes the types in capitals.
    match kind.unwrap_or_default().to_ascii_lowercase().as_str() {
        "string" => SIDE_TEXT.into(),
        "number" | "integer" => schema.get("minimum").cloned().unwrap_or_else(|| 0.into()),
        "boolean" => false.into(),
        "array" => {
            let n = schema["minItems"].as_u64().unwrap_or(0).min(8);
            (0..n)
                .map(|_| sample(&schema["items"], depth - 1))
                .collect()
        }
        "object" => {
            let properties = &schema["properties"];
            let required = schema["required"].as_array();
            let fields = required.into_iter().flatten().filter_map(Value::as_str);
            let object: Map<String, Value> = fields
                .map(|name| (name.to_owned(), sample(&properties[name], depth - 1)))
                .collect();
            object.into()
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_side_text_follows_what_is_wanted() {
        let check = |format: Value, expected: &str| {
            assert_eq!(side_text(&json!({ "response_format": format })), expected);
        };
        check(Value::Null, SIDE_TEXT);
        check(json!({ "type": "text" }), SIDE_TEXT);
        check(json!({ "type": "json_object" }), "{}");
        let schema =
            |schema: Value| json!({ "type": "json_schema", "json_schema": { "schema": schema } });
        check(
            schema(json!({
                "type": "OBJECT",
                "properties": {
                    "reasoning": { "type": "STRING" },
                    "model": { "type": "STRING", "enum": ["flash", "pro"] },
                    "score": { "type": "INTEGER", "minimum": 1 },
                    "more": { "type": "STRING" },
                    "list": { "type": ["array", "null"], "items": { "type": "boolean" }, "minItems": 2 },
                },
                "required": ["reasoning", "model", "score", "list"],
            })),
            "{\"reasoning\":\"(side reply)\",\"model\":\"flash\",\"score\":1,\"list\":[false,false]}",
        );
        let mut nested = json!({});
        for _ in 0..40 {
            nested = json!({ "anyOf": [nested] });
        }
        check(schema(nested), "null");
    }
}
