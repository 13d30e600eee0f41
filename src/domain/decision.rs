//! What reviewers decided: one line each in the files below `reviews/`, append-only and made for git.

use std::cmp::Ordering;
use std::collections::BTreeMap;
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
    /// The cluster that holds an issue has the name that the decision says.
    Name,
    /// An issue represents the cluster that holds it.
    Representative,
    /// A difference found by comparison.
    Difference,
    /// A case or variant joins the suite or does not.
    Case,
}

impl SubjectKind {
    pub const ALL: [Self; 8] = [
        Self::Issue,
        Self::Cluster,
        Self::Drop,
        Self::Pair,
        Self::Name,
        Self::Representative,
        Self::Difference,
        Self::Case,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::Cluster => "cluster",
            Self::Drop => "drop",
            Self::Pair => "pair",
            Self::Name => "name",
            Self::Representative => "representative",
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
            SubjectKind::Name | SubjectKind::Representative => {
                id.parse::<IssueKey>().map(|key| key.to_string())?
            }
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
    /// For a name: the name.
    #[serde(default)]
    pub why: String,
    /// Which of the reviewer's acts on clusters the line is of, counted from 1: an act can be several lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u32>,
}

/// The decision that counts for each subject: the last one that was not undone.
///
/// An undo takes back the same reviewer's last standing decision on that subject.
pub fn standing(decisions: &[Decision]) -> BTreeMap<Subject, Decision> {
    let in_order = standing_in_order(decisions).into_iter();
    in_order.map(|made| (made.on.clone(), made)).collect()
}

/// The same, in the order in which they were made.
pub fn standing_in_order(decisions: &[Decision]) -> Vec<Decision> {
    let mut stacks: BTreeMap<&Subject, Vec<(usize, &Decision)>> = BTreeMap::new();
    for (place, decision) in decisions.iter().enumerate() {
        let stack = stacks.entry(&decision.on).or_default();
        match decision.decision {
            Verb::Undo => {
                if let Some(idx) = stack.iter().rposition(|(_, made)| made.by == decision.by) {
                    stack.remove(idx);
                }
            }
            Verb::Note => {}
            _ => stack.push((place, decision)),
        }
    }
    let mut standing: Vec<(usize, &Decision)> = stacks
        .into_values()
        .filter_map(|mut stack| stack.pop())
        .collect();
    standing.sort_unstable_by_key(|(place, _)| *place);
    standing.into_iter().map(|(_, made)| made.clone()).collect()
}

/// What a reviewer can take back and make again, the last one at the end.
#[derive(Debug, Default)]
pub struct Own<'a> {
    pub made: Vec<&'a Decision>,
    /// Empty as soon as the reviewer decides on something else.
    pub taken_back: Vec<&'a Decision>,
}

impl<'a> Own<'a> {
    pub fn of(decisions: impl IntoIterator<Item = &'a Decision>, by: &str) -> Self {
        let mut own = Self::default();
        let lines = decisions.into_iter().filter(|line| line.by == by);
        for line in lines {
            match line.decision {
                Verb::Note => {}
                Verb::Undo => {
                    if let Some(idx) = own.made.iter().rposition(|made| made.on == line.on) {
                        own.taken_back.push(own.made.remove(idx));
                    }
                }
                _ => {
                    let is_again = |last: &mut &Decision| {
                        (&last.on, last.decision, &last.why) == (&line.on, line.decision, &line.why)
                    };
                    if own.taken_back.pop_if(is_again).is_none() {
                        own.taken_back.clear();
                    }
                    own.made.push(line);
                }
            }
        }
        own
    }
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
            act: None,
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

    #[test]
    fn what_was_taken_back_can_be_made_again_until_something_else_is_decided() {
        let check = |made: &[(&str, Verb)], expected: Option<Verb>| {
            let made: Vec<Decision> = made.iter().map(|(by, verb)| decision(by, *verb)).collect();
            let own = Own::of(&made, "a");
            assert_eq!(own.taken_back.last().map(|last| last.decision), expected);
        };
        use Verb::{Approve, Note, Reject, Undo, Unsure};
        check(&[("a", Approve)], None);
        check(&[("a", Approve), ("a", Undo)], Some(Approve));
        check(&[("a", Approve), ("a", Undo), ("a", Approve)], None);
        check(&[("a", Approve), ("a", Undo), ("a", Reject)], None);
        check(&[("a", Approve), ("a", Undo), ("b", Reject)], Some(Approve));
        check(&[("a", Approve), ("a", Undo), ("a", Note)], Some(Approve));
        let two = [("a", Approve), ("a", Reject), ("a", Undo), ("a", Undo)];
        check(&two, Some(Approve));
        check(&[&two[..], &[("a", Approve)]].concat(), Some(Reject));
        check(&[&two[..], &[("a", Unsure)]].concat(), None);
    }
}
