//! Operators of the variable *tool*: the same end, reached by another tool.

use globset::Glob;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::case_text::CaseText;
use super::scenario::{Lies, ScriptCall, asserted, assertion_texts, calls, lies};
use crate::domain::case::{Case, Entry};

/// One tool that can stand for another, as `pipeline/expand.toml` names it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Equivalent {
    pub from: String,
    pub to: String,
    /// Arguments of the new call. `{name}` in a text is the old argument, `{there}` the first word of the file that lies at
    /// the path (`a` when none does); `{name|shell}` quotes it for a shell,
    /// `{name|added}` puts `+` before each of its lines.
    pub with: Map<String, Value>,
    /// Globs on the ids of clauses under which both tools have to behave alike.
    pub clauses: Vec<String>,
    /// The file must not exist yet, or must.
    #[serde(default)]
    pub only: Option<Only>,
    /// Permission modes in which the new tool runs as the old one does; any when empty.
    #[serde(default)]
    pub modes: Vec<String>,
    /// Whether the new tool's success looks like the old one's, so that controls can be mapped.
    pub same_result: bool,
    /// One sentence: why the tool matters.
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Only {
    New,
    Existing,
}

impl Equivalent {
    /// Whether the clause binds both tools alike.
    pub fn is_for(&self, clause: &str) -> Result<bool, String> {
        for pattern in &self.clauses {
            let glob = Glob::new(pattern).map_err(|error| error.to_string())?;
            if glob.compile_matcher().is_match(clause) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Puts the other tool in the place of the call that the assertions are about. The error says why it does not fit.
pub fn apply(equivalent: &Equivalent, case: &Case, text: &mut CaseText) -> Result<(), String> {
    let call = asserted(case)
        .filter(|call| call.tool == equivalent.from)
        .ok_or_else(|| format!("the assertion is about no call of `{}`", equivalent.from))?;
    // Another tool's success looks different, its refusal does not.
    let is_refused = assertion_texts(case)
        .iter()
        .any(|text| text.contains("error: "));
    if !equivalent.same_result && !is_refused {
        return Err(format!(
            "what `{}` says when it succeeds is another text",
            equivalent.to
        ));
    }
    let mode = mode(&case.launches[call.at.launch].args);
    if !equivalent.modes.is_empty() && !equivalent.modes.iter().any(|one| one == mode) {
        return Err(format!("`{}` is not allowed in mode {mode}", equivalent.to));
    }
    swap_call(equivalent, case, text, &call)
}

/// The same in a control: its last call of the tool. True when it has none and stays as it is.
pub fn apply_to_control(
    equivalent: &Equivalent,
    case: &Case,
    text: &mut CaseText,
) -> Result<bool, String> {
    let of_tool = |call: &ScriptCall| call.tool == equivalent.from;
    let call = asserted(case)
        .filter(of_tool)
        .or_else(|| calls(case).into_iter().rev().find(of_tool));
    match call {
        None => Ok(true),
        Some(_) if !equivalent.same_result => Err(format!(
            "what `{}` does is not seen where `{}` is",
            equivalent.to, equivalent.from
        )),
        Some(call) => swap_call(equivalent, case, text, &call).map(|()| false),
    }
}

/// The permission mode of a launch's arguments; settings files are not looked at.
fn mode(args: &[String]) -> &str {
    const FLAG: &str = "--permission-mode";
    let apart = args
        .iter()
        .position(|arg| arg == FLAG)
        .and_then(|at| args.get(at + 1));
    let joined = args
        .iter()
        .find_map(|arg| arg.strip_prefix(FLAG)?.strip_prefix('='));
    apart.map(String::as_str).or(joined).unwrap_or("ask")
}

fn swap_call(
    equivalent: &Equivalent,
    case: &Case,
    text: &mut CaseText,
    call: &ScriptCall,
) -> Result<(), String> {
    let arguments = call
        .arguments
        .as_ref()
        .ok_or("the call's arguments are no object")?;
    if let (Some(only), Some(path)) = (equivalent.only, call.path()) {
        let is_new = lies(case, path) == Lies::Nothing;
        if is_new != (only == Only::New) {
            let state = if is_new { "new" } else { "there already" };
            return Err(format!("the file is {state}"));
        }
    }
    let template = Value::Object(equivalent.with.clone());
    let said = template.to_string();
    if let Some(name) = arguments.keys().find(|name| {
        !said.contains(&format!("{{{name}}}")) && !said.contains(&format!("{{{name}|"))
    }) {
        return Err(format!("`{name}` has no counterpart"));
    }
    let mut known = arguments.clone();
    known.insert(THERE.to_owned(), there(case, call).into());
    let with = fill(&template, &known)?;
    text.set_call(call.at, &equivalent.to, &with);
    Ok(())
}

const THERE: &str = "there";

/// A text that an edit of the file finds.
fn there(case: &Case, call: &ScriptCall) -> String {
    let text = match call.path().map(|path| lies(case, path)) {
        Some(Lies::File(Entry::Text(text))) => text.split_whitespace().next(),
        Some(Lies::Link { target }) => match case.fixture.get(target) {
            Some(Entry::Text(text)) => text.split_whitespace().next(),
            _ => None,
        },
        _ => None,
    };
    text.filter(|word| !word.contains('{'))
        .unwrap_or("a")
        .to_owned()
}

/// Puts the old arguments into a template; a text that is one placeholder takes the value as it is.
fn fill(template: &Value, arguments: &Map<String, Value>) -> Result<Value, String> {
    match template {
        Value::String(text) => {
            let whole = text
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'))
                .and_then(|name| arguments.get(name));
            match whole {
                Some(value) => Ok(value.clone()),
                None => fill_text(text, arguments).map(Value::String),
            }
        }
        Value::Array(items) => items.iter().map(|item| fill(item, arguments)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| Ok((key.clone(), fill(value, arguments)?)))
            .collect::<Result<Map<_, _>, String>>()
            .map(Value::Object),
        other => Ok(other.clone()),
    }
}

fn fill_text(template: &str, arguments: &Map<String, Value>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        let Some(end) = rest[start..].find('}').map(|len| start + len) else {
            break;
        };
        let (name, filter) = match rest[start + 1..end].split_once('|') {
            Some((name, filter)) => (name, filter),
            None => (&rest[start + 1..end], ""),
        };
        let value = arguments
            .get(name)
            .ok_or_else(|| format!("the call has no `{name}`"))?;
        let value = value
            .as_str()
            .ok_or_else(|| format!("`{name}` is no text"))?;
        out.push_str(&rest[..start]);
        match filter {
            "" => out.push_str(value),
            "shell" => out.push_str(&shell(value)),
            "added" => {
                for line in value.lines() {
                    out.push_str(&format!("+{line}\n"));
                }
            }
            other => return Err(format!("{other:?} is no filter: use shell or added")),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Quoted when a shell would split or expand it; placeholders of the case language hold harmless texts.
fn shell(text: &str) -> String {
    let harmless = |letter: char| letter.is_alphanumeric() || "{}:/._-".contains(letter);
    if !text.is_empty() && text.chars().all(harmless) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::domain::case::CaseId;

    fn case(script: &str) -> (Case, CaseText) {
        let text = format!(
            "title = \"t\"\npurpose = \"p\"\nclause = \"tools.paths.link\"\ncategory = \"headless\"\n\
             scenario = \"ordinary\"\n[fixture]\n\"a.txt\" = \"x\"\n[[launch]]\nroute = \"headless\"\nprompt = \"x\"\n\
             script = [{script}]\n[[expect]]\nchannel = \"exit\"\nequals = 0\n"
        );
        let case =
            Case::parse(CaseId::new("headless/x"), Path::new("x.toml"), &text).expect("a case");
        (case, CaseText::new(&text).expect("parses"))
    }

    fn equivalent(toml: &str) -> Equivalent {
        toml::from_str(&format!(
            "{toml}\nclauses = [\"tools.paths.*\"]\nwhy = \"w\""
        ))
        .expect("parses")
    }

    fn swapped(equivalent: &Equivalent, script: &str) -> Result<(String, Value), String> {
        let (seed, mut text) = case(script);
        apply(equivalent, &seed, &mut text)?;
        let text = text.finish(&[]);
        let variant = Case::parse(CaseId::new("headless/y"), Path::new("y.toml"), &text)
            .unwrap_or_else(|findings| panic!("{findings:?}\n{text}"));
        let call = calls(&variant).pop().expect("has a call");
        Ok((call.tool, Value::Object(call.arguments.expect("an object"))))
    }

    #[test]
    fn arguments_are_mapped() {
        let grep = equivalent(
            "from = \"read\"\nto = \"grep\"\nwith = { pattern = \".\", path = \"{path}\" }\nsame_result = true",
        );
        let patch = equivalent(
            "from = \"write\"\nto = \"patch\"\nonly = \"new\"\nsame_result = true\n\
             with = { text = \"*** Begin Patch\\n*** Add File: {path}\\n{content|added}*** End Patch\\n\" }",
        );
        let shell = equivalent(
            "from = \"write\"\nto = \"bash\"\nsame_result = true\n\
             with = { command = \"printf %s {content|shell} > {path|shell}\" }",
        );
        let check = |equivalent: &Equivalent, script: &str, tool: &str, arguments: Value| {
            let seen = swapped(equivalent, script);
            assert_eq!(seen, Ok((tool.to_owned(), arguments)), "{script}");
        };
        check(
            &grep,
            "{ call = \"read\", with = { path = \"a.txt\" } }",
            "grep",
            json!({"pattern": ".", "path": "a.txt"}),
        );
        check(
            &patch,
            "{ call = \"write\", with = { path = \"n.txt\", content = \"one\\n{nonce:x}\\n\" } }",
            "patch",
            json!({"text": "*** Begin Patch\n*** Add File: n.txt\n+one\n+{nonce:x}\n*** End Patch\n"}),
        );
        check(
            &shell,
            "{ call = \"write\", with = { path = \"a.txt\", content = \"it's {nonce:x}\\n\" } }",
            "bash",
            json!({"command": "printf %s 'it'\\''s {nonce:x}\n' > a.txt"}),
        );
        let why = |equivalent: &Equivalent, script: &str| {
            swapped(equivalent, script).expect_err("must not fit")
        };
        assert_eq!(
            why(
                &grep,
                "{ call = \"read\", with = { path = \"a.txt\", limit = 0 } }"
            ),
            "`limit` has no counterpart"
        );
        assert_eq!(why(&grep, "{ call = \"read\" }"), "the call has no `path`");
        assert_eq!(
            why(
                &patch,
                "{ call = \"write\", with = { path = \"a.txt\", content = \"x\" } }"
            ),
            "the file is there already"
        );
        assert_eq!(
            why(&grep, "{ call = \"bash\", with = { command = \"ls\" } }"),
            "the assertion is about no call of `read`"
        );
    }

    #[test]
    fn a_control_is_mapped_stays_or_cannot_be() {
        let edit = equivalent(
            "from = \"read\"\nto = \"edit\"\nwith = { path = \"{path}\", old = \"a\", new = \"b\" }\nsame_result = false",
        );
        let (control, mut text) = case("{ call = \"bash\", with = { command = \"cat a.txt\" } }");
        assert_eq!(apply_to_control(&edit, &control, &mut text), Ok(true));
        let (control, mut text) = case("{ call = \"read\", with = { path = \"a.txt\" } }");
        let why = apply_to_control(&edit, &control, &mut text).expect_err("cannot");
        assert!(why.contains("is not seen"), "{why}");
        let (seed, mut text) = case("{ call = \"read\", with = { path = \"a.txt\" } }");
        let why = apply(&edit, &seed, &mut text).expect_err("cannot");
        assert!(why.contains("is another text"), "{why}");
        assert_eq!(edit.is_for("tools.paths.link"), Ok(true));
        assert_eq!(edit.is_for("tools.read.format"), Ok(false));
    }
}
