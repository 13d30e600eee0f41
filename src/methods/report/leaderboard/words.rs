//! A leaderboard as a table for people, as Markdown, and as records for CSV.

use std::fmt::Write;

use super::{Cost, Leaderboard};
use crate::domain::results::Group;
use crate::methods::analysis::Spread;
use crate::methods::report::markdown::{code, escaped};

impl Leaderboard {
    fn groups(&self) -> Vec<Group> {
        let rates = self.models.iter().find_map(|row| row.rates.as_ref());
        rates.map_or_else(Vec::new, |rates| rates.groups.keys().copied().collect())
    }

    /// The rows for people: heads, then one row a model.
    pub fn table(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let groups = self.groups();
        let heads = [
            "rank",
            "model",
            "delivered",
            "mean ± sd %",
            "95 %",
            "of all %",
        ]
        .into_iter()
        .chain(groups.iter().map(|group| group.heading()))
        .chain([
            "ordinary",
            "boundary",
            "tokens in",
            "out",
            "minutes",
            "left out",
        ]);
        let rows = self.models.iter().map(|row| {
            let rates = row.rates.as_ref();
            let overall = rates.map(|rates| &rates.overall);
            let mean = |spread: Option<&Spread>| percent(spread.and_then(|spread| spread.mean));
            let cost = |of: fn(&Cost) -> f64, digits: usize| {
                shown(row.cost.as_ref().map(of), |n| format!("{n:.digits$}"))
            };
            let mut cells = vec![
                shown(row.rank, |rank| rank.to_string()),
                row.model.clone(),
                format!("{}/{}", row.n_delivered, row.builds.len()),
                shown(
                    overall.and_then(|all| all.mean.zip(all.sd)),
                    |(mean, sd)| format!("{:.2} ± {:.2}", 100.0 * mean, 100.0 * sd),
                ),
                shown(overall.and_then(|all| all.interval), |interval| {
                    format!("{:.1}–{:.1}", 100.0 * interval.low, 100.0 * interval.high)
                }),
                percent(row.mean_of_all),
            ];
            let of_group = |group: &Group| mean(rates.and_then(|rates| rates.groups.get(group)));
            cells.extend(groups.iter().map(of_group));
            cells.extend([
                mean(rates.map(|rates| &rates.ordinary)),
                mean(rates.map(|rates| &rates.boundary)),
                cost(|cost| cost.input_tokens, 0),
                cost(|cost| cost.output_tokens, 0),
                cost(|cost| cost.duration_s / 60.0, 1),
                row.n_left_out.to_string(),
            ]);
            cells
        });
        (heads.collect(), rows.collect())
    }

    /// What the columns mean.
    pub const LEGEND: &str = "\
(delivered: builds with a frozen candidate, of those that count; mean ± sd: over the delivered builds, population
standard deviation; of all: a build without a candidate counts as 0; tokens and minutes: of a build, on average;
left out: builds that are void or were aborted, in no figure)";

    /// For a pull request or a page.
    pub fn markdown(&self) -> String {
        let mut page = "# Leaderboard\n\n".to_owned();
        let digest = |text: &str| code(&text.chars().take(12).collect::<String>());
        let facts = format!(
            "builder {} · {} cases · suite {} · document {}",
            escaped(&self.facts.builder),
            self.facts.n_cases,
            digest(&self.facts.suite),
            digest(&self.facts.document),
        );
        let (heads, rows) = self.table();
        let heads: Vec<String> = heads.into_iter().map(str::to_owned).collect();
        page += &format!("{facts}\n\n{}\n{}\n\n", grid(&heads, &rows), Self::LEGEND);
        let heads = [
            "model",
            "build",
            "state",
            "passed",
            "turns",
            "submissions",
            "run",
            "why",
        ];
        let rows: Vec<Vec<String>> = self
            .models
            .iter()
            .flat_map(|row| row.builds.iter().map(move |build| (row, build)))
            .map(|(row, build)| {
                let state = serde_json::to_value(build.state).expect("a word");
                vec![
                    row.model.clone(),
                    build.build.clone(),
                    state.as_str().unwrap_or_default().to_owned(),
                    shown(build.rate.as_ref(), |rate| {
                        format!("{}/{}", rate.passed, rate.counted)
                    }),
                    build.n_turns.to_string(),
                    build.n_submissions.to_string(),
                    shown(build.run.clone(), |run| run),
                    build.why.clone(),
                ]
            })
            .collect();
        page + "## Builds\n\n" + &grid(&heads.map(str::to_owned), &rows)
    }

    /// Heads and rows with whole figures: shares from 0 to 1, seconds; what is not known is empty.
    pub fn records(&self) -> Vec<Vec<String>> {
        let groups = self.groups();
        let heads = [
            "rank",
            "model",
            "wanted",
            "delivered",
            "failed",
            "not_delivered",
            "left_out",
            "mean",
            "sd",
            "low",
            "high",
            "mean_of_all",
        ]
        .into_iter()
        .chain(groups.iter().map(|group| group.as_str()))
        .chain(["ordinary", "boundary"])
        .chain([
            "input_tokens",
            "cached_tokens",
            "output_tokens",
            "duration_s",
        ]);
        let mut records = vec![heads.map(str::to_owned).collect()];
        records.extend(self.models.iter().map(|row| {
            let rates = row.rates.as_ref();
            let overall = rates.map(|rates| &rates.overall);
            let interval = overall.and_then(|all| all.interval);
            let figure = |value: Option<f64>| value.map_or_else(String::new, |n| n.to_string());
            let mean = |spread: Option<&Spread>| figure(spread.and_then(|spread| spread.mean));
            let mut record = vec![
                row.rank.map_or_else(String::new, |rank| rank.to_string()),
                row.model.clone(),
            ];
            let counts = [
                row.n_wanted,
                row.n_delivered,
                row.n_failed,
                row.n_not_delivered,
                row.n_left_out,
            ];
            record.extend(counts.map(|n| n.to_string()));
            record.extend([
                mean(overall),
                figure(overall.and_then(|all| all.sd)),
                figure(interval.map(|interval| interval.low)),
                figure(interval.map(|interval| interval.high)),
                figure(row.mean_of_all),
            ]);
            let of_group = |group: &Group| mean(rates.and_then(|rates| rates.groups.get(group)));
            record.extend(groups.iter().map(of_group));
            record.extend([
                mean(rates.map(|rates| &rates.ordinary)),
                mean(rates.map(|rates| &rates.boundary)),
            ]);
            let cost = row.cost.as_ref();
            record.extend([
                figure(cost.map(|cost| cost.input_tokens)),
                figure(cost.map(|cost| cost.cached_tokens)),
                figure(cost.map(|cost| cost.output_tokens)),
                figure(cost.map(|cost| cost.duration_s)),
            ]);
            record
        }));
        records
    }
}

/// A table of Markdown; its cells are escaped.
fn grid(heads: &[String], rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    let mut line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        writeln!(out, "| {} |", cells.join(" | ")).expect("a String takes everything");
    };
    line(heads);
    line(&heads.iter().map(|_| "---".to_owned()).collect::<Vec<_>>());
    rows.iter().for_each(|row| line(row));
    out
}

fn percent(rate: Option<f64>) -> String {
    shown(rate, |rate| format!("{:.2}", 100.0 * rate))
}

fn shown<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "n/a".to_owned(), text)
}
