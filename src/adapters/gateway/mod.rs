//! The gateway of a build: an HTTP server on the one port that the builder's cell has. It passes calls of one model on
//! to one endpoint, with a key that the cell never sees, and takes submissions; it refuses all else. What a submission
//! is worth is decided by whoever reads [`Event`]s.

mod meter;
mod owed;
mod relay;
mod server;
mod upstream;

pub use server::{Event, Gateway, Reply, Submission};
pub use upstream::{GatewayError, Protocol, Upstream};

/// Where the model is found on the cell's port: put behind `http://127.0.0.1:PORT`.
pub const BASE_PATH: &str = "/v1";
/// Where a tree is submitted, as a tar archive.
pub const SUBMIT_PATH: &str = "/submit";
