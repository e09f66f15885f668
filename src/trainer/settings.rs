//! The hyperparameters of a run (engine 3.5, 3.6), checked before anything has an effect.

use super::error::TrainError;
use super::gate_rule::{GateMetric, GateProjection};
use super::schedule::{LrScheduler, Schedule};
use super::update_mode::UpdateMode;

/// The hyperparameters of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Passes over the train items.
    pub epochs: u32,
    /// Items a microbatch.
    pub batch_size: usize,
    /// Microbatches a step.
    pub accumulation: usize,
    /// Seed of every shuffle.
    pub seed: i64,
    /// Rollouts an analyst studies at once.
    pub minibatch_size: usize,
    /// Patches that one merge call unites, at least 2.
    pub merge_batch_size: usize,
    /// Learn from failures only.
    pub failure_only: bool,
    /// What analysts propose.
    pub update_mode: UpdateMode,
    /// How the edit budget of a step falls over the run.
    pub lr_scheduler: LrScheduler,
    /// Most edits of a step, at the start.
    pub edit_budget: usize,
    /// Most edits of a step, at the end.
    pub min_edit_budget: usize,
    /// `false` takes every candidate.
    pub use_gate: bool,
    /// How candidates are compared.
    pub gate: GateProjection,
    /// Least measured share of the selection items for a decision, 0 to 1.
    pub coverage_floor: f64,
    /// Score at most so many selection items; 0 for all.
    pub selection_items: usize,
    /// Score at most so many test items; 0 for all.
    pub test_items: usize,
    /// Measure the initial and the best skill on the test split at the end.
    pub eval_test: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            epochs: 1,
            batch_size: 40,
            accumulation: 1,
            seed: 42,
            minibatch_size: 8,
            merge_batch_size: 8,
            failure_only: false,
            update_mode: UpdateMode::Patch,
            lr_scheduler: LrScheduler::Constant,
            edit_budget: 4,
            min_edit_budget: 2,
            use_gate: true,
            gate: GateProjection {
                metric: GateMetric::Hard,
                mixed_weight: 0.5,
                density: None,
            },
            coverage_floor: 0.8,
            selection_items: 0,
            test_items: 0,
            eval_test: false,
        }
    }
}

impl Settings {
    /// Steps of one epoch over `train_items` items.
    #[must_use]
    pub fn steps_per_epoch(&self, train_items: usize) -> u32 {
        let per_step = (self.batch_size * self.accumulation).max(1);
        u32::try_from(train_items.div_ceil(per_step)).unwrap_or(u32::MAX)
    }

    /// The edit budget of each step of a run over `train_items` items.
    #[must_use]
    pub fn schedule(&self, train_items: usize) -> Schedule {
        let steps = self.steps_per_epoch(train_items).saturating_mul(self.epochs);
        Schedule::new(self.lr_scheduler, self.edit_budget, self.min_edit_budget, steps as usize)
    }

    /// Refuses values that no run can be made with.
    ///
    /// # Errors
    /// [`TrainError::Setup`] that names the value.
    pub fn check(&self) -> Result<(), TrainError> {
        let at_least = |name: &str, value: usize, least: usize| {
            if value < least {
                return Err(TrainError::Setup(format!("{name} is {value}; it must be at least {least}")));
            }
            Ok(())
        };
        at_least("num_epochs", self.epochs as usize, 1)?;
        at_least("batch_size", self.batch_size, 1)?;
        at_least("accumulation", self.accumulation, 1)?;
        at_least("minibatch_size", self.minibatch_size, 1)?;
        at_least("merge_batch_size", self.merge_batch_size, 2)?;
        if !(0.0..=1.0).contains(&self.coverage_floor) {
            return Err(TrainError::Setup(format!(
                "coverage_floor is {}; it must lie between 0 and 1",
                self.coverage_floor
            )));
        }
        if self.update_mode != UpdateMode::Patch {
            return Err(TrainError::Setup(
                "skill_update_mode: only `patch` is built in this version".to_owned(),
            ));
        }
        Ok(())
    }
}
