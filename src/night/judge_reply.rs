//! The model judge's reply: a grade from 0 to 1, and why.
//!
//! A reply without a grade in that range is no grade. It must not become a 0, or an unreadable
//! reply about the baseline would make every candidate look better (sleep-night 7.2, weaknesses 24
//! and 25).

use serde_json::Value;

use crate::model::reply::extract_object;
use crate::skill::text::clip;
use crate::trainer::score::number;

/// The soft score from which an answer passes.
pub const PASS: f64 = 0.8;

/// Most characters of a reason that are kept.
const LONGEST_REASON: usize = 200;

/// A grade.
#[derive(Debug, Clone, PartialEq)]
pub struct Grade {
    /// 1 when the soft score reaches [`PASS`], else 0.
    pub hard: f64,
    /// The grade, 0 to 1.
    pub soft: f64,
    /// Why; empty when the reply does not say.
    pub reason: String,
}

/// Why a reply is no grade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoGrade {
    /// No JSON object.
    #[error("the judge's reply has no JSON object")]
    Unreadable,
    /// No number under `score`.
    #[error("the judge's reply has no number under `score`")]
    NoScore,
    /// A number outside 0..1.
    #[error("the judge's score is not between 0 and 1")]
    OutOfRange,
}

/// Reads a judge's reply.
///
/// # Errors
/// [`NoGrade`] when it holds no usable grade; the attempt is then not measured.
pub fn read(reply: &str) -> Result<Grade, NoGrade> {
    let reply = extract_object(reply).ok_or(NoGrade::Unreadable)?;
    let soft = reply
        .get("score")
        .and_then(number)
        .ok_or(NoGrade::NoScore)?;
    if !(0.0..=1.0).contains(&soft) {
        return Err(NoGrade::OutOfRange);
    }
    let reason = reply
        .get("reason")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Ok(Grade {
        hard: f64::from(u8::from(soft >= PASS)),
        soft,
        reason: clip(reason, LONGEST_REASON).to_owned(),
    })
}

/// What an attempt is graded by: the task's rubric, or else what was wanted.
#[must_use]
pub fn rubric<'a>(reference: &'a str, intent: &'a str) -> &'a str {
    if reference.is_empty() {
        intent
    } else {
        reference
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_between_0_and_1_is_a_grade() {
        assert_eq!(
            read("Sure: {\"score\": 0.8, \"reason\": \"ok\"}")
                .unwrap()
                .hard,
            1.0
        );
        assert_eq!(read("{\"score\": 85}"), Err(NoGrade::OutOfRange));
        assert_eq!(read("{\"reason\": \"good\"}"), Err(NoGrade::NoScore));
        assert_eq!(read("0.9"), Err(NoGrade::Unreadable));
    }
}
