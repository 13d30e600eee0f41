//! The quality of the clusters on a judged set: its relevant issues are clustered, nothing is stored.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Before, Config, group};
use crate::domain::mining::{Cluster, RankedIssue};
use crate::methods::cluster_quality::{Agreement, Labels, agreement};
use crate::stages::judged_set::JudgedSet;
use crate::stages::scoring::Scoring;
use crate::stages::{Context, Failure, Result};
use crate::storage::documents;

#[derive(Debug, Serialize)]
pub struct Judged {
    /// Over the issues that are relevant, in part or fully.
    #[serde(flatten)]
    pub agreement: Agreement,
    pub cut: f32,
    pub clusters: Vec<Cluster>,
}

pub fn judge(
    context: &Context,
    config: &Config,
    folder: &Path,
    among: &[PathBuf],
) -> Result<Judged> {
    let document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    let set = JudgedSet::read(folder, among)?;
    let scoring = Scoring::new(&set.issues, &document, &config.scoring)?;
    let mut ranking = scoring.ranking();
    ranking.retain(|ranked| {
        let judgement = set.judgements.get(&ranked.key);
        judgement.is_some_and(|judgement| judgement.relevant > 0)
    });
    ranking.sort_by(|a, b| a.key.cmp(&b.key));
    let chosen: Vec<&RankedIssue> = ranking.iter().collect();
    let clusters = group(
        &set.issues,
        &scoring.terms,
        &chosen,
        &Before::default(),
        &config.settings,
    )
    .clusters;
    let labels: Vec<Labels<&str, String, &str>> = clusters
        .iter()
        .flat_map(|cluster| cluster.members.iter().map(|key| (cluster.id.as_str(), key)))
        .map(|(found, key)| Labels {
            found,
            truth: match &set.judgements[key].phenomenon {
                Some(phenomenon) => phenomenon.clone(),
                None => format!("alone: {key}"),
            },
            source: key.repository.as_str(),
        })
        .collect();
    Ok(Judged {
        agreement: agreement(&labels),
        cut: config.settings.cut,
        clusters,
    })
}
