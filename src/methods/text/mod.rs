//! The words of issues and clauses: what ranking, clustering and filtering compare.
//!
//! [`markdown`] sets aside what is not the reporter's text, [`words`] splits text into terms, and [`vocabulary`]
//! adds the document's words for those of other harnesses and languages. Nothing here renders or runs anything.

pub mod markdown;
pub mod vocabulary;
pub mod words;

use markdown::Templates;
use vocabulary::Vocabulary;

use crate::domain::issue::Issue;

/// The terms of an issue, by the part of the issue that they stand in, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IssueTerms {
    pub title: Vec<String>,
    pub prose: Vec<String>,
    /// Fenced blocks: logs, settings, commands.
    pub code: Vec<String>,
}

/// The terms of many issues at once: which lines belong to a form shows only in the whole.
pub fn issues(issues: &[Issue], vocabulary: &Vocabulary) -> Vec<IssueTerms> {
    let bodies = issues
        .iter()
        .map(|issue| (issue.key.repository.as_str(), issue.body.as_str()));
    let templates = Templates::learn(bodies);
    issues
        .iter()
        .map(|issue| {
            let parts = templates.parts(&issue.key.repository, &issue.body);
            IssueTerms {
                title: vocabulary.terms(&issue.title),
                prose: vocabulary.terms(&parts.prose),
                code: vocabulary.terms(&parts.code),
            }
        })
        .collect()
}
