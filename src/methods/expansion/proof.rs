//! The proof that a variant differs from its seed in exactly one variable, and that its assertion stayed.
//!
//! Seed and variant are compared part by part, whatever operator made the variant. Each difference belongs to one
//! variable or to none; what belongs to none is a fault.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::api_site::is_same_run;
use super::follow::Follow;
use super::named;
use super::scenario::{PATH_PARAMETER, ScriptCall, calls};
use super::sites::without_format;
use super::swap::says;
use super::ways::{as_options, settings_of, written_out};
use crate::domain::case::{Case, Category, Launch, Reply, Role, Route, Variable};
use crate::domain::expect::Expect;

/// One part that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// None: it belongs to no variable, and must not be.
    pub variable: Option<Variable>,
    /// Where, and what.
    pub what: String,
}

/// The one variable that changed; else every reason why the variant is none, one a line.
pub fn prove(seed: &Case, variant: &Case, follow: &Follow) -> Result<Variable, Vec<String>> {
    let changes = changes(seed, variant, follow);
    let mut faults: Vec<String> = changes
        .iter()
        .filter(|change| change.variable.is_none())
        .map(|change| change.what.clone())
        .collect();
    let (inputs_before, inputs_after) = (inputs(seed), inputs(variant));
    for quote in &follow.quotes {
        if !inputs_before.contains(quote.from()) || !inputs_after.contains(quote.to()) {
            faults.push(format!(
                "the assertion follows {:?} → {:?}, which is no input",
                quote.from(),
                quote.to()
            ));
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let variables: BTreeSet<Variable> = changes
        .iter()
        .filter_map(|change| change.variable)
        .collect();
    let mut variables = variables.into_iter();
    match (variables.next(), variables.next()) {
        (Some(variable), None) => Ok(variable),
        (None, _) => Err(vec!["nothing changed".to_owned()]),
        (Some(_), Some(_)) => Err(changes
            .iter()
            .filter_map(|change| {
                let variable = change.variable?.as_str();
                Some(format!("{variable}: {}", change.what))
            })
            .collect()),
    }
}

/// What an assertion may quote: values of arguments as texts and as JSON, names of parameters in double quotes, paths
/// mentioned in prompts, and names and values of flags, options and settings.
fn inputs(case: &Case) -> BTreeSet<String> {
    let mut inputs = BTreeSet::new();
    for (name, value) in calls(case)
        .iter()
        .filter_map(|call| call.arguments.as_ref())
        .flatten()
    {
        inputs.insert(format!("\"{name}\""));
        inputs.insert(value.to_string());
        inputs.extend(value.as_str().map(str::to_owned));
    }
    for launch in &case.launches {
        inputs.extend(launch.args.iter().cloned());
        for (name, value) in options(launch) {
            inputs.insert(named::option(name));
            inputs.insert(named::plain(value));
        }
    }
    for (name, value) in settings_of(case).iter().flat_map(|(_, settings)| settings) {
        inputs.insert(name.clone());
        inputs.insert(named::plain(value));
    }
    let prompts = case
        .launches
        .iter()
        .filter_map(|launch| launch.prompt.as_deref());
    inputs.extend(
        prompts
            .flat_map(|prompt| {
                prompt
                    .match_indices('@')
                    .map(move |(at, _)| &prompt[at + 1..])
            })
            .map(|rest| rest.split_whitespace().next().unwrap_or_default())
            .map(|path| path.trim_end_matches(['.', ',', '?', '!']).to_owned()),
    );
    inputs
}

/// Options of all requests of a launch.
fn options(launch: &Launch) -> impl Iterator<Item = (&String, &Value)> {
    let options = |request| Value::as_object(Value::get(request, "options")?);
    launch.requests.iter().filter_map(options).flatten()
}

/// Every part in which the two differ, in the order of the file.
pub fn changes(seed: &Case, variant: &Case, follow: &Follow) -> Vec<Change> {
    let mut found = Found {
        follow,
        changes: Vec::new(),
    };
    found.header(seed, variant);
    found.fixture(seed, variant);
    if seed.launches.len() == variant.launches.len() {
        for (idx, (old, new)) in seed.launches.iter().zip(&variant.launches).enumerate() {
            found.launch(idx + 1, old, new);
        }
        found.calls(&calls(seed), &calls(variant));
    } else {
        found.fault("the number of launches");
    }
    if seed.expects.len() == variant.expects.len() {
        for (idx, (old, new)) in seed.expects.iter().zip(&variant.expects).enumerate() {
            found.expect(idx + 1, old, new);
        }
    } else {
        found.fault("the number of assertions");
    }
    found.changes
}

struct Found<'f> {
    follow: &'f Follow,
    changes: Vec<Change>,
}

impl Found<'_> {
    fn push(&mut self, variable: Variable, what: impl Into<String>) {
        self.changes.push(Change {
            variable: Some(variable),
            what: what.into(),
        });
    }

    fn fault(&mut self, what: impl Into<String>) {
        self.changes.push(Change {
            variable: None,
            what: what.into(),
        });
    }

    fn header(&mut self, seed: &Case, variant: &Case) {
        if seed.clause != variant.clause {
            // Where a result is returned is told by a clause of its own.
            self.push(
                Variable::ReturnSite,
                format!("the clause: {} → {}", seed.clause, variant.clause),
            );
        }
        // A run of the evaluation API has the category of its own site.
        let moves = seed.launches.len() == variant.launches.len()
            && (seed.launches.iter())
                .zip(&variant.launches)
                .any(|(old, new)| is_moved(old, new))
            && variant.category() == Some(Category::DirectDrive);
        let kind = |case: &Case| match &case.role {
            Role::Test {
                category, scenario, ..
            } => Some(((!moves).then_some(*category), *scenario)),
            Role::Control { .. } => None,
        };
        if kind(seed) != kind(variant) {
            self.fault("the category or the kind of scenario");
        }
    }

    fn fixture(&mut self, seed: &Case, variant: &Case) {
        let keys: BTreeSet<&String> = seed.fixture.keys().chain(variant.fixture.keys()).collect();
        for key in keys {
            if seed.fixture.get(key) != variant.fixture.get(key) {
                let variable = match (settings(seed, key), settings(variant, key)) {
                    (Some(old), Some(new)) if n_other(&old, &new) == 1 => {
                        Variable::ErroneousParameter
                    }
                    _ => Variable::InputForm,
                };
                self.push(variable, format!("the fixture at {key}"));
            }
        }
    }

    /// Everything of a launch but its calls.
    fn launch(&mut self, number: usize, old: &Launch, new: &Launch) {
        let what = |part: &str| format!("{part} of launch {number}");
        let moves = is_moved(old, new);
        if moves {
            if is_same_run(old, new) {
                self.push(Variable::ReturnSite, what("the route"));
            } else {
                self.fault(what("the run"));
            }
        } else if without_format(&old.args) == without_format(&new.args) {
            if old.args != new.args {
                self.push(Variable::ReturnSite, what("the output format"));
            }
        } else if written_out(&old.args) == written_out(&new.args) {
            self.push(Variable::InputForm, what("how the arguments are given"));
        } else if are_options(old, new) {
            self.push(Variable::InputForm, what("the flags that are options"));
        } else if self.is_value(&old.args, &new.args) {
            self.push(Variable::ErroneousParameter, what("the value of a flag"));
        } else {
            let followed: Vec<String> = old.args.iter().map(|arg| self.launched(arg)).collect();
            if followed == new.args {
                self.push(Variable::InputForm, what("the arguments"));
            } else {
                self.fault(what("the arguments"));
            }
        }
        for (part, old, new) in [
            ("the prompt", &old.prompt, &new.prompt),
            ("standard input", &old.stdin, &new.stdin),
            ("the folder", &old.cwd, &new.cwd),
        ] {
            if old == new || moves {
                continue;
            }
            if old.as_ref().map(|text| self.launched(text)) == *new {
                self.push(Variable::InputForm, what(part));
            } else {
                self.fault(what(part));
            }
        }
        // Requests and keys may say the path, too.
        let said = |launch: &Launch| {
            serde_json::to_value((&launch.requests, &launch.keys)).expect("plain data")
        };
        let (said_before, said_after) = (said(old), said(new));
        if said_before != said_after && !moves && !are_options(old, new) {
            if old.keys == new.keys && without_options(old) == without_options(new) {
                self.push(Variable::ErroneousParameter, what("the options"));
            } else if self.launched_json(&said_before) == said_after {
                self.push(Variable::InputForm, what("the requests or keys"));
            } else {
                self.fault(what("the requests or keys"));
            }
        }
        let rest = |launch: &Launch| {
            (
                (!moves).then_some(launch.route),
                launch.env.clone(),
                launch.size,
                launch.time_limit_s,
                launch.stdin_is,
                launch.alongside.clone(),
                launch.signals.clone(),
                launch.bind.clone(),
            )
        };
        if rest(old) != rest(new) {
            self.fault(what(
                "the route, the environment, the size, the time limit or its moments",
            ));
        }
        let steps =
            |launch: &Launch| -> Vec<Reply> { launch.script.iter().map(without_calls).collect() };
        if steps(old) != steps(new) {
            self.fault(what("the replies beside their calls"));
        }
        let pieces = |launch: &Launch| -> Vec<Option<u32>> {
            launch
                .script
                .iter()
                .map(|reply| reply.piece_bytes)
                .collect()
        };
        if pieces(old) != pieces(new) {
            self.push(Variable::InputForm, what("the pieces of the replies"));
        }
    }

    fn calls(&mut self, old: &[ScriptCall], new: &[ScriptCall]) {
        if old.len() != new.len() {
            self.fault("the number of calls");
            return;
        }
        for (idx, (old, new)) in old.iter().zip(new).enumerate() {
            let what = |text: String| format!("call {}: {text}", idx + 1);
            if (old.at, &old.id) != (new.at, &new.id) {
                self.fault(what("its place or id".to_owned()));
            } else if old.tool != new.tool {
                self.push(Variable::Tool, what(format!("{} → {}", old.tool, new.tool)));
                if let Some(path) = old.path() {
                    let arguments = Value::from(new.arguments.clone().unwrap_or_default());
                    if !speaks(&arguments, path) {
                        self.push(
                            Variable::InputForm,
                            what(format!("{path} is not worked on")),
                        );
                    }
                }
            } else if old.arguments != new.arguments {
                match (&old.arguments, &new.arguments) {
                    (Some(before), Some(after)) => self.arguments(&what, before, after),
                    _ => self.fault(what("arguments that are no object".to_owned())),
                }
            }
        }
    }

    fn arguments(
        &mut self,
        what: &dyn Fn(String) -> String,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) {
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names {
            let (old, new) = (before.get(name), after.get(name));
            if old == new {
                continue;
            }
            let is_form = match (old.and_then(Value::as_str), new.and_then(Value::as_str)) {
                // A path that is still a path, or a text in which the path follows.
                (Some(old), Some(new)) => {
                    (name == PATH_PARAMETER && !old.trim().is_empty() && !new.trim().is_empty())
                        || self.launched(old) == new
                        || self.commanded(old) == new
                }
                _ => false,
            };
            if is_form {
                self.push(Variable::InputForm, what(format!("`{name}`")));
            } else {
                self.push(Variable::ErroneousParameter, what(format!("`{name}`")));
            }
        }
    }

    fn expect(&mut self, number: usize, old: &Expect, new: &Expect) {
        if old == new {
            return;
        }
        let followed = self.follow.expected(old);
        if followed == *new {
            // It quotes the input; that the input changed is a change of its own.
            return;
        }
        if tests(old) == tests(new) && looks(old) != looks(new) {
            self.push(
                Variable::ReturnSite,
                format!("where assertion {number} looks"),
            );
        } else {
            self.fault(format!("what assertion {number} tests"));
        }
    }

    /// Whether the flags differ in one value that assertions quote and that nothing else of the scenario says.
    fn is_value(&self, old: &[String], new: &[String]) -> bool {
        let followed = |arg: &String| {
            (self.follow.quotes.iter())
                .find(|quote| quote.from() == arg.as_str())
                .map_or(arg.as_str(), |quote| quote.to())
                .to_owned()
        };
        let is_flag =
            |quote: &str| self.follow.beside.as_deref() == Some(quote) && quote.starts_with("--");
        old.iter().any(|arg| is_flag(arg)) && old.iter().map(followed).collect::<Vec<_>>() == new
    }

    fn launched(&self, text: &str) -> String {
        self.follow
            .quotes
            .iter()
            .fold(text.to_owned(), |text, swap| swap.in_text(&text))
    }

    fn commanded(&self, text: &str) -> String {
        self.follow
            .quotes
            .iter()
            .fold(text.to_owned(), |text, swap| swap.in_command(&text))
    }

    fn launched_json(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.launched(text)),
            Value::Array(items) => items.iter().map(|item| self.launched_json(item)).collect(),
            Value::Object(map) => map
                .iter()
                .map(|(key, item)| (key.clone(), self.launched_json(item)))
                .collect(),
            other => other.clone(),
        }
    }
}

/// Whether the launch is a headless run in the seed and a run of the evaluation API in the variant.
fn is_moved(old: &Launch, new: &Launch) -> bool {
    old.route == Route::Headless && new.route == Route::Api
}

/// Whether flags of `harness api` became options of its one request, and nothing else.
fn are_options(old: &Launch, new: &Launch) -> bool {
    let (args, moved) = as_options(&old.args);
    let added = options(new).filter(|(name, _)| !options(old).any(|(known, _)| known == *name));
    !moved.is_empty()
        && old.requests.len() == 1
        && args == new.args
        && without_options(old) == without_options(new)
        && added.eq(moved.iter())
        && options(old).all(|one| options(new).any(|other| other == one))
}

fn without_options(launch: &Launch) -> Vec<Value> {
    let without = |request: &Value| {
        let mut request = request.clone();
        if let Some(keys) = request.as_object_mut() {
            keys.shift_remove("options");
        }
        request
    };
    launch.requests.iter().map(without).collect()
}

/// The settings that lie at a path.
fn settings(case: &Case, path: &str) -> Option<Map<String, Value>> {
    let all = settings_of(case).into_iter();
    all.filter_map(|(file, settings)| (file == path).then_some(settings))
        .next()
}

/// How many of the new settings are not among the old ones.
fn n_other(old: &Map<String, Value>, new: &Map<String, Value>) -> usize {
    new.iter()
        .filter(|(name, value)| old.get(*name) != Some(value))
        .count()
}

/// Whether a text of the value says the word by itself.
fn speaks(value: &Value, word: &str) -> bool {
    match value {
        Value::String(text) => says(text, word),
        Value::Array(items) => items.iter().any(|item| speaks(item, word)),
        Value::Object(map) => map.values().any(|item| speaks(item, word)),
        _ => false,
    }
}

/// A reply with the names and arguments of its calls, and its pieces, left out.
fn without_calls(reply: &Reply) -> Reply {
    let mut reply = reply.clone();
    reply.call = reply.call.map(|_| String::new());
    reply.with = None;
    reply.piece_bytes = None;
    for call in &mut reply.calls {
        call.call = String::new();
        call.with = None;
    }
    reply
}

/// What an assertion tests, without where it looks.
fn tests(expect: &Expect) -> Expect {
    Expect {
        channel: None,
        stream: None,
        at: None,
        lines: false,
        request: None,
        launch: None,
        path: None,
        ..expect.clone()
    }
}

/// Where an assertion looks, without what it tests.
fn looks(expect: &Expect) -> Expect {
    Expect {
        channel: expect.channel,
        stream: expect.stream,
        at: expect.at.clone(),
        lines: expect.lines,
        request: expect.request,
        launch: expect.launch,
        path: expect.path.clone(),
        ..Expect::default()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::follow::Scope;
    use super::super::swap::Swap;
    use super::*;
    use crate::domain::case::CaseId;

    const SEED: &str = r#"
title = "t"
purpose = "p"
clause = "a.b.c"
category = "headless"
scenario = "ordinary"
[fixture]
"a.txt" = "x"
[[launch]]
route = "headless"
prompt = "Show a.txt"
args = ["--quiet"]
script = [
  { call = "read", with = { path = "a.txt", limit = 0 }, id = "one" },
  { call = "bash", with = { command = "cat a.txt" } },
  { say = "done" },
]
[[expect]]
channel = "requests"
at = "$.messages[*].content"
equals = "error: a.txt"
[[expect]]
channel = "output"
has = "x"
"#;

    fn parse(text: &str) -> Case {
        Case::parse(CaseId::new("headless/x"), Path::new("x.toml"), text)
            .unwrap_or_else(|findings| panic!("{findings:?}"))
    }

    fn proved(edits: &[(&str, &str)], follow: &Follow) -> Result<Variable, Vec<String>> {
        let mut text = SEED.to_owned();
        for (from, to) in edits {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        prove(&parse(SEED), &parse(&text), follow)
    }

    const NONE: Follow = Follow {
        quotes: Vec::new(),
        beside: None,
        renamed: None,
        scope: Scope::Everywhere,
    };

    #[test]
    fn one_variable_is_proved() {
        let check = |edits: &[(&str, &str)], expected: Variable| {
            assert_eq!(proved(edits, &NONE), Ok(expected), "{edits:?}");
        };
        check(
            &[(
                "call = \"read\", with = { path = \"a.txt\", limit = 0 }",
                "call = \"grep\", with = { pattern = \".\", path = \"a.txt\" }",
            )],
            Variable::Tool,
        );
        check(
            &[(
                "\"a.txt\" = \"x\"",
                "\"a.txt\" = { link = \"b.txt\" }\n\"b.txt\" = \"x\"",
            )],
            Variable::InputForm,
        );
        check(&[("limit = 0", "limit = -1")], Variable::ErroneousParameter);
        check(&[("limit = 0", "offset = 0")], Variable::ErroneousParameter);
        check(
            &[("path = \"a.txt\", limit", "path = 5, limit")],
            Variable::ErroneousParameter,
        );
        check(
            &[
                ("\"--quiet\"", "\"--quiet\", \"--output-format\", \"json\""),
                (
                    "channel = \"output\"\nhas",
                    "channel = \"output\"\nat = \"$.text\"\nhas",
                ),
            ],
            Variable::ReturnSite,
        );
    }

    #[test]
    fn an_assertion_may_only_quote_the_new_input() {
        let follow = Follow {
            quotes: vec![Swap::new("a.txt", "d/../a.txt")],
            beside: None,
            renamed: None,
            scope: Scope::Everywhere,
        };
        let moved: &[(&str, &str)] = &[
            ("path = \"a.txt\"", "path = \"d/../a.txt\""),
            ("Show a.txt", "Show d/../a.txt"),
            ("cat a.txt", "cat d/../a.txt"),
        ];
        let with = |last: (&'static str, &'static str)| [moved, &[last]].concat();
        assert_eq!(
            proved(&with(("error: a.txt", "error: d/../a.txt")), &follow),
            Ok(Variable::InputForm)
        );
        let faults = proved(&with(("error: a.txt", "error: other")), &follow).expect_err("a fault");
        assert_eq!(faults, ["what assertion 1 tests"]);
        let lie = Follow {
            quotes: vec![Swap::new("error", "all is well")],
            beside: None,
            renamed: None,
            scope: Scope::Everywhere,
        };
        let edits = &[
            ("limit = 0", "limit = -1"),
            ("error: a.txt", "all is well: a.txt"),
        ];
        let faults = proved(edits, &lie).expect_err("a fault");
        assert!(faults[0].contains("which is no input"), "{faults:?}");
        let faults = proved(&with(("has = \"x\"", "has = \"y\"")), &follow).expect_err("a fault");
        assert!(
            faults.contains(&"what assertion 2 tests".to_owned()),
            "{faults:?}"
        );
    }

    #[test]
    fn everything_else_is_rejected() {
        let check = |edits: &[(&str, &str)], expected: &str| {
            let faults = proved(edits, &NONE).expect_err("must be rejected");
            assert!(
                faults.iter().any(|fault| fault.contains(expected)),
                "{edits:?}: {faults:?}"
            );
        };
        check(&[("title = \"t\"", "title = \"u\"")], "nothing changed");
        check(
            &[("a.b.c", "a.b.d"), ("limit = 0", "limit = -1")],
            "return-site: the clause",
        );
        check(&[("ordinary", "boundary")], "kind of scenario");
        check(&[("Show", "Print")], "the prompt of launch 1");
        check(&[("--quiet", "--verbose")], "the arguments of launch 1");
        check(
            &[("{ say = \"done\" }", "{ say = \"end\" }")],
            "beside their calls",
        );
        check(&[("  { say = \"done\" },\n", "")], "beside their calls");
        check(&[("id = \"one\"", "id = \"two\"")], "beside their calls");
        check(
            &[("equals = \"error: a.txt\"", "has = \"error\"")],
            "assertion 1 tests",
        );
        // Two variables at once.
        check(
            &[
                ("limit = 0", "limit = -1"),
                ("\"a.txt\" = \"x\"", "\"a.txt\" = \"\""),
            ],
            "input-form: the fixture at a.txt",
        );
        check(
            &[(
                "call = \"read\", with = { path = \"a.txt\", limit = 0 }",
                "call = \"grep\", with = { pattern = \".\", path = \"b.txt\" }",
            )],
            "a.txt is not worked on",
        );
    }
}
