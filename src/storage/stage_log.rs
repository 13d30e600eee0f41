//! What each stage last finished, and from which inputs: what `run` calls stale and `status` shows.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::database::{Database, DatabaseError};

/// The last finished run of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageEntry {
    /// Digest over everything that the stage read.
    pub inputs: String,
    pub finished_at: String,
    /// The stage's summary, as JSON.
    pub summary: String,
}

pub fn last(database: &Database, stage: &str) -> Result<Option<StageEntry>, DatabaseError> {
    last_in(database.connection(), stage)
}

/// The same inside a transaction, where nobody else can finish the stage.
pub fn last_in(connection: &Connection, stage: &str) -> Result<Option<StageEntry>, DatabaseError> {
    Ok(connection
        .query_row(
            "SELECT inputs, finished_at, summary FROM stage_log WHERE stage = ?1",
            [stage],
            |row| {
                Ok(StageEntry {
                    inputs: row.get(0)?,
                    finished_at: row.get(1)?,
                    summary: row.get(2)?,
                })
            },
        )
        .optional()?)
}

pub fn finish(
    database: &mut Database,
    stage: &str,
    entry: &StageEntry,
) -> Result<(), DatabaseError> {
    let transaction = database.write()?;
    store(&transaction, stage, entry)?;
    Ok(transaction.commit()?)
}

/// For a stage that stores what it made in the same transaction.
pub fn store(
    transaction: &Transaction<'_>,
    stage: &str,
    entry: &StageEntry,
) -> Result<(), DatabaseError> {
    transaction.execute(
        "INSERT INTO stage_log (stage, inputs, finished_at, summary) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (stage) DO UPDATE SET inputs = ?2, finished_at = ?3, summary = ?4",
        params![stage, entry.inputs, entry.finished_at, entry.summary],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_wins() {
        let mut database = Database::in_memory().expect("opens");
        assert_eq!(last(&database, "rank").expect("reads"), None);
        for inputs in ["a", "b"] {
            let entry = StageEntry {
                inputs: inputs.into(),
                finished_at: "2026-12-01T00:00:00Z".into(),
                summary: "{}".into(),
            };
            finish(&mut database, "rank", &entry).expect("writes");
        }
        assert_eq!(
            last(&database, "rank")
                .expect("reads")
                .expect("is there")
                .inputs,
            "b"
        );
    }
}
