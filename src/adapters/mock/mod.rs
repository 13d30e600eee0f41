//! The mock model: an HTTP server that answers a candidate's model calls from a case's script, in the protocol in which
//! it is asked. No randomness, and no clock but for the times that are kept: the same requests get the same bytes.

mod answer;
mod connections;
mod launches;
mod record;
mod sample;
mod script;
mod sending;
mod server;
mod wire;

pub use launches::Asked;
pub use server::{Mock, MockError};
pub use wire::BASE_PATH;
