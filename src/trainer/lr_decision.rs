//! The autonomous learning rate: how many items the optimizer wants to apply.
//!
//! The optimizer is asked once a step and answers with a number, or something like one. Without a
//! usable answer the schedule decides, so that a failed call does not cost the step (engine 11.3,
//! W-L4).

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::update_mode::plain;

/// One decision, as it is recorded in `lr_decision.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LrDecision {
    /// How many items are applied.
    pub learning_rate: usize,
    /// The number in the reply, at least 0.
    pub raw_learning_rate: Number,
    /// How many items there were.
    pub available_update_items: usize,
    /// Whether the optimizer wanted more than there were.
    pub clamped: bool,
    /// Whether the reply had no usable number, and the schedule decided.
    pub fallback: bool,
    /// Why, in the optimizer's words.
    pub reasoning: String,
    /// How sure it was, in its words.
    pub confidence: String,
    /// What it was afraid of.
    pub risk_notes: Vec<String>,
    /// Why there was no reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl LrDecision {
    /// Reads a decision about `available` items from a reply; `scheduled` (`None` = no limit) is
    /// the budget without one. `error` says why there is no reply.
    #[must_use]
    pub fn read(
        reply: Option<&Value>,
        available: usize,
        scheduled: Option<usize>,
        error: Option<String>,
    ) -> LrDecision {
        let wanted = reply
            .and_then(|reply| reply.get("learning_rate"))
            .and_then(wanted);
        let text = |key: &str| {
            reply
                .and_then(|reply| reply.get(key))
                .filter(|value| !value.is_null())
                .map(plain)
                .unwrap_or_default()
        };
        let notes = reply
            .and_then(|reply| reply.get("risk_notes"))
            .and_then(Value::as_array);
        let as_count = |number: &Number| {
            number.as_u64().map_or(usize::MAX, |count| {
                usize::try_from(count).unwrap_or(usize::MAX)
            })
        };
        let (learning_rate, clamped) = match &wanted {
            Some(number) => (
                as_count(number).min(available),
                as_count(number) > available,
            ),
            None => (scheduled.unwrap_or(available).min(available), false),
        };
        LrDecision {
            learning_rate,
            fallback: wanted.is_none(),
            raw_learning_rate: wanted.unwrap_or_else(|| 0.into()),
            available_update_items: available,
            clamped,
            reasoning: text("reasoning"),
            confidence: text("confidence"),
            risk_notes: notes
                .into_iter()
                .flatten()
                .filter(|note| !note.is_null())
                .map(plain)
                .collect(),
            error,
        }
    }
}

/// A whole number, at least 0, out of what a model may write for one: a number, or text with one
/// in it.
fn wanted(value: &Value) -> Option<Number> {
    match value {
        Value::Bool(_) | Value::Null => None,
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Some(u64::try_from(whole).unwrap_or(0).into()),
            (None, Some(float)) if float.fract() == 0.0 => {
                if float < 0.0 {
                    Some(0.into())
                } else {
                    Some(number.clone())
                }
            }
            _ => first_number(&number.to_string()),
        },
        other => first_number(&plain(other)),
    }
}

fn first_number(text: &str) -> Option<Number> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    if text[..start].ends_with('-') {
        return Some(0.into());
    }
    let digits: String = text[start..]
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse::<u64>().ok().map(Number::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn without_an_answer_the_schedule_decides() {
        let decision = LrDecision::read(None, 5, Some(3), Some("down".into()));
        assert_eq!((decision.learning_rate, decision.fallback), (3, true));
        assert_eq!(
            LrDecision::read(Some(&json!({"learning_rate": true})), 5, None, None).learning_rate,
            5
        );
    }

    #[test]
    fn a_number_is_found_in_words() {
        let decision = LrDecision::read(
            Some(&json!({"learning_rate": "about 40 edits"})),
            5,
            Some(3),
            None,
        );
        assert_eq!(
            (decision.learning_rate, decision.clamped, decision.fallback),
            (5, true, false)
        );
    }
}
