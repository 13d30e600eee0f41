//! The schema, as named steps that run once each and are never edited after they land.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::database::DatabaseError;

const MIGRATIONS: &[(&str, &str)] = &[
    (
        "0001-stage-log",
        "CREATE TABLE stage_log (
        stage TEXT PRIMARY KEY,
        inputs TEXT NOT NULL,
        finished_at TEXT NOT NULL,
        summary TEXT NOT NULL
    ) STRICT;",
    ),
    (
        "0002-mining",
        "CREATE TABLE collect_issues (
            repository TEXT NOT NULL,
            number INTEGER NOT NULL,
            url TEXT NOT NULL,
            title TEXT NOT NULL,
            body TEXT NOT NULL,
            labels TEXT NOT NULL,
            state TEXT,
            created_at TEXT,
            updated_at TEXT,
            n_comments INTEGER,
            digest TEXT NOT NULL,
            PRIMARY KEY (repository, number)
        ) STRICT;
        CREATE TABLE collect_pull_requests (
            repository TEXT NOT NULL,
            number INTEGER NOT NULL,
            PRIMARY KEY (repository, number)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE rank_issues (
            repository TEXT NOT NULL,
            number INTEGER NOT NULL,
            place INTEGER NOT NULL UNIQUE,
            score REAL NOT NULL,
            parts TEXT NOT NULL,
            clauses TEXT NOT NULL,
            PRIMARY KEY (repository, number)
        ) STRICT;
        CREATE TABLE cluster_clusters (
            id TEXT PRIMARY KEY,
            place INTEGER NOT NULL UNIQUE,
            label TEXT NOT NULL,
            clause TEXT,
            representative TEXT NOT NULL,
            terms TEXT NOT NULL
        ) STRICT;
        CREATE TABLE cluster_members (
            repository TEXT NOT NULL,
            number INTEGER NOT NULL,
            cluster TEXT NOT NULL REFERENCES cluster_clusters (id) ON DELETE CASCADE,
            PRIMARY KEY (repository, number)
        ) STRICT;
        CREATE TABLE filter_clusters (
            cluster TEXT PRIMARY KEY REFERENCES cluster_clusters (id) ON DELETE CASCADE,
            kept INTEGER NOT NULL,
            rule TEXT,
            counterpart TEXT,
            reason TEXT NOT NULL
        ) STRICT;",
    ),
    (
        "0003-compare",
        "CREATE TABLE compare_differences (
            id TEXT NOT NULL,
            candidate TEXT NOT NULL,
            target TEXT NOT NULL,
            module TEXT NOT NULL,
            kind TEXT NOT NULL,
            side TEXT NOT NULL,
            title TEXT NOT NULL,
            target_place TEXT,
            target_shown TEXT,
            candidate_place TEXT,
            candidate_shown TEXT,
            clause TEXT NOT NULL,
            score REAL NOT NULL,
            PRIMARY KEY (id, candidate)
        ) STRICT;",
    ),
    (
        "0006-github",
        "CREATE TABLE collect_github (
            repository TEXT PRIMARY KEY,
            full_name TEXT,
            started_at TEXT,
            next_url TEXT,
            has_changes INTEGER NOT NULL,
            watermark TEXT,
            etag_url TEXT,
            etag TEXT
        ) STRICT;",
    ),
    (
        "0007-collect",
        "CREATE TABLE collect_lists (
            repository TEXT NOT NULL,
            list TEXT NOT NULL,
            full_name TEXT,
            repository_id INTEGER,
            started_at TEXT,
            next_url TEXT,
            has_changes INTEGER NOT NULL,
            watermark TEXT,
            etag_url TEXT,
            etag TEXT,
            PRIMARY KEY (repository, list)
        ) STRICT;
        INSERT INTO collect_lists SELECT repository, 'issues', full_name, NULL, started_at, next_url, has_changes,
            watermark, etag_url, etag FROM collect_github;
        DROP TABLE collect_github;
        CREATE TABLE collect_comments (
            repository TEXT NOT NULL,
            number INTEGER NOT NULL,
            id INTEGER NOT NULL,
            body TEXT NOT NULL,
            created_at TEXT,
            updated_at TEXT,
            PRIMARY KEY (repository, number, id)
        ) STRICT;
        CREATE TABLE collect_gone (
            repository TEXT NOT NULL,
            number INTEGER NOT NULL,
            moved_to TEXT,
            PRIMARY KEY (repository, number)
        ) STRICT;",
    ),
    (
        "0008-cluster-effect",
        "ALTER TABLE cluster_clusters ADD COLUMN effect TEXT NOT NULL DEFAULT '';",
    ),
    (
        "0009-rank",
        "ALTER TABLE rank_issues ADD COLUMN digest TEXT NOT NULL DEFAULT '';
        CREATE TABLE rank_basis (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            settings TEXT NOT NULL,
            n_issues INTEGER NOT NULL,
            n_since INTEGER NOT NULL,
            basis TEXT NOT NULL
        ) STRICT;",
    ),
    (
        "0010-cluster-background",
        "CREATE TABLE cluster_background (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            background TEXT NOT NULL
        ) STRICT;",
    ),
    (
        "0011-compare-others",
        "ALTER TABLE compare_differences ADD COLUMN others TEXT NOT NULL DEFAULT '';",
    ),
    (
        "0012-cluster-vectors",
        "ALTER TABLE cluster_members ADD COLUMN digest TEXT NOT NULL DEFAULT '';
        ALTER TABLE cluster_members ADD COLUMN vector BLOB NOT NULL DEFAULT x'';
        CREATE INDEX cluster_members_by_cluster ON cluster_members (cluster, repository, number);",
    ),
];

pub(super) fn apply(connection: &mut Connection, path: &Path) -> Result<(), DatabaseError> {
    connection
        .execute_batch("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY) STRICT;")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (name, sql) in missing(&transaction, path)? {
        transaction.execute_batch(sql)?;
        transaction.execute("INSERT INTO migrations (name) VALUES (?1)", [name])?;
    }
    transaction.commit()?;
    Ok(())
}

/// For a file that cannot be changed: it has to have every step already.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), DatabaseError> {
    match missing(connection, path)?.first() {
        None => Ok(()),
        Some(_) => Err(DatabaseError::ReadOnly {
            path: path.to_path_buf(),
        }),
    }
}

/// The steps that were not run yet.
fn missing(
    connection: &Connection,
    path: &Path,
) -> Result<Vec<(&'static str, &'static str)>, DatabaseError> {
    let done: Vec<String> = connection
        .prepare("SELECT name FROM migrations ORDER BY name")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let is_known = |name: &String| MIGRATIONS.iter().any(|(known, _)| known == name);
    if let Some(name) = done.iter().find(|name| !is_known(name)) {
        return Err(DatabaseError::Newer {
            path: path.to_path_buf(),
            name: name.clone(),
        });
    }
    Ok(MIGRATIONS
        .iter()
        .filter(|(name, _)| !done.iter().any(|applied| applied == name))
        .copied()
        .collect())
}

#[cfg(test)]
mod tests {
    use super::super::database::{Database, DatabaseError};

    #[test]
    fn a_second_opening_changes_nothing_and_a_newer_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/p.sqlite");
        let mut first = Database::open(&path).expect("opens");
        drop(Database::open(&path).expect("opens again"));
        first
            .write()
            .and_then(|tx| {
                tx.execute("INSERT INTO migrations VALUES ('9999-later')", [])?;
                Ok(tx.commit()?)
            })
            .expect("writes");
        assert!(matches!(
            Database::open(&path),
            Err(DatabaseError::Newer { .. })
        ));
    }
}
