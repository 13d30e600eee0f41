//! The reviewer's page: a local server beside the command line. It renders what stages give and hands what a reviewer
//! says to the stages that the command line uses; it stores nothing itself. [`guard`] says who is let in, [`frame`] is
//! around every page, the rest is one file a view.

mod agreement;
mod cases;
mod clusters;
mod frame;
mod guard;
mod lists;
mod progress;
mod reading;
mod refusal;
mod text;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::paths::Project;
use crate::stages::context::Silent;
use crate::stages::interrupt::told_to_stop;
use crate::stages::review::{Desk, Reader};
use crate::stages::{Context, Failure, Result};
use guard::Seat;
use refusal::Refusal;

pub struct Config {
    /// An address is made for each.
    pub readers: Vec<String>,
    /// Nobody sees what others decided before they have decided themselves.
    pub blind: bool,
    /// 0 for any that is free.
    pub port: u16,
    /// The clock.
    pub now: fn() -> Result<DateTime<Utc>>,
}

/// Where a reader finds the page. The address lets in whoever has it.
#[derive(Debug, Clone, Serialize)]
pub struct Address {
    pub reader: String,
    pub url: String,
}

/// What all pages need.
struct Site {
    project: Project,
    desk: Arc<Desk>,
    seats: Vec<Arc<Seat>>,
    port: u16,
    now: fn() -> Result<DateTime<Utc>>,
}

impl Site {
    fn context(&self) -> Result<Context> {
        Ok(Context {
            project: self.project.clone(),
            progress: Box::new(Silent),
            now: (self.now)()?,
        })
    }
}

/// Serves until it is told to stop; `ready` is told the addresses once they answer.
pub fn serve(
    project: Project,
    config: Config,
    ready: impl FnOnce(&[Address]) -> Result<()>,
) -> Result<()> {
    let readers: Vec<Reader> = config
        .readers
        .iter()
        .map(|name| Reader {
            name: name.clone(),
            blind: config.blind,
        })
        .collect();
    let desk = Desk::open(&project, readers.clone())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let result = runtime.block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, config.port));
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .map_err(|error| {
                Failure::environment(format!("cannot listen on {address}: {error}"))
                    .hint("pipeline review serve --port 0 takes any that is free")
            })?;
        let port = listener.local_addr()?.port();
        let seats = readers
            .into_iter()
            .map(|reader| Ok(Arc::new(Seat::new(reader)?)))
            .collect::<Result<Vec<_>>>()?;
        let addresses: Vec<Address> = seats
            .iter()
            .map(|seat| Address {
                reader: seat.reader.name.clone(),
                url: seat.address(port),
            })
            .collect();
        let site = Arc::new(Site {
            project,
            desk,
            seats,
            port,
            now: config.now,
        });
        ready(&addresses)?;
        // An answer that somebody still waits for does not hold us: decisions are on the disk before they are answered.
        tokio::select! {
            served = axum::serve(listener, router(site)) => served?,
            told = told_to_stop() => told?,
        }
        Ok(())
    });
    runtime.shutdown_background();
    result
}

fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/read", get(reading::page))
        .route("/read/decide", post(reading::decide))
        .route("/read/undo", post(reading::undo))
        .route("/read/redo", post(reading::redo))
        .route("/issues", get(lists::issues))
        .route("/progress", get(progress::page))
        .route("/sample", post(progress::sample))
        .route("/cases", get(cases::list))
        .route("/case", get(cases::page))
        .route("/case/decide", post(cases::decide))
        .route("/case/undo", post(cases::undo))
        .route("/case/redo", post(cases::redo))
        .route("/case/run", post(cases::run))
        .route("/clusters", get(clusters::list))
        .route("/cluster", get(clusters::page))
        .route("/cluster/mend", post(clusters::mend))
        .route("/cluster/undo", post(clusters::undo))
        .route("/cluster/redo", post(clusters::redo))
        .route("/agreement", get(agreement::page))
        .route("/style.css", get(style))
        .route("/keys.js", get(keys))
        .fallback(async || Refusal::missing("there is no such page"))
        .layer(axum::middleware::from_fn_with_state(
            site.clone(),
            guard::guard,
        ))
        .with_state(site)
}

async fn style() -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, "text/css; charset=utf-8")];
    (kind, include_str!("style.css"))
}

async fn keys() -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, "text/javascript; charset=utf-8")];
    (kind, include_str!("keys.js"))
}

/// Stages read files and wait for disks: not on the threads that serve.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::result::Result<T, Refusal> + Send + 'static,
) -> std::result::Result<T, Refusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Refusal::from(Failure::from(error))),
    }
}
