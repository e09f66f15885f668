//! How many of the merged items a step may apply: by the schedule, by the optimizer, or without a
//! limit (engine 11).

use minijinja::context;

use super::error::TrainError;
use super::evaluation::Scores;
use super::lr_decision::LrDecision;
use super::optimizer::{Answer, Optimizer, Question, REPLY_TOKENS};
use super::patch::Patch;
use super::select::describe;

/// What the optimizer decides from.
pub struct Evidence<'a> {
    /// The current skill.
    pub skill: &'a str,
    /// The proposed items.
    pub merged: &'a Patch,
    /// How many attempts the step made.
    pub rollouts: usize,
    /// Their means.
    pub scores: Option<Scores>,
    /// What earlier steps tried.
    pub history: &'a str,
    /// What the schedule would allow; counts when the optimizer gives no number (W-L4).
    pub scheduled: Option<usize>,
    /// The step's directory.
    pub dir: &'a str,
}

/// Asks the optimizer how many items to apply. No default is told, so that it decides from the
/// evidence alone.
///
/// # Errors
/// When the optimizer cannot be used at all.
pub async fn decide(
    optimizer: &Optimizer<'_>,
    evidence: &Evidence<'_>,
) -> Result<LrDecision, TrainError> {
    let number =
        |score: Option<f64>| score.map_or("unknown".to_owned(), |score| format!("{score:.6}"));
    let question = Question {
        stage: "lr_autonomous",
        template: "lr_autonomous",
        context: context! {
            skill => evidence.skill,
            rollouts => evidence.rollouts,
            hard => number(evidence.scores.map(|s| s.hard)),
            soft => number(evidence.scores.map(|s| s.soft)),
            items => evidence.merged.items.iter().map(describe).collect::<Vec<_>>(),
            history => evidence.history,
        },
        sample: &format!("{}/lr_autonomous", evidence.dir),
        max_tokens: REPLY_TOKENS,
    };
    let available = evidence.merged.items.len();
    let (reply, error) = match optimizer.ask(question).await? {
        Answer::Parsed(reply) => (Some(reply), None),
        Answer::Unusable => (None, None),
        Answer::Failed(error) => (None, Some(error.message)),
    };
    Ok(LrDecision::read(
        reply.as_ref(),
        available,
        evidence.scheduled,
        error,
    ))
}
