//! Standalone evaluation: which items a split's name stands for, and the summary (engine 24).

use std::path::PathBuf;

use serde::Serialize;

use super::dataset::DataError;
use crate::trainer::environment::{Environment, Item, Split};
use crate::trainer::evaluation::Evaluation;

/// The seed of an evaluation whose configuration has none.
pub const DEFAULT_SEED: i64 = 42;

/// What is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every item of train, validation and test, in that order.
    All,
    /// The first `limit` items of one split, all of them for 0.
    One {
        /// The split.
        split: Split,
        /// Most items.
        limit: usize,
    },
}

impl Scope {
    /// What `name` stands for. The limit counts for a single split only.
    ///
    /// # Errors
    /// [`DataError::Splits`] for a name that is no split (W-D3).
    pub fn parse(name: &str, limit: usize) -> Result<Scope, DataError> {
        if name == "all" {
            return Ok(Scope::All);
        }
        let split = Split::parse(name).ok_or_else(|| {
            DataError::Splits(format!(
                "`{name}` is no split; use train, val (valid_seen, selection), test \
                 (valid_unseen) or all"
            ))
        })?;
        Ok(Scope::One { split, limit })
    }

    /// The splits with how many items of each count, 0 for all.
    #[must_use]
    pub fn parts(self) -> Vec<(Split, usize)> {
        match self {
            Scope::All => vec![(Split::Train, 0), (Split::Selection, 0), (Split::Test, 0)],
            Scope::One { split, limit } => vec![(split, limit)],
        }
    }

    /// The items, in the splits' own order.
    #[must_use]
    pub fn items(self, environment: &impl Environment) -> Vec<Item> {
        let mut items = Vec::new();
        for (split, limit) in self.parts() {
            let all = environment.items(split);
            let count = if limit == 0 {
                all.len()
            } else {
                limit.min(all.len())
            };
            items.extend_from_slice(&all[..count]);
        }
        items
    }
}

/// `eval_summary.json`: the original's keys, with what was not measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvalSummary {
    /// The skill file, absolute.
    pub skill: PathBuf,
    /// The split as it was named.
    pub split: String,
    /// How many items were attempted.
    pub n_items: usize,
    /// How many of them were measured.
    pub n_measured: usize,
    /// Mean hard score over these; none when there are none.
    pub hard: Option<f64>,
    /// Mean soft score over these.
    pub soft: Option<f64>,
}

impl EvalSummary {
    /// Sums an evaluation up.
    #[must_use]
    pub fn of(evaluation: &Evaluation, skill: PathBuf, split: &str) -> EvalSummary {
        let scores = evaluation.scores();
        EvalSummary {
            skill,
            split: split.to_owned(),
            n_items: evaluation.rollouts.len(),
            n_measured: evaluation.measured(),
            hard: scores.map(|scores| scores.hard),
            soft: scores.map(|scores| scores.soft),
        }
    }
}
