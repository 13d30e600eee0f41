//! Clusters with the background that they were made before, and what the filter said about them: tables
//! `cluster_clusters`, `cluster_members`, `cluster_background`, `filter_clusters`.
//! `cluster` replaces what it made anew, `filter` its rows as a whole; when clusters are replaced all outcomes go.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{OptionalExtension, Transaction, params};

use super::database::{Database, DatabaseError};
use crate::domain::issue::IssueKey;
use crate::domain::mining::{Cluster, DropRule, Outcome, Term};

/// What a run of `cluster` made anew.
pub struct Made<'a> {
    pub clusters: &'a [Cluster],
    /// Of their members.
    pub vectors: &'a BTreeMap<IssueKey, Vector>,
    /// JSON.
    pub background: &'a str,
}

/// Dimensions that all issues share, with their values.
pub type Vector = Vec<(u32, f32)>;

/// Puts what was made in the place of all clusters but those that stay. The biggest clusters come first. What stays was
/// read before the transaction began: who calls this sees to it that nobody stored clusters since.
pub fn replace(
    transaction: &Transaction<'_>,
    staying: &[Cluster],
    made: &Made<'_>,
) -> Result<(), DatabaseError> {
    transaction.execute("DELETE FROM filter_clusters", [])?;
    let staying: BTreeSet<&str> = staying.iter().map(|cluster| cluster.id.as_str()).collect();
    let stored: Vec<String> = transaction
        .prepare("SELECT id FROM cluster_clusters")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for id in stored.iter().filter(|id| !staying.contains(id.as_str())) {
        transaction
            .prepare_cached("DELETE FROM cluster_clusters WHERE id = ?1")?
            .execute([id])?;
    }
    transaction.execute(
        "INSERT OR REPLACE INTO cluster_background (id, background) VALUES (1, ?1)",
        [made.background],
    )?;
    // Places are unique: all go below 0 before any comes back.
    transaction.execute("UPDATE cluster_clusters SET place = -place", [])?;
    insert(transaction, made)?;
    transaction.execute(
        "UPDATE cluster_clusters SET place = counted.place FROM (
             SELECT id, row_number() OVER (ORDER BY n_members DESC, id) AS place
             FROM cluster_clusters JOIN (
                 SELECT cluster, count(*) AS n_members FROM cluster_members GROUP BY cluster
             ) ON cluster = id
         ) AS counted WHERE counted.id = cluster_clusters.id",
        [],
    )?;
    Ok(())
}

fn insert(transaction: &Transaction<'_>, made: &Made<'_>) -> Result<(), DatabaseError> {
    let lowest: i64 = transaction.query_row(
        "SELECT coalesce(min(place), 0) FROM cluster_clusters",
        [],
        |row| row.get(0),
    )?;
    let mut insert = transaction.prepare(
        "INSERT INTO cluster_clusters (id, place, label, effect, clause, representative, terms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut insert_member = transaction.prepare(
        "INSERT INTO cluster_members (repository, number, cluster, vector, digest)
         VALUES (?1, ?2, ?3, ?4, coalesce(
             (SELECT digest FROM collect_issues WHERE repository = ?1 AND number = ?2), ''))",
    )?;
    for (n, cluster) in (1i64..).zip(made.clusters) {
        insert.execute(params![
            cluster.id,
            lowest - n,
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
                cluster.id,
                made.vectors
                    .get(member)
                    .map(vector_bytes)
                    .unwrap_or_default(),
            ])?;
        }
    }
    Ok(())
}

/// The vectors of the clustered issues that say what they said when they were clustered.
pub fn vectors(database: &Database) -> Result<BTreeMap<IssueKey, Vector>, DatabaseError> {
    Ok(database
        .connection()
        .prepare(
            "SELECT repository, number, vector
             FROM cluster_members JOIN collect_issues USING (repository, number, digest)",
        )?
        .query_map([], |row| {
            let key = IssueKey {
                repository: row.get(0)?,
                number: row.get::<_, i64>(1)? as u64,
            };
            let bytes = row.get_ref(2)?.as_bytes()?;
            Ok((key, vector(bytes)))
        })?
        .collect::<Result<_, _>>()?)
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
        "SELECT cluster, repository, number FROM cluster_members ORDER BY cluster, repository, number",
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

fn vector_bytes(vector: &Vector) -> Vec<u8> {
    let pairs = vector.iter();
    pairs
        .flat_map(|(dim, value)| [dim.to_le_bytes(), value.to_le_bytes()])
        .flatten()
        .collect()
}

fn vector(bytes: &[u8]) -> Vector {
    let word = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).expect("there are eight bytes");
    let pairs = bytes.chunks_exact(8).map(|pair| {
        let (dim, value) = pair.split_at(4);
        (
            u32::from_le_bytes(word(dim)),
            f32::from_le_bytes(word(value)),
        )
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::super::issues;
    use super::*;
    use crate::domain::issue::Issue;

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
        put(&mut database, &[], &made);
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
        // Two stay, one grows past the others, and one is new.
        let grown = [cluster("c", &[2, 7, 9]), cluster("a", &[4])];
        put(&mut database, &made[..2], &grown);
        assert!(outcomes(&database).expect("reads").is_empty());
        let [z, b, _] = made;
        let [c, a] = grown;
        assert_eq!(all(&database).expect("reads"), [c, z, a, b]);
    }

    fn put(database: &mut Database, staying: &[Cluster], clusters: &[Cluster]) {
        let members = clusters.iter().flat_map(|cluster| &cluster.members);
        let made = Made {
            clusters,
            vectors: &members.map(|key| (key.clone(), vec![(7, 0.5)])).collect(),
            background: "{}",
        };
        let transaction = database.write().expect("begins");
        replace(&transaction, staying, &made).expect("writes");
        transaction.commit().expect("commits");
    }

    #[test]
    fn a_vector_holds_as_long_as_its_issue_says_the_same() {
        let mut database = Database::in_memory().expect("opens");
        let say = |database: &mut Database, number: u64, title: &str| {
            let transaction = database.write().expect("begins");
            let issue = Issue {
                key: cluster("z", &[number]).representative,
                url: String::new(),
                title: title.into(),
                body: String::new(),
                labels: Vec::new(),
                state: None,
                created_at: None,
                updated_at: None,
                n_comments: None,
            };
            issues::store(&transaction, &issue).expect("stores");
            transaction.commit().expect("commits");
        };
        for number in [3, 5] {
            say(&mut database, number, "a");
        }
        // 4 is not collected.
        put(&mut database, &[], &[cluster("z", &[3, 4, 5])]);
        let numbers = |database: &Database| -> Vec<u64> {
            let vectors = vectors(database).expect("reads");
            assert!(vectors.values().all(|vector| *vector == [(7, 0.5)]));
            vectors.keys().map(|key| key.number).collect()
        };
        assert_eq!(numbers(&database), [3, 5]);
        say(&mut database, 3, "b");
        assert_eq!(numbers(&database), [5]);
    }
}
