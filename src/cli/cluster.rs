//! `pipeline cluster`.

use std::path::PathBuf;

use super::{ExitCode, Output, output};
use crate::domain::mining::Cluster;
use crate::stages::cluster::{self, Config, Judged, Material, Summary};
use crate::stages::{Context, Result};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// When nothing was read as relevant yet, take the top of the ranking instead
    #[arg(long)]
    all: bool,
    /// Make all clusters anew, instead of letting new issues join those that are there or open others
    #[arg(long)]
    again: bool,
    /// Cluster the relevant issues of a judged set instead and print how good the clusters are; nothing is stored
    #[arg(long, value_name = "DIR")]
    judge: Option<PathBuf>,
    /// Hide the judged set among the issues of these files and folders
    #[arg(long, value_name = "PATH", requires = "judge", num_args = 1..)]
    among: Vec<PathBuf>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let config = Config {
        all: args.all,
        again: args.again,
        ..Config::read(&context.project)?
    };
    match &args.judge {
        Some(folder) => output.result(
            &cluster::judge(context, &config, folder, &args.among)?,
            judged,
        )?,
        None => output.result(&cluster::run(context, &config)?, words)?,
    }
    Ok(ExitCode::Done)
}

fn words(summary: &Summary) -> String {
    let mut text = match summary.material {
        Material::Read => format!("{} issues read as relevant", summary.n_issues),
        Material::TopOfRanking => format!(
            "nothing was read yet: the first {} issues of the ranking",
            summary.n_issues
        ),
    };
    text += &format!(
        ", {} clusters, {} of them with one issue{}\n",
        summary.n_clusters,
        summary.n_single,
        if summary.unchanged {
            "; nothing changed"
        } else {
            ""
        }
    );
    if summary.n_missing > 0 {
        text += &format!(
            "{} issues read as relevant are not collected\n",
            summary.n_missing
        );
    }
    if summary.n_before > 0 && !summary.unchanged {
        text += &format!(
            "{} clusters were there before and stay (--again makes all anew)\n",
            summary.n_before
        );
    }
    match summary.n_contradicted {
        0 => {}
        1 => text += "1 pair was taken apart by a reviewer and put together by other decisions\n",
        n => {
            text += &format!(
                "{n} pairs were taken apart by a reviewer and put together by other decisions\n"
            );
        }
    }
    if summary.n_split > 0 {
        text += &format!("{} parts were too big and were split\n", summary.n_split);
    }
    text + "\n" + &table(&summary.clusters)
}

fn judged(judged: &Judged) -> String {
    let figure = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    let agreement = &judged.agreement;
    format!(
        "{} relevant issues, {} phenomena, {} clusters at cut {}\n\n{}\n\n\
         adjusted Rand index {}\nto the truth by hand: {} splits, {} merges\n\n{}",
        agreement.n_items,
        agreement.n_true,
        agreement.n_found,
        judged.cut,
        output::table(
            &["pairs", "n", "precision", "recall", "F1"],
            [
                ("all", &agreement.pairs),
                ("across repositories", &agreement.across)
            ]
            .into_iter()
            .map(|(name, pairs)| {
                vec![
                    name.to_owned(),
                    pairs.n_pairs.to_string(),
                    figure(pairs.precision),
                    figure(pairs.recall),
                    figure(pairs.f1),
                ]
            })
        ),
        figure(agreement.adjusted_rand),
        agreement.n_splits,
        agreement.n_merges,
        table(&judged.clusters)
    )
}

fn table(clusters: &[Cluster]) -> String {
    output::table(
        &["issues", "cluster", "clause", "representative", "terms"],
        clusters.iter().map(|cluster| {
            vec![
                cluster.members.len().to_string(),
                cluster.id.clone(),
                cluster
                    .clause
                    .as_ref()
                    .map_or("-".to_owned(), ToString::to_string),
                cluster.representative.to_string(),
                cluster
                    .terms
                    .iter()
                    .take(5)
                    .map(|term| term.word.as_str())
                    .collect::<Vec<_>>()
                    .join(" "),
            ]
        }),
    )
}
