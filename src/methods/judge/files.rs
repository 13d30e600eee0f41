//! Assertions on files.

use std::collections::BTreeSet;

use regex::Regex;

use super::order::in_order;
use super::values::{Held, Looked, Seen, parsed, short, test_values};
use crate::domain::case::Bindings;
use crate::domain::evidence::{Evidence, FileKind, FileState};
use crate::domain::expect::Expect;

pub(super) fn files(
    expect: &Expect,
    evidence: &Evidence,
    bindings: &Bindings,
) -> Result<Held, Seen> {
    let wanted = expect.path.as_deref().expect("a checked case names it");
    if let Some(paths) = &expect.changed {
        return changed(wanted, paths, evidence, bindings);
    }
    let wanted = bindings.expand(wanted);
    // The keys keep the names of the places, so those come back after the expansion of nonces.
    let wanted = rename_places(&wanted, bindings);
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
        || expect.count.is_some()
        || expect.bind.is_some()
        || !expect.order.is_empty();
    if !content {
        return Ok(Held {
            looked: Vec::new(),
            place: format!("files, {wanted}"),
        });
    }
    let mut looked = Vec::new();
    for (path, state) in &found {
        let place = format!("files, {path}");
        match (&state.text, &state.target) {
            (Some(text), _) => looked.extend(parsed(expect, bindings, text, &place)?),
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
    let searched = format!("files, {wanted}");
    in_order(&expect.order, bindings, &looked, &searched)?;
    test_values(expect, bindings, looked, &searched, none)
}

/// Below the folder exactly the files at these paths changed, whatever else is there.
fn changed(
    folder: &str,
    paths: &[String],
    evidence: &Evidence,
    bindings: &Bindings,
) -> Result<Held, Seen> {
    let folder = rename_places(&bindings.expand(folder), bindings);
    let named = |path: &str| rename_places(&bindings.expand(path), bindings);
    let wanted: Vec<String> = paths.iter().map(|path| named(path)).collect();
    let is_below = |path: &str| match folder.as_str() {
        "" => !path.starts_with('{'),
        folder => path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/')),
    };
    let both = evidence
        .files_before
        .keys()
        .chain(evidence.files_after.keys());
    let changes: BTreeSet<&String> = both
        .filter(|path| is_below(path))
        .filter(|path| evidence.files_before.get(*path) != evidence.files_after.get(*path))
        .collect();
    let place = format!(
        "files, {}",
        if folder.is_empty() {
            "{workspace}"
        } else {
            &folder
        }
    );
    for pattern in &wanted {
        if !changes.iter().any(|path| path_matches(pattern, path)) {
            let saw = match evidence.files_after.get(pattern) {
                Some(state) => format!("as before: {:?} of {} bytes", state.kind, state.size),
                None => "no such file".to_owned(),
            };
            return Err(Seen {
                saw: format!("no change of {pattern}: {saw}"),
                place,
            });
        }
    }
    // A folder that was made or emptied for a file that is expected belongs to it.
    let leads_to = |path: &str| {
        let inside = format!("{path}/");
        let mut expected = changes.iter().filter(|one| one.starts_with(&inside));
        expected.any(|one| wanted.iter().any(|pattern| path_matches(pattern, one)))
    };
    let is_folder = |path: &str| {
        let states = [
            evidence.files_before.get(path),
            evidence.files_after.get(path),
        ];
        states
            .into_iter()
            .flatten()
            .all(|state| state.kind == FileKind::Dir)
    };
    let others: Vec<&str> = changes
        .iter()
        .map(|path| path.as_str())
        .filter(|path| !wanted.iter().any(|pattern| path_matches(pattern, path)))
        .filter(|path| !(is_folder(path) && leads_to(path)))
        .collect();
    match others.first() {
        None => Ok(Held {
            looked: Vec::new(),
            place,
        }),
        Some(first) => {
            let word = match (
                evidence.files_before.get(*first),
                evidence.files_after.get(*first),
            ) {
                (None, _) => "is new",
                (_, None) => "is gone",
                _ => "changed",
            };
            let more = match others.len() {
                1 => String::new(),
                n => format!(", and {} more: {}", n - 1, short(&others[1..].join(", "))),
            };
            Err(Seen {
                saw: format!("{first} {word}{more}"),
                place: format!("files, {first}"),
            })
        }
    }
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
