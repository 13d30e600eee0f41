//! What reviewers decided: one line each in the files below `reviews/`, append-only and made for git.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::issue::IssueKey;

/// What can be decided on. Each kind has a file of its own, `reviews/<kind>s.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubjectKind {
    /// An issue was read: relevant or not.
    Issue,
    /// A cluster becomes a case or does not.
    Cluster,
    /// A cluster was dropped by the filter, rightly or not: one whose drop is rejected is restored.
    Drop,
    /// Two issues report one phenomenon or do not.
    Pair,
    /// A difference found by comparison.
    Difference,
    /// A case or variant joins the suite or does not.
    Case,
}

impl SubjectKind {
    pub const ALL: [Self; 6] = [
        Self::Issue,
        Self::Cluster,
        Self::Drop,
        Self::Pair,
        Self::Difference,
        Self::Case,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::Cluster => "cluster",
            Self::Drop => "drop",
            Self::Pair => "pair",
            Self::Difference => "difference",
            Self::Case => "case",
        }
    }
}

/// `issue:owner/name#1`, `cluster:link-escape`, `pair:owner/name#1=owner/name#2`, `case:permissions/deny-wins`.
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
        let id = match kind {
            // The same pair, whichever is named first.
            SubjectKind::Pair => pair(id).map(|(a, b)| format!("{a}={b}"))?,
            _ => id.to_owned(),
        };
        Ok(Self { kind, id })
    }
}

/// The two issues of a pair, the smaller key first.
pub fn pair(id: &str) -> Result<(IssueKey, IssueKey), String> {
    let (a, b) = id
        .split_once('=')
        .ok_or_else(|| format!("{id:?} is no pair of issues: write owner/name#1=owner/name#2"))?;
    let (a, b): (IssueKey, IssueKey) = (a.parse()?, b.parse()?);
    match a.cmp(&b) {
        Ordering::Less => Ok((a, b)),
        Ordering::Greater => Ok((b, a)),
        Ordering::Equal => Err(format!("{a} stands on both sides")),
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
    /// The reviewer cannot say; somebody else should look.
    Unsure,
    /// A case has to be changed first; the reason says how.
    Change,
    /// A remark; it decides nothing.
    Note,
    /// The reviewer's own last decision on the subject no longer counts.
    Undo,
}

impl Verb {
    /// What was done, for people.
    pub fn done(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Reject => "rejected",
            Self::Unsure => "left unsure",
            Self::Change => "sent back for a change",
            Self::Note => "remarked on",
            Self::Undo => "taken back",
        }
    }
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
            Verb::Note => {}
            _ => stack.push(decision.clone()),
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
    fn a_pair_is_the_same_whichever_issue_is_named_first() {
        let subject = |text: &str| text.parse::<Subject>().map(|subject| subject.to_string());
        let expected = "pair:a/b#2=a/b#10";
        assert_eq!(subject(expected).as_deref(), Ok(expected));
        assert_eq!(subject("pair:a/b#10=a/b#2").as_deref(), Ok(expected));
        for broken in ["pair:a/b#1", "pair:a/b#1=a/b#1", "pair:a/b#1=x"] {
            assert!(subject(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn an_undo_takes_back_ones_own_last_decision() {
        let check = |made: &[(&str, Verb)], expected: Option<Verb>| {
            let made: Vec<Decision> = made.iter().map(|(by, verb)| decision(by, *verb)).collect();
            let standing = standing(&made);
            assert_eq!(standing.values().next().map(|d| d.decision), expected);
        };
        use Verb::{Approve, Note, Reject, Undo, Unsure};
        check(&[("a", Approve)], Some(Approve));
        check(&[("a", Approve), ("a", Reject)], Some(Reject));
        check(&[("a", Approve), ("a", Reject), ("a", Undo)], Some(Approve));
        check(&[("a", Approve), ("b", Undo)], Some(Approve));
        check(&[("a", Approve), ("b", Reject), ("a", Undo)], Some(Reject));
        check(&[("a", Approve), ("a", Undo)], None);
        check(&[("a", Unsure), ("b", Note)], Some(Unsure));
        check(&[("a", Approve), ("a", Note), ("a", Undo)], None);
        check(&[], None);
    }
}
