//! The gated trainer: rollout → reflect → aggregate → select → update → gate
//! (SkillOpt, arXiv 2605.23904; behaviour in engine 7 to 20).
//!
//! A skill document is the trainable state of a frozen target model. Each step attempts a batch of
//! train items under the current skill, lets an optimizer model reflect on the results, merges
//! what it proposes, keeps the most important edits, applies them, and takes the result only if it
//! is strictly better on held-out selection items.
//!
//! The trainer knows an [`Environment`], a chat model and a skill, and nothing of where they come
//! from. Its only output is a stream of [`Event`]s. Its state is one value; a run that was killed
//! is given that value back and goes on, every finished model call being answered from the
//! models' journal.

pub mod aggregate;
pub mod appendix;
pub mod attribution;
pub mod batches;
pub mod candidate;
pub mod confident;
pub mod early_stop;
pub mod environment;
mod epoch;
pub mod error;
pub mod evaluation;
pub mod event;
pub mod failure_patterns;
mod finish;
pub mod gate;
pub mod gate_rule;
pub mod interval;
pub mod learning_rate;
pub mod longitudinal;
pub mod lr_decision;
pub mod merge_plan;
mod microbatch;
pub mod mt19937;
pub mod optimizer;
pub mod optimizer_reply;
pub mod pairs;
pub mod patch;
pub mod plan;
pub mod prompt;
mod recover;
pub mod reflect;
pub mod run_dir;
pub mod schedule;
pub mod score;
pub mod select;
pub mod selection;
pub mod settings;
pub mod simulation;
pub mod state;
pub mod statistics;
pub mod step;
pub mod step_buffer;
pub mod summary;
pub mod trajectory;
mod trial;
pub mod update;
pub mod update_mode;
mod usage;
pub mod verdict;
mod writer;

use std::sync::Arc;
use std::time::Instant;

use environment::{Environment, Item, Split};
use error::TrainError;
use evaluation::FIRST_DRAW;
use evaluation::{Evaluation, Evaluator};
use event::{Event, Observers};
use gate::Gate;
use optimizer::Optimizer;
use prompt::Prompts;
use reflect::SkillAware;
use settings::Settings;
use state::State;
use summary::Summary;
use usage::UsageClock;

use crate::model::ChatModel;
use crate::model::meter::Meter;
use crate::skill::appendix as appendix_region;
use crate::skill::hash::skill_hash;

/// A trainer over one environment.
pub struct Trainer<'a, E> {
    environment: &'a E,
    optimizer: Arc<dyn ChatModel>,
    meter: Arc<Meter>,
    prompts: Arc<Prompts>,
    settings: Settings,
    observers: Observers,
    usage: UsageClock,
}

/// What a run made.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// The final state, with the best skill and the history.
    pub state: State,
    /// The run's numbers.
    pub summary: Summary,
}

impl<'a, E: Environment> Trainer<'a, E> {
    /// A trainer that reports to `observers`. `meter` is the one that counts the calls of
    /// `optimizer` and of the environment's models.
    ///
    /// # Errors
    /// When the settings or the environment's items cannot be trained with.
    pub fn new(
        environment: &'a E,
        optimizer: Arc<dyn ChatModel>,
        meter: Arc<Meter>,
        prompts: Arc<Prompts>,
        settings: Settings,
        observers: Observers,
    ) -> Result<Self, TrainError> {
        settings.check()?;
        plan::train_size(&settings, environment)?;
        if environment.items(Split::Selection).is_empty() {
            return Err(TrainError::Setup(format!(
                "the {} split of {} has no items; without them no candidate could ever be accepted",
                Split::Selection,
                environment.name()
            )));
        }
        Ok(Self {
            environment,
            optimizer,
            meter,
            prompts,
            settings,
            observers,
            usage: UsageClock::default(),
        })
    }

    /// Trains from `state` to the end.
    ///
    /// # Errors
    /// [`TrainError`]; the last committed state is good, and training goes on from it.
    pub async fn train(mut self, mut state: State) -> Result<Trained, TrainError> {
        let started = Instant::now();
        let train_size = plan::train_size(&self.settings, self.environment)?;
        let steps_per_epoch = self.settings.steps_per_epoch(train_size);
        self.observers.emit(&Event::RunStarted {
            environment: self.environment.name(),
            total_steps: steps_per_epoch.saturating_mul(self.settings.epochs),
            completed_steps: state.last_completed_step,
            initial_skill: &state.initial_skill,
        })?;
        self.usage = UsageClock::start(&self.meter, &state.usage);
        self.baseline(&mut state).await?;
        for epoch in 1..=self.settings.epochs {
            if state.completed_epochs >= epoch {
                continue;
            }
            let first = (epoch - 1) * steps_per_epoch;
            if state.last_completed_step <= first {
                // The analysts' short memory is of one epoch (engine 14).
                state.step_buffer.clear();
            }
            for plan in plan::steps(&self.settings, self.environment, epoch)? {
                if plan.step > state.last_completed_step {
                    self.step(&plan, &mut state).await?;
                }
            }
            self.end_epoch(epoch, &mut state).await?;
        }
        self.finish(state, started).await
    }

    fn optimizer<'b>(&'b self, meta_skill: &'b str) -> Optimizer<'b> {
        Optimizer {
            model: self.optimizer.as_ref(),
            prompts: &self.prompts,
            mode: self.settings.update_mode,
            meta_skill,
            document_tokens: self.settings.document_tokens,
        }
    }

    /// The gate of this run; `enabled` is not the run's own switch where guidance is gated apart.
    fn gate_of(&self, enabled: bool) -> Gate<'_> {
        Gate {
            projection: &self.settings.gate,
            rule: &self.settings.gate_rule,
            no_regression: self.settings.no_regression,
            seed: self.settings.seed,
            coverage_floor: self.settings.coverage_floor,
            enabled,
            items: self.selection_items(),
        }
    }

    fn selection_items(&self) -> &[Item] {
        first(
            self.environment.items(Split::Selection),
            self.settings.selection_items,
        )
    }

    /// Scores the initial skill on the selection split, once.
    async fn baseline(&self, state: &mut State) -> Result<(), TrainError> {
        if state.current.score.is_some() {
            return Ok(());
        }
        let dir = "selection_eval_baseline";
        let skill = state.current.skill.clone();
        let items = self.selection_items();
        let evaluation = self.evaluate(items, &skill, FIRST_DRAW, dir).await?;
        let scores = match evaluation.scores() {
            Some(scores) if evaluation.coverage() >= self.settings.coverage_floor => scores,
            _ => {
                return Err(TrainError::Coverage {
                    measured: evaluation.measured(),
                    attempts: items.len(),
                    floor: self.settings.coverage_floor,
                });
            }
        };
        let score = self.settings.gate.score(scores.hard, scores.soft, &skill);
        state
            .selections
            .insert(skill_hash(&skill), evaluation.item_scores());
        state.baseline = Some(scores);
        state.current.score = Some(score);
        state.best.score = Some(score);
        if self.settings.skill_aware != SkillAware::Off {
            // Reminders have their place from the start (engine 7.8).
            state.current.skill = appendix_region::ensure(&state.current.skill);
        }
        state.usage = self.usage.now(&self.meter);
        self.observers.emit(&Event::Checkpoint { state })?;
        Ok(())
    }

    fn evaluator<'b>(&'b self, dir: &'b str) -> Evaluator<'b, E> {
        Evaluator {
            environment: self.environment,
            observers: &self.observers,
            dir,
        }
    }

    async fn evaluate(
        &self,
        items: &[Item],
        skill: &str,
        sample: &str,
        dir: &str,
    ) -> Result<Evaluation, TrainError> {
        self.evaluator(dir).evaluate(items, skill, sample).await
    }
}

/// The first `limit` of `items`, all of them for 0.
fn first(items: &[Item], limit: usize) -> &[Item] {
    match limit {
        0 => items,
        limit => &items[..limit.min(items.len())],
    }
}

#[cfg(test)]
mod tests;
