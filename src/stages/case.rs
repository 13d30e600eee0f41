//! The cases as a reader sees them: what is wrong or doubtful with them, and one of them told in words.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Context, Failure, Result};
use crate::domain::case::{Case, CaseId};
use crate::domain::document::Document;
use crate::domain::place::Finding;
use crate::domain::suite::Suite;
use crate::methods::cases::difference::{broken, differences, parts};
use crate::methods::cases::lint;
use crate::methods::cases::story::{Story, tell};
use crate::methods::expansion::Operators;
use crate::methods::expansion::distance::Shape;
use crate::methods::expansion::signature::Signatures;
use crate::methods::suite_check;
use crate::storage::{documents, settings, suite};

pub struct Config {
    /// Files or folders below `cases/`, or ids; findings of all when empty.
    pub paths: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub n_cases: usize,
    pub n_controls: usize,
    pub n_errors: usize,
    pub n_notes: usize,
    /// By place.
    pub found: Vec<Found>,
}

#[derive(Debug, Serialize)]
pub struct Found {
    pub weight: Weight,
    pub file: String,
    pub line: usize,
    pub message: String,
    /// Of a control: in what it differs from the case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// An evaluation refuses it, or a control does not do its work.
    Error,
    /// Somebody should look at it.
    Note,
}

/// Looks for faults in the whole suite, and keeps those of the files asked for.
pub fn lint(context: &Context, config: &Config) -> Result<Summary> {
    let cases = context.project.cases();
    let document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    let (suite, unreadable) = suite::read_what_can_be(&cases);
    let wanted: Vec<PathBuf> = config
        .paths
        .iter()
        .map(|path| below(&cases, path))
        .collect::<Result<_>>()?;
    let mut all: Vec<(Weight, Finding, Vec<String>)> = Vec::new();
    let error = |finding| (Weight::Error, finding, Vec::new());
    let note = |finding| (Weight::Note, finding, Vec::new());
    // What a file that cannot be read leaves open between files is no fault of the others.
    if unreadable.is_empty() {
        all.extend(suite_check::check(&suite, &document).into_iter().map(error));
    }
    all.extend(unreadable.into_iter().map(error));
    let signatures = Signatures::of(&document);
    let knows_tool = |name: &str| signatures.get(name).is_some();
    for case in suite.all() {
        all.extend(
            lint::notes(case, &document, &knows_tool)
                .into_iter()
                .map(note),
        );
        controls(case, &suite, &mut all);
    }
    all.extend(near_copies(context, &suite)?.into_iter().map(note));
    all.retain(|(_, finding, _)| {
        wanted.is_empty()
            || wanted
                .iter()
                .any(|path| finding.place.file.starts_with(path))
    });
    all.sort_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
    let found: Vec<Found> = all
        .into_iter()
        .map(|(weight, finding, differences)| Found {
            weight,
            file: context.project.shown(&finding.place.file),
            line: finding.place.line,
            message: finding.message,
            differences,
        })
        .collect();
    let count = |weight| found.iter().filter(|one| one.weight == weight).count();
    Ok(Summary {
        n_cases: suite.tests().count(),
        n_controls: suite.controls().count(),
        n_errors: count(Weight::Error),
        n_notes: count(Weight::Note),
        found,
    })
}

/// A file or folder below the cases, from a path or an id.
fn below(cases: &Path, asked: &str) -> Result<PathBuf> {
    let given = Path::new(asked);
    let by_id = cases.join(format!("{}.toml", asked.trim_end_matches(".toml")));
    let choices = [
        given.canonicalize().ok(),
        Some(by_id),
        Some(cases.join(asked)),
    ];
    choices
        .into_iter()
        .flatten()
        .find(|path| path.starts_with(cases) && path.exists())
        .ok_or_else(|| {
            Failure::user(format!(
                "{asked:?} is no file or folder below cases/ and no id of a case"
            ))
        })
}

/// Controls that differ from the case in more than the input or the route.
fn controls(case: &Case, suite: &Suite, all: &mut Vec<(Weight, Finding, Vec<String>)>) {
    let place = || case.places().of("controls");
    for control in suite.gating(case) {
        let name = control.id.name();
        let found = differences(case, control);
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        let faults = broken(&found);
        let several = parts(&found);
        if faults.is_empty() && several.len() > 1 {
            let message = format!(
                "control {name} changes {} things: {}",
                several.len(),
                several.join("; ")
            );
            all.push((Weight::Note, Finding::new(place(), message), shown.clone()));
        }
        for fault in faults {
            let message = format!("control {name} {fault}");
            all.push((Weight::Error, Finding::new(place(), message), shown.clone()));
        }
    }
}

/// Test cases of one clause whose scenarios have nearly the same shape, measured as for variants.
fn near_copies(context: &Context, suite: &Suite) -> Result<Vec<Finding>> {
    let operators: Operators = settings::read(&context.project.settings("expand"))
        .map_err(|error| Failure::settings(error.to_string()))?;
    let shapes: Vec<(&Case, Shape)> = suite.tests().map(|case| (case, Shape::of(case))).collect();
    let mut findings = Vec::new();
    for (idx, (case, shape)) in shapes.iter().enumerate() {
        for (earlier, other) in &shapes[..idx] {
            let distance = shape.distance(other, operators.weights);
            if case.clause == earlier.clause && distance < operators.least_distance {
                let message = format!(
                    "its scenario is nearly that of {}: distance {distance:.3}",
                    earlier.id
                );
                findings.push(Finding::new(case.places().top(), message));
            }
        }
    }
    Ok(findings)
}

/// The suite with the variants that wait to join it, and what cannot be read of both; what is in the suite prevails.
pub fn with_variants(context: &Context) -> (Suite, Vec<Finding>) {
    let (suite, mut unreadable) = suite::read_what_can_be(&context.project.cases());
    let variants = context.project.variants();
    if !variants.is_dir() {
        return (suite, unreadable);
    }
    let (waiting, found) = suite::read_what_can_be(&variants);
    unreadable.extend(found);
    let both = waiting.all().chain(suite.all()).cloned();
    (Suite::new(both), unreadable)
}

/// What a case says, for a reader.
#[derive(Debug, Serialize)]
pub struct Shown {
    pub file: String,
    pub story: Story,
    /// The clause's behaviour, when the document has the clause.
    pub behaviour: Option<String>,
}

/// The case, or the control, whose id is that or ends in it.
pub fn show(context: &Context, name: &str) -> Result<Shown> {
    let document: Document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    let (suite, unreadable) = with_variants(context);
    let wanted = name.trim_end_matches(".toml");
    let wanted = ["cases/", "data/variants/"]
        .iter()
        .find_map(|folder| wanted.strip_prefix(folder))
        .unwrap_or(wanted);
    let of_name: Vec<&Case> = suite
        .all()
        .filter(|case| case.id.name() == wanted)
        .collect();
    let case = match (suite.get(&CaseId::new(wanted)), of_name.as_slice()) {
        (Some(case), _) => case,
        (None, [case]) => *case,
        (None, several) => {
            // It may be there and be wrong.
            let end = format!("/{}.toml", wanted.rsplit('/').next().unwrap_or(wanted));
            let faults: Vec<Finding> = unreadable
                .into_iter()
                .filter(|finding| finding.place.file.to_string_lossy().ends_with(&end))
                .collect();
            if !faults.is_empty() {
                return Err(Failure::findings(&faults));
            }
            return Err(match several.len() {
                0 => Failure::user(format!("there is no case {name:?}"))
                    .hint("pipeline case lint names them by file; an id is CATEGORY/NAME"),
                n => Failure::user(format!("{name:?} names {n} cases; say CATEGORY/NAME")),
            });
        }
    };
    Ok(Shown {
        file: context.project.shown(&case.file),
        story: tell(case, &suite),
        behaviour: document
            .clause(&case.clause)
            .map(|clause| clause.behaviour.clone()),
    })
}
