//! The hyperparameters of a run (engine 3.5, 3.6), checked before anything has an effect.

use super::error::TrainError;
use super::gate::GateRule;
use super::gate_rule::{GateMetric, GateProjection};
use super::pairs::PairPolicy;
use super::reflect::SkillAware;
use super::schedule::{LrControl, LrScheduler, Schedule};
use super::statistics::Prices;
use super::update_mode::UpdateMode;

/// The hyperparameters of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Passes over the train items.
    pub epochs: u32,
    /// Train items of an epoch; 0 for all that the environment lists. One that draws its own
    /// items has no other number (engine 5.5).
    pub train_size: usize,
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
    /// Most tokens of a reply that holds a whole document.
    pub document_tokens: u32,
    /// Who decides how many items a step applies.
    pub lr_control: LrControl,
    /// How the edit budget of a step falls over the run.
    pub lr_scheduler: LrScheduler,
    /// Most edits of a step, at the start.
    pub edit_budget: usize,
    /// Most edits of a step, at the end.
    pub min_edit_budget: usize,
    /// Write long-term guidance at the end of each epoch.
    pub use_slow_update: bool,
    /// Items that the slow update and the meta skill compare.
    pub slow_update_samples: usize,
    /// Take guidance only when the gate accepts it.
    pub slow_update_gated: bool,
    /// Which pairs are compared.
    pub pair_policy: PairPolicy,
    /// Keep the optimizer's own memory from epoch to epoch.
    pub use_meta_skill: bool,
    /// Who may leave notes about rules that were not followed.
    pub skill_aware: SkillAware,
    /// Notes from which on the appendix is consolidated; 0 for never.
    pub consolidate_threshold: usize,
    /// `false` takes every candidate.
    pub use_gate: bool,
    /// How candidates are compared.
    pub gate: GateProjection,
    /// How candidates are judged.
    pub gate_rule: GateRule,
    /// Reject a candidate that does worse on any selection item.
    pub no_regression: bool,
    /// Score a candidate on the batch that it came from first, and on the selection items only when
    /// it is better there.
    pub prescreen: bool,
    /// Score an accepted batch without each of its edits and take out those that were not needed.
    pub attribute: bool,
    /// Least measured share of the selection items for a decision, 0 to 1.
    pub coverage_floor: f64,
    /// Score at most so many selection items; 0 for all.
    pub selection_items: usize,
    /// Score at most so many test items; 0 for all.
    pub test_items: usize,
    /// Measure the initial and the best skill on the test split at the end.
    pub eval_test: bool,
    /// What tokens cost, for the record.
    pub prices: Prices,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            epochs: 1,
            train_size: 0,
            batch_size: 40,
            accumulation: 1,
            seed: 42,
            minibatch_size: 8,
            merge_batch_size: 8,
            failure_only: false,
            update_mode: UpdateMode::Patch,
            document_tokens: 64_000,
            lr_scheduler: LrScheduler::Constant,
            edit_budget: 4,
            min_edit_budget: 2,
            lr_control: LrControl::Fixed,
            use_slow_update: false,
            slow_update_samples: 20,
            slow_update_gated: false,
            pair_policy: PairPolicy::Mixed,
            use_meta_skill: false,
            skill_aware: SkillAware::Off,
            consolidate_threshold: 0,
            use_gate: true,
            gate: GateProjection {
                metric: GateMetric::Hard,
                mixed_weight: 0.5,
                density: None,
            },
            gate_rule: GateRule::Strict { full_scores: false },
            no_regression: false,
            prescreen: false,
            attribute: false,
            coverage_floor: 0.8,
            selection_items: 0,
            test_items: 0,
            eval_test: false,
            prices: Prices::default(),
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

    /// Who decides how many items a step applies; a full rewrite is one item (engine 7).
    #[must_use]
    pub fn lr_control(&self) -> LrControl {
        match self.update_mode {
            UpdateMode::FullRewriteMinibatch => LrControl::None,
            UpdateMode::Patch | UpdateMode::RewriteFromSuggestions => self.lr_control,
        }
    }

    /// The edit budget of each step of a run over `train_items` items.
    #[must_use]
    pub fn schedule(&self, train_items: usize) -> Schedule {
        let steps = self
            .steps_per_epoch(train_items)
            .saturating_mul(self.epochs);
        Schedule::new(
            self.lr_scheduler,
            self.edit_budget,
            self.min_edit_budget,
            steps as usize,
        )
    }

    /// Refuses values that no run can be made with.
    ///
    /// # Errors
    /// [`TrainError::Setup`] that names the value.
    pub fn check(&self) -> Result<(), TrainError> {
        let at_least = |name: &str, value: usize, least: usize| {
            if value < least {
                return Err(TrainError::Setup(format!(
                    "{name} is {value}; it must be at least {least}"
                )));
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
        Ok(())
    }
}
