//! What the document says about the parameters of each tool: `read(path, offset?: integer ≥ 1)`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::domain::document::Document;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    pub required: bool,
    pub kind: Kind,
}

/// The type of a parameter with its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Text,
    Integer {
        least: i64,
        most: Option<i64>,
    },
    Boolean,
    /// A closed list of words.
    Words(Vec<String>),
    /// Anything else; values of it are left alone.
    Other,
}

/// How arguments break a signature. Faults of one class are told by the same clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultClass {
    Missing,
    Unknown,
    Type,
    Range,
    Blank,
}

/// The first fault of some arguments, in the order in which a harness checks.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub class: FaultClass,
    pub parameter: String,
    /// The value at fault; none for a missing parameter.
    pub value: Option<Value>,
}

/// The parameters of each tool, in the order of the signature.
#[derive(Debug, Clone, Default)]
pub struct Signatures(BTreeMap<String, Vec<Parameter>>);

impl Signatures {
    /// From the first clause of each `tools.NAME` whose syntax is a signature.
    pub fn of(document: &Document) -> Self {
        let mut signatures = BTreeMap::new();
        for clause in document.clauses() {
            let mut parts = clause.id.as_str().split('.');
            if parts.next() != Some("tools") {
                continue;
            }
            let tool = parts.next().unwrap_or_default();
            if !signatures.contains_key(tool)
                && let Some(parameters) = parse(tool, &clause.syntax)
            {
                signatures.insert(tool.to_owned(), parameters);
            }
        }
        Self(signatures)
    }

    pub fn get(&self, tool: &str) -> Option<&[Parameter]> {
        self.0.get(tool).map(Vec::as_slice)
    }

    /// What is wrong with the arguments of a call; none also for a tool that is not known.
    pub fn fault(&self, tool: &str, arguments: &Map<String, Value>) -> Option<Fault> {
        let parameters = self.get(tool)?;
        let fault = |class, parameter: &str, value: Option<&Value>| {
            Some(Fault {
                class,
                parameter: parameter.to_owned(),
                value: value.cloned(),
            })
        };
        let given = |parameter: &Parameter| {
            arguments
                .get(&parameter.name)
                .filter(|value| !value.is_null())
        };
        for parameter in parameters {
            if parameter.required && given(parameter).is_none() {
                return fault(FaultClass::Missing, &parameter.name, None);
            }
        }
        for (name, value) in arguments {
            if !parameters.iter().any(|parameter| parameter.name == *name) {
                return fault(FaultClass::Unknown, name, Some(value));
            }
        }
        let present = || {
            parameters
                .iter()
                .filter_map(|parameter| Some((parameter, given(parameter)?)))
        };
        for (parameter, value) in present() {
            if !parameter.kind.has_type(value) {
                return fault(FaultClass::Type, &parameter.name, Some(value));
            }
        }
        for (parameter, value) in present() {
            if !parameter.kind.is_in_range(value) {
                return fault(FaultClass::Range, &parameter.name, Some(value));
            }
        }
        // Contents may be blank; of the parameters that the document calls so all name what to work on.
        const MAY_BE_BLANK: &[&str] = &["content", "old", "new"];
        for (parameter, value) in present() {
            let is_blank = value.as_str().is_some_and(|text| text.trim().is_empty());
            if is_blank && !MAY_BE_BLANK.contains(&parameter.name.as_str()) {
                return fault(FaultClass::Blank, &parameter.name, Some(value));
            }
        }
        None
    }
}

impl Kind {
    fn has_type(&self, value: &Value) -> bool {
        match self {
            Self::Text | Self::Words(_) => value.is_string(),
            Self::Integer { .. } => value.is_i64() || value.is_u64(),
            Self::Boolean => value.is_boolean(),
            Self::Other => true,
        }
    }

    fn is_in_range(&self, value: &Value) -> bool {
        match self {
            Self::Integer { least, most } => value
                .as_i64()
                .is_some_and(|number| number >= *least && most.is_none_or(|most| number <= most)),
            Self::Words(words) => words.iter().any(|word| value == word.as_str()),
            _ => true,
        }
    }
}

/// The parameters of `tool(…)` in a clause's syntax; none when it is a call with values or something else.
fn parse(tool: &str, syntax: &str) -> Option<Vec<Parameter>> {
    let opening = format!("`{tool}(");
    let inside = &syntax[syntax.find(&opening)? + opening.len()..];
    let inside = &inside[..inside.find(")`")?];
    split(inside)
        .into_iter()
        .map(|part| parameter(&part))
        .collect()
}

/// Parts between commas that stand in no braces.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for letter in text.chars() {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        if letter == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    parts
}

fn parameter(text: &str) -> Option<Parameter> {
    let (name, kind) = match text.split_once(':') {
        Some((name, kind)) => (name.trim(), kind_of(kind.trim())),
        None => (text.trim(), Kind::Text),
    };
    let (name, required) = match name.strip_suffix('?') {
        Some(name) => (name, false),
        None => (name, true),
    };
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    is_name.then(|| Parameter {
        name: name.to_owned(),
        required,
        kind,
    })
}

fn kind_of(text: &str) -> Kind {
    if let Some(range) = text.strip_prefix("integer") {
        let numbers: Vec<i64> = range
            .split(|letter: char| !letter.is_ascii_digit())
            .filter_map(|number| number.parse().ok())
            .collect();
        return match numbers.as_slice() {
            [least] => Kind::Integer {
                least: *least,
                most: None,
            },
            [least, most] => Kind::Integer {
                least: *least,
                most: Some(*most),
            },
            _ => Kind::Integer {
                least: i64::MIN,
                most: None,
            },
        };
    }
    if text == "boolean" {
        return Kind::Boolean;
    }
    if text.starts_with('"') {
        return Kind::Words(
            text.split('|')
                .map(|word| word.trim().trim_matches('"').to_owned())
                .collect(),
        );
    }
    Kind::Other
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::domain::document::Chapter;

    pub(crate) fn signatures() -> Signatures {
        let clause = |id: &str, syntax: &str| {
            format!(
                "### {id} · ordinary\n**Syntax** {syntax}\n**Meaning** m\n**Behaviour** b\n**Channels** exit\n\n"
            )
        };
        let text = format!(
            "# T\n\n{}{}{}{}",
            clause("tools.read.missing", "a path"),
            clause(
                "tools.read.format",
                "`read(path, offset?: integer ≥ 1, limit?: integer ≥ 1)`"
            ),
            clause("tools.list.format", "`list(path?, depth?: integer 1–5)`"),
            clause(
                "tools.job.output",
                "`job(id, action: \"output\" | \"kill\")`, `action` = `output`"
            ),
        );
        let chapter = Chapter::parse(Path::new("02-tools.md"), &text).expect("parses");
        Signatures::of(&Document {
            chapters: vec![chapter],
        })
    }

    #[test]
    fn signatures_come_from_the_document() {
        let signatures = signatures();
        let read = signatures.get("read").expect("is there");
        assert_eq!(read.len(), 3);
        assert!(read[0].required && !read[1].required);
        assert_eq!(
            read[1].kind,
            Kind::Integer {
                least: 1,
                most: None
            }
        );
        let depth = &signatures.get("list").expect("is there")[1];
        assert_eq!(
            depth.kind,
            Kind::Integer {
                least: 1,
                most: Some(5)
            }
        );
        let action = &signatures.get("job").expect("is there")[1];
        assert_eq!(
            action.kind,
            Kind::Words(vec!["output".into(), "kill".into()])
        );
        assert!(signatures.get("grep").is_none());
    }

    #[test]
    fn the_first_fault_is_found_in_the_order_of_the_checks() {
        let signatures = signatures();
        let check = |tool: &str, arguments: Value, expected: Option<(FaultClass, &str)>| {
            let fault = signatures.fault(tool, arguments.as_object().expect("an object"));
            let seen = fault
                .as_ref()
                .map(|fault| (fault.class, fault.parameter.as_str()));
            assert_eq!(seen, expected, "{arguments}");
        };
        use FaultClass::{Blank, Missing, Range, Type, Unknown};
        check("read", json!({"path": "a", "limit": 5}), None);
        check("read", json!({"path": "a", "limit": null}), None);
        check("read", json!({"limit": 0}), Some((Missing, "path")));
        check("read", json!({"path": null}), Some((Missing, "path")));
        check(
            "read",
            json!({"path": "a", "colour": 1, "limit": 0}),
            Some((Unknown, "colour")),
        );
        check(
            "read",
            json!({"path": "a", "limit": "5"}),
            Some((Type, "limit")),
        );
        check(
            "read",
            json!({"path": "a", "limit": 5.0}),
            Some((Type, "limit")),
        );
        check(
            "read",
            json!({"path": "a", "limit": true}),
            Some((Type, "limit")),
        );
        check(
            "read",
            json!({"path": "a", "limit": 0}),
            Some((Range, "limit")),
        );
        check("list", json!({"depth": 6}), Some((Range, "depth")));
        check("list", json!({"depth": 5}), None);
        check(
            "job",
            json!({"id": "1", "action": "stop"}),
            Some((Range, "action")),
        );
        check("read", json!({"path": " "}), Some((Blank, "path")));
        check("grep", json!({}), None);
    }
}
