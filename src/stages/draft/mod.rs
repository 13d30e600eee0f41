//! Draft: from a cluster to a case that waits for a reviewer. Without a model it is a scenario to start from; a model's
//! draft is queued only when it passes every check, the last of which run it in cells.
//!
//! Nothing of an issue or an answer is executed here: both end up as values of a case, a case runs in a cell, and the
//! name of its file comes from the cluster's id and a closed list of categories.

mod proof;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::proof::Bench;
use super::evaluate;
use super::sandboxes::{SandboxKind, Settings as Sandboxes};
use super::{Classify, Context, Failure, Kind, Result};
use crate::adapters::chat_model::{ChatError, ChatModel};
use crate::domain::case::{Case, CaseFile, CaseId};
use crate::domain::clause::ClauseId;
use crate::domain::decision::{SubjectKind, Verb, standing};
use crate::domain::document::Document;
use crate::domain::draft::{Check, Refusal};
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::Cluster;
use crate::domain::place::Finding;
use crate::domain::secret::Secret;
use crate::domain::suite::{Suite, control_id};
use crate::methods::cases::difference::{broken, differences};
use crate::methods::cases::lint;
use crate::methods::drafting::answer::{self, Answer, Bounds};
use crate::methods::drafting::question::{self, Share};
use crate::methods::drafting::scenario::{self, Subject};
use crate::methods::drafting::{TO_FINISH, case_text};
use crate::methods::expansion::signature::Signatures;
use crate::methods::suite_check;
use crate::methods::text::words;
use crate::paths::Project;
use crate::storage::database::Database;
use crate::storage::drafts::{self, Refused};
use crate::storage::variants::{self, Written};
use crate::storage::{clusters, documents, issues, ranking, reviews, settings};

/// What a model is told of the case language.
const LANGUAGE: &str = include_str!("../../../docs/cases.md");
/// Clauses that a model may choose from, the cluster's own first.
const N_CLAUSES: usize = 5;

pub struct Config {
    /// The id of a cluster that the filter kept.
    pub cluster: String,
    /// The endpoint that is asked; none for a scenario to start from.
    pub model: Option<String>,
    pub model_name: Option<String>,
    pub key: Option<Secret>,
    /// Replace a draft that was changed since it was written.
    pub overwrite: bool,
    pub sandbox: SandboxKind,
    pub settings: Settings,
    pub sandboxes: Sandboxes,
}

/// `pipeline/draft.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub model: ModelSettings,
    pub case: CaseSettings,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    pub name: String,
    pub time_limit_s: u64,
    pub attempts: u32,
    pub issues: usize,
    pub issue_chars: usize,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseSettings {
    pub time_limit_s: u32,
}

impl Settings {
    pub fn read(project: &Project) -> Result<Self> {
        settings::read(&project.settings("draft")).kind(Kind::Settings)
    }
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub cluster: String,
    pub clause: ClauseId,
    /// Issues that are linked as material.
    pub n_issues: usize,
    /// The case whose scenario the draft starts from; none where nothing is near.
    pub start: Option<CaseId>,
    /// None when every draft was refused.
    pub queued: Option<Queued>,
    pub refused: Vec<Refusal>,
    /// Where the refused drafts are kept.
    pub refused_file: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct Queued {
    pub case: CaseId,
    /// Files below the queue, the case's first, then those of new controls.
    pub files: Vec<String>,
    /// Files that somebody changed since they were written; they were left.
    pub left: Vec<String>,
    /// What is left to do before it can be approved.
    pub to_finish: Option<String>,
    /// What a reviewer should look at.
    pub notes: Vec<String>,
}

/// Everything that a draft is made from.
struct Material {
    cluster: Cluster,
    clause: ClauseId,
    /// The representative first.
    issues: Vec<Issue>,
    sources: Vec<IssueKey>,
    /// Clauses that the issues match, the cluster's own first.
    clauses: Vec<ClauseId>,
    document: Document,
    suite: Suite,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let material = material(context, &config.cluster)?;
    let clause = material
        .document
        .clause(&material.clause)
        .expect("was looked up before");
    let subject = Subject {
        cluster: &material.cluster,
        clause,
        sources: &material.sources,
    };
    let near = scenario::nearest(&subject, &material.suite, &material.document, words::terms);
    // What a neighbour asserts may be on another channel than the clause's.
    let copied = near.and_then(|near| {
        let file = unique(scenario::copied(&subject, near), &material);
        let drafted = Drafted::of(&material, file, BTreeMap::new()).ok()?;
        drafted
            .faults(&material)
            .is_none()
            .then_some((near, drafted))
    });
    let (start, drafted) = match copied {
        Some((near, drafted)) => (Some(near), drafted),
        None => {
            let file = unique(scenario::plain(&subject), &material);
            let drafted = Drafted::of(&material, file, BTreeMap::new())
                .map_err(|refusal| Failure::new(Kind::Internal, refusal.reason))?;
            (None, drafted)
        }
    };
    let mut summary = Summary {
        cluster: material.cluster.id.clone(),
        clause: material.clause.clone(),
        n_issues: material.sources.len(),
        start: start.map(|case| case.id.clone()),
        queued: None,
        refused: Vec::new(),
        refused_file: None,
    };
    let Some(base) = &config.model else {
        let to_finish = match start {
            Some(case) => format!(
                "scenario and assertions are those of {}; say what the issues report",
                case.id
            ),
            None => "say what the issues report, and assert what the clause wants".to_owned(),
        };
        summary.queued = Some(queue(
            context,
            config,
            &material,
            &drafted,
            Some(to_finish),
        )?);
        return Ok(summary);
    };
    let name = config
        .model_name
        .as_ref()
        .unwrap_or(&config.settings.model.name);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let found = runtime.block_on(filled(
        context, config, &material, &drafted, start, base, name,
    ));
    // Whatever judges a hostile draft for ever must not hold us.
    runtime.shutdown_timeout(Duration::from_secs(2));
    let (found, refused) = found?;
    if !refused.is_empty() {
        let file = drafts::append(&context.project.drafts(), &summary.cluster, &refused)
            .kind(Kind::Environment)?;
        summary.refused_file = Some(context.project.shown(&file));
    }
    if let Some(drafted) = found {
        summary.queued = Some(queue(context, config, &material, &drafted, None)?);
    }
    summary.refused = refused.into_iter().map(|one| one.refusal).collect();
    Ok(summary)
}

/// Asks the model until a draft passes or there are no attempts left.
async fn filled(
    context: &Context,
    config: &Config,
    material: &Material,
    start: &Drafted,
    near: Option<&Case>,
    base: &str,
    name: &str,
) -> Result<(Option<Drafted>, Vec<Refused>)> {
    let asked = &config.settings.model;
    let limit = Duration::from_secs(asked.time_limit_s);
    let model = ChatModel::new(base, name, config.key.clone(), limit).map_err(model_failure)?;
    let clauses: Vec<_> = material
        .clauses
        .iter()
        .filter_map(|id| material.document.clause(id))
        .collect();
    let controls: Vec<&Case> = near
        .into_iter()
        .flat_map(|case| material.suite.gating(case))
        .collect();
    let share = Share {
        n_issues: asked.issues,
        n_chars: asked.issue_chars,
    };
    let mut messages = question::ask(
        LANGUAGE,
        &clauses,
        &start.file,
        &controls,
        &material.issues,
        share,
    );
    // Opened when the first draft is to be run.
    let mut bench = None;
    let mut refused = Vec::new();
    context
        .progress
        .begin("draft", Some(u64::from(asked.attempts)));
    for _ in 0..asked.attempts {
        let answer = model.ask(&messages).await.map_err(model_failure)?;
        context.progress.advance(1);
        let refusal = match checked(config, material, &answer) {
            Ok(drafted) => {
                if bench.is_none() {
                    bench = Some(Bench::open(context, config).await?);
                }
                let bench = bench.as_ref().expect("was opened above");
                match bench.prove(&material.suite, &drafted).await? {
                    None => {
                        context.progress.end("a draft passes every check");
                        return Ok((Some(drafted), refused));
                    }
                    Some(refusal) => refusal,
                }
            }
            Err(refusal) => refusal,
        };
        messages.extend(question::again(answer.clone(), &refusal));
        refused.push(Refused {
            at: context.timestamp(),
            model: name.to_owned(),
            refusal,
            answer,
        });
    }
    context.progress.end("no draft passes");
    Ok((None, refused))
}

/// Reads an answer and checks it without running anything.
fn checked(
    config: &Config,
    material: &Material,
    text: &str,
) -> std::result::Result<Drafted, Refusal> {
    let bounds = Bounds {
        clauses: material.clauses.iter().cloned().collect(),
        time_limit_s: config.settings.case.time_limit_s,
    };
    let clause = material.document.clause(&material.clause);
    let origin = scenario::origin(&Subject {
        cluster: &material.cluster,
        clause: clause.expect("was looked up before"),
        sources: &material.sources,
    });
    let Answer { case, controls } = answer::bounded(answer::read(text)?, origin, &bounds)?;
    let drafted = Drafted::of(material, case, controls)?;
    match drafted.faults(material) {
        None => Ok(drafted),
        Some(refusal) => Err(refusal),
    }
}

/// A draft as files would hold it.
pub(super) struct Drafted {
    file: CaseFile,
    case: Case,
    controls: Vec<(CaseFile, Case)>,
}

impl Drafted {
    /// Every file is parsed on its own.
    fn of(
        material: &Material,
        file: CaseFile,
        controls: BTreeMap<String, CaseFile>,
    ) -> std::result::Result<Self, Refusal> {
        let category = file.category.expect("a draft is a test case");
        let id = CaseId::new(format!("{category}/{}", name(&material.cluster.id)));
        Ok(Self {
            case: parsed(id, &file)?,
            file,
            controls: controls
                .into_iter()
                .map(|(name, file)| Ok((file.clone(), parsed(control_id(&name), &file)?)))
                .collect::<std::result::Result<_, Refusal>>()?,
        })
    }

    /// The case, then its new controls.
    fn all(&self) -> impl Iterator<Item = &Case> {
        [&self.case]
            .into_iter()
            .chain(self.controls.iter().map(|(_, control)| control))
    }

    /// The suite with the draft in it.
    fn joined(&self, suite: &Suite) -> Suite {
        Suite::new(suite.all().chain(self.all()).cloned())
    }

    /// What an evaluation or `case lint` would refuse.
    fn faults(&self, material: &Material) -> Option<Refusal> {
        for case in self.all() {
            if material.suite.get(&case.id).is_some() {
                let reason = format!("the suite has {} already", case.id);
                return Some(Refusal::new(Check::Lint, reason));
            }
        }
        let joined = self.joined(&material.suite);
        let mut faults: Vec<String> = suite_check::check(&joined, &material.document)
            .iter()
            .filter(|finding| self.all().any(|case| case.file == finding.place.file))
            .map(told)
            .collect();
        for control in joined.gating(&self.case) {
            let found = broken(&differences(&self.case, control));
            faults.extend(
                found
                    .into_iter()
                    .map(|fault| format!("control {} {fault}", control.id.name())),
            );
        }
        (!faults.is_empty()).then(|| Refusal::new(Check::Lint, faults.join("\n")))
    }

    /// What a careful reader would say.
    fn notes(&self, material: &Material) -> Vec<String> {
        let signatures = Signatures::of(&material.document);
        let knows_tool = |name: &str| signatures.get(name).is_some();
        self.all()
            .flat_map(|case| lint::notes(case, &material.document, &knows_tool))
            .map(|finding| told(&finding))
            .collect()
    }
}

/// The file of a draft and the line, as `CATEGORY/NAME:LINE: MESSAGE`.
fn told(finding: &Finding) -> String {
    finding.to_string()
}

fn parsed(id: CaseId, file: &CaseFile) -> std::result::Result<Case, Refusal> {
    let text = case_text::text(file, &[]).map_err(|reason| Refusal::new(Check::Schema, reason))?;
    Case::parse(id.clone(), Path::new(id.as_str()), &text).map_err(|findings| {
        let lines: Vec<String> = findings.iter().map(told).collect();
        Refusal::new(Check::Schema, lines.join("\n"))
    })
}

/// The name of a case: what of a cluster's id may stand in one.
fn name(cluster: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    cluster
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect()
}

/// With a title that no case of the suite has.
fn unique(mut file: CaseFile, material: &Material) -> CaseFile {
    if material.suite.all().any(|case| case.title == file.title) {
        file.title = format!("draft of {}", material.cluster.id);
    }
    file
}

/// Writes the files into the queue, with the material at the top of the case's.
fn queue(
    context: &Context,
    config: &Config,
    material: &Material,
    drafted: &Drafted,
    to_finish: Option<String>,
) -> Result<Queued> {
    let notes = drafted.notes(material);
    let mut comments: Vec<String> = Vec::new();
    comments.extend(to_finish.iter().map(|what| format!("{TO_FINISH}{what}.")));
    comments.push(format!(
        "Drafted from the cluster {}, {} issues: {}",
        material.cluster.id,
        material.sources.len(),
        material.cluster.effect
    ));
    comments.extend(
        material
            .issues
            .iter()
            .map(|issue| format!("  {}  {}  {}", issue.key, issue.url, issue.title)),
    );
    if let Some(clause) = material.document.clause(&drafted.case.clause) {
        comments.push(format!("{}: {}", clause.id, clause.behaviour));
    }
    comments.extend(notes.iter().map(|note| format!("Note: {note}")));
    let folder = context.project.variants();
    let mut queued = Queued {
        case: drafted.case.id.clone(),
        files: Vec::new(),
        left: Vec::new(),
        to_finish,
        notes,
    };
    let none = Vec::new();
    let controls = drafted
        .controls
        .iter()
        .map(|(file, control)| (file, control, &none));
    for (file, case, comments) in [(&drafted.file, &drafted.case, &comments)]
        .into_iter()
        .chain(controls)
    {
        let text = case_text::text(file, comments).expect("was written once before");
        let id = case.id.as_str();
        let written =
            variants::write(&folder, id, &text, config.overwrite).kind(Kind::Environment)?;
        let shown = context.project.shown(&variants::file(&folder, id));
        match written {
            Written::Differs => queued.left.push(shown),
            Written::New | Written::Same | Written::Replaced => queued.files.push(shown),
        }
    }
    Ok(queued)
}

fn material(context: &Context, id: &str) -> Result<Material> {
    let suite = evaluate::suite(context)?;
    let comes_from_it = |case: &&Case| {
        let phenomenon = case
            .origin()
            .and_then(|origin| origin.phenomenon.as_deref());
        phenomenon == Some(id)
    };
    if let Some(case) = suite.tests().find(comes_from_it) {
        let message = format!("{} is there already, and comes from {id}", case.id);
        return Err(Failure::user(message).hint(format!("pipeline case show {}", case.id)));
    }
    let document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    let database = Database::open_to_read(&context.project.database()).kind(Kind::Environment)?;
    let cluster = clusters::all(&database)?
        .into_iter()
        .find(|cluster| cluster.id == id)
        .ok_or_else(|| {
            Failure::user(format!("there is no cluster {id:?}"))
                .hint("pipeline review list --kind cluster")
        })?;
    let outcome = clusters::outcomes(&database)?
        .into_iter()
        .find(|outcome| outcome.cluster == id)
        .ok_or_else(|| {
            Failure::user("the clusters are not filtered yet").hint("pipeline filter")
        })?;
    if let Some(rule) = outcome.rule {
        return Err(Failure::user(format!(
            "the filter dropped {id}: {rule}, {}",
            outcome.reason
        ))
        .hint(format!("pipeline filter --restore {id} --why TEXT")));
    }
    let decisions =
        reviews::read(&context.project.reviews(), SubjectKind::Cluster).kind(Kind::Settings)?;
    let rejected = standing(&decisions)
        .into_iter()
        .find(|(subject, made)| subject.id == id && made.decision == Verb::Reject);
    if let Some((subject, made)) = rejected {
        return Err(
            Failure::user(format!("{} rejected {subject}: {}", made.by, made.why))
                .hint(format!("pipeline review undo {subject}")),
        );
    }
    let clause = cluster
        .clause
        .clone()
        .filter(|clause| document.clause(clause).is_some())
        .ok_or_else(|| {
            Failure::user(format!("no clause of the document matches {id}"))
                .hint("pipeline rank, then pipeline cluster --again")
        })?;
    let mut sources = clusters::material(&database, &cluster)?;
    sources.sort_by_key(|key| (*key != cluster.representative, key.clone()));
    let ranked = ranking::all(&database)?;
    let mut found = Vec::new();
    let mut matched: BTreeMap<&ClauseId, f64> = BTreeMap::new();
    for key in &sources {
        found.extend(issues::get(&database, key)?);
        let best = ranked.get(key).map(|ranked| &ranked.relevance.clauses[..]);
        for score in best.unwrap_or_default() {
            *matched.entry(&score.clause).or_default() += score.score;
        }
    }
    let mut matched: Vec<(&ClauseId, f64)> = matched.into_iter().collect();
    matched.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let mut seen = BTreeSet::new();
    let clauses = [&clause]
        .into_iter()
        .chain(matched.iter().map(|(clause, _)| *clause))
        .filter(|clause| document.clause(clause).is_some() && seen.insert((*clause).clone()))
        .take(N_CLAUSES)
        .cloned()
        .collect();
    Ok(Material {
        clause,
        clauses,
        issues: found,
        sources,
        cluster,
        document,
        suite,
    })
}

/// A model that cannot be asked leaves nothing behind.
fn model_failure(error: ChatError) -> Failure {
    let message = error.to_string();
    match error {
        ChatError::Address(_) | ChatError::InClear(_) => Failure::user(message),
        ChatError::TimedOut { .. } => Failure::environment(message)
            .hint("a slow model is given more time by time_limit_s in pipeline/draft.toml"),
        ChatError::Refused { .. } => Failure::environment(message)
            .hint("the key is PIPELINE_MODEL_KEY in the environment; --model-name names the model"),
        ChatError::Client(_) | ChatError::Unreachable { .. } | ChatError::NotChat { .. } => {
            Failure::environment(message)
                .hint("--model URL is the base of an OpenAI-compatible endpoint, as http://127.0.0.1:8000/v1")
        }
    }
}
