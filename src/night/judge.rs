//! Scoring an attempt at a task.
//!
//! Rule tasks are checked here; exact ones are compared; everything else is graded by the
//! optimizer model against what the developer said (sleep-night 6.5, 7.2). A grade that cannot be
//! had is an error, never a zero (weakness 24), and a score outside 0 to 1 is no grade
//! (weakness 25).

use minijinja::context;
use serde_json::Value;

use super::exact;
use super::rule_judge::{self, Tools};
use super::task::Task;
use crate::model::reply::extract_object;
use crate::model::{CallError, CallErrorKind, ChatModel, ChatRequest};
use crate::trainer::error::TrainError;
use crate::trainer::prompt::Prompts;

/// A grade at or above this passes.
pub const PASS_SCORE: f64 = 0.8;

/// Most tokens of a grade.
const GRADE_TOKENS: u32 = 512;

/// How good an attempt is.
#[derive(Debug, Clone, PartialEq)]
pub struct Grade {
    /// 0 or 1.
    pub hard: f64,
    /// 0 to 1.
    pub soft: f64,
    /// Why, in one sentence.
    pub rationale: String,
}

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
                rationale: score.rationale(),
            })
        }
        "exact" if !task.reference.is_empty() => {
            let found = exact::contains_reference(&task.reference, answer);
            let hard = f64::from(u8::from(found));
            Ok(Grade {
                hard,
                soft: hard.max(exact::keyword_share(&task.reference, answer)),
                rationale: if found {
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
    let grade = extract_object(&reply.text).and_then(|value| read_grade(&value));
    Ok(grade.ok_or_else(|| {
        let said: String = reply.text.chars().take(120).collect();
        CallError::new(
            CallErrorKind::Malformed,
            format!("{} gave no grade between 0 and 1 in its reply: {said}", grader.id()),
        )
    })?)
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

fn read_grade(value: &Value) -> Option<Grade> {
    let soft = match value.get("score")? {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    if !(0.0..=1.0).contains(&soft) {
        return None;
    }
    let reason = value.get("reason").and_then(Value::as_str).unwrap_or_default();
    Some(Grade {
        hard: f64::from(u8::from(soft >= PASS_SCORE)),
        soft,
        rationale: reason.chars().take(200).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_score_outside_the_unit_interval_is_no_grade() {
        assert!(read_grade(&json!({"score": 85})).is_none());
        assert!(read_grade(&json!({"score": -0.1})).is_none());
        assert!(read_grade(&json!({"score": null})).is_none());
        assert!(read_grade(&json!({"reason": "no score"})).is_none());
    }

    #[test]
    fn the_threshold_decides_about_hard() {
        assert_eq!(read_grade(&json!({"score": 0.8})).unwrap().hard, 1.0);
        assert_eq!(read_grade(&json!({"score": "0.79"})).unwrap().hard, 0.0);
    }
}
