//! The first half of a step: its microbatches are attempted and studied, each by itself, all under
//! the same skill and with the same memory (engine 8).

use std::time::Instant;

use futures::future::try_join_all;

use super::Trainer;
use super::environment::{Environment, Item, Rollout, Study};
use super::error::TrainError;
use super::evaluation::Evaluation;
use super::plan::{PlannedBatch, StepPlan};
use super::reflect::{Proposals, Reflection, reflect};
use super::run_dir::step_dir;
use super::schedule::LrControl;
use super::state::{AccumulationBatch, State};
use super::step_buffer;

/// What the microbatches of a step came to.
pub(super) struct Studied {
    evaluations: Vec<Evaluation>,
    /// Their records, in order.
    pub(super) records: Vec<AccumulationBatch>,
    /// What was proposed, in order.
    pub(super) proposals: Proposals,
    /// Seconds until the last attempt was in.
    pub(super) rollout_s: f64,
    /// Seconds from then until the last analyst was done.
    pub(super) reflect_s: f64,
}

impl Studied {
    /// All rollouts, in order.
    pub(super) fn rollouts(&self) -> impl Iterator<Item = &Rollout> {
        self.evaluations
            .iter()
            .flat_map(|evaluation| &evaluation.rollouts)
    }
}

struct Microbatch {
    evaluation: Evaluation,
    record: AccumulationBatch,
    proposals: Proposals,
    rollout_s: f64,
}

impl<E: Environment> Trainer<'_, E> {
    /// Attempts and studies every microbatch of a step. Reflection on one starts when its own
    /// attempts are in, whatever the others do.
    pub(super) async fn study(
        &self,
        plan: &StepPlan<'_>,
        state: &State,
    ) -> Result<Studied, TrainError> {
        let clock = Instant::now();
        let history = step_buffer::render(&state.step_buffer);
        let microbatches = plan.batches.iter().enumerate().map(|(index, batch)| {
            self.microbatch(
                self.batch_dir(plan.step, index),
                index,
                batch,
                state,
                &history,
            )
        });
        let microbatches = try_join_all(microbatches).await?;
        let rollout_s = microbatches.iter().map(|m| m.rollout_s).fold(0.0, f64::max);
        let mut studied = Studied {
            evaluations: Vec::new(),
            records: Vec::new(),
            proposals: Proposals::default(),
            rollout_s,
            reflect_s: (clock.elapsed().as_secs_f64() - rollout_s).max(0.0),
        };
        for microbatch in microbatches {
            studied.evaluations.push(microbatch.evaluation);
            studied.records.push(microbatch.record);
            studied.proposals.extend(microbatch.proposals);
        }
        Ok(studied)
    }

    async fn microbatch(
        &self,
        dir: String,
        index: usize,
        batch: &PlannedBatch<'_>,
        state: &State,
        history: &str,
    ) -> Result<Microbatch, TrainError> {
        let clock = Instant::now();
        let items: Vec<Item> = batch.items.iter().map(|item| (**item).clone()).collect();
        let rollout_dir = format!("{dir}/rollout");
        let evaluation = self
            .evaluate(&items, &state.current.skill, &rollout_dir, &rollout_dir)
            .await?;
        let rollout_s = clock.elapsed().as_secs_f64();
        let study = Study {
            dir: &dir,
            skill: &state.current.skill,
            rollouts: &evaluation.rollouts,
            history,
            meta_skill: &state.meta_skill,
            seed: batch.seed,
        };
        let proposals = self.reflect(&study).await?;
        let record = record(index, batch.seed, &evaluation, &proposals);
        Ok(Microbatch {
            evaluation,
            record,
            proposals,
            rollout_s,
        })
    }

    async fn reflect(&self, study: &Study<'_>) -> Result<Proposals, TrainError> {
        let settings = &self.settings;
        if let Some(raw) = self.environment.reflect(study).await {
            return Ok(Proposals::of(
                &raw,
                settings.update_mode,
                settings.skill_aware,
            ));
        }
        let reflection = Reflection {
            skill: study.skill,
            minibatch_size: settings.minibatch_size,
            failure_only: settings.failure_only,
            skill_aware: settings.skill_aware,
            budget: self.analyst_budget(),
            seed: Some(study.seed),
            guidance: self.environment.analyst_guidance(),
            history: study.history,
            dir: &format!("{}/patches", study.dir),
        };
        let optimizer = self.optimizer(study.meta_skill);
        reflect(&optimizer, &self.observers, study.rollouts, &reflection).await
    }

    /// Most items that one analyst may propose: what a step may apply at the most, if anything
    /// limits that (W-L6).
    fn analyst_budget(&self) -> Option<usize> {
        match self.settings.lr_control() {
            LrControl::Fixed => Some(self.settings.edit_budget),
            LrControl::Autonomous | LrControl::None => None,
        }
    }

    fn batch_dir(&self, step: u32, index: usize) -> String {
        match self.settings.accumulation {
            1 => step_dir(step),
            _ => format!("{}/batch_{index}", step_dir(step)),
        }
    }
}

fn record(
    index: usize,
    seed: i64,
    evaluation: &Evaluation,
    proposals: &Proposals,
) -> AccumulationBatch {
    let scores = evaluation.scores();
    AccumulationBatch {
        batch_idx: index,
        batch_seed: seed,
        n_envs: evaluation.rollouts.len(),
        n_measured: evaluation.measured(),
        hard: scores.map_or(0.0, |s| s.hard),
        soft: scores.map_or(0.0, |s| s.soft),
        n_failure_patches: proposals.failure.len(),
        n_success_patches: proposals.success.len(),
    }
}
