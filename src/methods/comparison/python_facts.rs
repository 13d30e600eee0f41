//! Which expressions of Python source show that something is handled: commands, flags, tools and their
//! parameters (in `python_tools`), exit codes, errors raised and caught, and integers with a name.
//!
//! The rules follow how harnesses are written (argparse, click, typer, JSON schemas, pydantic, tables of objects).
//! They read names and literals only; nothing is run.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::limits::limit;
use super::python::{Source, undecorated};
use super::source::Fact;
use super::syntax::{last, line};
use super::terms::terms;
use super::{python_branches, python_tools};
use crate::domain::difference::FactKind;

/// Adds what this node shows by itself; its children are asked on their own.
pub(super) fn of(source: &Source<'_>, node: Node<'_>, facts: &mut Vec<Fact>) {
    match node.kind() {
        "call" => {
            of_call(source, node, facts);
            python_branches::of_effect(source, node, facts);
        }
        "decorated_definition" => of_decorators(source, node, facts),
        "class_definition" => python_tools::of_class(source, node, facts),
        "dictionary" => python_tools::of_schema(source, node, facts),
        "assignment" => of_assignment(source, node, facts),
        "default_parameter" | "typed_default_parameter" => of_default(source, node, facts),
        "keyword_argument" => of_keyword(source, node, facts),
        "raise_statement" => python_branches::of_raise(source, node, facts),
        "except_clause" => python_branches::of_handler(source, node, facts),
        "if_statement" | "elif_clause" => python_branches::of_check(source, node, facts),
        "conditional_expression" => python_branches::of_choice(source, node, facts),
        "string" => {
            of_slash(source, node, facts);
            of_table(source, node, facts);
        }
        _ => {}
    }
}

pub(super) fn fact(
    kind: FactKind,
    key: impl Into<String>,
    shown: impl Into<String>,
    node: Node<'_>,
) -> Fact {
    Fact::new(kind, key, shown, line(node))
}

/// Positional arguments, and keyword arguments by name.
pub(super) fn arguments<'n>(
    source: &Source<'_>,
    call: Node<'n>,
) -> (Vec<Node<'n>>, BTreeMap<String, Node<'n>>) {
    let mut positional = Vec::new();
    let mut keywords = BTreeMap::new();
    if let Some(list) = call
        .child_by_field_name("arguments")
        .filter(|list| list.kind() == "argument_list")
    {
        let mut cursor = list.walk();
        for argument in list.named_children(&mut cursor) {
            if argument.kind() == "keyword_argument" {
                if let Some(value) = argument.child_by_field_name("value") {
                    keywords.insert(source.field(argument, "name").to_owned(), value);
                }
            } else if argument.kind() != "comment" {
                positional.push(argument);
            }
        }
    }
    (positional, keywords)
}

pub(super) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "-_ ".contains(letter))
}

fn of_call(source: &Source<'_>, call: Node<'_>, facts: &mut Vec<Fact>) {
    let callee = last(source.field(call, "function"));
    let lower = callee.to_lowercase();
    let (positional, keywords) = arguments(source, call);
    let first = positional
        .first()
        .and_then(|argument| source.string(*argument));
    let named = keywords.get("name").and_then(|value| source.string(*value));
    let name = first.clone().or(named.clone()).filter(|name| is_name(name));
    match callee {
        "add_parser" | "Command" | "SlashCommand" | "register_command" => {
            let name = name.or(first.filter(|text| is_slash(text)));
            facts.extend(name.map(|name| command(&name, call)));
        }
        "add_typer" | "add_command" => {
            facts.extend(named.map(|name| command(&name, call)));
        }
        "Flag" => {
            facts.extend(name.map(|name| fact(FactKind::Flag, format!("--{name}"), &name, call)));
        }
        "Tool" | "FunctionTool" | "StructuredTool" => {
            if let Some(name) = name {
                facts.push(fact(FactKind::Tool, &name, &name, call));
                python_tools::of_keywords(source, &name, &keywords, facts);
            }
        }
        "exit" | "_exit" | "SystemExit" | "Exit" => {
            let code = positional.first().or_else(|| keywords.get("code"));
            if let Some(number) = code.and_then(|code| source.number(*code)) {
                facts.push(exit_code(number, source.text(call), call));
            }
        }
        _ if lower.ends_with("option") || callee == "add_argument" => {
            let mut names: Vec<String> = Vec::new();
            for text in positional
                .iter()
                .filter_map(|argument| source.string(*argument))
            {
                names.extend(
                    text.split('/')
                        .map(str::trim)
                        .filter(|name| name.starts_with('-') && name.len() > 1)
                        .map(str::to_owned),
                );
            }
            let has_long = names.iter().any(|name| name.starts_with("--"));
            let bounds = flag_bounds(source, &positional, &keywords);
            facts.extend(
                names
                    .into_iter()
                    .filter(|name| name.starts_with("--") || !has_long)
                    .map(|name| {
                        let mut flag = fact(FactKind::Flag, &name, &name, call);
                        flag.bounds = bounds.clone();
                        flag
                    }),
            );
        }
        _ if is_exception(callee) => {
            let message = keywords
                .get("message")
                .and_then(|value| source.string(*value))
                .or(first);
            if let Some(message) = message.filter(|message| !terms(message).is_empty()) {
                facts.push(python_branches::error(source, call, &message, &message));
            }
        }
        _ => {
            // A message that calls itself an error, wherever it is printed.
            let text = first.unwrap_or_default();
            let opening = text.trim_start().to_lowercase();
            if ["error:", "error ", "fatal:"]
                .iter()
                .any(|word| opening.starts_with(word))
                && terms(&text).len() > 1
            {
                facts.push(python_branches::error(source, call, &text, &text));
            }
        }
    }
}

pub(super) fn is_exception(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && (name.ends_with("Error") || name.ends_with("Exception"))
}

fn command(name: &str, node: Node<'_>) -> Fact {
    fact(FactKind::Command, name.trim_start_matches('/'), name, node)
}

fn exit_code(number: i64, shown: &str, node: Node<'_>) -> Fact {
    let mut fact = fact(FactKind::ExitCode, number.to_string(), shown, node);
    fact.value = Some(number.to_string());
    fact
}

/// `@app.command("name")`, `@registry.command`, `@tool`.
fn of_decorators(source: &Source<'_>, node: Node<'_>, facts: &mut Vec<Fact>) {
    let definition = undecorated(node);
    if definition.kind() != "function_definition" {
        return;
    }
    let function = source.field(definition, "name");
    let mut cursor = node.walk();
    for decorator in node
        .named_children(&mut cursor)
        .filter(|child| child.kind() == "decorator")
    {
        let Some(expression) = decorator.named_child(0) else {
            continue;
        };
        let (callee, positional, keywords) = if expression.kind() == "call" {
            let (positional, keywords) = arguments(source, expression);
            (source.field(expression, "function"), positional, keywords)
        } else {
            (source.text(expression), Vec::new(), BTreeMap::new())
        };
        let given = positional
            .first()
            .or_else(|| keywords.get("name"))
            .and_then(|value| source.string(*value));
        let name = given.unwrap_or_else(|| function.replace('_', "-"));
        match last(callee) {
            "command" => {
                facts.push(command(&name, definition));
                if let Some(list) = keywords.get("aliases") {
                    let mut cursor = list.walk();
                    facts.extend(
                        list.named_children(&mut cursor)
                            .filter_map(|alias| source.string(alias))
                            .map(|alias| command(&alias, definition)),
                    );
                }
            }
            "tool" | "function_tool" => {
                let name = name.replace('-', "_");
                facts.push(fact(FactKind::Tool, &name, &name, definition));
                if let Some(list) = definition.child_by_field_name("parameters") {
                    let mut cursor = list.walk();
                    for argument in list.named_children(&mut cursor) {
                        let argument_name = match argument.kind() {
                            "identifier" => source.text(argument),
                            "typed_parameter" => {
                                argument.named_child(0).map_or("", |name| source.text(name))
                            }
                            _ => source.field(argument, "name"),
                        };
                        if !["", "self", "cls", "ctx", "context"].contains(&argument_name) {
                            facts.push(python_tools::parameter(&name, argument_name, argument));
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// The pairs of a dictionary whose keys are texts.
pub(super) fn pairs<'n>(source: &Source<'_>, node: Node<'n>) -> BTreeMap<String, Node<'n>> {
    let mut pairs = BTreeMap::new();
    let mut cursor = node.walk();
    for pair in node
        .named_children(&mut cursor)
        .filter(|child| child.kind() == "pair")
    {
        if let Some(key) = pair
            .child_by_field_name("key")
            .and_then(|key| source.string(key))
            && let Some(value) = pair.child_by_field_name("value")
        {
            pairs.insert(key, value);
        }
    }
    pairs
}

/// Constants, exit codes with a name, and tables of commands.
fn of_assignment(source: &Source<'_>, node: Node<'_>, facts: &mut Vec<Fact>) {
    let Some((name, value)) = source.assignment(node) else {
        return;
    };
    if name.to_lowercase().contains("command") && value.kind() == "dictionary" {
        let names = pairs(source, value).into_keys();
        facts.extend(
            names
                .filter(|key| is_name(key))
                .map(|key| command(&key, node)),
        );
    }
    let Some(number) = source.number(value) else {
        facts.extend(decimal(source, name, value));
        return;
    };
    // A constant, or a member of an enumeration of exit codes.
    let class = std::iter::successors(node.parent(), |inner| inner.parent())
        .take(3)
        .find(|outer| outer.kind() == "class_definition")
        .map_or("", |class| source.field(class, "name"));
    if [name, class]
        .iter()
        .any(|name| name.to_lowercase().contains("exit"))
    {
        facts.push(exit_code(number, &format!("{name} = {number}"), node));
    } else {
        facts.extend(limit(name, number, line(node)));
    }
}

fn of_default(source: &Source<'_>, node: Node<'_>, facts: &mut Vec<Fact>) {
    let name = source.field(node, "name");
    if let Some(value) = node.child_by_field_name("value") {
        match source.number(value) {
            Some(number) => facts.extend(limit(name, number, line(node))),
            None => facts.extend(decimal(source, name, value)),
        }
    }
}

/// `wait_exponential(min=4, max=60)`: a number that is given under the name of a limit.
fn of_keyword(source: &Source<'_>, node: Node<'_>, facts: &mut Vec<Fact>) {
    let callee = std::iter::successors(node.parent(), |inner| inner.parent())
        .take(2)
        .find(|outer| outer.kind() == "call")
        .map_or("", |call| last(source.field(call, "function")));
    let name = source.field(node, "name");
    let is_schema = ["Field", "Option", "add_argument", "Argument"].contains(&callee);
    if let Some(number) = node
        .child_by_field_name("value")
        .and_then(|value| source.number(value))
        && !is_schema
        && let Some(mut found) = limit(name, number, line(node))
    {
        found.key = format!("{callee} {name}");
        found.shown = format!("{callee}({name}={number})");
        facts.push(found);
    }
}

/// A flag's `default`, `minimum`, `maximum` and `required`.
fn flag_bounds(
    source: &Source<'_>,
    positional: &[Node<'_>],
    keywords: &BTreeMap<String, Node<'_>>,
) -> BTreeMap<String, String> {
    // `typer.Option(5, "--n", min=1)`; with `add_argument` a number in front has no meaning.
    let front = positional.first().copied();
    let given = [
        ("default", keywords.get("default").copied().or(front)),
        ("minimum", keywords.get("min").copied()),
        ("maximum", keywords.get("max").copied()),
    ];
    given
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), source.number(value?)?.to_string())))
        .collect()
}

/// `"max-turns"` in a table of names, in a file that reads a command line itself: the flag is there.
fn of_table(source: &Source<'_>, node: Node<'_>, facts: &mut Vec<Fact>) {
    if !source.reads_arguments {
        return;
    }
    let Some(text) = source.string(node).filter(|text| is_name(text)) else {
        return;
    };
    let is_member = node.parent().is_some_and(|parent| match parent.kind() {
        "pair" => parent.child_by_field_name("key") == Some(node),
        "list" | "set" | "tuple" => true,
        _ => false,
    });
    if is_member {
        for (kind, name) in [
            (FactKind::Flag, format!("--{text}")),
            (FactKind::Command, text),
        ] {
            let mut weak = fact(kind, &name, &name, node);
            weak.is_weak = true;
            facts.push(weak);
        }
    }
}

/// A time in parts of a second, or a share.
fn decimal(source: &Source<'_>, name: &str, value: Node<'_>) -> Option<Fact> {
    if value.kind() != "float" {
        return None;
    }
    let text = source.text(value);
    let mut found = limit(name, i64::MAX, line(value))?;
    found.shown = format!("{name} = {text}");
    found.value = Some(text.to_owned());
    Some(found)
}

fn is_slash(text: &str) -> bool {
    text.strip_prefix('/').is_some_and(|rest| {
        !rest.is_empty() && rest.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    })
}

/// `"/compact"` as a key, in a list, in a comparison or in a `case`; a path is written in other places.
fn of_slash(source: &Source<'_>, node: Node<'_>, facts: &mut Vec<Fact>) {
    let Some(text) = source.string(node).filter(|text| is_slash(text)) else {
        return;
    };
    let is_key = node.parent().is_some_and(|parent| match parent.kind() {
        "pair" => parent.child_by_field_name("key") == Some(node),
        "comparison_operator" | "case_pattern" => true,
        "list" | "set" | "tuple" => {
            let assigned = parent.parent().and_then(|outer| source.assignment(outer));
            assigned.is_some_and(|(name, _)| name.to_lowercase().contains("command"))
        }
        _ => false,
    });
    if is_key {
        facts.push(command(&text, node));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::source::units;
    use crate::domain::difference::FactKind;

    fn seen(text: &str) -> Vec<String> {
        units(Path::new("a.py"), text, &|_| false)
            .iter()
            .flat_map(|unit| &unit.facts)
            .filter(|fact| !fact.is_weak)
            .map(|fact| {
                let bounds: Vec<String> = fact
                    .bounds
                    .iter()
                    .map(|(key, value)| format!(" {key}={value}"))
                    .collect();
                let value = fact
                    .value
                    .as_ref()
                    .map_or_else(String::new, |value| match fact.kind {
                        FactKind::Check => format!("[{value}]"),
                        _ => format!("={value}"),
                    });
                format!(
                    "{} {}{value}{}",
                    fact.kind,
                    fact.key.trim(),
                    bounds.concat()
                )
            })
            .collect()
    }

    #[test]
    fn facts_are_found_however_they_are_written() {
        let check = |text: &str, expected: &[&str]| assert_eq!(seen(text), expected, "{text}");
        check(
            "sub.add_parser('sessions', help='x')\n",
            &["command sessions"],
        );
        check(
            "@registry.command(aliases=['reset'])\ndef clear(a):\n    pass\n",
            &["command clear", "command reset"],
        );
        check(
            "@app.command(name='web')\ndef f():\n    pass\n",
            &["command web"],
        );
        check("if line == '/undo':\n    pass\n", &["command undo"]);
        check("open('/tmp')\n", &[]);
        check(
            "p.add_argument('-m', '--model', default=1)\n",
            &["flag --model default=1"],
        );
        check(
            "x = typer.Option(3, '--n', min=1)\n",
            &["flag --n default=3 minimum=1"],
        );
        check(
            "x = typer.Option(True, '--a/--no-a')\n",
            &["flag --a", "flag --no-a"],
        );
        check("Flag('max-turns', 'help')\n", &["flag --max-turns"]);
        check(
            "T = {'name': 'bash', 'parameters': {'properties': {'command': {'type': 'string'}}, 'required': ['command']}}\n",
            &[
                "tool bash",
                "parameter bash.command required=true type=string",
            ],
        );
        check(
            "Tool('list', 'm:f', 'text', path=FOLDER, depth={'type': 'integer', 'maximum': 5})\n",
            &[
                "tool list",
                "parameter list.depth maximum=5 type=integer",
                "parameter list.path",
            ],
        );
        check(
            "N = 1000\nclass P(BaseModel):\n    path: str = Field(description='d')\n    n_lines: int = Field(default=N, ge=1)\n\
             class R(CallableTool2[P]):\n    name: str = 'ReadFile'\n",
            &[
                "limit N=1000",
                "tool ReadFile",
                "parameter ReadFile.path required=true type=string",
                "parameter ReadFile.n_lines default=1000 minimum=1 required=false type=integer",
            ],
        );
        check("sys.exit(3)\n", &["exit-code 3=3"]);
        check(
            "class ExitCode(IntEnum):\n    RETRYABLE = 75\n",
            &["exit-code 75=75"],
        );
        check(
            "raise ToolError(f'no such file: {p}')\n",
            &["error no such file: {}"],
        );
        check(
            "return ToolError(message='too large', brief='x')\n",
            &["error too large"],
        );
        check("raise Blocked\n", &["error Blocked"]);
        check("raise ValueError(text)\n", &["error ValueError"]);
        check(
            "print('error: cannot open it')\n",
            &["error error: cannot open it"],
        );
        check(
            "try:\n    pass\nexcept (OSError, x.Gone) as e:\n    pass\nexcept Exception:\n    pass\n",
            &["handler OSError", "handler Gone"],
        );
        check(
            "MAX = 10 * 1024\nDEBUG = 0\nname = 7\n",
            &["limit MAX=10240"],
        );
        check("def f(timeout=60, x=5):\n    pass\n", &["limit timeout=60"]);
        check("WAIT_TIMEOUT = 0.5\n", &["limit WAIT_TIMEOUT=0.5"]);
        check(
            "wait_exponential(multiplier=9, max=60)\n",
            &["limit wait_exponential max=60"],
        );
        check(
            "if n > 2000:\n    return 'too many lines'\n",
            &["check n > 2000 too many lines[> 2000]"],
        );
        check("if n:\n    n = 5\n", &[]);
        check(
            "if n:\n    raise ToolError('no file left')\n",
            &["error no file left"],
        );
        check(
            "s = 'no lines left' if n == 0 else ''\n",
            &["check n == 0 no lines left"],
        );
    }
}
