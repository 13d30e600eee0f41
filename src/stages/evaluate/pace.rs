//! A sandbox whose starts are paced and whose cells are watched: so many cells start at a time as the engine can take,
//! and a cell in which nothing happens is known to wait, so that another unit may have its core.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::adapters::processes;
use crate::adapters::sandbox::{Cell, CellSpec, Sandbox, SandboxError, Swept};
use crate::methods::schedule::Starts;

/// A cell that has used no processor time for so long waits for something: a timer, a reply that never comes.
pub(super) const STILL: Duration = Duration::from_millis(50);

pub(super) struct Paced {
    sandbox: Arc<dyn Sandbox>,
    starts: Mutex<Starts>,
    start_over: Notify,
    /// Open cells by their outermost process.
    cells: Mutex<BTreeMap<u32, Watched>>,
}

/// How many units may be under way.
pub(super) struct Slots {
    /// Units that want a core at the same time.
    pub(super) jobs: usize,
    /// Those that wait included.
    pub(super) most: usize,
    pub(super) paced: Arc<Paced>,
}

impl Slots {
    /// Whether one more may begin beside `n` that are under way. A unit whose cell waits holds no core.
    pub(super) fn is_free(&self, n: usize) -> bool {
        n < self.jobs || (n < self.most && n < self.jobs + self.paced.n_still())
    }
}

struct Watched {
    since: Instant,
    cpu: Duration,
    is_still: bool,
}

impl Paced {
    /// At most `most` cells start at a time, `first` of them before anything is known.
    pub(super) fn new(sandbox: Arc<dyn Sandbox>, first: usize, most: usize) -> Self {
        Self {
            sandbox,
            starts: Mutex::new(Starts::new(first, most)),
            start_over: Notify::new(),
            cells: Mutex::default(),
        }
    }

    /// How many cells wait for something that is no core. To be asked every [`STILL`] or less often.
    fn n_still(&self) -> usize {
        let mut cells = lock(&self.cells);
        cells.retain(|pid, cell| match processes::usage(*pid) {
            None => false,
            Some(usage) => {
                if cell.since.elapsed() >= STILL {
                    cell.is_still = !usage.is_busy && usage.cpu == cell.cpu;
                    cell.since = Instant::now();
                    cell.cpu = usage.cpu;
                } else if usage.is_busy {
                    cell.is_still = false;
                }
                true
            }
        });
        cells.values().filter(|cell| cell.is_still).count()
    }

    async fn paced(&self, spec: CellSpec) -> Result<Cell, SandboxError> {
        let start = self.turn().await;
        let began = Instant::now();
        let cell = self.sandbox.open(spec).await?;
        start.over(began.elapsed());
        if let Some(pid) = cell.process() {
            let watched = Watched {
                since: Instant::now(),
                cpu: Duration::ZERO,
                is_still: false,
            };
            lock(&self.cells).insert(pid, watched);
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
