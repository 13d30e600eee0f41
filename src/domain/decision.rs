//! What reviewers decided: one line each in the files below `reviews/`, append-only and made for git.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What can be decided on. Each kind has a file of its own, `reviews/<kind>s.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubjectKind {
    /// An issue was read: relevant or not.
    Issue,
    /// A cluster becomes a case or does not.
    Cluster,
    /// A difference found by comparison.
    Difference,
    /// A case or variant joins the suite or does not.
    Case,
}

impl SubjectKind {
    pub const ALL: [Self; 4] = [Self::Issue, Self::Cluster, Self::Difference, Self::Case];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::Cluster => "cluster",
            Self::Difference => "difference",
            Self::Case => "case",
        }
    }
}

/// `issue:owner/name#1`, `cluster:link-escape`, `case:permissions/deny-wins`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Subject {
    pub kind: SubjectKind,
    pub id: String,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.id)
    }
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || SubjectKind::ALL.map(SubjectKind::as_str).join(", ");
        let (kind, id) = text
            .split_once(':')
            .filter(|(_, id)| !id.is_empty())
            .ok_or_else(|| {
                format!(
                    "{text:?} is no subject: write KIND:ID with a kind of {}",
                    known()
                )
            })?;
        let kind = SubjectKind::ALL
            .into_iter()
            .find(|known| known.as_str() == kind)
            .ok_or_else(|| format!("{kind:?} is no kind of subject: use {}", known()))?;
        Ok(Self {
            kind,
            id: id.to_owned(),
        })
    }
}

impl From<Subject> for String {
    fn from(subject: Subject) -> Self {
        subject.to_string()
    }
}

impl TryFrom<String> for Subject {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// For an issue: relevant.
    Approve,
    /// For an issue: not relevant.
    Reject,
    /// The reviewer's own last decision on the subject no longer counts.
    Undo,
}

/// One line. `digest` is that of what the reviewer saw, so that a later change shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// RFC 3339.
    pub at: String,
    pub by: String,
    pub on: Subject,
    pub digest: String,
    pub decision: Verb,
    #[serde(default)]
    pub why: String,
}

/// The decision that counts for each subject: the last one that was not undone.
///
/// An undo takes back the same reviewer's last standing decision on that subject.
pub fn standing(decisions: &[Decision]) -> std::collections::BTreeMap<Subject, Decision> {
    let mut stacks: std::collections::BTreeMap<Subject, Vec<Decision>> = Default::default();
    for decision in decisions {
        let stack = stacks.entry(decision.on.clone()).or_default();
        match decision.decision {
            Verb::Undo => {
                if let Some(idx) = stack.iter().rposition(|made| made.by == decision.by) {
                    stack.remove(idx);
                }
            }
            Verb::Approve | Verb::Reject => stack.push(decision.clone()),
        }
    }
    stacks
        .into_iter()
        .filter_map(|(subject, mut stack)| Some((subject, stack.pop()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(by: &str, verb: Verb) -> Decision {
        Decision {
            at: "2026-12-01T00:00:00Z".into(),
            by: by.into(),
            on: "cluster:x".parse().expect("a subject"),
            digest: String::new(),
            decision: verb,
            why: String::new(),
        }
    }

    #[test]
    fn an_undo_takes_back_ones_own_last_decision() {
        let check = |made: &[(&str, Verb)], expected: Option<Verb>| {
            let made: Vec<Decision> = made.iter().map(|(by, verb)| decision(by, *verb)).collect();
            let standing = standing(&made);
            assert_eq!(standing.values().next().map(|d| d.decision), expected);
        };
        use Verb::{Approve, Reject, Undo};
        check(&[("a", Approve)], Some(Approve));
        check(&[("a", Approve), ("a", Reject)], Some(Reject));
        check(&[("a", Approve), ("a", Reject), ("a", Undo)], Some(Approve));
        check(&[("a", Approve), ("b", Undo)], Some(Approve));
        check(&[("a", Approve), ("b", Reject), ("a", Undo)], Some(Reject));
        check(&[("a", Approve), ("a", Undo)], None);
        check(&[], None);
    }
}
