//! An analysis as a flat table, one estimate a row, for other programs.

use serde::Serialize;

use super::super::statistics::Interval;
use super::{Analysis, Parts};
use crate::domain::results::Group;

/// One number of an [`Analysis`], for a table with one estimate a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    pub statistic: &'static str,
    /// A candidate or a model; empty when it is about all.
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
    let mut add = |statistic, subject: &str, part: &str, value, interval: Option<Interval>, n| {
        all.push(Estimate {
            statistic,
            subject: subject.to_owned(),
            part: part.to_owned(),
            value,
            low: interval.map(|i| i.low),
            high: interval.map(|i| i.high),
            n,
            left_out: 0,
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
                statistic,
                subject: String::new(),
                part: row.group.map_or("all", Group::as_str).to_owned(),
                value: Some(n as f64),
                low: None,
                high: None,
                n: row.n_cases - row.undecided,
                left_out: row.undecided,
            });
        }
    }
    let reliability = &analysis.reliability;
    all.push(Estimate {
        statistic: "kr-20",
        subject: String::new(),
        part: "all".to_owned(),
        value: reliability.kr20,
        low: reliability.interval.map(|i| i.low),
        high: reliability.interval.map(|i| i.high),
        n: reliability.n_cases,
        left_out: reliability.cases_left_out,
    });
    all
}

fn each_part<T>(parts: &Parts<T>, mut act: impl FnMut(&str, &T)) {
    act("all", &parts.overall);
    for (group, value) in &parts.groups {
        act(group.as_str(), value);
    }
    act("ordinary", &parts.ordinary);
    act("boundary", &parts.boundary);
}
