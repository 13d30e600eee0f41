//! `pipeline show`: a run as a table, or one case as a verdict and a time line.

use std::fmt::Write;

use super::{ExitCode, Output, summary};
use crate::domain::verdict::Verdict;
use crate::domain::visible::visible_line;
use crate::methods::timeline::{Limits, LineKind, lines};
use crate::stages::show::{Config, Summary, Table, Unit, Units};
use crate::stages::{Context, Result, show};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run; the newest one unless said
    run: Option<String>,
    /// The case or the control: its id, or a part of it that no other has
    case: Option<String>,
    /// Only this candidate; needed for evidence when the run has several
    #[arg(long, short, value_name = "NAME")]
    candidate: Option<String>,
    /// Of a run with --repeat: the evidence of this repetition; the first that did not pass unless said
    #[arg(long, value_name = "N")]
    repetition: Option<u32>,
    /// Cut nothing
    #[arg(long)]
    full: bool,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    // The id of a run has no slash and the id of a case has one.
    let (run, case) = match (args.run, args.case) {
        (Some(case), None) if case.contains('/') => (None, Some(case)),
        both => both,
    };
    let config = Config {
        run,
        case,
        candidate: args.candidate,
        repetition: args.repetition,
    };
    let limits = if args.full {
        Limits::FULL
    } else {
        Limits::SHORT
    };
    let summary = show::run(context, &config)?;
    output.result(&summary, |summary| match summary {
        Summary::Table(table) => self::table(table),
        Summary::Units(units) => self::units(units, &limits),
    })?;
    Ok(ExitCode::Done)
}

fn table(table: &Table) -> String {
    let mut text = summary::words(&table.summary);
    if table.n_unfinished > 0 {
        write!(
            text,
            "\n\nthe run is not finished: {} verdicts are not there yet",
            table.n_unfinished
        )
        .expect("a String");
    }
    for verdict in &table.not_passed {
        write!(text, "\n\n{}", summary::verdict(verdict, None)).expect("a String");
    }
    write!(text, "\n\nmore: pipeline show {} CASE", table.run).expect("a String");
    text
}

fn units(units: &Units, limits: &Limits) -> String {
    let mut out = String::new();
    let mut line = |text: &str| writeln!(out, "{text}").expect("a String takes everything");
    for unit in &units.units {
        if units.units.len() > 1 {
            line(&format!("candidate {}", visible_line(&unit.candidate)));
        }
        line(&verdict(units, unit));
        if let Some(unsteady) = &unit.unsteady {
            line(&format!("  repetitions {}", unsteady.ended.join(", ")));
            line(summary::differences(unsteady, "    ").trim_end());
        }
    }
    let case = &units.case;
    line("");
    line(&visible_line(&case.title));
    let kind = match (case.category, case.scenario) {
        (Some(category), Some(scenario)) => format!("{category}, {}", scenario.as_str()),
        (Some(category), None) => category.to_string(),
        (None, _) => "positive control".to_owned(),
    };
    line(&format!("clause {}, {kind}", case.clause));
    if !units.gates.is_empty() {
        let gates: Vec<&str> = units.gates.iter().map(|id| id.as_str()).collect();
        line(&format!("gates {}", gates.join(", ")));
    }
    for unit in &units.units {
        let Some(timeline) = &unit.timeline else {
            continue;
        };
        if let Some(outcome) = &unit.outcome {
            line(&format!(
                "run {}, candidate {}, repetition {}, attempt {}",
                units.run,
                visible_line(&unit.candidate),
                outcome.repetition,
                outcome.attempt
            ));
        }
        line("");
        for told in lines(timeline, limits) {
            line(&painted(told.kind, &told.text));
        }
    }
    if units.units.len() > 1 {
        line(&format!(
            "\nevidence: pipeline show {} {} --candidate NAME",
            units.run, case.id
        ));
    } else if units.units.iter().all(|unit| unit.timeline.is_none()) {
        line("\nthere is no evidence of it");
    }
    out
}

/// A control, and a case whose controls have not all run, are told by their own outcome.
fn verdict(units: &Units, unit: &Unit) -> String {
    match (&unit.verdict, unit.ended()) {
        (Some(verdict), _) => summary::verdict(verdict, None),
        (None, Some(own)) => {
            let own = Verdict::gated(&unit.candidate, &units.case.id, own.clone(), Vec::new());
            let mut text = summary::verdict(&own, None);
            if units.case.category.is_some() {
                text += "\n  not gated: a control has not run yet";
            }
            text
        }
        (None, None) => format!("{}  has not run yet", units.case.id),
    }
}

fn painted(kind: LineKind, text: &str) -> String {
    let style = match kind {
        LineKind::Plain => return text.to_owned(),
        LineKind::Head => anstyle::Style::new().bold(),
        LineKind::Added => anstyle::AnsiColor::Green.on_default(),
        LineKind::Removed => anstyle::AnsiColor::Red.on_default(),
    };
    format!("{style}{text}{style:#}")
}
