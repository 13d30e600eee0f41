//! The table of verdicts, and one verdict, as words on a terminal.

use std::fmt::Write;

use super::output::table;
use crate::domain::results::{Group, Tally};
use crate::domain::verdict::{FaultKind, Outcome, Reason, Verdict};
use crate::domain::visible::{shortened, visible_line};
use crate::methods::repetition::Unsteady;
use crate::methods::summary::Summary;

/// Candidates × categories with `passed/counted` in the cells, then what the table leaves out.
pub fn words(summary: &Summary) -> String {
    let groups: Vec<Group> = Group::ALL
        .into_iter()
        .filter(|group| {
            let candidates = &summary.candidates;
            candidates.iter().any(|c| c.groups.contains_key(group))
        })
        .collect();
    let mut header = vec!["candidate", "pass rate", "passed"];
    header.extend(groups.iter().map(|group| group.heading()));
    let any_invalid = summary.all.invalid > 0;
    if any_invalid {
        header.push("invalid");
    }
    let any_flaky = summary.all.flaky > 0;
    if any_flaky {
        header.push("flaky");
    }
    let any_not_asked = summary.all.not_asked > 0;
    if any_not_asked {
        header.push("not asked");
    }
    let rows = summary.candidates.iter().map(|candidate| {
        let mut row = vec![
            visible_line(&candidate.name).into_owned(),
            percent(candidate.rate),
            fraction(candidate.all),
        ];
        row.extend(groups.iter().map(|group| {
            let tally = candidate.groups.get(group);
            tally.copied().map_or_else(String::new, fraction)
        }));
        if any_invalid {
            row.push(candidate.all.invalid.to_string());
        }
        if any_flaky {
            row.push(candidate.all.flaky.to_string());
        }
        if any_not_asked {
            row.push(candidate.all.not_asked.to_string());
        }
        row
    });
    let mut text = table(&header, rows);
    let failed = reasons(summary, true);
    if !failed.is_empty() {
        write!(text, "\n\nfailed   {} ({failed})", summary.all.failed).expect("a String");
    }
    if summary.vacuous > 0 {
        write!(
            text,
            "\n         {} of them passed on their own, but a control shows that the pass proves nothing",
            summary.vacuous
        )
        .expect("a String");
    }
    if any_invalid {
        write!(
            text,
            "\ninvalid  {} ({}): our side broke; they are in no rate",
            summary.all.invalid,
            reasons(summary, false)
        )
        .expect("a String");
    }
    if any_flaky {
        write!(
            text,
            "\nflaky    {}: their repetitions ended differently; they are in no rate",
            summary.all.flaky
        )
        .expect("a String");
    }
    if any_not_asked {
        write!(
            text,
            "\nnot asked {}: the adapter of a shipping harness cannot express them; they are in no rate",
            summary.all.not_asked
        )
        .expect("a String");
    }
    if summary.without_category > 0 {
        write!(
            text,
            "\nnote     {} verdicts are on cases that the suite no longer holds: in the rate, but in no category",
            summary.without_category
        )
        .expect("a String");
    }
    text
}

/// A verdict with what was expected, what was seen, and the controls. `more` is a command that shows more.
pub fn verdict(verdict: &Verdict, more: Option<&str>) -> String {
    let word = verdict.outcome.word().to_uppercase();
    let mut text = format!("{:<45} {word:<7}", visible_line(verdict.case.as_str()));
    if verdict.outcome.is_finding() {
        write!(text, " {}", verdict.outcome.reason()).expect("a String");
    }
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let value = visible_line(value);
            write!(text, "\n  {name:<9} {}", shortened(&value, 500)).expect("a String");
        }
    };
    match &verdict.outcome {
        Outcome::Passed => {}
        Outcome::Failed(failure) => {
            line("expected", &failure.expected);
            line("saw", &failure.saw);
            line("where", &failure.place);
        }
        Outcome::Invalid(fault) => line("fault", &fault.message),
        Outcome::NotAsked { why } => line("why", why),
    }
    let controls: Vec<String> = verdict
        .controls
        .iter()
        .map(|control| format!("{} {}", control.name, control.ended))
        .collect();
    line("controls", &controls.join(" · "));
    line("more", more.unwrap_or_default());
    text.lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Units that are told one by one.
const SHOWN: usize = 12;

/// Units whose repetitions differ: how each ended, and the first difference of each channel.
pub fn unsteady(units: &[Unsteady]) -> String {
    let n_flaky = units.iter().filter(|unit| unit.flaky).count();
    let mut text = format!(
        "repeated {n_flaky} units ended differently, {} ended alike but showed something else\n",
        units.len() - n_flaky
    );
    // Those that ended differently first; the order is else that of the run.
    let (flaky, alike): (Vec<_>, Vec<_>) = units.iter().partition(|unit| unit.flaky);
    for unit in flaky.into_iter().chain(alike).take(SHOWN) {
        text += &format!(
            "  {} · {}: {}\n",
            visible_line(&unit.candidate),
            unit.case,
            unit.ended.join(", ")
        );
        text += &differences(unit, "    ");
    }
    if units.len() > SHOWN {
        text += &format!("  … and {} more\n", units.len() - SHOWN);
    }
    text
}

/// The first difference of each channel between two repetitions, one line each and two for what was seen.
pub fn differences(unit: &Unsteady, indent: &str) -> String {
    let (one, other) = unit.compared;
    let shown = |text: &Option<String>| match text {
        Some(text) => format!("{:?}", shortened(&visible_line(text), 120)),
        None => "nothing".to_owned(),
    };
    let mut text = String::new();
    for difference in &unit.differences {
        text += &format!(
            "{indent}{:<9} {}\n{indent}  {one}: {}\n{indent}  {other}: {}\n",
            difference.channel.as_str(),
            visible_line(&difference.place),
            shown(&difference.one),
            shown(&difference.other)
        );
    }
    if unit.differences.is_empty() {
        text += &format!("{indent}nothing differs but what is declared to\n");
    }
    text
}

/// A rate from 0 to 1 in percent with two places, or `n/a`.
pub fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "n/a".to_owned(), |rate| format!("{:.2} %", 100.0 * rate))
}

fn fraction(tally: Tally) -> String {
    if tally.counted() == 0 {
        "n/a".to_owned()
    } else {
        format!("{}/{}", tally.passed, tally.counted())
    }
}

/// `assertion 12 · control 3`, of the failed or of the invalid ones.
fn reasons(summary: &Summary, failed: bool) -> String {
    let is_failure = |word: &str| Reason::ALL.iter().any(|reason| reason.as_str() == word);
    let chosen = summary
        .reasons
        .iter()
        .filter(|(word, _)| is_failure(word) == failed && **word != FaultKind::Flaky.as_str());
    chosen
        .map(|(word, n)| format!("{word} {n}"))
        .collect::<Vec<_>>()
        .join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::case::CaseId;
    use crate::domain::results::Facts;
    use crate::domain::verdict::{Failure, Fault, FaultKind};
    use crate::methods::summary::summarise;

    #[test]
    fn says_what_is_left_out() {
        let case = CaseId::new("a/b");
        let invalid = Outcome::Invalid(Fault {
            kind: FaultKind::DiskFull,
            message: "full".to_owned(),
        });
        let not_asked = Outcome::NotAsked {
            why: "it has no tool todo".to_owned(),
        };
        assert!(
            verdict(&Verdict::gated("z", &case, not_asked.clone(), vec![]), None)
                .ends_with("NOT ASKED\n  why       it has no tool todo")
        );
        let verdicts = [
            Verdict::gated("x", &case, invalid, vec![]),
            Verdict::gated("y", &case, Outcome::failed(Reason::Crash), vec![]),
            Verdict::gated("z", &case, not_asked, vec![]),
        ];
        let text = words(&summarise(&verdicts, &Facts::new()));
        let check = |part: &str| assert!(text.contains(part), "{part:?} is not in:\n{text}");
        check("n/a");
        check("0/1");
        check("failed   1 (crash 1)");
        check("invalid  1 (disk-full 1)");
        check("not asked 1: ");
        check("3 verdicts are on cases that the suite no longer holds");
    }

    #[test]
    fn a_verdict_cannot_move_the_cursor() {
        let failure = Outcome::Failed(Failure {
            reason: Reason::Assertion,
            expected: "stdout lacks \"x\"".to_owned(),
            saw: "\x1b[2Jx\ny".to_owned(),
            place: "launch 1".to_owned(),
        });
        let controls = vec![("readable".to_owned(), Outcome::Passed)];
        let text = verdict(
            &Verdict::gated("x", &CaseId::new("a/b"), failure, controls),
            Some("pipeline show r a/b"),
        );
        assert_eq!(
            text,
            "a/b                                           FAIL    assertion\n  \
             expected  stdout lacks \"x\"\n  \
             saw       ␛[2Jx↵y\n  \
             where     launch 1\n  \
             controls  readable pass\n  \
             more      pipeline show r a/b"
        );
    }
}
