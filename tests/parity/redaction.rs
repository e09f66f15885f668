//! The groups of redaction. Each program has marks of its own, and takes the quotes and brackets
//! around a value or leaves them; compared is what is gone: the same secrets, and nothing else.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use skillopt_harvesters::Redactor;

use super::engine::text;
use super::{Group, Vector, outcome_group};

pub(super) const GROUPS: &[Group] = &[
    outcome_group("sleep/redaction_text", text_of_a_log, |vector| {
        full(&vector.expected)
    }),
    outcome_group("sleep/redaction_value", value, |vector| {
        unmarked_value(&vector.expected)
    }),
    outcome_group("staging/redaction_text", text_of_a_report, |vector| {
        changed_text(&vector.expected)
    }),
    outcome_group("staging/redaction_struct", structure, |vector| {
        unmarked_value(&vector.expected)
    }),
];

/// What stands for either program's mark.
pub(super) const MARK: &str = "[X]";

/// A text with either program's marks made one.
pub(super) fn unmarked(text: &str) -> String {
    static MARKS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\[REDACTED(?:_[A-Z_]+)?\]|\[redacted:[a-z0-9-]+\]").expect("a pattern")
    });
    MARKS.replace_all(text, MARK).into_owned()
}

/// Whether two texts are the same but for what marks stand for.
pub(super) fn differ_by_marks(one: &str, other: &str) -> bool {
    let covers = |marked: &str, text: &str| {
        let parts: Vec<&str> = marked.split(MARK).collect();
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return false;
        };
        let mut rest = match text.strip_prefix(first) {
            Some(rest) if parts.len() > 1 => rest,
            _ => return false,
        };
        for part in &parts[1..parts.len() - 1] {
            match rest.split_once(part) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        rest.ends_with(last)
    };
    // Only one of the programs puts quotes around a mark that had none.
    let bare = |text: &str| text.replace(&format!("\"{MARK}\""), MARK);
    let (one, other) = (bare(one), bare(other));
    one == other || covers(&one, &other) || covers(&other, &one)
}

fn unmarked_value(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(unmarked(text)),
        Value::Array(items) => items.iter().map(unmarked_value).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, member)| (unmarked(key), unmarked_value(member)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn redacted(input: &str) -> String {
    Redactor::new().redact(input).into_owned()
}

/// Our result; the recorded one when the same secrets are gone.
fn settled(input: &str, recorded: &str) -> String {
    let ours = unmarked(&redacted(input));
    let gone = Gone::of(input, recorded, &ours);
    match gone.left.is_empty() && gone.taken.is_empty() {
        true => recorded.to_owned(),
        false => ours,
    }
}

fn text_of_a_log(vector: &Vector) -> Value {
    let recorded = vector.expected.as_str().unwrap_or_default();
    json!(settled(&text(&vector.input, "text"), recorded))
}

fn full(expected: &Value) -> Value {
    json!(unmarked(expected["full"].as_str().unwrap_or_default()))
}

fn text_of_a_report(vector: &Vector) -> Value {
    let input = text(&vector.input, "text");
    let once = redacted(&input);
    json!({
        "text": settled(&input, &text(&vector.expected, "text")),
        "idempotent": redacted(&once) == once,
    })
}

/// Whether a text counts as changed follows from what it is afterwards.
fn changed_text(expected: &Value) -> Value {
    json!({
        "text": unmarked(&text(expected, "text")),
        "idempotent": expected["idempotent"],
    })
}

fn value(vector: &Vector) -> Value {
    unmarked_value(&Redactor::new().redact_value(&vector.input["value"]))
}

fn structure(vector: &Vector) -> Value {
    if let Some(key) = vector.input.get("mapping_key") {
        let member = json!({key.as_str().unwrap_or_default(): 0});
        let whole = Redactor::new().redact_value(&member) != member;
        return json!({"is_secret": whole});
    }
    json!({"value": value(vector)})
}

/// How two redacted forms of a text differ in what is gone from it.
struct Gone {
    /// Gone from the recorded form alone.
    left: Vec<String>,
    /// Gone from ours alone.
    taken: Vec<String>,
}

impl Gone {
    fn of(input: &str, recorded: &str, ours: &str) -> Self {
        let only_from = |one: &str, other: &str| {
            let values = removed(input, one).into_iter();
            values
                .filter(|value| other.matches(value).count() > one.matches(value).count())
                .collect()
        };
        Gone {
            left: only_from(recorded, ours),
            taken: only_from(ours, recorded),
        }
    }
}

/// The parts of a text in whose place there are marks, without what encloses them.
fn removed(input: &str, redacted: &str) -> Vec<String> {
    let kept: Vec<&str> = redacted.split(MARK).collect();
    let mut values = Vec::new();
    // The original puts quotes around what had none.
    let quote = ['"', '\''];
    let start = input.strip_prefix(kept[0]);
    let start = start.or_else(|| input.strip_prefix(kept[0].trim_end_matches(quote)));
    let mut rest = start.unwrap_or(input);
    for &part in &kept[1..] {
        let spellings = [
            part,
            part.trim_start_matches(quote),
            part.trim_end_matches(quote),
            part.trim_matches(quote),
        ];
        let as_given = spellings.into_iter().find(|part| rest.contains(part));
        let part = as_given.unwrap_or(part);
        let end = match part {
            "" => rest.len(),
            part => rest.find(part).unwrap_or(rest.len()),
        };
        let bare = rest[..end].trim_matches(|letter: char| !letter.is_alphanumeric());
        if !bare.is_empty() {
            values.push(bare.to_owned());
        }
        rest = rest.get(end + part.len()..).unwrap_or_default();
    }
    values
}

/// The conditions of deviations that are about what is gone from a text.
pub(super) fn holds(name: &str, vector: &Vector, ours: &Value) -> Option<bool> {
    let of = |result: &Value| match result.as_str() {
        Some(text) => text.to_owned(),
        None => text(result, "text"),
    };
    let (recorded, ours) = (of(&vector.expected), of(ours));
    let input = text(&vector.input, "text");
    let gone = Gone::of(&input, &recorded, &ours);
    Some(match name {
        "key_is_a_secret" => {
            let keys = vector.input["value"].as_object().into_iter().flatten();
            keys.into_iter().any(|(key, _)| redacted(key) != *key)
        }
        "leaves_plain_values" => {
            !gone.left.is_empty() && gone.left.iter().all(|value| is_plain(&input, value))
        }
        "takes_more_values" => gone.left.is_empty() && !gone.taken.is_empty(),
        "only_values_are_gone" => {
            let again = redacted(&redacted(&input)) == redacted(&input);
            let one_line = |value: &String| !value.contains('\n') || value.contains("PRIVATE KEY");
            again && gone.taken.iter().all(one_line)
        }
        _ => return None,
    })
}

/// Whether a value is none that anybody keeps secret: a word or a number as code and prose
/// have them, a mark, a path, a name to be filled in.
fn is_plain(input: &str, value: &str) -> bool {
    const SHORT_NUMBER: usize = 6;
    let short_number =
        value.len() < SHORT_NUMBER && value.bytes().all(|byte| byte.is_ascii_digit());
    let words = value
        .split(|letter: char| !letter.is_alphabetic())
        .all(|word| word.len() < 16);
    let no_digits = !value.bytes().any(|byte| byte.is_ascii_digit());
    short_number
        || no_digits && words
        // In the middle of a word, where no key begins.
        || input
            .split_once(value)
            .is_some_and(|(before, _)| before.ends_with(|last: char| last.is_alphanumeric()))
        // A brace that is never closed: a template, not the value of a connection string.
        || input.contains(&format!("{{{value}")) && !input.contains(&format!("{value}}}"))
}
