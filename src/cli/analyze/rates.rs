//! Tables of rates, ranks and correlations.

use super::super::output::table;
use super::numbers::{correlation, count, interval, percent};
use crate::domain::results::Group;
use crate::domain::visible::visible_line;
use crate::methods::analysis::{Analysis, Correlation, GroupRow, Parts, Rate, Spread};

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

pub fn candidates(analysis: &Analysis) -> String {
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

pub fn models(analysis: &Analysis) -> String {
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

pub fn groups(analysis: &Analysis) -> String {
    let name = |row: &GroupRow| row.group.map_or("all", Group::as_str).to_owned();
    let rows = analysis.groups.iter().map(|row| {
        vec![
            name(row),
            row.n_cases.to_string(),
            percent(row.average),
            interval(row.average_interval),
            row.gap
                .map_or_else(|| "n/a".to_owned(), |gap| format!("{:.1}", 100.0 * gap)),
            interval(row.gap_interval),
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
        "95 %",
        "gap",
        "95 %",
        "floor",
        "ceiling",
        "discriminating",
        "undecided",
    ];
    table(&header, rows)
        + "\n(gap: best model − worst, in points; floor: no candidate passes; ceiling: all pass;\n\
           undecided: a verdict that does not count could change it; other: artifact checks, startup, extension discovery)"
}

pub fn ranks(analysis: &Analysis) -> String {
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
    let mut header = vec!["rank", "95 %", "model"];
    header.extend(groups.iter().map(|group| group.heading()));
    header.push("movement");
    let rows = analysis.ranks.iter().map(|model| {
        let mut row = vec![
            model.overall.to_string(),
            model.interval.map_or_else(
                || "n/a".to_owned(),
                |rank| format!("{}–{}", rank.best, rank.worst),
            ),
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

pub fn correlations(analysis: &Analysis) -> String {
    let correlations = &analysis.correlations;
    if correlations.pairs.is_empty() {
        return String::new();
    }
    let groups: Vec<Group> = correlations.overall.keys().copied().collect();
    let mut header = vec!["correlation"];
    header.extend(groups.iter().map(|group| group.heading()));
    let row = |name: &str, of: &dyn Fn(Group) -> Option<Correlation>| {
        let cells = groups.iter().map(|group| match of(*group) {
            Some(of) => correlation(&of),
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
                pair.map(|pair| pair.of)
            })
        })
        .collect();
    rows.push(row("overall", &|group| Some(correlations.overall[&group])));
    table(&header, rows)
        + &format!(
            "\n(Pearson over {}; mean of the pairs {})",
            count(correlations.n_models, "model", "models"),
            correlation(&correlations.mean)
        )
}
