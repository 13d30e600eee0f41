//! The leaderboard: what each model's builds came to. How it is written is in its part `words`.
//!
//! As in the paper a model's rate is the mean over its scored builds, those whose candidate was frozen; a build that
//! counts and has no candidate stands beside it, and has rate 0 in the column of all builds. What our side broke is in
//! no figure.

mod words;

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::analysis::{Analysis, Parts, Rate, Spread};
use crate::domain::build::{Build, State};

/// What is known of one model.
#[derive(Debug, Clone)]
pub struct Contestant {
    pub model: String,
    /// Builds that were asked for.
    pub n_wanted: usize,
    /// Builds that count.
    pub builds: Vec<Build>,
    /// Builds that are void or were aborted.
    pub n_left_out: usize,
}

/// What is the same for all models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BoardFacts {
    pub builder: String,
    /// Digest of the document that builders were given.
    pub document: String,
    /// Digest of the cases.
    pub suite: String,
    pub n_cases: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Leaderboard {
    #[serde(flatten)]
    pub facts: BoardFacts,
    /// The best first.
    pub models: Vec<ModelRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelRow {
    /// Models of the same mean share the better rank; none without a scored build.
    pub rank: Option<usize>,
    pub model: String,
    pub n_wanted: usize,
    /// Builds with a frozen candidate.
    pub n_delivered: usize,
    /// Builds of which every submission was returned.
    pub n_failed: usize,
    /// Builds that submitted nothing.
    pub n_not_delivered: usize,
    /// Void or aborted builds: no result of the model.
    pub n_left_out: usize,
    /// Over the delivered builds.
    pub rates: Option<Parts<Spread>>,
    /// Mean over all builds that count, where one without a candidate has 0; none when no build counts.
    pub mean_of_all: Option<f64>,
    /// Of a build that counts, on average; none when no build counts.
    pub cost: Option<Cost>,
    pub builds: Vec<BuildRow>,
}

/// What a build took. Tokens are those that the endpoint told.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    pub input_tokens: f64,
    /// Of the input, read from the model's cache.
    pub cached_tokens: f64,
    pub output_tokens: f64,
    pub duration_s: f64,
    /// Answers whose tokens were not told.
    pub unmetered: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BuildRow {
    pub build: String,
    pub state: State,
    pub why: String,
    pub n_turns: usize,
    pub n_submissions: usize,
    pub cost: Cost,
    /// The run that scored its candidate.
    pub run: Option<String>,
    pub rate: Option<Rate>,
}

/// Ranks the models. `runs`: build → the run that scored its candidate; `analysis` is of these runs.
pub fn leaderboard(
    facts: BoardFacts,
    contestants: &[Contestant],
    runs: &BTreeMap<String, String>,
    analysis: Option<&Analysis>,
) -> Leaderboard {
    let mut models: Vec<ModelRow> = contestants
        .iter()
        .map(|contestant| model_row(contestant, runs, analysis))
        .collect();
    let mean = |row: &ModelRow| {
        let rates = row.rates.as_ref();
        rates.and_then(|rates| rates.overall.mean).map(comparable)
    };
    models.sort_by(|a, b| {
        let [of_a, of_b] = [a, b].map(|row| mean(row).unwrap_or(-1.0));
        of_b.total_cmp(&of_a).then_with(|| a.model.cmp(&b.model))
    });
    let means: Vec<Option<f64>> = models.iter().map(mean).collect();
    for row in &mut models {
        row.rank = mean(row).map(|own| {
            let better = means.iter().flatten().filter(|other| **other > own);
            1 + better.count()
        });
    }
    Leaderboard { facts, models }
}

/// Without the last digits, in which sums of the same rates in another order differ.
fn comparable(mean: f64) -> f64 {
    (mean * 1e12).round() / 1e12
}

fn model_row(
    contestant: &Contestant,
    runs: &BTreeMap<String, String>,
    analysis: Option<&Analysis>,
) -> ModelRow {
    let builds: Vec<BuildRow> = contestant
        .builds
        .iter()
        .map(|build| build_row(build, runs, analysis))
        .collect();
    let count = |state: State| builds.iter().filter(|row| row.state == state).count();
    let rates = analysis.and_then(|analysis| {
        let mut models = analysis.models.iter();
        let own = models.find(|rates| rates.model == contestant.model)?;
        Some(own.rates.clone())
    });
    let n_delivered = count(State::Passed);
    let mean = rates.as_ref().and_then(|rates| rates.overall.mean);
    ModelRow {
        rank: None,
        model: contestant.model.clone(),
        n_wanted: contestant.n_wanted,
        n_delivered,
        n_failed: count(State::Failed),
        n_not_delivered: count(State::NotDelivered),
        n_left_out: contestant.n_left_out,
        mean_of_all: match n_delivered {
            0 => (!builds.is_empty()).then_some(0.0),
            _ => mean.map(|mean| mean * n_delivered as f64 / builds.len() as f64),
        },
        cost: mean_cost(&builds),
        rates,
        builds,
    }
}

fn build_row(
    build: &Build,
    runs: &BTreeMap<String, String>,
    analysis: Option<&Analysis>,
) -> BuildRow {
    let tokens = build.tokens();
    let n_unmetered: usize = build.turns.iter().map(|turn| turn.n_unmetered).sum();
    BuildRow {
        build: build.name.clone(),
        state: build.state,
        why: build.why.clone().unwrap_or_default(),
        n_turns: build.turns.len(),
        n_submissions: build.submissions.len(),
        cost: Cost {
            input_tokens: tokens.input as f64,
            cached_tokens: tokens.cached as f64,
            output_tokens: tokens.output as f64,
            duration_s: build.duration_ms as f64 / 1000.0,
            unmetered: n_unmetered as f64,
        },
        run: runs.get(&build.name).cloned(),
        rate: analysis.and_then(|analysis| {
            let mut candidates = analysis.candidates.iter();
            let own = candidates.find(|rates| rates.candidate == build.name)?;
            Some(own.rates.overall.clone())
        }),
    }
}

fn mean_cost(builds: &[BuildRow]) -> Option<Cost> {
    let mean = |of: fn(&Cost) -> f64| {
        let sum: f64 = builds.iter().map(|row| of(&row.cost)).sum();
        sum / builds.len() as f64
    };
    (!builds.is_empty()).then(|| Cost {
        input_tokens: mean(|cost| cost.input_tokens),
        cached_tokens: mean(|cost| cost.cached_tokens),
        output_tokens: mean(|cost| cost.output_tokens),
        duration_s: mean(|cost| cost.duration_s),
        unmetered: mean(|cost| cost.unmetered),
    })
}

impl Leaderboard {
    /// Builds that are wanted and not there.
    pub fn n_missing(&self) -> usize {
        let missing = |row: &ModelRow| row.n_wanted.saturating_sub(row.builds.len());
        self.models.iter().map(missing).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::analysis::analyse;
    use super::*;
    use crate::domain::build::Turn;
    use crate::domain::case::{CaseId, Category};
    use crate::domain::clause::Scenario;
    use crate::domain::model_call::Tokens;
    use crate::domain::results::{Row, Status};

    #[test]
    fn the_order_of_builds_breaks_no_tie() {
        let rates = [100, 100, 101].map(|passed| f64::from(passed) / 473.0);
        let mean = |order: [usize; 3]| order.map(|idx| rates[idx]).iter().sum::<f64>() / 3.0;
        let (one, other) = (mean([0, 1, 2]), mean([2, 0, 1]));
        assert_ne!(one, other);
        assert_eq!(comparable(one), comparable(other));
        assert_ne!(comparable(0.5), comparable(0.5 + 1.0 / 24_000.0));
    }

    fn build(name: &str, state: State, output: u64) -> Build {
        Build {
            name: name.into(),
            state,
            why: Some("a | why".into()),
            builder: "b".into(),
            packages: None,
            model: None,
            started_at: String::new(),
            duration_ms: 60_000,
            settings: String::new(),
            document: "d".into(),
            skeleton: String::new(),
            sandbox: String::new(),
            version: String::new(),
            turns: vec![Turn {
                tokens: Tokens {
                    input: 2 * output,
                    cached: 0,
                    output,
                },
                ..Turn::default()
            }],
            submissions: Vec::new(),
        }
    }

    fn row(build: &str, model: &str, case: usize, passes: bool) -> Row {
        Row {
            candidate: build.into(),
            model: model.into(),
            build: build.into(),
            case: CaseId::new(format!("p/{case}")),
            category: Category::Permissions,
            scenario: Scenario::Ordinary,
            family: CaseId::new(format!("p/{case}")),
            n_controls: None,
            status: if passes { Status::Pass } else { Status::Fail },
            reason: String::new(),
        }
    }

    fn board() -> Leaderboard {
        let contestant = |model: &str, builds: Vec<Build>, n_left_out| Contestant {
            model: model.into(),
            n_wanted: 3,
            builds,
            n_left_out,
        };
        let contestants = [
            contestant(
                "silent",
                vec![build("silent-1", State::NotDelivered, 10)],
                0,
            ),
            contestant("broken", Vec::new(), 2),
            contestant(
                "half",
                vec![
                    build("half-1", State::Passed, 10),
                    build("half-2", State::Failed, 30),
                ],
                1,
            ),
            contestant("low", vec![build("low-1", State::Passed, 10)], 0),
        ];
        let rows: Vec<Row> = (0..4)
            .flat_map(|case| {
                [
                    row("half-1", "half", case, case < 3),
                    row("low-1", "low", case, case < 2),
                ]
            })
            .collect();
        let facts = BoardFacts {
            builder: "b".into(),
            document: "d".into(),
            suite: "s".into(),
            n_cases: 4,
        };
        let runs = BTreeMap::from([("half-1".to_owned(), "r".to_owned())]);
        leaderboard(facts, &contestants, &runs, Some(&analyse(&rows)))
    }

    #[test]
    fn models_are_ranked_by_their_scored_builds_and_what_was_not_delivered_stands_beside() {
        let board = board();
        let told: Vec<_> = board
            .models
            .iter()
            .map(|row| {
                let mean = row.rates.as_ref().and_then(|rates| rates.overall.mean);
                (row.model.as_str(), row.rank, mean, row.mean_of_all)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("half", Some(1), Some(0.75), Some(0.375)),
                ("low", Some(2), Some(0.5), Some(0.5)),
                ("broken", None, None, None),
                ("silent", None, None, Some(0.0)),
            ]
        );
        let half = &board.models[0];
        assert_eq!(
            (half.n_delivered, half.n_failed, half.n_left_out),
            (1, 1, 1)
        );
        assert_eq!(half.cost.map(|cost| cost.output_tokens), Some(20.0));
        assert_eq!(half.builds[0].run.as_deref(), Some("r"));
        assert_eq!(half.builds[1].rate, None);
        assert_eq!(board.n_missing(), 1 + 2 + 3 + 2);
    }

    #[test]
    fn every_row_has_a_cell_for_each_head_and_none_breaks_a_table() {
        let board = board();
        let (heads, rows) = board.table();
        assert!(rows.iter().all(|row| row.len() == heads.len()), "{rows:?}");
        assert_eq!(rows[0][2..6], ["1/2", "75.00 ± 0.00", "n/a", "37.50"]);
        assert_eq!(rows[2][2..6], ["0/0", "n/a", "n/a", "n/a"]);
        let records = board.records();
        assert!(records.iter().all(|row| row.len() == records[0].len()));
        assert_eq!(
            records[1][..8],
            ["1", "half", "3", "1", "1", "0", "1", "0.75"]
        );
        assert!(board.markdown().contains("a \\| why |"));
    }
}
