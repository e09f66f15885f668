//! Scoring an attempt at a task.
//!
//! Rule tasks are checked here; exact ones are compared; everything else is graded by the
//! optimizer model against what the developer said (sleep-night 6.5, 7.2). A grade that cannot be
//! had is an error, never a zero (weakness 24), and a score outside 0 to 1 is no grade
//! (weakness 25).

use super::exact;
use super::judge_reply::{self, Grade};
use super::rule_judge::{self, Tools};
use super::task::Task;
use crate::model::{CallError, CallErrorKind, ChatModel, ChatRequest};
use crate::trainer::error::TrainError;
use crate::trainer::prompt::Prompts;
use minijinja::context;

/// Most tokens of a grade.
const GRADE_TOKENS: u32 = 512;

/// Why there is no grade.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The grading call failed.
    #[error("{0}")]
    Call(#[from] CallError),
    /// The grading prompt does not render.
    #[error("{0}")]
    Prompt(#[from] TrainError),
}

/// Grades `answer`. `sample` names the draw of a grading call.
///
/// # Errors
/// [`JudgeError`] when a grading call is needed and gives no usable grade.
pub async fn judge(
    task: &Task,
    answer: &str,
    grader: &dyn ChatModel,
    prompts: &Prompts,
    sample: &str,
) -> Result<Grade, JudgeError> {
    match task.reference_kind.as_str() {
        "rule" if !task.judge.is_empty() => {
            let score = rule_judge::score(&task.judge, answer, Tools::Unobserved);
            Ok(Grade {
                hard: score.hard,
                soft: score.soft,
                reason: score.rationale(),
            })
        }
        "exact" if !task.reference.is_empty() => {
            let found = exact::contains_reference(&task.reference, answer);
            let hard = f64::from(u8::from(found));
            Ok(Grade {
                hard,
                soft: hard.max(exact::keyword_share(&task.reference, answer)),
                reason: if found {
                    String::new()
                } else {
                    format!("expected: {}", task.reference)
                },
            })
        }
        _ => model_grade(task, answer, grader, prompts, sample).await,
    }
}

async fn model_grade(
    task: &Task,
    answer: &str,
    grader: &dyn ChatModel,
    prompts: &Prompts,
    sample: &str,
) -> Result<Grade, JudgeError> {
    let messages = prompts.render(
        "judge",
        context! {
            intent => &task.intent,
            expected => expected(task),
            answer => answer,
        },
    )?;
    let request = ChatRequest {
        stage: "judge",
        sample: sample.to_owned(),
        messages,
        max_tokens: GRADE_TOKENS,
    };
    let reply = grader.chat(&request).await?;
    judge_reply::read(&reply.text).map_err(|problem| {
        let said: String = reply.text.chars().take(120).collect();
        let message = format!("{} graded nothing: {problem}; it said: {said}", grader.id());
        JudgeError::Call(CallError::new(CallErrorKind::Malformed, message))
    })
}

/// What is known of what the developer wanted, beyond the request: a rubric, or what they said
/// later in the session. Attempts never see it.
#[must_use]
pub fn expected(task: &Task) -> String {
    let mut parts = Vec::new();
    if task.reference_kind != "none" && !task.reference.is_empty() {
        parts.push(task.reference.as_str());
    }
    if !task.context_excerpt.is_empty() {
        parts.push(task.context_excerpt.as_str());
    }
    parts.join("\n\n")
}
