//! What the optimizer's replies about whole documents say: rewrites, guidance, notes.
//!
//! Only text counts as text. A null, a list or blanks where a document should be is no document
//! (engine 12.2, 15, 16 and 17).

use serde_json::Value;

use super::update_mode::plain;
use crate::skill::text::{strip, strip_end};

/// A rewritten skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// Why, when the reply says so.
    pub reasoning: Option<String>,
    /// What changed, line by line.
    pub change_summary: Vec<String>,
    /// The new skill; it ends in one line feed.
    pub new_skill: String,
}

/// The rewritten skill in a reply, or in a skill candidate.
#[must_use]
pub fn rewrite(reply: &Value) -> Option<Rewrite> {
    let skill = strip_end(reply.get("new_skill")?.as_str()?);
    if skill.is_empty() {
        return None;
    }
    let lines = reply.get("change_summary").and_then(Value::as_array);
    Some(Rewrite {
        reasoning: reply
            .get("reasoning")
            .and_then(Value::as_str)
            .map(str::to_owned),
        change_summary: lines
            .into_iter()
            .flatten()
            .filter(|line| !line.is_null())
            .map(plain)
            .collect(),
        new_skill: format!("{skill}\n"),
    })
}

/// Guidance that the slow update or the meta skill writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guidance {
    /// Why; empty when the reply does not say.
    pub reasoning: String,
    /// The guidance, without blanks around it; never empty.
    pub content: String,
}

/// The guidance that a reply has under `key`: `slow_update_content` or `meta_skill_content`.
#[must_use]
pub fn guidance(reply: &Value, key: &str) -> Option<Guidance> {
    let content = strip(reply.get(key)?.as_str()?);
    let reasoning = reply
        .get("reasoning")
        .and_then(Value::as_str)
        .unwrap_or_default();
    (!content.is_empty()).then(|| Guidance {
        reasoning: strip(reasoning).to_owned(),
        content: content.to_owned(),
    })
}

/// The execution notes in a reply: one text or a list of texts, or of objects with a `note` or
/// else `content`. Blank ones and anything else are left out.
#[must_use]
pub fn appendix_notes(reply: &Value) -> Vec<String> {
    let text = |note: &Value| match note {
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) => ["note", "content"]
            .iter()
            .filter_map(|key| fields.get(*key))
            .filter(|value| value.is_string() || value.is_number())
            .map(plain)
            .find(|text| !text.is_empty()),
        _ => None,
    };
    let notes: Vec<String> = match reply.get("appendix_notes") {
        Some(Value::String(note)) => vec![note.clone()],
        Some(Value::Array(notes)) => notes.iter().filter_map(text).collect(),
        _ => Vec::new(),
    };
    notes
        .iter()
        .map(|note| strip(note).to_owned())
        .filter(|note| !note.is_empty())
        .collect()
}

/// The notes after a consolidation: those of the reply when there is at least one and no more than
/// before, else the old ones. A failed consolidation never loses a note.
#[must_use]
pub fn consolidated(notes: &[String], reply: Option<&Value>) -> Vec<String> {
    let new = reply.map(appendix_notes).unwrap_or_default();
    if new.is_empty() || new.len() > notes.len() {
        notes.to_vec()
    } else {
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_text_is_a_document() {
        for value in [json!(null), json!(["a"]), json!("  "), json!(5)] {
            assert_eq!(rewrite(&json!({"new_skill": value})), None);
            assert_eq!(
                guidance(
                    &json!({"slow_update_content": value}),
                    "slow_update_content"
                ),
                None
            );
        }
    }

    #[test]
    fn a_failed_consolidation_keeps_the_notes() {
        let notes = ["a".to_owned(), "b".to_owned()];
        assert_eq!(consolidated(&notes, None), notes);
        assert_eq!(
            consolidated(&notes, Some(&json!({"appendix_notes": ["1", "2", "3"]}))),
            notes
        );
        assert_eq!(
            consolidated(&notes, Some(&json!({"appendix_notes": ["ab"]}))),
            ["ab"]
        );
    }
}
