//! Kubernetes, by the HTTP of its API server: the Jobs of one namespace and their Pods. `kubectl proxy` stands between
//! and knows who may do what; no key is seen here.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use k8s_openapi::{List, ListableResource};
use reqwest::header::RETRY_AFTER;
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use url::Url;

use super::http;
use crate::domain::visible::in_short;

#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// Nobody is there, or the connection was cut.
    #[error("{server} does not answer: {why}")]
    Silent { server: Url, why: String },
    /// It asks for patience.
    #[error("{server} is busy (status {status})")]
    Busy { server: Url, status: u16 },
    /// It will say the same again.
    #[error("{server} refused (status {status}): {said}")]
    Refused {
        server: Url,
        status: u16,
        said: String,
    },
    #[error("{server} answered something that is not understood: {why}")]
    Odd { server: Url, why: String },
}

/// The API server, and the namespace that is meant.
#[derive(Debug, Clone)]
pub struct Api {
    client: reqwest::Client,
    server: Url,
    namespace: String,
}

/// How long an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// How often a request is made when the server is busy or does not answer, and the pause after the first of them.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_secs(1);
/// Longer than that no server is waited for.
const MOST_PAUSE: Duration = Duration::from_secs(60);
/// Objects of a list that are asked for at a time.
const PAGE: &str = "500";
/// The end of a list may be gone before it is asked for; then it is read from its beginning, so many times.
const READINGS: u32 = 3;

/// An answer that is no list: what it says of itself, or the server's refusal.
struct Answer {
    status: StatusCode,
    body: Vec<u8>,
}

impl Api {
    pub fn new(server: Url, namespace: &str) -> Result<Self, ApiError> {
        let client = http::client(&server).timeout(ANSWER_LIMIT).build();
        let client = client.map_err(|error| ApiError::Silent {
            server: server.clone(),
            why: error.to_string(),
        })?;
        Ok(Self {
            client,
            server,
            namespace: namespace.to_owned(),
        })
    }

    /// The Jobs with a label: `name=value`.
    pub async fn jobs(&self, label: &str) -> Result<Vec<Job>, ApiError> {
        let url = self.url("apis/batch/v1", "jobs");
        self.list(url, label).await
    }

    /// The Pods with a label.
    pub async fn pods(&self, label: &str) -> Result<Vec<Pod>, ApiError> {
        let url = self.url("api/v1", "pods");
        self.list(url, label).await
    }

    /// Creates a Job; false when there is one of this name, which an earlier request may have made whose answer was lost.
    pub async fn create(&self, job: &Job) -> Result<bool, ApiError> {
        let body = serde_json::to_vec(job).expect("a Job is plain data with string keys");
        let url = self.url("apis/batch/v1", "jobs");
        let answer = self.patiently(Method::POST, &url, Some(&body)).await?;
        match answer.status {
            StatusCode::CONFLICT => Ok(false),
            status if status.is_success() => Ok(true),
            _ => Err(self.refused(&answer)),
        }
    }

    fn url(&self, group: &str, objects: &str) -> Url {
        let mut url = self.server.clone();
        url.path_segments_mut()
            .expect("HTTP has paths")
            .pop_if_empty()
            .extend(group.split('/'))
            .extend(["namespaces", &self.namespace, objects]);
        url
    }

    /// All pages of a list.
    async fn list<T: ListableResource + DeserializeOwned>(
        &self,
        url: Url,
        label: &str,
    ) -> Result<Vec<T>, ApiError> {
        'readings: for _ in 0..READINGS {
            let mut found = Vec::new();
            let mut rest: Option<String> = None;
            loop {
                let mut page = url.clone();
                page.query_pairs_mut()
                    .append_pair("labelSelector", label)
                    .append_pair("limit", PAGE)
                    .extend_pairs(rest.iter().map(|rest| ("continue", rest)));
                let answer = self.patiently(Method::GET, &page, None).await?;
                if answer.status == StatusCode::GONE {
                    continue 'readings;
                }
                if !answer.status.is_success() {
                    return Err(self.refused(&answer));
                }
                let list: List<T> =
                    serde_json::from_slice(&answer.body).map_err(|error| ApiError::Odd {
                        server: self.server.clone(),
                        why: in_short(&error.to_string()),
                    })?;
                found.extend(list.items);
                match list.metadata.continue_ {
                    Some(next) if !next.is_empty() => rest = Some(next),
                    _ => return Ok(found),
                }
            }
        }
        Err(ApiError::Busy {
            server: self.server.clone(),
            status: StatusCode::GONE.as_u16(),
        })
    }

    /// Asks again, after a pause, while the server is busy or does not answer.
    async fn patiently(
        &self,
        method: Method,
        url: &Url,
        body: Option<&[u8]>,
    ) -> Result<Answer, ApiError> {
        let mut n_tries = 0;
        loop {
            n_tries += 1;
            let (error, pause) = match self.asked(method.clone(), url, body).await {
                Ok((answer, pause)) if is_busy(answer.status) => {
                    let status = answer.status.as_u16();
                    let server = self.server.clone();
                    (ApiError::Busy { server, status }, pause)
                }
                Ok((answer, _)) => return Ok(answer),
                Err(error) => {
                    let server = self.server.clone();
                    let why = with_causes(&error);
                    (ApiError::Silent { server, why }, None)
                }
            };
            if n_tries == TRIES {
                return Err(error);
            }
            let pause = pause.unwrap_or(PAUSE * 2u32.pow(n_tries - 1));
            tokio::time::sleep(pause.min(MOST_PAUSE)).await;
        }
    }

    /// One request; the answer whole, and the pause that it asks for.
    async fn asked(
        &self,
        method: Method,
        url: &Url,
        body: Option<&[u8]>,
    ) -> reqwest::Result<(Answer, Option<Duration>)> {
        let mut request = self.client.request(method, url.clone());
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_vec());
        }
        let response = request.send().await?;
        let pause = response.headers().get(RETRY_AFTER).and_then(|value| {
            let seconds = value.to_str().ok()?.parse().ok()?;
            Some(Duration::from_secs(seconds))
        });
        let status = response.status();
        let body = response.bytes().await?.to_vec();
        Ok((Answer { status, body }, pause))
    }

    fn refused(&self, answer: &Answer) -> ApiError {
        let status = serde_json::from_slice::<Status>(&answer.body);
        let message = status.ok().and_then(|status| status.message);
        let said = message.unwrap_or_else(|| String::from_utf8_lossy(&answer.body).into_owned());
        ApiError::Refused {
            server: self.server.clone(),
            status: answer.status.as_u16(),
            said: in_short(&said),
        }
    }
}

fn is_busy(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

/// An error with what caused it, on one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
