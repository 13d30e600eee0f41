//! Reading of issues in batches: what is unread comes in an order that is learned anew from what was read, and whether
//! reading may stop is calculated.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::deciding::is_named;
use super::{database, made};
use crate::domain::decision::{Decision, Subject, SubjectKind, Verb, standing};
use crate::domain::digest;
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::{IssueTerms, RankedIssue};
use crate::methods::feedback::{self, Features, Learned};
use crate::methods::issue_vectors::{self, Lexicon};
use crate::methods::stopping::{self, Reading};
use crate::methods::text;
use crate::methods::text::vocabulary::Vocabulary;
use crate::methods::text::words;
use crate::paths::Project;
use crate::stages::cluster;
use crate::stages::{Classify, Context, Failure, Kind, Result};
use crate::storage::samples::{self, Sample};
use crate::storage::{issues, ranking, reviews, settings};

/// `pipeline/review.toml`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Issues that are shown at a time.
    pub batch: usize,
    pub stop: stopping::Settings,
    pub feedback: feedback::Settings,
}

#[derive(Debug, Clone)]
pub struct Config {
    pub settings: Settings,
    /// For the terms of issues and their weights.
    pub clustering: cluster::Config,
    /// Issues to show instead of what the settings say.
    pub n: Option<usize>,
    /// Draw a closing sample of so many.
    pub sample: Option<usize>,
}

impl Config {
    /// From the settings files of a project.
    pub fn read(project: &Project) -> Result<Self> {
        Ok(Self {
            settings: settings::read(&project.settings("review")).kind(Kind::Settings)?,
            clustering: cluster::Config::read(project)?,
            n: None,
            sample: None,
        })
    }
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub reading: Reading,
    /// What comes next, and why in this order.
    pub order: Order,
    pub batch: Vec<Unread>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// That of the ranking by the document: too little was read to learn from.
    Ranking,
    /// Learned from what was read.
    Learned,
    /// The closing sample is read first.
    Sample,
}

#[derive(Debug, Serialize)]
pub struct Unread {
    pub key: IssueKey,
    pub title: String,
    /// In the ranking.
    pub place: u64,
    pub clause: Option<String>,
    /// Words that speak for the issue most, by what was learned.
    pub words: Vec<String>,
}

/// Words that are shown with an issue.
const N_WORDS: usize = 5;

pub fn read(context: &Context, config: &Config) -> Result<Summary> {
    let database = database(context)?;
    let issues = issues::all(&database)?;
    let ranked = ranking::all(&database)?;
    if ranked.is_empty() {
        return Err(Failure::user("there is no ranking yet").hint("pipeline rank"));
    }
    let labels = labels(context, &issues)?;
    let unread: Vec<usize> = (0..issues.len())
        .filter(|idx| !labels.holds(&issues[*idx].key))
        .collect();
    if let Some(n) = config.sample {
        draw(context, &issues, &unread, n)?;
    }
    let sample = samples::read(&context.project.reviews())
        .kind(Kind::Settings)?
        .pop();
    let reading = labels.reading(issues.len(), sample.as_ref(), &config.settings.stop);
    let place = |idx: &usize| {
        ranked
            .get(&issues[*idx].key)
            .map_or(u64::MAX, |one| one.place)
    };
    let of_sample: BTreeSet<&IssueKey> = sample.iter().flat_map(|sample| &sample.issues).collect();
    let mut next: Vec<usize> = unread
        .iter()
        .copied()
        .filter(|idx| of_sample.contains(&issues[*idx].key))
        .collect();
    let mut order = Order::Sample;
    let mut words_of: HashMap<usize, Vec<String>> = HashMap::new();
    if next.is_empty() {
        next = unread;
        next.sort_by_key(place);
        order = Order::Ranking;
        if labels.by_issue.len() >= config.settings.feedback.from {
            let terms = text::issues(
                &issues,
                &Vocabulary::new(&config.clustering.scoring.vocabulary),
            );
            let lexicon = Lexicon::of(&terms);
            let places = issues
                .iter()
                .map(|issue| Some(ranked.get(&issue.key)?.place));
            let known = features(
                &terms,
                &lexicon,
                places,
                &config.clustering.settings.weights,
            );
            let keys = issues.iter().map(|issue| &issue.key);
            if let Some(learned) = labels.learn(keys, &known, &config.settings.feedback) {
                order = Order::Learned;
                sort(&mut next, &learned, &known);
                for idx in next.iter().take(config.n.unwrap_or(config.settings.batch)) {
                    let term = |dim| lexicon.term(dim);
                    let words = telling(&learned, &known[*idx], term, &issues[*idx]);
                    words_of.insert(*idx, words);
                }
            }
        }
    }
    next.truncate(config.n.unwrap_or(config.settings.batch));
    let batch = next
        .into_iter()
        .map(|idx| {
            unread_issue(
                &issues[idx],
                &ranked,
                words_of.remove(&idx).unwrap_or_default(),
            )
        })
        .collect();
    Ok(Summary {
        reading,
        order,
        batch,
    })
}

/// How far reading is; none when there is nothing to read.
pub fn reading(context: &Context) -> Result<Option<Reading>> {
    let issues = issues::all(&database(context)?)?;
    if issues.is_empty() {
        return Ok(None);
    }
    let settings: Settings =
        settings::read(&context.project.settings("review")).kind(Kind::Settings)?;
    let sample = samples::read(&context.project.reviews())
        .kind(Kind::Settings)?
        .pop();
    let labels = labels(context, &issues)?;
    Ok(Some(labels.reading(
        issues.len(),
        sample.as_ref(),
        &settings.stop,
    )))
}

/// What is known of issues. `places` are those of the ranking; an issue without one counts as one in the middle.
pub(super) fn features(
    terms: &[IssueTerms],
    lexicon: &Lexicon<'_>,
    places: impl Iterator<Item = Option<u64>>,
    weights: &issue_vectors::Weights,
) -> Vec<Features> {
    let n = terms.len() as f32;
    terms
        .iter()
        .zip(places)
        .map(|(terms, place)| Features {
            terms: lexicon.term_weights(terms, weights),
            ranked_before: place.map_or(0.5, |place| 1.0 - place as f32 / n),
        })
        .collect()
}

/// The most relevant first; what is equal stays in its order.
pub(super) fn sort(next: &mut [usize], learned: &Learned, known: &[Features]) {
    let scores: HashMap<usize, f64> = next
        .iter()
        .map(|idx| (*idx, learned.score(&known[*idx])))
        .collect();
    next.sort_by(|a, b| scores[b].total_cmp(&scores[a]));
}

/// What was said of collected issues.
#[derive(Debug, Default)]
pub(super) struct Labels {
    pub by_issue: BTreeMap<IssueKey, bool>,
    /// In the order of reading.
    pub in_order: Vec<bool>,
    /// Those of which a reviewer could not say; nothing is learned from them, and they do not count as read.
    pub unsure: BTreeSet<IssueKey>,
}

impl Labels {
    /// From decisions on issues; those that are not collected play no part.
    pub fn of(decisions: &[Decision], is_collected: impl Fn(&IssueKey) -> bool) -> Result<Self> {
        let standing = standing(decisions);
        let mut labels = Self::default();
        for decision in decisions {
            let key: IssueKey = decision.on.id.parse().map_err(|message: String| {
                Failure::settings(format!("{}: {message}", decision.on))
            })?;
            // An issue is read when it is decided on first; what counts is the last word.
            let Some(last) = standing.get(&decision.on) else {
                continue;
            };
            if !is_collected(&key) || labels.holds(&key) {
                continue;
            }
            if last.decision == Verb::Unsure {
                labels.unsure.insert(key);
            } else {
                let relevant = last.decision == Verb::Approve;
                labels.by_issue.insert(key, relevant);
                labels.in_order.push(relevant);
            }
        }
        Ok(labels)
    }

    /// Whether a reviewer has looked at an issue.
    pub fn holds(&self, key: &IssueKey) -> bool {
        self.by_issue.contains_key(key) || self.unsure.contains(key)
    }

    /// None while there is too little to learn from.
    pub fn learn<'a>(
        &self,
        keys: impl Iterator<Item = &'a IssueKey>,
        known: &[Features],
        settings: &feedback::Settings,
    ) -> Option<Learned> {
        let read: Vec<(&Features, bool)> = keys
            .zip(known)
            .filter_map(|(key, known)| Some((known, *self.by_issue.get(key)?)))
            .collect();
        feedback::learn(&read, settings)
    }

    pub fn reading(
        &self,
        n_issues: usize,
        sample: Option<&Sample>,
        settings: &stopping::Settings,
    ) -> Reading {
        let sampled: Option<(Vec<bool>, usize)> = sample.and_then(|sample| {
            let labels = sample
                .issues
                .iter()
                .map(|key| self.by_issue.get(key).copied());
            Some((labels.collect::<Option<_>>()?, sample.n_unread))
        });
        let sampled = sampled.as_ref().map(|(labels, n)| (labels.as_slice(), *n));
        stopping::reading(&self.in_order, n_issues, sampled, settings)
    }
}

fn labels(context: &Context, issues: &[Issue]) -> Result<Labels> {
    let collected: BTreeSet<&IssueKey> = issues.iter().map(|issue| &issue.key).collect();
    Labels::of(&made(context, SubjectKind::Issue)?, |key| {
        collected.contains(key)
    })
}

/// Draws a sample, the same one as long as the same issues are unread.
fn draw(context: &Context, issues: &[Issue], unread: &[usize], n: usize) -> Result<()> {
    if n == 0 || n > unread.len() {
        return Err(Failure::user(format!(
            "a sample of {n} cannot be drawn: {} issues are unread",
            unread.len()
        )));
    }
    let seed = digest::of(unread.iter().map(|idx| issues[*idx].key.to_string()));
    let mut drawn: Vec<(String, &IssueKey)> = unread
        .iter()
        .map(|idx| &issues[*idx].key)
        .map(|key| (digest::of([seed.as_str(), &key.to_string()]), key))
        .collect();
    drawn.sort();
    let sample = Sample {
        at: context.timestamp(),
        n_unread: unread.len(),
        issues: drawn
            .into_iter()
            .take(n)
            .map(|(_, key)| key.clone())
            .collect(),
    };
    samples::append(&context.project.reviews(), &sample).kind(Kind::Environment)
}

/// The words that speak for an issue most, by what was learned.
pub(super) fn telling<'a>(
    learned: &Learned,
    known: &Features,
    term: impl Fn(u32) -> &'a str,
    issue: &Issue,
) -> Vec<String> {
    let mut parts: Vec<(u32, f64)> = learned
        .parts(known)
        .filter(|(_, part)| *part > 0.0)
        .collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let terms: Vec<&str> = parts.into_iter().map(|(dim, _)| term(dim)).collect();
    let texts = [issue.title.as_str(), issue.body.as_str()];
    let readable = words::readable(texts.into_iter(), |term| terms.contains(&term));
    // Terms that the vocabulary added are no words of the issue.
    terms
        .into_iter()
        .filter_map(|term| readable.get(term).cloned())
        .take(N_WORDS)
        .collect()
}

fn unread_issue(
    issue: &Issue,
    ranked: &BTreeMap<IssueKey, RankedIssue>,
    words: Vec<String>,
) -> Unread {
    let ranked = ranked.get(&issue.key);
    Unread {
        key: issue.key.clone(),
        title: issue.title.clone(),
        place: ranked.map_or(0, |ranked| ranked.place),
        clause: ranked
            .and_then(|ranked| ranked.relevance.clauses.first())
            .map(|best| best.clause.to_string()),
        words,
    }
}

/// Decisions out of a file, or out of standard input for `-`: a line each, `approve OWNER/NAME#N WHY` or `reject …`.
/// Either all of them are recorded or none.
pub fn record(context: &Context, file: &Path, by: &str) -> Result<usize> {
    is_named(by)?;
    let text = match file == "-" {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(file),
    }
    .map_err(|error| Failure::user(format!("cannot read {}: {error}", file.display())))?;
    let database = database(context)?;
    let mut decisions = Vec::new();
    for (idx, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fault =
            |message: String| Failure::user(format!("{}:{}: {message}", file.display(), idx + 1));
        let mut words = line.splitn(3, char::is_whitespace);
        let (verb, key, why) = (words.next(), words.next(), words.next());
        let decision = match verb {
            Some("approve") => Verb::Approve,
            Some("reject") => Verb::Reject,
            _ => {
                return Err(fault(
                    "write approve or reject, an issue, and why".to_owned(),
                ));
            }
        };
        let key: IssueKey = key.unwrap_or_default().parse().map_err(fault)?;
        let why = why.unwrap_or_default().trim();
        if why.is_empty() {
            return Err(fault("a decision has a reason".to_owned()));
        }
        let issue = issues::get(&database, &key)?
            .ok_or_else(|| fault(format!("{key} was not collected")))?;
        decisions.push(Decision {
            at: context.timestamp(),
            by: by.to_owned(),
            on: Subject {
                kind: SubjectKind::Issue,
                id: key.to_string(),
            },
            digest: issues::digest_of(&issue),
            decision,
            why: why.to_owned(),
            act: None,
        });
    }
    reviews::append(&context.project.reviews(), &decisions).kind(Kind::Environment)?;
    Ok(decisions.len())
}
