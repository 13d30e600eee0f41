//! Tokens, as an answer's `usage` tells them: whole or in the events of a stream, of both protocols.

use serde_json::Value;

use crate::domain::model_call::Tokens;

/// Of one answer. In a stream figures come in parts, and later ones stand for earlier ones.
#[derive(Debug, Default)]
pub struct Meter {
    input: Option<u64>,
    /// Tokens that `input` does not count: Anthropic tells what its cache gave and took beside it.
    cache_read: u64,
    cache_written: u64,
    cached: u64,
    output: Option<u64>,
}

impl Meter {
    /// A line of an event stream, or a whole answer in one.
    pub fn read(&mut self, line: &[u8]) {
        let data = line.strip_prefix(b"data:").unwrap_or(line);
        if let Ok(value) = serde_json::from_slice::<Value>(data) {
            self.add(&value["usage"]);
            self.add(&value["message"]["usage"]);
        }
    }

    /// None when nothing was told.
    pub fn tokens(&self) -> Option<Tokens> {
        if self.input.is_none() && self.output.is_none() {
            return None;
        }
        Some(Tokens {
            input: self.input.unwrap_or(0) + self.cache_read + self.cache_written,
            cached: self.cached + self.cache_read,
            output: self.output.unwrap_or(0),
        })
    }

    fn add(&mut self, usage: &Value) {
        let number = |names: [&str; 2]| names.iter().find_map(|name| usage[*name].as_u64());
        self.input = number(["prompt_tokens", "input_tokens"]).or(self.input);
        self.output = number(["completion_tokens", "output_tokens"]).or(self.output);
        if let Some(n) = usage["cache_read_input_tokens"].as_u64() {
            self.cache_read = n;
        }
        if let Some(n) = usage["cache_creation_input_tokens"].as_u64() {
            self.cache_written = n;
        }
        if let Some(n) = usage["prompt_tokens_details"]["cached_tokens"].as_u64() {
            self.cached = n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_whole_and_streamed_of_both_protocols() {
        let check = |lines: &[&str], expected: Option<(u64, u64, u64)>| {
            let mut meter = Meter::default();
            for line in lines {
                meter.read(line.as_bytes());
            }
            let seen = meter
                .tokens()
                .map(|tokens| (tokens.input, tokens.cached, tokens.output));
            assert_eq!(seen, expected, "{lines:?}");
        };
        check(
            &[
                r#"{"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#,
            ],
            Some((9, 4, 2)),
        );
        check(
            &[
                r#"data: {"choices":[],"usage":null}"#,
                r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#,
                "data: [DONE]",
            ],
            Some((9, 0, 2)),
        );
        check(
            &[
                "event: message_start",
                r#"data: {"message":{"usage":{"input_tokens":3,"cache_read_input_tokens":50,"cache_creation_input_tokens":7,"output_tokens":1}}}"#,
                r#"data: {"type":"message_delta","usage":{"output_tokens":20}}"#,
            ],
            Some((60, 50, 20)),
        );
        check(
            &[r#"{"type":"message","usage":{"input_tokens":3,"output_tokens":4}}"#],
            Some((3, 0, 4)),
        );
        check(&["data: {}", "", r#"{"error":{"message":"no"}}"#], None);
    }
}
