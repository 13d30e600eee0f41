//! What is kept: every request in the order in which it took its reply, and what became of the reply.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;
use tokio::sync::watch;

use super::launches::{Asked, Launches};
use crate::domain::case::Reply;
use crate::domain::evidence::{Exchange, ReplyKind, Sent, SentEnd};

/// Requests kept of a launch, and what their bodies may weigh ([`weight`]); more are answered and counted.
const KEPT_REQUESTS: usize = 2_000;
const KEPT_WEIGHT: usize = 128 << 20;
/// What a JSON value needs in memory beyond its text, at most.
const VALUE_BYTES: usize = 64;

/// Bytes that a body needs in memory once it is parsed, at most.
pub fn weight(body: &[u8]) -> usize {
    let opens_value = |byte: &&u8| matches!(byte, b',' | b'[' | b'{' | b':');
    body.len() + VALUE_BYTES * body.iter().filter(opens_value).count()
}

/// The launches that run and what they asked, shared by all connections.
#[derive(Debug, Clone)]
pub struct Record(Arc<State>);

#[derive(Debug)]
struct State {
    launches: Mutex<Launches>,
    /// Counts what happened: a request came, a held one was released.
    news: watch::Sender<u64>,
}

/// A request that is there in full.
#[derive(Debug)]
pub struct Arrived {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
    pub chat: Option<Value>,
    pub weight: usize,
    pub want: Want,
}

/// What a request takes from the script.
#[derive(Debug)]
pub enum Want {
    Step,
    /// A call without tools: a step for such calls, or else this text.
    Side(String),
    Nothing(ReplyKind),
}

/// What a request got.
#[derive(Debug)]
pub struct Taken {
    /// Its number in the launch, from 1.
    pub n: usize,
    pub reply: Option<Reply>,
    pub entry: Entry,
    /// Its number among those with tools.
    main: Option<usize>,
}

impl Record {
    pub fn new() -> Self {
        Self(Arc::new(State {
            launches: Mutex::new(Launches::default()),
            news: watch::Sender::new(0),
        }))
    }

    pub fn begin(&self, base_path: &str, replies: Vec<Reply>, held: BTreeSet<usize>) {
        self.lock().begin(base_path, replies, held);
    }

    pub fn end(&self, base_path: &str) -> Asked {
        let asked = self.lock().end(base_path);
        self.tell();
        asked
    }

    pub fn n_main(&self, base_path: &str) -> usize {
        self.lock().n_main(base_path)
    }

    pub fn release(&self, base_path: &str, request: usize) {
        self.lock().release(base_path, request);
        self.tell();
    }

    pub fn news(&self) -> watch::Receiver<u64> {
        self.0.news.subscribe()
    }

    /// The launch that a path belongs to, and the path below its folder.
    pub fn launch_of<'a>(&self, path: &'a str) -> Option<(usize, &'a str)> {
        self.lock().of(path)
    }

    /// Keeps a request and takes its reply. Of a launch that is over nothing is kept, and there is no reply.
    pub fn take(&self, launch: usize, arrived: Arrived) -> Option<Taken> {
        let mut launches = self.lock();
        let served = launches.get_mut(launch)?;
        served.n_requests += 1;
        let n = served.n_requests;
        let main = matches!(arrived.want, Want::Step).then(|| {
            served.n_main += 1;
            served.n_main
        });
        let (kind, reply) = match arrived.want {
            Want::Step => served.script.step(),
            Want::Side(text) => served.script.side(text),
            Want::Nothing(kind) => (kind, None),
        };
        let idx = served.asked.exchanges.len();
        let kept = idx < KEPT_REQUESTS && served.weight + arrived.weight <= KEPT_WEIGHT;
        if kept {
            served.weight += arrived.weight;
            let at_ms = served.now_ms();
            served.asked.exchanges.push(Exchange {
                at_ms,
                method: arrived.method,
                path: arrived.path,
                headers: arrived.headers,
                body: arrived.body,
                chat: arrived.chat,
                side: main.is_none(),
                reply: kind,
                sent: Some(Sent::default()),
            });
        } else {
            served.asked.n_unkept += 1;
        }
        drop(launches);
        self.tell();
        let entry = Entry {
            record: self.clone(),
            launch,
            idx: kept.then_some(idx),
            n_bytes: 0,
            ended: false,
        };
        Some(Taken {
            n,
            reply,
            entry,
            main,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Launches> {
        let launches = self.0.launches.lock();
        launches.expect("no holder of this lock panics")
    }

    fn tell(&self) {
        self.0.news.send_modify(|n| *n += 1);
    }
}

impl Taken {
    /// Comes back when the reply may go.
    pub async fn released(&self) {
        let Some(request) = self.main else { return };
        let Entry { record, launch, .. } = &self.entry;
        if record.lock().is_held(*launch, request) {
            let released = |_: &u64| !record.lock().is_held(*launch, request);
            // The sender lives as long as we do.
            let _ = record.news().wait_for(released).await;
        }
    }
}

/// A kept request while it is answered. Dropped before the end of the answer, it says that the candidate left.
#[derive(Debug)]
pub struct Entry {
    record: Record,
    launch: usize,
    idx: Option<usize>,
    n_bytes: usize,
    ended: bool,
}

impl Entry {
    /// The head goes out.
    pub fn began(&self, status: u16) {
        self.update(|sent, now| {
            sent.status = Some(status);
            sent.began_ms = Some(now);
        });
    }

    /// So many more bytes go out.
    pub fn add(&mut self, n_bytes: usize) {
        self.n_bytes += n_bytes;
    }

    /// Nothing more goes out, and the connection stays open.
    pub fn stalled(&self) {
        self.update(|sent, _| sent.n_bytes = self.n_bytes);
    }

    pub fn ended(&mut self, end: SentEnd) {
        self.ended = true;
        self.update(|sent, now| {
            sent.n_bytes = self.n_bytes;
            sent.ended_ms = Some(now);
            sent.end = end;
        });
    }

    /// Replies of an earlier launch may end later than it.
    fn update(&self, change: impl FnOnce(&mut Sent, u64)) {
        let Some(idx) = self.idx else { return };
        if let Some(served) = self.record.lock().get_mut(self.launch) {
            let now = served.now_ms();
            let sent = &mut served.asked.exchanges[idx].sent;
            change(sent.get_or_insert_default(), now);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.ended {
            self.ended(SentEnd::Left);
        }
    }
}
