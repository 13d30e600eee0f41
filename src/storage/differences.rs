//! Differences between candidates and targets that follow from a clause: table `compare_differences`.
//!
//! The rows of one candidate and target are replaced as a whole; one difference can stand there for several candidates.

use rusqlite::{Row, params};

use super::database::{Database, DatabaseError};
use crate::domain::clause::ClauseId;
use crate::domain::difference::{Difference, Sight, Trace};

/// A stored difference with the candidates that have it, in the order of their names.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub difference: Difference,
    pub target: String,
    pub candidates: Vec<String>,
}

/// Replaces what is stored for this pair, and returns how many ids no candidate had before. Differences without a
/// trace are left out.
pub fn replace(
    database: &mut Database,
    candidate: &str,
    target: &str,
    differences: &[Difference],
) -> Result<usize, DatabaseError> {
    let transaction = database.write()?;
    let mut n_new = 0;
    {
        let mut known = transaction.prepare("SELECT 1 FROM compare_differences WHERE id = ?1")?;
        for difference in traced(differences) {
            n_new += usize::from(!known.exists([&difference.id])?);
        }
        transaction.execute(
            "DELETE FROM compare_differences WHERE candidate = ?1 AND target = ?2",
            [candidate, target],
        )?;
        let mut insert = transaction.prepare(
            "INSERT INTO compare_differences
             (id, candidate, target, module, kind, side, title, target_place, target_shown,
              candidate_place, candidate_shown, clause, score, others)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?;
        for difference in traced(differences) {
            let trace = difference
                .trace
                .as_ref()
                .expect("only traced ones are here");
            let part = |sight: &Option<Sight>| match sight {
                Some(sight) => (Some(sight.place.clone()), Some(sight.shown.clone())),
                None => (None, None),
            };
            let (target_place, target_shown) = part(&difference.target);
            let (candidate_place, candidate_shown) = part(&difference.candidate);
            insert.execute(params![
                difference.id,
                candidate,
                target,
                difference.module,
                difference.kind.as_str(),
                difference.side.as_str(),
                difference.title,
                target_place,
                target_shown,
                candidate_place,
                candidate_shown,
                trace.clause.as_str(),
                trace.score,
                others(trace),
            ])?;
        }
    }
    transaction.commit()?;
    Ok(n_new)
}

fn traced(differences: &[Difference]) -> impl Iterator<Item = &Difference> {
    differences
        .iter()
        .filter(|difference| difference.trace.is_some())
}

/// All stored differences, the best traced first, each once.
pub fn all(database: &Database) -> Result<Vec<Stored>, DatabaseError> {
    let mut statement = database.connection().prepare(
        "SELECT id, candidate, target, module, kind, side, title, target_place, target_shown,
                candidate_place, candidate_shown, clause, score, others
         FROM compare_differences ORDER BY score DESC, id, candidate",
    )?;
    let mut rows = statement.query([])?;
    let mut all: Vec<Stored> = Vec::new();
    while let Some(row) = rows.next()? {
        let candidate: String = row.get(1)?;
        let id: String = row.get(0)?;
        match all
            .iter_mut()
            .rev()
            .find(|stored| stored.difference.id == id)
        {
            Some(stored) => stored.candidates.push(candidate),
            None => all.push(Stored {
                difference: difference(row)?,
                target: row.get(2)?,
                candidates: vec![candidate],
            }),
        }
    }
    Ok(all)
}

fn difference(row: &Row<'_>) -> rusqlite::Result<Difference> {
    let sight = |place: usize| -> rusqlite::Result<Option<Sight>> {
        Ok(match (row.get(place)?, row.get(place + 1)?) {
            (Some(place), Some(shown)) => Some(Sight { place, shown }),
            _ => None,
        })
    };
    Ok(Difference {
        id: row.get(0)?,
        module: row.get(3)?,
        kind: parsed(row, 4)?,
        side: parsed(row, 5)?,
        title: row.get(6)?,
        target: sight(7)?,
        candidate: sight(9)?,
        trace: Some(Trace {
            clause: parsed(row, 11)?,
            score: row.get(12)?,
            others: others_of(row, 13)?,
        }),
    })
}

fn others(trace: &Trace) -> String {
    let ids: Vec<&str> = trace.others.iter().map(|id| id.as_str()).collect();
    ids.join(" ")
}

fn others_of(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<ClauseId>> {
    let text: String = row.get(column)?;
    text.split_whitespace()
        .map(|id| id.parse().map_err(|message| refused(column, message)))
        .collect()
}

fn parsed<T: std::str::FromStr<Err = String>>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|message| refused(column, message))
}

fn refused(column: usize, message: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, message.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::difference::{FactKind, Side};

    fn sample(id: &str, score: Option<f64>) -> Difference {
        Difference {
            id: id.to_owned(),
            module: "tools.read".to_owned(),
            kind: FactKind::Error,
            side: Side::Missing,
            title: "t".to_owned(),
            target: Some(Sight {
                place: "a.py:3".to_owned(),
                shown: "no such file".to_owned(),
            }),
            candidate: None,
            trace: score.map(|score| Trace {
                clause: "tools.read.missing".parse().expect("an id"),
                score,
                others: vec!["tools.read.binary".parse().expect("an id")],
            }),
        }
    }

    #[test]
    fn a_pair_is_replaced_and_what_candidates_share_stands_once() {
        let mut database = Database::in_memory().expect("opens");
        let found = [
            sample("k/a", Some(0.5)),
            sample("k/b", Some(0.9)),
            sample("k/c", None),
        ];
        assert_eq!(replace(&mut database, "x", "k", &found).expect("writes"), 2);
        assert_eq!(
            replace(&mut database, "y", "k", &found[..1]).expect("writes"),
            0
        );
        let all_ids = |database: &Database| -> Vec<(String, Vec<String>)> {
            all(database)
                .expect("reads")
                .into_iter()
                .map(|stored| (stored.difference.id, stored.candidates))
                .collect()
        };
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            all_ids(&database),
            [
                ("k/b".to_owned(), names(&["x"])),
                ("k/a".to_owned(), names(&["x", "y"]))
            ]
        );
        assert_eq!(all(&database).expect("reads")[0].difference, found[1]);
        assert_eq!(replace(&mut database, "x", "k", &[]).expect("writes"), 0);
        assert_eq!(all_ids(&database), [("k/a".to_owned(), names(&["y"]))]);
    }
}
