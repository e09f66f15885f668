//! Failure patterns: what a batch's failures have in common.
//!
//! The short memory of an epoch names them, so that a later step sees what earlier ones met.
//! Failures are grouped by the leading part of their reason; the analysts' descriptions replace
//! those bare labels where they are known to speak of the same group (engine 14).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::score::row_failed;
use super::update_mode::plain;

/// Failures with the same cause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailurePattern {
    /// The cause.
    pub pattern: String,
    /// How many failures.
    pub count: usize,
    /// The items that failed so.
    pub task_ids: Vec<String>,
}

/// A cause in an analyst's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// `type: description`, or the type alone; empty when the analyst left both out.
    pub text: String,
    /// The items of which it speaks, when the analyst named them.
    pub task_ids: Vec<String>,
}

/// The failures among result rows, by the text of `fail_reason` before the first colon, in the
/// order in which the causes appear. A missing reason is `unknown` (W-B2).
///
/// A description that names its items goes to the group with which it shares most of them (W-B1);
/// one that names none goes to the group at its own place in the list.
#[must_use]
pub fn failure_patterns(
    rows: &[Map<String, Value>],
    descriptions: &[Description],
) -> Vec<FailurePattern> {
    let mut patterns: Vec<FailurePattern> = Vec::new();
    for row in rows.iter().filter(|row| row_failed(row)) {
        let cause = cause(row);
        let id = row.get("id").map_or_else(|| "?".to_owned(), plain);
        match patterns.iter_mut().find(|pattern| pattern.pattern == cause) {
            Some(pattern) => {
                pattern.count += 1;
                pattern.task_ids.push(id);
            }
            None => patterns.push(FailurePattern {
                pattern: cause,
                count: 1,
                task_ids: vec![id],
            }),
        }
    }
    let mut named = vec![false; patterns.len()];
    for (place, description) in descriptions.iter().enumerate() {
        let group = if description.task_ids.is_empty() {
            Some(place)
        } else {
            closest(&patterns, description)
        };
        let Some(group) = group.filter(|&group| group < patterns.len() && !named[group]) else {
            continue;
        };
        if !description.text.is_empty() {
            patterns[group].pattern.clone_from(&description.text);
            named[group] = true;
        }
    }
    patterns
}

/// The descriptions in the `failure_summary` lists of analyst replies, in order. Of a list that
/// turns malformed, the part before that is read; the other replies do not suffer.
#[must_use]
pub fn descriptions<'a>(replies: impl IntoIterator<Item = &'a Value>) -> Vec<Description> {
    let mut found = Vec::new();
    for reply in replies {
        let listed = reply
            .get("failure_summary")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        for entry in listed {
            let Some(entry) = entry.as_object() else {
                break;
            };
            let text = |key: &str| match entry.get(key) {
                None | Some(Value::Null) => String::new(),
                Some(value) => plain(value).trim().to_owned(),
            };
            let (kind, detail) = (text("failure_type"), text("description"));
            let ids = entry
                .get("task_ids")
                .and_then(Value::as_array)
                .map_or(&[][..], Vec::as_slice);
            found.push(Description {
                text: if detail.is_empty() {
                    kind
                } else {
                    format!("{kind}: {detail}")
                },
                task_ids: ids.iter().map(plain).collect(),
            });
        }
    }
    found
}

fn cause(row: &Map<String, Value>) -> String {
    match row.get("fail_reason") {
        None | Some(Value::Null) => "unknown".to_owned(),
        Some(reason) => {
            let reason = plain(reason);
            reason
                .split_once(':')
                .map_or(reason.clone(), |(before, _)| before.trim().to_owned())
        }
    }
}

fn closest(patterns: &[FailurePattern], description: &Description) -> Option<usize> {
    let shared = |pattern: &FailurePattern| {
        pattern
            .task_ids
            .iter()
            .filter(|id| description.task_ids.contains(id))
            .count()
    };
    let mut best = None;
    for (index, pattern) in patterns.iter().enumerate() {
        let shared = shared(pattern);
        if shared > 0 && best.is_none_or(|(_, most)| shared > most) {
            best = Some((index, shared));
        }
    }
    best.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_description_finds_its_group_by_the_items_it_names() {
        let rows: Vec<Map<String, Value>> = [
            json!({"id": "a", "hard": 0, "fail_reason": "x: 1"}),
            json!({"id": "b", "hard": 0, "fail_reason": "y: 2"}),
            json!({"id": "c", "hard": 1}),
        ]
        .iter()
        .map(|row| row.as_object().unwrap().clone())
        .collect();
        let reply = json!({"failure_summary": [{"failure_type": "units", "description": "left out", "task_ids": ["b"]}]});
        let patterns = failure_patterns(&rows, &descriptions([&reply]));
        let named: Vec<&str> = patterns
            .iter()
            .map(|pattern| pattern.pattern.as_str())
            .collect();
        assert_eq!(named, ["x", "units: left out"]);
    }
}
