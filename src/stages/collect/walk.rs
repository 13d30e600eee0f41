//! One walk over one list, from page to page. It only asks; what it finds is stored by [`super::keep`], while the next
//! page is on its way.
//!
//! Issues are walked in the order of creation also for increments. An update adds a row to such a list and takes none
//! away, so that no row can slip past; one that lands on an earlier page was updated after the pass began, and the next
//! increment has it.

use std::collections::BTreeSet;

use tokio::sync::mpsc;

use super::asking::Asking;
use crate::adapters::github::{GitHub, GitHubError, Page};
use crate::storage::github_passes::{List, Pass};

/// What a walk meets, in order.
pub(super) enum Found {
    Page {
        url: String,
        page: Page,
    },
    /// The list is begun anew: the pages before count for nothing but what is stored of them.
    Anew {
        why: String,
    },
    /// There is nothing more.
    End,
    /// The address of a page came a second time.
    Circle {
        url: String,
    },
    Fault(GitHubError),
}

pub(super) struct Walk<'a> {
    pub asking: &'a Asking<'a>,
    pub pass: Pass,
    /// Rows that were created later are not wanted; a list in the order of creation ends with them.
    pub as_of: Option<&'a str>,
}

impl Walk<'_> {
    /// Walks to the end and tells what it met; ends early when nobody listens any more.
    pub async fn run(self, tell: impl AsyncFn(Found) -> Result<(), mpsc::error::SendError<()>>) {
        // An error only says that the other side has stopped.
        let _ = self.walk(&tell).await;
    }

    async fn walk(
        &self,
        tell: &impl AsyncFn(Found) -> Result<(), mpsc::error::SendError<()>>,
    ) -> Result<(), mpsc::error::SendError<()>> {
        let github = self.asking.github;
        let mut resumed = self.pass.next_url.is_some();
        let mut url = match &self.pass.next_url {
            Some(next) => next.clone(),
            None => first_page(github, &self.pass),
        };
        // Addresses that were asked for: one that comes again would go round in circles.
        let mut seen = BTreeSet::new();
        let mut restarted = false;
        loop {
            let is_first = seen.is_empty() && !resumed;
            let known = is_first && self.pass.etag_url.as_ref() == Some(&url);
            let etag = self.pass.etag.as_deref().filter(|_| known);
            if !seen.insert(url.clone()) {
                return tell(Found::Circle { url }).await;
            }
            let asked = self
                .asking
                .ask(&url, async |url| github.page(url, etag).await);
            let page = match asked.await {
                Ok(Some(page)) => page,
                Ok(None) => return tell(Found::End).await,
                // A stored address can go stale, and numbered pages have an end: once, the list is begun anew, and its
                // links lead on by cursor. What is stored already comes as known.
                Err(
                    error @ (GitHubError::NeedsCursor { .. }
                    | GitHubError::NotFound { .. }
                    | GitHubError::Refused { .. }),
                ) if !restarted && !is_first => {
                    let why = error.to_string();
                    tell(Found::Anew { why }).await?;
                    restarted = true;
                    resumed = false;
                    seen.clear();
                    url = first_page(github, &self.pass);
                    continue;
                }
                Err(error) => return tell(Found::Fault(error)).await,
            };
            let next = page.next.clone().filter(|_| !self.is_past(&page));
            tell(Found::Page { url, page }).await?;
            match next {
                Some(next) => url = next,
                None => return tell(Found::End).await,
            }
        }
    }

    /// All further pages are later than what is wanted.
    fn is_past(&self, page: &Page) -> bool {
        let last = page
            .rows
            .last()
            .and_then(|row| row.get("created_at")?.as_str());
        self.pass.list == List::Issues
            && matches!((last, self.as_of), (Some(last), Some(as_of)) if last > as_of)
    }
}

/// The address at which a pass begins.
fn first_page(github: &GitHub, pass: &Pass) -> String {
    let since = pass.watermark.as_deref();
    match pass.list {
        List::Issues => github.first_page(pass.name(), since),
        List::Comments => github.first_page_of_comments(pass.name(), since),
    }
}
