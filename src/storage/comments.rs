//! Comments on collected issues: table `collect_comments`. Those on pull requests are left out.

use rusqlite::{Row, Transaction, params};

use super::database::{Database, DatabaseError};
use crate::domain::issue::{Comment, IssueKey};

/// Stores a comment in its newest form; true when it was not there or had another text.
pub fn store(transaction: &Transaction<'_>, comment: &Comment) -> Result<bool, DatabaseError> {
    let n_written = transaction
        .prepare_cached(
            "INSERT INTO collect_comments (repository, number, id, body, created_at, updated_at)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6
             WHERE NOT EXISTS
                 (SELECT 1 FROM collect_pull_requests WHERE repository = ?1 AND number = ?2)
               AND NOT EXISTS (SELECT 1 FROM collect_gone WHERE repository = ?1 AND number = ?2)
             ON CONFLICT (repository, number, id) DO UPDATE
             SET body = excluded.body, updated_at = excluded.updated_at
             WHERE excluded.body <> body AND excluded.updated_at >= coalesce(updated_at, '')",
        )?
        .execute(params![
            comment.issue.repository,
            comment.issue.number as i64,
            comment.id as i64,
            comment.body,
            comment.created_at,
            comment.updated_at,
        ])?;
    Ok(n_written > 0)
}

/// Takes out the comments on what is known as a pull request by now: a comment can be read before it.
pub fn sweep(transaction: &Transaction<'_>) -> Result<(), DatabaseError> {
    transaction.execute(
        "DELETE FROM collect_comments WHERE EXISTS
         (SELECT 1 FROM collect_pull_requests AS pull
          WHERE pull.repository = collect_comments.repository AND pull.number = collect_comments.number)",
        [],
    )?;
    Ok(())
}

/// All comments in the order of repository, issue and age.
pub fn each<E: From<DatabaseError>>(
    database: &Database,
    mut visit: impl FnMut(Comment) -> Result<(), E>,
) -> Result<(), E> {
    let fault = |error| E::from(DatabaseError::Sql(error));
    let mut statement = database
        .connection()
        .prepare(
            "SELECT id, body, created_at, updated_at, repository, number FROM collect_comments
             ORDER BY repository, number, created_at, id",
        )
        .map_err(fault)?;
    let mut rows = statement.query([]).map_err(fault)?;
    while let Some(row) = rows.next().map_err(fault)? {
        visit(comment(row).map_err(fault)?)?;
    }
    Ok(())
}

/// The comments on an issue, the oldest first.
pub fn of(database: &Database, issue: &IssueKey) -> Result<Vec<Comment>, DatabaseError> {
    Ok(database
        .connection()
        .prepare_cached(
            "SELECT id, body, created_at, updated_at, repository, number FROM collect_comments
             WHERE repository = ?1 AND number = ?2 ORDER BY created_at, id",
        )?
        .query_map(params![issue.repository, issue.number as i64], comment)?
        .collect::<Result<_, _>>()?)
}

fn comment(row: &Row<'_>) -> rusqlite::Result<Comment> {
    Ok(Comment {
        issue: IssueKey {
            repository: row.get(4)?,
            number: row.get::<_, i64>(5)? as u64,
        },
        id: row.get::<_, i64>(0)? as u64,
        body: row.get(1)?,
        created_at: row.get(2)?,
        updated_at: row.get(3)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::issues;

    #[test]
    fn the_newest_text_of_a_comment_on_an_issue_is_kept() {
        let mut database = Database::in_memory().expect("opens");
        let comment = |number: u64, body: &str, updated_at: &str| Comment {
            issue: IssueKey {
                repository: "o/n".into(),
                number,
            },
            id: 5,
            body: body.into(),
            created_at: Some("2026-01-01T00:00:00Z".into()),
            updated_at: Some(updated_at.into()),
        };
        let tx = database.write().expect("begins");
        let pull = comment(2, "on a pull request", "2026-01-02T00:00:00Z");
        let early = comment(3, "on one that comes later", "2026-01-02T00:00:00Z");
        issues::store_pull_request(&tx, &pull.issue).expect("stores");
        let check = |comment: &Comment, expected: bool| {
            let stored = store(&tx, comment).expect("stores");
            assert_eq!(stored, expected, "{comment:?}");
        };
        check(&comment(1, "a", "2026-01-02T00:00:00Z"), true);
        check(&comment(1, "a", "2026-01-02T00:00:00Z"), false);
        check(&comment(1, "b", "2026-01-03T00:00:00Z"), true);
        check(&comment(1, "old", "2026-01-01T00:00:00Z"), false);
        check(&pull, false);
        check(&early, true);
        issues::store_pull_request(&tx, &early.issue).expect("stores");
        sweep(&tx).expect("sweeps");
        tx.commit().expect("commits");
        let kept = [comment(1, "b", "2026-01-03T00:00:00Z")];
        assert_eq!(of(&database, &kept[0].issue).expect("reads"), kept);
        let mut all = Vec::new();
        each::<DatabaseError>(&database, |comment| {
            all.push(comment);
            Ok(())
        })
        .expect("reads");
        assert_eq!(all, kept);
    }
}
