//! An assertion as a sentence, for readers who do not know how cases are written: what is looked at, and what must hold.
//!
//! The short form, which names paths as the file does, is the `Display` of [`Expect`].

use crate::domain::clause::Channel;
use crate::domain::expect::{Count, CountRange, Expect, Pick, PickNamed, Stream, Texts};

/// `In the requests to the model, none of the results of tools may contain "…".`
pub fn sentence(expect: &Expect) -> String {
    let text = told(expect) + ".";
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

fn told(expect: &Expect) -> String {
    let joined = |members: &[Expect], word: &str| {
        let told: Vec<String> = members
            .iter()
            .map(|one| format!("({})", told(one)))
            .collect();
        told.join(word)
    };
    if !expect.any.is_empty() {
        return format!("one of these must hold: {}", joined(&expect.any, " or "));
    }
    if !expect.all.is_empty() {
        return format!("all of these must hold: {}", joined(&expect.all, " and "));
    }
    if let Some(inner) = &expect.not {
        return format!("this must not hold: ({})", told(inner));
    }
    let Looked {
        place,
        what,
        several,
    } = looked(expect);
    let one_of = |what: &str| match several {
        true => format!("one of {what}"),
        false => what.to_owned(),
    };
    let none_of = |what: &str| match several {
        true => format!("none of {what} may"),
        false => format!("{what} must not"),
    };
    let mut parts: Vec<String> = Vec::new();
    let must = |parts: &mut Vec<String>, rest: String| {
        parts.push(format!("{} must {rest}", one_of(&what)));
    };
    if let Some(texts) = &expect.has {
        // Of several, each text may be in another one.
        match several {
            true => {
                for text in texts.as_slice() {
                    must(&mut parts, format!("contain {text:?}"));
                }
            }
            false => must(&mut parts, format!("contain {}", quoted(texts, "and"))),
        }
    }
    if let Some(texts) = &expect.lacks {
        parts.push(format!(
            "{} contain {}",
            none_of(&what),
            quoted(texts, "or")
        ));
    }
    if let Some(pattern) = &expect.matches {
        must(&mut parts, format!("match /{pattern}/"));
    }
    if let Some(pattern) = &expect.lacks_match {
        parts.push(format!("{} match /{pattern}/", none_of(&what)));
    }
    if let Some(value) = &expect.equals {
        must(&mut parts, format!("be exactly {value}"));
    }
    if let Some(value) = &expect.not_equals {
        parts.push(format!("{} be {value}", none_of(&what)));
    }
    if let Some((last, others)) = expect.one_of.split_last() {
        let others: Vec<String> = others.iter().map(i32::to_string).collect();
        let codes = match others.is_empty() {
            true => last.to_string(),
            false => format!("{} or {last}", others.join(", ")),
        };
        must(&mut parts, format!("be {codes}"));
    }
    if !expect.order.is_empty() {
        let steps: Vec<String> = expect.order.iter().map(ToString::to_string).collect();
        let steps = steps.join(", then one that ");
        parts.push(format!(
            "among {what} must come, in this order, one that {steps}"
        ));
    }
    if let Some(range) = expect.after_ms {
        must(
            &mut parts,
            format!("come {} milliseconds after the one before it", span(range)),
        );
    }
    match expect.count {
        Some(Count::Exactly(0)) => parts.push(format!("there must be none of {what}")),
        Some(Count::Exactly(n)) => parts.push(format!("there must be exactly {n} of {what}")),
        Some(Count::Range(range)) => {
            parts.push(format!("there must be {} of {what}", span(range)));
        }
        None => {}
    }
    match expect.exists {
        Some(true) => must(&mut parts, "be there".to_owned()),
        Some(false) => parts.push(format!("{} be there", none_of(&what))),
        None => {}
    }
    match expect.unchanged {
        Some(true) => parts.push(format!("{what} must be as it was laid before the run")),
        Some(false) => parts.push(format!("{what} must be another than it was before the run")),
        None => {}
    }
    if let Some(mode) = &expect.mode {
        must(&mut parts, format!("have the mode {mode}"));
    }
    match expect.changed.as_deref() {
        Some([]) => parts.push(format!("below {what} nothing may be new, gone or changed")),
        Some(paths) => parts.push(format!(
            "below {what} exactly these must be new, gone or changed: {}",
            paths.join(", ")
        )),
        None => {}
    }
    if let Some(name) = &expect.bind {
        let caught = match expect.matches {
            Some(_) => "what it caught there".to_owned(),
            None => what,
        };
        parts.push(format!("{{bound:{name}}} stands for {caught} from here on"));
    }
    let said = parts.join(", and ");
    match place.is_empty() {
        true => said,
        false => format!("{place}, {said}"),
    }
}

/// What an assertion looks at.
struct Looked {
    /// `in the requests to the model`; empty where `what` says it all.
    place: String,
    /// `the results of tools`.
    what: String,
    /// There can be more than one of them.
    several: bool,
}

fn looked(expect: &Expect) -> Looked {
    let launch = match expect.launch {
        Some(n) => format!(" of launch {n}"),
        None => String::new(),
    };
    let of_launch = match expect.launch {
        Some(n) => format!("of launch {n}"),
        None => "of the last launch".to_owned(),
    };
    match expect.channel {
        None | Some(Channel::Requests) => {
            let (place, several) = match expect.request {
                Some(Pick::Nth(n)) => (
                    format!("in request {n}{launch} to the model that offers tools"),
                    false,
                ),
                Some(Pick::Named(PickNamed::First)) => (
                    format!("in the first request{launch} to the model that offers tools"),
                    false,
                ),
                Some(Pick::Named(PickNamed::Last)) => (
                    format!("in the last request{launch} to the model that offers tools"),
                    false,
                ),
                Some(Pick::Named(PickNamed::Side)) => (
                    format!("in the requests{launch} to the model that offer no tools"),
                    true,
                ),
                Some(Pick::Named(PickNamed::Any)) | None => {
                    (format!("in the requests{launch} to the model"), true)
                }
            };
            let (what, inner) = match (&expect.at, &expect.header) {
                (Some(at), _) => of_body(at),
                (None, Some(name)) => (format!("the header {name}"), false),
                // The requests themselves are what is counted or timed.
                (None, None) => {
                    let whole = place.trim_start_matches("in ").to_owned();
                    return Looked {
                        place: String::new(),
                        what: whole,
                        several,
                    };
                }
            };
            let what = match several && !inner {
                true => of_each(&what),
                false => what,
            };
            Looked {
                place,
                what,
                several: several || inner,
            }
        }
        Some(Channel::Exit) => Looked {
            place: String::new(),
            what: format!("the exit code {of_launch}"),
            several: false,
        },
        Some(Channel::Output) => {
            let stream = match expect.stream {
                Some(Stream::Stdout) => "standard output",
                Some(Stream::Stderr) => "standard error",
                Some(Stream::Both) => "standard output and error",
                Some(Stream::Screen) => "screen",
                None => "output",
            };
            of_text(expect, format!("the {stream} {of_launch}"), false)
        }
        Some(Channel::Files) => {
            let path = expect.path.as_deref().unwrap_or_default();
            let several = path.contains('*');
            let file = match (several, expect.changed.is_some()) {
                (_, true) => path.to_owned(),
                (true, false) => format!("the files {path}"),
                (false, false) => format!("the file {path}"),
            };
            of_text(expect, file, several)
        }
    }
}

/// A text, or what a path selects in it when it is read as JSON.
fn of_text(expect: &Expect, text: String, several: bool) -> Looked {
    match &expect.at {
        None => Looked {
            place: String::new(),
            what: text,
            several,
        },
        Some(at) => Looked {
            place: match expect.lines {
                true => format!("in {text}, read as one JSON value a line"),
                false => format!("in {text}, read as JSON"),
            },
            what: format!("the values at {at}"),
            several: several || selects_several(at),
        },
    }
}

/// What a path into the body of a request selects, and whether that can be more than one thing.
fn of_body(at: &str) -> (String, bool) {
    let known = match at {
        "$.messages[?@.role == 'tool'].content" => "the results of tools",
        "$.messages[?@.role == 'user'].content" => "the texts of the user",
        "$.messages[?@.role == 'assistant'].content" => "the texts of the model",
        "$.messages[*].content" => "the texts of the messages",
        "$.messages[*]" => "the messages",
        "$.messages[1:].content" => "the texts of the messages after the system message",
        "$.messages[0].content" => return ("the text of the system message".to_owned(), false),
        "$.messages[-1].content" => return ("the text of the last message".to_owned(), false),
        "$.tools[*].function.name" => "the names of the tools that are offered",
        "$.model" => return ("the name of the model".to_owned(), false),
        _ => {
            let call = at
                .strip_prefix("$.messages[?@.tool_call_id == '")
                .and_then(|rest| rest.strip_suffix("'].content"));
            let number = at
                .strip_prefix("$.messages[")
                .and_then(|rest| rest.strip_suffix("].content"))
                .and_then(|number| number.parse::<usize>().ok());
            return match (call, number) {
                (Some(call), _) => (format!("the result of the call {call:?}"), false),
                (_, Some(n)) => (format!("the text of message {}", n + 1), false),
                _ => (format!("the values at {at}"), selects_several(at)),
            };
        }
    };
    (known.to_owned(), true)
}

/// What is one in each request, as one speaks of several requests.
fn of_each(what: &str) -> String {
    for (one, several) in [
        ("the header ", "the headers "),
        ("the name ", "the names "),
        ("the result ", "the results "),
        ("the text ", "the texts "),
    ] {
        if let Some(rest) = what.strip_prefix(one) {
            return format!("{several}{rest}");
        }
    }
    what.to_owned()
}

fn selects_several(at: &str) -> bool {
    at.contains(['*', '?', ':', ',']) || at.contains("..")
}

fn quoted(texts: &Texts, word: &str) -> String {
    let texts: Vec<String> = texts
        .as_slice()
        .iter()
        .map(|text| format!("{text:?}"))
        .collect();
    texts.join(&format!(" {word} "))
}

/// `2 to 5`, `at least 2`, `at most 5`
fn span(range: CountRange) -> String {
    match (range.min, range.max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "any number".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(assertion: &str, expected: &str) {
        let expect: Expect = toml::from_str(assertion).expect("an assertion");
        assert_eq!(sentence(&expect), expected, "{assertion}");
    }

    #[test]
    fn requests_are_told_by_what_a_model_is_told() {
        check(
            "channel = \"requests\"\nat = \"$.messages[?@.role == 'tool'].content\"\nlacks = \"{nonce:secret}\"",
            "In the requests to the model, none of the results of tools may contain \"{nonce:secret}\".",
        );
        check(
            "channel = \"requests\"\nrequest = \"last\"\nat = \"$.messages[?@.tool_call_id == 'other'].content\"\nequals = \"denied\"",
            "In the last request to the model that offers tools, the result of the call \"other\" must be exactly \"denied\".",
        );
        check(
            "channel = \"requests\"\nlaunch = 2\nrequest = 3\nat = \"$.messages[1].content\"\nhas = [\"a\", \"b\"]\nlacks = [\"c\", \"d\"]",
            "In request 3 of launch 2 to the model that offers tools, the text of message 2 must contain \"a\" and \"b\", \
             and the text of message 2 must not contain \"c\" or \"d\".",
        );
        check(
            "channel = \"requests\"\nat = \"$.messages[*].content\"\nhas = [\"a\", \"b\"]",
            "In the requests to the model, one of the texts of the messages must contain \"a\", and one of the texts of \
             the messages must contain \"b\".",
        );
        check(
            "channel = \"requests\"\nat = \"$.model\"\nequals = \"m\"",
            "In the requests to the model, one of the names of the model must be exactly \"m\".",
        );
        check(
            "channel = \"requests\"\nheader = \"x-a\"\nlacks = \"k\"",
            "In the requests to the model, none of the headers x-a may contain \"k\".",
        );
        check(
            "channel = \"requests\"\ncount = 2",
            "There must be exactly 2 of the requests to the model.",
        );
        check(
            "channel = \"requests\"\nrequest = 2\nafter_ms = { min = 900 }",
            "Request 2 to the model that offers tools must come at least 900 milliseconds after the one before it.",
        );
        check(
            "channel = \"requests\"\nrequest = \"last\"\nat = \"$.messages[*].content\"\norder = [{ has = \"a\" }, { has = \"b\" }]",
            "In the last request to the model that offers tools, among the texts of the messages must come, in this order, one that \
             has \"a\", then one that has \"b\".",
        );
    }

    #[test]
    fn files_exits_and_outputs_are_told_by_name() {
        check(
            "channel = \"exit\"\nequals = 0",
            "The exit code of the last launch must be exactly 0.",
        );
        check(
            "channel = \"exit\"\nlaunch = 1\none_of = [2, 3, 130]",
            "The exit code of launch 1 must be 2, 3 or 130.",
        );
        check(
            "channel = \"files\"\npath = \"a.txt\"\nexists = false",
            "The file a.txt must not be there.",
        );
        check(
            "channel = \"files\"\npath = \"{workspace}\"\nchanged = []",
            "Below {workspace} nothing may be new, gone or changed.",
        );
        check(
            "channel = \"files\"\npath = \"a/*.txt\"\nhas = \"x\"",
            "One of the files a/*.txt must contain \"x\".",
        );
        check(
            "channel = \"output\"\nat = \"$.usage.requests\"\nequals = 3",
            "In the output of the last launch, read as JSON, the values at $.usage.requests must be exactly 3.",
        );
        check(
            "[[any]]\nchannel = \"exit\"\nequals = 0\n[[any]]\nchannel = \"output\"\nstream = \"stderr\"\nmatches = \"x\"",
            "One of these must hold: (the exit code of the last launch must be exactly 0) or (the standard error of the \
             last launch must match /x/).",
        );
    }
}
