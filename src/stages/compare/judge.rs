//! The differences of a comparison against what people found by reading the same two sources.

use super::summary::split;
use crate::domain::case::Method;
use crate::domain::difference::{Difference, Side};
use crate::methods::comparison::attribution::{Clauses, Scored};
use crate::methods::comparison::judged::{self, Figures, Listed};
use crate::methods::comparison::readings::Reading;
use crate::stages::{Context, Failure, Result};
use crate::storage::{judged_differences, suite};

/// `listed`: in the order that they are shown in, each with its ranked clauses.
pub fn figures(
    context: &Context,
    (candidate, target): (&str, &str),
    listed: &[(Difference, Vec<Scored>)],
    readings: &[Reading<'_>],
    clauses: &Clauses<'_>,
) -> Result<Figures> {
    let project = &context.project;
    let suite = suite::read(&project.cases()).map_err(|findings| Failure::findings(&findings))?;
    let judgements = judged_differences::read(&project.judged_differences())
        .map_err(|findings| Failure::findings(&findings))?;
    let cases = suite.tests().filter_map(|case| {
        let origin = case.origin()?;
        (origin.method == Method::Comparison).then_some((&case.clause, origin.sources.as_slice()))
    });
    let cited = judged::cited(cases, candidate, target);
    if cited.is_empty() {
        return Err(Failure::user(format!(
            "no case cites a place of {target} together with {candidate}"
        ))
        .hint("the names are those in `origin.sources` of cases; --target-name says what the target is called"));
    }
    let ids = |ranked: &[Scored]| {
        ranked
            .iter()
            .map(|(clause, _)| clauses.id(*clause))
            .collect()
    };
    let differences: Vec<Listed<'_>> = listed
        .iter()
        .filter(|(difference, ranked)| difference.side != Side::Extra && !ranked.is_empty())
        .filter_map(|(difference, ranked)| {
            let (file, line) = split(&difference.target.as_ref()?.place)?;
            Some(Listed {
                id: &difference.id,
                file,
                first_line: line,
                last_line: line,
                clauses: ids(ranked),
            })
        })
        .collect();
    let places: Vec<String> = readings.iter().map(|it| it.target.place()).collect();
    let functions: Vec<Listed<'_>> = readings
        .iter()
        .zip(&places)
        .filter_map(|(reading, place)| {
            let (file, line) = split(place)?;
            Some(Listed {
                id: &reading.target.name,
                file,
                first_line: line,
                last_line: line + reading.target.n_lines.saturating_sub(1),
                clauses: ids(&reading.clauses),
            })
        })
        .collect();
    Ok(judged::figures(
        &cited,
        &differences,
        &functions,
        &judgements,
    ))
}
