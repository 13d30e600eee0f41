//! How many units are under way: so many that the cores have work, and no more. So many cells start at a time as the
//! engine can take; a cell in which nothing happens is known to wait, so that another unit may have its core; and a core
//! that is seen idle, because units wait for the kernel or the disk for a moment, is given one more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::adapters::processes;
use crate::adapters::sandbox::{Cell, CellSpec, Sandbox, SandboxError, Swept};
use crate::methods::schedule::Starts;

/// How often it is looked whether one more unit may begin. On a busy machine a run takes long, so that looks every 3 ms
/// cost more than they gave.
pub(super) const LOOK: Duration = Duration::from_millis(10);
/// A cell that has used no processor time for so long waits for something: a timer, a reply that never comes.
const STILL: Duration = Duration::from_millis(50);
/// A core counts as idle when so many looks in a row found it so.
const IDLE_LOOKS: usize = 2;

pub(super) struct Paced {
    sandbox: Arc<dyn Sandbox>,
    starts: Mutex<Starts>,
    start_over: Notify,
    cells: Mutex<Cells>,
}

/// Open cells, and when they were last looked at.
struct Cells {
    by_process: BTreeMap<u32, Watched>,
    looked: Instant,
    n_still: usize,
}

/// How many units may be under way.
pub(super) struct Slots {
    /// Units that want a core at the same time.
    pub(super) jobs: usize,
    /// Those that wait included.
    pub(super) most: usize,
    pub(super) paced: Arc<Paced>,
    idle: Idle,
}

impl Slots {
    pub(super) fn new(jobs: usize, most: usize, paced: Arc<Paced>) -> Self {
        Self {
            jobs,
            most,
            paced,
            idle: Idle::default(),
        }
    }

    /// Whether one more may begin beside `n` that are under way. A unit whose cell waits holds no core. One more than
    /// asked for takes the core that another leaves for a moment, and where a core is idle all the same there may be twice
    /// as many; but never two where one was asked for.
    pub(super) fn is_free(&mut self, n: usize) -> bool {
        if n < self.jobs {
            return true;
        }
        if n >= self.most {
            return false;
        }
        let n_busy = n.saturating_sub(self.paced.n_still());
        if self.jobs == 1 {
            return n_busy == 0;
        }
        n_busy <= self.jobs || (n_busy < 2 * self.jobs && self.idle.is_seen(self.jobs))
    }
}

/// Whether a core has nothing to do.
#[derive(Default)]
struct Idle {
    looked: Option<Instant>,
    n_looks: usize,
}

impl Idle {
    /// Whether fewer threads than `cores` want to run, now and at the look before.
    fn is_seen(&mut self, cores: usize) -> bool {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return false;
        }
        self.looked = Some(Instant::now());
        match processes::n_runnable() {
            Some(n) if n < cores => self.n_looks += 1,
            _ => self.n_looks = 0,
        }
        let is_seen = self.n_looks >= IDLE_LOOKS;
        if is_seen {
            // The unit that begins now has to show first.
            self.n_looks = 0;
        }
        is_seen
    }
}

struct Watched {
    cpu: Duration,
    is_still: bool,
}

impl Paced {
    /// At least `least` and at most `most` cells may start at a time.
    pub(super) fn new(sandbox: Arc<dyn Sandbox>, least: usize, most: usize) -> Self {
        Self {
            sandbox,
            starts: Mutex::new(Starts::new(least, most)),
            start_over: Notify::new(),
            cells: Mutex::new(Cells {
                by_process: BTreeMap::new(),
                looked: Instant::now(),
                n_still: 0,
            }),
        }
    }

    /// How many cells wait for something that is no core, as seen every [`STILL`].
    fn n_still(&self) -> usize {
        let mut cells = lock(&self.cells);
        if cells.looked.elapsed() >= STILL {
            cells.by_process.retain(|pid, cell| {
                let Some(usage) = processes::usage(*pid) else {
                    return false;
                };
                cell.is_still = !usage.is_busy && cell.cpu == usage.cpu;
                cell.cpu = usage.cpu;
                true
            });
            cells.n_still = cells
                .by_process
                .values()
                .filter(|cell| cell.is_still)
                .count();
            cells.looked = Instant::now();
        }
        cells.n_still
    }

    async fn paced(&self, spec: CellSpec) -> Result<Cell, SandboxError> {
        let start = self.turn().await;
        let began = Instant::now();
        let cell = self.sandbox.open(spec).await?;
        start.over(began.elapsed());
        if let Some(pid) = cell.process() {
            let watched = Watched {
                // More than it can have used, so that its first look never finds it still.
                cpu: Duration::MAX,
                is_still: false,
            };
            lock(&self.cells).by_process.insert(pid, watched);
        }
        Ok(cell)
    }

    async fn turn(&self) -> Start<'_> {
        loop {
            let start_over = self.start_over.notified();
            if lock(&self.starts).begin() {
                return Start {
                    paced: self,
                    took: None,
                };
            }
            start_over.await;
        }
    }
}

impl Sandbox for Paced {
    fn name(&self) -> &'static str {
        self.sandbox.name()
    }

    fn owner(&self) -> (u32, u32) {
        self.sandbox.owner()
    }

    fn open(&self, spec: CellSpec) -> BoxFuture<'_, Result<Cell, SandboxError>> {
        self.paced(spec).boxed()
    }

    fn sweep(&self) -> BoxFuture<'_, Result<Swept, SandboxError>> {
        self.sandbox.sweep()
    }
}

/// A start under way. Dropped, also by who gave up waiting for it, it makes room for the next.
struct Start<'a> {
    paced: &'a Paced,
    took: Option<Duration>,
}

impl Start<'_> {
    fn over(mut self, took: Duration) {
        self.took = Some(took);
    }
}

impl Drop for Start<'_> {
    fn drop(&mut self) {
        let mut starts = lock(&self.paced.starts);
        match self.took {
            Some(took) => starts.end(took.as_secs_f64() * 1e3),
            None => starts.give_up(),
        }
        drop(starts);
        self.paced.start_over.notify_waiters();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of this lock panics")
}
