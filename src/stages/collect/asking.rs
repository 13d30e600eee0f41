//! Asking GitHub with patience: how many requests are under way at a time, when to wait, when to ask again, and when
//! to give up.

use std::sync::Mutex;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::adapters::github::{Answer, GitHub, GitHubError};
use crate::stages::context::Progress;

/// How patient the collection is; `pipeline/collect.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patience {
    /// Requests that are under way at the same time, each for another list.
    pub concurrency: usize,
    /// Further tries after a failure that may pass.
    pub max_retries: u32,
    /// Wait before the first of them; each further wait is twice as long.
    pub retry_base_s: f64,
    /// Wait when GitHub limits the rate and does not say for how long.
    pub rate_limit_s: u64,
    /// A longer wait is not sat out: the run ends, and a later one goes on.
    pub max_wait_s: u64,
}

pub(super) struct Asking<'a> {
    pub github: &'a GitHub,
    patience: &'a Patience,
    progress: &'a dyn Progress,
    permits: Semaphore,
    /// Before then nobody asks: GitHub has asked to wait.
    opens: Mutex<Instant>,
}

/// Redirects in a row.
const MAX_MOVES: usize = 5;

impl<'a> Asking<'a> {
    pub fn new(github: &'a GitHub, patience: &'a Patience, progress: &'a dyn Progress) -> Self {
        Self {
            github,
            patience,
            progress,
            permits: Semaphore::new(patience.concurrency.max(1)),
            opens: Mutex::new(Instant::now()),
        }
    }

    /// What `ask` finds at an address, after redirects, waits and further tries; none when nothing was modified.
    pub async fn ask<T>(
        &self,
        url: &str,
        ask: impl AsyncFn(&str) -> Result<Answer<T>, GitHubError>,
    ) -> Result<Option<T>, GitHubError> {
        let mut url = url.to_owned();
        let mut n_moves = 0;
        let mut n_failed = 0;
        loop {
            let answer = {
                let _turn = self.turn().await;
                ask(&url).await
            };
            let error = match answer {
                Ok(Answer::Found(found)) => return Ok(Some(found)),
                Ok(Answer::NotModified) => return Ok(None),
                Ok(Answer::Moved(to)) if n_moves < MAX_MOVES => {
                    n_moves += 1;
                    url = to;
                    continue;
                }
                Ok(Answer::Moved(url)) => {
                    return Err(GitHubError::Passing {
                        url,
                        reason: "it is moved again and again".to_owned(),
                    });
                }
                Err(error) => error,
            };
            let doubled = 2u64.saturating_pow(n_failed);
            let (wait, everybody) = match &error {
                GitHubError::RateLimited { wait_s, .. } => {
                    let wait_s = wait_s.unwrap_or(self.patience.rate_limit_s * doubled);
                    (Duration::from_secs(wait_s), true)
                }
                GitHubError::Passing { .. } => {
                    let wait_s = self.patience.retry_base_s * doubled as f64;
                    (Duration::from_secs_f64(wait_s), false)
                }
                _ => return Err(error),
            };
            n_failed += 1;
            if n_failed > self.patience.max_retries || wait.as_secs() > self.patience.max_wait_s {
                return Err(error);
            }
            if wait.as_secs() > 0 {
                let text = format!("{error}; waits {} s", wait.as_secs());
                self.progress.note(&text);
            }
            if everybody {
                self.close(wait);
            } else {
                tokio::time::sleep(wait).await;
            }
        }
    }

    async fn turn(&self) -> SemaphorePermit<'_> {
        loop {
            let turn = self.permits.acquire().await.expect("it is never closed");
            let opens = *self.opens.lock().expect("no holder of this lock panics");
            let left = opens.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return turn;
            }
            drop(turn);
            if left > Duration::from_secs(1) {
                self.progress
                    .detail(&format!("goes on in {} s", left.as_secs()));
            }
            tokio::time::sleep(left.min(Duration::from_secs(1))).await;
            self.progress.detail("");
        }
    }

    fn close(&self, wait: Duration) {
        let mut opens = self.opens.lock().expect("no holder of this lock panics");
        *opens = (*opens).max(Instant::now() + wait);
    }
}
