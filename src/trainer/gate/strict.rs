//! The paper's rule: the candidate's mean must be strictly greater (engine 13), scored no further
//! than the decision needs.

use futures::future::join_all;

use super::{Gate, Judged, coverage, means, smallest_wave};
use crate::trainer::candidate::Candidate;
use crate::trainer::early_stop::{EarlyStop, ItemResult, scoring_order};
use crate::trainer::environment::{Environment, Rollout};
use crate::trainer::error::TrainError;
use crate::trainer::evaluation::{Evaluator, FIRST_DRAW, ItemScore, Scores, mean};
use crate::trainer::gate_rule::{GateAction, decide};
use crate::trainer::state::{Scored, State};
use crate::trainer::verdict::{Verdict, deltas};

/// What scoring a candidate came to.
struct Scoring {
    items: Vec<ItemScore>,
    /// The highest gate score that it could still have reached, when scoring stopped early.
    bound: Option<f64>,
}

impl Gate<'_> {
    pub(super) async fn judge_strict<E: Environment>(
        &self,
        evaluator: &Evaluator<'_, E>,
        candidate: &Candidate,
        state: &State,
        full_scores: bool,
    ) -> Result<Judged, TrainError> {
        if let Some(known) = state.selections.get(&candidate.hash) {
            let verdict = self.compare(candidate, known, state);
            return Ok(Judged {
                verdict,
                scores: None,
            });
        }
        let early = self
            .early_stop(candidate, state)
            .filter(|_| self.enabled && !full_scores);
        let scoring = match early {
            Some(early) => {
                self.score_in_waves(evaluator, candidate, state, &early)
                    .await?
            }
            None => {
                let skill = &candidate.skill;
                let evaluation = evaluator.evaluate(self.items, skill, FIRST_DRAW).await?;
                Scoring {
                    items: evaluation.item_scores(),
                    bound: None,
                }
            }
        };
        Ok(match scoring.bound {
            Some(bound) => Judged {
                verdict: self.rejected_early(&scoring.items, bound, state),
                scores: None,
            },
            None => Judged {
                verdict: self.compare(candidate, &scoring.items, state),
                scores: Some(scoring.items),
            },
        })
    }

    /// The bound that lets scoring stop; `None` when the current skill's score does not stand for
    /// all items, so that what the candidate has to beat is not known in advance.
    fn early_stop(&self, candidate: &Candidate, state: &State) -> Option<EarlyStop> {
        let current = state.selection_of(&state.current);
        let complete =
            current.len() == self.items.len() && current.iter().all(|i| i.scores.is_some());
        let score = state.current.score.filter(|_| complete)?;
        Some(EarlyStop::new(self.projection, &candidate.skill, score))
    }

    /// Scores wave by wave, items that the current skill fails first, until all are scored or no
    /// result of the rest can make the candidate win. Which items are scored depends on results
    /// alone, never on which call was answered first.
    async fn score_in_waves<E: Environment>(
        &self,
        evaluator: &Evaluator<'_, E>,
        candidate: &Candidate,
        state: &State,
        early: &EarlyStop,
    ) -> Result<Scoring, TrainError> {
        let current: Vec<Option<Scores>> = state
            .selection_of(&state.current)
            .iter()
            .map(|item| item.scores)
            .collect();
        let order = scoring_order(&current, self.projection);
        let mut results = vec![ItemResult::Pending; self.items.len()];
        let mut rollouts: Vec<Option<Rollout>> = self.items.iter().map(|_| None).collect();
        evaluator.start(self.items.len())?;
        let mut pending = order.as_slice();
        while !pending.is_empty() && early.can_still_win(&results) {
            let least = early.fewest_until_decided(&results, &order);
            let wave = least
                .max(smallest_wave(self.items.len()))
                .clamp(1, pending.len());
            let (now, later) = pending.split_at(wave);
            pending = later;
            let attempts = now
                .iter()
                .map(|&index| evaluator.attempt(&self.items[index], &candidate.skill, FIRST_DRAW));
            for (&index, rollout) in now.iter().zip(join_all(attempts).await) {
                let rollout = rollout?;
                results[index] = rollout
                    .scores()
                    .map_or(ItemResult::NotMeasured, |(hard, soft)| {
                        ItemResult::Scored(Scores { hard, soft })
                    });
                rollouts[index] = Some(rollout);
            }
        }
        let bound = if pending.is_empty() {
            None
        } else {
            early.upper_bound(&results)
        };
        let evaluation = evaluator.finish(rollouts.into_iter().flatten().collect())?;
        Ok(Scoring {
            items: evaluation.item_scores(),
            bound,
        })
    }

    fn rejected_early(&self, scored: &[ItemScore], bound: f64, state: &State) -> Verdict {
        Verdict {
            action: GateAction::Reject,
            rule: self.rule.name().to_owned(),
            metric: self.projection.metric.name().to_owned(),
            current_score: state.current.score.unwrap_or(f64::NEG_INFINITY),
            candidate_score: None,
            bound: Some(bound),
            scores: None,
            coverage: coverage(scored),
            blocked_by_regression: false,
            calls_saved: self.items.len() - scored.len(),
            estimate: None,
            items: deltas(state.selection_of(&state.current), scored),
        }
    }

    fn compare(&self, candidate: &Candidate, after: &[ItemScore], state: &State) -> Verdict {
        let scores = means(after);
        let coverage = coverage(after);
        let score = scores.map(|s| self.score(s, &candidate.skill));
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
            rule: self.rule.name().to_owned(),
            metric: self.projection.metric.name().to_owned(),
            current_score,
            candidate_score: score,
            bound: None,
            scores,
            coverage,
            blocked_by_regression: false,
            calls_saved: 0,
            estimate: None,
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
                .map(|scores| self.score(scores, &rival.skill))
                .or(stored)
                .unwrap_or(f64::NEG_INFINITY),
        }
    }
}
