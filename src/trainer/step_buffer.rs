//! The step buffer: what the steps of this epoch met and what was rejected.
//!
//! It is told to the optimizer before it proposes anything, so that a rejected edit is not
//! proposed again in other words (engine 14). Steps that were skipped, and what became of each
//! rejected edit, are told too (W-B3).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failure_patterns::FailurePattern;
use super::update_mode::plain;

/// What one step leaves behind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BufferEntry {
    /// The global step.
    pub step: usize,
    /// What became of it, as in the history.
    pub action: String,
    /// How many rollouts the step had.
    #[serde(default)]
    pub n_total: usize,
    /// How many of them failed.
    #[serde(default)]
    pub n_fail: usize,
    /// What the failures had in common.
    #[serde(default)]
    pub failure_patterns: Vec<FailurePattern>,
    /// The current skill's gate score before a rejected candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_before: Option<f64>,
    /// The rejected candidate's gate score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_after: Option<f64>,
    /// The most that it could still have reached, when scoring stopped before it had a score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_at_most: Option<f64>,
    /// The short form of every item of a rejected candidate; `status` says what became of an edit
    /// that did not apply as it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected_edits: Vec<Value>,
}

/// The buffer as it is told to the optimizer; empty for an empty buffer.
#[must_use]
pub fn render(entries: &[BufferEntry]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut text = String::from("## Earlier steps of this epoch\n");
    for entry in entries {
        text.push('\n');
        render_entry(&mut text, entry);
    }
    text
}

fn render_entry(text: &mut String, entry: &BufferEntry) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "### Step {}: {} ({}/{} rollouts failed)",
        entry.step,
        entry.action.to_uppercase(),
        entry.n_fail,
        entry.n_total
    );
    for pattern in &entry.failure_patterns {
        let _ = writeln!(
            text,
            "- {} ({} ×: {})",
            pattern.pattern,
            pattern.count,
            pattern.task_ids.join(", ")
        );
    }
    if let Some(before) = entry.score_before {
        match (entry.score_after, entry.score_at_most) {
            (Some(after), _) => {
                let _ = writeln!(text, "Selection score went from {before} to {after}.");
            }
            (None, Some(bound)) => {
                let _ = writeln!(
                    text,
                    "Selection score went from {before} to at most {bound}."
                );
            }
            (None, None) => {}
        }
    }
    if !entry.rejected_edits.is_empty() {
        text.push_str("Rejected; do not propose these again:\n");
    }
    for edit in &entry.rejected_edits {
        render_edit(text, edit);
    }
}

fn render_edit(text: &mut String, edit: &Value) {
    let field = |key: &str| {
        edit.get(key)
            .filter(|value| !value.is_null())
            .map(plain)
            .filter(|value| !value.is_empty())
    };
    let head = field("op")
        .or_else(|| field("type"))
        .unwrap_or_else(|| "candidate".to_owned());
    let _ = write!(text, "- [{head}]");
    for (key, label) in [
        ("title", " "),
        ("instruction", ": "),
        ("target", " at: "),
        ("content", " → "),
    ] {
        if let Some(value) = field(key) {
            let _ = write!(text, "{label}{value}");
        }
    }
    if let Some(lines) = edit.get("change_summary").and_then(Value::as_array) {
        let lines: Vec<String> = lines.iter().map(plain).collect();
        let _ = write!(text, " ({})", lines.join("; "));
    }
    if let Some(status) = field("status") {
        let _ = write!(text, " [{status}]");
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rejected_step_is_told_with_its_edits() {
        let entry = BufferEntry {
            step: 3,
            action: "reject".into(),
            n_total: 8,
            n_fail: 5,
            failure_patterns: vec![FailurePattern {
                pattern: "units".into(),
                count: 2,
                task_ids: vec!["a".into(), "b".into()],
            }],
            score_before: Some(0.5),
            score_after: Some(0.25),
            score_at_most: None,
            rejected_edits: vec![
                json!({"op": "replace", "target": "old", "content": "new", "status": "skipped_replace_target_not_found"}),
            ],
        };
        let text = render(&[entry]);
        assert!(text.contains("Step 3: REJECT (5/8 rollouts failed)"));
        assert!(text.contains("- [replace] at: old → new [skipped_replace_target_not_found]"));
        assert_eq!(render(&[]), "");
    }
}
