//! Tasks: what a person wanted, taken out of the sessions in which they asked for it.
//!
//! A task stands for itself: intent, context and a way to judge an attempt. Its id is a hash of
//! where and what, so that the same request on another night is the same task (sleep-night 2, 5.1
//! and 5.5).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// One mined task. Reading drops unknown keys and fills in missing ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// The directory of the project in which it was asked.
    pub project: String,
    /// What was wanted.
    pub intent: String,
    /// What else was said about it.
    #[serde(default)]
    pub context_excerpt: String,
    /// The system prompt for an attempt; empty for the standard one.
    #[serde(default)]
    pub system: String,
    /// How it was answered.
    #[serde(default)]
    pub attempted_solution: String,
    /// How that went: `success`, `fail`, `mixed` or `unknown`.
    #[serde(default = "unknown")]
    pub outcome: String,
    /// What `reference` and `judge` are: `exact`, `rubric`, `rule`, `answer` or `none`.
    #[serde(default = "none")]
    pub reference_kind: String,
    /// The answer, or the rubric, by which an attempt is judged.
    #[serde(default)]
    pub reference: String,
    /// The rules by which an attempt is judged.
    #[serde(default)]
    pub judge: Map<String, Value>,
    /// Labels.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The ids of the sessions that asked for it.
    #[serde(default)]
    pub source_sessions: Vec<String>,
    /// `train`, `val` or `test`.
    #[serde(default = "train")]
    pub split: String,
    /// `real`, or `dream` when it was made up from a real one.
    #[serde(default = "real")]
    pub origin: String,
    /// The id of the task from which it was made.
    #[serde(default)]
    pub derived_from: String,
    /// The skill that the sessions used, when it was always the same.
    #[serde(default)]
    pub skill_hint: String,
}

fn unknown() -> String {
    "unknown".into()
}

fn none() -> String {
    "none".into()
}

fn train() -> String {
    "train".into()
}

fn real() -> String {
    "real".into()
}

impl Task {
    /// A task with this id, project and intent, and nothing else known.
    #[must_use]
    pub fn new(id: String, project: String, intent: String) -> Task {
        Task {
            id,
            project,
            intent,
            context_excerpt: String::new(),
            system: String::new(),
            attempted_solution: String::new(),
            outcome: unknown(),
            reference_kind: none(),
            reference: String::new(),
            judge: Map::new(),
            tags: Vec::new(),
            source_sessions: Vec::new(),
            split: train(),
            origin: real(),
            derived_from: String::new(),
            skill_hint: String::new(),
        }
    }

    /// Whether it was made up.
    #[must_use]
    pub fn is_dream(&self) -> bool {
        self.origin == "dream"
    }
}

/// The id of a task mined by rule: `task_` and 12 digits, from project and first prompt.
#[must_use]
pub fn mined_id(project: &str, first_prompt: &str) -> String {
    format!("task_{}", short_hash(&[project, "::", first_prompt], 12))
}

/// The id of a task mined by a model: `llm_` and 12 digits, from project and intent.
#[must_use]
pub fn model_mined_id(project: &str, intent: &str) -> String {
    format!("llm_{}", short_hash(&[project, intent], 12))
}

/// The first `digits` hexadecimal digits of the SHA-256 of the parts joined.
#[must_use]
pub fn short_hash(parts: &[&str], digits: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
    }
    let mut text: String = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    text.truncate(digits);
    text
}

/// The text, trimmed and cut to `count` characters; a cut one ends in a blank and `…`.
#[must_use]
pub fn short(text: &str, count: usize) -> String {
    use crate::skill::text::{clip, strip};
    let text = strip(text);
    let head = clip(text, count);
    if head.len() == text.len() {
        text.to_owned()
    } else {
        format!("{head} …")
    }
}

/// The tasks with each id once, in the order in which the ids first appear.
///
/// The first record of an id stays, with the sessions of all and the outcome that says most:
/// success, then fail, then mixed. The skill hint stays only when all records that have one agree.
#[must_use]
pub fn dedupe(tasks: Vec<Task>) -> Vec<Task> {
    let mut kept: Vec<Task> = Vec::new();
    let mut hints: Vec<Vec<String>> = Vec::new();
    let mut places: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    for mut task in tasks {
        let hint = task.skill_hint.clone();
        let place = *places.entry(task.id.clone()).or_insert(kept.len());
        if place == kept.len() {
            kept.push(task);
            hints.push(Vec::new());
        } else {
            let first = &mut kept[place];
            first.source_sessions.append(&mut task.source_sessions);
            first.source_sessions = unique(std::mem::take(&mut first.source_sessions));
            if rank(&task.outcome) > rank(&first.outcome) {
                first.outcome = task.outcome;
            }
        }
        if !hint.is_empty() && !hints[place].contains(&hint) {
            hints[place].push(hint);
        }
    }
    for (task, hints) in kept.iter_mut().zip(hints) {
        task.skill_hint = match <[String; 1]>::try_from(hints) {
            Ok([hint]) => hint,
            Err(_) => String::new(),
        };
    }
    kept
}

fn rank(outcome: &str) -> u8 {
    match outcome {
        "success" => 3,
        "fail" => 2,
        "mixed" => 1,
        _ => 0,
    }
}

fn unique(items: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    items
        .into_iter()
        .filter(|item| seen.insert(item.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_says_so() {
        assert_eq!(short("  abc ", 3), "abc");
        assert_eq!(short("éabc", 2), "éa …");
    }

    #[test]
    fn records_of_one_task_are_joined() {
        let record = |outcome: &str, session: &str, hint: &str| Task {
            outcome: outcome.into(),
            source_sessions: vec![session.into(), session.into()],
            skill_hint: hint.into(),
            ..Task::new("t".into(), "p".into(), "i".into())
        };
        let tasks = dedupe(vec![
            record("fail", "a", ""),
            record("success", "b", "x"),
            record("mixed", "a", "x"),
        ]);
        assert_eq!(tasks.len(), 1);
        assert_eq!(tasks[0].source_sessions, ["a", "b"]);
        assert_eq!(
            (tasks[0].outcome.as_str(), tasks[0].skill_hint.as_str()),
            ("success", "x")
        );
    }
}
