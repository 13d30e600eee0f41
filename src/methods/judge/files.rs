//! Assertions on files.

use regex::Regex;

use super::values::{Looked, Seen, parsed, short, test_values};
use crate::domain::case::Bindings;
use crate::domain::evidence::{Evidence, FileState};
use crate::domain::expect::Expect;

pub(super) fn files(expect: &Expect, evidence: &Evidence) -> Result<(), Seen> {
    let wanted = evidence
        .bindings
        .expand(expect.path.as_deref().expect("a checked case names it"));
    // The keys keep the names of the places, so those come back after the expansion of nonces.
    let wanted = rename_places(&wanted, &evidence.bindings);
    let found: Vec<(&String, &FileState)> = evidence
        .files_after
        .iter()
        .filter(|(path, _)| path_matches(&wanted, path))
        .collect();
    let miss = |saw: String| Seen {
        saw,
        place: format!("files, {wanted}"),
    };
    if let Some(exists) = expect.exists {
        match (exists, found.first()) {
            (true, None) => return Err(miss("no such file".to_owned())),
            (false, Some((path, state))) => {
                return Err(miss(format!(
                    "{path}: {:?} of {} bytes",
                    state.kind, state.size
                )));
            }
            _ => {}
        }
    }
    if let Some(unchanged) = expect.unchanged {
        let before: Vec<(&String, &FileState)> = evidence
            .files_before
            .iter()
            .filter(|(path, _)| path_matches(&wanted, path))
            .collect();
        let same = before == found;
        if before.is_empty() && unchanged {
            return Err(miss("it was never there".to_owned()));
        }
        if same != unchanged {
            let saw = match found.first() {
                None => "it is gone".to_owned(),
                Some((path, state)) if same => format!("{path}: as before, {} bytes", state.size),
                Some((path, state)) => format!(
                    "{path}: {:?} of {} bytes{}",
                    state.kind,
                    state.size,
                    state
                        .text
                        .as_deref()
                        .map_or(String::new(), |text| format!(": {}", short(text)))
                ),
            };
            return Err(miss(saw));
        }
    }
    if let Some(mode) = &expect.mode {
        let bits = u32::from_str_radix(mode, 8).unwrap_or(u32::MAX);
        if !found.iter().any(|(_, state)| state.mode == bits) {
            let seen = found
                .first()
                .map_or("no such file".to_owned(), |(_, state)| {
                    format!("mode {:o}", state.mode)
                });
            return Err(miss(seen));
        }
    }
    let content = expect.has.is_some()
        || expect.lacks.is_some()
        || expect.matches.is_some()
        || expect.lacks_match.is_some()
        || expect.equals.is_some()
        || expect.not_equals.is_some()
        || expect.count.is_some();
    if !content {
        return Ok(());
    }
    let mut looked = Vec::new();
    for (path, state) in &found {
        let place = format!("files, {path}");
        match (&state.text, &state.target) {
            (Some(text), _) => looked.extend(parsed(expect, &evidence.bindings, text, &place)?),
            (None, Some(target)) => looked.push(Looked {
                value: target.as_str().into(),
                place,
            }),
            // Bytes that are no text, or too many: nothing that an assertion on text could match.
            (None, None) => {}
        }
    }
    let none = || match found.is_empty() {
        true => "no such file".to_owned(),
        false => "no text at that path".to_owned(),
    };
    test_values(
        expect,
        &evidence.bindings,
        &looked,
        &format!("files, {wanted}"),
        none,
    )
}

fn rename_places(path: &str, bindings: &Bindings) -> String {
    // Longest first: the state folder lies inside the home folder.
    let mut places: Vec<(&str, &String)> = ["workspace", "outside", "home", "state"]
        .into_iter()
        .filter_map(|name| Some((name, bindings.0.get(name)?)))
        .collect();
    places.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    for (name, value) in places {
        if let Some(rest) = path.strip_prefix(value.as_str()) {
            return match name {
                "workspace" => rest.trim_start_matches('/').to_owned(),
                _ => format!("{{{name}}}{rest}"),
            };
        }
    }
    path.to_owned()
}

/// `*` stands for any characters but `/`.
fn path_matches(wanted: &str, path: &str) -> bool {
    if !wanted.contains('*') {
        return wanted == path;
    }
    let pattern: Vec<String> = wanted.split('*').map(regex::escape).collect();
    Regex::new(&format!("^{}$", pattern.join("[^/]*")))
        .expect("escaped text is a valid pattern")
        .is_match(path)
}
