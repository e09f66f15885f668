//! Benchmark data as split folders: `train/`, `val/` and `test/`, each with one JSON array or
//! JSONL file (benchmarks 2).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::trainer::environment::{Item, Split};

/// Largest data file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// What is wrong with the data.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A folder or file is missing or cannot be read.
    #[error("cannot read the data at {path}: {message}")]
    Read {
        /// The path.
        path: PathBuf,
        /// What is wrong and what to do.
        message: String,
    },
    /// A file is not the expected JSON.
    #[error("{path}{}: {message}", line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Its line, in JSONL.
        line: Option<usize>,
        /// What is wrong.
        message: String,
    },
    /// One item cannot be used.
    #[error("item {id} {message}")]
    Item {
        /// The item.
        id: String,
        /// What is wrong with it.
        message: String,
    },
    /// The splits are not usable together.
    #[error("{0}")]
    Splits(String),
}

/// Items of all three splits.
#[derive(Debug, Clone, Default)]
pub struct Dataset {
    train: Vec<Item>,
    selection: Vec<Item>,
    test: Vec<Item>,
}

impl Dataset {
    /// Reads `train/`, `val/` and `test/` below `dir`, keeping the first `limit` items of each
    /// when it is not 0.
    ///
    /// # Errors
    /// When a folder is missing, a file is no item list, an id is missing or stands twice, or the
    /// train or the validation split is empty: a gate over nothing rejects everything (W-D1, W-D6).
    pub fn from_split_dir(dir: &Path, limit: usize) -> Result<Self, DataError> {
        let read = |name: &str| -> Result<Vec<Item>, DataError> {
            let mut items = read_split(&dir.join(name))?;
            if limit > 0 {
                items.truncate(limit);
            }
            Ok(items)
        };
        let dataset = Self {
            train: read("train")?,
            selection: read("val")?,
            test: read("test")?,
        };
        dataset.check(dir)?;
        Ok(dataset)
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

    fn check(&self, dir: &Path) -> Result<(), DataError> {
        for (name, items) in [("train", &self.train), ("val", &self.selection)] {
            if items.is_empty() {
                return Err(DataError::Splits(format!(
                    "the {name} split of {} has no items; training needs at least one",
                    dir.display()
                )));
            }
        }
        let mut seen: HashMap<&str, &str> = HashMap::new();
        for (name, items) in [
            ("train", &self.train),
            ("val", &self.selection),
            ("test", &self.test),
        ] {
            for item in items {
                if let Some(earlier) = seen.insert(&item.id, name) {
                    return Err(DataError::Item {
                        id: item.id.clone(),
                        message: format!(
                            "stands in {earlier} and again in {name}; ids must be unique over all splits"
                        ),
                    });
                }
            }
        }
        Ok(())
    }
}

/// The items of one split folder: its first `*.json`, else its first `*.jsonl`, by name.
fn read_split(folder: &Path) -> Result<Vec<Item>, DataError> {
    let failed = |message: String| DataError::Read {
        path: folder.to_owned(),
        message,
    };
    let mut files: Vec<PathBuf> = fs_err::read_dir(folder)
        .map_err(|error| {
            failed(format!(
                "{error}; a split folder needs train/, val/ and test/"
            ))
        })?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| matches!(extension(path), "json" | "jsonl"))
        .collect();
    files.sort_by_key(|path| (extension(path) == "jsonl", path.clone()));
    let Some(path) = files.first() else {
        return Err(failed(
            "there is no *.json or *.jsonl file in it".to_owned(),
        ));
    };
    let text = skillopt_files::read_text(path, MAX_FILE_BYTES)
        .map_err(|error| failed(error.to_string()))?;
    let text = text.trim_start_matches('\u{feff}');
    let rows = if extension(path) == "jsonl" {
        json_lines(path, text)?
    } else {
        json_array(path, text)?
    };
    rows.into_iter()
        .enumerate()
        .map(|(index, row)| item(path, index, row))
        .collect()
}

fn extension(path: &Path) -> &str {
    path.extension()
        .and_then(|ext| ext.to_str())
        .unwrap_or_default()
}

fn json_array(path: &Path, text: &str) -> Result<Vec<Value>, DataError> {
    let failed = |line: Option<usize>, message: String| DataError::Parse {
        path: path.to_owned(),
        line,
        message,
    };
    match serde_json::from_str(text) {
        Ok(Value::Array(rows)) => Ok(rows),
        Ok(_) => Err(failed(None, "is not a JSON array of items".to_owned())),
        Err(error) => Err(failed(Some(error.line()), error.to_string())),
    }
}

/// Lines end at LF only: other Unicode line ends may stand inside strings (W-D2).
fn json_lines(path: &Path, text: &str) -> Result<Vec<Value>, DataError> {
    text.split('\n')
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| DataError::Parse {
                path: path.to_owned(),
                line: Some(index + 1),
                message: error.to_string(),
            })
        })
        .collect()
}

fn item(path: &Path, index: usize, row: Value) -> Result<Item, DataError> {
    let id = match row.get("id") {
        Some(Value::String(id)) if !id.trim().is_empty() => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => {
            return Err(DataError::Parse {
                path: path.to_owned(),
                line: None,
                message: format!("item {} has no `id`", index + 1),
            });
        }
    };
    Ok(Item { id, payload: row })
}
