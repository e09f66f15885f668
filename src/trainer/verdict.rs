//! What the gate said about a candidate, and the per-item numbers behind it.

use serde::{Deserialize, Serialize};

use super::confident::Estimate;
use super::evaluation::{ItemScore, Scores};
use super::gate::GateRule;
use super::gate_rule::{GateAction, GateMetric};

/// One selection item before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemDelta {
    /// The item.
    pub id: String,
    /// Under the current skill; `None` when not measured.
    pub before: Option<Scores>,
    /// Under the candidate.
    pub after: Option<Scores>,
}

/// What the gate said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The decision.
    pub action: GateAction,
    /// The rule that made it: `strict` or `confident`.
    pub rule: String,
    /// The metric compared: `hard`, `soft` or `mixed`.
    pub metric: String,
    /// The current skill's gate score over the items that both skills have.
    pub current_score: f64,
    /// The candidate's; `None` when nothing of it could be measured, or when scoring stopped
    /// before it was complete.
    pub candidate_score: Option<f64>,
    /// The highest score that the candidate could still have reached when scoring stopped early.
    pub bound: Option<f64>,
    /// The candidate's means over what was measured.
    pub scores: Option<Scores>,
    /// The measured share of the candidate's items, 0 to 1.
    pub coverage: f64,
    /// Whether it was better and turned down all the same, because an item got worse.
    pub blocked_by_regression: bool,
    /// Attempts that early stopping saved.
    pub calls_saved: usize,
    /// What the sequential test found out; of the confident rule.
    pub estimate: Option<Estimate>,
    /// The selection items that were scored.
    pub items: Vec<ItemDelta>,
}

impl Verdict {
    /// The verdict on a candidate that was no better on its own batch: both scores are over that
    /// batch, and no selection item was scored.
    #[must_use]
    pub fn prescreened(
        rule: &GateRule,
        metric: GateMetric,
        before: f64,
        after: Option<f64>,
        calls_saved: usize,
    ) -> Self {
        Self {
            action: GateAction::Reject,
            rule: rule.name().to_owned(),
            metric: metric.name().to_owned(),
            current_score: before,
            candidate_score: None,
            bound: after,
            scores: None,
            coverage: 0.0,
            blocked_by_regression: false,
            calls_saved,
            estimate: None,
            items: Vec::new(),
        }
    }

    /// Items that the candidate wins, loses and leaves as they were by their hard score, and
    /// those that have no pair of scores: `(wins, losses, ties, not measured)`.
    #[must_use]
    pub fn tally(&self) -> (usize, usize, usize, usize) {
        let mut tally = (0, 0, 0, 0);
        for item in &self.items {
            match (item.before, item.after) {
                (Some(before), Some(after)) if after.hard > before.hard => tally.0 += 1,
                (Some(before), Some(after)) if after.hard < before.hard => tally.1 += 1,
                (Some(_), Some(_)) => tally.2 += 1,
                _ => tally.3 += 1,
            }
        }
        tally
    }
}

/// Joins two score lists of the same items.
#[must_use]
pub fn deltas(before: &[ItemScore], after: &[ItemScore]) -> Vec<ItemDelta> {
    after
        .iter()
        .map(|item| ItemDelta {
            id: item.id.clone(),
            before: before
                .iter()
                .find(|other| other.id == item.id)
                .and_then(|other| other.scores),
            after: item.scores,
        })
        .collect()
}
