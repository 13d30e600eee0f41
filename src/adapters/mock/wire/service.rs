//! What clients ask around a conversation: the models there are, and how many tokens a text has. Fixed answers.

use serde_json::{Value, json};

const MODEL: &str = "mock-model";

/// One list for OpenAI's and Anthropic's clients, which ask at the same path.
pub fn models() -> Value {
    json!({
        "object": "list",
        "data": [{
            "id": MODEL,
            "object": "model",
            "created": 0,
            "owned_by": "mock",
            "type": "model",
            "display_name": MODEL,
            "created_at": "1970-01-01T00:00:00Z",
        }],
        "has_more": false,
        "first_id": MODEL,
        "last_id": MODEL,
    })
}

pub fn gemini_models() -> Value {
    json!({ "models": [{
        "name": format!("models/{MODEL}"),
        "displayName": MODEL,
        "inputTokenLimit": 128_000,
        "outputTokenLimit": 8_192,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }] })
}

pub fn anthropic_tokens() -> Value {
    json!({ "input_tokens": 1 })
}

pub fn gemini_tokens() -> Value {
    json!({ "totalTokens": 1 })
}
