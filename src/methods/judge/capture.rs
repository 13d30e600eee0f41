//! Values that are caught from what a launch shows, for later launches and assertions.

use super::values::{Looked, as_text, compiled_path, compiled_pattern, parse_json};
use super::{text_of, usual_stream};
use crate::domain::case::{Bindings, Capture};
use crate::domain::evidence::LaunchEvidence;

/// The value, when the output has it. One that is empty would stand everywhere, and is none.
pub fn caught(capture: &Capture, launch: &LaunchEvidence, bindings: &Bindings) -> Option<String> {
    let text = text_of(launch, capture.stream.unwrap_or(usual_stream(launch)));
    let value = match (&capture.at, &capture.matches) {
        (Some(at), _) => {
            let (json, _) = parse_json(&text, capture.lines).ok()?;
            let path = compiled_path(at, bindings).ok()?;
            as_text(path.query(&json).first()?)
        }
        (None, Some(one)) => caught_by(one, &text, bindings)?,
        (None, None) => return None,
    };
    Some(value).filter(|value| !value.is_empty())
}

/// What the first group of a regular expression caught, or all that it matched when it has none.
pub(super) fn caught_by(one: &str, text: &str, bindings: &Bindings) -> Option<String> {
    let found = compiled_pattern(one, bindings).ok()?.captures(text)?;
    let group = found.get(1).or_else(|| found.get(0))?;
    Some(group.as_str().to_owned())
}

/// What an assertion with `bind` binds: of the first value that has one.
pub(super) fn bound(
    matches: Option<&str>,
    looked: &[Looked],
    bindings: &Bindings,
) -> Option<String> {
    let mut values = looked.iter().map(|one| as_text(&one.value));
    let value = match matches {
        Some(one) => values.find_map(|text| caught_by(one, &text, bindings)),
        None => values.next(),
    };
    value.filter(|value| !value.is_empty())
}
