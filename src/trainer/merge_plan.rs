//! Hierarchical merge, without the calls.
//!
//! Many analysts propose many changes. They are merged in levels: the patches of one side are cut
//! into consecutive batches, each batch becomes one patch, and so on until one is left; then the
//! two sides become one. This module plans the batches, judges each reply, and says what to do
//! without a usable one; the aggregate stage makes the calls (engine 9).
//!
//! ```text
//! while patches.len() > 1 {
//!     for batch in batches(patches.len(), size) {
//!         // a batch of one passes through; the others cost a call:
//!         let outcome = judge(reply, mode, &patches[batch], Some(level));
//!     }
//! }
//! match combine(failure, success) { Done(patch) => …, Merge { failure, success } => judge(…, None) }
//! ```

use std::ops::Range;

use serde_json::Value;

use super::patch::{Item, Patch, support_count};
use super::update_mode::UpdateMode;

/// The fewest patches that a batch can merge.
pub const SMALLEST_BATCH: usize = 2;

/// Consecutive batches of at most `size` (at least 2) of `count` patches; the last may be short.
#[must_use]
pub fn batches(count: usize, size: usize) -> Vec<Range<usize>> {
    let size = size.max(SMALLEST_BATCH);
    (0..count)
        .step_by(size)
        .map(|start| start..count.min(start + size))
        .collect()
}

/// Why a merge reply was not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MergeFault {
    /// There was no reply, or no object in it.
    NoReply,
    /// The object has no list of objects under the mode's key.
    WrongShape,
    /// The list is empty although there was something to merge (W-M3).
    Emptied,
}

/// One merged patch, and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The patch.
    pub patch: Patch,
    /// Why the model's reply was passed over for the plain concatenation, if it was.
    pub fault: Option<MergeFault>,
}

/// Judges the reply to a merge call over `inputs`.
///
/// A reply is used when it is an object whose payload is a list of objects and not empty. At a
/// level, each of its items gets that `merge_level`; the final merge has none. An item cannot
/// claim more support than the inputs have together (W-M4). Otherwise nothing is lost: the result
/// is the [`fallback`].
#[must_use]
pub fn judge(
    reply: Option<&Value>,
    mode: UpdateMode,
    inputs: &[Patch],
    level: Option<u64>,
) -> Merged {
    match accept_reply(reply, mode, inputs, level) {
        Ok(patch) => Merged { patch, fault: None },
        Err(fault) => Merged {
            patch: fallback(inputs, level),
            fault: Some(fault),
        },
    }
}

/// The patch in a merge reply.
///
/// # Errors
/// [`MergeFault`] when the reply cannot be used.
pub fn accept_reply(
    reply: Option<&Value>,
    mode: UpdateMode,
    inputs: &[Patch],
    level: Option<u64>,
) -> Result<Patch, MergeFault> {
    let reply = reply
        .filter(|reply| reply.is_object())
        .ok_or(MergeFault::NoReply)?;
    let items = reply
        .get(mode.payload_key())
        .and_then(Value::as_array)
        .ok_or(MergeFault::WrongShape)?;
    if !items.iter().all(Value::is_object) {
        return Err(MergeFault::WrongShape);
    }
    if items.is_empty() && inputs.iter().any(|patch| !patch.is_empty()) {
        return Err(MergeFault::Emptied);
    }
    let mut patch = Patch::from_value(mode, reply);
    patch.ranking_details = None;
    let most = inputs
        .iter()
        .flat_map(|patch| &patch.items)
        .map(support_count)
        .sum::<u64>();
    for item in &mut patch.items {
        if most > 0 && support_count(item) > most {
            item.insert("support_count".into(), most.into());
        }
        if let Some(level) = level {
            item.insert("merge_level".into(), level.into());
        }
    }
    Ok(patch)
}

/// All items of the inputs, in order. At a level, items that have no `merge_level` yet get it.
#[must_use]
pub fn fallback(inputs: &[Patch], level: Option<u64>) -> Patch {
    let mut items: Vec<Item> = inputs
        .iter()
        .flat_map(|patch| patch.items.iter().cloned())
        .collect();
    if let Some(level) = level {
        for item in &mut items {
            item.entry("merge_level").or_insert_with(|| level.into());
        }
    }
    let reasons: Vec<&str> = inputs
        .iter()
        .map(|patch| patch.reasoning.as_str())
        .filter(|reason| !reason.is_empty())
        .collect();
    Patch {
        reasoning: reasons.join("\n"),
        items,
        ranking_details: None,
    }
}

/// What is left to do when each side is down to one patch.
#[derive(Debug, Clone, PartialEq)]
pub enum Combination {
    /// Nothing: this is the merged patch.
    Done(Patch),
    /// One final merge, failures first; without a usable reply, the [`fallback`] of both in this
    /// order.
    Merge {
        /// The failure side.
        failure: Patch,
        /// The success side.
        success: Patch,
    },
}

/// Brings the two sides together: when only one has items, it is the result as it is.
#[must_use]
pub fn combine(failure: Option<Patch>, success: Option<Patch>) -> Combination {
    let filled = |side: Option<Patch>| side.filter(|patch| !patch.is_empty());
    match (filled(failure), filled(success)) {
        (Some(failure), Some(success)) => Combination::Merge { failure, success },
        (Some(patch), None) | (None, Some(patch)) => Combination::Done(patch),
        (None, None) => Combination::Done(Patch::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn patch(texts: &[&str]) -> Patch {
        let edits: Vec<Value> = texts
            .iter()
            .map(|text| json!({"op": "append", "content": text, "support_count": 2}))
            .collect();
        Patch::from_value(UpdateMode::Patch, &json!({"reasoning": "", "edits": edits}))
    }

    #[test]
    fn a_reply_that_empties_the_list_loses_nothing() {
        let inputs = [patch(&["a"]), patch(&["b"])];
        let merged = judge(
            Some(&json!({"edits": []})),
            UpdateMode::Patch,
            &inputs,
            Some(1),
        );
        assert_eq!(
            (merged.fault, merged.patch.items.len()),
            (Some(MergeFault::Emptied), 2)
        );
    }

    #[test]
    fn support_is_bounded_by_the_inputs() {
        let inputs = [patch(&["a"]), patch(&["b"])];
        let reply = json!({"edits": [{"op": "append", "content": "ab", "support_count": 50}]});
        let merged = judge(Some(&reply), UpdateMode::Patch, &inputs, Some(3));
        assert_eq!(merged.patch.support_counts(), [4]);
        assert_eq!(merged.patch.items[0]["merge_level"], 3);
    }

    proptest! {
        #[test]
        fn batches_cover_the_patches_once(count in 0..200_usize, size in 0..20_usize) {
            let ranges = batches(count, size);
            let all: Vec<usize> = ranges.iter().cloned().flatten().collect();
            prop_assert_eq!(all, (0..count).collect::<Vec<_>>());
            prop_assert!(ranges.iter().all(|range| range.len() <= size.max(2)));
        }
    }
}
