//! What every stage is given: the project, and where to tell how far it is.

use chrono::{DateTime, SecondsFormat, Utc};

use crate::paths::Project;

/// Progress of long work; the surface draws a bar, prints plain lines, or keeps silent.
pub trait Progress: Send + Sync {
    /// A piece of work begins; `total` is its number of items when it is known.
    fn begin(&self, what: &str, total: Option<u64>);
    /// So many items more are done.
    fn advance(&self, n: u64);
    /// Something that a person wants to know at once.
    fn note(&self, text: &str);
    /// What the piece of work does just now, where something is drawn over and over; empty when there is nothing to say.
    fn detail(&self, _text: &str) {}
    /// The piece of work is over; the text says with what.
    fn end(&self, text: &str);
}

/// For tests and for `--quiet`.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
    fn note(&self, _: &str) {}
    fn end(&self, _: &str) {}
}

pub struct Context {
    pub project: Project,
    pub progress: Box<dyn Progress>,
    /// The clock, fixed in tests by `PIPELINE_NOW`.
    pub now: DateTime<Utc>,
}

impl Context {
    /// RFC 3339 in UTC, to the second.
    pub fn timestamp(&self) -> String {
        self.now.to_rfc3339_opts(SecondsFormat::Secs, true)
    }
}
