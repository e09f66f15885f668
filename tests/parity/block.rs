//! What must hold for the learnt block and the slow-update region when a document is not rewritten
//! as the original would.

use serde_json::Value;

use skillopt_sleep::skill::learned::{self, END, START};
use skillopt_sleep::skill::region::{self, RegionKind};
use skillopt_sleep::skill::{front_matter, text};

use super::Vector;

/// The text before and after the block of a document.
fn outside(document: &str) -> Option<(&str, &str)> {
    Some((
        &document[..document.find(START)?],
        &document[document.find(END)? + END.len()..],
    ))
}

/// A rule as it can be written: one line, without bullet and markers.
fn one_line(rule: &str) -> String {
    let rule = text::collapse_blanks(&rule.replace(START, "").replace(END, ""));
    rule.strip_prefix("- ").unwrap_or(&rule).to_owned()
}

/// Whether the text outside the block is kept byte for byte, a damaged block is refused, and the
/// rules are those that were asked for (or, after edits, those of the original).
pub(super) fn edited_in_place(vector: &Vector, ours: &Value) -> bool {
    let before = vector.input["document"].as_str().unwrap_or_default();
    if learned::rules(before).is_err() {
        return ours.get("error").is_some();
    }
    let Some(after) = ours["document"].as_str() else {
        return false;
    };
    let kept = match (outside(before), outside(after)) {
        (Some(before), Some(after)) => before == after,
        (None, _) => after.starts_with(before),
        (Some(_), None) => false,
    };
    let Ok(rules) = learned::rules(after) else {
        return false;
    };
    let asked: Vec<String> = match vector.input["lines"].as_array() {
        Some(lines) => lines
            .iter()
            .filter_map(Value::as_str)
            .map(one_line)
            .filter(|rule| !rule.is_empty())
            .collect(),
        // What a short or ambiguous anchor does is a quirk of its own.
        None if vector.name.starts_with("[quirk]") => return kept,
        None => learned::rules(vector.expected["document"].as_str().unwrap_or_default())
            .unwrap_or_default(),
    };
    kept && rules == asked
}

/// Whether a new skill says its name and description so that they read back, and the document that
/// was there follows unchanged.
pub(super) fn scaffold_reads_back(vector: &Vector, ours: &Value) -> bool {
    let field = |key: &str| vector.input[key].as_str().map(str::to_owned);
    let document = ours["document"].as_str().unwrap_or_default();
    let given = vector.input["scaffold"].as_str().unwrap_or_default();
    front_matter::parse(document).is_some_and(|matter| {
        matter.name == field("name") && matter.description == field("description")
    }) && (given.trim().is_empty() || document.ends_with(given))
}

/// Whether the result has one slow-update region with the guidance, or none when it is blank, and
/// what is read is what stands in the first region.
pub(super) fn one_slow_region_at_most(vector: &Vector, ours: &Value) -> bool {
    let guidance = region::without_markers(vector.input["content"].as_str().unwrap_or_default());
    let replaced = ours["replaced"].as_str().unwrap_or_default();
    let wanted = text::strip(&guidance);
    match region::inner(replaced, RegionKind::SlowUpdate) {
        Some(inner) => inner == wanted && region::regions(replaced).len() == 1,
        None => wanted.is_empty(),
    }
}
