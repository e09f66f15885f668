//! After the last epoch: the final skill is validated, the test split measured, and the run added
//! up (engine 18).

use std::time::Instant;

use super::Trained;
use super::Trainer;
use super::environment::{Environment, Split};
use super::error::TrainError;
use super::evaluation::FIRST_DRAW;
use super::evaluation::{Evaluation, Scores};
use super::event::Event;
use super::first;
use super::gate::means;
use super::state::{Scored, State};
use super::summary::{Measured, Summary};
use crate::skill::hash::skill_hash;

impl<E: Environment> Trainer<'_, E> {
    /// Validates, measures, adds up, and says that the run is over.
    pub(super) async fn finish(
        &self,
        mut state: State,
        started: Instant,
    ) -> Result<Trained, TrainError> {
        let mut measured = Measured {
            final_was_best: state.current.skill == state.best.skill,
            final_selection: self.validate_final(&mut state).await?,
            best_selection: means(state.selection_of(&state.best)),
            ..Measured::default()
        };
        if self.settings.eval_test && !self.environment.items(Split::Test).is_empty() {
            self.test_all(&state, &mut measured).await?;
        }
        state.usage = self.usage.now(&self.meter);
        let wall_time_s = started.elapsed().as_secs_f64();
        let summary = Summary::of(
            &state,
            &self.settings.gate,
            &measured,
            &self.settings.prices,
            wall_time_s,
        );
        self.observers.emit(&Event::Checkpoint { state: &state })?;
        self.observers.emit(&Event::RunFinished {
            summary: &summary,
            best_skill: &state.best.skill,
        })?;
        self.observers.settle()?;
        Ok(Trained { state, summary })
    }

    /// Notes and ungated guidance changed the current skill after it was scored; it may be better
    /// than the best one, and is taken for it if so (W-G5). The final skill's scores, `None` where
    /// they could not be had.
    async fn validate_final(&self, state: &mut State) -> Result<Option<Scores>, TrainError> {
        if state.current.skill == state.best.skill {
            return Ok(means(state.selection_of(&state.best)));
        }
        let hash = skill_hash(&state.current.skill);
        if !state.selections.contains_key(&hash) {
            let dir = "final_selection_eval";
            let items = self.selection_items();
            let skill = &state.current.skill;
            let evaluation = self.evaluate(items, skill, FIRST_DRAW, dir).await;
            match self.unless_outage(evaluation, dir)? {
                Some(e) if e.coverage() >= self.settings.coverage_floor => {
                    state.selections.insert(hash.clone(), e.item_scores());
                }
                _ => return Ok(None),
            }
        }
        let scores = state.selections.get(&hash).and_then(|items| means(items));
        let score = scores.map(|s| {
            self.settings
                .gate
                .score(s.hard, s.soft, &state.current.skill)
        });
        if score > state.best.score {
            state.best = Scored {
                score,
                scored: hash,
                ..state.current.clone()
            };
            state.best_step = state.last_completed_step;
        }
        Ok(scores)
    }

    /// Measures the initial, the best and the final skill; equal texts are measured once.
    async fn test_all(&self, state: &State, measured: &mut Measured) -> Result<(), TrainError> {
        let initial = self
            .test(&state.initial_skill, "test_eval_baseline")
            .await?;
        measured.test_baseline = initial.item_scores();
        self.tested("test_eval_baseline", &initial)?;
        let best = if state.best.skill == state.initial_skill {
            initial
        } else {
            self.test(&state.best.skill, "test_eval").await?
        };
        measured.test_best = best.item_scores();
        self.tested("test_eval", &best)?;
        let dir = "test_eval_final";
        let last = if state.current.skill == state.best.skill {
            Some(best)
        } else {
            let evaluation = self.test(&state.current.skill, dir).await;
            self.unless_outage(evaluation, dir)?
        };
        if let Some(last) = last {
            measured.test_final = last.item_scores();
            self.tested(dir, &last)?;
        }
        Ok(())
    }

    async fn test(&self, skill: &str, dir: &str) -> Result<Evaluation, TrainError> {
        let items = first(
            self.environment.items(Split::Test),
            self.settings.test_items,
        );
        self.evaluate(items, skill, FIRST_DRAW, dir).await
    }

    fn tested(&self, dir: &str, evaluation: &Evaluation) -> Result<(), TrainError> {
        self.observers.emit(&Event::Tested {
            dir,
            scores: evaluation.scores(),
            rollouts: &evaluation.rollouts,
        })?;
        Ok(())
    }

    /// The final skill is measured for the record; when it cannot be, the run is told so and is
    /// complete nevertheless (engine 18.2).
    fn unless_outage(
        &self,
        evaluation: Result<Evaluation, TrainError>,
        dir: &str,
    ) -> Result<Option<Evaluation>, TrainError> {
        match evaluation {
            Err(error @ TrainError::NothingMeasured { .. }) => {
                let message = format!("{dir} is left out: {error}");
                self.observers.emit(&Event::Note { message: &message })?;
                Ok(None)
            }
            other => other.map(Some),
        }
    }
}
