//! Operators of the variable *erroneous parameter* outside of tool calls: a wrong value of an option of the evaluation
//! API, of a setting, or of a flag, in the place of the wrong value that the seed gives.

use serde::Deserialize;
use serde_json::Value;

use super::case_text::CaseText;
use super::follow::{Follow, Scope};
use super::scenario::assertion_texts;
use super::swap::{Swap, says};
use super::ways;
use crate::domain::case::{Case, Entry};

/// A wrong value, as `pipeline/expand.toml` names it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// What is wrong with it: `zero`, `negative`, `text`.
    pub label: String,
    pub place: Place,
    /// `max_turns` for an option or a setting, `--max-turns` for a flag.
    pub name: String,
    pub value: Value,
    /// One sentence: why the value matters.
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    Option,
    Setting,
    Flag,
}

/// Where the seed gives its wrong value.
#[derive(Debug, Clone, PartialEq)]
pub enum Seat {
    /// Launch and request, counted from 0.
    Option { launch: usize, request: usize },
    /// The file in the fixture.
    Setting { file: String },
    /// Launch and argument, counted from 0; the flag's name stands before its value.
    Flag { launch: usize, arg: usize },
}

/// A wrong value that an assertion is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Mistake {
    pub seat: Seat,
    pub name: String,
    pub value: Value,
}

/// The first wrong value that the assertions name.
pub fn mistake(case: &Case) -> Option<Mistake> {
    let texts = assertion_texts(case);
    let named = |word: &str| texts.iter().any(|text| says(text, word));
    for (launch_idx, launch) in case.launches.iter().enumerate() {
        for (request_idx, request) in launch.requests.iter().enumerate() {
            let options = request.get("options").and_then(Value::as_object);
            for (name, value) in options.into_iter().flatten() {
                if named(&option(name)) {
                    return Some(Mistake {
                        seat: Seat::Option {
                            launch: launch_idx,
                            request: request_idx,
                        },
                        name: name.clone(),
                        value: value.clone(),
                    });
                }
            }
        }
        for (arg_idx, pair) in launch.args.windows(2).enumerate() {
            if pair[0].starts_with("--") && named(&pair[0]) {
                return Some(Mistake {
                    seat: Seat::Flag {
                        launch: launch_idx,
                        arg: arg_idx,
                    },
                    name: pair[0].clone(),
                    value: pair[1].clone().into(),
                });
            }
        }
    }
    for (file, settings) in ways::settings_of(case) {
        if let Some((name, value)) = settings.iter().find(|(name, _)| named(name)) {
            return Some(Mistake {
                seat: Seat::Setting {
                    file: file.to_owned(),
                },
                name: name.clone(),
                value: value.clone(),
            });
        }
    }
    None
}

impl Mistake {
    /// Whether the other value can stand in its place.
    pub fn takes(&self, named: &Named) -> bool {
        let place = match self.seat {
            Seat::Option { .. } => Place::Option,
            Seat::Setting { .. } => Place::Setting,
            Seat::Flag { .. } => Place::Flag,
        };
        place == named.place && (&self.name, &self.value) != (&named.name, &named.value)
    }
}

/// Makes the other mistake, and lets the assertions name it.
pub fn apply(mistake: &Mistake, named: &Named, case: &Case, text: &mut CaseText) -> Follow {
    match &mistake.seat {
        Seat::Option { launch, request } => {
            text.remove_option(*launch, *request, &mistake.name);
            text.set_option(*launch, *request, &named.name, &named.value);
        }
        Seat::Flag { launch, arg } => {
            let mut args = case.launches[*launch].args.clone();
            args[*arg] = named.name.clone();
            args[*arg + 1] = plain(&named.value);
            text.set_args(*launch, &args);
        }
        Seat::Setting { file } => {
            let mut settings = ways::settings_of(case)
                .into_iter()
                .find_map(|(path, settings)| (path == file).then_some(settings))
                .unwrap_or_default();
            settings.shift_remove(&mistake.name);
            settings.insert(named.name.clone(), named.value.clone());
            text.set_entry(file, &Entry::Text(Value::from(settings).to_string()));
        }
    }
    let spoken = |name: &str| match mistake.seat {
        Seat::Option { .. } => option(name),
        _ => name.to_owned(),
    };
    let mut quotes = Vec::new();
    let (old, new) = (plain(&mistake.value), plain(&named.value));
    if old != new {
        quotes.push(Swap::new(old, new));
    }
    if mistake.name != named.name {
        quotes.push(Swap::new(spoken(&mistake.name), spoken(&named.name)));
    }
    let follow = Follow {
        quotes,
        beside: Some(spoken(&mistake.name)),
        renamed: None,
        scope: Scope::Everywhere,
    };
    text.follow(&follow);
    follow
}

/// How errors name an option.
pub fn option(name: &str) -> String {
    format!("options.{name}")
}

/// A text without quotes, everything else as JSON.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or(value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::case::CaseId;

    fn case(body: &str) -> Case {
        let text = format!(
            "title = \"t\"\npurpose = \"p\"\nclause = \"a.b.c\"\ncategory = \"headless\"\nscenario = \"ordinary\"\n{body}\n"
        );
        Case::parse(CaseId::new("headless/x"), Path::new("x.toml"), &text)
            .unwrap_or_else(|findings| panic!("{findings:?}\n{text}"))
    }

    fn made(body: &str, place: &str, name: &str, value: &str) -> String {
        let seed = case(body);
        let named: Named = toml::from_str(&format!(
            "label = \"l\"\nplace = \"{place}\"\nname = \"{name}\"\nvalue = {value}\nwhy = \"w\""
        ))
        .expect("parses");
        let mistake = mistake(&seed).expect("has a mistake");
        assert!(mistake.takes(&named));
        let mut text = CaseText::new(&seed.text).expect("parses");
        apply(&mistake, &named, &seed, &mut text);
        text.finish(&[])
    }

    #[test]
    fn the_wrong_value_moves_and_the_assertion_follows() {
        let api = "[[launch]]\nroute = \"api\"\nrequests = [{ op = \"run\", options = { max_turns = \"5\" } }]\n\
                   [[expect]]\nchannel = \"output\"\nhas = \"options.max_turns\"";
        let text = made(api, "option", "fork", "\"yes\"");
        assert!(text.contains("options = { fork = \"yes\" }"), "{text}");
        assert!(text.contains("has     = \"options.fork\""), "{text}");
        let flag = "[[launch]]\nroute = \"headless\"\nprompt = \"p\"\nargs = [\"--max-turns\", \"0\"]\n\
                    [[expect]]\nchannel = \"output\"\nstream = \"stderr\"\nhas = [\"--max-turns\", \"--max-turns: 0\"]";
        let text = made(flag, "flag", "--timeout-s", "\"inf\"");
        assert!(text.contains("[\"--timeout-s\", \"inf\"]"), "{text}");
        assert!(
            text.contains("[\"--timeout-s\", \"--timeout-s: inf\"]"),
            "{text}"
        );
        let setting = "[fixture]\n\".harness/settings.json\" = '{\"model\": \"m\", \"stream\": 1}'\n\
                       [[launch]]\nroute = \"headless\"\nprompt = \"p\"\n\
                       [[expect]]\nchannel = \"output\"\nstream = \"stderr\"\nhas = \"stream\"";
        let text = made(setting, "setting", "max_turns", "true");
        assert!(
            text.contains("'{\"model\":\"m\",\"max_turns\":true}'"),
            "{text}"
        );
        assert!(text.contains("has     = \"max_turns\""), "{text}");
    }
}
