//! The launches that are served at the moment, told apart by the path below which each of them asks: the script of
//! each, what it asked so far, and which of its requests are held.

use std::collections::BTreeSet;
use std::time::Instant;

use super::script::Script;
use crate::domain::case::Reply;
use crate::domain::evidence::Exchange;

/// In the order in which they began.
#[derive(Debug, Default)]
pub struct Launches(Vec<Served>);

/// One launch.
#[derive(Debug)]
pub struct Served {
    pub base_path: String,
    pub script: Script,
    pub since: Instant,
    pub exchanges: Vec<Exchange>,
    pub n_requests: usize,
    pub n_bytes: usize,
    /// Requests that offer tools; scripts and holds count these.
    pub n_main: usize,
    held: BTreeSet<usize>,
}

impl Launches {
    pub fn begin(&mut self, base_path: &str, replies: Vec<Reply>, held: BTreeSet<usize>) {
        self.0.push(Served {
            base_path: base_path.to_owned(),
            script: Script::new(replies),
            since: Instant::now(),
            exchanges: Vec::new(),
            n_requests: 0,
            n_bytes: 0,
            n_main: 0,
            held,
        });
    }

    /// What the launch asked, in the order of arrival; from now on it is unknown here.
    pub fn end(&mut self, base_path: &str) -> Vec<Exchange> {
        let idx = self.0.iter().position(|one| one.base_path == base_path);
        idx.map(|idx| self.0.remove(idx).exchanges)
            .unwrap_or_default()
    }

    /// The launch that a path belongs to. One that lies below no base path is held against the first.
    pub fn of(&mut self, path: &str) -> Option<&mut Served> {
        let below = |base: &str| {
            path.strip_prefix(base)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        let idx = self.0.iter().position(|one| below(&one.base_path));
        self.0.get_mut(idx.unwrap_or(0))
    }

    fn get(&self, base_path: &str) -> Option<&Served> {
        self.0.iter().find(|one| one.base_path == base_path)
    }

    /// Requests with tools that the launch has made; none when it does not run.
    pub fn n_main(&self, base_path: &str) -> usize {
        self.get(base_path).map_or(0, |served| served.n_main)
    }

    /// Whether the reply to this request has to wait. Of a launch that is over nothing waits.
    pub fn is_held(&self, base_path: &str, request: usize) -> bool {
        self.get(base_path)
            .is_some_and(|served| served.held.contains(&request))
    }

    pub fn release(&mut self, base_path: &str, request: usize) {
        for served in &mut self.0 {
            if served.base_path == base_path {
                served.held.remove(&request);
            }
        }
    }
}
