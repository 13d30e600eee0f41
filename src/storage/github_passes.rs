//! How far the collection from GitHub is, for each repository: table `collect_github`. A pass walks the list once;
//! what it has still to do is the address of its next page.

use rusqlite::{OptionalExtension, Transaction, params};

use super::database::{Database, DatabaseError};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pass {
    /// As it was asked for; it may have another name by now.
    pub repository: String,
    /// The name that its issues have.
    pub full_name: Option<String>,
    /// When the unfinished pass began, by GitHub's clock.
    pub started_at: Option<String>,
    /// Where the unfinished pass goes on; none when the last one was finished.
    pub next_url: Option<String>,
    /// The unfinished pass has found something new or changed.
    pub has_changes: bool,
    /// All that was updated before is stored; none before the first pass was finished.
    pub watermark: Option<String>,
    /// First page of the last finished pass, and its ETag.
    pub etag_url: Option<String>,
    pub etag: Option<String>,
}

/// The state of a repository; a fresh one when it was never collected.
pub fn get(database: &Database, repository: &str) -> Result<Pass, DatabaseError> {
    let stored = database
        .connection()
        .query_row(
            "SELECT full_name, started_at, next_url, has_changes, watermark, etag_url, etag
             FROM collect_github WHERE repository = ?1",
            [repository],
            |row| {
                Ok(Pass {
                    repository: repository.to_owned(),
                    full_name: row.get(0)?,
                    started_at: row.get(1)?,
                    next_url: row.get(2)?,
                    has_changes: row.get(3)?,
                    watermark: row.get(4)?,
                    etag_url: row.get(5)?,
                    etag: row.get(6)?,
                })
            },
        )
        .optional()?;
    Ok(stored.unwrap_or_else(|| Pass {
        repository: repository.to_owned(),
        ..Pass::default()
    }))
}

/// Stores the state in the same transaction as the rows of the page that led to it.
pub fn put(transaction: &Transaction<'_>, pass: &Pass) -> Result<(), DatabaseError> {
    transaction.execute(
        "INSERT OR REPLACE INTO collect_github
         (repository, full_name, started_at, next_url, has_changes, watermark, etag_url, etag)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            pass.repository,
            pass.full_name,
            pass.started_at,
            pass.next_url,
            pass.has_changes,
            pass.watermark,
            pass.etag_url,
            pass.etag
        ],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_repository_comes_back() {
        let mut database = Database::in_memory().expect("opens");
        let fresh = get(&database, "o/n").expect("reads");
        assert_eq!((fresh.repository.as_str(), fresh.next_url), ("o/n", None));
        let pass = Pass {
            repository: "o/n".into(),
            full_name: Some("o/new".into()),
            started_at: Some("2026-12-01T00:00:00Z".into()),
            next_url: Some("https://h/x".into()),
            has_changes: true,
            watermark: None,
            etag_url: None,
            etag: Some("W/\"1\"".into()),
        };
        let tx = database.write().expect("begins");
        put(&tx, &pass).expect("writes");
        tx.commit().expect("commits");
        assert_eq!(get(&database, "o/n").expect("reads"), pass);
    }
}
