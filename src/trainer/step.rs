//! One step of training, stage by stage, and what it leaves behind.

use std::time::Instant;

use super::Trainer;
use super::aggregate::aggregate;
use super::appendix::{self, Flushed};
use super::attribution::Attribution;
use super::candidate::Candidate;
use super::environment::{Environment, Rollout};
use super::error::TrainError;
use super::evaluation::mean;
use super::event::Event;
use super::failure_patterns::{descriptions, failure_patterns};
use super::gate_rule::GateAction;
use super::learning_rate::{self, Evidence};
use super::lr_decision::LrDecision;
use super::microbatch::Studied;
use super::patch::Patch;
use super::plan::{StepPlan, train_size};
use super::reflect::{Proposals, SkillAware};
use super::run_dir::step_dir;
use super::schedule::LrControl;
use super::select::select;
use super::settings::Settings;
use super::state::{Scored, State, StepRecord, Timing};
use super::step_buffer::{self, BufferEntry};
use super::update::update;
use super::usage::usage_since;
use super::verdict::Verdict;

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

        let mut studied = self.study(plan, state).await?;
        work.timing.rollout_s = studied.rollout_s;
        work.timing.reflect_s = studied.reflect_s;
        work.lap();
        let proposals = std::mem::take(&mut studied.proposals);
        work.note_proposals(&proposals);
        if !proposals.is_empty() {
            let merged = self.aggregate(&work.dir, proposals, state).await?;
            work.timing.aggregate_s = work.lap();
            let selected = self
                .select(plan, &mut work, merged, &studied, state)
                .await?;
            work.timing.select_s = work.lap();
            let (candidate, written) = self.update(&work.dir, selected, state).await?;
            (work.candidate, work.written) = (Some(candidate), written);
            work.timing.update_s = work.lap();
        }
        if let Some(candidate) = work.candidate.take() {
            let trial = self.trial(plan, &studied, candidate, state).await?;
            (work.candidate, work.verdict) = (Some(trial.candidate), trial.verdict);
            work.attribution = trial.attribution;
            work.timing.evaluate_s = work.lap();
        }
        self.take(plan, &work, state);
        self.flush_notes(&mut work, state).await?;
        self.commit(plan, work, &studied, state, clock.elapsed().as_secs_f64())
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
        studied: &Studied,
        state: &State,
    ) -> Result<Patch, TrainError> {
        let optimizer = self.optimizer(&state.meta_skill);
        work.n_edits_merged = Some(merged.items.len());
        let budget = self.budget(plan, work, &merged, studied, state).await?;
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
        studied: &Studied,
        state: &State,
    ) -> Result<Option<usize>, TrainError> {
        let schedule = self
            .settings
            .schedule(train_size(&self.settings, self.environment)?);
        let scheduled = schedule.budget(plan.step as usize);
        match self.settings.lr_control() {
            LrControl::Fixed => Ok(scheduled),
            LrControl::None => Ok(None),
            LrControl::Autonomous => {
                let evidence = Evidence {
                    skill: &state.current.skill,
                    merged,
                    rollouts: studied.rollouts().count(),
                    scores: mean(studied.rollouts().filter_map(Rollout::scores)),
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

    /// The candidate, and whether there is one at all: a rewrite mode without a document leaves the
    /// current skill to stand for it (engine 12.3).
    async fn update(
        &self,
        dir: &str,
        selected: Patch,
        state: &State,
    ) -> Result<(Candidate, bool), TrainError> {
        let history = step_buffer::render(&state.step_buffer);
        // The rewriter works from the suggestions alone (engine 16).
        let optimizer = self.optimizer("");
        let skill = &state.current.skill;
        let made = update(&optimizer, skill, selected.clone(), &history, dir).await?;
        let written = made.is_some();
        let candidate = made.unwrap_or_else(|| Candidate::whole(skill.clone(), selected));
        self.observers.emit(&Event::CandidateMade {
            dir,
            candidate: &candidate,
            summary: candidate.summary().filter(|_| written),
        })?;
        Ok((candidate, written))
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
        studied: &Studied,
        state: &mut State,
        wall_time_s: f64,
    ) -> Result<(), TrainError> {
        state
            .step_buffer
            .push(self.buffer_entry(plan, &work, studied));
        state.last_completed_step = plan.step;
        let usage = self.usage.now(&self.meter);
        let tokens = usage_since(&state.usage, &usage);
        state.usage = usage;
        let lr_control = self.settings.lr_control();
        let record = record(plan, &work, studied, state, lr_control, tokens, wall_time_s);
        state.history.push(record.clone());
        self.observers.emit(&Event::StepFinished {
            record: &record,
            state,
        })?;
        Ok(())
    }

    /// What later steps of the epoch are told about this one (engine 14). Steps without a
    /// candidate are told too (W-B3).
    fn buffer_entry(&self, plan: &StepPlan<'_>, work: &StepWork, studied: &Studied) -> BufferEntry {
        let measured = || {
            studied
                .rollouts()
                .filter(|rollout| rollout.scores().is_some())
        };
        let rows: Vec<_> = measured().map(Rollout::row).collect();
        let rejected = work.action() == GateAction::Reject;
        let verdict = work.verdict.as_ref().filter(|_| rejected);
        let candidate = work.candidate.as_ref().filter(|_| rejected);
        BufferEntry {
            step: plan.step as usize,
            action: work.action().name().to_owned(),
            n_total: rows.len().max(1),
            n_fail: measured().filter(|rollout| rollout.failed()).count(),
            failure_patterns: failure_patterns(&rows, &descriptions(&work.replies)),
            score_before: verdict.map(|verdict| verdict.current_score),
            score_after: verdict.and_then(|verdict| verdict.candidate_score),
            score_at_most: verdict.and_then(|verdict| verdict.bound),
            rejected_edits: candidate
                .map(|candidate| candidate.short_forms(self.settings.update_mode))
                .unwrap_or_default(),
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
    written: bool,
    n_edits_merged: Option<usize>,
    edit_budget: Option<usize>,
    candidate: Option<Candidate>,
    verdict: Option<Verdict>,
    attribution: Option<Attribution>,
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
            written: false,
            n_edits_merged: None,
            edit_budget: None,
            candidate: None,
            verdict: None,
            attribution: None,
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
    }

    fn action(&self) -> GateAction {
        match (&self.candidate, &self.verdict) {
            (_, Some(verdict)) => verdict.action,
            (Some(_), None) if self.written => GateAction::SkipNoChange,
            (Some(_), None) => GateAction::SkipNoRewrite,
            (None, None) => GateAction::SkipNoPatches,
        }
    }
}

fn record(
    plan: &StepPlan<'_>,
    work: &StepWork,
    studied: &Studied,
    state: &State,
    lr_control: LrControl,
    tokens: std::collections::BTreeMap<String, crate::model::Usage>,
    wall_time_s: f64,
) -> StepRecord {
    let step_scores = mean(studied.rollouts().filter_map(Rollout::scores));
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
        rollout_n: studied.rollouts().count(),
        accumulation_batches: studied.records.clone(),
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
        edit_apply_summary: candidate
            .and_then(Candidate::summary)
            .filter(|_| work.written),
        selection_hard: verdict.and_then(|v| v.scores).map(|s| s.hard),
        selection_soft: verdict.and_then(|v| v.scores).map(|s| s.soft),
        selection_coverage: verdict.map(|v| v.coverage),
        selection_complete: verdict.map(|v| v.bound.is_none()),
        candidate_gate_bound: verdict.and_then(|v| v.bound),
        selection_calls_saved: verdict.map(|v| v.calls_saved).filter(|saved| *saved > 0),
        gate_rule: verdict.map(|v| v.rule.clone()),
        attribution: work.attribution.clone(),
        gate_estimate: verdict.and_then(|v| v.estimate.clone()),
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

/// Rounded to 6 decimals, as the original has it.
fn round6(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
