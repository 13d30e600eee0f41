//! Collected issues and the pull requests that were left out: tables `collect_issues` and `collect_pull_requests`.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::database::{Database, DatabaseError};
use crate::domain::digest;
use crate::domain::issue::{Issue, IssueKey};

/// What storing one issue did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    New,
    Changed,
    Same,
    /// The row is older than what is stored, so that it was left.
    Older,
    /// It is known to be deleted or moved away, so that it was left.
    Gone,
}

/// Issues and pull requests of one repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    pub n_issues: u64,
    pub n_pull_requests: u64,
}

/// Stores an issue unless what is stored says the same or was updated later.
pub fn store(transaction: &Transaction<'_>, issue: &Issue) -> Result<Stored, DatabaseError> {
    if is_gone(transaction, &issue.key)? {
        return Ok(Stored::Gone);
    }
    let digest = digest_of(issue);
    let before: Option<(String, Option<String>)> = transaction
        .prepare_cached(
            "SELECT digest, updated_at FROM collect_issues WHERE repository = ?1 AND number = ?2",
        )?
        .query_row(
            params![issue.key.repository, issue.key.number as i64],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let stored = match before {
        None => Stored::New,
        Some((old, _)) if old == digest => return Ok(Stored::Same),
        // An absent time is the oldest of all.
        Some((_, updated_at)) if issue.updated_at < updated_at => return Ok(Stored::Older),
        Some(_) => Stored::Changed,
    };
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO collect_issues
             (repository, number, url, title, body, labels, state, created_at, updated_at, n_comments, digest)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            issue.key.repository,
            issue.key.number as i64,
            issue.url,
            issue.title,
            issue.body,
            labels_json(issue),
            issue.state,
            issue.created_at,
            issue.updated_at,
            issue.n_comments.map(|n| n as i64),
            digest,
        ])?;
    Ok(stored)
}

/// Remembers a pull request by its key only; true when it was not known.
pub fn store_pull_request(
    transaction: &Transaction<'_>,
    key: &IssueKey,
) -> Result<bool, DatabaseError> {
    let n_new = transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO collect_pull_requests (repository, number) VALUES (?1, ?2)",
        )?
        .execute(params![key.repository, key.number as i64])?;
    Ok(n_new > 0)
}

/// Takes an issue out for good: it was deleted, or moved to where `moved_to` says. True when it was stored.
pub fn bury(
    transaction: &Transaction<'_>,
    key: &IssueKey,
    moved_to: Option<&IssueKey>,
) -> Result<bool, DatabaseError> {
    transaction.execute(
        "INSERT OR REPLACE INTO collect_gone (repository, number, moved_to) VALUES (?1, ?2, ?3)",
        params![
            key.repository,
            key.number as i64,
            moved_to.map(ToString::to_string)
        ],
    )?;
    let of_key = params![key.repository, key.number as i64];
    transaction.execute(
        "DELETE FROM collect_comments WHERE repository = ?1 AND number = ?2",
        of_key,
    )?;
    let n_taken = transaction.execute(
        "DELETE FROM collect_issues WHERE repository = ?1 AND number = ?2",
        of_key,
    )?;
    Ok(n_taken > 0)
}

fn is_gone(transaction: &Transaction<'_>, key: &IssueKey) -> Result<bool, DatabaseError> {
    Ok(transaction
        .prepare_cached("SELECT 1 FROM collect_gone WHERE repository = ?1 AND number = ?2")?
        .exists(params![key.repository, key.number as i64])?)
}

/// The numbers of the stored issues of a repository, in order.
pub fn numbers(database: &Database, repository: &str) -> Result<Vec<u64>, DatabaseError> {
    Ok(database
        .connection()
        .prepare("SELECT number FROM collect_issues WHERE repository = ?1 ORDER BY number")?
        .query_map([repository], |row| Ok(row.get::<_, i64>(0)? as u64))?
        .collect::<Result<_, _>>()?)
}

/// Gives all issues and pull requests of a repository its new name. Where both names are stored the row under the new
/// one stays.
pub fn rename(transaction: &Transaction<'_>, old: &str, new: &str) -> Result<(), DatabaseError> {
    for table in [
        "collect_issues",
        "collect_pull_requests",
        "collect_comments",
        "collect_gone",
    ] {
        transaction.execute(
            &format!("UPDATE OR IGNORE {table} SET repository = ?2 WHERE repository = ?1"),
            [old, new],
        )?;
        transaction.execute(&format!("DELETE FROM {table} WHERE repository = ?1"), [old])?;
    }
    Ok(())
}

/// What a list shows of an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub key: IssueKey,
    pub title: String,
    /// As [`digest_of`] the whole issue.
    pub digest: String,
}

/// The heads of all issues, in the order of their keys.
pub fn heads(database: &Database) -> Result<Vec<Head>, DatabaseError> {
    Ok(database
        .connection()
        .prepare(
            "SELECT repository, number, title, digest FROM collect_issues ORDER BY repository, number",
        )?
        .query_map([], |row| {
            Ok(Head {
                key: key(row)?,
                title: row.get(2)?,
                digest: row.get(3)?,
            })
        })?
        .collect::<Result<_, _>>()?)
}

/// All issues in the order of their keys.
pub fn all(database: &Database) -> Result<Vec<Issue>, DatabaseError> {
    let mut issues = Vec::new();
    each(database, |issue| {
        issues.push(issue);
        Ok::<_, DatabaseError>(())
    })?;
    Ok(issues)
}

/// Visits all issues in the order of their keys, one at a time.
pub fn each<E: From<DatabaseError>>(
    database: &Database,
    mut visit: impl FnMut(Issue) -> Result<(), E>,
) -> Result<(), E> {
    let fault = |error| E::from(DatabaseError::Sql(error));
    let sql = format!("SELECT {COLUMNS} FROM collect_issues ORDER BY repository, number");
    let mut statement = database.connection().prepare(&sql).map_err(fault)?;
    let mut rows = statement.query([]).map_err(fault)?;
    while let Some(row) = rows.next().map_err(fault)? {
        visit(issue(row).map_err(fault)?)?;
    }
    Ok(())
}

/// The pull requests that were left out, in the order of their keys.
pub fn pull_requests(database: &Database) -> Result<Vec<IssueKey>, DatabaseError> {
    Ok(database
        .connection()
        .prepare(
            "SELECT repository, number FROM collect_pull_requests ORDER BY repository, number",
        )?
        .query_map([], key)?
        .collect::<Result<_, _>>()?)
}

/// The issues that were taken out, and where they went when it is known, in the order of their keys.
pub fn gone(database: &Database) -> Result<Vec<(IssueKey, Option<IssueKey>)>, DatabaseError> {
    Ok(database
        .connection()
        .prepare(
            "SELECT repository, number, moved_to FROM collect_gone ORDER BY repository, number",
        )?
        .query_map([], |row| {
            let moved_to: Option<String> = row.get(2)?;
            // It was written from a key.
            Ok((key(row)?, moved_to.and_then(|key| key.parse().ok())))
        })?
        .collect::<Result<_, _>>()?)
}

fn key(row: &Row<'_>) -> rusqlite::Result<IssueKey> {
    Ok(IssueKey {
        repository: row.get(0)?,
        number: row.get::<_, i64>(1)? as u64,
    })
}

pub fn get(database: &Database, key: &IssueKey) -> Result<Option<Issue>, DatabaseError> {
    let sql = format!("SELECT {COLUMNS} FROM collect_issues WHERE repository = ?1 AND number = ?2");
    Ok(database
        .connection()
        .query_row(&sql, params![key.repository, key.number as i64], issue)
        .optional()?)
}

/// How much there is of each repository, pull requests included.
pub fn counts(database: &Database) -> Result<BTreeMap<String, Count>, DatabaseError> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let mut statement = database.connection().prepare(
        "SELECT repository, 0, count(*) FROM collect_issues GROUP BY repository
         UNION ALL
         SELECT repository, 1, count(*) FROM collect_pull_requests GROUP BY repository",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let count = counts.entry(row.get(0)?).or_default();
        let n: i64 = row.get(2)?;
        match row.get(1)? {
            0 => count.n_issues = n as u64,
            _ => count.n_pull_requests = n as u64,
        }
    }
    Ok(counts)
}

/// Digest over all collected issues: what later stages call their input.
pub fn digest_of_all(database: &Database) -> Result<String, DatabaseError> {
    let mut digester = digest::Digester::default();
    let mut statement = database.connection().prepare(
        "SELECT repository, number, digest FROM collect_issues ORDER BY repository, number",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        digester
            .part(row.get_ref(0)?.as_bytes().unwrap_or_default())
            .part(row.get::<_, i64>(1)?.to_le_bytes())
            .part(row.get_ref(2)?.as_bytes().unwrap_or_default());
    }
    Ok(digester.finish())
}

/// Digest of what an issue says, its times and counts included.
pub fn digest_of(issue: &Issue) -> String {
    digest::of([
        issue.key.to_string(),
        issue.url.clone(),
        issue.title.clone(),
        issue.body.clone(),
        labels_json(issue),
        format!("{:?}", issue.state),
        format!("{:?}", issue.created_at),
        format!("{:?}", issue.updated_at),
        format!("{:?}", issue.n_comments),
    ])
}

const COLUMNS: &str =
    "repository, number, url, title, body, labels, state, created_at, updated_at, n_comments";

fn labels_json(issue: &Issue) -> String {
    serde_json::to_string(&issue.labels).expect("a list of texts is JSON")
}

fn issue(row: &Row<'_>) -> rusqlite::Result<Issue> {
    let labels: String = row.get(5)?;
    Ok(Issue {
        key: key(row)?,
        url: row.get(2)?,
        title: row.get(3)?,
        body: row.get(4)?,
        labels: serde_json::from_str(&labels).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(
                5,
                rusqlite::types::Type::Text,
                Box::new(error),
            )
        })?,
        state: row.get(6)?,
        created_at: row.get(7)?,
        updated_at: row.get(8)?,
        n_comments: row.get::<_, Option<i64>>(9)?.map(|n| n as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(number: u64, title: &str, updated_at: Option<&str>) -> Issue {
        Issue {
            key: IssueKey {
                repository: "o/n".into(),
                number,
            },
            url: format!("https://github.com/o/n/issues/{number}"),
            title: title.into(),
            body: String::new(),
            labels: vec!["bug".into()],
            state: None,
            created_at: None,
            updated_at: updated_at.map(str::to_owned),
            n_comments: Some(3),
        }
    }

    #[test]
    fn storing_twice_changes_nothing_and_the_newer_text_stays() {
        let mut database = Database::in_memory().expect("opens");
        let mut check = |title: &str, updated_at: Option<&str>, expected: Stored| {
            let tx = database.write().expect("begins");
            let stored = store(&tx, &sample(1, title, updated_at)).expect("stores");
            tx.commit().expect("commits");
            assert_eq!(stored, expected, "{title} {updated_at:?}");
        };
        check("a", None, Stored::New);
        check("a", None, Stored::Same);
        check("b", None, Stored::Changed);
        check("b", Some("2026-01-02T00:00:00Z"), Stored::Changed);
        check("c", Some("2026-01-01T00:00:00Z"), Stored::Older);
        check("c", None, Stored::Older);
        check("c", Some("2026-01-03T00:00:00Z"), Stored::Changed);
        let key = sample(1, "", None).key;
        let issue = get(&database, &key).expect("reads").expect("is there");
        assert_eq!(issue, sample(1, "c", Some("2026-01-03T00:00:00Z")));
    }

    #[test]
    fn pull_requests_are_counted_once() {
        let mut database = Database::in_memory().expect("opens");
        let tx = database.write().expect("begins");
        let key = sample(9, "", None).key;
        assert!(store_pull_request(&tx, &key).expect("stores"));
        assert!(!store_pull_request(&tx, &key).expect("stores"));
        store(&tx, &sample(2, "x", None)).expect("stores");
        store(&tx, &sample(1, "y", None)).expect("stores");
        tx.commit().expect("commits");
        let expected = Count {
            n_issues: 2,
            n_pull_requests: 1,
        };
        assert_eq!(counts(&database).expect("counts")["o/n"], expected);
        let numbers: Vec<u64> = all(&database)
            .expect("reads")
            .iter()
            .map(|issue| issue.key.number)
            .collect();
        assert_eq!(numbers, [1, 2]);
        let heads = heads(&database).expect("reads");
        assert_eq!(
            (&*heads[1].title, &heads[1].digest),
            ("x", &digest_of(&sample(2, "x", None)))
        );
    }

    #[test]
    fn a_buried_issue_does_not_come_back() {
        let mut database = Database::in_memory().expect("opens");
        let tx = database.write().expect("begins");
        let issue = sample(1, "x", None);
        store(&tx, &issue).expect("stores");
        assert!(bury(&tx, &issue.key, None).expect("buries"));
        assert!(!bury(&tx, &issue.key, Some(&issue.key)).expect("buries"));
        assert_eq!(store(&tx, &issue).expect("looks"), Stored::Gone);
        tx.commit().expect("commits");
        assert!(numbers(&database, "o/n").expect("reads").is_empty());
    }

    #[test]
    fn a_renamed_repository_has_each_issue_once() {
        let mut database = Database::in_memory().expect("opens");
        let tx = database.write().expect("begins");
        let mut issue = sample(1, "under both names", None);
        store(&tx, &issue).expect("stores");
        issue.key.repository = "new/n".into();
        store(&tx, &issue).expect("stores");
        store(&tx, &sample(2, "under the old one", None)).expect("stores");
        rename(&tx, "o/n", "new/n").expect("renames");
        tx.commit().expect("commits");
        let keys: Vec<String> = all(&database)
            .expect("reads")
            .iter()
            .map(|issue| issue.key.to_string())
            .collect();
        assert_eq!(keys, ["new/n#1", "new/n#2"]);
    }

    #[test]
    fn the_digest_of_all_does_not_depend_on_the_order_of_storing() {
        let digest = |numbers: [u64; 2]| {
            let mut database = Database::in_memory().expect("opens");
            let tx = database.write().expect("begins");
            for number in numbers {
                store(&tx, &sample(number, "x", None)).expect("stores");
            }
            tx.commit().expect("commits");
            digest_of_all(&database).expect("reads")
        };
        assert_eq!(digest([1, 2]), digest([2, 1]));
        assert_ne!(digest([1, 2]), digest([1, 3]));
    }
}
