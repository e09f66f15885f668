//! What an optimizer proposes: edits, suggestions for a rewrite, or whole candidates.
//!
//! The pipeline is the same for the three; what differs is where the items are found in a reply,
//! what they are called in a prompt, and what an item looks like in short (engine 3.7, 8.3, 14).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What the optimizer proposes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateMode {
    /// Edits, applied one after another.
    #[default]
    Patch,
    /// Suggestions, from which one more call writes the whole skill.
    RewriteFromSuggestions,
    /// Complete skills, one for each minibatch.
    FullRewriteMinibatch,
}

impl UpdateMode {
    /// The canonical name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            UpdateMode::Patch => "patch",
            UpdateMode::RewriteFromSuggestions => "rewrite_from_suggestions",
            UpdateMode::FullRewriteMinibatch => "full_rewrite_minibatch",
        }
    }

    /// The key under which a patch object lists its items.
    #[must_use]
    pub fn payload_key(self) -> &'static str {
        match self {
            UpdateMode::Patch => "edits",
            UpdateMode::RewriteFromSuggestions => "revise_suggestions",
            UpdateMode::FullRewriteMinibatch => "skill_candidates",
        }
    }

    /// What one item is called in a prompt.
    #[must_use]
    pub fn singular(self) -> &'static str {
        match self {
            UpdateMode::Patch => "edit",
            UpdateMode::RewriteFromSuggestions => "suggestion",
            UpdateMode::FullRewriteMinibatch => "skill candidate",
        }
    }

    /// What several items are called in a prompt.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            UpdateMode::Patch => "edits",
            UpdateMode::RewriteFromSuggestions => "suggestions",
            UpdateMode::FullRewriteMinibatch => "skill candidates",
        }
    }

    /// What several items are called in a heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            UpdateMode::Patch => "Edits",
            UpdateMode::RewriteFromSuggestions => "Suggestions",
            UpdateMode::FullRewriteMinibatch => "Skill Candidates",
        }
    }

    /// The items that a patch object lists; none when it lists none or is no object.
    #[must_use]
    pub fn items(self, container: &Value) -> &[Value] {
        container
            .get(self.payload_key())
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    /// The patch object with at most `count` items.
    #[must_use]
    pub fn truncated(self, mut container: Value, count: usize) -> Value {
        if let Some(items) = container
            .get_mut(self.payload_key())
            .and_then(Value::as_array_mut)
        {
            items.truncate(count);
        }
        container
    }

    /// What the step buffer remembers of an item (engine 14): what it did and with which text,
    /// without counters. Null reads as absent.
    #[must_use]
    pub fn short_form(self, item: &Map<String, Value>) -> Value {
        let text = |key: &str, default: &str| match item.get(key) {
            None | Some(Value::Null) => default.to_owned(),
            Some(value) => plain(value),
        };
        match self {
            UpdateMode::Patch => json!({
                "op": text("op", "?"), "content": text("content", ""), "target": text("target", ""),
            }),
            UpdateMode::RewriteFromSuggestions => json!({
                "type": text("type", "?"), "title": text("title", ""), "instruction": text("instruction", ""),
            }),
            UpdateMode::FullRewriteMinibatch => {
                let summary: Vec<String> =
                    match item.get("change_summary").and_then(Value::as_array) {
                        Some(lines) => lines
                            .iter()
                            .filter(|line| !line.is_null())
                            .map(plain)
                            .collect(),
                        None => Vec::new(),
                    };
                json!({
                    "title": text("title", ""), "change_summary": summary, "source_type": text("source_type", ""),
                })
            }
        }
    }
}

/// A value as it reads in a sentence: text without quotes, anything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_has_no_counters() {
        let item = json!({"op": "append", "content": "x", "support_count": 3});
        let short = UpdateMode::Patch.short_form(item.as_object().unwrap());
        assert_eq!(short, json!({"op": "append", "content": "x", "target": ""}));
    }
}
