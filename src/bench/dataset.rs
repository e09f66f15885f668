//! Benchmark data in memory: the items of three splits, checked (benchmarks 2).

use std::path::Path;

use super::check::{Finding, check, id_of};
pub use super::error::DataError;
use super::layout::Rows;
use crate::trainer::environment::{Item, Split};

/// How many findings an error quotes.
const QUOTED: usize = 3;

/// Items of all three splits.
#[derive(Debug, Clone, Default)]
pub struct Dataset {
    train: Vec<Item>,
    selection: Vec<Item>,
    test: Vec<Item>,
    findings: Vec<Finding>,
}

impl Dataset {
    /// Checks items and takes them, keeping the first `limit` of each split when it is not 0.
    ///
    /// # Errors
    /// [`DataError::Splits`] when an id is missing or stands twice, or when the train or the
    /// validation split is empty: a gate over nothing rejects everything (W-D1, W-D6).
    pub fn new(rows: Rows, limit: usize) -> Result<Self, DataError> {
        let rows = rows.limited(limit);
        let findings = check(&rows);
        let fatal: Vec<&str> = findings
            .iter()
            .filter(|finding| finding.fatal)
            .map(|finding| finding.message.as_str())
            .collect();
        if !fatal.is_empty() {
            let quoted = fatal[..fatal.len().min(QUOTED)].join("; ");
            let more = match fatal.len().saturating_sub(QUOTED) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            return Err(DataError::Splits(format!(
                "{quoted}{more}; ids must be unique over all splits, and train and val need items"
            )));
        }
        let items = |rows: Vec<serde_json::Value>| {
            rows.into_iter()
                .filter_map(|payload| {
                    let id = id_of(&payload)?;
                    Some(Item { id, payload })
                })
                .collect()
        };
        Ok(Self {
            train: items(rows.train),
            selection: items(rows.val),
            test: items(rows.test),
            findings,
        })
    }

    /// Reads `train/`, `val/` and `test/` below `dir`.
    ///
    /// # Errors
    /// When a folder is missing or a file is no item list, and as [`Dataset::new`].
    pub fn from_split_dir(dir: &Path, limit: usize) -> Result<Self, DataError> {
        Self::new(Rows::read(dir)?, limit).map_err(|error| match error {
            DataError::Splits(message) => {
                DataError::Splits(format!("{}: {message}", dir.display()))
            }
            other => other,
        })
    }

    /// The items of one split, in file order.
    #[must_use]
    pub fn split(&self, split: Split) -> &[Item] {
        match split {
            Split::Train => &self.train,
            Split::Selection => &self.selection,
            Split::Test => &self.test,
        }
    }

    /// The items of all splits: train, validation, test.
    pub fn all(&self) -> impl Iterator<Item = &Item> {
        self.train.iter().chain(&self.selection).chain(&self.test)
    }

    /// Names the items and their order: equal data has equal fingerprints.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for items in [&self.train, &self.selection, &self.test] {
            hasher.update(&(items.len() as u64).to_le_bytes());
            for item in items {
                let text = item.payload.to_string();
                hasher.update(&(text.len() as u64).to_le_bytes());
                hasher.update(text.as_bytes());
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    /// What is wrong with the data and does not prevent training.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

/// How many items an epoch has (engine 5.5): what the configuration says, else what there is.
/// `None` and 0 stand for "not known".
///
/// # Errors
/// [`DataError::Splits`] when both are known and differ, or neither is known.
pub fn train_size(configured: Option<i64>, available: Option<usize>) -> Result<usize, DataError> {
    let configured = configured
        .and_then(|size| usize::try_from(size).ok())
        .filter(|size| *size > 0);
    match (configured, available.filter(|size| *size > 0)) {
        (Some(configured), Some(available)) if configured != available => {
            Err(DataError::Splits(format!(
                "train.train_size is {configured} and the train split has {available} items; \
                 set it to 0 to use what is there"
            )))
        }
        (Some(size), _) | (None, Some(size)) => Ok(size),
        (None, None) => Err(DataError::Splits(
            "neither train.train_size nor the train split says how many items an epoch has"
                .to_owned(),
        )),
    }
}
