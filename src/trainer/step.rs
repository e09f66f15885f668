//! One step of training, stage by stage, and what it leaves behind.

use std::time::Instant;

use super::Trainer;
use super::aggregate::aggregate;
use super::appendix::{self, Flushed};
use super::batches::EpochShape;
use super::candidate::Candidate;
use super::environment::{Environment, Item, Rollout, Split};
use super::error::TrainError;
use super::evaluation::{Evaluation, mean};
use super::event::Event;
use super::failure_patterns::{descriptions, failure_patterns};
use super::gate_rule::GateAction;
use super::learning_rate::{self, Evidence};
use super::lr_decision::LrDecision;
use super::patch::Patch;
use super::reflect::{Proposals, Reflection, SkillAware, reflect};
use super::run_dir::step_dir;
use super::schedule::LrControl;
use super::select::select;
use super::settings::Settings;
use super::state::{AccumulationBatch, Scored, State, StepRecord, Timing};
use super::step_buffer::{self, BufferEntry};
use super::update::update;
use super::usage::usage_since;
use super::verdict::Verdict;

/// What a step is about: its place in the run and its items.
pub struct StepPlan<'a> {
    /// From 1 over the whole run.
    pub step: u32,
    /// From 1.
    pub epoch: u32,
    /// From 0.
    pub step_in_epoch: u32,
    /// Its microbatches.
    pub batches: Vec<PlannedBatch<'a>>,
}

/// One microbatch of a step.
pub struct PlannedBatch<'a> {
    /// Seed of the analysts' shuffles.
    pub seed: i64,
    /// Its items.
    pub items: Vec<&'a Item>,
}

/// The steps of an epoch (engine 5.4).
#[must_use]
pub fn plan<'a>(settings: &Settings, epoch: u32, items: &'a [Item]) -> Vec<StepPlan<'a>> {
    let steps_per_epoch = settings.steps_per_epoch(items.len());
    let shape = EpochShape::covering(items.len(), settings.batch_size, settings.accumulation);
    let planned = shape.epoch(settings.seed, epoch as usize);
    let mut batches = planned.into_iter().map(|batch| PlannedBatch {
        seed: batch.seed,
        items: batch
            .items
            .into_iter()
            .filter_map(|index| items.get(index))
            .collect(),
    });
    (0..steps_per_epoch)
        .map(|step_in_epoch| StepPlan {
            step: (epoch - 1) * steps_per_epoch + step_in_epoch + 1,
            epoch,
            step_in_epoch,
            batches: batches.by_ref().take(settings.accumulation).collect(),
        })
        .collect()
}

/// The rollouts of a step's microbatches.
struct StepRollouts {
    batches: Vec<(Evaluation, AccumulationBatch, String)>,
}

impl StepRollouts {
    fn all(&self) -> impl Iterator<Item = &Rollout> {
        self.batches
            .iter()
            .flat_map(|(evaluation, ..)| &evaluation.rollouts)
    }
}

impl<E: Environment> Trainer<'_, E> {
    /// Runs one step and commits its record and the new state.
    pub(super) async fn step(
        &self,
        plan: &StepPlan<'_>,
        state: &mut State,
    ) -> Result<(), TrainError> {
        self.observers.emit(&Event::StepStarted {
            step: plan.step,
            epoch: plan.epoch,
        })?;
        let clock = Instant::now();
        let mut work = StepWork::begin(plan);

        let mut rollouts = self.rollout(plan, state).await?;
        work.timing.rollout_s = work.lap();
        let proposals = self.reflect(&mut rollouts, state).await?;
        work.timing.reflect_s = work.lap();
        work.note_proposals(&proposals);
        if !proposals.is_empty() {
            let merged = self.aggregate(&work.dir, proposals, state).await?;
            work.timing.aggregate_s = work.lap();
            let selected = self
                .select(plan, &mut work, merged, &rollouts, state)
                .await?;
            work.timing.select_s = work.lap();
            work.candidate = self.update(&work.dir, selected, state).await?;
            work.timing.update_s = work.lap();
        }
        if let Some(candidate) = &work.candidate {
            work.verdict = self.gate(plan, &work.dir, candidate, state).await?;
            work.timing.evaluate_s = work.lap();
        }
        self.take(plan, &work, state);
        self.flush_notes(&mut work, state).await?;
        self.commit(plan, work, &rollouts, state, clock.elapsed().as_secs_f64())
    }

    async fn rollout(
        &self,
        plan: &StepPlan<'_>,
        state: &State,
    ) -> Result<StepRollouts, TrainError> {
        let mut batches = Vec::new();
        for (index, batch) in plan.batches.iter().enumerate() {
            let dir = self.batch_dir(plan.step, index);
            let items: Vec<Item> = batch.items.iter().map(|item| (*item).clone()).collect();
            let rollout_dir = format!("{dir}/rollout");
            let evaluation = self
                .evaluate(&items, &state.current.skill, &rollout_dir, &rollout_dir)
                .await?;
            let record = accumulation_record(index, batch.seed, &evaluation);
            batches.push((evaluation, record, dir));
        }
        Ok(StepRollouts { batches })
    }

    async fn reflect(
        &self,
        rollouts: &mut StepRollouts,
        state: &State,
    ) -> Result<Proposals, TrainError> {
        let history = step_buffer::render(&state.step_buffer);
        let mut proposals = Proposals::default();
        for (evaluation, record, dir) in &mut rollouts.batches {
            let reflection = Reflection {
                skill: &state.current.skill,
                minibatch_size: self.settings.minibatch_size,
                failure_only: self.settings.failure_only,
                skill_aware: self.settings.skill_aware,
                budget: self.analyst_budget(),
                seed: record.batch_seed,
                guidance: self.environment.analyst_guidance(),
                history: &history,
                dir: &format!("{dir}/patches"),
            };
            let found = reflect(
                &self.optimizer(&state.meta_skill),
                &self.observers,
                &evaluation.rollouts,
                &reflection,
            )
            .await?;
            record.n_failure_patches = found.failure.len();
            record.n_success_patches = found.success.len();
            proposals.extend(found);
        }
        Ok(proposals)
    }

    async fn aggregate(
        &self,
        dir: &str,
        proposals: Proposals,
        state: &State,
    ) -> Result<Patch, TrainError> {
        let Settings {
            update_mode: mode,
            merge_batch_size: size,
            ..
        } = self.settings;
        let skill = &state.current.skill;
        let optimizer = self.optimizer(&state.meta_skill);
        let patch = aggregate(&optimizer, skill, proposals, size, dir).await?;
        self.observers.emit(&Event::Aggregated {
            dir,
            patch: &patch,
            mode,
        })?;
        Ok(patch)
    }

    async fn select(
        &self,
        plan: &StepPlan<'_>,
        work: &mut StepWork,
        merged: Patch,
        rollouts: &StepRollouts,
        state: &State,
    ) -> Result<Patch, TrainError> {
        let optimizer = self.optimizer(&state.meta_skill);
        work.n_edits_merged = Some(merged.items.len());
        let budget = self.budget(plan, work, &merged, rollouts, state).await?;
        work.edit_budget = budget;
        let patch = select(&optimizer, &state.current.skill, merged, budget, &work.dir).await?;
        self.observers.emit(&Event::Selected {
            dir: &work.dir,
            budget,
            patch: &patch,
            mode: self.settings.update_mode,
        })?;
        Ok(patch)
    }

    /// How many items this step may apply; `None` is no limit.
    async fn budget(
        &self,
        plan: &StepPlan<'_>,
        work: &mut StepWork,
        merged: &Patch,
        rollouts: &StepRollouts,
        state: &State,
    ) -> Result<Option<usize>, TrainError> {
        let schedule = self
            .settings
            .schedule(self.environment.items(Split::Train).len());
        let scheduled = schedule.budget(plan.step as usize);
        match self.settings.lr_control() {
            LrControl::Fixed => Ok(scheduled),
            LrControl::None => Ok(None),
            LrControl::Autonomous => {
                let evidence = Evidence {
                    skill: &state.current.skill,
                    merged,
                    rollouts: rollouts.all().count(),
                    scores: mean(rollouts.all().filter_map(Rollout::scores)),
                    history: &step_buffer::render(&state.step_buffer),
                    scheduled,
                    dir: &work.dir,
                };
                let optimizer = self.optimizer(&state.meta_skill);
                let decision = learning_rate::decide(&optimizer, &evidence).await?;
                self.observers.emit(&Event::LearningRateDecided {
                    dir: &work.dir,
                    step: plan.step,
                    epoch: plan.epoch,
                    decision: &decision,
                })?;
                let budget = decision.learning_rate;
                work.lr_decision = Some(decision);
                Ok(Some(budget))
            }
        }
    }

    /// Most items that one analyst may propose: what a step may apply at the most, if anything
    /// limits that (W-L6).
    fn analyst_budget(&self) -> Option<usize> {
        match self.settings.lr_control() {
            LrControl::Fixed => Some(self.settings.edit_budget),
            LrControl::Autonomous | LrControl::None => None,
        }
    }

    async fn update(
        &self,
        dir: &str,
        selected: Patch,
        state: &State,
    ) -> Result<Option<Candidate>, TrainError> {
        let history = step_buffer::render(&state.step_buffer);
        // The rewriter works from the suggestions alone (engine 16).
        let optimizer = self.optimizer("");
        let candidate = update(&optimizer, &state.current.skill, selected, &history, dir).await?;
        if let Some(candidate) = &candidate {
            self.observers.emit(&Event::CandidateMade {
                dir,
                candidate,
                summary: candidate.summary(),
            })?;
        }
        Ok(candidate)
    }

    /// Scores the candidate; `None` when it is the current skill, which noise must not be allowed
    /// to "improve" (W-G2).
    async fn gate(
        &self,
        plan: &StepPlan<'_>,
        dir: &str,
        candidate: &Candidate,
        state: &mut State,
    ) -> Result<Option<Verdict>, TrainError> {
        if candidate.skill == state.current.skill {
            return Ok(None);
        }
        let gate = self.gate_of(self.settings.use_gate);
        let dir = format!("{dir}/selection_eval");
        let (verdict, scores) = gate
            .judge(self.environment, &self.observers, candidate, state, &dir)
            .await?;
        if let Some(scores) = scores {
            state.selections.insert(candidate.hash.clone(), scores);
        }
        self.observers.emit(&Event::GateDecided {
            step: plan.step,
            verdict: &verdict,
        })?;
        Ok(Some(verdict))
    }

    /// Takes the candidate over when the verdict says so.
    fn take(&self, plan: &StepPlan<'_>, work: &StepWork, state: &mut State) {
        let action = work.action();
        let (true, Some(candidate)) = (action.is_accept(), &work.candidate) else {
            return;
        };
        let scored = Scored {
            skill: candidate.skill.clone(),
            score: work
                .verdict
                .as_ref()
                .and_then(|verdict| verdict.candidate_score),
            origin: format!("step_{:04}", plan.step),
            scored: candidate.hash.clone(),
        };
        let forced_best = action == GateAction::ForceAccept && scored.score > state.best.score;
        if action == GateAction::AcceptNewBest || forced_best {
            state.best = scored.clone();
            state.best_step = plan.step;
        }
        state.current = scored;
    }

    /// Puts the analysts' reminders into the current skill; the best one stays as it was evaluated
    /// (engine 17).
    async fn flush_notes(&self, work: &mut StepWork, state: &mut State) -> Result<(), TrainError> {
        if self.settings.skill_aware == SkillAware::Off {
            return Ok(());
        }
        let optimizer = self.optimizer(&state.meta_skill);
        let skill = &state.current.skill;
        let threshold = self.settings.consolidate_threshold;
        let flushed = appendix::flush(&optimizer, skill, &work.notes, threshold, &work.dir).await?;
        if let Some(flushed) = flushed {
            state.current.skill.clone_from(&flushed.skill);
            self.observers.emit(&Event::NotesFlushed {
                dir: &work.dir,
                step_notes: &flushed.step_notes,
                after: &flushed.after,
            })?;
            work.flushed = Some(flushed);
        }
        Ok(())
    }

    /// Commits the step's record and the new state.
    fn commit(
        &self,
        plan: &StepPlan<'_>,
        work: StepWork,
        rollouts: &StepRollouts,
        state: &mut State,
        wall_time_s: f64,
    ) -> Result<(), TrainError> {
        state
            .step_buffer
            .push(self.buffer_entry(plan, &work, rollouts));
        state.last_completed_step = plan.step;
        let usage = self.usage.now(&self.meter);
        let tokens = usage_since(&state.usage, &usage);
        state.usage = usage;
        let lr_control = self.settings.lr_control();
        let record = record(
            plan,
            &work,
            rollouts,
            state,
            lr_control,
            tokens,
            wall_time_s,
        );
        state.history.push(record.clone());
        self.observers.emit(&Event::StepFinished {
            record: &record,
            state,
        })?;
        Ok(())
    }

    /// What later steps of the epoch are told about this one (engine 14). Steps without a
    /// candidate are told too (W-B3).
    fn buffer_entry(
        &self,
        plan: &StepPlan<'_>,
        work: &StepWork,
        rollouts: &StepRollouts,
    ) -> BufferEntry {
        let measured = || rollouts.all().filter(|rollout| rollout.scores().is_some());
        let rows: Vec<_> = measured().map(Rollout::row).collect();
        let rejected = work.action() == GateAction::Reject;
        let verdict = work.verdict.as_ref().filter(|_| rejected);
        let edits = work
            .candidate
            .as_ref()
            .filter(|_| rejected)
            .map(|candidate| &candidate.patch.items);
        BufferEntry {
            step: plan.step as usize,
            action: work.action().name().to_owned(),
            n_total: rows.len().max(1),
            n_fail: measured().filter(|rollout| rollout.failed()).count(),
            failure_patterns: failure_patterns(&rows, &descriptions(&work.replies)),
            score_before: verdict.map(|verdict| verdict.current_score),
            score_after: verdict.and_then(|verdict| verdict.candidate_score),
            rejected_edits: edits
                .into_iter()
                .flatten()
                .map(|item| self.settings.update_mode.short_form(item))
                .collect(),
        }
    }

    fn batch_dir(&self, step: u32, index: usize) -> String {
        match self.settings.accumulation {
            1 => step_dir(step),
            _ => format!("{}/batch_{index}", step_dir(step)),
        }
    }
}

/// What a step gathers on its way.
struct StepWork {
    dir: String,
    timing: Timing,
    lap: Instant,
    n_failure_patches: usize,
    n_success_patches: usize,
    replies: Vec<serde_json::Value>,
    notes: Vec<String>,
    lr_decision: Option<LrDecision>,
    flushed: Option<Flushed>,
    proposed: bool,
    n_edits_merged: Option<usize>,
    edit_budget: Option<usize>,
    candidate: Option<Candidate>,
    verdict: Option<Verdict>,
}

impl StepWork {
    fn begin(plan: &StepPlan<'_>) -> Self {
        Self {
            dir: step_dir(plan.step),
            timing: Timing::default(),
            lap: Instant::now(),
            n_failure_patches: 0,
            n_success_patches: 0,
            replies: Vec::new(),
            notes: Vec::new(),
            lr_decision: None,
            flushed: None,
            proposed: false,
            n_edits_merged: None,
            edit_budget: None,
            candidate: None,
            verdict: None,
        }
    }

    /// Seconds since the last lap.
    fn lap(&mut self) -> f64 {
        let seconds = self.lap.elapsed().as_secs_f64();
        self.lap = Instant::now();
        seconds
    }

    fn note_proposals(&mut self, proposals: &Proposals) {
        self.n_failure_patches = proposals.failure.len();
        self.n_success_patches = proposals.success.len();
        self.replies.clone_from(&proposals.replies);
        self.notes.clone_from(&proposals.notes);
        self.proposed = !proposals.is_empty();
    }

    fn action(&self) -> GateAction {
        match (&self.candidate, &self.verdict) {
            (_, Some(verdict)) => verdict.action,
            (Some(_), None) => GateAction::SkipNoChange,
            (None, None) if self.proposed => GateAction::SkipNoRewrite,
            (None, None) => GateAction::SkipNoPatches,
        }
    }
}

fn accumulation_record(index: usize, seed: i64, evaluation: &Evaluation) -> AccumulationBatch {
    let scores = evaluation.scores();
    AccumulationBatch {
        batch_idx: index,
        batch_seed: seed,
        n_envs: evaluation.rollouts.len(),
        n_measured: evaluation.measured(),
        hard: round6(scores.map_or(0.0, |s| s.hard)),
        soft: round6(scores.map_or(0.0, |s| s.soft)),
        n_failure_patches: 0,
        n_success_patches: 0,
    }
}

fn round6(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn record(
    plan: &StepPlan<'_>,
    work: &StepWork,
    rollouts: &StepRollouts,
    state: &State,
    lr_control: LrControl,
    tokens: std::collections::BTreeMap<String, crate::model::Usage>,
    wall_time_s: f64,
) -> StepRecord {
    let step_scores = mean(rollouts.all().filter_map(Rollout::scores));
    let candidate = work.candidate.as_ref();
    let verdict = work.verdict.as_ref();
    StepRecord {
        step: plan.step,
        epoch: plan.epoch,
        step_in_epoch: plan.step_in_epoch,
        timing: work.timing,
        tokens,
        rollout_hard: round6(step_scores.map_or(0.0, |s| s.hard)),
        rollout_soft: round6(step_scores.map_or(0.0, |s| s.soft)),
        rollout_n: rollouts.all().count(),
        accumulation_batches: rollouts
            .batches
            .iter()
            .map(|(_, record, _)| record.clone())
            .collect(),
        n_patches: work.n_failure_patches + work.n_success_patches,
        n_failure_patches: work.n_failure_patches,
        n_success_patches: work.n_success_patches,
        n_edits_merged: work.n_edits_merged,
        n_edits_ranked: candidate.map(|c| c.patch.items.len()),
        edit_budget: work.edit_budget,
        lr_control_mode: work.n_edits_merged.map(|_| lr_control.name().to_owned()),
        lr_decision: work.lr_decision.clone(),
        support_counts: candidate.map(|c| c.patch.support_counts()),
        candidate_hash: candidate.map(|c| c.hash.clone()),
        candidate_skill_len: candidate.map(|c| c.skill.chars().count()),
        rewrite_change_summary: candidate.and_then(|c| c.change_summary.clone()),
        edit_apply_summary: candidate.and_then(Candidate::summary),
        selection_hard: verdict.and_then(|v| v.scores).map(|s| s.hard),
        selection_soft: verdict.and_then(|v| v.scores).map(|s| s.soft),
        selection_coverage: verdict.map(|v| v.coverage),
        gate_metric: verdict.map(|v| v.metric.clone()),
        candidate_gate_score: verdict.and_then(|v| v.candidate_score),
        action: work.action(),
        n_execution_lapse_notes: work.flushed.as_ref().map(|f| f.step_notes.len()),
        n_appendix_notes_added: work.flushed.as_ref().map(|f| f.added),
        n_appendix_notes_total: work.flushed.as_ref().map(|f| f.after.len()),
        n_appendix_notes_consolidated: work.flushed.as_ref().and_then(|f| f.consolidated),
        current_score: state.current.score.unwrap_or_default(),
        current_score_stale: state.current.is_stale(),
        best_score: state.best.score.unwrap_or_default(),
        best_step: state.best_step,
        current_origin: state.current.origin.clone(),
        best_origin: state.best.origin.clone(),
        skill_len: state.current.skill.chars().count(),
        wall_time_s,
    }
}
