//! How far the collection from GitHub is, for each list of each repository: table `collect_lists`. A pass walks a list
//! once; what it has still to do is the address of its next page.

use rusqlite::{OptionalExtension, Transaction, params};

use super::database::{Database, DatabaseError};

/// What is walked of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Issues, with pull requests among them.
    Issues,
    Comments,
}

impl List {
    pub fn name(self) -> &'static str {
        match self {
            Self::Issues => "issues",
            Self::Comments => "comments",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// As it was asked for; it may have another name by now.
    pub repository: String,
    pub list: List,
    /// The name that its issues have.
    pub full_name: Option<String>,
    /// GitHub's number of the repository, the same under each of its names; known once a link has shown it.
    pub repository_id: Option<u64>,
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

impl Pass {
    /// The state before anything was collected.
    pub fn fresh(repository: &str, list: List) -> Self {
        Self {
            repository: repository.to_owned(),
            list,
            full_name: None,
            repository_id: None,
            started_at: None,
            next_url: None,
            has_changes: false,
            watermark: None,
            etag_url: None,
            etag: None,
        }
    }

    /// The name that is asked for now.
    pub fn name(&self) -> &str {
        self.full_name.as_ref().unwrap_or(&self.repository)
    }
}

/// The state of a list; a fresh one when it was never collected.
pub fn get(database: &Database, repository: &str, list: List) -> Result<Pass, DatabaseError> {
    let stored = database
        .connection()
        .query_row(
            "SELECT full_name, repository_id, started_at, next_url, has_changes, watermark, etag_url, etag
             FROM collect_lists WHERE repository = ?1 AND list = ?2",
            [repository, list.name()],
            |row| {
                Ok(Pass {
                    repository: repository.to_owned(),
                    list,
                    full_name: row.get(0)?,
                    repository_id: row.get::<_, Option<i64>>(1)?.map(|id| id as u64),
                    started_at: row.get(2)?,
                    next_url: row.get(3)?,
                    has_changes: row.get(4)?,
                    watermark: row.get(5)?,
                    etag_url: row.get(6)?,
                    etag: row.get(7)?,
                })
            },
        )
        .optional()?;
    Ok(stored.unwrap_or_else(|| Pass::fresh(repository, list)))
}

/// Stores the state in the same transaction as the rows of the page that led to it.
pub fn put(transaction: &Transaction<'_>, pass: &Pass) -> Result<(), DatabaseError> {
    transaction.execute(
        "INSERT OR REPLACE INTO collect_lists
         (repository, list, full_name, repository_id, started_at, next_url, has_changes, watermark, etag_url, etag)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            pass.repository,
            pass.list.name(),
            pass.full_name,
            pass.repository_id.map(|id| id as i64),
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

/// Forgets what was asked for under other names of the same repository, and gives the names that its issues had there.
pub fn absorb(transaction: &Transaction<'_>, pass: &Pass) -> Result<Vec<String>, DatabaseError> {
    let Some(id) = pass.repository_id else {
        return Ok(Vec::new());
    };
    let parameters = params![id as i64, pass.repository];
    let names = transaction
        .prepare_cached(
            "SELECT DISTINCT coalesce(full_name, repository) FROM collect_lists
             WHERE repository_id = ?1 AND repository <> ?2 ORDER BY 1",
        )?
        .query_map(parameters, |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    transaction.execute(
        "DELETE FROM collect_lists WHERE repository_id = ?1 AND repository <> ?2",
        parameters,
    )?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_list_comes_back() {
        let mut database = Database::in_memory().expect("opens");
        let fresh = get(&database, "o/n", List::Issues).expect("reads");
        assert_eq!(fresh, Pass::fresh("o/n", List::Issues));
        let pass = Pass {
            full_name: Some("o/new".into()),
            repository_id: Some(7),
            started_at: Some("2026-12-01T00:00:00Z".into()),
            next_url: Some("https://h/x".into()),
            has_changes: true,
            etag: Some("W/\"1\"".into()),
            ..fresh
        };
        let tx = database.write().expect("begins");
        put(&tx, &pass).expect("writes");
        tx.commit().expect("commits");
        assert_eq!(get(&database, "o/n", List::Issues).expect("reads"), pass);
        let other = get(&database, "o/n", List::Comments).expect("reads");
        assert_eq!(other, Pass::fresh("o/n", List::Comments));
    }

    #[test]
    fn another_name_of_a_repository_is_absorbed_once() {
        let mut database = Database::in_memory().expect("opens");
        let pass = |name: &str, id| Pass {
            repository_id: id,
            ..Pass::fresh(name, List::Issues)
        };
        let tx = database.write().expect("begins");
        for (name, id) in [("o/n", 7), ("o/old", 7), ("o/other", 8)] {
            put(&tx, &pass(name, Some(id))).expect("writes");
        }
        assert!(absorb(&tx, &pass("o/n", None)).expect("looks").is_empty());
        let check = |expected: &[&str]| {
            let names = absorb(&tx, &pass("o/n", Some(7))).expect("absorbs");
            assert_eq!(names, expected);
        };
        check(&["o/old"]);
        check(&[]);
    }
}
