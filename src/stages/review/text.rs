//! Everything that a reviewer needs to see of a subject, as plain text. Much of it is third-party; the surface makes
//! it harmless.

use std::fmt::Write;

use similar::TextDiff;

use super::{database, file_of};
use crate::domain::case::{Case, CaseId, Role};
use crate::domain::clause::ClauseId;
use crate::domain::decision::{self, Subject, SubjectKind};
use crate::domain::difference::Sight;
use crate::domain::document::Document;
use crate::domain::issue::IssueKey;
use crate::domain::suite::control_id;
use crate::methods::drafting::TO_FINISH;
use crate::methods::expansion::TO_MAKE;
use crate::stages::{Context, Failure, Result};
use crate::storage::database::Database;
use crate::storage::{clusters, differences, documents, issues, ranking};

pub(super) fn text(context: &Context, subject: &Subject) -> Result<String> {
    let database = database(context)?;
    let document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    let missing = || Failure::user(format!("there is no {subject}"));
    match subject.kind {
        SubjectKind::Issue => {
            let key = subject
                .id
                .parse()
                .map_err(|error: String| Failure::user(error))?;
            let mut text = issue(&database, &key)?;
            if let Some(ranked) = ranking::get(&database, &key)? {
                text += &format!("\n── place {} of the ranking\n", ranked.place);
                for best in &ranked.relevance.clauses {
                    text += &format!("{:.3}  {}\n", best.score, best.clause);
                }
                if let Some(best) = ranked.relevance.clauses.first() {
                    text += &clause(&document, &best.clause);
                }
            }
            Ok(text)
        }
        SubjectKind::Cluster | SubjectKind::Drop => {
            let cluster = clusters::all(&database)?
                .into_iter()
                .find(|cluster| cluster.id == subject.id)
                .ok_or_else(missing)?;
            let words: Vec<&str> = cluster
                .terms
                .iter()
                .map(|term| term.word.as_str())
                .collect();
            let mut text = format!("effect: {}\nterms: {}\n", cluster.effect, words.join(", "));
            if let Some(id) = &cluster.clause {
                text += &clause(&document, id);
            }
            for (idx, key) in clusters::material(&database, &cluster)?.iter().enumerate() {
                let mark = match *key == cluster.representative {
                    true => " (representative)",
                    false if idx >= cluster.members.len() => {
                        " (of a dropped cluster with the same effect)"
                    }
                    false => "",
                };
                text += &format!("\n── {key}{mark}\n{}", issue(&database, key)?);
            }
            Ok(text)
        }
        SubjectKind::Pair => {
            let (a, b) = decision::pair(&subject.id).map_err(Failure::user)?;
            let mut text = String::new();
            for key in [a, b] {
                text += &format!("\n── {key}\n{}", issue(&database, &key)?);
            }
            Ok(text)
        }
        SubjectKind::Name | SubjectKind::Representative => {
            let key = subject.id.parse::<IssueKey>().map_err(Failure::user)?;
            issue(&database, &key)
        }
        SubjectKind::Difference => {
            let stored = differences::all(&database)?
                .into_iter()
                .find(|stored| stored.difference.id == subject.id)
                .ok_or_else(missing)?;
            let found = &stored.difference;
            let mut text = format!(
                "kind       {}, {}\nmodule     {}\n",
                found.kind,
                found.side.as_str(),
                found.module
            );
            let mut sight = |who: &str, sight: &Option<Sight>| {
                if let Some(sight) = sight {
                    text += &format!("{who:<10} {}\n           {}\n", sight.place, sight.shown);
                }
            };
            sight(&stored.target, &found.target);
            sight(&stored.candidates.join(", "), &found.candidate);
            if found.candidate.is_none() {
                text += &format!("not in     {}\n", stored.candidates.join(", "));
            }
            if let Some(trace) = &found.trace {
                text += &format!(
                    "traced     by words and names that it shares with the clause, the rare ones for more: {:.2}\n",
                    trace.score
                );
                text += &clause(&document, &trace.clause);
            }
            Ok(text)
        }
        SubjectKind::Case => {
            let (path, text) = file(context, &subject.id).ok_or_else(missing)?;
            let mut shown = format!("{path}\n\n{text}");
            let parsed = Case::parse(
                CaseId::new(subject.id.as_str()),
                std::path::Path::new(&path),
                &text,
            );
            let Ok(case) = parsed else {
                return Ok(shown);
            };
            shown += &clause(&document, &case.clause);
            if let Role::Test {
                origin: Some(origin),
                ..
            } = &case.role
                && let Some(seed) = &origin.seed
                && let Some((_, before)) = file(context, seed)
            {
                shown += &format!("\n── what changed since its seed {seed}\n");
                let diff = TextDiff::from_lines(&before, &text);
                write!(shown, "{}", diff.unified_diff().context_radius(1))?;
            }
            for name in case.controls() {
                match file(context, control_id(name).as_str()) {
                    Some((path, control)) => {
                        shown += &format!("\n── control {name}, {path}\n{control}");
                    }
                    None => shown += &format!("\n── control {name} is missing\n"),
                }
            }
            Ok(shown)
        }
    }
}

/// Where the file of a case or control lies, and what it says.
fn file(context: &Context, id: &str) -> Option<(String, String)> {
    [context.project.variants(), context.project.cases()]
        .into_iter()
        .map(|folder| folder.join(file_of(id)))
        .find_map(|path| {
            let text = std::fs::read_to_string(&path).ok()?;
            Some((context.project.shown(&path), text))
        })
}

fn issue(database: &Database, key: &IssueKey) -> Result<String> {
    let issue = issues::get(database, key)?
        .ok_or_else(|| Failure::user(format!("there is no issue {key}")))?;
    Ok(format!(
        "{}\n{}\nlabels: {}\n\n{}\n",
        issue.title,
        issue.url,
        issue.labels.join(", "),
        issue.body
    ))
}

fn clause(document: &Document, id: &ClauseId) -> String {
    match document.clause(id) {
        Some(clause) => format!(
            "\n── clause {id}, {}\nSyntax     {}\nMeaning    {}\nBehaviour  {}\n",
            clause.kind.as_str(),
            clause.syntax,
            clause.meaning,
            clause.behaviour
        ),
        None => format!("\n── the document has no clause {id}\n"),
    }
}

/// What keeps a waiting case out of the suite yet, and what to do about it. A draft is to be finished; an ungated case
/// would pass on a harness that does nothing.
pub(super) fn unfinished(context: &Context, id: &str) -> Result<Option<(String, &'static str)>> {
    let path = context.project.variants().join(file_of(id));
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Ok(None);
    };
    let said = |mark: &str| {
        let comments = text.lines().filter_map(|line| line.strip_prefix("# "));
        comments.filter_map(|line| line.strip_prefix(mark)).next()
    };
    if let Some(what) = said(TO_FINISH) {
        let to_do = "do it, and take the comment out";
        return Ok(Some((format!("the draft is not finished: {what}"), to_do)));
    }
    let no_control = |why: &str| {
        let to_do = "write it, name it, and take the comment out";
        Ok(Some((
            format!("a control has to be made first: {why}"),
            to_do,
        )))
    };
    if let Some(control) = said(TO_MAKE) {
        return no_control(control);
    }
    let case = Case::parse(CaseId::new(id), &path, &text)
        .map_err(|findings| Failure::findings(&findings))?;
    let is_absence = case.expects.iter().any(|expect| expect.is_absence());
    match case.controls().is_empty() && is_absence {
        true => no_control(
            "an assertion holds for a harness that does nothing, and no control gates it",
        ),
        false => Ok(None),
    }
}
