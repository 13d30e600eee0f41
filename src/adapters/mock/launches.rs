//! The launches that are served at the moment, told apart by the path below which each of them asks: the script of
//! each, what it asked so far, and which of its requests are held.

use std::collections::BTreeSet;
use std::time::Instant;

use super::script::Script;
use super::wire::BASE_PATH;
use crate::domain::case::Reply;
use crate::domain::evidence::Exchange;

/// What a launch asked.
#[derive(Debug, Default)]
pub struct Asked {
    /// In the order in which they took their replies.
    pub exchanges: Vec<Exchange>,
    /// Requests that were answered and not kept.
    pub n_unkept: usize,
}

/// In the order in which they began.
#[derive(Debug, Default)]
pub struct Launches {
    served: Vec<Served>,
    n_begun: usize,
}

/// One launch.
#[derive(Debug)]
pub struct Served {
    /// Of no other launch of this mock, be it over or not.
    pub id: usize,
    pub base_path: String,
    pub script: Script,
    pub since: Instant,
    pub asked: Asked,
    pub n_requests: usize,
    /// Of what was kept.
    pub weight: usize,
    /// Requests that offer tools; scripts and holds count these.
    pub n_main: usize,
    held: BTreeSet<usize>,
}

impl Served {
    /// Where the paths of all protocols begin.
    fn folder(&self) -> &str {
        self.base_path
            .strip_suffix(BASE_PATH)
            .unwrap_or(&self.base_path)
    }

    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Launches {
    pub fn begin(&mut self, base_path: &str, replies: Vec<Reply>, held: BTreeSet<usize>) {
        self.n_begun += 1;
        self.served.push(Served {
            id: self.n_begun,
            base_path: base_path.to_owned(),
            script: Script::new(replies),
            since: Instant::now(),
            asked: Asked::default(),
            n_requests: 0,
            weight: 0,
            n_main: 0,
            held,
        });
    }

    /// What the launch asked; from now on it is unknown here.
    pub fn end(&mut self, base_path: &str) -> Asked {
        let idx = self
            .served
            .iter()
            .position(|one| one.base_path == base_path);
        idx.map(|idx| self.served.remove(idx).asked)
            .unwrap_or_default()
    }

    /// The launch that a path belongs to, and the path below its folder. What lies in no folder of its own is held
    /// against the launch that has none, or else the first.
    pub fn of<'a>(&self, path: &'a str) -> Option<(usize, &'a str)> {
        let below = |one: &Served| {
            let rest = path.strip_prefix(one.folder())?;
            rest.starts_with('/').then_some((one.id, rest))
        };
        self.served
            .iter()
            .filter(|one| !one.folder().is_empty())
            .find_map(below)
            .or_else(|| self.served.iter().find_map(below))
            .or_else(|| self.served.first().map(|one| (one.id, path)))
    }

    pub fn get_mut(&mut self, id: usize) -> Option<&mut Served> {
        self.served.iter_mut().find(|one| one.id == id)
    }

    /// Requests with tools that the launch has made; none when it does not run.
    pub fn n_main(&self, base_path: &str) -> usize {
        let found = self.served.iter().find(|one| one.base_path == base_path);
        found.map_or(0, |served| served.n_main)
    }

    /// Whether the reply to this request has to wait. Of a launch that is over nothing waits.
    pub fn is_held(&self, id: usize, request: usize) -> bool {
        self.served
            .iter()
            .any(|one| one.id == id && one.held.contains(&request))
    }

    pub fn release(&mut self, base_path: &str, request: usize) {
        for served in &mut self.served {
            if served.base_path == base_path {
                served.held.remove(&request);
            }
        }
    }
}
