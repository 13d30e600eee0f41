//! The branches of Python source in which something is refused, caught or left: raised errors, handlers, and the
//! conditions under which a function leaves off or says something else.

use tree_sitter::Node;

use super::effects::{effect, looks_before};
use super::python::Source;
use super::python_facts::{arguments, is_exception};
use super::source::{Fact, Reaction};
use super::syntax::{N_SHOWN, each, last, last_statement, line, short, squeezed};
use super::terms::terms;
use crate::domain::difference::FactKind;

/// `raise X` without a message; with one, the call says more.
pub(super) fn of_raise(source: &Source<'_>, node: Node<'_>, facts: &mut Vec<Fact>) {
    let Some(raised) = node.named_child(0) else {
        return;
    };
    let (name, message) = match raised.kind() {
        "call" => {
            let (positional, keywords) = arguments(source, raised);
            let message = positional
                .first()
                .or_else(|| keywords.get("message"))
                .and_then(|value| source.string(*value));
            (last(source.field(raised, "function")), message)
        }
        "identifier" | "attribute" => (last(source.text(raised)), None),
        _ => return,
    };
    let control = ["SystemExit", "Exit", "StopIteration", "NotImplementedError"];
    if !name.starts_with(char::is_uppercase) || control.contains(&name) {
        return;
    }
    match message {
        Some(message) if !terms(&message).is_empty() => {
            if !is_exception(name) {
                facts.push(error(source, node, &message, &message));
            }
        }
        _ => facts.push(error(source, node, name, &format!("raise {name}"))),
    }
}

/// An error with what stands around it.
pub(super) fn error(source: &Source<'_>, node: Node<'_>, key: &str, shown: &str) -> Fact {
    let mut fact = Fact::new(FactKind::Error, key, shown, line(node));
    fact.around = around(source, node);
    fact
}

/// One fact for each exception; that everything is caught is a weak one.
pub(super) fn of_handler(source: &Source<'_>, node: Node<'_>, facts: &mut Vec<Fact>) {
    let mut cursor = node.walk();
    let caught: Vec<Node<'_>> = node.children_by_field_name("value", &mut cursor).collect();
    let body = node
        .named_child_count()
        .checked_sub(1)
        .and_then(|at| node.named_child(u32::try_from(at).ok()?))
        .filter(|body| body.kind() == "block");
    let tried = node
        .parent()
        .and_then(|outer| outer.child_by_field_name("body"));
    let mut called = Vec::new();
    if let Some(tried) = tried {
        names_called(source, tried, &mut called);
    }
    let mut texts = called.join(" ");
    if let Some(body) = body {
        texts = format!("{texts} {}", strings(source, body));
    }
    for value in caught {
        let value = if value.kind() == "as_pattern" {
            value.named_child(0).unwrap_or(value)
        } else {
            value
        };
        let names: Vec<&str> = if value.kind() == "tuple" {
            let mut cursor = value.walk();
            value
                .named_children(&mut cursor)
                .map(|item| source.text(item))
                .collect()
        } else {
            vec![source.text(value)]
        };
        for name in names.into_iter().map(last) {
            if !name.starts_with(char::is_uppercase) {
                continue;
            }
            let shown = match body.and_then(last_statement) {
                Some(end) => format!("except {name}: {}", short(source.text(end))),
                None => format!("except {name}"),
            };
            let mut fact = Fact::new(FactKind::Handler, name, shown, line(node));
            fact.is_weak = ["Exception", "BaseException"].contains(&name);
            fact.reaction = body.map(|body| reaction(source, body));
            fact.around = format!("{texts} {}", source.comments(line(node)));
            facts.push(fact);
        }
    }
}

/// `if` and `elif` that leave off without an error of their own, or that compare with a limit.
pub(super) fn of_check(source: &Source<'_>, node: Node<'_>, facts: &mut Vec<Fact>) {
    let Some(condition) = node.child_by_field_name("condition") else {
        return;
    };
    let Some(body) = node.child_by_field_name("consequence") else {
        return;
    };
    let reaction = reaction(source, body);
    let compared = compared(source, condition);
    let n_lines = body.end_position().row - body.start_position().row + 1;
    let says = strings(source, body);
    let is_limit = !compared.is_empty() && terms(&says).len() > 1;
    if n_lines > 12 || (reaction == Reaction::GoesOn && !is_limit) || names_error(source, body) {
        return;
    }
    let condition_text = squeezed(source.text(condition));
    let end = last_statement(body).map_or("", |end| source.text(end));
    let mut fact = Fact::new(
        FactKind::Check,
        format!("{condition_text} {says}"),
        format!("if {}: {}", short(&condition_text), short(end)),
        line(node),
    );
    fact.value = (!compared.is_empty()).then(|| compared.join(", "));
    fact.reaction = Some(reaction);
    fact.around = source.comments(line(node));
    facts.push(fact);
}

/// `"text" if condition else other`: something else is said under a condition.
pub(super) fn of_choice(source: &Source<'_>, node: Node<'_>, facts: &mut Vec<Fact>) {
    let mut cursor = node.walk();
    let parts: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
    let [then, condition, other] = parts[..] else {
        return;
    };
    let said: Vec<String> = [then, other]
        .into_iter()
        .filter_map(|part| source.string(part))
        .filter(|text| terms(text).len() > 1)
        .collect();
    if said.is_empty() {
        return;
    }
    let condition_text = squeezed(source.text(condition));
    let compared = compared(source, condition);
    let mut fact = Fact::new(
        FactKind::Check,
        format!("{condition_text} {}", said.join(" ")),
        short(&format!("{} if {condition_text}", said.join(" | "))),
        line(node),
    );
    fact.value = (!compared.is_empty()).then(|| compared.join(", "));
    fact.around = source.comments(line(node));
    facts.push(fact);
}

/// The conditions and handlers that an error stands in, up to its function, and the comments beside it.
fn around(source: &Source<'_>, node: Node<'_>) -> String {
    let mut texts = vec![source.comments(line(node))];
    let mut inner = node;
    while let Some(outer) = inner.parent() {
        match outer.kind() {
            "function_definition" | "class_definition" | "module" => break,
            "if_statement" | "elif_clause"
                if outer.child_by_field_name("consequence") == Some(inner) =>
            {
                texts.push(squeezed(source.field(outer, "condition")));
                texts.push(source.comments(line(outer)));
            }
            "except_clause" => {
                let caught = outer.named_child(0).map_or("", |value| source.text(value));
                texts.push(squeezed(caught));
            }
            _ => {}
        }
        // The nearest two say what it is about; further out it is where it stands.
        if texts.len() > 4 {
            break;
        }
        inner = outer;
    }
    texts.join(" ")
}

/// A call that changes or asks something outside, with what is looked at before.
pub(super) fn of_effect(source: &Source<'_>, call: Node<'_>, facts: &mut Vec<Fact>) {
    let callee = squeezed(source.field(call, "function"));
    let opens = callee == "open" || callee.ends_with(".open");
    let class = match effect(&callee) {
        Some(class) => class,
        None if opens && opens_to_write(source, call) => "writes a file",
        None => return,
    };
    let mut fact = Fact::new(
        FactKind::Effect,
        class,
        short(source.text(call)),
        line(call),
    );
    let leaves = |body| reaction(source, body) != Reaction::GoesOn;
    fact.looks = looks_before(call, &|node| source.text(node), &leaves);
    facts.push(fact);
}

/// `open(path, "w")`.
fn opens_to_write(source: &Source<'_>, call: Node<'_>) -> bool {
    let (positional, keywords) = arguments(source, call);
    let is_mode = |text: &String| text.chars().all(|letter| "rwaxbt+".contains(letter));
    positional
        .iter()
        .chain(keywords.get("mode"))
        .filter_map(|given| source.string(*given))
        .find(is_mode)
        .is_some_and(|mode| mode.contains(['w', 'a', 'x', '+']))
}

/// How a block ends.
fn reaction(source: &Source<'_>, block: Node<'_>) -> Reaction {
    let Some(end) = last_statement(block) else {
        return Reaction::GoesOn;
    };
    match end.kind() {
        "raise_statement" => Reaction::Refuses,
        "return_statement" => {
            let returned = source.text(end).to_lowercase();
            if returned.contains("error") || returned.contains("fail") {
                Reaction::Refuses
            } else {
                Reaction::Leaves
            }
        }
        "continue_statement" | "break_statement" => Reaction::Leaves,
        "expression_statement" => {
            let callee = end
                .named_child(0)
                .filter(|call| call.kind() == "call")
                .map_or("", |call| last(source.field(call, "function")));
            match callee {
                "exit" | "_exit" | "fail" | "error" | "abort" => Reaction::Refuses,
                _ => Reaction::GoesOn,
            }
        }
        _ => Reaction::GoesOn,
    }
}

/// What a condition compares numbers with: `> 2000`.
fn compared(source: &Source<'_>, condition: Node<'_>) -> Vec<String> {
    let mut all = Vec::new();
    each(condition, &mut |node| {
        if node.kind() != "comparison_operator" || node.named_child_count() != 2 {
            return;
        }
        let (Some(left), Some(right)) = (node.named_child(0), node.named_child(1)) else {
            return;
        };
        if let Some(number) = source.number(right).filter(|number| *number > 1) {
            let operator = source.between(left, right).trim().to_owned();
            all.push(format!("{operator} {number}"));
        }
    });
    all
}

/// Whether an error with a message stands in the block; it is a fact of its own.
fn names_error(source: &Source<'_>, block: Node<'_>) -> bool {
    let mut found = false;
    each(block, &mut |node| {
        found |= match node.kind() {
            "raise_statement" => node.named_child(0).is_some_and(|raised| {
                let name = match raised.kind() {
                    "call" => last(source.field(raised, "function")),
                    _ => last(source.text(raised)),
                };
                name.starts_with(char::is_uppercase)
            }),
            "call" => is_exception(last(source.field(node, "function"))),
            _ => false,
        };
    });
    found
}

/// The texts in a block, as far as they say something.
fn strings(source: &Source<'_>, block: Node<'_>) -> String {
    let mut all = String::new();
    each(block, &mut |node| {
        if node.kind() == "string"
            && all.len() < 2 * N_SHOWN
            && let Some(text) = source.string(node)
        {
            all.push_str(&text);
            all.push(' ');
        }
    });
    all
}

fn names_called<'t>(source: &Source<'t>, block: Node<'_>, names: &mut Vec<&'t str>) {
    each(block, &mut |node| {
        if node.kind() == "call" && names.len() < 8 {
            names.push(source.field(node, "function"));
        }
    });
}
