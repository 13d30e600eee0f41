//! GitHub's REST interface, as far as lists of issues go: one request, one answer. When to wait, to try again and where
//! to go on is decided by the stage.
//!
//! Requests go through octocrab, which adds the token to requests for the interface's own host and no other. The bytes
//! of a page are kept as they came.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use http_body_util::BodyExt;
use hyper::http::response::Parts;
use octocrab::Octocrab;
use octocrab::service::middleware::retry::RetryConfig;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::Value;
use url::Url;

use super::http;
use crate::domain::issue::IssueKey;
use crate::domain::secret::{Secret, is_private};
use crate::domain::visible::{innermost, visible_line};

/// One page of a list.
#[derive(Debug)]
pub struct Page {
    /// The body as it came.
    pub bytes: Vec<u8>,
    pub rows: Vec<Value>,
    /// Where the list goes on, as GitHub gave it.
    pub next: Option<String>,
    pub etag: Option<String>,
    /// GitHub's clock when it answered, RFC 3339.
    pub date: Option<String>,
    /// The number of the repository, which stays when it is renamed; links of a list carry it.
    pub repository_id: Option<u64>,
}

/// What one request gave.
#[derive(Debug)]
pub enum Answer<T> {
    Found(T),
    /// What is there has the ETag that was sent.
    NotModified,
    /// It is at another address of the same host: the repository was renamed, or the issue moved.
    Moved(String),
}

/// What became of one issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    There,
    /// It was moved to another repository and has another number there.
    Transferred(IssueKey),
    /// It was deleted, or moved to where we cannot read.
    Gone,
}

#[derive(Debug, thiserror::Error)]
pub enum GitHubError {
    /// Too many requests. `wait_s` is what GitHub asks for, if it says.
    #[error("GitHub limits the rate of requests: {message}")]
    RateLimited {
        wait_s: Option<u64>,
        message: String,
    },
    /// A failure that may pass: status 5xx, a lost connection, a page that ends in the middle.
    #[error("{url}: {reason}")]
    Passing { url: String, reason: String },
    /// Numbered pages end here; the list has to be walked by cursors.
    #[error("{url}: pages by number are not supported for large lists")]
    NeedsCursor { url: String },
    #[error("{url}: there is no such repository, or it is not public")]
    NotFound { url: String },
    /// Status 410: what was there is deleted.
    #[error("{url}: it is deleted")]
    Deleted { url: String },
    #[error("GitHub refuses the token")]
    Unauthorized,
    #[error("{url}: status {status}: {message}")]
    Refused {
        url: String,
        status: u16,
        message: String,
    },
    /// A link to another host: the token must not go there, and nothing is read from there.
    #[error("{url} is not on the host of {api}")]
    Foreign { url: String, api: String },
    /// The token would go through a network unencrypted.
    #[error("the token is not sent to {api}: the connection is not encrypted")]
    InClear { api: String },
    #[error("{0:?} is not the address of an interface")]
    Address(String),
    /// The HTTP client cannot be made, as when the machine has no certificates.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

pub struct GitHub {
    octocrab: Octocrab,
    api: Url,
}

const PAGE_SIZE: u32 = 100;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

impl GitHub {
    /// Must be called inside of a tokio runtime.
    pub fn new(api: &str, token: Option<&Secret>) -> Result<Self, GitHubError> {
        let address = || GitHubError::Address(api.to_owned());
        let url = http::address(api).ok_or_else(address)?;
        if token.is_some() && !is_private(&url) {
            return Err(GitHubError::InClear {
                api: api.to_owned(),
            });
        }
        let client = http::client(&url)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .build()
            .map_err(|error| GitHubError::Client(innermost(&error)))?;
        let mut builder = Octocrab::builder()
            .base_uri(api)
            .map_err(|_| address())?
            .add_retry_config(RetryConfig::None);
        if let Some(secret) = token {
            builder = builder.personal_token(secret.expose().to_owned());
        }
        let octocrab = builder
            .build_with_reqwest(client)
            .map_err(|error| GitHubError::Client(error.to_string()))?;
        Ok(Self { octocrab, api: url })
    }

    /// The first page of all issues and pull requests of a repository, the oldest first: that order never moves a row
    /// to a page that was read already. `since` leaves out what was not updated since then.
    pub fn first_page(&self, repository: &str, since: Option<&str>) -> String {
        let mut url = self.address(&format!(
            "repos/{repository}/issues?state=all&sort=created&direction=asc&per_page={PAGE_SIZE}"
        ));
        if let Some(since) = since {
            url += &format!("&since={since}");
        }
        url
    }

    /// The first page of all comments of a repository, those on pull requests included, in the order of their updates:
    /// a comment that is edited meanwhile moves to the end and is read again there.
    pub fn first_page_of_comments(&self, repository: &str, since: Option<&str>) -> String {
        let mut url = self.address(&format!(
            "repos/{repository}/issues/comments?sort=updated&direction=asc&per_page={PAGE_SIZE}"
        ));
        if let Some(since) = since {
            url += &format!("&since={since}");
        }
        url
    }

    /// One issue by its number.
    pub fn issue(&self, key: &IssueKey) -> String {
        self.address(&format!("repos/{}/issues/{}", key.repository, key.number))
    }

    fn address(&self, below: &str) -> String {
        format!("{}/{below}", self.api.as_str().trim_end_matches('/'))
    }

    /// Asks once for a page of a list.
    pub async fn page(&self, url: &str, etag: Option<&str>) -> Result<Answer<Page>, GitHubError> {
        let (parts, bytes) = self.ask(url, etag).await?;
        match parts.status {
            StatusCode::OK => Ok(Answer::Found(self.read(url, &parts.headers, bytes)?)),
            StatusCode::NOT_MODIFIED => Ok(Answer::NotModified),
            status if status.is_redirection() => Ok(Answer::Moved(self.target(url, &parts)?)),
            status => Err(fault(url, status, &parts.headers, &bytes)),
        }
    }

    /// Asks once what became of an issue, at the address that [`GitHub::issue`] or a redirect gave.
    pub async fn standing(
        &self,
        url: &str,
        asked: &IssueKey,
    ) -> Result<Answer<Standing>, GitHubError> {
        let (parts, bytes) = self.ask(url, None).await?;
        let standing = match parts.status {
            StatusCode::OK => match key_of(&bytes) {
                Some(key) if key == *asked => Standing::There,
                Some(key) => Standing::Transferred(key),
                None => {
                    return Err(GitHubError::Passing {
                        url: url.to_owned(),
                        reason: "the answer is no issue".to_owned(),
                    });
                }
            },
            StatusCode::NOT_FOUND | StatusCode::GONE => Standing::Gone,
            status if status.is_redirection() => {
                return Ok(Answer::Moved(self.target(url, &parts)?));
            }
            status => return Err(fault(url, status, &parts.headers, &bytes)),
        };
        Ok(Answer::Found(standing))
    }

    async fn ask(&self, url: &str, etag: Option<&str>) -> Result<(Parts, Vec<u8>), GitHubError> {
        self.check_host(url)?;
        let mut headers = HeaderMap::new();
        headers.insert(
            "accept",
            HeaderValue::from_static("application/vnd.github+json"),
        );
        headers.insert(
            "x-github-api-version",
            HeaderValue::from_static("2022-11-28"),
        );
        if let Some(etag) = etag.and_then(|etag| HeaderValue::from_str(etag).ok()) {
            headers.insert("if-none-match", etag);
        }
        let passing = |reason: String| GitHubError::Passing {
            url: url.to_owned(),
            reason,
        };
        let response = self
            .octocrab
            ._get_with_headers(url, Some(headers))
            .await
            .map_err(|error| passing(innermost(&error)))?;
        let (parts, body) = response.into_parts();
        let bytes = body
            .collect()
            .await
            .map_err(|error| passing(format!("the answer breaks off: {}", innermost(&error))))?
            .to_bytes();
        Ok((parts, bytes.to_vec()))
    }

    /// Where a redirect leads, on the same host.
    fn target(&self, url: &str, parts: &Parts) -> Result<String, GitHubError> {
        let to = header(&parts.headers, "location").unwrap_or_default();
        let target = Url::parse(url)
            .and_then(|base| base.join(&to))
            .map_err(|_| GitHubError::Passing {
                url: url.to_owned(),
                reason: format!("moved to {to:?}"),
            })?;
        self.check_host(target.as_str())?;
        Ok(target.into())
    }

    fn read(&self, url: &str, headers: &HeaderMap, bytes: Vec<u8>) -> Result<Page, GitHubError> {
        let rows = serde_json::from_slice(&bytes).map_err(|error| GitHubError::Passing {
            url: url.to_owned(),
            reason: format!("the answer is no list of issues: {error}"),
        })?;
        let next = header(headers, "link").and_then(|link| next_link(&link));
        if let Some(next) = &next {
            self.check_host(next)?;
        }
        let repository_id = repository_id(url).or_else(|| repository_id(next.as_deref()?));
        Ok(Page {
            rows,
            next,
            repository_id,
            etag: header(headers, "etag"),
            date: header(headers, "date")
                .and_then(|date| DateTime::parse_from_rfc2822(&date).ok())
                .map(|date| date.to_utc().to_rfc3339_opts(SecondsFormat::Secs, true)),
            bytes,
        })
    }

    fn check_host(&self, url: &str) -> Result<(), GitHubError> {
        let same = Url::parse(url).is_ok_and(|url| url.origin() == self.api.origin());
        if same {
            Ok(())
        } else {
            Err(GitHubError::Foreign {
                url: url.to_owned(),
                api: self.api.to_string(),
            })
        }
    }
}

fn fault(url: &str, status: StatusCode, headers: &HeaderMap, bytes: &[u8]) -> GitHubError {
    let message = serde_json::from_slice::<Value>(bytes)
        .ok()
        .and_then(|body| Some(body.get("message")?.as_str()?.to_owned()))
        .unwrap_or_else(|| status.canonical_reason().unwrap_or("unknown").to_owned());
    // It is shown on a terminal.
    let message = visible_line(&message).into_owned();
    let spent = header(headers, "x-ratelimit-remaining").as_deref() == Some("0");
    let limited = spent
        || header(headers, "retry-after").is_some()
        || message.to_lowercase().contains("rate limit");
    let url = url.to_owned();
    match status.as_u16() {
        429 => rate_limit(headers, message),
        // An exhausted quota was seen as 422 too: the message decides.
        403 | 422 if limited => rate_limit(headers, message),
        422 if message.to_lowercase().contains("cursor") => GitHubError::NeedsCursor { url },
        401 => GitHubError::Unauthorized,
        404 => GitHubError::NotFound { url },
        410 => GitHubError::Deleted { url },
        status @ 500.. => GitHubError::Passing {
            url,
            reason: format!("status {status}: {message}"),
        },
        status => GitHubError::Refused {
            url,
            status,
            message,
        },
    }
}

fn rate_limit(headers: &HeaderMap, message: String) -> GitHubError {
    let number = |name: &str| header(headers, name)?.trim().parse::<i64>().ok();
    let until_reset = || {
        let reset = number("x-ratelimit-reset")?;
        // By GitHub's own clock when it says, so that ours may be off.
        let now = header(headers, "date")
            .and_then(|date| DateTime::parse_from_rfc2822(&date).ok())
            .map_or_else(Utc::now, |date| date.to_utc());
        Some((reset - now.timestamp()).max(0) + 1)
    };
    let spent = header(headers, "x-ratelimit-remaining").as_deref() == Some("0");
    let wait_s = number("retry-after").or_else(|| spent.then(until_reset).flatten());
    GitHubError::RateLimited {
        wait_s: wait_s.map(|wait| wait.max(0) as u64),
        message,
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

/// The address with `rel="next"` of a Link header.
fn next_link(link: &str) -> Option<String> {
    link.split('<').skip(1).find_map(|part| {
        let (url, parameters) = part.split_once('>')?;
        let is_next = parameters
            .split(';')
            .any(|parameter| parameter.trim().trim_end_matches(',').trim() == "rel=\"next\"");
        is_next.then(|| url.to_owned())
    })
}

/// The number in `/repositories/NUMBER/…`.
fn repository_id(url: &str) -> Option<u64> {
    let rest = url.split_once("/repositories/")?.1;
    rest.split('/').next()?.parse().ok()
}

/// Repository and number of an issue as GitHub sends it.
fn key_of(bytes: &[u8]) -> Option<IssueKey> {
    let issue: Value = serde_json::from_slice(bytes).ok()?;
    let repository = issue.get("repository_url")?.as_str()?;
    Some(IssueKey {
        repository: repository.split_once("/repos/")?.1.to_owned(),
        number: issue.get("number")?.as_u64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_link_is_taken_as_given() {
        let check = |link: &str, expected: Option<&str>| {
            assert_eq!(next_link(link).as_deref(), expected, "{link}");
        };
        check(
            "<https://h/repositories/1/issues?after=Y3Vy%3D&per_page=100>; rel=\"next\", <https://h/x?page=1>; rel=\"first\"",
            Some("https://h/repositories/1/issues?after=Y3Vy%3D&per_page=100"),
        );
        check(
            "<https://h/a?b=1,2>; rel=\"prev\", <https://h/c?d=3,4>; rel=\"next\"",
            Some("https://h/c?d=3,4"),
        );
        check("<https://h/a>; rel=\"prev\"", None);
        check("", None);
    }

    #[test]
    fn a_refusal_is_told_by_status_and_message() {
        let check = |status: u16, headers: &[(&'static str, &str)], body: &str, expected: &str| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(*name, HeaderValue::from_str(value).expect("a value"));
            }
            let status = StatusCode::from_u16(status).expect("a status");
            let found = format!("{:?}", fault("u", status, &map, body.as_bytes()));
            assert!(found.starts_with(expected), "{found}");
        };
        let body = r#"{"message": "You have exceeded a secondary rate limit"}"#;
        check(
            403,
            &[("retry-after", "7")],
            body,
            "RateLimited { wait_s: Some(7)",
        );
        check(403, &[], body, "RateLimited { wait_s: None");
        check(403, &[], r#"{"message": "Forbidden"}"#, "Refused");
        let spent = [
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1000"),
            ("date", "Thu, 01 Jan 1970 00:16:00 GMT"),
        ];
        check(429, &spent, "{}", "RateLimited { wait_s: Some(41)");
        check(422, &[], body, "RateLimited");
        check(
            422,
            &[],
            r#"{"message": "please use cursor based pagination (after/before)"}"#,
            "NeedsCursor",
        );
        check(422, &[], "{}", "Refused");
        check(401, &[], "{}", "Unauthorized");
        check(404, &[], "{}", "NotFound");
        check(502, &[], "<html>", "Passing");
    }

    #[test]
    fn addresses_give_the_number_of_the_repository() {
        let check = |url: &str, expected: Option<u64>| assert_eq!(repository_id(url), expected);
        check("https://h/repositories/17/issues?after=x", Some(17));
        check("https://h/repos/o/n/issues", None);
        check("https://h/repositories/x/issues", None);
    }
}
