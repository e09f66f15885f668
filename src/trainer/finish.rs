//! After the last epoch: the final skill is validated, the test split measured, and the run added
//! up (engine 18).

use std::time::Instant;

use super::Trained;
use super::Trainer;
use super::environment::{Environment, Split};
use super::error::TrainError;
use super::evaluation::{ItemScore, Scores};
use super::event::Event;
use super::first;
use super::gate::{SELECTION_SAMPLE, means};
use super::state::{Scored, State};
use super::summary::{Measured, Summary};
use crate::skill::hash::skill_hash;

/// Test results are one draw per skill.
const TEST_SAMPLE: &str = "test";

impl<E: Environment> Trainer<'_, E> {
    /// Validates, measures, adds up, and says that the run is over.
    pub(super) async fn finish(
        &self,
        mut state: State,
        started: Instant,
    ) -> Result<Trained, TrainError> {
        let mut measured = Measured {
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
        Ok(Trained { state, summary })
    }

    /// Notes and ungated guidance changed the current skill after it was scored; it may be better
    /// than the best one, and is taken for it if so (W-G5). `None` when it is the best one.
    async fn validate_final(&self, state: &mut State) -> Result<Option<Scores>, TrainError> {
        if state.current.skill == state.best.skill {
            return Ok(None);
        }
        let hash = skill_hash(&state.current.skill);
        if !state.selections.contains_key(&hash) {
            let dir = "final_selection_eval";
            let items = self.selection_items();
            let evaluation = self
                .evaluate(items, &state.current.skill, SELECTION_SAMPLE, dir)
                .await?;
            if evaluation.coverage() < self.settings.coverage_floor {
                return Ok(None);
            }
            state
                .selections
                .insert(hash.clone(), evaluation.item_scores());
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
        measured.test_baseline = self
            .test(&state.initial_skill, "test_eval_baseline")
            .await?;
        measured.test_best = if state.best.skill == state.initial_skill {
            measured.test_baseline.clone()
        } else {
            self.test(&state.best.skill, "test_eval").await?
        };
        measured.test_final = if state.current.skill == state.best.skill {
            measured.test_best.clone()
        } else {
            self.test(&state.current.skill, "test_eval_final").await?
        };
        Ok(())
    }

    async fn test(&self, skill: &str, dir: &str) -> Result<Vec<ItemScore>, TrainError> {
        let items = first(
            self.environment.items(Split::Test),
            self.settings.test_items,
        );
        Ok(self
            .evaluate(items, skill, TEST_SAMPLE, dir)
            .await?
            .item_scores())
    }
}
