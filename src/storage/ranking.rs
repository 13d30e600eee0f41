//! The ranking of collected issues: table `rank_issues`, replaced as a whole.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, Row, params};

use super::database::{Database, DatabaseError};
use crate::domain::issue::IssueKey;
use crate::domain::mining::{ClauseScore, RankedIssue, Relevance};

/// Replaces the ranking.
pub fn replace(database: &mut Database, ranking: &[RankedIssue]) -> Result<(), DatabaseError> {
    let transaction = database.write()?;
    transaction.execute("DELETE FROM rank_issues", [])?;
    {
        let mut insert = transaction.prepare(
            "INSERT INTO rank_issues (repository, number, place, score, parts, clauses)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        for ranked in ranking {
            let relevance = &ranked.relevance;
            let parts = Parts {
                matched: relevance.matched,
                factor: relevance.factor,
                length: relevance.length,
                outside: relevance.outside.clone(),
            };
            insert.execute(params![
                ranked.key.repository,
                ranked.key.number as i64,
                ranked.place as i64,
                relevance.score,
                json(&parts),
                json(&relevance.clauses),
            ])?;
        }
    }
    Ok(transaction.commit()?)
}

/// The first `n` places.
pub fn top(database: &Database, n: usize) -> Result<Vec<RankedIssue>, DatabaseError> {
    let sql = format!("SELECT {COLUMNS} FROM rank_issues ORDER BY place LIMIT ?1");
    Ok(database
        .connection()
        .prepare(&sql)?
        .query_map([n as i64], ranked)?
        .collect::<Result<_, _>>()?)
}

/// The whole ranking, by key.
pub fn all(database: &Database) -> Result<BTreeMap<IssueKey, RankedIssue>, DatabaseError> {
    Ok(top(database, i64::MAX as usize)?
        .into_iter()
        .map(|ranked| (ranked.key.clone(), ranked))
        .collect())
}

pub fn get(database: &Database, key: &IssueKey) -> Result<Option<RankedIssue>, DatabaseError> {
    let sql = format!("SELECT {COLUMNS} FROM rank_issues WHERE repository = ?1 AND number = ?2");
    Ok(database
        .connection()
        .query_row(&sql, params![key.repository, key.number as i64], ranked)
        .optional()?)
}

const COLUMNS: &str = "repository, number, place, score, parts, clauses";

#[derive(serde::Serialize, serde::Deserialize)]
struct Parts {
    matched: f64,
    factor: f64,
    /// Rankings that were stored before there was one.
    #[serde(default = "one")]
    length: f64,
    outside: Vec<String>,
}

fn one() -> f64 {
    1.0
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("numbers and texts are JSON")
}

fn ranked(row: &Row<'_>) -> rusqlite::Result<RankedIssue> {
    let parts: Parts = from_json(row, 4)?;
    let clauses: Vec<ClauseScore> = from_json(row, 5)?;
    Ok(RankedIssue {
        key: IssueKey {
            repository: row.get(0)?,
            number: row.get::<_, i64>(1)? as u64,
        },
        place: row.get::<_, i64>(2)? as u64,
        relevance: Relevance {
            score: row.get(3)?,
            matched: parts.matched,
            factor: parts.factor,
            length: parts.length,
            outside: parts.outside,
            clauses,
        },
    })
}

fn from_json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ranking_comes_back_and_a_new_one_replaces_it() {
        let mut database = Database::in_memory().expect("opens");
        let ranked = |place: u64, number: u64| RankedIssue {
            place,
            key: IssueKey {
                repository: "o/n".into(),
                number,
            },
            relevance: Relevance {
                score: 1.5 / place as f64,
                matched: 1.5,
                factor: 1.0,
                length: 0.9,
                outside: vec!["vendor: bill".into()],
                clauses: vec![ClauseScore {
                    clause: "a.b.c".parse().expect("an id"),
                    score: 2.0,
                }],
            },
        };
        replace(&mut database, &[ranked(1, 9), ranked(2, 3)]).expect("writes");
        assert_eq!(top(&database, 1).expect("reads"), [ranked(1, 9)]);
        let key = ranked(2, 3).key;
        assert_eq!(get(&database, &key).expect("reads"), Some(ranked(2, 3)));
        replace(&mut database, &[ranked(1, 3)]).expect("writes");
        assert_eq!(all(&database).expect("reads")[&key], ranked(1, 3));
        assert_eq!(top(&database, 9).expect("reads").len(), 1);
    }
}
