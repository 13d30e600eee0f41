//! Which expressions of TypeScript and JavaScript source show that something is handled.
//!
//! The rules follow how harnesses are written (commander, yargs, JSON schemas, tables of slash commands). They read
//! names and literals only; nothing is run.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::effects::{effect, looks_before};
use super::limits::limit;
use super::script::Script;
use super::source::{Fact, Reaction};
use super::syntax::{N_SHOWN, each, last, last_statement, line, short, squeezed};
use super::terms::terms;
use crate::domain::difference::FactKind;

impl Script<'_> {
    /// Adds what this node shows by itself; its children are asked on their own.
    pub(super) fn facts(&self, node: Node<'_>, facts: &mut Vec<Fact>) {
        match node.kind() {
            "new_expression" => self.of_error(node, facts),
            "call_expression" => {
                self.of_call(node, facts);
                self.of_effect(node, facts);
            }
            "object" => self.of_object(node, facts),
            "if_statement" => self.of_check(node, facts),
            "ternary_expression" => self.of_choice(node, facts),
            // What is caught is not said; who catches handles all.
            "catch_clause" => {
                let mut weak = Fact::new(FactKind::Handler, "Exception", "catch", line(node));
                weak.is_weak = true;
                facts.push(weak);
            }
            "variable_declarator" | "public_field_definition" => {
                self.of_number(node, "name", "value", facts);
            }
            "pair" => self.of_number(node, "key", "value", facts),
            "required_parameter" => self.of_number(node, "pattern", "value", facts),
            _ => {}
        }
    }

    fn of_number(&self, node: Node<'_>, name: &str, value: &str, facts: &mut Vec<Fact>) {
        let value = node.child_by_field_name(value);
        if let Some(number) = value.and_then(|value| self.number(value)) {
            facts.extend(limit(self.field(node, name), number, line(node)));
        }
    }

    /// `new ToolError('message')`, thrown or returned.
    fn of_error(&self, node: Node<'_>, facts: &mut Vec<Fact>) {
        let name = last(self.field(node, "constructor"));
        let message = self.arguments(node).first().and_then(|it| self.string(*it));
        if name.ends_with("Error")
            && let Some(message) = message.filter(|message| !terms(message).is_empty())
        {
            let mut error = Fact::new(FactKind::Error, &message, &message, line(node));
            error.around = self.around(node);
            facts.push(error);
        }
    }

    fn of_call(&self, node: Node<'_>, facts: &mut Vec<Fact>) {
        let arguments = self.arguments(node);
        let first = arguments.first().copied();
        let text = first
            .and_then(|first| self.string(first))
            .unwrap_or_default();
        match last(self.field(node, "function")) {
            "option" => {
                let long = text
                    .split([' ', ','])
                    .find(|word| word.starts_with("--"))
                    .map(str::to_owned);
                let plain = is_name(&text).then(|| format!("--{text}"));
                if let Some(name) = long.or(plain) {
                    let mut flag = Fact::new(FactKind::Flag, &name, &name, line(node));
                    if let Some(schema) = arguments.get(1) {
                        flag.bounds = self.bounds(*schema);
                    }
                    facts.push(flag);
                }
            }
            "command" => {
                let name = text.split_whitespace().next().unwrap_or_default();
                if is_name(name) {
                    facts.push(Fact::new(FactKind::Command, name, name, line(node)));
                }
            }
            "exit" => {
                if let Some(number) = first.and_then(|first| self.number(first)) {
                    let mut exit = Fact::new(
                        FactKind::ExitCode,
                        number.to_string(),
                        self.text(node),
                        line(node),
                    );
                    exit.value = Some(number.to_string());
                    facts.push(exit);
                }
            }
            _ => {}
        }
    }

    /// A tool with its schema, or a slash command with its action.
    fn of_object(&self, node: Node<'_>, facts: &mut Vec<Fact>) {
        let pairs = self.pairs(node);
        let name = pairs.get("name").and_then(|value| self.string(*value));
        let Some(name) = name.filter(|name| is_name(name)) else {
            return;
        };
        if pairs.contains_key("action") && pairs.contains_key("description") {
            facts.push(Fact::new(FactKind::Command, &name, &name, line(node)));
        }
        let schema = [
            "parameters",
            "parametersJsonSchema",
            "inputSchema",
            "input_schema",
        ]
        .iter()
        .find_map(|key| pairs.get(*key))
        .map(|schema| self.pairs(*schema));
        let Some(schema) = schema else { return };
        facts.push(Fact::new(FactKind::Tool, &name, &name, line(node)));
        let properties = schema.get("properties").map(|all| self.pairs(*all));
        for (key, value) in properties.unwrap_or_default() {
            let mut parameter = Fact::new(
                FactKind::Parameter,
                format!("{name}.{key}"),
                format!("{name}({key})"),
                line(value),
            );
            parameter.bounds = self.bounds(value);
            facts.push(parameter);
        }
    }

    /// `type`, `minimum`, `maximum` and `default` of a JSON schema.
    fn bounds(&self, schema: Node<'_>) -> BTreeMap<String, String> {
        let pairs = self.pairs(schema).into_iter();
        pairs
            .filter(|(key, _)| ["type", "minimum", "maximum", "default"].contains(&key.as_str()))
            .filter_map(|(key, value)| {
                let number = self.number(value).map(|number| number.to_string());
                Some((key, self.string(value).or(number)?))
            })
            .collect()
    }

    /// `if` that leaves off without an error of its own, or that compares with a limit.
    fn of_check(&self, node: Node<'_>, facts: &mut Vec<Fact>) {
        let (Some(condition), Some(body)) = (
            node.child_by_field_name("condition"),
            node.child_by_field_name("consequence"),
        ) else {
            return;
        };
        let (reaction, end_text) = self.end(body);
        let compared = self.compared(condition);
        let (mut says, mut names_error) = (String::new(), false);
        each(body, &mut |inner| match inner.kind() {
            "string" | "template_string" if says.len() < 2 * N_SHOWN => {
                says.push_str(&self.string(inner).unwrap_or_default());
                says.push(' ');
            }
            "new_expression" => {
                names_error |= last(self.field(inner, "constructor")).ends_with("Error");
            }
            _ => {}
        });
        let n_lines = body.end_position().row - body.start_position().row + 1;
        let is_limit = !compared.is_empty() && terms(&says).len() > 1;
        if n_lines > 12 || names_error || (reaction == Reaction::GoesOn && !is_limit) {
            return;
        }
        let condition = squeezed(self.text(condition));
        let mut check = Fact::new(
            FactKind::Check,
            format!("{condition} {says}"),
            format!("if {}: {}", short(&condition), short(end_text)),
            line(node),
        );
        check.value = (!compared.is_empty()).then(|| compared.join(", "));
        check.reaction = Some(reaction);
        check.around = self.comments(line(node));
        facts.push(check);
    }

    /// How a branch ends, and what it ends with.
    fn end(&self, body: Node<'_>) -> (Reaction, &str) {
        // A branch without braces is one statement.
        let end = match body.kind() {
            "statement_block" => last_statement(body),
            _ => Some(body),
        };
        let text = end.map_or("", |end| self.text(end));
        let reaction = match end.map(|end| end.kind()) {
            Some("throw_statement") => Reaction::Refuses,
            Some("return_statement") if text.to_lowercase().contains("error") => Reaction::Refuses,
            Some("return_statement" | "continue_statement" | "break_statement") => Reaction::Leaves,
            _ if text.starts_with("process.exit") => Reaction::Refuses,
            _ => Reaction::GoesOn,
        };
        (reaction, text)
    }

    /// A call that changes or asks something outside, with what is looked at before.
    fn of_effect(&self, call: Node<'_>, facts: &mut Vec<Fact>) {
        let Some(class) = effect(&squeezed(self.field(call, "function"))) else {
            return;
        };
        let shown = short(self.text(call));
        let mut fact = Fact::new(FactKind::Effect, class, shown, line(call));
        let leaves = |body| self.end(body).0 != Reaction::GoesOn;
        fact.looks = looks_before(call, &|node| self.text(node), &leaves);
        facts.push(fact);
    }

    /// `condition ? 'text' : other`: something else is said under a condition.
    fn of_choice(&self, node: Node<'_>, facts: &mut Vec<Fact>) {
        let said: Vec<String> = ["consequence", "alternative"]
            .iter()
            .filter_map(|part| self.string(node.child_by_field_name(part)?))
            .filter(|text| terms(text).len() > 1)
            .collect();
        let Some(condition) = node.child_by_field_name("condition") else {
            return;
        };
        if said.is_empty() {
            return;
        }
        let compared = self.compared(condition);
        let condition = squeezed(self.text(condition));
        let mut check = Fact::new(
            FactKind::Check,
            format!("{condition} {}", said.join(" ")),
            short(&format!("{} if {condition}", said.join(" | "))),
            line(node),
        );
        check.value = (!compared.is_empty()).then(|| compared.join(", "));
        check.around = self.comments(line(node));
        facts.push(check);
    }

    /// What a condition compares numbers with: `> 2000`.
    fn compared(&self, condition: Node<'_>) -> Vec<String> {
        let mut all = Vec::new();
        each(condition, &mut |node| {
            let operator = self.field(node, "operator");
            let right = node.child_by_field_name("right");
            if node.kind() == "binary_expression"
                && operator.contains(['<', '>', '='])
                && let Some(number) = right.and_then(|right| self.number(right))
                && number > 1
            {
                all.push(format!("{operator} {number}"));
            }
        });
        all
    }

    /// The conditions that an error stands in, up to its function, and the comments beside it.
    fn around(&self, node: Node<'_>) -> String {
        let mut texts = vec![self.comments(line(node))];
        let mut inner = node;
        while let Some(outer) = inner.parent() {
            match outer.kind() {
                "function_declaration" | "method_definition" | "arrow_function" | "program" => {
                    break;
                }
                "if_statement" if outer.child_by_field_name("consequence") == Some(inner) => {
                    texts.push(squeezed(self.field(outer, "condition")));
                    texts.push(self.comments(line(outer)));
                }
                _ => {}
            }
            if texts.len() > 4 {
                break;
            }
            inner = outer;
        }
        texts.join(" ")
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::source::units;

    fn seen(file: &str, text: &str) -> Vec<String> {
        units(Path::new(file), text, &|_| false)
            .iter()
            .flat_map(|unit| unit.facts.iter().map(move |fact| (unit, fact)))
            .filter(|(_, fact)| !fact.is_weak)
            .map(|(unit, fact)| {
                let bounds = fact
                    .bounds
                    .iter()
                    .map(|(key, value)| format!(" {key}={value}"));
                let value = fact
                    .value
                    .as_deref()
                    .map_or(String::new(), |it| format!(" [{it}]"));
                let bounds: String = bounds.collect();
                let (kind, key) = (fact.kind, fact.key.trim());
                format!("{}:{} {kind} {key}{value}{bounds}", unit.name, fact.line)
            })
            .collect()
    }

    #[test]
    fn facts_are_found_however_they_are_written() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(seen("a.ts", text), expected, "{text}");
            assert_eq!(seen("a.js", text), expected, "{text}");
        };
        check(
            "program.option('-m, --model <name>', 'x');",
            &[":1 flag --model"],
        );
        check(
            "yargs.option('max-turns', { type: 'number', default: 5 });",
            &[":1 flag --max-turns default=5 type=number"],
        );
        check(
            "program.command('sessions <id>');",
            &[":1 command sessions"],
        );
        check(
            "const c = { name: 'compress', description: 'd', action: f };",
            &[":1 command compress"],
        );
        check(
            "const t = { name: 'read_file', parametersJsonSchema: { properties: { limit: { type: 'number', minimum: 1 } } } };",
            &[
                ":1 tool read_file",
                ":1 parameter read_file.limit minimum=1 type=number",
            ],
        );
        check(
            "function f() { throw new ToolError(`no file: ${p}`); }",
            &["f:1 error no file: {}"],
        );
        check(
            "const MAX_LINES = 2 * 1000;",
            &[":1 limit MAX_LINES [2000]"],
        );
        check("f({ timeoutMs: 5_000 });", &[":1 limit timeoutMs [5000]"]);
        check("process.exit(3);", &[":1 exit-code 3 [3]"]);
        check(
            "const most = 20;\nif (lines.length > most) {\n  return 'too many lines';\n}",
            &[":2 check (lines.length > most) too many lines [> 20]"],
        );
        check("if (x) { y = 5; }", &[]);
        check(
            "if (x) { throw new Error('no file'); }",
            &[":1 error no file"],
        );
        check(
            "const s = n ? 'no lines left' : '';",
            &[":1 check n no lines left"],
        );
    }
}
