//! The gate's numbers as a proposal keeps them.

use skillopt_staging::{GateRecord, ItemDelta};

use super::stage::Sources;
use crate::skill::hash::skill_hash;
use crate::trainer::evaluation::{ItemScore, Scores};
use crate::trainer::gate_rule::GateProjection;
use crate::trainer::state::{State, StepRecord};
use crate::trainer::verdict::deltas;

/// The whole change: the live text against the best one.
#[must_use]
pub fn of_whole(state: &State, gate: &GateProjection, sources: &Sources<'_>) -> GateRecord {
    let scores = |skill: &str| {
        state
            .selections
            .get(&skill_hash(skill))
            .cloned()
            .unwrap_or_default()
    };
    let before = scores(&state.initial_skill);
    let after = scores(&state.best.skill);
    let project = |item: Option<Scores>| item.map(|s| gate.score(s.hard, s.soft, ""));
    let label = |id: &str| {
        sources
            .tasks
            .get(id)
            .map(|task| task.intent.chars().take(100).collect())
            .unwrap_or_default()
    };
    let items: Vec<ItemDelta> = deltas(&before, &after)
        .into_iter()
        .map(|delta| ItemDelta {
            label: label(&delta.id),
            baseline: project(delta.before),
            candidate: project(delta.after),
            id: delta.id,
        })
        .collect();
    let baseline = gate_mean(gate, &before, &state.initial_skill);
    let candidate = state.best.score;
    let count = |pick: fn(f64, f64) -> bool| {
        items
            .iter()
            .filter(|item| {
                item.baseline
                    .zip(item.candidate)
                    .is_some_and(|(b, c)| pick(b, c))
            })
            .count()
    };
    let last = state
        .history
        .iter()
        .find(|record| record.step == state.best_step);
    let estimate = last.and_then(|record| record.gate_estimate.as_ref());
    GateRecord {
        action: "accept_new_best".to_owned(),
        accepted: true,
        rule: last
            .and_then(|record| record.gate_rule.clone())
            .unwrap_or_default(),
        metric: gate.metric.name().to_owned(),
        baseline,
        candidate,
        gain: baseline
            .zip(candidate)
            .map(|(baseline, candidate)| candidate - baseline),
        // With several accepted steps it is the one of the last.
        interval: estimate.map(|estimate| estimate.interval),
        wins: count(|before, after| after > before),
        losses: count(|before, after| after < before),
        ties: count(|before, after| after == before),
        not_measured: items
            .iter()
            .filter(|i| i.baseline.is_none() || i.candidate.is_none())
            .count(),
        items,
    }
}

fn gate_mean(gate: &GateProjection, items: &[ItemScore], skill: &str) -> Option<f64> {
    crate::trainer::gate::means(items).map(|s| gate.score(s.hard, s.soft, skill))
}

/// What the gate said about the candidate of one step.
#[must_use]
pub fn of_step(record: &StepRecord, state: &State) -> GateRecord {
    let estimate = record.gate_estimate.as_ref();
    let earlier = state
        .history
        .iter()
        .rev()
        .find(|other| other.step < record.step);
    let candidate = record.candidate_gate_score.or(record.candidate_gate_bound);
    let paired = estimate.and_then(|estimate| Some(candidate? - estimate.gain?));
    let baseline = paired
        .or_else(|| earlier.map(|other| other.current_score))
        .or(state.baseline.map(|_| record.current_score));
    GateRecord {
        action: record.action.name().to_owned(),
        accepted: record.action.is_accept(),
        rule: record.gate_rule.clone().unwrap_or_default(),
        metric: record.gate_metric.clone().unwrap_or_default(),
        baseline,
        candidate,
        gain: baseline
            .zip(candidate)
            .map(|(before, after)| after - before),
        interval: estimate.map(|estimate| estimate.interval),
        wins: estimate.map_or(0, |estimate| estimate.wins),
        losses: estimate.map_or(0, |estimate| estimate.losses),
        ties: estimate.map_or(0, |estimate| estimate.ties),
        not_measured: estimate.map_or(0, |estimate| estimate.missing),
        items: Vec::new(),
    }
}
