//! The ranking of collected issues: table `rank_issues`; and what its scores go by: table `rank_basis`. Either all
//! issues are ranked anew, or some are put among the others.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::database::{Database, DatabaseError};
use super::issues;
use crate::domain::clause::ClauseId;
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::{ClauseScore, RankedIssue, Relevance};

/// What the stored scores go by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBasis {
    /// Digest of settings and document.
    pub settings: String,
    /// Issues that it was learned from.
    pub n_issues: usize,
    /// Issues that were ranked by it since, or went.
    pub n_since: usize,
    /// JSON.
    pub basis: String,
}

/// Replaces the ranking and what it goes by.
pub fn replace(
    database: &mut Database,
    ranking: &[RankedIssue],
    basis: &StoredBasis,
) -> Result<(), DatabaseError> {
    let transaction = database.write()?;
    transaction.execute("DELETE FROM rank_issues", [])?;
    insert(
        &transaction,
        ranking.iter().map(|ranked| (ranked.place as i64, ranked)),
    )?;
    transaction.execute(
        "INSERT OR REPLACE INTO rank_basis (id, settings, n_issues, n_since, basis) VALUES (1, ?1, ?2, ?3, ?4)",
        params![
            basis.settings,
            basis.n_issues as i64,
            basis.n_since as i64,
            basis.basis
        ],
    )?;
    Ok(transaction.commit()?)
}

/// Puts some issues among the others, takes those out that are no longer collected, and counts the places anew.
pub fn merge(database: &mut Database, ranking: &[RankedIssue]) -> Result<(), DatabaseError> {
    let transaction = database.write()?;
    let n_gone = transaction.execute(
        "DELETE FROM rank_issues WHERE NOT EXISTS (SELECT 1 FROM collect_issues AS issue
         WHERE issue.repository = rank_issues.repository AND issue.number = rank_issues.number)",
        [],
    )?;
    for ranked in ranking {
        transaction
            .prepare_cached("DELETE FROM rank_issues WHERE repository = ?1 AND number = ?2")?
            .execute(params![ranked.key.repository, ranked.key.number as i64])?;
    }
    // Places are unique: all go below 0 before any comes back.
    transaction.execute("UPDATE rank_issues SET place = -place", [])?;
    let lowest: i64 = transaction.query_row(
        "SELECT coalesce(min(place), 0) FROM rank_issues",
        [],
        |row| row.get(0),
    )?;
    let below = ranking
        .iter()
        .zip(1..)
        .map(|(ranked, n): (_, i64)| (lowest - n, ranked));
    insert(&transaction, below)?;
    transaction.execute(
        "UPDATE rank_issues SET place = counted.place FROM (
             SELECT rowid AS id, row_number() OVER (ORDER BY score DESC, repository, number) AS place FROM rank_issues
         ) AS counted WHERE rank_issues.rowid = counted.id",
        [],
    )?;
    transaction.execute(
        "UPDATE rank_basis SET n_since = n_since + ?1",
        [(n_gone + ranking.len()) as i64],
    )?;
    Ok(transaction.commit()?)
}

fn insert<'a>(
    transaction: &Transaction<'_>,
    rows: impl Iterator<Item = (i64, &'a RankedIssue)>,
) -> Result<(), DatabaseError> {
    let mut insert = transaction.prepare(
        "INSERT INTO rank_issues (repository, number, place, score, parts, clauses, digest)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, coalesce(
             (SELECT digest FROM collect_issues WHERE repository = ?1 AND number = ?2), ''))",
    )?;
    for (place, ranked) in rows {
        let relevance = &ranked.relevance;
        let parts = Parts {
            matched: relevance.matched,
            factor: relevance.factor,
            length: relevance.length,
            outside: relevance.outside.clone(),
            language: ranked.language.clone(),
        };
        insert.execute(params![
            ranked.key.repository,
            ranked.key.number as i64,
            place,
            relevance.score,
            json(&parts),
            json(&relevance.clauses),
        ])?;
    }
    Ok(())
}

pub fn basis(database: &Database) -> Result<Option<StoredBasis>, DatabaseError> {
    Ok(database
        .connection()
        .query_row(
            "SELECT settings, n_issues, n_since, basis FROM rank_basis",
            [],
            |row| {
                Ok(StoredBasis {
                    settings: row.get(0)?,
                    n_issues: row.get::<_, i64>(1)? as usize,
                    n_since: row.get::<_, i64>(2)? as usize,
                    basis: row.get(3)?,
                })
            },
        )
        .optional()?)
}

/// The collected issues that are not ranked as they are now, in the order of their keys.
pub fn unranked(database: &Database) -> Result<Vec<Issue>, DatabaseError> {
    let keys: Vec<IssueKey> = database
        .connection()
        .prepare(
            "SELECT issue.repository, issue.number FROM collect_issues AS issue
             LEFT JOIN rank_issues AS ranked
                 ON ranked.repository = issue.repository AND ranked.number = issue.number
             WHERE ranked.digest IS NOT issue.digest ORDER BY 1, 2",
        )?
        .query_map([], |row| {
            Ok(IssueKey {
                repository: row.get(0)?,
                number: row.get::<_, i64>(1)? as u64,
            })
        })?
        .collect::<Result<_, _>>()?;
    let mut unranked = Vec::with_capacity(keys.len());
    for key in keys {
        unranked.extend(issues::get(database, &key)?);
    }
    Ok(unranked)
}

/// How many ranked issues there are in each language; none for those that are too short to say.
pub fn languages(database: &Database) -> Result<BTreeMap<Option<String>, usize>, DatabaseError> {
    Ok(database
        .connection()
        .prepare("SELECT parts ->> '$.language' AS language, count(*) FROM rank_issues GROUP BY language")?
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as usize)))?
        .collect::<Result<_, _>>()?)
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

/// The keys of the first `n` places.
pub fn top_keys(database: &Database, n: usize) -> Result<Vec<IssueKey>, DatabaseError> {
    Ok(database
        .connection()
        .prepare("SELECT repository, number FROM rank_issues ORDER BY place LIMIT ?1")?
        .query_map([n as i64], |row| {
            Ok(IssueKey {
                repository: row.get(0)?,
                number: row.get::<_, i64>(1)? as u64,
            })
        })?
        .collect::<Result<_, _>>()?)
}

/// The whole ranking, by key.
pub fn all(database: &Database) -> Result<BTreeMap<IssueKey, RankedIssue>, DatabaseError> {
    Ok(top(database, i64::MAX as usize)?
        .into_iter()
        .map(|ranked| (ranked.key.clone(), ranked))
        .collect())
}

/// Place and best clause of every ranked issue.
pub fn places(
    database: &Database,
) -> Result<BTreeMap<IssueKey, (u64, Option<ClauseId>)>, DatabaseError> {
    let places = database
        .connection()
        .prepare("SELECT repository, number, place, clauses ->> '$[0].clause' FROM rank_issues")?
        .query_map([], |row| {
            let key = IssueKey {
                repository: row.get(0)?,
                number: row.get::<_, i64>(1)? as u64,
            };
            let clause: Option<String> = row.get(3)?;
            // It was written from an id.
            let clause = clause.and_then(|clause| clause.parse().ok());
            Ok((key, (row.get::<_, i64>(2)? as u64, clause)))
        })?
        .collect::<Result<_, _>>()?;
    Ok(places)
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
    #[serde(default)]
    language: Option<String>,
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
        language: parts.language,
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

    fn ranked(place: u64, number: u64) -> RankedIssue {
        RankedIssue {
            place,
            key: IssueKey {
                repository: "o/n".into(),
                number,
            },
            language: (number == 3).then(|| "cmn".into()),
            relevance: Relevance {
                score: 12.0 / place as f64,
                matched: 1.5,
                factor: 1.0,
                length: 0.9,
                outside: vec!["vendor: bill".into()],
                clauses: vec![ClauseScore {
                    clause: "a.b.c".parse().expect("an id"),
                    score: 2.0,
                }],
            },
        }
    }

    fn known() -> StoredBasis {
        StoredBasis {
            settings: "a".into(),
            n_issues: 2,
            n_since: 0,
            basis: "{}".into(),
        }
    }

    #[test]
    fn a_ranking_comes_back_and_a_new_one_replaces_it() {
        let mut database = Database::in_memory().expect("opens");
        replace(&mut database, &[ranked(1, 9), ranked(2, 3)], &known()).expect("writes");
        assert_eq!(top(&database, 1).expect("reads"), [ranked(1, 9)]);
        assert_eq!(top_keys(&database, 1).expect("reads"), [ranked(1, 9).key]);
        let key = ranked(2, 3).key;
        assert_eq!(get(&database, &key).expect("reads"), Some(ranked(2, 3)));
        let clause = "a.b.c".parse().ok();
        assert_eq!(places(&database).expect("reads")[&key], (2, clause));
        let languages = languages(&database).expect("reads");
        assert_eq!(
            languages,
            BTreeMap::from([(None, 1), (Some("cmn".to_owned()), 1)])
        );
        replace(&mut database, &[ranked(1, 3)], &known()).expect("writes");
        assert_eq!(all(&database).expect("reads")[&key], ranked(1, 3));
        assert_eq!(top(&database, 9).expect("reads").len(), 1);
        assert_eq!(basis(&database).expect("reads"), Some(known()));
    }

    #[test]
    fn some_issues_are_put_among_the_others() {
        let mut database = Database::in_memory().expect("opens");
        let issue = |number: u64, title: &str| Issue {
            key: ranked(1, number).key,
            url: String::new(),
            title: title.into(),
            body: String::new(),
            labels: Vec::new(),
            state: None,
            created_at: None,
            updated_at: None,
            n_comments: None,
        };
        let store = |database: &mut Database, issue: &Issue| {
            let transaction = database.write().expect("begins");
            issues::store(&transaction, issue).expect("stores");
            transaction.commit().expect("commits");
        };
        for number in [1, 2] {
            store(&mut database, &issue(number, "a"));
        }
        // 9 is ranked and no longer collected.
        replace(
            &mut database,
            &[ranked(1, 9), ranked(2, 1), ranked(4, 2)],
            &known(),
        )
        .expect("writes");
        assert_eq!(unranked(&database).expect("reads"), []);
        store(&mut database, &issue(2, "b"));
        store(&mut database, &issue(5, "c"));
        let numbers = |issues: Vec<Issue>| -> Vec<u64> {
            issues.iter().map(|issue| issue.key.number).collect()
        };
        assert_eq!(numbers(unranked(&database).expect("reads")), [2, 5]);
        // The scores of 12 and 6 come before and beside that of issue 1.
        merge(&mut database, &[ranked(1, 5), ranked(2, 2)]).expect("writes");
        assert_eq!(unranked(&database).expect("reads"), []);
        let places: Vec<(u64, u64)> = top(&database, 9)
            .expect("reads")
            .iter()
            .map(|ranked| (ranked.place, ranked.key.number))
            .collect();
        assert_eq!(places, [(1, 5), (2, 1), (3, 2)]);
        let since = basis(&database).expect("reads").expect("is there").n_since;
        assert_eq!(since, 3, "two new ones, and one that went");
    }
}
