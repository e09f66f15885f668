//! Data on disk: folders `train`, `val` and `test`, each with one file of items, and beside them a
//! `split_manifest.json` that says where they came from (engine 5.1, benchmarks 2.3).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use skillopt_files::write_atomic_json;

use super::error::DataError;
use super::raw::{self, MAX_FILE_BYTES};

/// The folders, in their order.
pub const NAMES: [&str; 3] = ["train", "val", "test"];

/// The manifest's file name.
pub const MANIFEST: &str = "split_manifest.json";

/// The items of the three splits as they were read; nothing about them is checked yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Items that are reflected on.
    pub train: Vec<Value>,
    /// Items that decide about candidates.
    pub val: Vec<Value>,
    /// Items that are only measured.
    pub test: Vec<Value>,
}

/// How many items each split has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Of `train`.
    pub train: usize,
    /// Of `val`.
    pub val: usize,
    /// Of `test`.
    pub test: usize,
}

impl Rows {
    /// Reads the folders below `dir`. Each is read from its first `*.json`, which must be an array,
    /// else from its first `*.jsonl`.
    ///
    /// # Errors
    /// [`DataError`] when a folder or its file is missing or is no list of items.
    pub fn read(dir: &Path) -> Result<Rows, DataError> {
        let read = |name: &str| read_split(&dir.join(name));
        Ok(Rows {
            train: read("train")?,
            val: read("val")?,
            test: read("test")?,
        })
    }

    /// Writes `items.json` into each folder below `dir`, and the manifest last, so that a folder
    /// with a manifest is whole.
    ///
    /// # Errors
    /// [`DataError::Write`].
    pub fn write(&self, dir: &Path, manifest: &impl Serialize) -> Result<(), DataError> {
        for (name, rows) in self.splits() {
            let file = dir.join(name).join("items.json");
            write_atomic_json(&file, rows).map_err(|error| DataError::write(&file, error))?;
        }
        let file = dir.join(MANIFEST);
        write_atomic_json(&file, manifest).map_err(|error| DataError::write(&file, error))
    }

    /// Keeps the first `limit` items of each split, all of them for 0.
    #[must_use]
    pub fn limited(mut self, limit: usize) -> Rows {
        if limit > 0 {
            for rows in [&mut self.train, &mut self.val, &mut self.test] {
                rows.truncate(limit);
            }
        }
        self
    }

    /// The splits by name, in their order.
    #[must_use]
    pub fn splits(&self) -> [(&'static str, &Vec<Value>); 3] {
        let [train, val, test] = NAMES;
        [(train, &self.train), (val, &self.val), (test, &self.test)]
    }

    /// How many items each has.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            train: self.train.len(),
            val: self.val.len(),
            test: self.test.len(),
        }
    }
}

/// The items of one split folder.
///
/// # Errors
/// [`DataError`] when there is no file, or it is no list of items.
pub fn read_split(folder: &Path) -> Result<Vec<Value>, DataError> {
    if !folder.is_dir() {
        return Err(DataError::read(
            folder,
            "there is no such folder; split data has the folders train, val and test",
        ));
    }
    let mut files: Vec<PathBuf> = raw::data_files(folder)?;
    files.sort_by_key(|path| (raw::suffix(path) == "jsonl", path.clone()));
    let Some(path) = files.first() else {
        return Err(DataError::read(
            folder,
            "there is no *.json or *.jsonl file in it",
        ));
    };
    let text = skillopt_files::read_text(path, MAX_FILE_BYTES)
        .map_err(|error| DataError::read(path, error.to_string()))?;
    if raw::suffix(path) == "jsonl" {
        return raw::lines(path, &text);
    }
    match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(Value::Array(rows)) => Ok(rows),
        Ok(_) => Err(DataError::parse(path, None, "is not a JSON array of items")),
        Err(error) => Err(DataError::parse(path, error.line(), error.to_string())),
    }
}

/// The manifest below `dir`; none when there is none.
///
/// # Errors
/// [`DataError`] when it is there and is no JSON of the wanted form.
pub fn read_manifest<M: serde::de::DeserializeOwned>(dir: &Path) -> Result<Option<M>, DataError> {
    let path = dir.join(MANIFEST);
    if !path.exists() {
        return Ok(None);
    }
    let text = skillopt_files::read_text(&path, MAX_FILE_BYTES)
        .map_err(|error| DataError::read(&path, error.to_string()))?;
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| DataError::parse(&path, error.line(), error.to_string()))
}
