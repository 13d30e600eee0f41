//! A script's calls in the words of the harness: tool by tool, argument by argument.

use serde_json::{Map, Value};

use crate::domain::adapter::{Adapter, SayForm, ToolForm};
use crate::domain::case::{Call, Reply};

/// Translates a step in place; the error says what the adapter cannot express.
pub(super) fn translate(reply: &mut Reply, adapter: &Adapter) -> Result<(), String> {
    if let Some(fault) = &reply.fault
        && !adapter.faults.contains(fault)
    {
        return Err("a fault of the model that it does not meet in time".to_owned());
    }
    if let Some(name) = reply.call.take() {
        let call = Call {
            call: name,
            with: reply.with.take(),
            id: reply.id.take(),
        };
        let call = translated(&call, adapter)?;
        (reply.call, reply.with, reply.id) = (Some(call.call), call.with, call.id);
    }
    for call in &mut reply.calls {
        *call = translated(call, adapter)?;
    }
    let ends_turn = reply.call.is_none() && reply.calls.is_empty() && !reply.is_side();
    if let (Some(form), true, Some(text)) = (&adapter.say, ends_turn, &reply.say) {
        let (call, with) = said(form, text);
        (reply.call, reply.with, reply.say) = (Some(call), Some(with), None);
    }
    Ok(())
}

fn translated(call: &Call, adapter: &Adapter) -> Result<Call, String> {
    let form = adapter
        .tools
        .get(&call.call)
        .ok_or_else(|| format!("it has no tool like {}", call.call))?;
    let with = match &call.with {
        Some(Value::String(raw)) => match serde_json::from_str(raw) {
            Ok(Value::Object(table)) => {
                let table = renamed(&table, &call.call, form)?;
                Value::String(Value::Object(table).to_string())
            }
            _ if adapter.whole_arguments => {
                return Err("its protocol carries no broken arguments".to_owned());
            }
            // What is no object is as broken in any tool's words.
            _ => Value::String(raw.clone()),
        },
        Some(Value::Object(table)) => Value::Object(renamed(table, &call.call, form)?),
        Some(other) => other.clone(),
        None => Value::Object(renamed(&Map::new(), &call.call, form)?),
    };
    Ok(Call {
        call: form.name.clone(),
        with: Some(with),
        id: call.id.clone(),
    })
}

fn renamed(
    table: &Map<String, Value>,
    tool: &str,
    form: &ToolForm,
) -> Result<Map<String, Value>, String> {
    let constants = form.constants.iter();
    let mut out: Map<String, Value> = constants
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, value) in table {
        let own = form
            .arguments
            .get(name)
            .ok_or_else(|| format!("its tool like {tool} has no argument like {name}"))?;
        let value = match value {
            Value::String(path) if form.absolute.contains(name) => absolute(path).into(),
            // A number with a fraction is wrong on purpose, and stays so.
            Value::Number(number) => number.as_i64().map_or(value.clone(), |number| {
                let times = form.times.get(name).unwrap_or(&1);
                let plus = form.plus.get(name).unwrap_or(&0);
                number.saturating_mul(*times).saturating_add(*plus).into()
            }),
            _ => value.clone(),
        };
        out.insert(own.clone(), value);
    }
    Ok(out)
}

fn absolute(path: &str) -> String {
    if path.starts_with(['/', '{']) {
        path.to_owned()
    } else {
        format!("{{workspace}}/{path}")
    }
}

fn said(form: &SayForm, text: &str) -> (String, Value) {
    let with = form.with.iter();
    let with = with.map(|(name, value)| (name.clone(), value.replace("{say}", text).into()));
    (form.call.clone(), Value::Object(with.collect()))
}
