//! The connections that are open. There is room for a new one as long as one of them is idle: the one that was idle
//! longest is closed then, be it kept alive by its client or still dribbling in a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};

/// Open at the same time. Cells run side by side in one process, and descriptors are few.
const LIMIT: usize = 64;
/// How often idle ones are looked for when all are busy.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// They die with this.
#[derive(Default)]
pub struct Connections {
    tasks: JoinSet<()>,
    open: Vec<(AbortHandle, Arc<Slot>)>,
    /// Counts uses; the order of idleness.
    clock: Arc<AtomicU64>,
}

/// One connection, as the others see it.
#[derive(Debug)]
pub struct Slot {
    n_busy: AtomicUsize,
    last_use: AtomicU64,
    clock: Arc<AtomicU64>,
}

/// A request that is there in full and not answered yet.
#[derive(Debug)]
pub struct Busy(Arc<Slot>);

impl Busy {
    pub fn on(slot: &Arc<Slot>) -> Self {
        slot.n_busy.fetch_add(1, Ordering::Relaxed);
        Self(slot.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.touch();
        self.0.n_busy.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Slot {
    fn touch(&self) {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        self.last_use.store(now, Ordering::Relaxed);
    }
}

impl Connections {
    /// Serves a new connection; [`Self::room`] was there before.
    pub fn serve<F>(&mut self, connection: impl FnOnce(Arc<Slot>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let slot = Arc::new(Slot {
            n_busy: AtomicUsize::new(0),
            last_use: AtomicU64::new(0),
            clock: self.clock.clone(),
        });
        slot.touch();
        let task = self.tasks.spawn(connection(slot.clone()));
        self.open.push((task, slot));
    }

    /// Comes back when one more connection can be served.
    pub async fn room(&mut self) {
        loop {
            while self.tasks.try_join_next().is_some() {}
            self.open.retain(|(task, _)| !task.is_finished());
            if self.open.len() < LIMIT {
                return;
            }
            let idle = self
                .open
                .iter()
                .filter(|(_, slot)| slot.n_busy.load(Ordering::Relaxed) == 0)
                .min_by_key(|(_, slot)| slot.last_use.load(Ordering::Relaxed));
            if let Some((task, _)) = idle {
                task.abort();
            }
            // One ends, by itself or as just said, or becomes idle.
            let _ = tokio::time::timeout(LOOK_AGAIN, self.tasks.join_next()).await;
        }
    }
}
