//! The words of issues and clauses: what ranking, clustering and filtering compare.
//!
//! [`markdown`] sets aside what is not the reporter's text and splits the rest into fields, [`words`] splits text into
//! terms, [`vocabulary`] adds the document's words for those of other harnesses and languages, and [`mod@language`] notes
//! the language. Nothing here renders or runs anything.

pub mod language;
mod line_kind;
pub mod markdown;
pub mod vocabulary;
pub mod words;

use std::collections::HashSet;
use std::sync::Arc;

use markdown::Templates;
use vocabulary::Vocabulary;

use crate::domain::issue::Issue;
use crate::domain::mining::IssueTerms;

/// The terms of many issues at once: which lines belong to a form shows only in the whole.
pub fn issues(issues: &[Issue], vocabulary: &Vocabulary) -> Vec<IssueTerms> {
    issues_by(issues, vocabulary, &templates(issues))
}

/// The lines that belong to forms, learned from all issues.
pub fn templates(issues: &[Issue]) -> Templates {
    Templates::learn(
        issues
            .iter()
            .map(|issue| (issue.key.repository.as_str(), issue.body.as_str())),
    )
}

/// The terms of issues, with lines of forms that were learned before.
pub fn issues_by(
    issues: &[Issue],
    vocabulary: &Vocabulary,
    templates: &Templates,
) -> Vec<IssueTerms> {
    let mut known: HashSet<Arc<str>> = HashSet::new();
    let mut shared = |terms: Vec<String>| -> Vec<Arc<str>> {
        terms
            .into_iter()
            .map(|term| match known.get(term.as_str()) {
                Some(term) => term.clone(),
                None => {
                    let term: Arc<str> = term.into();
                    known.insert(term.clone());
                    term
                }
            })
            .collect()
    };
    issues
        .iter()
        .map(|issue| {
            let parts = templates.parts(&issue.key.repository, &issue.body);
            let added = [&issue.title, &parts.prose, &parts.code, &parts.log]
                .into_iter()
                .flat_map(|text| vocabulary.added(text))
                .collect();
            IssueTerms {
                title: shared(words::terms(&issue.title)),
                prose: shared(words::terms(&parts.prose)),
                code: shared(words::terms(&parts.code)),
                log: shared(words::terms(&parts.log)),
                trace: shared(words::terms(&parts.trace)),
                versions: shared(words::terms(&parts.versions)),
                added: shared(added),
                language: language::language(&issue.title, &parts.prose),
            }
        })
        .collect()
}
