//! Operators of the variable *erroneous parameter*: the same mistake with another value, or on another parameter.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::case_text::CaseText;
use super::follow::{Follow, Scope};
use super::scenario::{ScriptCall, calls};
use super::signature::{Fault, FaultClass, Kind, Parameter, Signatures};
use super::swap::Swap;
use crate::domain::case::Case;

/// A wrong value, as `pipeline/expand.toml` names it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erroneous {
    pub name: String,
    pub class: FaultClass,
    pub make: Make,
    /// For `value`: what is given.
    #[serde(default)]
    pub value: Value,
    /// For `unknown`: the name of the parameter.
    #[serde(default)]
    pub parameter: String,
    /// One sentence: why the value matters.
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Make {
    /// The value given.
    Value,
    /// One above the greatest allowed.
    Above,
    /// The JSON value `null`.
    Null,
    /// The parameter is left out.
    Absent,
    /// A parameter that the signature does not name.
    Unknown,
}

/// A call with an erroneous argument, and another that makes the same mistake in another way.
#[derive(Debug, Clone)]
pub struct Change {
    pub call: ScriptCall,
    pub arguments: Map<String, Value>,
    /// The parameter that is wrong now.
    pub parameter: String,
    pub erroneous: Erroneous,
    pub follow: Follow,
}

/// All changes of the first erroneous call of the script. The error says why there is none.
///
/// A variant makes a mistake of the same class, which the same clause tells; on another parameter only when both
/// have the same type and bounds, so that the assertion can stay.
pub fn changes(
    signatures: &Signatures,
    values: &[Erroneous],
    seed: &Case,
    controls: &[&Case],
) -> Result<Vec<Change>, String> {
    let faulty = calls(seed).into_iter().find_map(|call| {
        let fault = signatures.fault(&call.tool, call.arguments.as_ref()?)?;
        Some((call, fault))
    });
    let (call, fault) = faulty.ok_or("no call has an erroneous argument")?;
    let parameters = signatures.get(&call.tool).unwrap_or_default();
    let arguments = call.arguments.clone().unwrap_or_default();
    let same_tool: Vec<Map<String, Value>> = std::iter::once(seed)
        .chain(controls.iter().copied())
        .flat_map(calls)
        .filter(|other| other.tool == call.tool)
        .filter_map(|other| other.arguments)
        .collect();
    let mut changes = Vec::new();
    for erroneous in values.iter().filter(|value| value.class == fault.class) {
        let targets: Vec<&str> = if erroneous.make == Make::Unknown {
            vec![erroneous.parameter.as_str()]
        } else {
            parameters
                .iter()
                .filter(|parameter| {
                    parameter.name == fault.parameter || alike(parameters, parameter, &fault)
                })
                .map(|parameter| parameter.name.as_str())
                .collect()
        };
        for target in targets {
            let Some(restored) = restored(parameters, &arguments, &fault, target, &same_tool)
            else {
                continue;
            };
            let Some(wrong) = wrong(parameters, restored, target, erroneous) else {
                continue;
            };
            let now = signatures.fault(&call.tool, &wrong);
            let is_same_mistake = now
                .as_ref()
                .is_some_and(|now| now.class == fault.class && now.parameter == target);
            let is_made = same_tool.contains(&wrong);
            if is_made || !is_same_mistake {
                continue;
            }
            changes.push(Change {
                call: call.clone(),
                follow: follow(
                    &call,
                    &fault,
                    target,
                    now.and_then(|now| now.value).as_ref(),
                ),
                arguments: wrong,
                parameter: target.to_owned(),
                erroneous: erroneous.clone(),
            });
        }
    }
    if changes.is_empty() {
        Err("no other value makes the same mistake".to_owned())
    } else {
        Ok(changes)
    }
}

/// Makes the change in the text of the case.
pub fn apply(change: &Change, text: &mut CaseText) {
    let arguments = Value::Object(change.arguments.clone());
    text.set_call(change.call.at, &change.call.tool, &arguments);
}

fn alike(parameters: &[Parameter], other: &Parameter, fault: &Fault) -> bool {
    match parameters.iter().find(|own| own.name == fault.parameter) {
        Some(own) => own.kind == other.kind && own.kind != Kind::Other,
        None => false,
    }
}

/// The arguments with the old mistake taken back when it moves: an optional parameter goes, a required one gets a
/// value from another call of the tool. None when there is no such value.
fn restored(
    parameters: &[Parameter],
    arguments: &Map<String, Value>,
    fault: &Fault,
    target: &str,
    same_tool: &[Map<String, Value>],
) -> Option<Map<String, Value>> {
    let mut restored = arguments.clone();
    if fault.class == FaultClass::Unknown {
        restored.remove(&fault.parameter);
        return Some(restored);
    }
    if fault.parameter == target {
        return Some(restored);
    }
    let own = parameters.iter().find(|own| own.name == fault.parameter)?;
    if own.required {
        let value = same_tool
            .iter()
            .filter_map(|call| call.get(&own.name))
            .find(|value| Some(*value) != fault.value.as_ref() && !value.is_null())?;
        restored.insert(own.name.clone(), value.clone());
    } else {
        restored.remove(&own.name);
    }
    Some(restored)
}

fn wrong(
    parameters: &[Parameter],
    mut arguments: Map<String, Value>,
    target: &str,
    erroneous: &Erroneous,
) -> Option<Map<String, Value>> {
    let parameter = parameters.iter().find(|parameter| parameter.name == target);
    match erroneous.make {
        Make::Value => {
            parameter?;
            arguments.insert(target.to_owned(), erroneous.value.clone());
        }
        Make::Above => {
            let Kind::Integer {
                most: Some(most), ..
            } = parameter?.kind
            else {
                return None;
            };
            arguments.insert(target.to_owned(), Value::from(most + 1));
        }
        Make::Null => {
            arguments.insert(target.to_owned(), Value::Null);
        }
        Make::Absent => {
            arguments.remove(target);
        }
        Make::Unknown => {
            arguments.insert(target.to_owned(), erroneous.value.clone());
        }
    }
    Some(arguments)
}

/// The assertion quotes the parameter in double quotes, and the value as JSON in the same text.
fn follow(call: &ScriptCall, fault: &Fault, target: &str, value: Option<&Value>) -> Follow {
    let quoted = |name: &str| format!("\"{name}\"");
    let mut quotes = Vec::new();
    // The value goes first, as the name may be the same word.
    if let (Some(old), Some(new)) = (&fault.value, value)
        && old != new
    {
        quotes.push(Swap::new(old.to_string(), new.to_string()));
    }
    if fault.parameter != target {
        quotes.push(Swap::new(quoted(&fault.parameter), quoted(target)));
    }
    Follow {
        quotes,
        beside: Some(quoted(&fault.parameter)),
        renamed: None,
        scope: match &call.id {
            Some(id) => Scope::Call(id.clone()),
            None => Scope::Results,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::case::CaseId;
    use crate::domain::document::{Chapter, Document};

    fn signatures() -> Signatures {
        let clause = |id: &str, syntax: &str| {
            format!(
                "### {id} · ordinary\n**Syntax** {syntax}\n**Meaning** m\n**Behaviour** b\n**Channels** exit\n\n"
            )
        };
        let text = format!(
            "# T\n\n{}{}{}",
            clause(
                "tools.read.format",
                "`read(path, offset?: integer ≥ 1, limit?: integer ≥ 1)`"
            ),
            clause("tools.list.format", "`list(path?, depth?: integer 1–5)`"),
            clause("tools.write.result", "`write(path, content)`"),
        );
        let chapter = Chapter::parse(Path::new("02-tools.md"), &text).expect("parses");
        Signatures::of(&Document {
            chapters: vec![chapter],
        })
    }

    fn values() -> Vec<Erroneous> {
        #[derive(Deserialize)]
        struct File {
            erroneous: Vec<Erroneous>,
        }
        let file: File = toml::from_str(
            r#"
            erroneous = [
              { name = "zero", class = "range", make = "value", value = 0, why = "w" },
              { name = "negative", class = "range", make = "value", value = -1, why = "w" },
              { name = "above", class = "range", make = "above", why = "w" },
              { name = "text", class = "type", make = "value", value = "2", why = "w" },
              { name = "number", class = "type", make = "value", value = 5, why = "w" },
              { name = "null", class = "missing", make = "null", why = "w" },
              { name = "absent", class = "missing", make = "absent", why = "w" },
              { name = "extra", class = "unknown", make = "unknown", parameter = "Path", value = "x", why = "w" },
              { name = "empty", class = "blank", make = "value", value = "", why = "w" },
            ]"#,
        )
        .expect("parses");
        file.erroneous
    }

    fn case(script: &str) -> Case {
        let text = format!(
            "title = \"t\"\npurpose = \"p\"\nclause = \"a.b.c\"\ncategory = \"headless\"\nscenario = \"ordinary\"\n\
             [[launch]]\nroute = \"headless\"\nprompt = \"x\"\nscript = [{script}]\n[[expect]]\nchannel = \"exit\"\nequals = 0\n"
        );
        Case::parse(CaseId::new("headless/x"), Path::new("x.toml"), &text).expect("a case")
    }

    fn changed(script: &str, control: &str) -> Result<Vec<String>, String> {
        let control = case(control);
        let all = changes(&signatures(), &values(), &case(script), &[&control])?;
        Ok(all
            .iter()
            .map(|change| {
                let arguments = Value::Object(change.arguments.clone());
                format!("{} {} {arguments}", change.erroneous.name, change.parameter)
            })
            .collect())
    }

    #[test]
    fn the_same_mistake_is_made_in_other_ways() {
        let control = "{ call = \"write\", with = { path = \"b\", content = \"y\" } }";
        let check = |script: &str, expected: &[&str]| {
            let seen = changed(script, control).unwrap_or_default();
            assert_eq!(seen, expected, "{script}");
        };
        check(
            "{ call = \"read\", with = { path = \"a\", limit = 0 } }",
            &[
                "zero offset {\"path\":\"a\",\"offset\":0}",
                "negative offset {\"path\":\"a\",\"offset\":-1}",
                "negative limit {\"limit\":-1,\"path\":\"a\"}",
            ],
        );
        check(
            "{ call = \"list\", with = { depth = 0 } }, { call = \"list\", with = { depth = 6 } }",
            &["negative depth {\"depth\":-1}"],
        );
        check(
            "{ call = \"list\", with = { depth = 0 } }",
            &["negative depth {\"depth\":-1}", "above depth {\"depth\":6}"],
        );
        check(
            "{ call = \"write\", with = { content = \"x\" } }",
            &[
                "null path {\"content\":\"x\",\"path\":null}",
                "null content {\"content\":null,\"path\":\"b\"}",
                "absent content {\"path\":\"b\"}",
            ],
        );
        check(
            "{ call = \"read\", with = { path = \"a\", colour = 1 } }",
            &["extra Path {\"path\":\"a\",\"Path\":\"x\"}"],
        );
        check("{ call = \"read\", with = { path = 5 } }", &[]);
        assert_eq!(
            changed("{ call = \"read\", with = { path = \"a\" } }", control),
            Err("no call has an erroneous argument".to_owned())
        );
    }

    #[test]
    fn the_assertion_follows_parameter_and_value() {
        let seed = case("{ call = \"read\", with = { path = \"a\", limit = 0 } }");
        let all = changes(&signatures(), &values(), &seed, &[]).expect("changes");
        let said = |change: &Change| {
            change
                .follow
                .in_text("error: parameter \"limit\" must be at least 1: 0")
        };
        assert_eq!(
            said(&all[0]),
            "error: parameter \"offset\" must be at least 1: 0"
        );
        assert_eq!(
            said(&all[1]),
            "error: parameter \"offset\" must be at least 1: -1"
        );
        assert_eq!(all[1].follow.in_text("[exit 0]"), "[exit 0]");
    }
}
