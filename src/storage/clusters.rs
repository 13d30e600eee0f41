//! Clusters with the background that they were made before, and what the filter said about them: tables
//! `cluster_clusters`, `cluster_members`, `cluster_background`, `filter_clusters`.
//! Each stage replaces its rows as a whole; new clusters take the outcomes of the old ones with them.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{OptionalExtension, params};

use super::database::{Database, DatabaseError};
use crate::domain::issue::IssueKey;
use crate::domain::mining::{Cluster, DropRule, Outcome, Term};

/// Replaces all clusters, whose order is kept, and their background, JSON.
pub fn replace(
    database: &mut Database,
    clusters: &[Cluster],
    background: &str,
) -> Result<(), DatabaseError> {
    let transaction = database.write()?;
    // Members first: for each cluster that goes SQLite looks through all that are there.
    transaction.execute("DELETE FROM cluster_members", [])?;
    transaction.execute("DELETE FROM cluster_clusters", [])?;
    transaction.execute(
        "INSERT OR REPLACE INTO cluster_background (id, background) VALUES (1, ?1)",
        [background],
    )?;
    {
        let mut insert = transaction.prepare(
            "INSERT INTO cluster_clusters (id, place, label, effect, clause, representative, terms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let mut insert_member = transaction.prepare(
            "INSERT INTO cluster_members (repository, number, cluster) VALUES (?1, ?2, ?3)",
        )?;
        for (place, cluster) in (1i64..).zip(clusters) {
            insert.execute(params![
                cluster.id,
                place,
                cluster.label,
                cluster.effect,
                cluster.clause.as_ref().map(|clause| clause.as_str()),
                cluster.representative.to_string(),
                terms_text(&cluster.terms),
            ])?;
            for member in &cluster.members {
                insert_member.execute(params![
                    member.repository,
                    member.number as i64,
                    cluster.id
                ])?;
            }
        }
    }
    Ok(transaction.commit()?)
}

/// The background of the clusters; none before there are any.
pub fn background(database: &Database) -> Result<Option<String>, DatabaseError> {
    let sql = "SELECT background FROM cluster_background";
    let found = database.connection().query_row(sql, [], |row| row.get(0));
    Ok(found.optional()?)
}

/// All clusters in their order.
pub fn all(database: &Database) -> Result<Vec<Cluster>, DatabaseError> {
    let mut members: BTreeMap<String, Vec<IssueKey>> = BTreeMap::new();
    let mut statement = database.connection().prepare(
        "SELECT cluster, repository, number FROM cluster_members ORDER BY repository, number",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        members.entry(row.get(0)?).or_default().push(IssueKey {
            repository: row.get(1)?,
            number: row.get::<_, i64>(2)? as u64,
        });
    }
    let mut statement = database.connection().prepare(
        "SELECT id, label, clause, representative, terms, effect FROM cluster_clusters ORDER BY place",
    )?;
    let clusters = statement.query_map([], |row| {
        let id: String = row.get(0)?;
        let clause: Option<String> = row.get(2)?;
        let representative: String = row.get(3)?;
        let terms: String = row.get(4)?;
        Ok(Cluster {
            label: row.get(1)?,
            effect: row.get(5)?,
            clause: clause
                .map(|clause| clause.parse())
                .transpose()
                .map_err(|message| fault(2, message))?,
            representative: representative
                .parse()
                .map_err(|message| fault(3, message))?,
            members: members.remove(&id).unwrap_or_default(),
            terms: terms.split_whitespace().map(term).collect(),
            id,
        })
    })?;
    Ok(clusters.collect::<Result<_, _>>()?)
}

/// Replaces what the filter said.
pub fn replace_outcomes(
    database: &mut Database,
    outcomes: &[Outcome],
) -> Result<(), DatabaseError> {
    let transaction = database.write()?;
    transaction.execute("DELETE FROM filter_clusters", [])?;
    {
        let mut insert = transaction.prepare(
            "INSERT INTO filter_clusters (cluster, kept, rule, counterpart, reason)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        for outcome in outcomes {
            insert.execute(params![
                outcome.cluster,
                outcome.kept,
                outcome.rule.map(DropRule::as_str),
                outcome.counterpart,
                outcome.reason
            ])?;
        }
    }
    Ok(transaction.commit()?)
}

/// What the filter said, in the order of the clusters; empty before it ran.
pub fn outcomes(database: &Database) -> Result<Vec<Outcome>, DatabaseError> {
    let mut statement = database.connection().prepare(
        "SELECT cluster, kept, rule, counterpart, reason
         FROM filter_clusters JOIN cluster_clusters ON id = cluster ORDER BY place",
    )?;
    let outcomes = statement.query_map([], |row| {
        let rule: Option<String> = row.get(2)?;
        Ok(Outcome {
            cluster: row.get(0)?,
            kept: row.get(1)?,
            rule: rule
                .map(|rule| rule.parse())
                .transpose()
                .map_err(|message| fault(2, message))?,
            counterpart: row.get(3)?,
            reason: row.get(4)?,
        })
    })?;
    Ok(outcomes.collect::<Result<_, _>>()?)
}

/// The issues that a cluster brings: its members, and those of clusters that were dropped since it has their effect and
/// more material.
pub fn material(database: &Database, cluster: &Cluster) -> Result<Vec<IssueKey>, DatabaseError> {
    let merged: BTreeSet<String> = outcomes(database)?
        .into_iter()
        .filter(|outcome| {
            outcome.rule == Some(DropRule::Overlap)
                && outcome.counterpart.as_deref() == Some(cluster.id.as_str())
        })
        .map(|outcome| outcome.cluster)
        .collect();
    let others = all(database)?
        .into_iter()
        .filter(|other| merged.contains(&other.id));
    let others = others.flat_map(|other| other.members);
    Ok(cluster.members.iter().cloned().chain(others).collect())
}

/// The clusters that the filter kept, in their order: what waits for approval.
pub fn queue(database: &Database) -> Result<Vec<Cluster>, DatabaseError> {
    let kept: BTreeMap<String, bool> = outcomes(database)?
        .into_iter()
        .map(|outcome| (outcome.cluster, outcome.kept))
        .collect();
    let mut clusters = all(database)?;
    clusters.retain(|cluster| kept.get(&cluster.id) == Some(&true));
    Ok(clusters)
}

fn fault(column: usize, message: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, message.into())
}

/// `term:word term:word`; neither holds a colon or a blank.
fn terms_text(terms: &[Term]) -> String {
    let pairs: Vec<String> = terms
        .iter()
        .map(|term| format!("{}:{}", term.term, term.word))
        .collect();
    pairs.join(" ")
}

fn term(pair: &str) -> Term {
    let (term, word) = pair.split_once(':').unwrap_or((pair, pair));
    Term {
        term: term.to_owned(),
        word: word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(id: &str, numbers: &[u64]) -> Cluster {
        let key = |number: &u64| IssueKey {
            repository: "o/n".into(),
            number: *number,
        };
        Cluster {
            id: id.into(),
            label: format!("title of {id}"),
            effect: format!("effect of {id}"),
            clause: (id != "b").then(|| "a.b.c".parse().expect("an id")),
            representative: key(&numbers[0]),
            members: numbers.iter().map(key).collect(),
            terms: vec![term("deny:denied"), term("rul:rules")],
        }
    }

    #[test]
    fn clusters_come_back_in_their_order_and_kept_ones_queue() {
        let mut database = Database::in_memory().expect("opens");
        let made = [
            cluster("z", &[3, 5]),
            cluster("b", &[1]),
            cluster("c", &[2]),
        ];
        assert_eq!(background(&database).expect("reads"), None);
        replace(&mut database, &made, "{}").expect("writes");
        let kept = background(&database).expect("reads");
        assert_eq!(kept.as_deref(), Some("{}"));
        assert_eq!(all(&database).expect("reads"), made);
        assert!(queue(&database).expect("reads").is_empty());
        let outcome = |cluster: &str, kept: bool| Outcome {
            cluster: cluster.into(),
            kept,
            rule: (!kept).then_some(DropRule::Overlap),
            counterpart: (!kept).then(|| "z".into()),
            reason: "r".into(),
        };
        let outcomes_made = [outcome("z", true), outcome("b", false), outcome("c", true)];
        replace_outcomes(&mut database, &outcomes_made).expect("writes");
        assert_eq!(outcomes(&database).expect("reads"), outcomes_made);
        let queued: Vec<String> = queue(&database)
            .expect("reads")
            .into_iter()
            .map(|cluster| cluster.id)
            .collect();
        assert_eq!(queued, ["z", "c"]);
        let numbers = |cluster: &Cluster| -> Vec<u64> {
            let keys = material(&database, cluster).expect("reads").into_iter();
            keys.map(|key| key.number).collect()
        };
        assert_eq!(numbers(&made[0]), [3, 5, 1]);
        assert_eq!(numbers(&made[2]), [2]);
        replace(&mut database, &made[..1], "{}").expect("writes");
        assert!(outcomes(&database).expect("reads").is_empty());
    }
}
