//! Stopping the exact gate early: a candidate is not scored further once no result of the
//! remaining items could make it win.
//!
//! The bound is computed exactly as a full scoring is, with every item that has no result yet at
//! 1.0: the same sums from left to right in item order, the same projection. Floating-point
//! addition, division and multiplication by a weight never turn a smaller operand into a larger
//! result, so the bound is at or above the score that full scoring would arrive at, to the last
//! bit, and a reject that falls on the bound is the reject that full scoring would give. Only
//! rejects fall early; a candidate that wins is scored in full, since its score is kept.
//!
//! An item that was scored but not measured takes all of this away, for means are then over other
//! items: with one of those nothing stops early.

use super::evaluation::{Scores, mean};
use super::gate_rule::GateProjection;
use super::score::is_failure;
use crate::skill::density;

/// What is known of one selection item under the candidate.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum ItemResult {
    /// Not scored yet.
    #[default]
    Pending,
    /// The attempt was made and has no score.
    NotMeasured,
    /// Scored.
    Scored(Scores),
}

/// The bound for one candidate.
#[derive(Debug, Clone)]
pub struct EarlyStop {
    /// The gate's projection without its bonus, which is the same whatever the results are.
    projection: GateProjection,
    bonus: Option<f64>,
    current_score: f64,
}

impl EarlyStop {
    /// The bound for a candidate with this skill text against the current skill's gate score.
    ///
    /// The score has to be the one that full scoring would compare with. Where the current skill
    /// has items without a score, that depends on the candidate's results: do not stop early then.
    #[must_use]
    pub fn new(projection: &GateProjection, skill: &str, current_score: f64) -> Self {
        let bonus = projection
            .density
            .as_ref()
            .map(|bonus| bonus.weight * density::density(skill, bonus.words.as_deref()));
        Self {
            projection: GateProjection {
                density: None,
                ..projection.clone()
            },
            bonus,
            current_score,
        }
    }

    /// The highest gate score that the candidate can still reach, the score itself when every
    /// item has one. `None` when there is no bound: for no items, with an item that was not
    /// measured, or with a score above 1.
    #[must_use]
    pub fn upper_bound(&self, results: &[ItemResult]) -> Option<f64> {
        let best = results
            .iter()
            .map(|result| match result {
                ItemResult::Pending => Some((1.0, 1.0)),
                ItemResult::Scored(s) if s.hard <= 1.0 && s.soft <= 1.0 => Some((s.hard, s.soft)),
                ItemResult::Scored(_) | ItemResult::NotMeasured => None,
            })
            .collect::<Option<Vec<_>>>()?;
        let scores = mean(best.into_iter())?;
        let score = self.projection.score(scores.hard, scores.soft, "");
        Some(self.bonus.map_or(score, |bonus| score + bonus))
    }

    /// Whether full scoring could still find the candidate better than the current skill. With
    /// every item scored this is the gate's decision.
    #[must_use]
    pub fn can_still_win(&self, results: &[ItemResult]) -> bool {
        self.upper_bound(results)
            .is_none_or(|bound| bound > self.current_score)
    }

    /// How many more items, taken in this order, have to be scored before a reject can fall, when
    /// each of them scores 0. A wave of this many attempts wastes none of them. It is the number
    /// of pending items when nothing short of scoring them all can decide, and 0 when the reject
    /// has fallen.
    #[must_use]
    pub fn fewest_until_decided(&self, results: &[ItemResult], order: &[usize]) -> usize {
        let pending: Vec<usize> = order
            .iter()
            .copied()
            .filter(|&item| results.get(item) == Some(&ItemResult::Pending))
            .collect();
        let worst = ItemResult::Scored(Scores {
            hard: 0.0,
            soft: 0.0,
        });
        let open_after = |count: usize| {
            let mut results = results.to_vec();
            for &item in &pending[..count] {
                results[item] = worst;
            }
            self.can_still_win(&results)
        };
        // The bound only falls with the number of zeros, so halving finds where it crosses.
        let (mut low, mut high) = (0, pending.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if open_after(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The order in which a candidate's items are scored so that a reject falls soonest: those that
/// the current skill fails, then by its score from low to high, then in item order. Items without
/// a score of the current skill come last.
#[must_use]
pub fn scoring_order(current: &[Option<Scores>], projection: &GateProjection) -> Vec<usize> {
    let plain = GateProjection {
        density: None,
        ..projection.clone()
    };
    let key = |item: &usize| match current[*item] {
        Some(s) => (
            if is_failure(s.hard) { 0 } else { 1 },
            plain.score(s.hard, s.soft, ""),
        ),
        None => (2, 0.0),
    };
    let mut order: Vec<usize> = (0..current.len()).collect();
    order.sort_by(|a, b| {
        let ((class_a, score_a), (class_b, score_b)) = (key(a), key(b));
        class_a.cmp(&class_b).then(score_a.total_cmp(&score_b))
    });
    order
}

#[cfg(test)]
mod tests;
