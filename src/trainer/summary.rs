//! The numbers of a whole run: `summary.json` with the original's keys (engine 19), ours beside
//! them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::evaluation::{ItemScore, Scores, mean};
use super::gate_rule::{GateAction, GateProjection};
use super::state::{State, StepRecord};
use super::statistics::{Costs, Prices, Statistics, costs};
use crate::model::Usage;
use crate::skill::hash::skill_hash;

/// One epoch's steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EpochStats {
    /// From 1.
    pub epoch: u32,
    /// Its steps' numbers.
    pub steps: Vec<u32>,
    /// Candidates taken.
    pub accepts: usize,
    /// Candidates turned down.
    pub rejects: usize,
    /// Steps in which nobody proposed anything.
    pub skips: usize,
    /// At the epoch's last step.
    pub best_score_at_epoch_end: f64,
    /// At the epoch's last step.
    pub current_score_at_epoch_end: f64,
}

/// The numbers of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Of this format.
    pub version: &'static str,
    /// The metric that `best_score` and the epoch scores are in.
    pub gate_metric: String,
    /// The initial skill's gate score.
    pub baseline_score: Option<f64>,
    /// The initial skill's mean hard score on the selection split.
    pub baseline_selection_hard: Option<f64>,
    /// The best skill's gate score. The key is the original's; with a metric other than `hard`
    /// it is not a hard score (W-G3), which `best_selection` has.
    pub best_selection_hard: Option<f64>,
    /// The best skill's two means on the selection split.
    pub best_selection: Option<Scores>,
    /// The final skill's two means there. Notes and ungated guidance change a skill after it was
    /// scored, so it is measured for itself, also when nothing is tested (W-G5).
    pub final_selection: Option<Scores>,
    /// The final skill's mean hard score, or the gate score of the best skill when the two are the
    /// same and the test split was measured. The key and its meaning are the original's;
    /// `final_selection` is what to read.
    pub final_selection_hard: Option<f64>,
    /// The final skill's mean soft score; `None` when it is the best one.
    pub final_selection_soft: Option<f64>,
    /// The step that made the best skill.
    pub best_step: u32,
    /// Where the last skill comes from.
    pub current_origin: String,
    /// Where the best skill comes from.
    pub best_origin: String,
    /// Records in the history.
    pub total_steps: usize,
    /// Candidates taken.
    pub total_accepts: usize,
    /// Candidates turned down.
    pub total_rejects: usize,
    /// Steps in which nobody proposed anything. The key is the original's, and so is what it
    /// counts; the next two are the other steps without anything to score.
    pub total_skips: usize,
    /// Steps whose candidate was the current skill (W-G2).
    pub total_unchanged: usize,
    /// Steps in which a rewrite gave no document.
    pub total_unwritten: usize,
    /// Candidates of which too little could be measured.
    pub total_undecided: usize,
    /// By epoch.
    pub epoch_stats: Vec<EpochStats>,
    /// The initial skill on the test split.
    pub baseline_test_hard: Option<f64>,
    /// The initial skill on the test split.
    pub baseline_test_soft: Option<f64>,
    /// The best skill on the test split.
    pub test_hard: Option<f64>,
    /// The best skill on the test split.
    pub test_soft: Option<f64>,
    /// The final skill on the test split.
    pub final_test_hard: Option<f64>,
    /// The final skill on the test split.
    pub final_test_soft: Option<f64>,
    /// Best minus initial.
    pub test_delta_hard: Option<f64>,
    /// Final minus initial.
    pub final_test_delta_hard: Option<f64>,
    /// Selection and test results with their intervals.
    pub statistics: Statistics,
    /// Usage by stage over the whole run, resumed parts included.
    pub token_summary: BTreeMap<String, Usage>,
    /// The same by role and stage, with money where prices are known.
    pub costs: Costs,
    /// Target calls that the run had no need to make.
    pub target_calls_saved: CallsSaved,
    /// Seconds of this process.
    pub total_wall_time_s: f64,
}

/// Target calls that a run had no need to make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallsSaved {
    /// Selection attempts whose result could not have changed the gate's decision.
    pub early_stop: usize,
    /// Replies that another run had paid for.
    pub cache: u64,
}

/// What was measured of a run besides its history.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// The best skill on the selection split.
    pub best_selection: Option<Scores>,
    /// The final skill there.
    pub final_selection: Option<Scores>,
    /// The initial skill on the test split; no items when it was not measured.
    pub test_baseline: Vec<ItemScore>,
    /// Whether the final skill was the best one before it was measured.
    pub final_was_best: bool,
    /// The best skill there.
    pub test_best: Vec<ItemScore>,
    /// The final skill there.
    pub test_final: Vec<ItemScore>,
}

/// The means of item scores; none when nothing was measured.
fn scores_of(items: &[ItemScore]) -> Option<Scores> {
    mean(
        items
            .iter()
            .filter_map(|item| item.scores.map(|scores| (scores.hard, scores.soft))),
    )
}

impl Summary {
    /// Adds a finished run up.
    #[must_use]
    pub fn of(
        state: &State,
        gate: &GateProjection,
        measured: &Measured,
        prices: &Prices,
        wall_time_s: f64,
    ) -> Self {
        let test_baseline = scores_of(&measured.test_baseline);
        let test_best = scores_of(&measured.test_best);
        let test_final = scores_of(&measured.test_final);
        let initial = state.selections.get(&skill_hash(&state.initial_skill));
        let initial = initial.map_or(&[][..], Vec::as_slice);
        let final_is_best = measured.final_was_best;
        let count =
            |pick: fn(GateAction) -> bool| state.history.iter().filter(|r| pick(r.action)).count();
        Self {
            version: "skillopt-sleep/1",
            gate_metric: gate.metric.name().to_owned(),
            baseline_score: state
                .baseline
                .map(|s| gate.score(s.hard, s.soft, &state.initial_skill)),
            baseline_selection_hard: state.baseline.map(|s| s.hard),
            best_selection_hard: state.best.score,
            best_selection: measured.best_selection,
            final_selection: measured.final_selection,
            final_selection_hard: match final_is_best {
                true => state.best.score.filter(|_| test_best.is_some()),
                false => measured.final_selection.map(|s| s.hard),
            },
            final_selection_soft: measured
                .final_selection
                .filter(|_| !final_is_best)
                .map(|s| s.soft),
            best_step: state.best_step,
            current_origin: state.current.origin.clone(),
            best_origin: state.best.origin.clone(),
            total_steps: state.history.len(),
            total_accepts: count(GateAction::is_accept),
            total_rejects: count(|a| a == GateAction::Reject),
            total_skips: count(|a| a == GateAction::SkipNoPatches),
            total_unchanged: count(|a| a == GateAction::SkipNoChange),
            total_unwritten: count(|a| a == GateAction::SkipNoRewrite),
            total_undecided: count(|a| a == GateAction::Undecided),
            epoch_stats: epochs(&state.history),
            baseline_test_hard: test_baseline.map(|s| s.hard),
            baseline_test_soft: test_baseline.map(|s| s.soft),
            test_hard: test_best.map(|s| s.hard),
            test_soft: test_best.map(|s| s.soft),
            final_test_hard: test_final.map(|s| s.hard),
            final_test_soft: test_final.map(|s| s.soft),
            test_delta_hard: delta(test_best, test_baseline),
            final_test_delta_hard: delta(test_final, test_baseline),
            statistics: Statistics::of(
                [initial, state.selection_of(&state.best)],
                [&measured.test_baseline, &measured.test_best],
            ),
            token_summary: state.usage.clone(),
            costs: costs(&state.usage, prices),
            target_calls_saved: CallsSaved {
                early_stop: state
                    .history
                    .iter()
                    .filter_map(|record| record.selection_calls_saved)
                    .sum(),
                cache: state.usage.values().map(|usage| usage.cached_calls).sum(),
            },
            total_wall_time_s: wall_time_s,
        }
    }
}

impl Summary {
    /// Steps in which there was nothing to score, whatever the cause.
    #[must_use]
    pub fn steps_without_candidate(&self) -> usize {
        self.total_skips + self.total_unchanged + self.total_unwritten
    }
}

fn delta(after: Option<Scores>, before: Option<Scores>) -> Option<f64> {
    after
        .zip(before)
        .map(|(after, before)| after.hard - before.hard)
}

fn epochs(history: &[StepRecord]) -> Vec<EpochStats> {
    let mut epochs: Vec<EpochStats> = Vec::new();
    for record in history {
        if epochs.last().is_none_or(|last| last.epoch != record.epoch) {
            epochs.push(EpochStats {
                epoch: record.epoch,
                steps: Vec::new(),
                accepts: 0,
                rejects: 0,
                skips: 0,
                best_score_at_epoch_end: record.best_score,
                current_score_at_epoch_end: record.current_score,
            });
        }
        let Some(epoch) = epochs.last_mut() else {
            continue;
        };
        epoch.steps.push(record.step);
        epoch.accepts += usize::from(record.action.is_accept());
        epoch.rejects += usize::from(record.action == GateAction::Reject);
        epoch.skips += usize::from(record.action == GateAction::SkipNoPatches);
        epoch.best_score_at_epoch_end = record.best_score;
        epoch.current_score_at_epoch_end = record.current_score;
    }
    epochs
}
