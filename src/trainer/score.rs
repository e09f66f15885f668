//! Scores of rollouts: what counts as success, and the mean of a batch.
//!
//! Result rows are JSON objects, because rows of other programs and older runs are read too
//! (engine 6).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A hard score below this is a failure.
pub const NO_CREDIT: f64 = 1e-9;

/// The mean scores of a batch, each 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct BatchScore {
    /// Mean of the hard scores.
    pub hard: f64,
    /// Mean of the soft scores.
    pub soft: f64,
}

/// A score that is no number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("row {row} (id {id}) has `{field}` = {found}, which is no number")]
pub struct NotAScore {
    /// The row's position, from 1.
    pub row: usize,
    /// The row's id, or `?`.
    pub id: String,
    /// `hard` or `soft`.
    pub field: &'static str,
    /// What stands there.
    pub found: String,
}

impl BatchScore {
    /// The means of scores, added from left to right; 0 and 0 for none.
    #[must_use]
    pub fn mean(scores: impl IntoIterator<Item = BatchScore>) -> BatchScore {
        let (mut sum, mut count) = (BatchScore::default(), 0_usize);
        for score in scores {
            sum.hard += score.hard;
            sum.soft += score.soft;
            count += 1;
        }
        let count = count.max(1) as f64;
        BatchScore {
            hard: sum.hard / count,
            soft: sum.soft / count,
        }
    }

    /// The mean scores of result rows. A missing score is 0; numbers in text and booleans count
    /// as numbers.
    ///
    /// # Errors
    /// [`NotAScore`] for a score that is null or no number: it was not measured, and a mean over
    /// it would say otherwise.
    pub fn of_rows(rows: &[Map<String, Value>]) -> Result<BatchScore, NotAScore> {
        let scores: Result<Vec<BatchScore>, NotAScore> = rows
            .iter()
            .enumerate()
            .map(|(index, row)| row_score(index, row))
            .collect();
        Ok(BatchScore::mean(scores?))
    }
}

/// Whether a hard score means that the attempt failed. Anything from [`NO_CREDIT`] up is a
/// success: one threshold for both (W-R3).
#[must_use]
pub fn is_failure(hard: f64) -> bool {
    hard.is_nan() || hard < NO_CREDIT
}

/// Whether a result row is a failure: its hard score is missing, null, no number, or below
/// [`NO_CREDIT`].
#[must_use]
pub fn row_failed(row: &Map<String, Value>) -> bool {
    row.get("hard").and_then(number).is_none_or(is_failure)
}

/// A number in any of the forms in which rows hold it.
#[must_use]
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Rows of one task type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// How many rows.
    pub total: usize,
    /// Their hard scores, added up.
    pub hard: f64,
    /// Their soft scores, added up.
    pub soft: f64,
}

/// The rows by `task_type` (`other` when they have none), and all of them as `overall`. Every
/// declared type has a bucket, an empty one if need be.
///
/// # Errors
/// [`NotAScore`] as in [`BatchScore::of_rows`].
pub fn task_type_buckets(
    rows: &[Map<String, Value>],
    task_types: &[String],
) -> Result<BTreeMap<String, Bucket>, NotAScore> {
    let mut buckets: BTreeMap<String, Bucket> = task_types
        .iter()
        .map(|name| (name.clone(), Bucket::default()))
        .collect();
    buckets.entry("overall".into()).or_default();
    for (index, row) in rows.iter().enumerate() {
        let score = row_score(index, row)?;
        let name = row
            .get("task_type")
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty())
            .unwrap_or("other");
        for name in [name, "overall"] {
            let bucket = buckets.entry(name.to_owned()).or_default();
            bucket.total += 1;
            bucket.hard += score.hard;
            bucket.soft += score.soft;
        }
    }
    Ok(buckets)
}

fn row_score(index: usize, row: &Map<String, Value>) -> Result<BatchScore, NotAScore> {
    let field = |field: &'static str| match row.get(field) {
        None => Ok(0.0),
        Some(value) => number(value).ok_or_else(|| NotAScore {
            row: index + 1,
            id: row
                .get("id")
                .map_or_else(|| "?".to_owned(), super::update_mode::plain),
            field,
            found: value.to_string(),
        }),
    };
    Ok(BatchScore {
        hard: field("hard")?,
        soft: field("soft")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows(value: &Value) -> Vec<Map<String, Value>> {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row.as_object().unwrap().clone())
            .collect()
    }

    #[test]
    fn an_unmeasured_score_is_no_zero() {
        let error = BatchScore::of_rows(&rows(
            &json!([{"id": "a", "hard": 1}, {"id": "b", "hard": null}]),
        ))
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "row 2 (id b) has `hard` = null, which is no number"
        );
    }

    #[test]
    fn a_little_credit_is_success() {
        assert!(is_failure(0.0) && is_failure(1e-12) && is_failure(f64::NAN) && !is_failure(0.3));
    }
}
