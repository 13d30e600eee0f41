//! The endpoint behind the gateway: its address, its key, and the only thing that may be asked there.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use crate::adapters::http;
use crate::domain::secret::{Secret, is_private};
use crate::domain::visible::innermost;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// What stands for the key wherever an endpoint repeats it.
const NO_KEY: &str = "[key]";
/// Of the request; everything else is ours.
const PASSED_ON: [&str; 3] = ["accept", "anthropic-version", "anthropic-beta"];

/// Fields of a request by which endpoints are known to ask other models, search the web, or run tools of their own.
const BEYOND: [&str; 7] = [
    "models",
    "fallbacks",
    "plugins",
    "mcp_servers",
    "web_search_options",
    "search_parameters",
    "enable_search",
];

#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    #[error("{0:?} is not the address of a model: write http://HOST/v1 or https://HOST/v1")]
    Address(String),
    #[error("the key is not sent to {0}: the connection is not encrypted")]
    InClear(Url),
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
    #[error("the gateway cannot serve on its listener: {0}")]
    Listener(std::io::Error),
}

/// What an endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Chat completions.
    Openai,
    /// Messages.
    Anthropic,
}

impl Protocol {
    /// The path of a call, below the endpoint's address and below [`super::BASE_PATH`] alike.
    fn path(self) -> &'static str {
        match self {
            Self::Openai => "/chat/completions",
            Self::Anthropic => "/messages",
        }
    }
}

/// One model behind one endpoint.
#[derive(Debug, Clone)]
pub struct Upstream {
    client: reqwest::Client,
    protocol: Protocol,
    url: Url,
    model: String,
    key: Option<Secret>,
}

impl Upstream {
    /// `endpoint` is what the protocol's path is put behind, as `https://HOST/v1`. A call fails when nothing of its answer
    /// comes for `silence_limit`: a model may think for long before its first word.
    pub fn new(
        protocol: Protocol,
        endpoint: &str,
        model: &str,
        key: Option<Secret>,
        silence_limit: Duration,
    ) -> Result<Self, GatewayError> {
        let url = format!("{}{}", endpoint.trim_end_matches('/'), protocol.path());
        let url = http::address(&url).ok_or_else(|| GatewayError::Address(endpoint.to_owned()))?;
        if key.is_some() && !is_private(&url) {
            return Err(GatewayError::InClear(url));
        }
        let client = http::client(&url)
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(silence_limit)
            .build()
            .map_err(|error| GatewayError::Client(innermost(&error)))?;
        Ok(Self {
            client,
            protocol,
            url,
            model: model.to_owned(),
            key,
        })
    }

    /// Why a call is not passed on.
    pub(super) fn refusal(&self, method: &str, path: &str, body: &Value) -> Option<String> {
        let expected = format!("{}{}", super::BASE_PATH, self.protocol.path());
        if (method, path) != ("POST", expected.as_str()) {
            return Some(format!("the gateway has POST {expected} only"));
        }
        if body["model"].as_str() != Some(&self.model) {
            return Some(format!("the gateway has the model {} only", self.model));
        }
        if let Some(field) = BEYOND.iter().find(|field| body.get(**field).is_some()) {
            return Some(format!("the gateway does not pass on the field {field}"));
        }
        let mut tools = body["tools"].as_array().into_iter().flatten();
        let foreign = tools.find(|tool| {
            let kind = tool.get("type").map(|kind| kind.as_str());
            !matches!(kind, None | Some(Some("function" | "custom")))
        })?;
        let kind = &foreign["type"];
        Some(format!("the gateway has no tools of the type {kind}"))
    }

    /// Passes a call on. The text of an error has no key in it.
    pub(super) async fn send(
        &self,
        headers: &HeaderMap,
        body: &Value,
    ) -> Result<reqwest::Response, String> {
        let mut own = HeaderMap::new();
        for name in PASSED_ON {
            if let Some(value) = headers.get(name) {
                own.insert(HeaderName::from_static(name), value.clone());
            }
        }
        let mut request = self.client.post(self.url.clone());
        if self.protocol == Protocol::Anthropic {
            own.entry("anthropic-version")
                .or_insert(HeaderValue::from_static("2023-06-01"));
        }
        if let Some(key) = &self.key {
            request = match self.protocol {
                Protocol::Openai => request.bearer_auth(key.expose()),
                Protocol::Anthropic => request.header("x-api-key", key.expose()),
            };
        }
        let sent = request.headers(own).json(body).send().await;
        // The builder has no use for the address.
        sent.map_err(|error| self.without_key(&innermost(&error)))
    }

    /// Some endpoints repeat the key in what they say.
    pub(super) fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(key) => text.replace(key.expose(), NO_KEY),
            None => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(endpoint: &str, key: Option<&str>) -> Result<Upstream, GatewayError> {
        let key = key.map(|key| Secret::new(key).expect("a key"));
        Upstream::new(Protocol::Openai, endpoint, "m", key, Duration::from_secs(9))
    }

    #[test]
    fn one_model_and_one_path_are_passed_on() {
        let upstream = upstream("https://h/v1/", None).expect("an address");
        let check = |method: &str, path: &str, model: &str, passes: bool| {
            let body = serde_json::json!({ "model": model });
            let refusal = upstream.refusal(method, path, &body);
            assert_eq!(refusal.is_none(), passes, "{method} {path}: {refusal:?}");
        };
        check("POST", "/v1/chat/completions", "m", true);
        check("POST", "/v1/chat/completions", "dearer", false);
        check("GET", "/v1/chat/completions", "m", false);
        check("POST", "/v1/messages", "m", false);
        check("POST", "/v1/chat/completions/../files", "m", false);
        check("POST", "/v1/files", "m", false);
    }

    #[test]
    fn what_an_endpoint_would_do_beside_the_model_is_refused() {
        let upstream = upstream("https://h/v1", None).expect("an address");
        let check = |body: &str, expected: Option<&str>| {
            let mut body: Value = serde_json::from_str(body).expect("is JSON");
            body["model"] = "m".into();
            let refusal = upstream.refusal("POST", "/v1/chat/completions", &body);
            assert_eq!(refusal.as_deref(), expected, "{body}");
        };
        check(r#"{"messages": [], "stream": true}"#, None);
        check(
            r#"{"tools": [{"type": "function"}, {"type": "custom"}, {"name": "t", "input_schema": {}}]}"#,
            None,
        );
        check(
            r#"{"models": ["dearer"]}"#,
            Some("the gateway does not pass on the field models"),
        );
        check(
            r#"{"web_search_options": {}}"#,
            Some("the gateway does not pass on the field web_search_options"),
        );
        check(
            r#"{"tools": [{"type": "function"}, {"type": "web_search_20250305", "name": "web_search"}]}"#,
            Some(r#"the gateway has no tools of the type "web_search_20250305""#),
        );
        check(
            r#"{"tools": [{"type": 1}]}"#,
            Some("the gateway has no tools of the type 1"),
        );
    }

    #[test]
    fn a_key_goes_to_nobody_in_clear_and_stands_in_no_text() {
        assert!(matches!(
            upstream("http://h/v1", Some("k")),
            Err(GatewayError::InClear(_))
        ));
        assert!(matches!(
            upstream("file:///x", None),
            Err(GatewayError::Address(_))
        ));
        let upstream = upstream("http://127.0.0.1:1/v1", Some("s-123")).expect("an address");
        assert_eq!(upstream.without_key("no s-123 here"), "no [key] here");
        assert!(!format!("{upstream:?}").contains("s-123"));
    }
}
