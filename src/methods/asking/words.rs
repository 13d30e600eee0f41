//! Which assertions can be made about a harness that does not speak the contract's words.
//!
//! What a case brings along itself (nonces, and texts of its fixture, prompts and script) reaches the channels of any
//! harness; `error: denied: …`, line numbers and JSON keys are the contract's. An assertion of the second sort is left
//! out, or weakened to the nonces in it where it implies them. Files of the workspace and the exit code 0 mean the same
//! everywhere.

use serde_json::Value;

use super::scenario::is_of_contract;
use crate::domain::case::Case;
use crate::domain::clause::Channel;
use crate::domain::expect::{Count, Expect, Pick, PickNamed, Stream, Texts};

/// What is left of an assertion.
enum Kept {
    Whole(Expect),
    Weaker(Expect),
    Nothing,
}

/// The assertions that are left; an error when none of them can tell whether the case holds.
pub(super) fn kept(case: &Case) -> Result<Vec<Expect>, String> {
    let own = own_texts(case);
    let mut expects = Vec::new();
    let mut tells = false;
    for expect in &case.expects {
        match reduced(expect, &own) {
            Kept::Whole(expect) => {
                // That it ended well says nothing about a clause; of a control nothing more is wanted.
                tells |= case.is_control() || expect.channel != Some(Channel::Exit);
                expects.push(expect);
            }
            Kept::Weaker(expect) => {
                tells |= case.is_control() || expect.has.is_some();
                expects.push(expect);
            }
            Kept::Nothing => {}
        }
    }
    match tells {
        true => Ok(expects),
        false => Err("it asserts in words of the contract only".to_owned()),
    }
}

fn reduced(expect: &Expect, own: &[String]) -> Kept {
    if !expect.any.is_empty() {
        return any(&expect.any, own);
    }
    if !expect.all.is_empty() {
        return all(&expect.all, own);
    }
    if let Some(inner) = &expect.not {
        return match reduced(inner, own) {
            Kept::Whole(_) => Kept::Whole(expect.clone()),
            Kept::Weaker(_) | Kept::Nothing => Kept::Nothing,
        };
    }
    // What is caught is found by the contract's words.
    if expect.bind.is_some() || mentions_bound(expect) {
        return Kept::Nothing;
    }
    match expect.channel {
        Some(Channel::Files) => match expect.path.as_deref() {
            // A harness keeps what it likes in its home.
            Some(path) if path.starts_with("{home}") || is_of_contract(path) => Kept::Nothing,
            _ => Kept::Whole(expect.clone()),
        },
        Some(Channel::Exit) => exit(expect),
        Some(Channel::Output) => output(expect, own),
        Some(Channel::Requests) => requests(expect, own),
        None => Kept::Nothing,
    }
}

/// One of several is only implied when something is left of each.
fn any(members: &[Expect], own: &[String]) -> Kept {
    let left = Left::of(members, own);
    if left.lost {
        return Kept::Nothing;
    }
    left.kept(|any| Expect {
        any,
        ..Expect::default()
    })
}

/// Of all of several some are implied.
fn all(members: &[Expect], own: &[String]) -> Kept {
    let left = Left::of(members, own);
    if left.expects.is_empty() {
        return Kept::Nothing;
    }
    left.kept(|all| Expect {
        all,
        ..Expect::default()
    })
}

/// What is left of the members of a group.
struct Left {
    expects: Vec<Expect>,
    /// One of them says less than its member did.
    weaker: bool,
    /// Of one member nothing is left.
    lost: bool,
}

impl Left {
    fn of(members: &[Expect], own: &[String]) -> Self {
        let mut left = Self {
            expects: Vec::new(),
            weaker: false,
            lost: false,
        };
        for member in members {
            match reduced(member, own) {
                Kept::Whole(expect) => left.expects.push(expect),
                Kept::Weaker(expect) => {
                    left.weaker = true;
                    left.expects.push(expect);
                }
                Kept::Nothing => left.lost = true,
            }
        }
        left
    }

    fn kept(self, group: impl FnOnce(Vec<Expect>) -> Expect) -> Kept {
        let expect = group(self.expects);
        match self.weaker || self.lost {
            true => Kept::Weaker(expect),
            false => Kept::Whole(expect),
        }
    }
}

fn mentions_bound(expect: &Expect) -> bool {
    let value = serde_json::to_value(expect).expect("an assertion is plain data");
    let mut texts = Vec::new();
    collect(&value, &mut texts);
    texts.iter().any(|text| text.contains("{bound:"))
}

/// Codes but 0 are the contract's; that a run fails is not.
fn exit(expect: &Expect) -> Kept {
    let is_zero = |value: &Value| value.as_i64() == Some(0);
    if expect.equals.as_ref().is_some_and(is_zero)
        || expect.not_equals.as_ref().is_some_and(is_zero)
    {
        return Kept::Whole(expect.clone());
    }
    let fails =
        expect.equals.is_some() || (!expect.one_of.is_empty() && !expect.one_of.contains(&0));
    match fails {
        true => Kept::Weaker(Expect {
            channel: expect.channel,
            launch: expect.launch,
            not_equals: Some(0.into()),
            ..Expect::default()
        }),
        false => Kept::Nothing,
    }
}

fn output(expect: &Expect, own: &[String]) -> Kept {
    if expect.at.is_some() || expect.lines || expect.stream == Some(Stream::Screen) {
        return Kept::Nothing;
    }
    let base = Expect {
        channel: expect.channel,
        launch: expect.launch,
        stream: expect.stream,
        ..Expect::default()
    };
    // What a harness tells people on standard error is its own affair.
    let answers = matches!(expect.stream, None | Some(Stream::Stdout));
    texts(expect, base, own, answers)
}

fn requests(expect: &Expect, own: &[String]) -> Kept {
    let Some(at) = &expect.at else {
        return match expect.count {
            Some(Count::Exactly(0)) => Kept::Whole(expect.clone()),
            _ => Kept::Nothing,
        };
    };
    if expect.request == Some(Pick::Named(PickNamed::Side)) || expect.header.is_some() {
        return Kept::Nothing;
    }
    if at == "$.model" && expect.after_ms.is_none() {
        return Kept::Whole(expect.clone());
    }
    let base = |at: &str| Expect {
        channel: expect.channel,
        launch: expect.launch,
        request: expect.request,
        at: Some(at.to_owned()),
        ..Expect::default()
    };
    match place(at) {
        Place::Anywhere => texts(expect, base(at), own, true),
        // Only the contract fixes the number of a message.
        Place::Numbered if expect.lacks.is_none() => {
            weaker(texts(expect, base("$.messages[*].content"), own, true))
        }
        Place::Numbered | Place::Elsewhere => Kept::Nothing,
    }
}

enum Place {
    /// Messages by their role or by the id of a call.
    Anywhere,
    /// A message by its number.
    Numbered,
    Elsewhere,
}

fn place(at: &str) -> Place {
    let Some(rest) = at.strip_prefix("$.messages[") else {
        return Place::Elsewhere;
    };
    let Some((selector, rest)) = rest.split_once(']') else {
        return Place::Elsewhere;
    };
    let by = ["?@.role == '", "?@.tool_call_id == '"];
    let chosen = by
        .iter()
        .find_map(|by| selector.strip_prefix(by))
        .is_some_and(|name| name.matches('\'').count() == 1);
    match rest {
        ".content" | "" if selector == "*" || chosen => Place::Anywhere,
        ".content" | "" if selector.parse::<i64>().is_ok() => Place::Numbered,
        _ => Place::Elsewhere,
    }
}

/// The tests on texts, on top of `base`; `positive` keeps those that want a text to be there.
fn texts(expect: &Expect, base: Expect, own: &[String], positive: bool) -> Kept {
    let mut left = base;
    let mut whole = expect.matches.is_none()
        && expect.lacks_match.is_none()
        && expect.not_equals.is_none()
        && expect.order.is_empty()
        && expect.after_ms.is_none()
        && expect.count.is_none();
    let mut wanted = Vec::new();
    for text in expect.has.iter().flat_map(Texts::as_slice) {
        if !positive {
            whole = false;
        } else if own.iter().any(|one| one.contains(text)) {
            wanted.push(text.clone());
        } else {
            whole = false;
            wanted.extend(nonces(text));
        }
    }
    if let Some(value) = &expect.equals {
        whole = false;
        if positive {
            wanted.extend(nonces(value.as_str().unwrap_or_default()));
        }
    }
    let mut unwanted = Vec::new();
    for text in expect.lacks.iter().flat_map(Texts::as_slice) {
        match nonces(text).is_empty() {
            true => whole = false,
            false => unwanted.push(text.clone()),
        }
    }
    wanted.dedup();
    left.has = (!wanted.is_empty()).then_some(Texts::All(wanted));
    left.lacks = (!unwanted.is_empty()).then_some(Texts::All(unwanted));
    match (left.has.is_none() && left.lacks.is_none(), whole) {
        (true, _) => Kept::Nothing,
        (false, true) => Kept::Whole(left),
        (false, false) => Kept::Weaker(left),
    }
}

fn weaker(kept: Kept) -> Kept {
    match kept {
        Kept::Whole(expect) | Kept::Weaker(expect) => Kept::Weaker(expect),
        Kept::Nothing => Kept::Nothing,
    }
}

/// The placeholders of nonces in a text, braces and all.
fn nonces(text: &str) -> Vec<String> {
    text.match_indices("{nonce:")
        .filter_map(|(start, _)| {
            let rest = &text[start..];
            Some(rest[..=rest.find('}')?].to_owned())
        })
        .collect()
}

/// Every text that the fixture and the launches hold.
fn own_texts(case: &Case) -> Vec<String> {
    let value = serde_json::to_value((&case.fixture, &case.launches))
        .expect("a case is plain data with string keys");
    let mut texts = Vec::new();
    collect(&value, &mut texts);
    texts
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(table) => table.values().for_each(|item| collect(item, texts)),
        _ => {}
    }
}
