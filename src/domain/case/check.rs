//! What can be known wrong of a case from its file alone.

use serde::Serialize;

use super::bindings::placeholders;
use super::fixture::conflicts;
use super::{Bindings, Case, Entry, Places, check_fixture_path};
use crate::domain::place::{Finding, Place};

/// Places that a repository may fill.
const PLACES: [&str; 3] = ["{workspace}", "{outside}", "{home}"];

impl Case {
    /// Whether a launch can begin there: a place, or a folder that the fixture makes.
    fn makes_folder(&self, cwd: &str) -> bool {
        let below = cwd
            .strip_prefix("{workspace}/")
            .unwrap_or(cwd)
            .trim_end_matches('/');
        let inside = format!("{below}/");
        PLACES.contains(&cwd)
            || self.fixture.iter().any(|(path, entry)| {
                let path = path.strip_prefix("{workspace}/").unwrap_or(path);
                let folder = matches!(entry, Entry::Made(made) if made.dir || made.link.is_some() || made.git.is_some());
                path.starts_with(&inside) || (folder && path == below)
            })
    }

    pub(super) fn check(&self, places: &Places<'_>, findings: &mut Vec<Finding>) {
        if self.title.trim().is_empty() || self.purpose.trim().is_empty() {
            findings.push(Finding::new(
                places.top(),
                "title and purpose say something",
            ));
        }
        if self.launches.is_empty() {
            findings.push(Finding::new(
                places.top(),
                "a case has at least one [[launch]]",
            ));
        }
        if self.expects.is_empty() {
            findings.push(Finding::new(
                places.top(),
                "a case has at least one [[expect]]",
            ));
        }
        for (path, entry) in &self.fixture {
            let place = || places.of_entry("fixture", path);
            let is_git = matches!(entry, Entry::Made(made) if made.git.is_some());
            if !(is_git && PLACES.contains(&path.as_str()))
                && let Err(message) = check_fixture_path(path)
            {
                findings.push(Finding::new(place(), message));
            }
            if let Entry::Made(made) = entry
                && let Err(message) = made.check()
            {
                findings.push(Finding::new(place(), message));
            }
        }
        for (path, message) in conflicts(&self.fixture) {
            findings.push(Finding::new(places.of_entry("fixture", path), message));
        }
        for (launch_idx, launch) in self.launches.iter().enumerate() {
            if let Some(cwd) = launch.cwd.as_deref().filter(|cwd| !self.makes_folder(cwd)) {
                findings.push(Finding::new(
                    places.nth("launch", launch_idx),
                    format!("cwd {cwd:?} is no place and no folder of the fixture"),
                ));
            }
            for message in launch.faults() {
                findings.push(Finding::new(places.nth("launch", launch_idx), message));
            }
            for message in self.alongside_faults(launch_idx) {
                findings.push(Finding::new(places.nth("launch", launch_idx), message));
            }
        }
        self.check_bound(places, findings);
        let drawn = json_nonces(&(&self.fixture, &self.launches));
        for (expect_idx, expect) in self.expects.iter().enumerate() {
            for message in expect.faults(&self.launches) {
                findings.push(Finding::new(places.nth("expect", expect_idx), message));
            }
            for name in json_nonces(expect) {
                if !drawn.contains(&name) {
                    findings.push(Finding::new(
                        places.nth("expect", expect_idx),
                        format!("{{nonce:{name}}} occurs neither in the fixture nor in a launch"),
                    ));
                }
            }
        }
        for (offset, name) in placeholders(&self.text) {
            if !Bindings::is_known(name) {
                findings.push(Finding::new(
                    Place::of_offset(&self.file, &self.text, offset),
                    format!(
                        "{{{name}}} is no placeholder: use {{nonce:NAME}}, {{bound:NAME}}, {{workspace}}, {{outside}}, {{home}}, {{state}} or {{byte:e9}}"
                    ),
                ));
            }
        }
    }

    fn alongside_faults(&self, launch_idx: usize) -> Vec<String> {
        let launch = &self.launches[launch_idx];
        let Some(alongside) = &launch.alongside else {
            return Vec::new();
        };
        if alongside.launch == 0 || alongside.launch > launch_idx {
            return vec!["`alongside` names an earlier launch by its number, from 1".to_owned()];
        }
        let other = &self.launches[alongside.launch - 1];
        let mut faults = Vec::new();
        if let Err(message) = alongside.once.check(other) {
            faults.push(format!("alongside, once: {message}"));
        }
        if let Some(until) = &alongside.until
            && let Err(message) = until.check(launch)
        {
            faults.push(format!("alongside, until: {message}"));
        }
        faults
    }

    /// `{bound:NAME}` stands behind what binds it.
    fn check_bound(&self, places: &Places<'_>, findings: &mut Vec<Finding>) {
        let mut unbound = |place: Place, value: &dyn Fn() -> String, bound: &[&String]| {
            for name in Bindings::bound_names(&value()) {
                if !bound.contains(&&name) {
                    let message = format!(
                        "{{bound:{name}}} is not bound yet: give an earlier launch or assertion `bind`"
                    );
                    findings.push(Finding::new(place.clone(), message));
                }
            }
        };
        unbound(
            places.of_entry("fixture", "fixture"),
            &|| json(&self.fixture),
            &[],
        );
        for (idx, launch) in self.launches.iter().enumerate() {
            // One that still runs has caught nothing yet.
            let runs = |earlier: usize| {
                let alongside = launch.alongside.as_ref();
                alongside.is_some_and(|other| other.launch <= earlier + 1)
            };
            let earlier = self.launches[..idx].iter().enumerate();
            let bound: Vec<&String> = earlier
                .filter(|(earlier, _)| !runs(*earlier))
                .flat_map(|(_, launch)| launch.bind.keys())
                .collect();
            unbound(places.nth("launch", idx), &|| json(launch), &bound);
        }
        let mut bound: Vec<&String> = self
            .launches
            .iter()
            .flat_map(|one| one.bind.keys())
            .collect();
        for (idx, expect) in self.expects.iter().enumerate() {
            unbound(places.nth("expect", idx), &|| json(expect), &bound);
            bound.extend(&expect.bind);
        }
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a case is plain data with string keys")
}

/// Names of the nonces in any string of a value.
fn json_nonces(value: &impl Serialize) -> Vec<String> {
    Bindings::nonce_names(&json(value))
}
