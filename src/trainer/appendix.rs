//! The notes appendix of skill-aware reflection: short reminders of rules that were there and were
//! not followed (engine 17). They bypass the gate, so they may only remind, never introduce.

use minijinja::context;

use super::error::TrainError;
use super::optimizer::{NOTES_TOKENS, Optimizer, Question};
use super::optimizer_reply;
use crate::skill::appendix;

/// What a flush did; the original's counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flushed {
    /// The skill with the notes in it.
    pub skill: String,
    /// The notes of the step.
    pub step_notes: Vec<String>,
    /// The notes of the skill afterwards.
    pub after: Vec<String>,
    /// How many of the step's were new.
    pub added: usize,
    /// How many were left after a consolidation that was applied.
    pub consolidated: Option<usize>,
}

/// Puts the step's notes into the skill's appendix. When there are more than `threshold` (0 is
/// never), the optimizer is asked to consolidate them; its answer counts only when it is shorter.
///
/// # Errors
/// When the optimizer cannot be used at all.
pub async fn flush(
    optimizer: &Optimizer<'_>,
    skill: &str,
    notes: &[String],
    threshold: usize,
    dir: &str,
) -> Result<Option<Flushed>, TrainError> {
    if notes.is_empty() {
        return Ok(None);
    }
    let before = appendix::notes(skill).len();
    let mut with_notes = appendix::append(skill, notes);
    let mut after = appendix::notes(&with_notes);
    let added = after.len().saturating_sub(before);
    let mut consolidated = None;
    if threshold > 0 && after.len() > threshold {
        let question = Question {
            stage: "appendix_consolidate",
            template: "consolidate",
            context: context! { notes => after.clone() },
            sample: &format!("{dir}/appendix_consolidate"),
            max_tokens: NOTES_TOKENS,
        };
        let reply = optimizer.ask(question).await?.value();
        let fewer = optimizer_reply::consolidated(&after, reply.as_ref());
        if fewer.len() < after.len() {
            with_notes = appendix::write(skill, &fewer);
            after = appendix::notes(&with_notes);
            consolidated = Some(after.len());
        }
    }
    Ok(Some(Flushed {
        skill: with_notes,
        step_notes: notes.to_vec(),
        after,
        added,
        consolidated,
    }))
}
