//! Who is let in: only this machine, only under the server's own name, only with the token of an address, and what
//! changes something only from a form that the server made. Every answer says that nothing of elsewhere may be loaded.

use std::io::Read;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use super::Site;
use super::refusal::Refusal;
use crate::domain::digest;
use crate::stages::Result;
use crate::stages::review::Reader;

/// A reader, and what shows that a request comes from them.
#[derive(Debug)]
pub struct Seat {
    pub reader: Reader,
    token: String,
    /// Stands in every form; it cannot be guessed from elsewhere, nor taken from a page of elsewhere.
    pub form: String,
}

/// No script, style, frame or answer but our own; the only picture is the empty icon of a page.
const POLICY: &str = "default-src 'none'; img-src data:; script-src 'self'; style-src 'self'; connect-src 'self'; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

impl Seat {
    pub fn new(reader: Reader) -> Result<Self> {
        let token = drawn()?;
        Ok(Self {
            reader,
            form: digest::of(["form", &token]),
            token,
        })
    }

    pub fn address(&self, port: u16) -> String {
        format!("http://127.0.0.1:{port}/?token={}", self.token)
    }

    /// Refuses a form that this server did not make for this reader.
    pub fn check(&self, form: &str) -> std::result::Result<(), Refusal> {
        match is_same(form, &self.form) {
            true => Ok(()),
            false => Err(Refusal::forbidden(
                "this form is not from this page; load the page again",
            )),
        }
    }
}

/// 128 bits in hex.
fn drawn() -> Result<String> {
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares digests, so that the time tells nothing of where two texts differ.
fn is_same(given: &str, wanted: &str) -> bool {
    digest::of([given]) == digest::of([wanted])
}

pub async fn guard(State(site): State<Arc<Site>>, mut request: Request, next: Next) -> Response {
    let mut answer = match seat(&site, &request) {
        Ok(Entry::Seated(seat)) => {
            request.extensions_mut().insert(seat);
            next.run(request).await
        }
        Ok(Entry::Arrived(seat)) => arrive(&site, &seat),
        Err(refusal) => refusal.into_response(),
    };
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Not `no-referrer`: with it a browser names no origin with a form.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(name, HeaderValue::from_static("same-origin"));
    }
    answer
}

enum Entry {
    Seated(Arc<Seat>),
    /// With the token in the address.
    Arrived(Arc<Seat>),
}

fn seat(site: &Site, request: &Request) -> std::result::Result<Entry, Refusal> {
    let headers = request.headers();
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    // A name of elsewhere that was made to point here is not ours.
    let host = text(header::HOST)
        .filter(|host| is_ours(host, site.port))
        .ok_or_else(|| Refusal::forbidden("this server answers to 127.0.0.1 only"))?;
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    if !reads && text(header::ORIGIN) != Some(&format!("http://{host}")) {
        return Err(Refusal::forbidden("this was not sent from this page"));
    }
    if request.uri().path() == "/" {
        let query = request.uri().query().unwrap_or_default();
        let given = query.strip_prefix("token=").unwrap_or_default();
        if let Some(seat) = holder(site, given) {
            return Ok(Entry::Arrived(seat));
        }
        if let Some(seat) = seated(site, headers) {
            return Ok(Entry::Arrived(seat));
        }
    }
    seated(site, headers).map(Entry::Seated).ok_or_else(|| {
        Refusal::forbidden("open the whole address that pipeline review serve printed")
    })
}

fn is_ours(host: &str, port: u16) -> bool {
    [format!("127.0.0.1:{port}"), format!("localhost:{port}")]
        .iter()
        .any(|ours| ours == host)
}

fn holder(site: &Site, token: &str) -> Option<Arc<Seat>> {
    site.seats
        .iter()
        .find(|seat| is_same(token, &seat.token))
        .cloned()
}

fn seated(site: &Site, headers: &HeaderMap) -> Option<Arc<Seat>> {
    let name = format!("{}=", cookie_name(site.port));
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|cookies| cookies.split("; "))
        .filter_map(|cookie| cookie.strip_prefix(&name))
        .find_map(|token| holder(site, token))
}

/// Cookies are shared by all ports of a machine.
fn cookie_name(port: u16) -> String {
    format!("review-{port}")
}

/// The token leaves the address at once, so that it is not passed on with it.
fn arrive(site: &Site, seat: &Seat) -> Response {
    let cookie = format!(
        "{}={}; HttpOnly; SameSite=Strict; Path=/",
        cookie_name(site.port),
        seat.token
    );
    ([(header::SET_COOKIE, cookie)], Redirect::to("/read")).into_response()
}
