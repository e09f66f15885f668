//! Attempting a list of items under one skill, and what the results add up to.

use futures::future::join_all;
use serde::{Deserialize, Serialize};

use super::environment::{Environment, Item, Missing, Outcome, Rollout};
use super::error::TrainError;
use super::event::{Event, Observers};

/// The sample label of a skill's first scoring on an item. Whoever scores a skill for a decision or
/// a result asks for this draw first (the gate, the test, `eval`), so that none is made twice.
pub const FIRST_DRAW: &str = "first";

/// Means over measured rollouts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Mean hard score.
    pub hard: f64,
    /// Mean soft score.
    pub soft: f64,
}

/// One item's scores; what the gate keeps of a rollout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemScore {
    /// The item.
    pub id: String,
    /// `None` when the attempt was not measured.
    pub scores: Option<Scores>,
}

/// Rollouts of one skill over a list of items, in the items' order.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// One per item.
    pub rollouts: Vec<Rollout>,
}

impl Evaluation {
    /// The means, summed in item order as the original does; `None` when nothing was measured.
    #[must_use]
    pub fn scores(&self) -> Option<Scores> {
        mean(self.rollouts.iter().filter_map(Rollout::scores))
    }

    /// How many rollouts have scores.
    #[must_use]
    pub fn measured(&self) -> usize {
        self.rollouts
            .iter()
            .filter(|r| r.scores().is_some())
            .count()
    }

    /// The measured share, 1 for no items at all.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        if self.rollouts.is_empty() {
            return 1.0;
        }
        self.measured() as f64 / self.rollouts.len() as f64
    }

    /// What the gate keeps.
    #[must_use]
    pub fn item_scores(&self) -> Vec<ItemScore> {
        self.rollouts
            .iter()
            .map(|rollout| ItemScore {
                id: rollout.id.clone(),
                scores: rollout.scores().map(|(hard, soft)| Scores { hard, soft }),
            })
            .collect()
    }
}

/// The means of `(hard, soft)` pairs, left to right (engine 2); `None` without any.
#[must_use]
pub fn mean(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Scores> {
    let (mut hard, mut soft, mut n) = (0.0, 0.0, 0u32);
    for (h, s) in pairs {
        hard += h;
        soft += s;
        n += 1;
    }
    (n > 0).then(|| Scores {
        hard: hard / f64::from(n),
        soft: soft / f64::from(n),
    })
}

/// Attempts items under one skill and tells the observers.
pub struct Evaluator<'a, E> {
    /// What is attempted.
    pub environment: &'a E,
    /// Who is told.
    pub observers: &'a Observers,
    /// Where the artefacts belong, relative to the run directory.
    pub dir: &'a str,
}

impl<E: Environment> Evaluator<'_, E> {
    /// Attempts every item, all at once: the models' own limits bound what is in flight. Results
    /// come back in item order whatever the order of completion.
    ///
    /// # Errors
    /// When the budget is used up, when nothing at all could be measured, or when an observer
    /// fails.
    pub async fn evaluate(
        &self,
        items: &[Item],
        skill: &str,
        sample: &str,
    ) -> Result<Evaluation, TrainError> {
        self.start(items.len())?;
        let attempts = items.iter().map(|item| self.attempt(item, skill, sample));
        let rollouts = join_all(attempts)
            .await
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
        self.finish(rollouts)
    }

    /// Says that attempts begin, at most `items` of them.
    pub(super) fn start(&self, items: usize) -> Result<(), TrainError> {
        self.observers.emit(&Event::EvaluationStarted {
            dir: self.dir,
            items,
        })?;
        Ok(())
    }

    /// Makes one attempt.
    pub(super) async fn attempt(
        &self,
        item: &Item,
        skill: &str,
        sample: &str,
    ) -> Result<Rollout, TrainError> {
        let rollout = self.environment.attempt(item, skill, sample).await;
        self.observers.emit(&Event::RolloutFinished {
            dir: self.dir,
            id: &rollout.id,
            hard: rollout.scores().map(|(hard, _)| hard),
        })?;
        Ok(rollout)
    }

    /// Adds attempts up, which are in item order by now.
    pub(super) fn finish(&self, rollouts: Vec<Rollout>) -> Result<Evaluation, TrainError> {
        let evaluation = Evaluation { rollouts };
        stop_when_hopeless(&evaluation, self.dir)?;
        self.observers.emit(&Event::EvaluationFinished {
            dir: self.dir,
            scores: evaluation.scores(),
            measured: evaluation.measured(),
            rollouts: &evaluation.rollouts,
        })?;
        Ok(evaluation)
    }
}

/// A used-up budget or a model that answers nothing ends the run at once, with the cause, before
/// anything is concluded from the silence.
fn stop_when_hopeless(evaluation: &Evaluation, dir: &str) -> Result<(), TrainError> {
    let mut missing = evaluation.rollouts.iter().filter_map(|r| match &r.outcome {
        Outcome::NotMeasured { cause, message } => Some((*cause, message)),
        Outcome::Measured { .. } => None,
    });
    if let Some((_, message)) = missing.clone().find(|(cause, _)| *cause == Missing::Budget) {
        return Err(TrainError::Budget(message.clone()));
    }
    match missing.next() {
        Some((_, message)) if evaluation.measured() == 0 => Err(TrainError::NothingMeasured {
            dir: dir.to_owned(),
            attempts: evaluation.rollouts.len(),
            message: message.clone(),
        }),
        _ => Ok(()),
    }
}
