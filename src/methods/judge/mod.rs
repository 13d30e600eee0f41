//! Judges the stored evidence of one run of a case: a pure function, so that a mended assertion needs no container.
//!
//! Order: a launch that was killed at its limit, died of a signal or could not be entered fails whatever the
//! assertions say, since an absence would hold for it, and so does more output or files than are looked at; then the
//! assertions; then requests beyond the script.

mod files;
#[cfg(test)]
mod tests;
mod values;

use crate::domain::case::{Case, Route};
use crate::domain::clause::Channel;
use crate::domain::evidence::{Evidence, Exchange, Exit, LaunchEvidence};
use crate::domain::expect::{Expect, Pick, PickNamed, Stream};
use crate::domain::verdict::{Failure, Outcome, Reason};
use files::files;
use values::{Looked, Seen, last_line, parsed, path, select, short, test_values};

/// A shell's code for "found, but cannot be executed" and "not found": the entry did not start.
const NOT_STARTED: [i32; 2] = [126, 127];

pub fn judge(case: &Case, evidence: &Evidence) -> Outcome {
    for (idx, launch) in evidence.launches.iter().enumerate() {
        if let Some(failure) = ended_badly(idx + 1, launch) {
            return Outcome::Failed(failure);
        }
    }
    if evidence.files_cut {
        return Outcome::Failed(Failure {
            reason: Reason::Limit,
            expected: "files that can all be looked at".to_owned(),
            saw: "more of them, longer paths or more bytes than are read back".to_owned(),
            place: "files".to_owned(),
        });
    }
    for expect in &case.expects {
        if let Err(seen) = holds(expect, case, evidence) {
            return Outcome::Failed(Failure {
                reason: Reason::Assertion,
                expected: expect.to_string(),
                saw: evidence.bindings.redact(&seen.saw),
                place: seen.place,
            });
        }
    }
    match evidence.n_overruns() {
        0 => Outcome::Passed,
        n => Outcome::Failed(Failure {
            reason: Reason::ScriptOverrun,
            expected: "no request beyond the script".to_owned(),
            saw: format!("{n} beyond it"),
            place: "requests".to_owned(),
        }),
    }
}

fn ended_badly(number: usize, launch: &LaunchEvidence) -> Option<Failure> {
    let failure = |reason, saw: String| {
        Some(Failure {
            reason,
            expected: "the launch ends by itself".to_owned(),
            saw,
            place: format!("launch {number}"),
        })
    };
    if launch.keys_unsent > 0 {
        return Some(Failure {
            reason: Reason::Assertion,
            expected: "the screen comes to show what the keys wait for".to_owned(),
            saw: format!(
                "{} keys never typed; the screen ends with {}",
                launch.keys_unsent,
                short(last_line(launch.screen.as_deref().unwrap_or_default()))
            ),
            place: format!("launch {number}, screen"),
        });
    }
    match launch.exit {
        Exit::TimedOut => failure(
            Reason::Timeout,
            format!("killed after {} s", launch.duration_ms / 1000),
        ),
        _ if launch.out_of_memory => failure(Reason::Crash, "killed over its memory limit".into()),
        Exit::Signal(signal) => failure(Reason::Crash, format!("died of signal {signal}")),
        Exit::Code(code) if NOT_STARTED.contains(&code) && launch.requests.is_empty() => failure(
            Reason::Contract,
            format!("exit {code}: {}", short(last_line(&launch.stderr.text))),
        ),
        // What a terminal showed is its screen, however much was written.
        Exit::Code(_) if launch.screen.is_none() && (launch.stdout.cut || launch.stderr.cut) => {
            Some(Failure {
                reason: Reason::Limit,
                expected: "output that can all be looked at".to_owned(),
                saw: "more than is kept".to_owned(),
                place: format!("launch {number}"),
            })
        }
        Exit::Code(_) => None,
    }
}

fn holds(expect: &Expect, case: &Case, evidence: &Evidence) -> Result<(), Seen> {
    if !expect.any.is_empty() {
        let mut seen = Vec::new();
        for member in &expect.any {
            match holds(member, case, evidence) {
                Ok(()) => return Ok(()),
                Err(miss) => seen.push(miss),
            }
        }
        let saw: Vec<String> = seen.iter().map(|miss| miss.saw.clone()).collect();
        let places: Vec<String> = seen.into_iter().map(|miss| miss.place).collect();
        return Err(Seen {
            saw: saw.join(" | "),
            place: places.join(" | "),
        });
    }
    match expect.channel.expect("a checked case names the channel") {
        Channel::Requests => requests(expect, evidence),
        Channel::Files => files(expect, evidence),
        Channel::Exit => exit(expect, evidence),
        Channel::Output => output(expect, case, evidence),
    }
}

/// The launches looked at, with their numbers from 1.
fn launches<'a>(
    expect: &Expect,
    evidence: &'a Evidence,
    all: bool,
) -> Vec<(usize, &'a LaunchEvidence)> {
    let numbered = evidence
        .launches
        .iter()
        .enumerate()
        .map(|(idx, launch)| (idx + 1, launch));
    match expect.launch {
        Some(n) => numbered.filter(|(number, _)| *number == n).collect(),
        None if all => numbered.collect(),
        None => numbered.rev().take(1).collect(),
    }
}

fn requests(expect: &Expect, evidence: &Evidence) -> Result<(), Seen> {
    let all: Vec<(String, &Exchange)> = launches(expect, evidence, true)
        .into_iter()
        .flat_map(|(number, launch)| {
            let numbered = launch.requests.iter().enumerate();
            numbered.map(move |(idx, one)| (format!("launch {number}, request {}", idx + 1), one))
        })
        .collect();
    let main = all.iter().filter(|(_, exchange)| !exchange.side);
    let picked: Vec<&(String, &Exchange)> = match expect.request {
        None | Some(Pick::Named(PickNamed::Any)) => all.iter().collect(),
        Some(Pick::Named(PickNamed::Side)) => {
            all.iter().filter(|(_, exchange)| exchange.side).collect()
        }
        Some(Pick::Named(PickNamed::First)) => main.take(1).collect(),
        Some(Pick::Named(PickNamed::Last)) => main.rev().take(1).collect(),
        Some(Pick::Nth(n)) => main.skip(n.saturating_sub(1)).take(1).collect(),
    };
    let looked: Vec<Looked> = match &expect.at {
        None => picked
            .iter()
            .map(|(place, exchange)| Looked {
                value: exchange.body.clone(),
                place: place.clone(),
            })
            .collect(),
        Some(at) => {
            let path = path(at, &evidence.bindings);
            picked
                .iter()
                .flat_map(|(place, exchange)| select(&path, &exchange.body, place))
                .collect()
        }
    };
    let none = || match picked.len() {
        0 => "no such request".to_owned(),
        n => format!("nothing at that path in {n} requests"),
    };
    test_values(expect, &evidence.bindings, &looked, "requests", none)
}

fn exit(expect: &Expect, evidence: &Evidence) -> Result<(), Seen> {
    for (number, launch) in launches(expect, evidence, false) {
        let Exit::Code(code) = launch.exit else {
            continue;
        };
        let equals = expect
            .equals
            .as_ref()
            .is_none_or(|wanted| wanted.as_i64() == Some(code.into()));
        let differs = expect
            .not_equals
            .as_ref()
            .is_none_or(|other| other.as_i64() != Some(code.into()));
        let listed = expect.one_of.is_empty() || expect.one_of.contains(&code);
        if !(equals && differs && listed) {
            return Err(Seen {
                saw: format!("exit {code}"),
                place: format!("launch {number}, exit"),
            });
        }
    }
    Ok(())
}

fn output(expect: &Expect, case: &Case, evidence: &Evidence) -> Result<(), Seen> {
    let mut looked = Vec::new();
    let mut where_looked = String::new();
    for (number, launch) in launches(expect, evidence, false) {
        let terminal = case
            .launches
            .get(number - 1)
            .is_some_and(|launch| launch.route == Route::Terminal);
        let stream = expect.stream.unwrap_or(match terminal {
            true => Stream::Screen,
            false => Stream::Stdout,
        });
        let text = match stream {
            Stream::Stdout => launch.stdout.text.clone(),
            Stream::Stderr => launch.stderr.text.clone(),
            Stream::Both => format!("{}{}", launch.stdout.text, launch.stderr.text),
            Stream::Screen => launch.screen.clone().unwrap_or_default(),
        };
        where_looked = format!("launch {number}, {}", stream.as_str());
        looked.extend(parsed(expect, &evidence.bindings, &text, &where_looked)?);
    }
    let none = || "nothing at that path".to_owned();
    test_values(expect, &evidence.bindings, &looked, &where_looked, none)
}
