//! `pipeline cluster`.

use std::path::PathBuf;

use super::{ExitCode, Output, output};
use crate::domain::mining::Cluster;
use crate::domain::visible::{shortened, visible_line};
use crate::stages::cluster::{
    self, Config, CrossedOver, JudgeConfig, Judged, JudgedPairs, Material, Summary,
};
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
    /// Also choose the cut on all but one of N parts of the phenomena, judge it on that one, and pool all parts
    #[arg(long, value_name = "N", requires = "judge", value_parser = clap::value_parser!(u64).range(2..=50))]
    folds: Option<u64>,
    /// Also tell the duplicates among these pairs of the set: a line each, {"a": "o/n#1", "b": "o/n#2", "duplicate": true}
    #[arg(long, value_name = "FILE", requires = "judge")]
    pairs: Option<PathBuf>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let config = Config {
        all: args.all,
        again: args.again,
        ..Config::read(&context.project)?
    };
    match args.judge {
        Some(folder) => {
            let judging = JudgeConfig {
                folder,
                among: args.among,
                folds: args.folds.map(|n| n as usize),
                pairs: args.pairs,
            };
            output.result(&cluster::judge(context, &config, &judging)?, judged)?;
        }
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
    let agreement = &judged.agreement;
    let mut rows: Vec<Vec<String>> = [
        ("all", &agreement.pairs),
        ("across repositories", &agreement.across),
    ]
    .into_iter()
    .map(|(name, pairs)| {
        let n = pairs.n_pairs.to_string();
        let figures = [pairs.precision, pairs.recall, pairs.f1].map(figure);
        [name.to_owned(), n].into_iter().chain(figures).collect()
    })
    .collect();
    let mut spreads = String::new();
    if let Some(crossed) = &judged.crossed {
        let name = "all, cut from other phenomena";
        let figures = [crossed.over.precision, crossed.over.recall, crossed.over.f1].map(figure);
        let first = [name.to_owned(), crossed.n_pairs.to_string()];
        rows.push(first.into_iter().chain(figures).collect());
        spreads += &spread(name, crossed);
    }
    if let Some(pairs) = &judged.pairs {
        let figures = [pairs.over.precision, pairs.over.recall, pairs.over.f1].map(figure);
        let first = ["named pairs".to_owned(), pairs.n_duplicates.to_string()];
        rows.push(first.into_iter().chain(figures).collect());
        spreads += &named(pairs);
    }
    format!(
        "{} relevant issues, {} phenomena, {} clusters at cut {}\n\n{}\n\n{spreads}\
         adjusted Rand index {}\nto the truth by hand: {} splits, {} merges\n\n{}",
        agreement.n_items,
        agreement.n_true,
        agreement.n_found,
        judged.cut,
        output::table(&["pairs", "n", "precision", "recall", "F1"], rows),
        figure(agreement.adjusted_rand),
        agreement.n_splits,
        agreement.n_merges,
        table(&judged.clusters)
    )
}

fn figure(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.4}"))
}

fn spread(name: &str, crossed: &CrossedOver) -> String {
    format!(
        "{name}: means of {} deals of the phenomena into {} parts, F1 {} to {}, cuts {:.2} to {:.2}\n",
        crossed.over.n_deals,
        crossed.over.n_parts,
        figure(crossed.over.lowest_f1),
        figure(crossed.over.highest_f1),
        crossed.lowest_cut,
        crossed.highest_cut
    )
}

fn named(pairs: &JudgedPairs) -> String {
    let weights: Vec<String> = pairs
        .weights
        .iter()
        .map(|(name, weight)| format!("{name} {weight:.2}"))
        .collect();
    format!(
        "named pairs: means of {} deals of the phenomena into {} parts, F1 {} to {}; learned from and judged on all {} \
         pairs {}\nweights of their figures: {}\n",
        pairs.over.n_deals,
        pairs.over.n_parts,
        figure(pairs.over.lowest_f1),
        figure(pairs.over.highest_f1),
        pairs.n_pairs,
        figure(pairs.f1_in_hindsight),
        weights.join(", ")
    )
}

fn table(clusters: &[Cluster]) -> String {
    output::table(
        &["issues", "cluster", "clause", "effect"],
        clusters.iter().map(|cluster| {
            vec![
                cluster.members.len().to_string(),
                cluster.id.clone(),
                cluster
                    .clause
                    .as_ref()
                    .map_or("-".to_owned(), ToString::to_string),
                shortened(&visible_line(&cluster.effect), 90).into_owned(),
            ]
        }),
    )
}
