//! Selection: which proposed items fit into the step's budget.
//!
//! Too many items are ranked by one call. What comes back is a list of indices to be taken with
//! care; without a usable one, the first items win (engine 10).

use serde_json::Value;

use super::patch::Patch;

/// Which items go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of them.
    Unchanged,
    /// These, by position from 0, as the reply ranked them.
    Ranked(Vec<usize>),
    /// The first so many: there was no usable ranking.
    Truncated(usize),
}

/// Whether `count` items need a ranking call under `budget` (`None` = no limit). A budget of 0
/// takes nothing, so there is nothing to rank (W-L1).
#[must_use]
pub fn needs_ranking(count: usize, budget: Option<usize>) -> bool {
    budget.is_some_and(|budget| 0 < budget && budget < count)
}

/// Chooses among `count` items under `budget` (`None` = no limit), given the ranking reply.
///
/// From `selected_indices`, integers within range are taken in order, each once, until the budget
/// is used; booleans count as 0 and 1. Without a single one, the first items are taken.
#[must_use]
pub fn choose(count: usize, budget: Option<usize>, reply: Option<&Value>) -> Selection {
    let Some(budget) = budget.filter(|&budget| budget < count) else {
        return Selection::Unchanged;
    };
    let listed = reply
        .and_then(|reply| reply.get("selected_indices"))
        .and_then(Value::as_array);
    let mut chosen: Vec<usize> = Vec::new();
    for index in listed.map_or(&[][..], Vec::as_slice) {
        let index = match index {
            Value::Bool(flag) => Some(usize::from(*flag)),
            other => other.as_u64().and_then(|index| usize::try_from(index).ok()),
        };
        if let Some(index) = index.filter(|index| *index < count && !chosen.contains(index)) {
            if chosen.len() == budget {
                break;
            }
            chosen.push(index);
        }
    }
    if chosen.is_empty() {
        Selection::Truncated(budget)
    } else {
        Selection::Ranked(chosen)
    }
}

/// The patch with only the selected items. After a ranking, the reasoning says so and the reply is
/// kept as `ranking_details`.
#[must_use]
pub fn apply(patch: Patch, selection: &Selection, reply: Option<&Value>) -> Patch {
    match selection {
        Selection::Unchanged => patch,
        Selection::Truncated(count) => {
            let mut patch = patch;
            patch.items.truncate(*count);
            patch
        }
        Selection::Ranked(chosen) => {
            let total = patch.items.len();
            Patch {
                reasoning: format!(
                    "{} [ranked: kept {} of {total}]",
                    patch.reasoning,
                    chosen.len()
                ),
                items: chosen
                    .iter()
                    .filter_map(|&index| patch.items.get(index).cloned())
                    .collect(),
                ranking_details: reply.cloned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_budget_of_nothing_takes_nothing() {
        assert!(!needs_ranking(3, Some(0)));
        assert_eq!(
            choose(3, Some(0), Some(&json!({"selected_indices": [1]}))),
            Selection::Truncated(0)
        );
    }

    #[test]
    fn no_budget_takes_everything() {
        assert!(!needs_ranking(300, None));
        assert_eq!(choose(300, None, None), Selection::Unchanged);
    }

    proptest! {
        #[test]
        fn never_more_than_the_budget(
            count in 0..20_usize, budget in 0..20_usize, listed in prop::collection::vec(-3..25_i64, 0..30),
        ) {
            let reply = json!({"selected_indices": listed});
            match choose(count, Some(budget), Some(&reply)) {
                Selection::Unchanged => prop_assert!(count <= budget),
                Selection::Truncated(kept) => prop_assert_eq!(kept, budget),
                Selection::Ranked(chosen) => {
                    prop_assert!(!chosen.is_empty() && chosen.len() <= budget);
                    let unique: std::collections::HashSet<_> = chosen.iter().collect();
                    prop_assert_eq!(unique.len(), chosen.len());
                    prop_assert!(chosen.iter().all(|&index| index < count));
                }
            }
        }
    }
}
