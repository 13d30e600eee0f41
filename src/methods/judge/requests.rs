//! Assertions on requests: which of them, and what of each is looked at.

use super::location;
use super::order::in_order;
use super::values::{Held, Looked, Seen, compiled_path, select, test_values};
use crate::domain::case::Bindings;
use crate::domain::evidence::{Evidence, Exchange};
use crate::domain::expect::{Expect, Pick, PickNamed};

/// A request, where it stands, and when it came since the first launch began.
struct Numbered<'a> {
    launch: usize,
    place: String,
    at_ms: u64,
    exchange: &'a Exchange,
}

pub(super) fn requests(
    expect: &Expect,
    evidence: &Evidence,
    bindings: &Bindings,
) -> Result<Held, Seen> {
    let launches = super::launches(expect, evidence, true);
    let all: Vec<Numbered> = launches
        .iter()
        .flat_map(|(launch, seen)| {
            let numbered = seen.requests.iter().enumerate();
            numbered.map(move |(idx, exchange)| Numbered {
                launch: *launch,
                place: format!("launch {launch}, request {}", idx + 1),
                at_ms: seen.started_ms + exchange.at_ms,
                exchange,
            })
        })
        .collect();
    let mut main = all.iter().filter(|one| !one.exchange.side);
    let mut picked: Vec<&Numbered> = match expect.request {
        None | Some(Pick::Named(PickNamed::Any)) => all.iter().collect(),
        Some(Pick::Named(PickNamed::Side)) => all.iter().filter(|one| one.exchange.side).collect(),
        Some(Pick::Named(PickNamed::First)) => main.take(1).collect(),
        Some(Pick::Named(PickNamed::Last)) => main.next_back().into_iter().collect(),
        Some(Pick::Nth(n)) => main.skip(n.saturating_sub(1)).take(1).collect(),
    };
    if !expect.order.is_empty() {
        // Launches that ran beside each other asked in turns.
        picked.sort_by_key(|one| one.at_ms);
    }
    let none = || match (picked.len(), all.len()) {
        (0, n) => format!("no such request among {n}"),
        (n, _) => format!("nothing at that path in {n} requests"),
    };
    // Where nothing is found, the reader looks at what was made at all.
    let searched = match picked.as_slice() {
        [one] => one.place.clone(),
        _ => match launches.as_slice() {
            [(number, _)] => format!("launch {number}, requests"),
            _ => "requests".to_owned(),
        },
    };
    if let Some(range) = expect.after_ms {
        let one = picked.last().ok_or_else(|| Seen {
            saw: none(),
            place: searched.clone(),
        })?;
        let gap = gap(one, &all).ok_or_else(|| Seen {
            saw: "no request with tools came before it in its launch".to_owned(),
            place: one.place.clone(),
        })?;
        if !range.holds(usize::try_from(gap).unwrap_or(usize::MAX)) {
            return Err(Seen {
                saw: format!("{gap} ms after the one before"),
                place: one.place.clone(),
            });
        }
    }
    let looked: Vec<Looked> = match (&expect.at, &expect.header) {
        (Some(at), _) => {
            let path = compiled_path(at, bindings)?;
            picked
                .iter()
                .flat_map(|one| {
                    select(&path, one.exchange.chat(), |at| {
                        format!("{}, {}", one.place, location::of_request(at))
                    })
                })
                .collect()
        }
        (None, Some(name)) => picked
            .iter()
            .filter_map(|one| {
                Some(Looked {
                    value: one.exchange.headers.get(name)?.as_str().into(),
                    place: format!("{}, header {name}", one.place),
                })
            })
            .collect(),
        (None, None) => picked
            .iter()
            .map(|one| Looked {
                value: one.exchange.chat().clone(),
                place: one.place.clone(),
            })
            .collect(),
    };
    in_order(&expect.order, bindings, &looked, &searched)?;
    test_values(expect, bindings, looked, &searched, none)
}

/// Milliseconds since the request with tools before it in its launch.
fn gap(one: &Numbered, all: &[Numbered]) -> Option<u64> {
    let earlier = all
        .iter()
        .take_while(|other| !std::ptr::eq(*other, one))
        .filter(|other| other.launch == one.launch && !other.exchange.side);
    Some(one.at_ms.saturating_sub(earlier.last()?.at_ms))
}
