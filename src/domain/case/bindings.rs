//! Values that are drawn or known only at run time, and the placeholders that stand for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the placeholders of one run stand for: `nonce:secret` → its value, `workspace` → its path inside,
/// `bound:session` → what a launch or an assertion caught.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bindings(pub BTreeMap<String, String>);

impl Bindings {
    /// Names of the nonces that a case mentions, in order.
    pub fn nonce_names(case_text: &str) -> Vec<String> {
        names(case_text, "nonce:")
    }

    /// Names of the caught values that a text mentions, in order.
    pub fn bound_names(text: &str) -> Vec<String> {
        names(text, "bound:")
    }

    /// Whether a nonce or a caught value may be called so.
    pub fn is_name(name: &str) -> bool {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !name.is_empty() && name.chars().all(plain)
    }

    pub(super) fn is_known(name: &str) -> bool {
        match name.split_once(':') {
            Some(("byte", hex)) => hex.len() == 2 && u8::from_str_radix(hex, 16).is_ok(),
            Some((_, drawn)) => Self::is_name(drawn),
            None => ["workspace", "outside", "home", "state"].contains(&name),
        }
    }

    /// The text with each placeholder filled by a letter, to check its form before any value is known.
    pub fn filled(text: &str) -> String {
        let mut out = text.to_owned();
        for (_, name) in placeholders(text) {
            out = out.replace(&format!("{{{name}}}"), "x");
        }
        out
    }

    /// Replaces every placeholder that has a value; other braces stay.
    pub fn expand(&self, text: &str) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        let mut out = text.to_owned();
        for (name, value) in &self.0 {
            out = out.replace(&format!("{{{name}}}"), value);
        }
        out
    }

    /// The same in every string of a JSON value, keys included.
    pub fn expand_json(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.expand(text)),
            Value::Array(items) => items.iter().map(|item| self.expand_json(item)).collect(),
            Value::Object(map) => map
                .iter()
                .map(|(key, item)| (self.expand(key), self.expand_json(item)))
                .collect(),
            other => other.clone(),
        }
    }

    /// The reverse, for showing evidence: values become their names again.
    pub fn redact(&self, text: &str) -> String {
        let mut out = text.to_owned();
        let telling = |(name, value): &(&String, &String)| {
            name.starts_with("nonce:") || (name.starts_with("bound:") && value.len() >= 8)
        };
        for (name, value) in self.0.iter().filter(telling) {
            out = out.replace(value.as_str(), &format!("{{{name}}}"));
        }
        out
    }
}

fn names(text: &str, prefix: &str) -> Vec<String> {
    let mut names: Vec<String> = placeholders(text)
        .into_iter()
        .filter_map(|(_, name)| name.strip_prefix(prefix))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The names inside `{…}` that look like placeholders, with their offsets.
pub(super) fn placeholders(text: &str) -> Vec<(usize, &str)> {
    text.match_indices('{')
        .filter_map(|(start, _)| {
            let rest = &text[start + 1..];
            let end = rest.find('}')?;
            let name = &rest[..end];
            let drawn = ["nonce:", "bound:", "byte:"]
                .iter()
                .any(|kind| name.starts_with(kind));
            let looks = drawn || ["workspace", "outside", "home", "state", "nonce"].contains(&name);
            looks.then_some((start, name))
        })
        .collect()
}
