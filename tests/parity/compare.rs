//! Comparing a result with a recorded one.

use serde_json::Value;

/// How `ours` differs from `expected`, one line a difference.
///
/// Numbers may differ by 1e-9; any error stands for any other; `<any text>` and
/// `<any non-empty text>` stand for free wording. With `partly`, only the keys of `expected` count.
pub(super) fn differences(expected: &Value, ours: &Value, partly: bool) -> Vec<String> {
    let mut found = Vec::new();
    compare("", expected, ours, partly, &mut found);
    found
}

fn compare(path: &str, expected: &Value, ours: &Value, partly: bool, found: &mut Vec<String>) {
    let same = match (expected, ours) {
        (Value::Object(expected), Value::Object(ours)) => {
            if is_error(expected) && is_error(ours) {
                return;
            }
            for (key, value) in expected {
                compare(
                    &format!("{path}.{key}"),
                    value,
                    ours.get(key).unwrap_or(&ABSENT),
                    partly,
                    found,
                );
            }
            let extra: Vec<&String> = ours
                .keys()
                .filter(|key| !expected.contains_key(*key))
                .collect();
            if !extra.is_empty() && !partly {
                found.push(format!("{path}: we also have {extra:?}"));
            }
            return;
        }
        (Value::Array(expected), Value::Array(ours)) => {
            for (index, (expected, ours)) in expected.iter().zip(ours).enumerate() {
                compare(&format!("{path}[{index}]"), expected, ours, partly, found);
            }
            if expected.len() != ours.len() {
                found.push(format!(
                    "{path}: expected {} items, got {}",
                    expected.len(),
                    ours.len()
                ));
            }
            return;
        }
        (Value::Number(expected), Value::Number(ours)) => {
            match (expected.as_f64(), ours.as_f64()) {
                (Some(expected), Some(ours)) => {
                    (expected - ours).abs() <= 1e-9
                        || (expected - ours).abs() <= 1e-12 * expected.abs()
                }
                _ => expected == ours,
            }
        }
        (Value::String(expected), Value::String(_)) if expected == "<any text>" => true,
        (Value::String(expected), Value::String(ours)) if expected == "<any non-empty text>" => {
            !ours.is_empty()
        }
        (expected, ours) => expected == ours,
    };
    if !same {
        found.push(format!(
            "{path}: expected {}, got {}",
            shown(expected),
            shown(ours)
        ));
    }
}

static ABSENT: Value = Value::Null;

fn is_error(object: &serde_json::Map<String, Value>) -> bool {
    object.contains_key("error")
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 300 {
        text.chars().take(300).chain(['…']).collect()
    } else {
        text
    }
}
