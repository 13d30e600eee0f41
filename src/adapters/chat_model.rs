//! A model behind any endpoint that speaks OpenAI chat completions: one question, one answer as text. No tools are
//! offered, redirects are not followed, and the key goes to the named host only.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use url::Url;

use super::http;
use crate::domain::chat::Message;
use crate::domain::secret::{Secret, is_private};
use crate::domain::visible::{innermost, shortened, visible_line};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an answer, with all that stands around its text.
const MOST_BYTES: usize = 1 << 20;
const SHOWN_CHARS: usize = 200;

#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    #[error("{0:?} is not the address of a model: write http://HOST/v1 or https://HOST/v1")]
    Address(String),
    #[error("the key is not sent to {0}: the connection is not encrypted")]
    InClear(Url),
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
    #[error("{url}: no answer within {limit_s} s")]
    TimedOut { url: Url, limit_s: u64 },
    #[error("{url}: {reason}")]
    Unreachable { url: Url, reason: String },
    #[error("{url}: status {status}: {message}")]
    Refused {
        url: Url,
        status: StatusCode,
        message: String,
    },
    /// It answers, but not in this protocol.
    #[error("{url}: {reason}")]
    NotChat { url: Url, reason: String },
}

pub struct ChatModel {
    client: reqwest::Client,
    url: Url,
    name: String,
    key: Option<Secret>,
    time_limit: Duration,
}

impl ChatModel {
    /// `base` is what `/chat/completions` is put behind. `time_limit` is for one answer as a whole.
    pub fn new(
        base: &str,
        name: &str,
        key: Option<Secret>,
        time_limit: Duration,
    ) -> Result<Self, ChatError> {
        let put_behind = base.trim_end_matches('/');
        let put_behind = put_behind
            .strip_suffix("/chat/completions")
            .unwrap_or(put_behind);
        let url = http::address(&format!("{put_behind}/chat/completions"))
            .ok_or_else(|| ChatError::Address(base.to_owned()))?;
        if key.is_some() && !is_private(&url) {
            return Err(ChatError::InClear(url));
        }
        let client = http::client(&url)
            .connect_timeout(CONNECT_TIMEOUT.min(time_limit))
            .timeout(time_limit)
            .build()
            .map_err(|error| ChatError::Client(innermost(&error)))?;
        Ok(Self {
            client,
            url,
            name: name.to_owned(),
            key,
            time_limit,
        })
    }

    pub async fn ask(&self, messages: &[Message]) -> Result<String, ChatError> {
        let body =
            json!({ "model": self.name, "messages": messages, "temperature": 0, "stream": false });
        let mut request = self.client.post(self.url.clone()).json(&body);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose());
        }
        let response = request.send().await.map_err(|error| self.broken(&error))?;
        let status = response.status();
        let bytes = self.body(response).await?;
        if !status.is_success() {
            return Err(ChatError::Refused {
                url: self.url.clone(),
                status,
                message: said(&bytes),
            });
        }
        let answer: Value = serde_json::from_slice(&bytes)
            .map_err(|_| self.not_chat(format!("the answer is no JSON: {}", said(&bytes))))?;
        match answer["choices"][0]["message"]["content"].as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(self.not_chat("the answer has no text of a model in it".to_owned())),
        }
    }

    async fn body(&self, mut response: reqwest::Response) -> Result<Vec<u8>, ChatError> {
        let mut bytes = Vec::new();
        while let Some(piece) = response
            .chunk()
            .await
            .map_err(|error| self.broken(&error))?
        {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MOST_BYTES {
                return Err(self.not_chat(format!("the answer has over {MOST_BYTES} bytes")));
            }
        }
        Ok(bytes)
    }

    fn broken(&self, error: &reqwest::Error) -> ChatError {
        let url = self.url.clone();
        match error.is_timeout() {
            true => ChatError::TimedOut {
                url,
                limit_s: self.time_limit.as_secs(),
            },
            false => ChatError::Unreachable {
                url,
                reason: innermost(error),
            },
        }
    }

    fn not_chat(&self, reason: String) -> ChatError {
        let url = self.url.clone();
        ChatError::NotChat { url, reason }
    }
}

/// The message of an error object, or the beginning of whatever was sent.
fn said(bytes: &[u8]) -> String {
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let text = match value["error"]["message"].as_str() {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(bytes).into_owned(),
    };
    shortened(&visible_line(text.trim()), SHOWN_CHARS).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_before_anything_is_sent() {
        let check = |base: &str, with_key: bool, expected: &str| {
            let key = with_key.then(|| Secret::new("k").expect("a key"));
            let seen = match ChatModel::new(base, "m", key, Duration::from_secs(1)) {
                Ok(model) => model.url.to_string(),
                Err(error) => error.to_string(),
            };
            assert!(seen.contains(expected), "{base}: {seen}");
        };
        check(
            "http://127.0.0.1:1/v1",
            true,
            "http://127.0.0.1:1/v1/chat/completions",
        );
        check("https://h/v1/", true, "https://h/v1/chat/completions");
        check(
            "https://h/v1/chat/completions",
            true,
            "https://h/v1/chat/completions",
        );
        check("http://h/v1", false, "http://h/v1/chat/completions");
        check("http://h/v1", true, "not encrypted");
        check("file:///etc/passwd", false, "not the address");
        check("h:8000", false, "not the address");
    }
}
