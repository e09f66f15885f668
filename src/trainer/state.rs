//! The trainer's whole state: what a killed run continues from.
//!
//! It is written once after the baseline and once after each step, atomically. Within a step the
//! journal of model calls is enough: the step runs again and every call that had finished is
//! answered from there, so nothing is paid for twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::attribution::Attribution;
use super::confident::Estimate;
use super::evaluation::{ItemScore, Scores};
use super::gate_rule::GateAction;
use super::lr_decision::LrDecision;
use super::step_buffer::BufferEntry;
use crate::model::Usage;
use crate::skill::EditSummary;
use crate::skill::hash::skill_hash;

/// A skill with what is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    /// The document.
    pub skill: String,
    /// Its gate score (in the space of the gate metric, engine 13); `None` before the baseline.
    pub score: Option<f64>,
    /// Where it comes from: `initial_skill`, `step_NNNN` or `slow_update_epoch_EE`.
    pub origin: String,
    /// Hash of the text that `score` was measured on. Notes and ungated guidance change the
    /// document afterwards; then the score is stale (W-G4).
    pub scored: String,
}

impl Scored {
    /// Whether the document changed since it was scored.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        skill_hash(&self.skill) != self.scored
    }
}

/// Everything that the next step depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The document that training began with.
    pub initial_skill: String,
    /// 0 before the first step.
    pub last_completed_step: u32,
    /// The skill being trained.
    pub current: Scored,
    /// The best one so far.
    pub best: Scored,
    /// The step that made `best`; 0 for the initial skill.
    pub best_step: u32,
    /// Scores of the initial skill on the selection split.
    pub baseline: Option<Scores>,
    /// Item scores on the selection split by skill hash; a skill is scored there once.
    pub selections: BTreeMap<String, Vec<ItemScore>>,
    /// Epochs that ended, slow update and meta skill included.
    pub completed_epochs: u32,
    /// The skill with which the last completed epoch ended.
    pub epoch_skill: Option<String>,
    /// The optimizer's memory of earlier epochs; blank when there is none.
    pub meta_skill: String,
    /// What earlier steps of this epoch tried, for the analysts.
    pub step_buffer: Vec<BufferEntry>,
    /// Usage of the whole run by stage.
    pub usage: BTreeMap<String, Usage>,
    /// One record a step. Stored in its own file.
    #[serde(skip)]
    pub history: Vec<StepRecord>,
}

/// The origin of a skill that no step made.
pub const INITIAL_ORIGIN: &str = "initial_skill";

impl State {
    /// The state before anything was done.
    #[must_use]
    pub fn new(initial_skill: String) -> Self {
        let scored = Scored {
            skill: initial_skill.clone(),
            score: None,
            origin: INITIAL_ORIGIN.to_owned(),
            scored: skill_hash(&initial_skill),
        };
        Self {
            initial_skill,
            last_completed_step: 0,
            current: scored.clone(),
            best: scored,
            best_step: 0,
            baseline: None,
            selections: BTreeMap::new(),
            completed_epochs: 0,
            epoch_skill: None,
            meta_skill: String::new(),
            step_buffer: Vec::new(),
            usage: BTreeMap::new(),
            history: Vec::new(),
        }
    }
}

impl State {
    /// The item scores behind a skill's score; none when there are none.
    #[must_use]
    pub fn selection_of(&self, scored: &Scored) -> &[ItemScore] {
        self.selections
            .get(&scored.scored)
            .map_or(&[], Vec::as_slice)
    }
}

/// Seconds spent in each stage of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Attempts at the batch.
    pub rollout_s: f64,
    /// Analysts.
    pub reflect_s: f64,
    /// Merging.
    pub aggregate_s: f64,
    /// Ranking and clipping.
    pub select_s: f64,
    /// Applying.
    pub update_s: f64,
    /// Selection scoring and decision.
    pub evaluate_s: f64,
}

/// One microbatch of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccumulationBatch {
    /// From 0.
    pub batch_idx: usize,
    /// The seed of its shuffles.
    pub batch_seed: i64,
    /// Items attempted.
    pub n_envs: usize,
    /// Items measured.
    pub n_measured: usize,
    /// Mean hard score.
    pub hard: f64,
    /// Mean soft score.
    pub soft: f64,
    /// Patches from failures.
    pub n_failure_patches: usize,
    /// Patches from successes.
    pub n_success_patches: usize,
}

/// One step as `history.json` and `step_record.json` hold it; the original's field names (engine
/// 19) and ours beside them. Fields of stages that a step did not reach are absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// From 1 over the whole run.
    pub step: u32,
    /// From 1.
    pub epoch: u32,
    /// From 0.
    pub step_in_epoch: u32,
    /// Seconds by stage.
    pub timing: Timing,
    /// Usage by stage.
    pub tokens: BTreeMap<String, Usage>,
    /// Mean hard score of the step, rounded to 6 decimals.
    pub rollout_hard: f64,
    /// Mean soft score of the step, rounded to 6 decimals.
    pub rollout_soft: f64,
    /// Items attempted.
    pub rollout_n: usize,
    /// By microbatch.
    pub accumulation_batches: Vec<AccumulationBatch>,
    /// Patches in all.
    pub n_patches: usize,
    /// Patches from failures.
    pub n_failure_patches: usize,
    /// Patches from successes.
    pub n_success_patches: usize,
    /// Items of the merged patch.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub n_edits_merged: Option<usize>,
    /// Items that were selected.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub n_edits_ranked: Option<usize>,
    /// Most items allowed in this step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub edit_budget: Option<usize>,
    /// How the budget was set.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lr_control_mode: Option<String>,
    /// Support of each selected item.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub support_counts: Option<Vec<u64>>,
    /// Hash of the candidate.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub candidate_hash: Option<String>,
    /// Its length in characters.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub candidate_skill_len: Option<usize>,
    /// What the optimizer decided about the budget.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lr_decision: Option<LrDecision>,
    /// What a rewrite changed, in the model's words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rewrite_change_summary: Option<Vec<String>>,
    /// Which edits applied.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub edit_apply_summary: Option<EditSummary>,
    /// The candidate's mean hard score on the selection split.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub selection_hard: Option<f64>,
    /// Its mean soft score there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub selection_soft: Option<f64>,
    /// Its measured share of the selection items, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub selection_coverage: Option<f64>,
    /// Whether every selection item was scored.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub selection_complete: Option<bool>,
    /// The highest gate score that a candidate stopped early could still have reached.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub candidate_gate_bound: Option<f64>,
    /// Attempts that early stopping saved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub selection_calls_saved: Option<usize>,
    /// The rule by which the gate decided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gate_rule: Option<String>,
    /// What each edit of the accepted batch contributed, when that was asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attribution: Option<Attribution>,
    /// What the confident rule found out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gate_estimate: Option<Estimate>,
    /// The metric that the gate compared.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gate_metric: Option<String>,
    /// The candidate's score in it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub candidate_gate_score: Option<f64>,
    /// What was decided.
    pub action: GateAction,
    /// Reminders that analysts left in this step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub n_execution_lapse_notes: Option<usize>,
    /// Those that were new.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub n_appendix_notes_added: Option<usize>,
    /// Notes in the skill afterwards.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub n_appendix_notes_total: Option<usize>,
    /// Notes after a consolidation, when one was applied.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub n_appendix_notes_consolidated: Option<usize>,
    /// The current skill's gate score afterwards.
    pub current_score: f64,
    /// Whether the current skill changed since it was scored.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub current_score_stale: bool,
    /// The best skill's.
    pub best_score: f64,
    /// The step that made the best skill.
    pub best_step: u32,
    /// Where the current skill comes from.
    pub current_origin: String,
    /// Where the best skill comes from.
    pub best_origin: String,
    /// Length of the current skill in characters.
    pub skill_len: usize,
    /// Seconds for the whole step.
    pub wall_time_s: f64,
}
