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
    let mut plain = |statistic, subject: &str, part: &str, value, n, left_out| {
        all.push(Estimate {
            statistic,
            subject: subject.to_owned(),
            part: part.to_owned(),
            value,
            low: None,
            high: None,
            n,
            left_out,
        });
    };
    let n_models = analysis.models.len();
    for row in &analysis.groups {
        let part = row.group.map_or("all", Group::as_str);
        plain("average", "", part, row.average, n_models, 0);
        plain("strong-weak-gap", "", part, row.gap, n_models, 0);
        for (statistic, n) in [
            ("floor-cases", row.floor),
            ("ceiling-cases", row.ceiling),
            ("discriminating-cases", row.discriminating),
        ] {
            let decided = row.n_cases - row.undecided;
            plain(statistic, "", part, Some(n as f64), decided, row.undecided);
        }
    }
    let reliability = &analysis.reliability;
    plain(
        "kr-20",
        "",
        "all",
        reliability.kr20,
        reliability.n_cases,
        reliability.cases_left_out,
    );
    for model in &analysis.ranks {
        let overall = Some(model.overall as f64);
        plain("rank", &model.model, "all", overall, n_models, 0);
        for (group, rank) in &model.groups {
            let rank = Some(*rank as f64);
            plain("rank", &model.model, group.as_str(), rank, n_models, 0);
        }
        let movement = model.movement.map(|n| n as f64);
        plain("rank-movement", &model.model, "all", movement, n_models, 0);
    }
    for pair in &analysis.correlations.pairs {
        let part = format!("{} × {}", pair.a, pair.b);
        plain("correlation", "", &part, pair.r, n_models, 0);
    }
    for (group, r) in &analysis.correlations.overall {
        let part = format!("{group} × all");
        plain("correlation", "", &part, *r, n_models, 0);
    }
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
