//! An analysis as a flat table, one estimate a row, for other programs.

use serde::Serialize;

use super::super::statistics::Interval;
use super::{Analysis, Architecture, Items, Paired, Parts};
use crate::domain::results::Group;

/// One number of an [`Analysis`], for a table with one estimate a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    pub statistic: &'static str,
    /// A candidate, a model or a case; empty when it is about all.
    pub subject: String,
    /// A group, `ordinary`, `boundary`, or `all`.
    pub part: String,
    pub value: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Verdicts, builds, models or cases that it was computed from.
    pub n: usize,
    pub left_out: usize,
}

/// Every estimate, one a row.
pub fn estimates(analysis: &Analysis) -> Vec<Estimate> {
    let mut all = Vec::new();
    for candidate in &analysis.candidates {
        each_part(&candidate.rates, |part, rate| {
            all.push(Estimate {
                statistic: "pass-rate",
                subject: candidate.candidate.clone(),
                part: part.to_owned(),
                value: rate.rate,
                low: rate.interval.map(|i| i.low),
                high: rate.interval.map(|i| i.high),
                n: rate.counted,
                left_out: rate.left_out(),
            });
        });
    }
    for model in &analysis.models {
        each_part(&model.rates, |part, spread| {
            let estimate = |statistic, value, interval: Option<Interval>| Estimate {
                statistic,
                subject: model.model.clone(),
                part: part.to_owned(),
                value,
                low: interval.map(|i| i.low),
                high: interval.map(|i| i.high),
                n: spread.n_builds,
                left_out: spread.left_out,
            };
            all.push(estimate("model-mean", spread.mean, spread.interval));
            all.push(estimate("model-sd", spread.sd, None));
        });
    }
    let n_models = analysis.models.len();
    let mut add = |statistic, subject: &str, part: &str, value, interval, n| {
        all.push(Estimate {
            part: part.to_owned(),
            ..Estimate::new(statistic, subject, value, interval, n)
        });
    };
    for row in &analysis.groups {
        let part = row.group.map_or("all", Group::as_str);
        let average = row.average_interval;
        add("average", "", part, row.average, average, n_models);
        let gap = row.gap_interval;
        add("strong-weak-gap", "", part, row.gap, gap, n_models);
    }
    for model in &analysis.ranks {
        let overall = Some(model.overall as f64);
        let interval = model.interval.map(|rank| Interval {
            low: rank.best as f64,
            high: rank.worst as f64,
        });
        add("rank", &model.model, "all", overall, interval, n_models);
        for (group, rank) in &model.groups {
            let rank = Some(*rank as f64);
            add("rank", &model.model, group.as_str(), rank, None, n_models);
        }
        let movement = model.movement.map(|n| n as f64);
        add(
            "rank-movement",
            &model.model,
            "all",
            movement,
            None,
            n_models,
        );
    }
    let correlations = &analysis.correlations;
    let pairs = correlations.pairs.iter();
    let pairs = pairs.map(|pair| (format!("{} × {}", pair.a, pair.b), pair.of));
    let overall = correlations.overall.iter();
    let overall = overall.map(|(group, of)| (format!("{group} × all"), *of));
    for (part, of) in pairs.chain(overall) {
        add("correlation", "", &part, of.r, of.interval, n_models);
    }
    for row in &analysis.groups {
        for (statistic, n) in [
            ("floor-cases", row.floor),
            ("ceiling-cases", row.ceiling),
            ("discriminating-cases", row.discriminating),
        ] {
            all.push(Estimate {
                part: row.group.map_or("all", Group::as_str).to_owned(),
                left_out: row.undecided,
                ..Estimate::new(
                    statistic,
                    "",
                    Some(n as f64),
                    None,
                    row.n_cases - row.undecided,
                )
            });
        }
    }
    let reliability = &analysis.reliability;
    let (kr20, interval) = (reliability.kr20, reliability.interval);
    all.push(Estimate {
        left_out: reliability.cases_left_out,
        ..Estimate::new("kr-20", "", kr20, interval, reliability.n_cases)
    });
    all
}

/// What each case is worth, and how able each candidate is.
pub fn of_items(items: &Items) -> Vec<Estimate> {
    let mut all = Vec::new();
    for item in &items.cases {
        let mut add = |statistic, value: Option<f64>| {
            all.push(Estimate::new(
                statistic,
                item.case.as_str(),
                value,
                None,
                item.counted,
            ));
        };
        add("case-rate", item.rate);
        add("case-discrimination", item.discrimination);
        add("case-slope", item.curve.map(|curve| curve.slope));
        add("case-difficulty", item.curve.map(|curve| curve.difficulty));
        add("kr-20-without-case", item.kr20_without);
    }
    for candidate in &items.abilities {
        let value = candidate.ability.map(|ability| ability.mean);
        let name = &candidate.candidate;
        all.push(Estimate::new(
            "ability",
            name,
            value,
            None,
            items.cases.len(),
        ));
    }
    all
}

pub fn of_architecture(architecture: &Architecture) -> Vec<Estimate> {
    let n_models = architecture.models.len();
    let n = architecture.n_candidates;
    let mut all = Vec::new();
    for model in &architecture.models {
        let mut add = |statistic, value: Option<f64>| {
            all.push(Estimate::new(
                statistic,
                &model.model,
                value,
                None,
                model.n_builds,
            ));
        };
        add("code-lines", Some(model.code_lines));
        add("modules", Some(model.modules));
        add("functions", Some(model.functions));
        add("lines-per-module", model.lines_per_module);
        add("largest-module-share", model.largest_share);
    }
    let mut add = |statistic, value: Option<f64>, interval: Option<Interval>, n| {
        let estimate = Estimate::new(statistic, "", value, interval, n);
        all.push(Estimate {
            left_out: architecture.left_out,
            ..estimate
        });
    };
    let (builds, models) = (architecture.lines_of_builds, architecture.lines_of_models);
    add("lines-with-rate-of-builds", builds.r, builds.interval, n);
    add(
        "lines-with-rate-of-models",
        models.r,
        models.interval,
        n_models,
    );
    for (statistic, left_out, partial) in [
        (
            "partial-modules",
            "partial-modules-leave-one-out",
            architecture.modules,
        ),
        (
            "partial-lines-per-module",
            "partial-lines-per-module-leave-one-out",
            architecture.lines_per_module,
        ),
    ] {
        add(statistic, partial.of.r, partial.of.interval, n);
        add(left_out, partial.of.r, partial.leave_one_out, n_models);
    }
    let between = architecture.between_models;
    add("between-models-code-lines", between.code_lines, None, n);
    add("between-models-modules", between.modules, None, n);
    add(
        "between-models-lines-per-module",
        between.lines_per_module,
        None,
        n,
    );
    add(
        "between-models-largest-share",
        between.largest_share,
        None,
        n,
    );
    add(
        "variation-of-builds",
        architecture.variation_of_builds,
        None,
        n,
    );
    add(
        "variation-of-models",
        architecture.variation_of_models,
        None,
        n_models,
    );
    all
}

pub fn of_pair(paired: &Paired) -> Vec<Estimate> {
    let subject = format!("{} − {}", paired.a, paired.b);
    [
        (
            "difference",
            paired.difference,
            paired.interval,
            paired.n_cases,
        ),
        (
            "p-over-families",
            paired.p_families,
            None,
            paired.n_families,
        ),
        ("p-over-cases", paired.p_cases, None, paired.n_cases),
    ]
    .map(|(statistic, value, interval, n)| Estimate {
        left_out: paired.left_out,
        ..Estimate::new(statistic, &subject, value, interval, n)
    })
    .to_vec()
}

impl Estimate {
    /// Over all cases, with nothing left out.
    fn new(
        statistic: &'static str,
        subject: &str,
        value: Option<f64>,
        interval: Option<Interval>,
        n: usize,
    ) -> Self {
        Self {
            statistic,
            subject: subject.to_owned(),
            part: "all".to_owned(),
            value,
            low: interval.map(|i| i.low),
            high: interval.map(|i| i.high),
            n,
            left_out: 0,
        }
    }
}

fn each_part<T>(parts: &Parts<T>, mut act: impl FnMut(&str, &T)) {
    act("all", &parts.overall);
    for (group, value) in &parts.groups {
        act(group.as_str(), value);
    }
    act("ordinary", &parts.ordinary);
    act("boundary", &parts.boundary);
}
