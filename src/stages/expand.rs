//! Expand: variants of a seed, one variable at a time, as files that wait for a reviewer.

use std::path::PathBuf;

use serde::Serialize;

use super::{Classify, Context, Failure, Kind, Result};
use crate::domain::case::{Case, CaseId, Variable};
use crate::domain::certificate::Certificate;
use crate::domain::digest;
use crate::domain::suite::Suite;
use crate::methods::expansion::{Operators, Rejected, Seed, drafts, selection};
use crate::methods::rounds;
use crate::paths::Project;
use crate::storage::certificate;
use crate::storage::database::Database;
use crate::storage::stage_log::{self, StageEntry};
use crate::storage::variants::{self, Written};
use crate::storage::{documents, settings, suite};

#[derive(Debug, Clone)]
pub struct Config {
    pub operators: Operators,
    /// The id of a case of the suite, or of a variant.
    pub seed: String,
    /// Where kept variants go.
    pub out: PathBuf,
    /// Replace variants that were changed since they were written.
    pub overwrite: bool,
}

impl Config {
    /// From the settings file of a project, with variants where reviewers look for them.
    pub fn read(project: &Project, seed: &str) -> Result<Self> {
        Ok(Self {
            operators: settings::read(&project.settings("expand")).kind(Kind::Settings)?,
            seed: seed.to_owned(),
            out: project.variants(),
            overwrite: false,
        })
    }
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub seed: CaseId,
    /// Whether the certificate shows that the seed tells implementations apart; none when no certificate knows it.
    pub discriminates: Option<bool>,
    pub out: PathBuf,
    /// In the order of the operators.
    pub variants: Vec<Variant>,
    /// Operators that do not fit, and variants that were no single-variable variants.
    pub rejected: Vec<Rejected>,
    pub n_kept: usize,
    /// Kept ones and controls that were not there before, or are another text now.
    pub n_written: usize,
}

#[derive(Debug, Serialize)]
pub struct Variant {
    pub id: CaseId,
    pub variable: Variable,
    pub operator: String,
    pub clause: String,
    /// From the seed, 0 to 1.
    pub distance: f64,
    /// The nearest of the variants kept before it.
    pub nearest: Option<Near>,
    pub kept: bool,
    /// Why it was dropped, or what is left to do.
    pub why: String,
    /// Controls that gate it; those mapped for it are written beside it.
    pub controls: Vec<String>,
    /// Controls that a person has to make before it can join the suite.
    pub to_make: Vec<String>,
    /// Its file and those of its controls were changed since they were written, and left as they are.
    pub left: Vec<CaseId>,
}

#[derive(Debug, Serialize)]
pub struct Near {
    pub id: CaseId,
    pub distance: f64,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let project = &context.project;
    let document =
        documents::read(&project.document()).map_err(|findings| Failure::findings(&findings))?;
    let cases = read(&project.cases())?;
    let waiting = read(&project.variants())?;
    let seed = find(&config.seed, &cases, &waiting)?;
    if document.clause(&seed.clause).is_none() {
        return Err(Failure::settings(format!(
            "{}: the document has no clause {}",
            project.shown(&seed.file),
            seed.clause
        )));
    }
    let mut controls = Vec::new();
    for name in seed.controls() {
        let control = cases.control(name).or_else(|| waiting.control(name));
        controls.push(control.ok_or_else(|| {
            Failure::settings(format!(
                "{}: there is no control {name:?}",
                project.shown(&seed.file)
            ))
        })?);
    }
    let (made, mut rejected) = drafts::drafts(
        &Seed {
            case: seed,
            controls,
        },
        &document,
        &config.operators,
    );
    rejected
        .sort_by(|a, b| (a.variable, &a.operator, &a.why).cmp(&(b.variable, &b.operator, &b.why)));
    let present: Vec<&Case> = cases.tests().filter(|case| case.id != seed.id).collect();
    let judged = selection::select(seed, &present, made, &config.operators);
    let certificate = certificate::read(&context.project.cases()).kind(Kind::Settings)?;
    let mut summary = Summary {
        seed: seed.id.clone(),
        discriminates: discriminates(certificate.as_ref(), &seed.id),
        out: config.out.clone(),
        variants: Vec::new(),
        rejected,
        n_kept: 0,
        n_written: 0,
    };
    for judged in judged {
        let draft = judged.draft;
        let kept = judged.dropped.is_none();
        let mut left = Vec::new();
        if kept {
            summary.n_kept += 1;
            let files = draft.controls.iter().map(|(id, text)| (id, text));
            for (id, text) in files.chain([(&draft.id, &draft.text)]) {
                let written = variants::write(&config.out, id.as_str(), text, config.overwrite)
                    .kind(Kind::Environment)?;
                match written {
                    Written::New | Written::Replaced => summary.n_written += 1,
                    Written::Same => {}
                    Written::Differs => left.push(id.clone()),
                }
            }
        }
        let why = match &judged.dropped {
            // Those that the suite has were run, so that their behaviour is known.
            Some(why) => match certificate
                .as_ref()
                .map(|one| rounds::agree(one, &seed.id, &draft.id))
            {
                Some(Some(true)) => {
                    format!("{why}, too close in behaviour: no candidate tells it from the seed")
                }
                _ => why.clone(),
            },
            None if !draft.to_make.is_empty() => {
                format!("a control has to be made: {}", draft.to_make.join("; "))
            }
            None if !left.is_empty() => "changed since it was written; left as it is".to_owned(),
            None => String::new(),
        };
        summary.variants.push(Variant {
            clause: draft.case.clause.to_string(),
            controls: draft.case.controls().to_vec(),
            id: draft.id,
            variable: draft.variable,
            operator: draft.operator,
            distance: round(judged.distance),
            nearest: judged.nearest.map(|(id, distance)| Near {
                id,
                distance: round(distance),
            }),
            kept,
            why,
            to_make: draft.to_make,
            left,
        });
    }
    let mut database = Database::open(&project.database()).kind(Kind::Environment)?;
    let entry = StageEntry {
        inputs: digest::of([seed.id.as_str(), seed.text.as_str()]),
        finished_at: context.timestamp(),
        summary: serde_json::to_string(&serde_json::json!({
            "seed": summary.seed,
            "n_kept": summary.n_kept,
            "n_written": summary.n_written,
            "n_dropped": summary.variants.len() - summary.n_kept,
            "n_rejected": summary.rejected.len(),
        }))?,
    };
    stage_log::finish(&mut database, "expand", &entry)?;
    Ok(summary)
}

/// A folder laid out like a suite; an absent one is empty.
fn read(folder: &std::path::Path) -> Result<Suite> {
    if !folder.is_dir() {
        return Ok(Suite::default());
    }
    suite::read(folder).map_err(|findings| Failure::findings(&findings))
}

fn find<'s>(name: &str, cases: &'s Suite, waiting: &'s Suite) -> Result<&'s Case> {
    let id = CaseId::new(name.trim_end_matches(".toml"));
    let case = cases.get(&id).or_else(|| waiting.get(&id)).ok_or_else(|| {
        let failure = Failure::user(format!("there is no case {id}"));
        let alike: Vec<&str> = cases
            .tests()
            .map(|case| case.id.as_str())
            .filter(|known| known.ends_with(id.name()))
            .collect();
        match alike.first() {
            Some(known) => failure.hint(format!("pipeline expand --seed {known}")),
            None => failure.hint("an id is CATEGORY/NAME: ls cases/*"),
        }
    })?;
    if case.is_control() {
        return Err(Failure::user(format!(
            "{id} is a control; a seed is a test case"
        )));
    }
    Ok(case)
}

fn discriminates(certificate: Option<&Certificate>, seed: &CaseId) -> Option<bool> {
    certificate
        .filter(|certificate| certificate.cases.contains_key(seed))
        .map(|certificate| {
            certificate
                .mutants
                .values()
                .any(|mutant| mutant.fails.contains_key(seed))
        })
}

fn round(distance: f64) -> f64 {
    (distance * 1000.0).round() / 1000.0
}
