//! The contract check of candidates, which freezes those that pass.

use serde::Serialize;

use super::contract::{self, Bench, Report};
use super::sandboxes::{self, SandboxKind};
use super::{Classify, Context, Kind, Result};
use crate::storage::candidates;

/// What to check, and where.
#[derive(Debug, Clone)]
pub struct Config {
    /// Names below `candidates/` or paths.
    pub candidates: Vec<String>,
    pub sandbox: SandboxKind,
    /// Keeps a record of those that pass.
    pub freeze: bool,
    pub settings: contract::Settings,
    pub sandboxes: sandboxes::Settings,
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub candidates: Vec<Report>,
    pub frozen: bool,
}

/// Checks each candidate in turn.
pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let folder = context.project.candidates();
    let mut found = Vec::new();
    for name in &config.candidates {
        let candidate = candidates::find(&folder, name)
            .kind(Kind::User)
            .map_err(|failure| failure.hint("ls candidates candidates/mutants"))?;
        found.push(candidate);
    }
    let reports = runtime.block_on(async {
        let bench = bench(context, config).await?;
        let mut reports = Vec::new();
        context.progress.begin("check", Some(found.len() as u64));
        for candidate in &found {
            let report = contract::check(&bench, candidate).await?;
            if config.freeze && report.passed {
                contract::freeze(context, &report)?;
            }
            reports.push(report);
            context.progress.advance(1);
        }
        let n_passed = reports.iter().filter(|report| report.passed).count();
        context
            .progress
            .end(&format!("{n_passed} of {} pass", reports.len()));
        Ok::<_, super::Failure>(reports)
    })?;
    Ok(Summary {
        candidates: reports,
        frozen: config.freeze,
    })
}

async fn bench<'a>(context: &'a Context, config: &Config) -> Result<Bench<'a>> {
    let settings = &config.sandboxes;
    Ok(Bench {
        context,
        sandbox: sandboxes::open(context, config.sandbox, &settings.image).await?,
        limits: settings.limits.clone(),
        install_limit: settings.install_limit(),
        cells: sandboxes::cells(context, &settings.cells)?,
        settings: config.settings.clone(),
    })
}
