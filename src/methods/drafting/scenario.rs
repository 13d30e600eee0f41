//! The scenario that a draft starts from: that of the suite's nearest case, or a plain one where nothing is near.

use std::collections::BTreeSet;

use serde_json::json;

use crate::domain::case::{Case, CaseFile, Category, Method, Origin};
use crate::domain::clause::{Channel, Clause};
use crate::domain::document::Document;
use crate::domain::issue::IssueKey;
use crate::domain::mining::Cluster;
use crate::domain::suite::Suite;
use crate::domain::visible::visible_line;

/// What a draft is about.
pub struct Subject<'a> {
    pub cluster: &'a Cluster,
    pub clause: &'a Clause,
    /// The issues that it comes from.
    pub sources: &'a [IssueKey],
}

/// Characters that fit into a title and a purpose.
const TITLE_CHARS: usize = 100;
const PURPOSE_CHARS: usize = 140;
/// What counts for nearness beside shared words, of which there are 0 to 1: the same clause, feature, chapter.
const SAME_CLAUSE: f64 = 4.0;
const SAME_FEATURE: f64 = 2.0;
const SAME_CHAPTER: f64 = 1.0;

/// The case of the suite whose scenario is likely to be that of the cluster: of the clause, else of its neighbours, by
/// the words of their clauses and of the case. Ties go to the smaller id; none when no case is of the chapter.
pub fn nearest<'s>(
    subject: &Subject<'_>,
    suite: &'s Suite,
    document: &Document,
    terms: impl Fn(&str) -> Vec<String>,
) -> Option<&'s Case> {
    let words = |text: &str| -> BTreeSet<String> { terms(text).into_iter().collect() };
    let of_clause = words(&told(subject.clause));
    let telling: BTreeSet<String> = subject
        .cluster
        .terms
        .iter()
        .map(|term| term.term.clone())
        .collect();
    let nearness = |case: &Case, same: f64| {
        let clause = document.clause(&case.clause);
        let clause = clause.map_or(0.0, |clause| alike(&of_clause, &words(&told(clause))));
        let own = words(&format!("{} {}", case.title, case.purpose));
        same + clause + alike(&telling, &own)
    };
    let mut best: Option<(&Case, f64)> = None;
    for case in suite.tests() {
        let same = same(subject.clause.id.as_str(), case.clause.as_str());
        if same < SAME_CHAPTER {
            continue;
        }
        let near = nearness(case, same);
        if best.is_none_or(|(_, most)| near > most) {
            best = Some((case, near));
        }
    }
    best.map(|(case, _)| case)
}

fn told(clause: &Clause) -> String {
    format!("{} {} {}", clause.syntax, clause.meaning, clause.behaviour)
}

fn same(a: &str, b: &str) -> f64 {
    let n_same = a.split('.').zip(b.split('.')).take_while(|(a, b)| a == b);
    match n_same.count() {
        0 => 0.0,
        1 => SAME_CHAPTER,
        2 => SAME_FEATURE,
        _ => SAME_CLAUSE,
    }
}

/// Share of the words of two sets that both have.
fn alike(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    match a.union(b).count() {
        0 => 0.0,
        n => a.intersection(b).count() as f64 / n as f64,
    }
}

/// The subject's case with the scenario and the assertions of another one.
pub fn copied(subject: &Subject<'_>, from: &Case) -> CaseFile {
    CaseFile {
        category: from.category(),
        controls: from.controls().to_vec(),
        fixture: from.fixture.clone(),
        launch: from.launches.clone(),
        expect: from.expects.clone(),
        ..plain(subject)
    }
}

/// The subject's case with one launch that says what it was told, and an assertion on a channel of the clause.
pub fn plain(subject: &Subject<'_>) -> CaseFile {
    let clause = subject.clause;
    let (category, is_api) = usual(clause.id.chapter());
    let (prompt, answer) = ("{nonce:prompt}", "{nonce:answer}");
    let launch = match is_api {
        true => json!({ "route": "api", "requests": [{ "id": "1", "op": "run", "prompt": prompt }],
            "script": [{ "say": answer }], "time_limit_s": 30 }),
        false => {
            json!({ "route": "headless", "prompt": prompt, "script": [{ "say": answer }], "time_limit_s": 30 })
        }
    };
    let channel = clause.channels.first();
    let expect = match channel.unwrap_or(&Channel::Requests) {
        Channel::Requests => {
            json!({ "channel": "requests", "at": "$.messages[?@.role == 'user'].content", "has": prompt })
        }
        Channel::Files => {
            json!({ "channel": "files", "path": "{state}/sessions/*", "exists": true })
        }
        Channel::Exit => json!({ "channel": "exit", "equals": 0 }),
        Channel::Output => json!({ "channel": "output", "has": answer }),
    };
    CaseFile {
        title: title(subject.cluster),
        purpose: cut(&harmless(&clause.meaning), PURPOSE_CHARS),
        clause: clause.id.clone(),
        category: Some(category),
        scenario: Some(clause.kind),
        origin: Some(origin(subject)),
        controls: Vec::new(),
        class: None,
        fixture: Default::default(),
        launch: vec![serde_json::from_value(launch).expect("a launch of the case language")],
        expect: vec![serde_json::from_value(expect).expect("an assertion of the case language")],
    }
}

/// Where the case comes from; nobody but the pipeline says so.
pub fn origin(subject: &Subject<'_>) -> Origin {
    Origin {
        method: Method::Issues,
        phenomenon: Some(subject.cluster.id.clone()),
        sources: subject.sources.iter().map(IssueKey::to_string).collect(),
        seed: None,
        variable: None,
    }
}

/// Where a chapter's cases belong most of the time, and whether they go through the evaluation API.
fn usual(chapter: &str) -> (Category, bool) {
    match chapter {
        "tools" => (Category::FileOperations, false),
        "permissions" => (Category::Permissions, false),
        "in-session" | "memory" | "consistency" | "exit-codes" => (Category::SessionState, false),
        "conventions" => (Category::ExtensionDiscovery, false),
        "eval-api" => (Category::DirectDrive, true),
        _ => (Category::Headless, false),
    }
}

/// The title of the representative, which a person will replace.
fn title(cluster: &Cluster) -> String {
    cut(&harmless(&cluster.label), TITLE_CHARS)
}

/// On one line, and without marks that a case would fill in.
fn harmless(text: &str) -> String {
    visible_line(text.trim())
        .replace('{', "(")
        .replace('}', ")")
}

fn cut(text: &str, n_chars: usize) -> String {
    match text.char_indices().nth(n_chars) {
        None => text.to_owned(),
        Some(_) => text.chars().take(n_chars - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::case::CaseId;
    use crate::domain::document::Chapter;
    use crate::domain::mining::Term;
    use crate::methods::drafting::case_text;

    fn document() -> Document {
        let clause = |id: &str, syntax: &str, channels: &str| {
            format!(
                "### {id} · boundary\n**Syntax** {syntax}\n**Meaning** what {syntax} means\n\
                 **Behaviour** b\n**Channels** {channels}\n\n"
            )
        };
        let chapter = |file: &str, clauses: &[String]| {
            let text = format!("# T\n\n{}", clauses.concat());
            Chapter::parse(Path::new(file), &text).expect("a chapter")
        };
        Document {
            chapters: vec![
                chapter(
                    "02-tools.md",
                    &[
                        clause("tools.read.range", "offset limit lines", "requests"),
                        clause("tools.read.link", "link outside", "files"),
                        clause("tools.edit.once", "old new", "files"),
                    ],
                ),
                chapter(
                    "10-exit-codes.md",
                    &[clause("exit-codes.table.closed", "codes", "exit")],
                ),
                chapter(
                    "11-eval-api.md",
                    &[clause("eval-api.run.result", "op", "output")],
                ),
            ],
        }
    }

    fn cluster(label: &str) -> Cluster {
        let key: IssueKey = "o/n#1".parse().expect("a key");
        Cluster {
            id: "a-b".into(),
            label: label.into(),
            effect: String::new(),
            clause: None,
            representative: key.clone(),
            members: vec![key],
            terms: vec![Term {
                term: "link".into(),
                word: "link".into(),
            }],
        }
    }

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_nearest_case_is_that_of_the_clause_then_of_its_neighbours() {
        let document = document();
        let case = |id: &str, clause: &str, title: &str| {
            let text = format!(
                "title = \"{title}\"\npurpose = \"p\"\nclause = \"{clause}\"\ncategory = \"headless\"\n\
                 scenario = \"ordinary\"\n[[launch]]\nroute = \"headless\"\nprompt = \"x\"\n\
                 [[expect]]\nchannel = \"exit\"\nequals = 0\n"
            );
            Case::parse(CaseId::new(id), Path::new(id), &text).expect("a case")
        };
        let suite = Suite::new([
            case("headless/a", "tools.read.range", "a"),
            case("headless/b", "tools.read.range", "a link"),
            case("headless/c", "tools.edit.once", "link"),
        ]);
        let check = |clause: &str, expected: Option<&str>| {
            let cluster = cluster("l");
            let id = clause.parse().expect("an id");
            let subject = Subject {
                cluster: &cluster,
                clause: document.clause(&id).expect("is there"),
                sources: &[],
            };
            let found = nearest(&subject, &suite, &document, words);
            assert_eq!(found.map(|case| case.id.as_str()), expected, "{clause}");
        };
        check("tools.edit.once", Some("headless/c"));
        // Two of the clause: the words of the cluster choose.
        check("tools.read.range", Some("headless/b"));
        check("tools.read.link", Some("headless/b"));
        check("exit-codes.table.closed", None);
    }

    #[test]
    fn a_plain_scenario_is_a_case_whatever_the_clause_and_the_title() {
        let document = document();
        let hostile = "x\" = 1\n[[expect]]\n{nonce:a} {bound:b} \u{1b}[2J\u{202e}";
        let long = "y ".repeat(200);
        for (label, clause) in [hostile, &long]
            .into_iter()
            .flat_map(|label| document.clauses().map(move |clause| (label, clause)))
        {
            let cluster = cluster(label);
            let subject = Subject {
                cluster: &cluster,
                clause,
                sources: &cluster.members,
            };
            let file = plain(&subject);
            let text = case_text::text(&file, &[label.to_owned()]).expect("a text");
            let id = CaseId::new("x/y");
            let case = Case::parse(id, Path::new("x"), &text).unwrap_or_else(|f| panic!("{f:?}"));
            assert!(case.title.chars().count() <= 100, "{}", case.title);
            assert_eq!(case.expects.len(), 1, "{text}");
            assert_eq!(case.clause, clause.id);
        }
    }
}
