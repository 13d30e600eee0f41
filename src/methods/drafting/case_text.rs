//! A case as the text of a file, in the form in which people write it: keys in columns, a script on lines of its own.

use serde_json::{Map, Value};

use crate::domain::case::CaseFile;
use crate::domain::visible::visible_line;

/// The text of a case, with `comments` at its top, each on one line whatever it holds. An error says what TOML cannot
/// say.
pub fn text(case: &CaseFile, comments: &[String]) -> Result<String, String> {
    let mut text = String::new();
    for comment in comments {
        text += format!("# {}", visible_line(comment)).trim_end();
        text.push('\n');
    }
    let Value::Object(members) = serde_json::to_value(case).map_err(|error| error.to_string())?
    else {
        unreachable!("a case is a table");
    };
    let is_table = |name: &str| ["fixture", "launch", "expect"].contains(&name);
    let (tables, top): (Map<_, _>, Map<_, _>) =
        members.into_iter().partition(|(name, _)| is_table(name));
    table(&mut text, &top)?;
    for (name, value) in tables {
        match value {
            Value::Object(entries) => {
                text += &format!("\n[{name}]\n");
                table(&mut text, &entries)?;
            }
            Value::Array(items) => {
                for item in items {
                    text += &format!("\n[[{name}]]\n");
                    table(
                        &mut text,
                        item.as_object()
                            .expect("launches and assertions are tables"),
                    )?;
                }
            }
            _ => unreachable!("fixture, launch and expect are tables"),
        }
    }
    Ok(text)
}

/// One key a line, those that take several lines last.
fn table(text: &mut String, members: &Map<String, Value>) -> Result<(), String> {
    let spans_lines = |value: &Value| {
        let tables = |items: &Vec<Value>| items.iter().any(Value::is_object);
        value.as_array().is_some_and(tables)
    };
    let short: Vec<(String, &Value)> = members
        .iter()
        .filter(|(_, value)| !spans_lines(value))
        .map(|(name, value)| (key(name), value))
        .collect();
    let width = short.iter().map(|(name, _)| name.chars().count()).max();
    for (name, value) in short {
        let n_blanks = width.unwrap_or(0) - name.chars().count();
        *text += &format!("{name}{} = {}\n", " ".repeat(n_blanks), inline(value)?);
    }
    for (name, value) in members.iter().filter(|(_, value)| spans_lines(value)) {
        *text += &format!("{} = [\n", key(name));
        for item in value.as_array().expect("only arrays span lines") {
            *text += &format!("  {},\n", inline(item)?);
        }
        *text += "]\n";
    }
    Ok(())
}

fn inline(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::Null => return Err("TOML has no null: write such arguments as a string".to_owned()),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(value) => string(value),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect::<Result<_, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                Ok::<_, String>(format!("{} = {}", key(name), inline(value)?))
            };
            let members: Vec<String> = members.iter().map(member).collect::<Result<_, _>>()?;
            format!("{{ {} }}", members.join(", "))
        }
    })
}

fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match !name.is_empty() && name.chars().all(plain) {
        true => name.to_owned(),
        false => string(name),
    }
}

/// In the quotes that need the fewest escapes.
fn string(text: &str) -> String {
    let plain = !text.contains('\'') && !text.chars().any(char::is_control);
    if plain && text.contains(['"', '\\']) {
        return format!("'{text}'");
    }
    // What JSON escapes TOML escapes alike, and one sign more.
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::case::{Case, CaseId};

    fn case(title: &str, content: &str) -> CaseFile {
        serde_json::from_value(serde_json::json!({
            "title": title, "purpose": "p", "clause": "a.b.c", "category": "headless", "scenario": "boundary",
            "origin": { "method": "issues", "sources": ["o/n#1"] },
            "fixture": { "a b.txt": content, "l": { "link": "x" } },
            "launch": [{ "route": "headless", "prompt": "p", "script": [
                { "call": "write", "with": { "path": "a", "content": content } }, { "say": "done" }] }],
            "expect": [{ "channel": "exit", "equals": 0 }],
        }))
        .expect("a case")
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let hard = [
            "plain",
            "it's \"both\"",
            "a\n\t\u{7f}\u{1b}[31m",
            "{\"x\": \\d}",
            "'''\n\"\"\"",
            "\u{202e}é",
        ];
        for content in hard {
            let file = case(content, content);
            let text =
                text(&file, &["one\n[[expect]]\nchannel = \"exit\"".to_owned()]).expect("a text");
            let read: CaseFile =
                toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(read, file, "{text}");
        }
    }

    #[test]
    fn it_looks_as_if_a_person_had_written_it() {
        let written = text(&case("t", "{\"a\": 1}"), &["From o/n#1".to_owned()]).expect("a text");
        let expected = r#"# From o/n#1
title    = "t"
purpose  = "p"
clause   = "a.b.c"
category = "headless"
scenario = "boundary"
origin   = { method = "issues", sources = ["o/n#1"] }

[fixture]
"a b.txt" = '{"a": 1}'
l         = { link = "x" }

[[launch]]
route  = "headless"
prompt = "p"
script = [
  { call = "write", with = { path = "a", content = '{"a": 1}' } },
  { say = "done" },
]

[[expect]]
channel = "exit"
equals  = 0
"#;
        assert_eq!(written, expected);
        Case::parse(CaseId::new("headless/t"), Path::new("t"), &written).expect("a case");
    }

    #[test]
    fn null_is_refused() {
        let mut file = case("t", "c");
        file.launch[0].script[0].with = Some(serde_json::json!({ "path": null }));
        assert!(text(&file, &[]).expect_err("no TOML").contains("no null"));
    }
}
