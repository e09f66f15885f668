//! After the last step: the test split, and the numbers of the run (engine 18).

use super::Trainer;
use super::Trained;
use super::environment::{Environment, Split};
use super::error::TrainError;
use super::evaluation::Scores;
use super::event::Event;
use super::first;
use super::gate::means;
use super::state::State;
use super::summary::{Summary, TestScores};
use crate::skill::hash::skill_hash;

/// Test results are one draw per skill.
const TEST_SAMPLE: &str = "test";

impl<E: Environment> Trainer<'_, E> {
    /// Measures the initial and the best skill on the test split, when that is asked for and the
    /// split has items.
    pub(super) async fn test_scores(&self, state: &mut State) -> Result<TestScores, TrainError> {
        if !self.settings.eval_test || self.environment.items(Split::Test).is_empty() {
            return Ok(TestScores::default());
        }
        let baseline = self.test(&state.initial_skill, "test_eval_baseline").await?;
        let best = if state.best.skill == state.initial_skill {
            baseline
        } else {
            self.test(&state.best.skill, "test_eval").await?
        };
        state.usage = self.usage.now(&self.meter);
        Ok(TestScores { baseline, best })
    }

    async fn test(&self, skill: &str, dir: &str) -> Result<Option<Scores>, TrainError> {
        let items = first(self.environment.items(Split::Test), self.settings.test_items);
        let evaluation = self.evaluate(items, skill, TEST_SAMPLE, dir).await?;
        Ok(evaluation.scores())
    }

    /// Adds the run up and says that it is over.
    pub(super) fn finish(
        &self,
        state: State,
        test: TestScores,
        wall_time_s: f64,
    ) -> Result<Trained, TrainError> {
        let best_selection = state
            .selections
            .get(&skill_hash(&state.best.skill))
            .and_then(|items| means(items));
        let summary = Summary::of(&state, &self.settings.gate, best_selection, test, wall_time_s);
        self.observers.emit(&Event::Checkpoint { state: &state })?;
        self.observers.emit(&Event::RunFinished {
            summary: &summary,
            best_skill: &state.best.skill,
        })?;
        Ok(Trained { state, summary })
    }
}
