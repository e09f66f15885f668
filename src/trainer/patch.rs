//! Patches: a reasoned list of proposed changes, as it passes from reflection to update.
//!
//! The items stay JSON objects, because the three update modes give them different fields and a
//! model may add more; only the update stage reads them closely. [`normalise`] is the door through
//! which a model's reply becomes a patch (engine 8.3).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::update_mode::UpdateMode;

/// One proposed change: an edit, a suggestion or a candidate, with what is known about it.
pub type Item = Map<String, Value>;

/// Which side of the evidence a patch comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Failed attempts.
    Failure,
    /// Successful attempts.
    Success,
}

impl Source {
    /// `failure` or `success`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Source::Failure => "failure",
            Source::Success => "success",
        }
    }
}

/// A reasoned list of proposed changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Patch {
    /// Why, in the model's words; empty when it gave no reason.
    pub reasoning: String,
    /// The changes, in order.
    pub items: Vec<Item>,
    /// The reply that ranked the items, when one did.
    pub ranking_details: Option<Value>,
}

impl Patch {
    /// Reads a patch object: its `reasoning`, and the objects among its items. Anything else in
    /// the list is left out (W-M1).
    #[must_use]
    pub fn from_value(mode: UpdateMode, container: &Value) -> Patch {
        Patch {
            reasoning: container
                .get("reasoning")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            items: mode
                .items(container)
                .iter()
                .filter_map(|item| item.as_object().cloned())
                .collect(),
            ranking_details: container
                .get("ranking_details")
                .filter(|details| !details.is_null())
                .cloned(),
        }
    }

    /// The patch as a JSON object: `reasoning`, the items under the mode's key, and
    /// `ranking_details` when there are any. This is the form of `merged_patch.json` and
    /// `ranked_edits.json` (engine 19).
    #[must_use]
    pub fn to_value(&self, mode: UpdateMode) -> Value {
        let mut object = Map::new();
        object.insert("reasoning".into(), Value::String(self.reasoning.clone()));
        object.insert(
            mode.payload_key().into(),
            self.items.iter().cloned().map(Value::Object).collect(),
        );
        if let Some(details) = &self.ranking_details {
            object.insert("ranking_details".into(), details.clone());
        }
        Value::Object(object)
    }

    /// Whether it proposes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The `support_count` of each item; 0 where there is none.
    #[must_use]
    pub fn support_counts(&self) -> Vec<u64> {
        self.items.iter().map(support_count).collect()
    }
}

/// How many rollouts an item says support it.
pub(super) fn support_count(item: &Item) -> u64 {
    item.get("support_count")
        .and_then(Value::as_u64)
        .unwrap_or(0)
}

/// Turns an analyst's reply into a patch and says which side it is on; `None` when it proposes
/// nothing or is not of the right shape.
///
/// The patch is the reply's `patch`, or the reply itself when it has no such key. Items that lack
/// them get `source_type` and `support_count`. The support is the reply's own `batch_size`, at
/// least 1 and, when the size of the group is known, at most that; a `batch_size` that is no
/// number is replaced by the size of the group (W-M2, W-M4).
#[must_use]
pub fn normalise(
    raw: &Value,
    mode: UpdateMode,
    group_size: Option<u64>,
) -> Option<(Source, Patch)> {
    let object = raw.as_object()?;
    let inner = object.get("patch").unwrap_or(raw);
    let mut patch = Patch::from_value(mode, inner);
    if patch.is_empty() {
        return None;
    }
    let stated = object.get("source_type").and_then(Value::as_str);
    let source = if stated == Some("success") {
        Source::Success
    } else {
        Source::Failure
    };
    let label = stated.unwrap_or(source.name());
    let support = match (whole_number(object.get("batch_size")), group_size) {
        (Some(said), Some(size)) => said.clamp(1, size.max(1)),
        (Some(said), None) => said.max(1),
        (None, size) => size.unwrap_or(1).max(1),
    };
    for item in &mut patch.items {
        item.entry("source_type").or_insert_with(|| label.into());
        item.entry("support_count")
            .or_insert_with(|| support.into());
    }
    Some((source, patch))
}

/// Sorts analysts' replies into failure and success patches, in order, as [`normalise`] reads
/// each. A reply comes with the size of its group, when that is known.
#[must_use]
pub fn normalise_all<'a>(
    replies: impl IntoIterator<Item = (&'a Value, Option<u64>)>,
    mode: UpdateMode,
) -> (Vec<Patch>, Vec<Patch>) {
    let (mut failure, mut success) = (Vec::new(), Vec::new());
    for (raw, group_size) in replies {
        match normalise(raw, mode, group_size) {
            Some((Source::Failure, patch)) => failure.push(patch),
            Some((Source::Success, patch)) => success.push(patch),
            None => {}
        }
    }
    (failure, success)
}

/// A whole number out of what a model may write for one; missing, null and false are 0, negative
/// numbers too.
fn whole_number(value: Option<&Value>) -> Option<u64> {
    match value {
        None | Some(Value::Null) => Some(0),
        Some(Value::Bool(flag)) => Some(u64::from(*flag)),
        Some(Value::Number(number)) => number
            .as_u64()
            .or_else(|| number.as_f64().map(|float| float as u64)),
        Some(Value::String(text)) if text.is_empty() => Some(0),
        Some(Value::String(text)) => text
            .trim()
            .parse::<i64>()
            .ok()
            .map(|number| u64::try_from(number).unwrap_or(0)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_reads_back_as_it_was_written() {
        let value = json!({"reasoning": "r", "edits": [{"op": "append"}], "ranking_details": {"selected_indices": [0]}});
        assert_eq!(
            Patch::from_value(UpdateMode::Patch, &value).to_value(UpdateMode::Patch),
            value
        );
    }

    #[test]
    fn support_is_bounded_by_the_group() {
        let raw = json!({"batch_size": 99, "patch": {"edits": [{"op": "append"}]}});
        let (_, patch) = normalise(&raw, UpdateMode::Patch, Some(4)).unwrap();
        assert_eq!(patch.support_counts(), [4]);
        let raw =
            json!({"batch_size": "8 trajectories", "edits": [{"op": "append"}, "no object", null]});
        let (source, patch) = normalise(&raw, UpdateMode::Patch, Some(3)).unwrap();
        assert_eq!((source, patch.support_counts()), (Source::Failure, vec![3]));
    }
}
