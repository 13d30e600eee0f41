//! Judges the stored evidence of one run of a case: a pure function, so that a mended assertion needs no container.
//!
//! Order: a launch that was killed at its limit, died of a signal or could not be entered fails whatever the
//! assertions say, since an absence would hold for it, and so does more output or files than are looked at; then the
//! assertions; then requests beyond the script.

mod capture;
mod endings;
mod files;
mod location;
mod order;
mod requests;
#[cfg(test)]
mod tests;
mod values;

pub use capture::caught;

use crate::domain::case::{Bindings, Case};
use crate::domain::clause::Channel;
use crate::domain::evidence::{Evidence, Exit, LaunchEvidence, ReplyKind};
use crate::domain::expect::{Expect, Stream};
use crate::domain::verdict::{Failure, Outcome, Reason};
use endings::ended_badly;
use files::files;
use order::in_order;
use requests::requests;
use values::{Held, Looked, Seen, parsed, short, test_values};

/// What a shell adds to the number of the signal that ended a program.
const SIGNALLED: i32 = 128;

pub fn judge(case: &Case, evidence: &Evidence) -> Outcome {
    for (idx, launch) in evidence.launches.iter().enumerate() {
        if let Some(failure) = ended_badly(idx + 1, case.launches.get(idx), launch) {
            return Outcome::Failed(Failure {
                saw: evidence.bindings.redact(&failure.saw),
                ..failure
            });
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
    // What an assertion binds is there for those behind it.
    let mut bindings = evidence.bindings.clone();
    for expect in &case.expects {
        let failed = |seen: Seen| {
            Outcome::Failed(Failure {
                reason: Reason::Assertion,
                expected: expect.to_string(),
                saw: evidence.bindings.redact(&seen.saw),
                place: evidence.bindings.redact(&seen.place),
            })
        };
        let held = match holds(expect, evidence, &bindings) {
            Ok(held) => held,
            Err(seen) => return failed(seen),
        };
        if let Some(name) = &expect.bind {
            match capture::bound(expect.matches.as_deref(), &held.looked, &bindings) {
                Some(value) => bindings.0.insert(format!("bound:{name}"), value),
                None => {
                    return failed(Seen {
                        saw: "no value to bind".to_owned(),
                        place: held.place,
                    });
                }
            };
        }
    }
    match evidence.n_overruns() {
        0 => Outcome::Passed,
        n => Outcome::Failed(Failure {
            reason: Reason::ScriptOverrun,
            expected: "no request beyond the script".to_owned(),
            saw: format!("{n} beyond it"),
            place: first_overrun(evidence),
        }),
    }
}

fn first_overrun(evidence: &Evidence) -> String {
    let numbered = evidence.launches.iter().enumerate();
    let found = numbered
        .flat_map(|(launch_idx, launch)| {
            let requests = launch.requests.iter().enumerate();
            requests.map(move |(idx, exchange)| (launch_idx + 1, idx + 1, exchange))
        })
        .find(|(_, _, exchange)| exchange.reply == ReplyKind::Overrun);
    match found {
        Some((launch, request, _)) => format!("launch {launch}, request {request}"),
        None => "requests".to_owned(),
    }
}

fn holds(expect: &Expect, evidence: &Evidence, bindings: &Bindings) -> Result<Held, Seen> {
    let holds = |member: &Expect| self::holds(member, evidence, bindings);
    if !expect.any.is_empty() {
        let mut seen = Vec::new();
        for member in &expect.any {
            match holds(member) {
                Ok(held) => return Ok(held),
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
    if !expect.all.is_empty() {
        let mut looked = Vec::new();
        let mut places = Vec::new();
        for member in &expect.all {
            let held = holds(member)?;
            looked.extend(held.looked);
            places.push(held.place);
        }
        places.dedup();
        return Ok(Held {
            looked,
            place: places.join(" & "),
        });
    }
    if let Some(inner) = &expect.not {
        return match holds(inner) {
            Err(miss) => Ok(Held {
                looked: Vec::new(),
                place: miss.place,
            }),
            Ok(held) => Err(Seen {
                saw: match held.looked.last() {
                    Some(last) => format!("it holds: {}", short(&values::as_text(&last.value))),
                    None => "it holds".to_owned(),
                },
                place: held.place,
            }),
        };
    }
    match expect.channel.expect("a checked case names the channel") {
        Channel::Requests => requests(expect, evidence, bindings),
        Channel::Files => files(expect, evidence, bindings),
        Channel::Exit => exit(expect, evidence),
        Channel::Output => output(expect, evidence, bindings),
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

fn exit(expect: &Expect, evidence: &Evidence) -> Result<Held, Seen> {
    let Some((number, launch)) = launches(expect, evidence, false).pop() else {
        return Err(Seen {
            saw: "nothing was launched".to_owned(),
            place: "exit".to_owned(),
        });
    };
    let place = format!("launch {number}, exit");
    let (code, saw) = match launch.exit {
        Exit::Code(code) => (code, format!("exit {code}")),
        Exit::Signal(signal) => {
            let code = SIGNALLED + signal;
            (code, format!("exit {code}, of signal {signal}"))
        }
        // These fail the case before any assertion is looked at.
        Exit::TimedOut | Exit::NeverStarted => (-1, "no exit".to_owned()),
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
    if equals && differs && listed {
        let value = code.into();
        let looked = vec![Looked {
            value,
            place: place.clone(),
        }];
        Ok(Held { looked, place })
    } else {
        Err(Seen { saw, place })
    }
}

/// What an output is looked at unless the case says so.
fn usual_stream(launch: &LaunchEvidence) -> Stream {
    match launch.screen {
        Some(_) => Stream::Screen,
        None => Stream::Stdout,
    }
}

fn text_of(launch: &LaunchEvidence, stream: Stream) -> String {
    match stream {
        Stream::Stdout => launch.stdout.text.clone(),
        Stream::Stderr => launch.stderr.text.clone(),
        Stream::Both => format!("{}{}", launch.stdout.text, launch.stderr.text),
        Stream::Screen => launch.screen.clone().unwrap_or_default(),
    }
}

fn output(expect: &Expect, evidence: &Evidence, bindings: &Bindings) -> Result<Held, Seen> {
    let Some((number, launch)) = launches(expect, evidence, false).pop() else {
        return Err(Seen {
            saw: "nothing was launched".to_owned(),
            place: "output".to_owned(),
        });
    };
    let stream = expect.stream.unwrap_or(usual_stream(launch));
    let place = format!("launch {number}, {}", stream.as_str());
    let looked = parsed(expect, bindings, &text_of(launch, stream), &place)?;
    let none = || "nothing at that path".to_owned();
    in_order(&expect.order, bindings, &looked, &place)?;
    test_values(expect, bindings, looked, &place, none)
}
