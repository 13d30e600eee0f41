//! Edits of a case's text that keep what a person wrote: comments, inline tables, the order and columns of keys.

use serde_json::Value as Json;
use toml_edit::{
    Array, ArrayOfTables, DocumentMut, InlineTable, Item, Key, Table, TableLike, Value,
};

use super::follow::Follow;
use super::swap::Swap;
use super::toml_values::{
    align, entry_value, has_null, ordered, put, put_as, put_inline, quoted_key, string, swap_item,
    value_of,
};
use crate::domain::case::{Entry, Variable};

/// Which call of a script: the launch, the step of its script, the call in the step; all count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallAt {
    pub launch: usize,
    pub step: usize,
    pub call: usize,
}

/// Where an assertion looks; what it tests is not part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    pub channel: String,
    pub stream: Option<String>,
    pub at: Option<String>,
    pub lines: bool,
}

/// A case's text under edit.
#[derive(Debug, Clone)]
pub struct CaseText {
    document: DocumentMut,
}

impl CaseText {
    /// The text has been parsed as a case before, so that its structure is known.
    pub fn new(text: &str) -> Result<Self, String> {
        let document = text
            .parse()
            .map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
        Ok(Self { document })
    }

    /// The text, with `comments` (one a line, without `#`) at its top.
    pub fn finish(mut self, comments: &[String]) -> String {
        align(self.document.as_table_mut());
        if let Some(fixture) = self.fixture() {
            align(fixture);
        }
        for name in ["launch", "expect"] {
            for table in self.tables(name).iter_mut() {
                align(table);
            }
        }
        let head: String = comments.iter().map(|line| format!("# {line}\n")).collect();
        format!("{head}{}", self.document)
    }

    /// Sets a text at the top level.
    pub fn set(&mut self, key: &str, text: &str) {
        put(self.document.as_table_mut(), key, string(text));
    }

    pub fn set_origin(&mut self, seed: &str, variable: Variable) {
        let mut origin = InlineTable::new();
        origin.insert("method", string("expansion"));
        origin.insert("seed", string(seed));
        origin.insert("variable", string(variable.as_str()));
        origin.fmt();
        put(
            self.document.as_table_mut(),
            "origin",
            Value::InlineTable(origin),
        );
    }

    /// Names the controls; the key goes away when there is none.
    pub fn set_controls(&mut self, names: &[String]) {
        if names.is_empty() {
            self.document.remove("controls");
        } else {
            let names: Array = names.iter().map(|name| string(name)).collect();
            put(
                self.document.as_table_mut(),
                "controls",
                Value::Array(names),
            );
        }
    }

    /// Sets an entry of the fixture.
    pub fn set_entry(&mut self, path: &str, entry: &Entry) {
        if self.fixture().is_none() {
            let mut table = Table::new();
            // Tables stand where their position says: before the first launch.
            table.set_position(Some(0));
            self.document.insert("fixture", Item::Table(table));
        }
        if let Some(fixture) = self.fixture() {
            put_as(fixture, quoted_key(path), entry_value(entry));
        }
    }

    /// Gives an entry another name, in its place.
    pub fn rename_entry(&mut self, from: &str, to: &str) {
        let Some(fixture) = self.fixture() else {
            return;
        };
        let entries: Vec<(Key, Item)> = fixture
            .iter()
            .filter_map(|(key, _)| fixture.get_key_value(key))
            .map(|(key, item)| (key.clone(), item.clone()))
            .collect();
        fixture.clear();
        for (key, item) in entries {
            if key.get() == from {
                fixture.insert_formatted(&quoted_key(to), item);
            } else {
                fixture.insert_formatted(&key, item);
            }
        }
    }

    /// Sets name and arguments of a call. Arguments that TOML cannot say (`null`) become a text of JSON.
    pub fn set_call(&mut self, at: CallAt, name: &str, with: &Json) {
        let Some(call) = self.call(at) else { return };
        // Arguments stay in the order that the seed's author chose; the path comes first.
        let known: Vec<String> = call
            .get("with")
            .and_then(Value::as_inline_table)
            .map_or(vec!["path".to_owned()], |table| {
                table.iter().map(|(key, _)| key.to_owned()).collect()
            });
        let with = &ordered(with, &known);
        put_inline(call, "call", string(name));
        let value = match with {
            Json::Object(map) if has_null(with) => {
                string(&serde_json::to_string(map).expect("a JSON value is JSON"))
            }
            other => value_of(other),
        };
        put_inline(call, "with", value);
    }

    pub fn set_args(&mut self, launch: usize, args: &[String]) {
        let Some(table) = self.tables("launch").get_mut(launch) else {
            return;
        };
        if args.is_empty() {
            table.remove("args");
        } else {
            let args: Array = args.iter().map(|arg| string(arg)).collect();
            put(table, "args", Value::Array(args));
        }
    }

    /// A headless launch becomes one run of the evaluation API.
    pub fn set_api(&mut self, launch: usize, args: &[String], request: &Json) {
        self.set_args(launch, args);
        let Some(table) = self.tables("launch").get_mut(launch) else {
            return;
        };
        put(table, "route", string("api"));
        // The request stands where the prompt stood.
        let rest: Vec<(Key, Item)> = table
            .iter()
            .filter_map(|(key, _)| table.get_key_value(key))
            .map(|(key, item)| (key.clone(), item.clone()))
            .collect();
        table.clear();
        for (key, item) in rest {
            if key.get() == "prompt" {
                put(
                    table,
                    "requests",
                    value_of(&Json::from(vec![request.clone()])),
                );
            } else {
                table.insert_formatted(&key, item);
            }
        }
    }

    /// Sets an option of a request of the evaluation API.
    pub fn set_option(&mut self, launch: usize, request: usize, name: &str, value: &Json) {
        let Some(request) = self.request(launch, request) else {
            return;
        };
        if !request.contains_key("options") {
            request.insert("options", Value::InlineTable(InlineTable::new()));
        }
        if let Some(options) = request
            .get_mut("options")
            .and_then(Value::as_inline_table_mut)
        {
            put_inline(options, name, value_of(value));
            options.fmt();
        }
        request.fmt();
    }

    pub fn remove_option(&mut self, launch: usize, request: usize, name: &str) {
        let options = self
            .request(launch, request)
            .and_then(|request| request.get_mut("options"))
            .and_then(Value::as_inline_table_mut);
        if let Some(options) = options {
            options.remove(name);
        }
    }

    /// Lets a step's body come in pieces.
    pub fn set_piece_bytes(&mut self, launch: usize, step: usize, bytes: u32) {
        if let Some(step) = self.step(launch, step) {
            put_inline(step, "piece_bytes", Value::from(i64::from(bytes)));
            step.fmt();
        }
    }

    /// A text at the top level.
    pub fn text_of(&self, key: &str) -> Option<&str> {
        self.document.get(key)?.as_str()
    }

    pub fn set_selector(&mut self, expect: usize, selector: &Selector) {
        let Some(table) = self.tables("expect").get_mut(expect) else {
            return;
        };
        // Tests stay below the selectors.
        let rest: Vec<(Key, Item)> = table
            .iter()
            .filter(|(key, _)| !["channel", "stream", "at", "lines", "request"].contains(key))
            .filter_map(|(key, _)| table.get_key_value(key))
            .map(|(key, item)| (key.clone(), item.clone()))
            .collect();
        table.clear();
        put(table, "channel", string(&selector.channel));
        if let Some(stream) = &selector.stream {
            put(table, "stream", string(stream));
        }
        if selector.lines {
            put(table, "lines", Value::from(true));
        }
        if let Some(at) = &selector.at {
            put(table, "at", string(at));
        }
        for (key, item) in rest {
            table.insert_formatted(&key, item);
        }
    }

    /// Swaps texts in everything that launches say: prompts, arguments, commands, requests, keys.
    pub fn swap_in_launches(&mut self, swap: &Swap) {
        for table in self.tables("launch").iter_mut() {
            for (_, item) in table.iter_mut() {
                swap_item(item, "", &mut |key, text| match key {
                    "command" => swap.in_command(text),
                    _ => swap.in_text(text),
                });
            }
        }
    }

    /// Lets assertions quote the new input, as [`Follow::expected`] says.
    pub fn follow(&mut self, follow: &Follow) {
        for table in self.tables("expect").iter_mut() {
            follow_in(table, follow);
        }
    }

    /// Swaps the targets of links in the fixture.
    pub fn swap_in_links(&mut self, swap: &Swap) {
        let Some(fixture) = self.fixture() else {
            return;
        };
        for (_, item) in fixture.iter_mut() {
            if item.is_inline_table() {
                swap_item(item, "", &mut |key, text| match key {
                    "link" | "hard_link" => swap.in_text(text),
                    _ => text.to_owned(),
                });
            }
        }
    }

    fn fixture(&mut self) -> Option<&mut Table> {
        self.document.get_mut("fixture")?.as_table_mut()
    }

    fn tables(&mut self, name: &str) -> &mut ArrayOfTables {
        self.document
            .entry(name)
            .or_insert(Item::ArrayOfTables(ArrayOfTables::new()))
            .as_array_of_tables_mut()
            .expect("a case's launches and assertions are [[tables]]")
    }

    fn step(&mut self, launch: usize, step: usize) -> Option<&mut InlineTable> {
        self.tables("launch")
            .get_mut(launch)?
            .get_mut("script")?
            .as_array_mut()?
            .get_mut(step)?
            .as_inline_table_mut()
    }

    fn request(&mut self, launch: usize, request: usize) -> Option<&mut InlineTable> {
        self.tables("launch")
            .get_mut(launch)?
            .get_mut("requests")?
            .as_array_mut()?
            .get_mut(request)?
            .as_inline_table_mut()
    }

    /// The inline table that holds `call` and `with`.
    fn call(&mut self, at: CallAt) -> Option<&mut InlineTable> {
        let step = self.step(at.launch, at.step)?;
        if step.contains_key("calls") {
            step.get_mut("calls")?
                .as_array_mut()?
                .get_mut(at.call)?
                .as_inline_table_mut()
        } else {
            Some(step)
        }
    }
}

/// One assertion, or a member of `any`.
fn follow_in(expect: &mut dyn TableLike, follow: &Follow) {
    if let Some(members) = expect.get_mut("any").and_then(Item::as_array_mut) {
        for member in members.iter_mut() {
            if let Some(member) = member.as_inline_table_mut() {
                follow_in(member, follow);
            }
        }
        return;
    }
    let said = |key: &str| expect.get(key).and_then(Item::as_str);
    if !follow.is_for(said("channel"), said("at")) {
        return;
    }
    for (key, item) in expect.iter_mut() {
        swap_item(item, key.get(), &mut |key, text| match key {
            "matches" | "lacks_match" => follow.in_pattern(text),
            "path" => match &follow.renamed {
                Some(swap) => swap.in_text(text),
                None => text.to_owned(),
            },
            "channel" | "stream" => text.to_owned(),
            _ => follow.in_text(text),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::case::Made;

    const TEXT: &str = "title    = \"t\"\ncontrols = [\"c\"]\n\n[fixture]\n\"a.txt\" = \"a\\n\"\n\n\
        [[launch]]\nroute  = \"headless\"\nprompt = \"Show a.txt\"\nscript = [\n  { call = \"read\", with = { path = \"a.txt\" } }, # first\n  \
        { calls = [\n    { call = \"read\", with = { path = \"b.txt\" }, id = \"b\" },\n  ] },\n]\n\n\
        [[expect]]\nchannel = \"requests\"\nat      = \"$.x\"\nequals  = \"error: a.txt\"\n";

    fn edited(edit: impl FnOnce(&mut CaseText)) -> String {
        let mut text = CaseText::new(TEXT).expect("parses");
        edit(&mut text);
        text.finish(&[])
    }

    #[test]
    fn nothing_edited_is_nothing_changed() {
        assert_eq!(edited(|_| {}), TEXT);
    }

    #[test]
    fn edits_keep_what_stands_around_them() {
        let check = |seen: String, expected: &str| {
            assert!(seen.contains(expected), "{expected}\n---\n{seen}");
        };
        let at = |step, call| CallAt {
            launch: 0,
            step,
            call,
        };
        check(
            edited(|text| text.set_call(at(0, 0), "grep", &json!({"pattern": ".", "limit": 3}))),
            "  { call = \"grep\", with = { pattern = \".\", limit = 3 } }, # first\n",
        );
        check(
            edited(|text| text.set_call(at(1, 0), "read", &json!({"path": null}))),
            "    { call = \"read\", with = '{\"path\":null}', id = \"b\" },\n",
        );
        check(
            edited(|text| text.set_entry("long name.txt", &Entry::Text("x\ny".into()))),
            "[fixture]\n\"a.txt\"         = \"a\\n\"\n\"long name.txt\" = \"x\\ny\"\n",
        );
        check(
            edited(|text| text.rename_entry("a.txt", "c.txt")),
            "[fixture]\n\"c.txt\" = \"a\\n\"\n",
        );
        check(
            edited(|text| text.set_args(0, &["--quiet".into()])),
            "]\nargs   = [\"--quiet\"]\n",
        );
        check(
            edited(|text| text.set_controls(&[])),
            "title = \"t\"\n\n[fixture]",
        );
        check(
            edited(|text| text.set_origin("x/y", Variable::Tool)),
            "origin   = { method = \"expansion\", seed = \"x/y\", variable = \"tool\" }\n",
        );
        check(
            edited(|text| {
                let selector = Selector {
                    channel: "output".into(),
                    stream: None,
                    at: Some("$.y".into()),
                    lines: true,
                };
                text.set_selector(0, &selector);
            }),
            "[[expect]]\nchannel = \"output\"\nlines   = true\nat      = \"$.y\"\nequals  = \"error: a.txt\"\n",
        );
    }

    #[test]
    fn an_entry_of_a_new_fixture_stands_before_the_launches() {
        let bare = TEXT.replace("[fixture]\n\"a.txt\" = \"a\\n\"\n\n", "");
        let mut text = CaseText::new(&bare).expect("parses");
        text.set_entry(
            "d",
            &Entry::Made(Made {
                dir: true,
                ..Made::default()
            }),
        );
        let seen = text.finish(&["from a seed".into()]);
        let fixture = seen.find("[fixture]").expect("is there");
        assert!(
            fixture < seen.find("[[launch]]").expect("is there"),
            "{seen}"
        );
        assert!(seen.starts_with("# from a seed\ntitle"), "{seen}");
        assert!(seen.contains("\"d\" = { dir = true }\n"), "{seen}");
    }

    #[test]
    fn swaps_reach_launches_tests_and_paths_apart() {
        let swap = Swap::new("a.txt", "my a.txt");
        let seen = edited(|text| text.swap_in_launches(&swap));
        assert!(seen.contains("prompt = \"Show my a.txt\""), "{seen}");
        assert!(seen.contains("{ path = \"my a.txt\" }"), "{seen}");
        assert!(seen.contains("equals  = \"error: a.txt\""), "{seen}");
        let follow = Follow {
            quotes: vec![swap],
            ..Follow::default()
        };
        let seen = edited(|text| text.follow(&follow));
        assert!(seen.contains("equals  = \"error: my a.txt\""), "{seen}");
        assert!(seen.contains("prompt = \"Show a.txt\""), "{seen}");
    }
}
