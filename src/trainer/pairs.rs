//! Pairs: how two skills do on the same items.
//!
//! At the end of an epoch the slow update sees what became better, what became worse, what never
//! works and what always does. An item that was not measured under both skills says nothing and is
//! left out, with its id (engine 15, W-U3).

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::score::{number, row_failed};
use super::update_mode::plain;

/// How an item changed from the previous skill to the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Failed, and now succeeds.
    Improved,
    /// Succeeded, and now fails.
    Regressed,
    /// Fails both times.
    PersistentFail,
    /// Succeeds both times.
    StableSuccess,
}

impl Category {
    /// All of them, in the order in which the optimizer is told about them.
    pub const TOLD: [Category; 4] = [
        Category::Regressed,
        Category::PersistentFail,
        Category::Improved,
        Category::StableSuccess,
    ];
}

/// Which pairs the optimizer is told about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PairPolicy {
    /// All.
    #[default]
    Mixed,
    /// Improved and regressed ones.
    Changed,
    /// Persistent failures and stable successes.
    Unchanged,
}

impl PairPolicy {
    /// Whether a pair of this category is told.
    #[must_use]
    pub fn keeps(self, category: Category) -> bool {
        let changed = matches!(category, Category::Improved | Category::Regressed);
        match self {
            PairPolicy::Mixed => true,
            PairPolicy::Changed => changed,
            PairPolicy::Unchanged => !changed,
        }
    }
}

/// One attempt of a pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// 1 for success, else 0.
    pub hard: u8,
    /// The soft score.
    pub soft: f64,
    /// What was answered, or `N/A`.
    pub predicted_answer: String,
    /// Why it failed; empty when nothing is known.
    pub fail_reason: String,
}

/// One item under both skills.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The item.
    pub id: String,
    /// What was asked.
    pub task: String,
    /// How it changed.
    pub category: Category,
    /// Under the previous skill.
    pub prev: Side,
    /// Under the current one.
    pub curr: Side,
}

/// The pairs of a sample of items.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// The pairs, in the order of the items.
    pub pairs: Vec<Pair>,
    /// The items that were not measured under both skills.
    pub unmeasured: Vec<String>,
}

impl Comparison {
    /// Compares the result rows of two skills on these items. Of several rows with one id, the last
    /// counts.
    #[must_use]
    pub fn of_rows(
        items: &[Map<String, Value>],
        previous: &[Map<String, Value>],
        current: &[Map<String, Value>],
    ) -> Comparison {
        let (previous, current) = (measured_by_id(previous), measured_by_id(current));
        let mut comparison = Comparison::default();
        for item in items {
            let id = id_of(item);
            let (Some(before), Some(now)) = (previous.get(&id), current.get(&id)) else {
                comparison.unmeasured.push(id);
                continue;
            };
            let category = match (row_failed(before), row_failed(now)) {
                (true, false) => Category::Improved,
                (false, true) => Category::Regressed,
                (true, true) => Category::PersistentFail,
                (false, false) => Category::StableSuccess,
            };
            let task = first_text(item, &["question", "task_description", "instruction"])
                .unwrap_or_else(|| id.clone());
            comparison.pairs.push(Pair {
                id,
                task,
                category,
                prev: side(before),
                curr: side(now),
            });
        }
        comparison
    }

    /// How many pairs there are of a category.
    #[must_use]
    pub fn count(&self, category: Category) -> usize {
        self.pairs
            .iter()
            .filter(|pair| pair.category == category)
            .count()
    }
}

/// A name for a directory, made of an item's id: every run of other characters than letters,
/// digits, `_`, `.` and `-` becomes `_`; at most 80 characters, and never empty.
#[must_use]
pub fn safe_id(id: &str) -> String {
    let mut name = String::new();
    for c in id.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') {
            name.push(c);
        } else if !name.ends_with('_') || name.is_empty() {
            name.push('_');
        }
    }
    let name: String = name.trim_matches('_').chars().take(80).collect();
    if name.is_empty() {
        "item".to_owned()
    } else {
        name
    }
}

/// The rows that have an id and no score that is there without being a number.
fn measured_by_id(rows: &[Map<String, Value>]) -> HashMap<String, &Map<String, Value>> {
    let is_score = |row: &Map<String, Value>, key: &str| {
        row.get(key).is_none_or(|score| number(score).is_some())
    };
    rows.iter()
        .filter(|row| row.contains_key("id") && is_score(row, "hard") && is_score(row, "soft"))
        .map(|row| (id_of(row), row))
        .collect()
}

fn id_of(row: &Map<String, Value>) -> String {
    row.get("id").map(plain).unwrap_or_default()
}

fn first_text(row: &Map<String, Value>, keys: &[&str]) -> Option<String> {
    keys.iter()
        .filter_map(|key| row.get(*key))
        .filter(|value| !value.is_null())
        .map(plain)
        .find(|text| !text.is_empty())
}

fn side(row: &Map<String, Value>) -> Side {
    Side {
        hard: u8::from(!row_failed(row)),
        soft: row.get("soft").and_then(number).unwrap_or(0.0),
        predicted_answer: row
            .get("predicted_answer")
            .or_else(|| row.get("answer"))
            .filter(|answer| !answer.is_null())
            .map_or_else(|| "N/A".to_owned(), plain),
        fail_reason: first_text(row, &["fail_reason"]).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe() {
        for (id, name) in [
            ("", "item"),
            ("../x", ".._x"),
            ("a/b\\c", "a_b_c"),
            ("a  b!!c", "a_b_c"),
            ("日本", "item"),
        ] {
            assert_eq!(safe_id(id), name);
        }
    }

    #[test]
    fn what_was_not_measured_is_no_failure() {
        let row = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let items = [row(r#"{"id": "a"}"#), row(r#"{"id": "b"}"#)];
        let previous = [row(r#"{"id": "a", "hard": 0}"#)];
        let current = [
            row(r#"{"id": "a", "hard": 0.3}"#),
            row(r#"{"id": "b", "hard": 0}"#),
        ];
        let comparison = Comparison::of_rows(&items, &previous, &current);
        assert_eq!(comparison.count(Category::Improved), 1);
        assert_eq!(comparison.unmeasured, ["b"]);
    }
}
