//! The verdicts that are analysed, from runs or a table, with the witnesses set aside.

use std::collections::{BTreeMap, BTreeSet};

use super::{Config, Source, csv_failure};
use crate::domain::candidate::REFERENCE;
use crate::domain::case::CaseId;
use crate::domain::certificate::Certificate;
use crate::domain::results::{self, Row, Status};
use crate::methods::analysis::Witnesses;
use crate::stages::{Context, Failure, Result, stored_run};
use crate::storage::certificate;
use crate::storage::runs::Plan;
use crate::storage::verdict_table;

pub(super) struct Verdicts {
    pub source: String,
    pub n_unfinished: usize,
    /// Of candidates that are no witnesses.
    pub rows: Vec<Row>,
    pub witnesses: Witnesses,
    /// Of runs: candidate → digest of its tree.
    pub digests: BTreeMap<String, String>,
    /// Of runs: the digest of their cases.
    suite: String,
}

impl Verdicts {
    pub fn read(context: &Context, config: &Config) -> Result<Self> {
        let mut verdicts = match &config.source {
            Source::Runs(ids) => of_runs(context, ids, &config.models)?,
            Source::Table(path) => Self {
                source: context.project.shown(path),
                n_unfinished: 0,
                rows: of_table(path, &config.models)?,
                witnesses: Witnesses::new(),
                digests: BTreeMap::new(),
                suite: String::new(),
            },
        };
        let unknown = config
            .models
            .keys()
            .find(|name| !verdicts.rows.iter().any(|row| row.candidate == **name));
        if let Some(unknown) = unknown {
            return Err(Failure::user(format!("no candidate is named {unknown:?}")));
        }
        verdicts.set_aside(config)?;
        Ok(verdicts)
    }

    /// Candidates and models by name, each once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.rows.iter();
        names
            .flat_map(|row| [row.candidate.as_str(), row.model.as_str()])
            .collect::<BTreeSet<_>>()
            .into_iter()
    }

    /// Where everybody would be a witness, nobody is: somebody wants to see these figures.
    fn set_aside(&mut self, config: &Config) -> Result<()> {
        let names = config.settings.witness_names()?;
        let (aside, kept): (Vec<Row>, Vec<Row>) = std::mem::take(&mut self.rows)
            .into_iter()
            .partition(|row| names.is_match(&row.candidate));
        if kept.is_empty() {
            self.rows = aside;
            return Ok(());
        }
        self.rows = kept;
        for row in aside {
            let seen = self.witnesses.entry(row.candidate).or_default();
            seen.insert(row.case, row.status);
        }
        Ok(())
    }
}

fn of_table(path: &std::path::Path, models: &BTreeMap<String, String>) -> Result<Vec<Row>> {
    let mut rows = verdict_table::read(path).map_err(csv_failure)?;
    for row in &mut rows {
        if let Some(model) = models.get(&row.candidate) {
            row.model.clone_from(model);
        }
    }
    Ok(rows)
}

fn of_runs(
    context: &Context,
    ids: &[String],
    models: &BTreeMap<String, String>,
) -> Result<Verdicts> {
    let mut ids = ids.iter();
    let mut all = of_run(context, ids.next().map(String::as_str), models)?;
    for id in ids {
        let more = of_run(context, Some(id), models)?;
        if more.suite != all.suite {
            return Err(Failure::user(format!(
                "the runs {} and {id} are about different cases",
                all.source
            ))
            .hint("evaluate all candidates on the same cases, or analyze the runs one by one"));
        }
        if let Some(name) = more
            .digests
            .keys()
            .find(|name| all.digests.contains_key(*name))
        {
            return Err(Failure::user(format!(
                "{name} is in the run {id} and in one before it: {}",
                all.source
            )));
        }
        all.source = format!("{}, {}", all.source, more.source);
        all.n_unfinished += more.n_unfinished;
        all.rows.extend(more.rows);
        all.witnesses.extend(more.witnesses);
        all.digests.extend(more.digests);
    }
    Ok(all)
}

fn of_run(
    context: &Context,
    id: Option<&str>,
    models: &BTreeMap<String, String>,
) -> Result<Verdicts> {
    let run = stored_run::open_whole(context, id)?;
    let verdicts = run.verdicts().map_err(stored_run::classify)?;
    let facts = stored_run::facts(context, &run.plan);
    let n_planned = run.plan.candidates.len() * facts.len();
    let mut witnesses = Witnesses::new();
    // A certificate that cannot be read is told by `certify`; here one witness is missing.
    if let Ok(Some(certificate)) = certificate::read(&context.project.cases()) {
        let seen = certified(&run.plan, &certificate);
        if !seen.is_empty() {
            witnesses.insert(REFERENCE.to_owned(), seen);
        }
    }
    Ok(Verdicts {
        source: run.id().to_owned(),
        n_unfinished: n_planned - verdicts.len(),
        rows: results::rows(&verdicts, &facts, models),
        witnesses,
        digests: run
            .plan
            .candidates
            .iter()
            .map(|candidate| (candidate.name.clone(), candidate.digest.clone()))
            .collect(),
        suite: run.plan.suite.clone(),
    })
}

/// How the reference fared on the cases of a plan that are still as they were certified, controls counted in.
fn certified(plan: &Plan, certificate: &Certificate) -> BTreeMap<CaseId, Status> {
    let digests: BTreeMap<&CaseId, &str> = plan
        .cases
        .iter()
        .map(|case| (&case.id, case.digest.as_str()))
        .collect();
    let same = |id: &CaseId| {
        let certified = certificate.cases.get(id).map(String::as_str);
        certified.is_some() && certified == digests.get(id).copied()
    };
    let fails = &certificate.reference.fails;
    plan.cases
        .iter()
        .filter(|case| case.category.is_some())
        .filter(|case| same(&case.id) && case.controls.iter().all(same))
        .map(|case| {
            let passed = std::iter::once(&case.id)
                .chain(&case.controls)
                .all(|id| !fails.contains_key(id));
            let status = if passed { Status::Pass } else { Status::Fail };
            (case.id.clone(), status)
        })
        .collect()
}
