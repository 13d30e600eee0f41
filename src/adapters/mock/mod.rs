//! The mock model: an HTTP server that answers a candidate's model calls from a case's script.
//! No randomness, no clock: the same requests get the same bytes.

mod launches;
mod script;
mod server;
mod wire;

pub use server::{BASE_PATH, Mock, MockError};
