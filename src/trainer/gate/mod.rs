//! The gate stage: a candidate is scored on the selection split and must be better than the current
//! skill (engine 13).
//!
//! Two rules. [`strict`] is the paper's: one scoring each, and strictly greater; it stops as soon
//! as no further result can change a reject. [`paired`] decides by a sequential test whose error
//! is bounded, and has a third answer: undecided.

mod paired;
mod strict;

use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::confident::ConfidentSettings;
use super::environment::{Environment, Item};
use super::error::TrainError;
use super::evaluation::{Evaluator, ItemScore, Scores, mean};
use super::gate_rule::{GateAction, GateProjection};
use super::state::State;
use super::verdict::Verdict;

/// How a candidate is compared with the current skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum GateRule {
    /// One scoring each; strictly greater accepts.
    Strict {
        /// Score every item even when the decision has fallen.
        full_scores: bool,
    },
    /// A sequential test of paired scorings.
    Confident(ConfidentSettings),
}

impl GateRule {
    /// The name in files and reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Strict { .. } => "strict",
            Self::Confident(_) => "confident",
        }
    }
}

/// What the gate needs to know of the run.
pub struct Gate<'a> {
    /// How two scores become one.
    pub projection: &'a GateProjection,
    /// How two skills are compared.
    pub rule: &'a GateRule,
    /// Least measured share for a decision, 0 to 1.
    pub coverage_floor: f64,
    /// `false` takes every candidate.
    pub enabled: bool,
    /// The selection items.
    pub items: &'a [Item],
    /// Reject a candidate that does worse on any item.
    pub no_regression: bool,
    /// Seed of the run.
    pub seed: i64,
}

/// A verdict, and what scoring found out.
pub struct Judged {
    /// What the gate says.
    pub verdict: Verdict,
    /// The candidate's item scores when every item was scored, to be kept.
    pub scores: Option<Vec<ItemScore>>,
}

/// Fewest attempts at once while a candidate is scored wave by wave. A decision can fall after a
/// single attempt; an eighth of the items at least keeps the waits for one wave after another few.
/// It depends on nothing else, so that which items are scored is the same on every machine.
fn smallest_wave(items: usize) -> usize {
    items.div_ceil(8)
}

impl Gate<'_> {
    /// Scores `candidate`, as far as its hash has not been scored before, and decides.
    ///
    /// # Errors
    /// When nothing could be measured or the budget is used up.
    pub async fn judge<E: Environment>(
        &self,
        evaluator: &Evaluator<'_, E>,
        candidate: &Candidate,
        state: &State,
    ) -> Result<Judged, TrainError> {
        let mut judged = match self.rule {
            // Without the gate there is nothing to be sure of.
            GateRule::Confident(settings) if self.enabled => {
                self.judge_paired(evaluator, candidate, state, settings)
                    .await?
            }
            GateRule::Confident(_) => self.judge_strict(evaluator, candidate, state, true).await?,
            GateRule::Strict { full_scores } => {
                self.judge_strict(evaluator, candidate, state, *full_scores)
                    .await?
            }
        };
        let verdict = &mut judged.verdict;
        if self.enabled && self.no_regression && verdict.action.is_accept() {
            verdict.blocked_by_regression = self.regressed(verdict);
            if verdict.blocked_by_regression {
                verdict.action = GateAction::Reject;
            }
        }
        Ok(judged)
    }

    /// Whether any item has a lower score under the candidate.
    fn regressed(&self, verdict: &Verdict) -> bool {
        let score = |scores: Option<Scores>| scores.map(|scores| self.score(scores, ""));
        verdict.items.iter().any(|item| {
            score(item.before)
                .zip(score(item.after))
                .is_some_and(|(before, after)| after < before)
        })
    }

    fn score(&self, scores: Scores, skill: &str) -> f64 {
        self.projection.score(scores.hard, scores.soft, skill)
    }
}

/// The means over measured items.
#[must_use]
pub fn means(items: &[ItemScore]) -> Option<Scores> {
    mean(
        items
            .iter()
            .filter_map(|item| item.scores.map(|s| (s.hard, s.soft))),
    )
}

/// The measured share of items, 0 for none at all.
fn coverage(items: &[ItemScore]) -> f64 {
    if items.is_empty() {
        return 0.0;
    }
    items.iter().filter(|item| item.scores.is_some()).count() as f64 / items.len() as f64
}
