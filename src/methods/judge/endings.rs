//! Launches that end badly: they fail the case whatever its assertions say.

use super::values::{last_line, short};
use crate::domain::case::{Alongside, Launch};
use crate::domain::evidence::{Exit, LaunchEvidence};
use crate::domain::verdict::{Failure, Reason};

/// A shell's code for "found, but cannot be executed" and "not found": the entry did not start.
const NOT_STARTED: [i32; 2] = [126, 127];

/// What is wrong with how a launch went. `case` is absent where the evidence has more launches than the case.
pub(super) fn ended_badly(
    number: usize,
    case: Option<&Launch>,
    launch: &LaunchEvidence,
) -> Option<Failure> {
    let failure = |reason, expected: &str, saw: String, place: &str| {
        Some(Failure {
            reason,
            expected: expected.to_owned(),
            saw,
            place: format!("launch {number}{place}"),
        })
    };
    let ended = |reason, saw: String| failure(reason, "the launch ends by itself", saw, "");
    if launch.keys_unsent > 0 {
        let screen = last_line(launch.screen.as_deref().unwrap_or_default());
        return failure(
            Reason::Assertion,
            "what the keys wait for comes",
            format!(
                "{} keys never typed; the screen ends with {}",
                launch.keys_unsent,
                short(screen)
            ),
            ", screen",
        );
    }
    let sent = case.map_or(&[][..], |case| case.signals.as_slice());
    match launch.exit {
        Exit::NeverStarted => {
            let alongside = case.and_then(|case| case.alongside.as_ref());
            let expected = match alongside {
                Some(Alongside { launch, once, .. }) => {
                    format!("it starts alongside launch {launch} once {once} there")
                }
                None => "it starts".to_owned(),
            };
            let saw = "it was never started".to_owned();
            return failure(Reason::Assertion, &expected, saw, "");
        }
        Exit::TimedOut => {
            let saw = format!("killed after {} s", launch.duration_ms / 1000);
            return ended(Reason::Timeout, saw);
        }
        _ if launch.out_of_memory => {
            return ended(Reason::Crash, "killed over its memory limit".into());
        }
        Exit::Signal(signal) if !sent.iter().any(|one| one.send.number() == signal) => {
            return ended(Reason::Crash, format!("died of signal {signal}"));
        }
        Exit::Code(code) if NOT_STARTED.contains(&code) && launch.requests.is_empty() => {
            let saw = format!("exit {code}: {}", short(last_line(&launch.stderr.text)));
            return ended(Reason::Contract, saw);
        }
        // What a terminal showed is its screen, however much was written.
        Exit::Code(_) if launch.screen.is_none() && (launch.stdout.cut || launch.stderr.cut) => {
            let expected = "output that can all be looked at";
            return failure(Reason::Limit, expected, "more than is kept".to_owned(), "");
        }
        Exit::Code(_) | Exit::Signal(_) => {}
    }
    if launch.signals_unsent > 0 {
        let first = sent.len().saturating_sub(launch.signals_unsent);
        let expected = match sent.get(first) {
            Some(signal) => format!(
                "signal {} is sent once {}",
                signal.send.as_str(),
                signal.once
            ),
            None => "its signals are sent".to_owned(),
        };
        let n = launch.requests.len();
        let saw = format!("that moment never came; it made {n} requests and ended");
        return failure(Reason::Assertion, &expected, saw, "");
    }
    if let Some(name) = launch.unbound.first() {
        let capture = case.and_then(|case| case.bind.get(name));
        let stream = capture.and_then(|capture| capture.stream);
        let (word, text) = match stream {
            Some(stream) => (stream.as_str(), super::text_of(launch, stream)),
            None => (
                "output",
                super::text_of(launch, super::usual_stream(launch)),
            ),
        };
        return failure(
            Reason::Assertion,
            &format!("the {word} shows what is bound to {{bound:{name}}}"),
            short(&text),
            &format!(", {word}"),
        );
    }
    None
}
