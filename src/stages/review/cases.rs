//! A case as a reviewer reads it: its story, its clause, what it changes of its seed, what is proved of it, and a run of
//! it here and now, whether it is in the suite or waits to join it.

use std::path::Path;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::deciding::moves;
use super::items::{find, items};
use super::joining::settle;
use super::{Item, Reader, file_of, made, text};
use crate::domain::candidate::REFERENCE;
use crate::domain::case::{CaseId, Origin, Role};
use crate::domain::clause::Clause;
use crate::domain::decision::{Decision, Own, Subject, SubjectKind, Verb};
use crate::domain::suite::Suite;
use crate::methods::cases::story::{Story, tell};
use crate::paths::Project;
use crate::stages::case::with_variants;
use crate::stages::evaluate::{self, TakeUp};
use crate::stages::sandboxes::Settings;
use crate::stages::{Classify, Context, Failure, Kind, Result, show};
use crate::storage::{certificate, documents, suite};

/// All that is known of a case.
#[derive(Debug, Serialize)]
pub struct Dossier {
    pub item: Item,
    pub file: String,
    pub text: String,
    pub story: Story,
    #[serde(skip)]
    pub clause: Option<Clause>,
    pub origin: Option<Origin>,
    /// Of a variant: what it changes, line by line.
    pub seed: Option<(String, Vec<(Changed, String)>)>,
    pub proof: Proof,
    /// What keeps it out of the suite yet.
    pub unfinished: Option<String>,
    /// A decision brings it into the suite or takes it out.
    pub moves: bool,
    pub notes: Vec<Decision>,
    /// Lines on it, those that no longer count too.
    pub n_lines: usize,
    /// The reader took a decision on it back, and has not decided since.
    pub can_redo: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Changed {
    Same,
    Added,
    Removed,
}

/// What the certificate of the suite says of a case.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// It is in no certificate: `pipeline certify` has not seen it.
    None,
    /// It has changed since.
    Old,
    Current {
        /// Why it fails on the reference; none when it passes.
        reference: Option<String>,
        /// Mutants that fail it, with the reason.
        failed_by: Vec<(String, String)>,
        n_mutants: usize,
    },
}

/// Lines around a change that are shown.
const N_AROUND: usize = 3;

/// Cases that wait or that somebody decided on, as a reader may see them.
pub fn cases(context: &Context, reader: &Reader) -> Result<Vec<Item>> {
    settle(context)?;
    let mut items = items(context, SubjectKind::Case, reader.alone())?;
    if reader.blind {
        // Where a case lies says what others decided.
        for item in &mut items {
            item.why = "waits for your vote".to_owned();
        }
    }
    Ok(items)
}

/// All that is known of a case, as a reader may see it.
pub fn dossier(context: &Context, id: &str, reader: &Reader) -> Result<Dossier> {
    let subject = Subject {
        kind: SubjectKind::Case,
        id: id.to_owned(),
    };
    let item = find(context, &subject, reader.alone())?;
    let (all, _) = with_variants(context);
    let case = all.get(&CaseId::new(id)).ok_or_else(|| {
        Failure::user(format!("the file of {id} cannot be read")).hint("pipeline case lint")
    })?;
    let document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    let origin = match &case.role {
        Role::Test { origin, .. } => origin.clone(),
        Role::Control { .. } => None,
    };
    let mut decisions = made(context, SubjectKind::Case)?;
    decisions.retain(|made| reader.alone().is_none_or(|by| made.by == by));
    let on_it = decisions.iter().filter(|one| one.on == subject);
    Ok(Dossier {
        file: match reader.blind {
            true => file_of(id),
            false => context.project.shown(&case.file),
        },
        text: case.text.clone(),
        story: tell(case, &all),
        clause: document.clause(&case.clause).cloned(),
        seed: origin
            .as_ref()
            .and_then(|origin| origin.seed.clone())
            .and_then(|seed| Some((seed.clone(), changes(&all, &seed, &case.text)?))),
        proof: proof(context, id, &suite::case_digest(case))?,
        unfinished: text::unfinished(context, id)?.map(|(what, to_do)| format!("{what}; {to_do}")),
        notes: on_it
            .clone()
            .filter(|one| one.decision == Verb::Note)
            .cloned()
            .collect(),
        can_redo: !Own::of(on_it.clone(), &reader.name).taken_back.is_empty(),
        n_lines: on_it.count(),
        moves: moves(context, &item)?,
        origin,
        item,
    })
}

fn changes(all: &Suite, seed: &str, text: &str) -> Option<Vec<(Changed, String)>> {
    let seed = all.get(&CaseId::new(seed))?;
    let diff = TextDiff::from_lines(seed.text.as_str(), text);
    let mut lines = Vec::new();
    for (idx, group) in diff.grouped_ops(N_AROUND).iter().enumerate() {
        if idx > 0 {
            lines.push((Changed::Same, "…".to_owned()));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let how = match change.tag() {
                ChangeTag::Equal => Changed::Same,
                ChangeTag::Insert => Changed::Added,
                ChangeTag::Delete => Changed::Removed,
            };
            lines.push((how, change.value().trim_end_matches('\n').to_owned()));
        }
    }
    Some(lines)
}

fn proof(context: &Context, id: &str, digest: &str) -> Result<Proof> {
    let Some(certificate) = certificate::read(&context.project.cases()).kind(Kind::Settings)?
    else {
        return Ok(Proof::None);
    };
    let id = CaseId::new(id);
    match certificate.cases.get(&id) {
        None => return Ok(Proof::None),
        Some(known) if known != digest => return Ok(Proof::Old),
        Some(_) => {}
    }
    let mut failed_by: Vec<(String, String)> = Vec::new();
    for (name, subject) in &certificate.mutants {
        if let Some(reason) = subject.fails.get(&id) {
            failed_by.push((name.clone(), reason.clone()));
        }
    }
    Ok(Proof::Current {
        reference: certificate.reference.fails.get(&id).cloned(),
        failed_by,
        n_mutants: certificate.mutants.len(),
    })
}

/// How a case ended just now.
#[derive(Debug, Serialize)]
pub struct Tried {
    pub candidate: String,
    pub unit: show::Unit,
}

/// Runs a case and its controls on a candidate, in a folder that is gone afterwards: nothing is stored, and a variant is
/// run as if it had joined. How far it is goes to the progress of `context`.
pub fn try_out(context: Context, id: &str, candidate: Option<&str>) -> Result<Tried> {
    let candidate = candidate.unwrap_or(REFERENCE).to_owned();
    let folder = tempfile::tempdir()?;
    let project = trial_project(&context, id, folder.path())?;
    let trial = Context { project, ..context };
    let settings = Settings::read(&trial)?;
    let config = evaluate::Config {
        candidates: vec![candidate.clone()],
        cases: vec![id.to_owned()],
        sandbox: settings.sandbox,
        jobs: settings.jobs(),
        repeat: 1,
        run: Some("here".to_owned()),
        resume: None,
        take_up: TakeUp::Nothing,
        seed: None,
        shuffle: None,
        known: Vec::new(),
        settings,
    };
    evaluate::run(&trial, &config)?;
    let config = show::Config {
        run: Some("here".to_owned()),
        case: Some(id.to_owned()),
        candidate: Some(candidate.clone()),
        repetition: None,
    };
    let show::Summary::Units(units) = show::run(&trial, &config)? else {
        unreachable!("a case was named");
    };
    let unit = units.units.into_iter().next();
    Ok(Tried {
        candidate,
        unit: unit.ok_or_else(|| Failure::user(format!("{id} was not run")))?,
    })
}

/// A project with one case and its controls; all else is that of the real one.
fn trial_project(context: &Context, id: &str, root: &Path) -> Result<Project> {
    let (all, _) = with_variants(context);
    let case = all
        .get(&CaseId::new(id))
        .ok_or_else(|| Failure::user(format!("there is no case {id}")))?;
    let real = context.project.root();
    std::fs::create_dir_all(root.join("data"))?;
    for part in [
        "pipeline",
        "candidates",
        "skeleton",
        "data/document",
        "data/inventory",
        "data/frozen",
        "data/packages",
    ] {
        if real.join(part).exists() {
            std::os::unix::fs::symlink(real.join(part), root.join(part))?;
        }
    }
    for one in std::iter::once(case).chain(all.gating(case)) {
        let path = root.join("cases").join(file_of(one.id.as_str()));
        std::fs::create_dir_all(path.parent().expect("a case lies in a folder"))?;
        std::fs::write(path, &one.text)?;
    }
    // Cells belong to another user.
    for part in ["", "data"] {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(root.join(part), open)?;
    }
    Ok(Project::find(root).expect("it is laid out like one"))
}
