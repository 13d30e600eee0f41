//! What a page says when it cannot do what was asked: always in words, with what to do.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};

use super::frame;
use crate::domain::visible::visible;
use crate::stages::{Failure, Kind};

#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    message: String,
    hints: Vec<String>,
    /// What the reader had written, so that it is not lost.
    kept: Option<String>,
}

impl Refusal {
    fn new(status: StatusCode, message: &str) -> Self {
        Self {
            status,
            message: message.to_owned(),
            hints: Vec::new(),
            kept: None,
        }
    }

    pub fn forbidden(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    pub fn missing(message: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// Something was decided since the page was made.
    pub fn meanwhile(on: &str, kept: &str) -> Self {
        let message = format!(
            "something was decided on {on} since this page was made; look at it again, nothing was changed"
        );
        Self {
            kept: Some(kept.to_owned()).filter(|text| !text.trim().is_empty()),
            ..Self::new(StatusCode::CONFLICT, &message)
        }
    }

    fn words(&self) -> Markup {
        html! {
            h1 { "Not done" }
            p.notice.bad role="alert" { (visible(&self.message)) }
            @if !self.hints.is_empty() {
                p { "Try:" }
                ul { @for hint in &self.hints { li { code { (visible(hint)) } } } }
            }
            @if let Some(kept) = &self.kept {
                p { "What you had written:" }
                pre { (visible(kept)) }
            }
            p { a href="/read" { "Back to reading" } }
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let status = match failure.kind {
            Kind::User => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self {
            hints: failure.hints.clone(),
            ..Self::new(status, &failure.to_string())
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let page = frame::bare("Not done", &self.words());
        (self.status, Html(page)).into_response()
    }
}
