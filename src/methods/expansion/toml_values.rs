//! Values and keys of TOML as a person would write them: on one line, in the fewest escapes, in columns.

use serde_json::Value as Json;
use toml_edit::{InlineTable, Item, Key, Table, Value};

use crate::domain::case::{Entry, Made};

/// Sets a plain key.
pub(super) fn put(table: &mut Table, key: &str, value: Value) {
    put_as(table, Key::new(key), value);
}

/// Replaces the value and keeps what stands around it; a new key goes to the end.
pub(super) fn put_as(table: &mut Table, key: Key, value: Value) {
    match table.get_mut(key.get()).and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        None => {
            table.insert_formatted(&key, Item::Value(value.decorated(" ", "")));
        }
    }
}

pub(super) fn put_inline(table: &mut InlineTable, key: &str, value: Value) {
    match table.get_mut(key) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        None => {
            table.insert(key, value);
        }
    }
}

/// Paths are quoted, as people write them.
pub(super) fn quoted_key(name: &str) -> Key {
    let mut keys = Key::parse(&string(name).to_string()).expect("a quoted text is a key");
    keys.remove(0)
}

/// Pads the keys of a table so that its signs `=` stand below each other.
pub(super) fn align(table: &mut Table) {
    let widths: Vec<usize> = table
        .iter()
        .filter(|(_, item)| item.is_value())
        .filter_map(|(key, _)| table.key(key))
        .map(|key| key.display_repr().chars().count())
        .collect();
    let width = widths.iter().copied().max().unwrap_or(0);
    let names: Vec<String> = table
        .iter()
        .filter(|(_, item)| item.as_value().is_some_and(|value| !spans_lines(value)))
        .map(|(key, _)| key.to_owned())
        .collect();
    for name in names {
        if let Some(mut key) = table.key_mut(&name) {
            let n_blanks = width + 1 - key.display_repr().chars().count();
            key.leaf_decor_mut().set_suffix(" ".repeat(n_blanks));
        }
    }
}

/// A script stands on its own lines and needs no column.
pub(super) fn spans_lines(value: &Value) -> bool {
    value.to_string().contains('\n')
}

/// A text on one line, in the quotes that need the fewest escapes.
pub(super) fn string(text: &str) -> Value {
    let plain = !text.contains(['\'', '\\']) && !text.chars().any(char::is_control);
    let repr = if plain && text.contains('"') {
        format!("'{text}'")
    } else {
        let mut repr = String::from("\"");
        for letter in text.chars() {
            match letter {
                '"' => repr.push_str("\\\""),
                '\\' => repr.push_str("\\\\"),
                '\n' => repr.push_str("\\n"),
                '\r' => repr.push_str("\\r"),
                '\t' => repr.push_str("\\t"),
                letter if letter.is_control() => {
                    repr.push_str(&format!("\\u{:04X}", letter as u32))
                }
                letter => repr.push(letter),
            }
        }
        repr.push('"');
        repr
    };
    repr.parse().expect("escaped text is a TOML string")
}

/// An object with the keys named first in that order, then the others in theirs.
pub(super) fn ordered(json: &Json, first: &[String]) -> Json {
    let Json::Object(map) = json else {
        return json.clone();
    };
    let known = first.iter().filter_map(|key| map.get_key_value(key));
    let others = map.iter().filter(|(key, _)| !first.contains(key));
    known
        .chain(others)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// JSON as an inline value; `null` cannot be said and is left out.
pub(super) fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => string(""),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::from(whole),
            None => Value::from(number.as_f64().expect("a JSON number is a float")),
        },
        Json::String(text) => string(text),
        Json::Array(items) => Value::Array(items.iter().map(value_of).collect()),
        Json::Object(map) => {
            let mut table = InlineTable::new();
            for (key, value) in map {
                table.insert(key, value_of(value));
            }
            table.fmt();
            Value::InlineTable(table)
        }
    }
}

pub(super) fn has_null(json: &Json) -> bool {
    match json {
        Json::Null => true,
        Json::Array(items) => items.iter().any(has_null),
        Json::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

pub(super) fn entry_value(entry: &Entry) -> Value {
    match entry {
        Entry::Text(text) => string(text),
        Entry::Made(made) => made_value(made),
    }
}

pub(super) fn made_value(made: &Made) -> Value {
    let json = serde_json::to_value(made).expect("an entry is plain data");
    value_of(&json)
}

pub(super) fn swap_item(item: &mut Item, key: &str, change: &mut dyn FnMut(&str, &str) -> String) {
    match item {
        Item::Value(value) => swap_value(value, key, change),
        Item::Table(table) => {
            for (key, item) in table.iter_mut() {
                swap_item(item, key.get(), change);
            }
        }
        Item::ArrayOfTables(tables) => {
            for table in tables.iter_mut() {
                for (key, item) in table.iter_mut() {
                    swap_item(item, key.get(), change);
                }
            }
        }
        Item::None => {}
    }
}

pub(super) fn swap_value(
    value: &mut Value,
    key: &str,
    change: &mut dyn FnMut(&str, &str) -> String,
) {
    match value {
        Value::String(text) => {
            let changed = change(key, text.value());
            if changed != *text.value() {
                let decor = value.decor().clone();
                *value = string(&changed);
                *value.decor_mut() = decor;
            }
        }
        Value::Array(array) => {
            for item in array.iter_mut() {
                swap_value(item, key, change);
            }
        }
        Value::InlineTable(table) => {
            for (key, item) in table.iter_mut() {
                swap_value(item, key.get(), change);
            }
        }
        _ => {}
    }
}
