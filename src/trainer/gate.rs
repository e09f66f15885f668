//! The gate stage: a candidate is scored on the selection split and must be strictly better than
//! the current skill (engine 13).

use super::candidate::Candidate;
use super::environment::{Environment, Item};
use super::error::TrainError;
use super::evaluation::{ItemScore, Scores, evaluate, mean};
use super::event::Observers;
use super::gate_rule::{GateAction, GateProjection, decide};
use super::state::{Scored, State};
use super::verdict::{Verdict, deltas};

/// What the gate needs to know of the run.
pub struct Gate<'a> {
    /// How scores are compared.
    pub rule: &'a GateProjection,
    /// Least measured share for a decision, 0 to 1.
    pub coverage_floor: f64,
    /// `false` takes every candidate.
    pub enabled: bool,
    /// The selection items.
    pub items: &'a [Item],
}

/// Selection results are one draw per skill, whatever step asks for them.
pub const SELECTION_SAMPLE: &str = "selection";

impl Gate<'_> {
    /// Scores `candidate`, unless its hash has been scored before, and decides. New item scores
    /// are returned with the verdict, to be kept in the state.
    ///
    /// # Errors
    /// When nothing could be measured or the budget is used up.
    pub async fn judge<E: Environment>(
        &self,
        environment: &E,
        observers: &Observers,
        candidate: &Candidate,
        state: &State,
        dir: &str,
    ) -> Result<(Verdict, Option<Vec<ItemScore>>), TrainError> {
        if let Some(known) = state.selections.get(&candidate.hash) {
            return Ok((self.decide(candidate, known, state), None));
        }
        let skill = &candidate.skill;
        let scores = evaluate(
            environment,
            observers,
            self.items,
            skill,
            SELECTION_SAMPLE,
            dir,
        )
        .await?
        .item_scores();
        Ok((self.decide(candidate, &scores, state), Some(scores)))
    }

    fn decide(&self, candidate: &Candidate, after: &[ItemScore], state: &State) -> Verdict {
        let scores = means(after);
        let coverage = coverage(after);
        let score = scores.map(|s| self.rule.score(s.hard, s.soft, &candidate.skill));
        let current_score = self.rival(&state.current, after, state);
        let best_score = self.rival(&state.best, after, state);
        let action = match score {
            Some(score) if coverage >= self.coverage_floor => {
                decide(score, current_score, best_score, self.enabled).action
            }
            _ => GateAction::Undecided,
        };
        Verdict {
            action,
            metric: self.rule.metric.name().to_owned(),
            current_score,
            candidate_score: score,
            scores,
            coverage,
            items: deltas(state.selection_of(&state.current), after),
        }
    }

    /// The score that the candidate has to beat. With every item measured on both sides it is the
    /// stored one; where some are missing it is taken over the items that both have, so that a
    /// candidate gains nothing from hard items that failed to run.
    fn rival(&self, rival: &Scored, candidate: &[ItemScore], state: &State) -> f64 {
        let items = state.selection_of(rival);
        let complete = candidate
            .iter()
            .chain(items)
            .all(|item| item.scores.is_some());
        let common = candidate
            .iter()
            .filter(|item| item.scores.is_some())
            .filter_map(|item| {
                let other = items.iter().find(|other| other.id == item.id)?;
                other.scores.map(|scores| (scores.hard, scores.soft))
            });
        match (rival.score, complete) {
            (Some(stored), true) => stored,
            (stored, _) => mean(common)
                .map(|s| self.rule.score(s.hard, s.soft, &rival.skill))
                .or(stored)
                .unwrap_or(f64::NEG_INFINITY),
        }
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

fn coverage(items: &[ItemScore]) -> f64 {
    if items.is_empty() {
        return 0.0;
    }
    items.iter().filter(|item| item.scores.is_some()).count() as f64 / items.len() as f64
}
