//! The confident rule: current skill and candidate are scored in pairs, item by item and as often
//! as needed, until a sequential test says better, not better, or cannot say.

use futures::future::{join_all, try_join};

use super::{Gate, Judged, means, smallest_wave};
use crate::trainer::candidate::Candidate;
use crate::trainer::confident::{ConfidentSettings, ConfidentTest, Decision, Draw};
use crate::trainer::environment::{Environment, Rollout};
use crate::trainer::error::TrainError;
use crate::trainer::evaluation::{Evaluator, FIRST_DRAW, ItemScore, Scores, mean};
use crate::trainer::gate_rule::{GateAction, GateProjection};
use crate::trainer::state::State;
use crate::trainer::verdict::{ItemDelta, Verdict};

/// Attempts of one side, by item.
struct Side {
    rollouts: Vec<Vec<Rollout>>,
}

impl Side {
    fn new(items: usize) -> Self {
        Self {
            rollouts: vec![Vec::new(); items],
        }
    }

    fn means(&self, item: usize) -> Option<Scores> {
        mean(self.rollouts[item].iter().filter_map(Rollout::scores))
    }
}

impl Gate<'_> {
    pub(super) async fn judge_paired<E: Environment>(
        &self,
        evaluator: &Evaluator<'_, E>,
        candidate: &Candidate,
        state: &State,
        settings: &ConfidentSettings,
    ) -> Result<Judged, TrainError> {
        let setup = |error: &dyn std::error::Error| TrainError::Setup(error.to_string());
        // The same seed for every candidate: their tests ask for the same repeats of the current
        // skill, and the journal answers those.
        let mut test = ConfidentTest::new(self.items.len(), self.seed.cast_unsigned(), *settings)
            .map_err(|error| setup(&error))?;
        let mut before = Side::new(self.items.len());
        let mut after = Side::new(self.items.len());
        evaluator.start(test.budget())?;
        while test.decision() == Decision::Continue {
            let wave = test
                .fewest_until_decided()
                .max(smallest_wave(self.items.len()));
            let draws = test.next(wave);
            let pairs = draws
                .iter()
                .map(|draw| self.pair(evaluator, candidate, state, *draw));
            for (draw, pair) in draws.iter().zip(join_all(pairs).await) {
                let (current, new) = pair?;
                let gain = self.gain(&current, &new);
                test.record(*draw, gain).map_err(|error| setup(&error))?;
                before.rollouts[draw.item].push(current);
                after.rollouts[draw.item].push(new);
            }
        }
        let mut verdict = self.verdict(&test, &before, &after, state);
        if test.decision() == Decision::Accept {
            let scores = self
                .full_scores(evaluator, candidate, &mut verdict, state)
                .await?;
            return Ok(Judged {
                verdict,
                scores: Some(scores),
            });
        }
        evaluator.finish(after.rollouts.into_iter().flatten().collect())?;
        Ok(Judged {
            verdict,
            scores: None,
        })
    }

    /// Both skills on one item. The draw's number is the sample, so that the current skill's
    /// results serve the tests of all candidates; each test uses each of them once.
    async fn pair<E: Environment>(
        &self,
        evaluator: &Evaluator<'_, E>,
        candidate: &Candidate,
        state: &State,
        draw: Draw,
    ) -> Result<(Rollout, Rollout), TrainError> {
        let item = &self.items[draw.item];
        let sample = match draw.repeat {
            0 => FIRST_DRAW.to_owned(),
            repeat => format!("{FIRST_DRAW}/repeat_{repeat}"),
        };
        try_join(
            evaluator.attempt(item, &state.current.skill, &sample),
            evaluator.attempt(item, &candidate.skill, &sample),
        )
        .await
    }

    /// Candidate minus current in the space of the gate metric; `None` when either is missing.
    /// Density is part of a document, not of an attempt, and is left out.
    fn gain(&self, current: &Rollout, new: &Rollout) -> Option<f64> {
        let projection = GateProjection {
            density: None,
            ..self.projection.clone()
        };
        let plain = |rollout: &Rollout| {
            let (hard, soft) = rollout.scores()?;
            Some(projection.score(hard, soft, "").clamp(0.0, 1.0))
        };
        Some(plain(new)? - plain(current)?)
    }

    /// A candidate that is taken keeps a score; it is the mean over every item, scored once.
    async fn full_scores<E: Environment>(
        &self,
        evaluator: &Evaluator<'_, E>,
        candidate: &Candidate,
        verdict: &mut Verdict,
        state: &State,
    ) -> Result<Vec<ItemScore>, TrainError> {
        let evaluation = evaluator
            .evaluate(self.items, &candidate.skill, FIRST_DRAW)
            .await?;
        let items = evaluation.item_scores();
        verdict.scores = means(&items);
        verdict.candidate_score = verdict.scores.map(|s| self.score(s, &candidate.skill));
        let best_is_current = state.best.scored == state.current.scored;
        verdict.action = if best_is_current || verdict.candidate_score > state.best.score {
            GateAction::AcceptNewBest
        } else {
            GateAction::Accept
        };
        Ok(items)
    }

    fn verdict(&self, test: &ConfidentTest, before: &Side, after: &Side, state: &State) -> Verdict {
        let estimate = test.estimate();
        let items = self
            .items
            .iter()
            .enumerate()
            .map(|(index, item)| ItemDelta {
                id: item.id.clone(),
                before: before.means(index),
                after: after.means(index),
            });
        let measured =
            |side: &Side| mean(side.rollouts.iter().flatten().filter_map(Rollout::scores));
        let scores = measured(after);
        Verdict {
            action: match test.decision() {
                Decision::Accept => GateAction::Accept,
                Decision::Reject => GateAction::Reject,
                Decision::Continue | Decision::Undecided => GateAction::Undecided,
            },
            rule: self.rule.name().to_owned(),
            metric: self.projection.metric.name().to_owned(),
            current_score: measured(before)
                .map(|s| self.score(s, &state.current.skill))
                .or(state.current.score)
                .unwrap_or(f64::NEG_INFINITY),
            candidate_score: scores.map(|s| self.score(s, "")),
            bound: None,
            scores,
            coverage: estimate.coverage(),
            blocked_by_regression: false,
            calls_saved: 0,
            items: items
                .filter(|item| item.before.is_some() || item.after.is_some())
                .collect(),
            estimate: Some(estimate),
        }
    }
}
