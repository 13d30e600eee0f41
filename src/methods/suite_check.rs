//! What must hold between the files of a suite, and between them and the document.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::case::Case;
use crate::domain::clause::Channel;
use crate::domain::document::Document;
use crate::domain::expect::Expect;
use crate::domain::place::Finding;
use crate::domain::suite::{CONTROLS, Suite};

/// Findings in the order of the cases.
pub fn check(suite: &Suite, document: &Document) -> Vec<Finding> {
    let clauses = document.by_id();
    let mut findings = Vec::new();
    let mut titles: BTreeMap<&str, &Case> = BTreeMap::new();
    for case in suite.all() {
        let mut find = |key: &str, message: String| {
            findings.push(Finding::new(case.places().of(key), message));
        };
        match clauses.get(&case.clause) {
            None => find(
                "clause",
                format!("the document has no clause {}", case.clause),
            ),
            Some(clause) => {
                let asserted = channels(&case.expects);
                if !case.is_control() && asserted.is_disjoint(&clause.channels) {
                    let told: Vec<&str> = clause.channels.iter().map(|one| one.as_str()).collect();
                    find(
                        "clause",
                        format!(
                            "{} shows itself on {}; nothing is asserted there",
                            clause.id,
                            told.join(", ")
                        ),
                    );
                }
            }
        }
        let folder = case.id.as_str().split('/').next().unwrap_or_default();
        let wanted = case
            .category()
            .map_or(CONTROLS, |category| category.as_str());
        if folder != wanted {
            find(
                "category",
                format!("the file belongs into the folder {wanted}/"),
            );
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-/".contains(c);
        if !case.id.as_str().chars().all(plain) {
            find(
                "title",
                format!(
                    "the file's name {:?} has more than a-z, 0-9 and -",
                    case.id.name()
                ),
            );
        }
        if let Some(other) = titles.insert(case.title.as_str(), case) {
            find("title", format!("{} has the same title", other.id));
        }
        for name in case.controls() {
            if suite.control(name).is_none() {
                find(
                    "controls",
                    format!("there is no control {name:?} in cases/{CONTROLS}/"),
                );
            }
        }
        let n_named = case.controls().iter().collect::<BTreeSet<_>>().len();
        if n_named != case.controls().len() {
            find("controls", "a control is named twice".to_owned());
        }
        if !case.is_control() && case.controls().is_empty() {
            for (idx, expect) in case.expects.iter().enumerate() {
                if expect.is_absence() {
                    findings.push(Finding::new(
                        case.places().nth("expect", idx),
                        "this holds for a harness that does nothing: gate it with `controls`",
                    ));
                }
            }
        }
        if case.is_control() && case.expects.iter().all(Expect::is_absence) {
            findings.push(Finding::new(
                case.places().top(),
                "a control asserts something that must happen",
            ));
        }
    }
    let named: BTreeSet<&String> = suite.tests().flat_map(|case| case.controls()).collect();
    for control in suite.controls() {
        if !named.iter().any(|name| *name == control.id.name()) {
            findings.push(Finding::new(
                control.places().top(),
                "this control gates no case",
            ));
        }
    }
    findings
}

fn channels(expects: &[Expect]) -> BTreeSet<Channel> {
    let leaves = expects.iter().flat_map(Expect::leaves);
    leaves.filter_map(|leaf| leaf.channel).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::case::CaseId;
    use crate::domain::document::Chapter;

    const DOCUMENT: &str = "# Tools\n\n### tools.read.range · boundary\n**Syntax** s\n**Meaning** m\n\
        **Behaviour** b\n**Channels** requests\n";
    const CASE: &str = "title = \"a\"\npurpose = \"p\"\nclause = \"tools.read.range\"\ncategory = \"headless\"\n\
        scenario = \"boundary\"\ncontrols = [\"c\"]\n[[launch]]\nroute = \"headless\"\nprompt = \"x\"\n\
        [[expect]]\nchannel = \"requests\"\nat = \"$.messages\"\nlacks = \"x\"\n";
    const CONTROL: &str = "title = \"c\"\npurpose = \"p\"\nclause = \"tools.read.range\"\nclass = \"channel\"\n\
        [[launch]]\nroute = \"headless\"\nprompt = \"x\"\n\
        [[expect]]\nchannel = \"requests\"\nat = \"$.messages\"\nhas = \"x\"\n";

    #[test]
    fn faults_between_files_are_found() {
        let check = |case: &str, control: &str, expected: &[&str]| {
            let chapter = Chapter::parse(Path::new("02-tools.md"), DOCUMENT).expect("a chapter");
            let document = Document {
                chapters: vec![chapter],
            };
            let parse = |id: &str, text: &str| {
                Case::parse(CaseId::new(id), Path::new(id), text).expect("a case")
            };
            let suite = Suite::new([parse("headless/a", case), parse("controls/c", control)]);
            let seen: Vec<String> = super::check(&suite, &document)
                .into_iter()
                .map(|finding| finding.to_string())
                .collect();
            assert_eq!(seen.len(), expected.len(), "{seen:?}");
            for (seen, expected) in seen.iter().zip(expected) {
                assert!(seen.contains(expected), "{seen} / {expected}");
            }
        };
        check(CASE, CONTROL, &[]);
        check(
            &CASE.replace("read.range", "read.nope"),
            CONTROL,
            &["headless/a:3: the document has no clause"],
        );
        check(
            &CASE.replace("[\"c\"]", "[\"d\"]"),
            CONTROL,
            &["headless/a:6: there is no control", "gates no case"],
        );
        check(
            &CASE.replace("[\"c\"]", "[]"),
            CONTROL,
            &[
                "headless/a:10: this holds for a harness that does nothing",
                "gates no case",
            ],
        );
        check(
            &CASE.replace("\"headless\"\nscen", "\"startup\"\nscen"),
            CONTROL,
            &["belongs into the folder startup/"],
        );
        check(
            &CASE.replace("\"a\"", "\"c\""),
            CONTROL,
            &["has the same title"],
        );
        check(
            CASE,
            &CONTROL.replace("has =", "lacks ="),
            &["a control asserts something"],
        );
        let exit = CASE.replace(
            "channel = \"requests\"\nat = \"$.messages\"\nlacks = \"x\"",
            "channel = \"exit\"\nequals = 0",
        );
        check(&exit, CONTROL, &["nothing is asserted there"]);
    }
}
