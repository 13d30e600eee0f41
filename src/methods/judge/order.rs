//! Values that have to come in a certain order.

use serde_json::Value;

use super::values::{Looked, Seen, as_text, compiled_pattern, short};
use crate::domain::case::Bindings;
use crate::domain::expect::Condition;

/// Each condition is met by a value behind the one that met the condition before it.
pub(super) fn in_order(
    order: &[Condition],
    bindings: &Bindings,
    looked: &[Looked],
    searched: &str,
) -> Result<(), Seen> {
    let mut next = 0;
    for (idx, condition) in order.iter().enumerate() {
        let mut found = None;
        for (value_idx, one) in looked.iter().enumerate().skip(next) {
            if is_met(condition, bindings, &one.value)? {
                found = Some(value_idx);
                break;
            }
        }
        if let Some(value_idx) = found {
            next = value_idx + 1;
            continue;
        }
        let mut early = None;
        for one in &looked[..next] {
            if is_met(condition, bindings, &one.value)? {
                early = Some(one);
            }
        }
        let behind = match next {
            0 => String::new(),
            n => format!(" behind number {n}, which met the one before"),
        };
        return Err(Seen {
            saw: match early {
                Some(one) => format!(
                    "condition {} is met too early, by {}",
                    idx + 1,
                    short(&as_text(&one.value))
                ),
                None => format!(
                    "condition {} is met by none of {} values{behind}",
                    idx + 1,
                    looked.len()
                ),
            },
            place: early
                .or(looked.last())
                .map_or(searched.to_owned(), |one| one.place.clone()),
        });
    }
    Ok(())
}

fn is_met(condition: &Condition, bindings: &Bindings, value: &Value) -> Result<bool, Seen> {
    let text = as_text(value);
    let has = condition.has.iter().flat_map(|texts| texts.as_slice());
    let mut has = has.map(|wanted| bindings.expand(wanted));
    let matches = match &condition.matches {
        Some(one) => compiled_pattern(one, bindings)?.is_match(&text),
        None => true,
    };
    let equals = condition
        .equals
        .as_ref()
        .is_none_or(|wanted| bindings.expand_json(wanted) == *value);
    let mut like = condition.like.iter();
    Ok(matches
        && equals
        && has.all(|wanted| text.contains(&wanted))
        && like.all(|(name, wanted)| value.get(name) == Some(&bindings.expand_json(wanted))))
}
