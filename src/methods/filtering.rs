//! Which clusters can become a new case. Every cluster gets an outcome with its reason; nothing is removed.
//!
//! In this order: what lies outside of the document or cannot be asserted, what matches no clause, what a case covers
//! already, and of two clusters with nearly the same effect the one with less material.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::domain::clause::ClauseId;
use crate::domain::issue::IssueKey;
use crate::domain::mining::{Cluster, DropRule, Outcome, Term};

/// `pipeline/filter.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Topics of `pipeline/topics.toml` that no deterministic assertion can be made of.
    pub topics: Vec<DropRule>,
    /// Share of a cluster's issues that must speak of such a topic.
    pub topic_share: f64,
    /// Words of a topic in the body that weigh as much as one in the title, if one of them is telling for the cluster.
    pub n_body_words: usize,
    /// Share of terms from which two clusters on one clause have the same effect.
    pub overlap: f64,
    /// Share of terms from which a case on the clause covers a cluster.
    pub covered: f64,
}

/// Clusters that a reviewer restored, which stay whatever the rules say: who and why.
pub type Restored = BTreeMap<String, String>;

/// A cluster with what its issues hold.
pub struct Candidate<'a> {
    pub cluster: &'a Cluster,
    /// One entry for each member.
    pub members: Vec<Member>,
}

/// Words of topics in an issue, and how much material it brings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member {
    pub title: BTreeSet<Outside>,
    pub body: BTreeSet<Outside>,
    pub n_terms: usize,
    /// Whether it has a fenced block: a log, a command, a setting.
    pub has_code: bool,
}

/// A word of a topic that lies outside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outside {
    pub topic: DropRule,
    pub term: Term,
}

/// What the filter has to know of a case.
pub struct CaseFacts {
    pub id: String,
    pub clause: ClauseId,
    /// Of its title, its purpose and the phenomenon that it came from.
    pub terms: BTreeSet<String>,
    pub sources: BTreeSet<String>,
}

/// One outcome for each candidate, in their order.
pub fn filter(
    candidates: &[Candidate<'_>],
    cases: &[CaseFacts],
    restored: &Restored,
    settings: &Settings,
) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = candidates
        .iter()
        .map(|candidate| {
            kept_by_hand(candidate, restored)
                .or_else(|| outside(candidate, settings))
                .or_else(|| without_clause(candidate))
                .or_else(|| covered(candidate, cases, settings))
                .unwrap_or_else(|| Outcome {
                    cluster: candidate.cluster.id.clone(),
                    kept: true,
                    rule: None,
                    counterpart: None,
                    reason: "no rule drops it".to_owned(),
                })
        })
        .collect();
    overlap(candidates, restored, settings, &mut outcomes);
    outcomes
}

fn dropped(
    cluster: &Cluster,
    rule: DropRule,
    counterpart: Option<String>,
    reason: String,
) -> Outcome {
    Outcome {
        cluster: cluster.id.clone(),
        kept: false,
        rule: Some(rule),
        counterpart,
        reason,
    }
}

fn kept_by_hand(candidate: &Candidate<'_>, restored: &Restored) -> Option<Outcome> {
    let id = &candidate.cluster.id;
    let who_and_why = restored.get(id)?;
    Some(Outcome {
        cluster: id.clone(),
        kept: true,
        rule: None,
        counterpart: None,
        reason: format!("restored by {who_and_why}"),
    })
}

/// Drops a cluster when enough of its issues speak of one topic.
fn outside(candidate: &Candidate<'_>, settings: &Settings) -> Option<Outcome> {
    for &topic in &settings.topics {
        let mut words = BTreeSet::new();
        let mut n_speaking = 0;
        let is_telling =
            |found: &&Term| candidate.cluster.terms.iter().any(|t| t.term == found.term);
        for member in &candidate.members {
            let of_topic = |found: &BTreeSet<Outside>| -> BTreeSet<Term> {
                found
                    .iter()
                    .filter(|outside| outside.topic == topic)
                    .map(|outside| outside.term.clone())
                    .collect()
            };
            let (title, body) = (of_topic(&member.title), of_topic(&member.body));
            let enough = body.len() >= settings.n_body_words && body.iter().any(|t| is_telling(&t));
            if !title.is_empty() || enough {
                n_speaking += 1;
                words.extend(title.into_iter().chain(body).map(|found| found.word));
            }
        }
        let n = candidate.members.len();
        if n > 0 && n_speaking as f64 >= settings.topic_share * n as f64 && n_speaking > 0 {
            let words: Vec<String> = words.into_iter().collect();
            return Some(dropped(
                candidate.cluster,
                topic,
                None,
                format!(
                    "{n_speaking} of {n} issues speak of it: {}",
                    words.join(", ")
                ),
            ));
        }
    }
    None
}

fn without_clause(candidate: &Candidate<'_>) -> Option<Outcome> {
    candidate.cluster.clause.is_none().then(|| {
        dropped(
            candidate.cluster,
            DropRule::NoClause,
            None,
            "no clause shares a term with its issues".to_owned(),
        )
    })
}

fn covered(candidate: &Candidate<'_>, cases: &[CaseFacts], settings: &Settings) -> Option<Outcome> {
    let cluster = candidate.cluster;
    let members: BTreeSet<String> = cluster.members.iter().map(IssueKey::to_string).collect();
    for case in cases {
        let same: Vec<&String> = members.intersection(&case.sources).collect();
        if let Some(source) = same.first() {
            return Some(dropped(
                cluster,
                DropRule::Covered,
                Some(case.id.clone()),
                format!("the case names {source} as its source"),
            ));
        }
    }
    let terms = telling(cluster);
    let on_clause = cases
        .iter()
        .filter(|case| Some(&case.clause) == cluster.clause.as_ref());
    let (case, share, common) = on_clause
        .map(|case| {
            let of_case = case.terms.iter().map(String::as_str).collect();
            let (share, common) = shared(&terms, &of_case);
            (case, share, common)
        })
        .max_by(|a, b| a.1.total_cmp(&b.1).then_with(|| b.0.id.cmp(&a.0.id)))?;
    (share >= settings.covered).then(|| {
        dropped(
            cluster,
            DropRule::Covered,
            Some(case.id.clone()),
            format!(
                "same clause {}, and {share:.2} of the terms: {}",
                case.clause,
                common.join(", ")
            ),
        )
    })
}

/// Of two kept clusters on one clause with too close effects the one with less material goes.
fn overlap(
    candidates: &[Candidate<'_>],
    restored: &Restored,
    settings: &Settings,
    outcomes: &mut [Outcome],
) {
    let mut of_clause: BTreeMap<&ClauseId, Vec<usize>> = BTreeMap::new();
    for (idx, candidate) in candidates.iter().enumerate() {
        if let (true, Some(clause)) = (outcomes[idx].kept, &candidate.cluster.clause) {
            of_clause.entry(clause).or_default().push(idx);
        }
    }
    for (clause, mut same) in of_clause {
        // The most complete first, so that the strongest of a group stays and the others yield to it.
        same.sort_by(|a, b| {
            completeness(&candidates[*b])
                .cmp(&completeness(&candidates[*a]))
                .then_with(|| candidates[*a].cluster.id.cmp(&candidates[*b].cluster.id))
        });
        let mut kept: Vec<usize> = Vec::new();
        for idx in same {
            let terms = telling(candidates[idx].cluster);
            let closest = kept
                .iter()
                .map(|other| {
                    let others = telling(candidates[*other].cluster).into_keys().collect();
                    let (share, common) = shared(&terms, &others);
                    (*other, share, common)
                })
                .find(|(_, share, _)| *share >= settings.overlap);
            match closest {
                Some((other, share, common))
                    if !restored.contains_key(&candidates[idx].cluster.id) =>
                {
                    let reason = format!(
                        "same clause {clause}, {share:.2} of the terms ({}), and less material: {} against {}",
                        common.join(", "),
                        material(&candidates[idx]),
                        material(&candidates[other]),
                    );
                    outcomes[idx] = dropped(
                        candidates[idx].cluster,
                        DropRule::Overlap,
                        Some(candidates[other].cluster.id.clone()),
                        reason,
                    );
                }
                _ => kept.push(idx),
            }
        }
    }
}

/// The telling terms of a cluster, each with its word.
fn telling(cluster: &Cluster) -> BTreeMap<&str, &str> {
    let pairs = cluster.terms.iter();
    pairs
        .map(|term| (term.term.as_str(), term.word.as_str()))
        .collect()
}

/// The share of the smaller set that both have, and the words for what they have in common.
fn shared<'a>(a: &BTreeMap<&'a str, &'a str>, b: &BTreeSet<&str>) -> (f64, Vec<&'a str>) {
    let common: Vec<&str> = a
        .iter()
        .filter(|(term, _)| b.contains(*term))
        .map(|(_, word)| *word)
        .collect();
    let smaller = a.len().min(b.len());
    let share = if smaller == 0 {
        0.0
    } else {
        common.len() as f64 / smaller as f64
    };
    (share, common)
}

/// Issues, issues with a fenced block, terms: in this order.
fn completeness(candidate: &Candidate<'_>) -> (usize, usize, usize) {
    (
        candidate.members.len(),
        candidate
            .members
            .iter()
            .filter(|member| member.has_code)
            .count(),
        candidate.members.iter().map(|member| member.n_terms).sum(),
    )
}

fn material(candidate: &Candidate<'_>) -> String {
    let (n_issues, n_code, n_terms) = completeness(candidate);
    format!("{n_issues} issues, {n_code} with logs, {n_terms} terms")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            topics: DropRule::ALL
                .into_iter()
                .filter(|rule| rule.is_topic())
                .collect(),
            topic_share: 0.5,
            n_body_words: 2,
            overlap: 0.5,
            covered: 0.5,
        }
    }

    fn cluster(id: &str, clause: Option<&str>, terms: &str, numbers: &[u64]) -> Cluster {
        let key = |number: &u64| IssueKey {
            repository: "o/n".into(),
            number: *number,
        };
        Cluster {
            id: id.into(),
            label: id.into(),
            effect: String::new(),
            clause: clause.map(|clause| clause.parse().expect("an id")),
            representative: key(&numbers[0]),
            members: numbers.iter().map(key).collect(),
            terms: terms.split(' ').map(term).collect(),
        }
    }

    fn term(text: &str) -> Term {
        Term {
            term: text.into(),
            word: format!("{text}s"),
        }
    }

    fn plain(cluster: &Cluster) -> Candidate<'_> {
        Candidate {
            cluster,
            members: vec![Member::default(); cluster.members.len()],
        }
    }

    fn rules(outcomes: &[Outcome]) -> Vec<Option<&str>> {
        outcomes
            .iter()
            .map(|outcome| outcome.rule.map(DropRule::as_str))
            .collect()
    }

    fn filtered(candidates: &[Candidate<'_>], cases: &[CaseFacts]) -> Vec<Outcome> {
        filter(candidates, cases, &Restored::new(), &settings())
    }

    #[test]
    fn a_topic_drops_a_cluster_when_enough_issues_speak_of_it() {
        let cluster = cluster("a", Some("a.b.c"), "x slow", &[1, 2]);
        let words = |words: &[(&str, &str)]| {
            words
                .iter()
                .map(|(topic, word)| Outside {
                    topic: topic.parse().expect("a rule"),
                    term: term(word),
                })
                .collect::<BTreeSet<_>>()
        };
        let check = |title: &[(&str, &str)], body: &[(&str, &str)], expected: Option<&str>| {
            let mut candidate = plain(&cluster);
            candidate.members[0].title = words(title);
            candidate.members[0].body = words(body);
            let found = filtered(&[candidate], &[]);
            assert_eq!(rules(&found), [expected], "{title:?} {body:?}");
        };
        for rule in DropRule::ALL.into_iter().filter(|rule| rule.is_topic()) {
            let topic = rule.as_str();
            check(&[(topic, "bill")], &[], Some(topic));
        }
        check(&[], &[("vendor", "bill")], None);
        check(&[], &[("timing", "slow")], None);
        check(
            &[],
            &[("timing", "slow"), ("timing", "lag")],
            Some("timing"),
        );
        check(&[], &[("timing", "slow"), ("vendor", "bill")], None);
        // Words in passing: none of them tells this cluster from others.
        check(&[], &[("timing", "lag"), ("timing", "cpu")], None);
    }

    #[test]
    fn a_case_covers_by_its_source_or_by_clause_and_terms() {
        let cluster = cluster("a", Some("a.b.c"), "link outside read secret", &[1, 2]);
        let check = |clause: &str, terms: &str, source: &str, expected: Option<&str>| {
            let case = CaseFacts {
                id: "permissions/x".into(),
                clause: clause.parse().expect("an id"),
                terms: terms.split(' ').map(str::to_owned).collect(),
                sources: BTreeSet::from([source.to_owned()]),
            };
            let found = filtered(&[plain(&cluster)], &[case]);
            assert_eq!(rules(&found), [expected], "{clause} {terms} {source}");
            if expected.is_some() {
                assert_eq!(found[0].counterpart.as_deref(), Some("permissions/x"));
            }
        };
        check("z.z.z", "nothing", "o/n#2", Some("covered"));
        check("a.b.c", "link outside a b", "o/n#9", Some("covered"));
        check("a.b.c", "link x y z", "o/n#9", None);
        check("z.z.z", "link outside read secret", "o/n#9", None);
    }

    #[test]
    fn of_two_close_clusters_the_one_with_more_material_stays() {
        let small = cluster("small", Some("a.b.c"), "link outside read x", &[1]);
        let big = cluster("big", Some("a.b.c"), "link outside read y", &[2, 3]);
        let other = cluster("other", Some("a.b.c"), "p q r s", &[4]);
        let elsewhere = cluster("elsewhere", Some("z.z.z"), "link outside read y", &[5]);
        let nowhere = cluster("nowhere", None, "t", &[6]);
        let all = [&small, &big, &other, &elsewhere, &nowhere];
        let candidates: Vec<Candidate<'_>> = all.iter().map(|cluster| plain(cluster)).collect();
        let found = filtered(&candidates, &[]);
        assert_eq!(
            rules(&found),
            [Some("overlap"), None, None, None, Some("no-clause")]
        );
        assert_eq!(found[0].counterpart.as_deref(), Some("big"));
        assert!(found[0].reason.contains("1 issues"), "{}", found[0].reason);

        let restored = Restored::from([("small".to_owned(), "ana: another effect".to_owned())]);
        let found = filter(&candidates, &[], &restored, &settings());
        assert_eq!(rules(&found)[0], None);
        assert!(found[0].reason.contains("ana: another effect"));
    }
}
