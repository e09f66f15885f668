//! What the logs of a vector hold, as plain records: for saying which of a digest's texts come from
//! where.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::Timestamp;
use rusqlite::Connection;
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

/// Whether a vector has a session at all.
pub(super) fn exists(vector: &Vector, session: &str) -> bool {
    let input = &vector.input;
    let sql = input["sql"].as_str().unwrap_or_default();
    // Transcripts of one document each are named in it, or have its file's name.
    let files = input["files"].as_object().into_iter().flatten();
    let mut named = files.filter_map(|(path, content)| Some((path, content.as_str()?)));
    input["files"].get(session).is_some()
        || sql.contains(&format!("'{session}'"))
        || input.get("workspaces").is_some()
            && named.any(|(path, content)| {
                path.ends_with(&format!("/{session}.json"))
                    || content.contains(&format!("\"session_id\": \"{session}\""))
            })
}

/// The database of a vector.
fn database(vector: &Vector) -> Option<Connection> {
    let database = Connection::open_in_memory().ok()?;
    let sql = vector.input["sql"].as_str()?;
    database.execute_batch(sql).ok()?;
    Some(database)
}

/// Whether the original passes over a session of a database: a table or column is not there, a row
/// of its conversation is no JSON object, its folder or its times are none.
pub(super) fn is_irregular_row(vector: &Vector, session: &str) -> bool {
    const TABLES: [(&str, [&str; 3]); 2] = [
        (
            "session-store.db",
            [
                "SELECT id, cwd, repository, branch, created_at, updated_at FROM sessions",
                "SELECT session_id, turn_index, user_message, assistant_response FROM turns",
                "SELECT session_id, file_path, tool_name FROM session_files",
            ],
        ),
        (
            "opencode.db",
            [
                "SELECT id, parent_id, directory, agent, time_created, time_updated FROM session",
                "SELECT id, session_id, time_created, data FROM message",
                "SELECT id, message_id, session_id, time_created, data FROM part",
            ],
        ),
    ];
    const ODD_SESSION: &str = "SELECT 1 FROM session WHERE id = ?1 AND (directory NOT LIKE '/%'
        OR typeof(time_created) = 'text' OR typeof(time_updated) = 'text'
        OR coalesce(time_created, 0) <= 0 OR coalesce(time_updated, 0) <= 0)";
    const ODD_DATA: &str = "SELECT 1 FROM (SELECT session_id, data FROM message
        UNION ALL SELECT session_id, data FROM part)
        WHERE session_id = ?1 AND NOT (json_valid(data) AND json_type(data) = 'object')";
    let (Some(database), true) = (database(vector), exists(vector, session)) else {
        return false;
    };
    let name = vector.input["db"].as_str().unwrap_or_default();
    let has = |query: &str| {
        database
            .prepare(query)
            .and_then(|mut query| query.exists([session]))
    };
    let tables = TABLES.iter().find(|(known, _)| *known == name);
    let mut queries = tables.into_iter().flat_map(|(_, queries)| queries);
    queries.any(|query| database.prepare(query).is_err())
        || name == "opencode.db"
            && (has(ODD_SESSION).unwrap_or(false) || has(ODD_DATA).unwrap_or(false))
}

/// Whether the bound of a vector and the end of a session are so near that the original's way of
/// comparing them decides: by day, by text, or strictly. An end or a bound that is no time is near.
pub(super) fn ends_near_the_bound(vector: &Vector, session: &str) -> bool {
    let since = vector.input["options"]["since_iso"]
        .as_str()
        .unwrap_or_default();
    let Some(bound) = instant(since) else {
        return true;
    };
    if let Some(seconds) = vector.input["mtimes"][session].as_f64() {
        let is_cursor = session.contains("agent-transcripts");
        return is_cursor && (seconds - bound.as_second() as f64).abs() < 1.0;
    }
    let ended: Option<String> = database(vector).and_then(|database| {
        let query = "SELECT updated_at FROM sessions WHERE id = ?1";
        database.query_row(query, [session], |row| row.get(0)).ok()
    });
    let is_store = vector.input["db"] == "session-store.db";
    is_store
        && ended.is_none_or(|ended| instant(&ended).is_none() || ended.get(..10) == since.get(..10))
}

/// The instant that a text names, as far as people write times: one without an offset is UTC here,
/// one without seconds is at their beginning.
pub(super) fn instant(text: &str) -> Option<Timestamp> {
    let text = text.trim().replacen(' ', "T", 1);
    text.parse::<Timestamp>()
        .or_else(|_| format!("{text}Z").parse())
        .ok()
}
