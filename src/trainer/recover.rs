//! What a run directory still tells when `runtime_state.json` or `history.json` is gone or damaged
//! (engine 20, W-P3).
//!
//! The state file is written whole, so this is for files that were deleted, cut by a full disk or
//! edited by hand. Everything but the usage counters can be had from the other artefacts.

use std::io;
use std::path::Path;

use serde_json::Value;

use crate::skill::hash::skill_hash;

use super::evaluation::{ItemScore, Scores};
use super::gate::means;
use super::run_dir::{read_json, read_text, skill_path, step_dir};
use super::state::{Scored, State, StepRecord};
use super::step_buffer::BufferEntry;

/// The records of the first `last` steps, from `history.json` or else from each step's own file;
/// without `last`, of as many steps as there are.
///
/// # Errors
/// When a step's record is in neither.
pub(super) fn history(root: &Path, last: Option<u32>) -> io::Result<Vec<StepRecord>> {
    let path = root.join("history.json");
    let whole = match path.exists() {
        true => read_json::<Vec<StepRecord>>(&path),
        false => Ok(Vec::new()),
    };
    let most = last.unwrap_or(u32::MAX);
    match whole {
        Ok(mut records) => {
            records.retain(|record| record.step <= most);
            if last.is_none_or(|last| records.len() >= last as usize) {
                return Ok(records);
            }
            step_records(root, most)
        }
        Err(error) => match step_records(root, most)? {
            records if last.is_some_and(|last| records.len() < last as usize) => Err(error),
            records if records.is_empty() => Err(error),
            records => Ok(records),
        },
    }
}

fn step_records(root: &Path, most: u32) -> io::Result<Vec<StepRecord>> {
    (1..=most)
        .map(|step| root.join(step_dir(step)).join("step_record.json"))
        .take_while(|path| path.exists())
        .map(|path| read_json(&path))
        .collect()
}

/// The state after the last recorded step; `None` when no step was recorded, so that the run
/// begins anew.
///
/// # Errors
/// When the records are there, and the documents that belong to them are not.
pub(super) fn state(root: &Path) -> io::Result<Option<State>> {
    let history = history(root, None)?;
    let Some(last) = history.last() else {
        return Ok(None);
    };
    let text = |name: &str| read_text(&root.join(name));
    let mut state = State::new(text(&skill_path(0))?);
    state.last_completed_step = last.step;
    state.best_step = last.best_step;
    state.current = scored(
        text(&skill_path(last.step))?,
        last.current_score,
        &last.current_origin,
        last.current_score_stale,
    );
    state.best = scored(
        text("best_skill.md")?,
        last.best_score,
        &last.best_origin,
        false,
    );
    if let Some(items) = selection(root, "selection_eval_baseline") {
        state.baseline = means(&items);
        let hash = skill_hash(&state.initial_skill);
        state.selections.insert(hash, items);
    }
    for record in &history {
        let items = selection(root, &format!("{}/selection_eval", step_dir(record.step)));
        // One that stopped early has too few rows, and a candidate may have lost edits since.
        let whole = items.filter(|items| means(items).map(|s| s.hard) == record.selection_hard);
        if let (Some(hash), Some(items)) = (&record.candidate_hash, whole) {
            state.selections.insert(hash.clone(), items);
        }
    }
    epochs(root, &history, last, &mut state)?;
    state.history = history;
    Ok(Some(state))
}

/// What the state has of epochs: how many are complete, and what they left for the next one.
fn epochs(
    root: &Path,
    history: &[StepRecord],
    last: &StepRecord,
    state: &mut State,
) -> io::Result<()> {
    let ended = |epoch: u32| {
        let slow = format!("slow_update/epoch_{epoch:02}/slow_result.json");
        root.join(slow).exists() || root.join(memory_path(epoch)).exists()
    };
    state.completed_epochs = last.epoch - u32::from(!ended(last.epoch));
    let end = history
        .iter()
        .rfind(|record| record.epoch <= state.completed_epochs);
    state.epoch_skill = end
        .map(|record| read_text(&root.join(skill_path(record.step))))
        .transpose()?;
    state.meta_skill = (1..=state.completed_epochs)
        .rev()
        .filter_map(|epoch| read_json::<Value>(&root.join(memory_path(epoch))).ok())
        .find_map(|result| Some(result.get("meta_skill_content")?.as_str()?.to_owned()))
        .unwrap_or_default();
    state.step_buffer = history
        .iter()
        .filter(|record| record.epoch == last.epoch && last.epoch > state.completed_epochs)
        .map(|record| {
            root.join(step_dir(record.step))
                .join("trajectory_digest.json")
        })
        .filter_map(|path| read_json::<BufferEntry>(&path).ok())
        .collect();
    Ok(())
}

fn memory_path(epoch: u32) -> String {
    format!("meta_skill/epoch_{epoch:02}/meta_skill_result.json")
}

fn scored(skill: String, score: f64, origin: &str, stale: bool) -> Scored {
    Scored {
        scored: if stale {
            String::new()
        } else {
            skill_hash(&skill)
        },
        score: Some(score),
        origin: origin.to_owned(),
        skill,
    }
}

/// The item scores of an evaluation, from its rows; `None` when they are not all readable.
fn selection(root: &Path, dir: &str) -> Option<Vec<ItemScore>> {
    let rows = read_text(&root.join(dir).join("results.jsonl")).ok()?;
    rows.lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).ok()?;
            let number = |key: &str| row.get(key).and_then(Value::as_f64);
            Some(ItemScore {
                id: row.get("id")?.as_str()?.to_owned(),
                scores: number("hard")
                    .zip(number("soft"))
                    .map(|(hard, soft)| Scores { hard, soft }),
            })
        })
        .collect()
}
