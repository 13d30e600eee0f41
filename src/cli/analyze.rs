//! `pipeline analyze`: the statistics of a run or of a table of verdicts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::output::table;
use super::{ExitCode, Output};
use crate::domain::results::Group;
use crate::domain::visible::visible_line;
use crate::methods::analysis::{Analysis, GroupRow, Parts, Rate, Spread};
use crate::methods::statistics::Interval;
use crate::stages::analyze::{Config, Source, Summary};
use crate::stages::{Context, Result, analyze};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run; the newest one unless said
    #[arg(conflicts_with = "csv")]
    run: Option<String>,
    /// Read verdicts from a table instead of a run
    ///
    /// Columns: candidate, model, build, case, category, scenario, outcome, and family where it is known. `report`
    /// writes such a table for each run; tables of several runs can be joined below one header.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// The model that built a candidate; candidates of one model are its builds (repeatable)
    ///
    /// A candidate of a run is a model of its own unless said.
    #[arg(long, value_name = "CANDIDATE=MODEL", value_parser = pair, num_args = 1..)]
    model_of: Vec<(String, String)>,
    /// Write every estimate to this file, one a row
    #[arg(long, value_name = "FILE")]
    csv_out: Option<PathBuf>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let config = Config {
        source: match args.csv {
            Some(path) => Source::Table(path),
            None => Source::Run(args.run),
        },
        models: args.model_of.into_iter().collect::<BTreeMap<_, _>>(),
        csv_out: args.csv_out,
    };
    let summary = analyze::run(context, &config)?;
    output.result(&summary, words)?;
    Ok(ExitCode::Done)
}

fn pair(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((candidate, model)) if !candidate.is_empty() && !model.is_empty() => {
            Ok((candidate.to_owned(), model.to_owned()))
        }
        _ => Err("write CANDIDATE=MODEL".to_owned()),
    }
}

fn words(summary: &Summary) -> String {
    let analysis = &summary.analysis;
    let mut parts = vec![
        format!(
            "{}: {} of {} on {} in {}",
            summary.source,
            count(analysis.candidates.len(), "candidate", "candidates"),
            count(analysis.models.len(), "model", "models"),
            count(analysis.n_cases, "case", "cases"),
            count(analysis.n_families, "family", "families"),
        ),
        left_out(summary),
        candidates(analysis),
    ];
    if analysis.models.len() < analysis.candidates.len() {
        parts.push(models(analysis));
    }
    parts.push(groups(analysis));
    parts.push(reliability(analysis));
    parts.push(ranks(analysis));
    parts.push(correlations(analysis));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

fn left_out(summary: &Summary) -> String {
    let analysis = &summary.analysis;
    let mut lines = Vec::new();
    if analysis.n_invalid > 0 {
        lines.push(format!(
            "left out: {} (our side broke)",
            count(analysis.n_invalid, "invalid verdict", "invalid verdicts")
        ));
    }
    if analysis.n_not_asked > 0 {
        lines.push(format!(
            "left out: {} not asked (the adapter of a shipping harness cannot express the case)",
            count(analysis.n_not_asked, "verdict", "verdicts")
        ));
    }
    if summary.n_unfinished > 0 {
        lines.push(format!(
            "the run is not finished: {} not there yet",
            count(summary.n_unfinished, "verdict is", "verdicts are")
        ));
    } else if analysis.n_missing > 0 {
        lines.push(format!(
            "left out: {} of a candidate and a case without a verdict",
            count(analysis.n_missing, "pair", "pairs")
        ));
    }
    if lines.is_empty() {
        lines.push("left out: nothing".to_owned());
    }
    lines.join("\n")
}

/// Heads of the columns after the first ones: the groups that there are, and the two kinds of scenario.
fn heads<'a>(groups: impl Iterator<Item = &'a Group>) -> Vec<&'static str> {
    groups
        .map(|group| group.heading())
        .chain(["ordinary", "boundary"])
        .collect()
}

fn cells<T>(parts: &Parts<T>, cell: impl Fn(&T) -> String) -> Vec<String> {
    let groups = parts.groups.values();
    let kinds = [&parts.ordinary, &parts.boundary];
    groups.chain(kinds).map(cell).collect()
}

fn candidates(analysis: &Analysis) -> String {
    let Some(first) = analysis.candidates.first() else {
        return String::new();
    };
    let mut header = vec!["candidate", "pass rate %", "95 %", "passed", "left out"];
    header.extend(heads(first.rates.groups.keys()));
    let rows = analysis.candidates.iter().map(|candidate| {
        let overall = &candidate.rates.overall;
        let mut row = vec![
            visible_line(&candidate.candidate).into_owned(),
            percent(overall.rate),
            interval(overall.interval),
            format!("{}/{}", overall.passed, overall.counted),
            overall.left_out().to_string(),
        ];
        row.extend(cells(&candidate.rates, |rate: &Rate| percent(rate.rate)));
        row
    });
    table(&header, rows)
}

fn models(analysis: &Analysis) -> String {
    let mut header = vec!["model", "builds", "mean ± sd %", "95 %"];
    header.extend(heads(analysis.models[0].rates.groups.keys()));
    let mut models: Vec<_> = analysis.models.iter().collect();
    models.sort_by(|a, b| {
        let mean = |spread: &Spread| spread.mean.unwrap_or(-1.0);
        mean(&b.rates.overall)
            .total_cmp(&mean(&a.rates.overall))
            .then_with(|| a.model.cmp(&b.model))
    });
    let rows = models.into_iter().map(|model| {
        let overall = &model.rates.overall;
        let mut row = vec![
            visible_line(&model.model).into_owned(),
            overall.n_builds.to_string(),
            match overall.mean.zip(overall.sd) {
                Some((mean, sd)) => format!("{:.2} ± {:.2}", 100.0 * mean, 100.0 * sd),
                None => "n/a".to_owned(),
            },
            interval(overall.interval),
        ];
        row.extend(cells(&model.rates, |spread: &Spread| percent(spread.mean)));
        row
    });
    table(&header, rows)
}

fn groups(analysis: &Analysis) -> String {
    let name = |row: &GroupRow| row.group.map_or("all", Group::as_str).to_owned();
    let rows = analysis.groups.iter().map(|row| {
        vec![
            name(row),
            row.n_cases.to_string(),
            percent(row.average),
            row.gap
                .map_or_else(|| "n/a".to_owned(), |gap| format!("{:.1}", 100.0 * gap)),
            row.floor.to_string(),
            row.ceiling.to_string(),
            row.discriminating.to_string(),
            row.undecided.to_string(),
        ]
    });
    let header = [
        "category",
        "cases",
        "average %",
        "gap",
        "floor",
        "ceiling",
        "discriminating",
        "undecided",
    ];
    table(&header, rows)
        + "\n(gap: best model − worst, in points; floor: no candidate passes; ceiling: all pass;\n\
           undecided: a verdict that does not count could change it; other: artifact checks, startup, extension discovery)"
}

fn reliability(analysis: &Analysis) -> String {
    let reliability = &analysis.reliability;
    let mut text = format!(
        "KR-20  {} ({} × {}",
        number(reliability.kr20),
        count(reliability.n_candidates, "candidate", "candidates"),
        count(reliability.n_cases, "case", "cases")
    );
    if reliability.candidates_left_out + reliability.cases_left_out > 0 {
        text += &format!(
            "; left out: {}, {}",
            count(reliability.candidates_left_out, "candidate", "candidates"),
            count(reliability.cases_left_out, "case", "cases"),
        );
    }
    text + ")"
}

fn ranks(analysis: &Analysis) -> String {
    if analysis.ranks.is_empty() {
        return String::new();
    }
    let groups: Vec<Group> = Group::MAIN
        .into_iter()
        .filter(|group| {
            analysis
                .ranks
                .iter()
                .any(|model| model.groups.contains_key(group))
        })
        .collect();
    let mut header = vec!["rank", "model"];
    header.extend(groups.iter().map(|group| group.heading()));
    header.push("movement");
    let rows = analysis.ranks.iter().map(|model| {
        let mut row = vec![
            model.overall.to_string(),
            visible_line(&model.model).into_owned(),
        ];
        row.extend(groups.iter().map(|group| {
            let rank = model.groups.get(group);
            rank.map_or_else(|| "n/a".to_owned(), ToString::to_string)
        }));
        row.push(
            model
                .movement
                .map_or_else(|| "n/a".to_owned(), |n| n.to_string()),
        );
        row
    });
    table(&header, rows)
}

fn correlations(analysis: &Analysis) -> String {
    let correlations = &analysis.correlations;
    if correlations.pairs.is_empty() {
        return String::new();
    }
    let groups: Vec<Group> = correlations.overall.keys().copied().collect();
    let mut header = vec!["correlation"];
    header.extend(groups.iter().map(|group| group.heading()));
    let row = |name: &str, r: &dyn Fn(Group) -> Option<Option<f64>>| {
        let cells = groups.iter().map(|group| match r(*group) {
            Some(r) => number(r),
            None => String::new(),
        });
        std::iter::once(name.to_owned())
            .chain(cells)
            .collect::<Vec<_>>()
    };
    let mut rows: Vec<Vec<String>> = groups
        .iter()
        .map(|a| {
            row(a.as_str(), &|b| {
                let mut pairs = correlations.pairs.iter();
                let pair = pairs.find(|p| (p.a, p.b) == (*a, b) || (p.a, p.b) == (b, *a));
                pair.map(|pair| pair.r)
            })
        })
        .collect();
    rows.push(row("overall", &|group| Some(correlations.overall[&group])));
    table(&header, rows)
        + &format!(
            "\n(Pearson over {}; mean of the pairs {})",
            count(correlations.n_models, "model", "models"),
            number(correlations.mean)
        )
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "n/a".to_owned(), |rate| format!("{:.2}", 100.0 * rate))
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "n/a".to_owned(), |value| format!("{value:.3}"))
}

fn interval(interval: Option<Interval>) -> String {
    interval.map_or_else(
        || "n/a".to_owned(),
        |interval| format!("{:.1}–{:.1}", 100.0 * interval.low, 100.0 * interval.high),
    )
}

fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
