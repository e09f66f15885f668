//! Deltas: what a candidate changes, task by task.
//!
//! A mean can rise while something that used to work breaks; the no-regression rule looks here. A
//! task without a finite score on both sides counts as regressed: nothing shows that it did not
//! (sleep-night 13.4).

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// How a task changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeltaStatus {
    /// A higher score.
    Improved,
    /// A lower score, or none.
    Regressed,
    /// Exactly the same score.
    Unchanged,
}

/// One task under the baseline and under the candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDelta {
    /// The task.
    pub task_id: String,
    /// Its labels.
    pub tags: Vec<String>,
    /// Its gate score under the baseline, when it was measured.
    pub baseline_score: Option<f64>,
    /// Its gate score under the candidate, when it was measured.
    pub candidate_score: Option<f64>,
    /// How it changed.
    pub status: DeltaStatus,
    /// Whether it was measured on both sides.
    pub scores_are_finite: bool,
}

/// Compares tasks (id and labels) by gate scores (id and score). Of several scores with one id,
/// the last counts; one that is not finite is none.
#[must_use]
pub fn task_deltas(
    tasks: &[(String, Vec<String>)],
    baseline: &[(String, f64)],
    candidate: &[(String, f64)],
) -> Vec<TaskDelta> {
    let by_id =
        |scores: &[(String, f64)]| -> HashMap<String, f64> { scores.iter().cloned().collect() };
    let (baseline, candidate) = (by_id(baseline), by_id(candidate));
    let finite = |scores: &HashMap<String, f64>, id: &str| {
        scores.get(id).copied().filter(|score| score.is_finite())
    };
    tasks
        .iter()
        .map(|(id, tags)| {
            let (before, now) = (finite(&baseline, id), finite(&candidate, id));
            let status = match (before, now) {
                (Some(before), Some(now)) if now > before => DeltaStatus::Improved,
                (Some(before), Some(now)) if now >= before => DeltaStatus::Unchanged,
                _ => DeltaStatus::Regressed,
            };
            TaskDelta {
                task_id: id.clone(),
                tags: tags.clone(),
                baseline_score: before,
                candidate_score: now,
                status,
                scores_are_finite: before.is_some() && now.is_some(),
            }
        })
        .collect()
}

/// Whether any task regressed.
#[must_use]
pub fn any_regressed(deltas: &[TaskDelta]) -> bool {
    deltas
        .iter()
        .any(|delta| delta.status == DeltaStatus::Regressed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_counts_as_regressed() {
        let tasks = [("a".to_owned(), Vec::new()), ("b".to_owned(), Vec::new())];
        let baseline = [("a".to_owned(), 0.5), ("b".to_owned(), 0.5)];
        let candidate = [("a".to_owned(), 0.75), ("b".to_owned(), f64::NAN)];
        let deltas = task_deltas(&tasks, &baseline, &candidate);
        assert_eq!(deltas[0].status, DeltaStatus::Improved);
        assert_eq!(
            (deltas[1].status, deltas[1].candidate_score),
            (DeltaStatus::Regressed, None)
        );
        assert!(any_regressed(&deltas));
    }
}
