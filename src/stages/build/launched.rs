//! A launch of the builder, which is waited for, ended, or left to itself while something else is done.

use std::pin::pin;

use super::room::ours;
use crate::adapters::sandbox::{Cell, Ended, Launch, LaunchEvent, LaunchId, Stdio};
use crate::stages::Result;

/// A launch of the builder.
pub struct Launched<'a> {
    cell: &'a mut Cell,
    id: LaunchId,
    /// How it ended, when it did.
    pub ended: Option<Result<Ended>>,
}

impl<'a> Launched<'a> {
    pub async fn start(cell: &'a mut Cell, launch: Launch) -> Result<Self> {
        let id = cell.start(launch, Stdio::Pipes).await.map_err(ours)?;
        Ok(Self {
            cell,
            id,
            ended: None,
        })
    }

    /// Waits for its end, or for the cell's.
    pub async fn wait(&mut self) {
        while self.ended.is_none() {
            match self.cell.next().await {
                Ok((id, LaunchEvent::Ended(ended))) if id == self.id => {
                    self.ended = Some(Ok(ended));
                }
                Ok(_) => {}
                Err(error) => self.ended = Some(Err(ours(error))),
            }
        }
    }

    /// Does something that takes long; the end of the launch is heard meanwhile, since a cell waits for no listener.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = self.wait() => {}
        }
        work.await
    }

    pub async fn kill(&mut self) -> Result<()> {
        match self.ended {
            Some(_) => Ok(()),
            None => self.cell.kill(self.id).await.map_err(ours),
        }
    }
}
