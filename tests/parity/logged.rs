//! What the logs of a vector hold, as plain records: for saying which of a digest's texts come from
//! where.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;
use skillopt_harvesters::Redactor;

use super::Vector;
use super::redaction::unmarked;

/// The records of a session's log that are JSON.
pub(super) fn records(vector: &Vector, session: &str) -> Vec<Value> {
    let log = vector.input["files"][session].as_str().unwrap_or_default();
    log.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Every value within a value, itself among them.
pub(super) fn within(value: &Value) -> Vec<&Value> {
    let below: Vec<&Value> = match value {
        Value::Array(items) => items.iter().flat_map(within).collect(),
        Value::Object(members) => members.values().flat_map(within).collect(),
        _ => Vec::new(),
    };
    std::iter::once(value).chain(below).collect()
}

/// The texts in a value, as a digest would have them.
pub(super) fn texts_within(value: &Value) -> BTreeSet<String> {
    let texts = within(value).into_iter().filter_map(Value::as_str);
    texts.map(plain).collect()
}

/// A text as it is compared.
pub(super) fn plain(text: &str) -> String {
    static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);
    unmarked(&REDACTOR.redact(text))
        .replace('\0', "")
        .trim()
        .to_owned()
}

/// What the original makes of values that are no texts where texts belong.
pub(super) fn made_texts(records: &[Value]) -> BTreeSet<String> {
    const PLACES: [&str; 6] = ["text", "message", "cwd", "name", "gitBranch", "toolName"];
    let objects = records.iter().flat_map(within).filter_map(Value::as_object);
    let values = objects.flat_map(|object| PLACES.iter().filter_map(|place| object.get(*place)));
    values
        .filter(|value| !value.is_string())
        .map(as_python)
        .collect()
}

/// A value as Python writes it.
fn as_python(value: &Value) -> String {
    let listed = |items: Vec<String>| items.join(", ");
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => format!("'{text}'"),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => format!("[{}]", listed(items.iter().map(as_python).collect())),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(key, member)| format!("'{key}': {}", as_python(member)));
            format!("{{{}}}", listed(members.collect()))
        }
    }
}

/// Whether the times of a log do not say how long its session took or when it ended: there is one
/// moment only, they are no texts, or they run backwards.
pub(super) fn has_odd_times(records: &[Value]) -> bool {
    let times: Vec<&Value> = records
        .iter()
        .filter_map(|record| record.get("timestamp"))
        .collect();
    let texts: Vec<&str> = times.iter().filter_map(|time| time.as_str()).collect();
    let moments: BTreeSet<&str> = texts.iter().copied().collect();
    !times.is_empty() && (texts.len() < times.len() || moments.len() < 2 || !texts.is_sorted())
}

/// Whether a record of a log whose records have kinds does not say what it is, or who speaks in it:
/// the kind is no text, or the kind and the speaker contradict each other.
pub(super) fn says_not_what_it_is(record: &Value) -> bool {
    let Some(kind) = record.get("type").and_then(Value::as_str) else {
        return true;
    };
    let message = &record["message"];
    let is_turn = matches!(kind, "user" | "assistant");
    is_turn && message.is_object() && message["role"] != kind || kind.trim().is_empty()
}
