//! Whether an adapter covers what a case does: category, routes, flags, permission mode, prompts, variables and files.

use serde_json::Value;

use crate::domain::adapter::Adapter;
use crate::domain::case::{Case, Entry, Launch, Made};

/// Tools that no permission mode forbids.
const READING: [&str; 6] = ["read", "list", "glob", "grep", "todo", "skill"];
/// Flags whose value is a permission rule.
const RULES: [&str; 2] = ["--allow", "--deny"];
const MODE: &str = "--permission-mode";
/// The mode where neither a flag nor settings name one.
const DEFAULT_MODE: &str = "ask";
const SETTINGS: &str = ".harness/settings.json";

/// The error says what the adapter cannot express.
pub(super) fn covered(case: &Case, adapter: &Adapter) -> Result<(), String> {
    let clause = case.clause.to_string();
    for (wanted, why) in &adapter.leave_out {
        let is_it = |id: &str| match wanted.strip_suffix('*') {
            Some(beginning) => id.starts_with(beginning),
            None => id == wanted,
        };
        if is_it(case.id.as_str()) || is_it(&clause) {
            return Err(why.clone());
        }
    }
    if let Some(category) = case.category()
        && !adapter.categories.contains(&category)
    {
        return Err(format!("category {category}"));
    }
    let mut settled_mode = None;
    for (path, entry) in &case.fixture {
        if !is_of_contract(path) {
            continue;
        }
        if !reads(adapter, path) {
            return Err(format!("it does not read {path}"));
        }
        if path == SETTINGS {
            settled_mode = settings(entry, adapter)?;
        }
    }
    for launch in &case.launches {
        if !adapter.routes.contains(&launch.route) {
            return Err("it is not entered by this route".to_owned());
        }
        for name in launch
            .env
            .keys()
            .filter(|name| name.starts_with("HARNESS_"))
        {
            if !adapter.env.contains(name) {
                return Err(format!("it does not know {name}"));
            }
        }
        if !launch.bind.is_empty() {
            return Err("it catches a value by words of the contract".to_owned());
        }
        if launch.prompt.as_deref().is_some_and(is_command) {
            return Err("its prompt is a command of the contract".to_owned());
        }
        let mode = flags(&launch.args, adapter)?
            .or(settled_mode.clone())
            .unwrap_or_else(|| DEFAULT_MODE.to_owned());
        let modes = adapter.flags.get(MODE).map_or(&[][..], Vec::as_slice);
        if !modes.contains(&mode) && !only_reads(launch) {
            return Err(format!("it has no permission mode like {mode}"));
        }
    }
    Ok(())
}

/// Whether this path of a fixture or an assertion has a meaning in the contract alone.
pub(super) fn is_of_contract(path: &str) -> bool {
    let path = path.strip_prefix("{workspace}/").unwrap_or(path);
    let last = path.rsplit('/').next().unwrap_or(path);
    path.starts_with("{state}")
        || path.split('/').any(|part| part == ".harness")
        || last == ".harnessignore"
        || last == "AGENTS.md"
}

fn reads(adapter: &Adapter, path: &str) -> bool {
    let in_folders = !path.starts_with('{') && path.ends_with("/AGENTS.md");
    let listed = |wanted: &str| adapter.files.iter().any(|file| file == wanted);
    listed(path) || (in_folders && listed("AGENTS.md"))
}

/// Checks every key and rule of a settings file; returns the permission mode that it names.
fn settings(entry: &Entry, adapter: &Adapter) -> Result<Option<String>, String> {
    let text = match entry {
        Entry::Text(text) => text,
        Entry::Made(Made {
            text: Some(text),
            times: None,
            ..
        }) => text,
        Entry::Made(_) => return Err("its settings are no plain file".to_owned()),
    };
    let Ok(Value::Object(settings)) = serde_json::from_str(text) else {
        return Err("its settings are broken in the contract's own way".to_owned());
    };
    let known = |key: &str| match adapter.settings.iter().any(|name| name == key) {
        true => Ok(()),
        false => Err(format!("it has no setting like {key}")),
    };
    let mut mode = None;
    for (key, value) in &settings {
        match (key.as_str(), value) {
            ("permissions", Value::Object(lists)) => {
                for (list, rules) in lists {
                    known(&format!("permissions.{list}"))?;
                    for rule in rules.as_array().into_iter().flatten() {
                        self::rule(rule.as_str().unwrap_or_default(), adapter)?;
                    }
                }
            }
            ("permission_mode", Value::String(named)) => {
                known(key)?;
                mode = Some(named.clone());
            }
            _ => known(key)?,
        }
    }
    Ok(mode)
}

fn rule(rule: &str, adapter: &Adapter) -> Result<(), String> {
    let tool = rule.split('(').next().unwrap_or_default();
    match adapter.tools.contains_key(tool) {
        true => Ok(()),
        false => Err(format!("it has no tool for the rule {rule}")),
    }
}

/// Checks every flag; returns the permission mode that they name.
fn flags(args: &[String], adapter: &Adapter) -> Result<Option<String>, String> {
    let mut mode = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let (flag, joined) = match arg.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value)),
            _ => (arg.as_str(), None),
        };
        let values = adapter
            .flags
            .get(flag)
            .ok_or_else(|| format!("it has no flag like {flag}"))?;
        if values.is_empty() {
            continue;
        }
        let value = joined
            .or_else(|| args.next().map(String::as_str))
            .unwrap_or_default();
        if !values.iter().any(|known| known == "*" || known == value) {
            return Err(format!("it has no flag like {flag} {value}"));
        }
        if RULES.contains(&flag) {
            rule(value, adapter)?;
        }
        if flag == MODE {
            mode = Some(value.to_owned());
        }
    }
    Ok(mode)
}

fn only_reads(launch: &Launch) -> bool {
    let mut calls = launch.script.iter().flat_map(|reply| reply.all_calls());
    calls.all(|call| READING.contains(&call.call.as_str()))
}

/// `/compact`, `!ls`, `look at @file`.
fn is_command(prompt: &str) -> bool {
    let prompt = prompt.trim_start();
    prompt.starts_with(['/', '!']) || prompt.split_whitespace().any(|word| word.starts_with('@'))
}
