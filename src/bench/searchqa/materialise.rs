//! From a manifest of ids and the public data to split folders (benchmarks 6.2).
//!
//! The released split manifests hold ids alone, because the questions may not be passed on. Who has
//! the data puts the two together. Rows are looked at one by one and only the wanted ones are
//! kept, so that the whole data set never is in memory.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::bench::check::id_of;
use crate::bench::error::DataError;
use crate::bench::layout::{Counts, MANIFEST, Rows};
use crate::bench::raw;

/// What an item has, in this order.
pub const FIELDS: [&str; 4] = ["id", "question", "context", "answers"];

/// The data set that the released manifests were made from.
pub const DATASET: &str = "lucadiliello/searchqa";

/// Longest line of a JSONL file, in bytes.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// How many missing ids an error names.
const NAMED: usize = 5;

/// `split_manifest.json` of materialised data; the original's keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// Where the ids came from.
    pub source_manifest_dir: String,
    /// Where the rows came from.
    pub source_dataset: String,
    /// How many items each split has.
    pub counts: Counts,
    /// What each item has.
    pub item_fields: [&'static str; 4],
}

/// The ids of a manifest, and the rows found for them so far.
#[derive(Debug)]
pub struct Materialiser {
    ids: [Vec<String>; 3],
    wanted: HashSet<String>,
    found: HashMap<String, Value>,
}

impl Materialiser {
    /// Starts from a manifest: split folders whose items have an `id`.
    ///
    /// # Errors
    /// [`DataError`] when an item has no id, or an id stands twice anywhere in the manifest.
    pub fn new(manifest: &Rows) -> Result<Materialiser, DataError> {
        let mut wanted = HashSet::new();
        let mut ids: [Vec<String>; 3] = Default::default();
        for (ids, (split, rows)) in ids.iter_mut().zip(manifest.splits()) {
            for (index, row) in rows.iter().enumerate() {
                let id = id_of(row).ok_or_else(|| {
                    let number = index + 1;
                    DataError::Splits(format!(
                        "entry {number} of {split} in the manifest has no `id`"
                    ))
                })?;
                if !wanted.insert(id.clone()) {
                    return Err(DataError::Item {
                        id,
                        message: "stands twice in the manifest".to_owned(),
                    });
                }
                ids.push(id);
            }
        }
        Ok(Materialiser {
            ids,
            wanted,
            found: HashMap::new(),
        })
    }

    /// Looks at one row of the data: an item with `key`, `question`, `context` and `answers`, or a
    /// passage of the MRQA edition of the same data with its questions in `qas`.
    ///
    /// # Errors
    /// [`DataError::Item`] when a wanted row lacks a field or comes up twice.
    pub fn see(&mut self, row: &Value) -> Result<(), DataError> {
        if let Some(questions) = row.get("qas").and_then(Value::as_array) {
            for question in questions {
                let fields = [
                    ("key", question.get("qid")),
                    ("question", question.get("question")),
                    ("context", row.get("context")),
                    ("answers", question.get("answers")),
                ];
                self.see_item(&fields.map(|(name, value)| (name, value.cloned())))?;
            }
            return Ok(());
        }
        let key = row.get("key").or_else(|| row.get("id"));
        self.see_item(&[
            ("key", key.cloned()),
            ("question", row.get("question").cloned()),
            ("context", row.get("context").cloned()),
            ("answers", row.get("answers").cloned()),
        ])
    }

    fn see_item(&mut self, fields: &[(&str, Option<Value>); 4]) -> Result<(), DataError> {
        let [(_, key), fields @ ..] = fields;
        let Some(id) = key.as_ref().and_then(key_text) else {
            return Ok(());
        };
        if !self.wanted.contains(&id) {
            return Ok(());
        }
        let mut item = Map::from_iter([("id".to_owned(), json!(id))]);
        for (name, value) in fields {
            let Some(value) = value.clone().filter(|value| !value.is_null()) else {
                let message = format!("has no `{name}` in the data");
                return Err(DataError::Item { id, message });
            };
            item.insert((*name).to_owned(), value);
        }
        match self.found.insert(id.clone(), Value::Object(item)) {
            None => Ok(()),
            Some(_) => Err(DataError::Item {
                id,
                message: "stands twice in the data; give each file once".to_owned(),
            }),
        }
    }

    /// Looks at every row of a JSON or JSONL file (`.jsonl.gz` too), or of all such files below a
    /// folder.
    ///
    /// # Errors
    /// [`DataError`] when something cannot be read, and as [`Materialiser::see`].
    pub fn see_path(&mut self, path: &Path) -> Result<(), DataError> {
        if path.is_dir() {
            for file in files_below(path)? {
                self.see_path(&file)?;
            }
            return Ok(());
        }
        let open = || File::open(path).map_err(|error| DataError::read(path, error.to_string()));
        match raw::suffix(path) {
            "jsonl" => return self.see_lines(path, open()?),
            "gz" => return self.see_lines(path, MultiGzDecoder::new(open()?)),
            "parquet" => {
                return Err(DataError::read(
                    path,
                    "Parquet is not read; write it out as JSON Lines, for example with pandas: \
                     read_parquet(FILE).to_json(\"rows.jsonl\", orient=\"records\", lines=True)",
                ));
            }
            _ => {}
        }
        let text = skillopt_files::read_text(path, raw::MAX_FILE_BYTES)
            .map_err(|error| DataError::read(path, error.to_string()))?;
        for row in raw::parse(path, &text)? {
            self.see(&row)?;
        }
        Ok(())
    }

    fn see_lines(&mut self, path: &Path, file: impl Read) -> Result<(), DataError> {
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let read = reader
                .by_ref()
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line)
                .map_err(|error| DataError::read(path, error.to_string()))?;
            if read == 0 {
                break;
            }
            let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
            if text.trim_ascii().is_empty() {
                continue;
            }
            let row: Value = serde_json::from_slice(text)
                .map_err(|error| DataError::parse(path, number, error.to_string()))?;
            self.see(&row)?;
        }
        Ok(())
    }

    /// The items in the manifest's order.
    ///
    /// # Errors
    /// [`DataError::Splits`] when ids were not found, with how many and the first ones.
    pub fn finish(mut self) -> Result<Rows, DataError> {
        let missing: Vec<&str> = self
            .ids
            .iter()
            .flatten()
            .filter(|id| !self.found.contains_key(*id))
            .map(String::as_str)
            .collect();
        if !missing.is_empty() {
            let first = missing[..missing.len().min(NAMED)].join(", ");
            return Err(DataError::Splits(format!(
                "{} of {} ids of the manifest are not in the data: {first}{}; is every split of \
                 the data named?",
                missing.len(),
                self.wanted.len(),
                if missing.len() > NAMED { ", …" } else { "" }
            )));
        }
        let [train, val, test] = std::mem::take(&mut self.ids).map(|ids| {
            ids.into_iter()
                .filter_map(|id| self.found.remove(&id))
                .collect()
        });
        Ok(Rows { train, val, test })
    }
}

/// A key as text.
fn key_text(key: &Value) -> Option<String> {
    match key {
        Value::String(key) => Some(key.clone()),
        Value::Number(key) => Some(key.to_string()),
        _ => None,
    }
}

/// The data files below a folder, one level of folders deep, by path. What is a split folder's
/// manifest is none.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let list = |folder: &Path| -> Result<Vec<PathBuf>, DataError> {
        let entries = fs_err::read_dir(folder)
            .map_err(|error| DataError::read(folder, error.to_string()))?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()));
        let mut paths: Vec<PathBuf> = entries.collect();
        paths.sort();
        Ok(paths)
    };
    let is_data = |path: &PathBuf| {
        matches!(raw::suffix(path), "json" | "jsonl" | "gz" | "parquet")
            && !path.ends_with(MANIFEST)
            && path.is_file()
    };
    let mut files = Vec::new();
    for path in list(folder)? {
        if path.is_dir() {
            files.extend(list(&path)?.into_iter().filter(is_data));
        } else if is_data(&path) {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(DataError::read(
            folder,
            "there is no *.json, *.jsonl or *.jsonl.gz file in it",
        ));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(ids: &[&str]) -> Rows {
        Rows {
            train: ids.iter().map(|id| json!({"id": id})).collect(),
            ..Rows::default()
        }
    }

    #[test]
    fn both_editions_of_the_data_give_the_same_item() {
        let flat = json!({"key": "k", "question": "q", "context": "c", "answers": ["a"], "x": 1});
        let passage = json!({
            "context": "c",
            "qas": [{"qid": "k", "question": "q", "answers": ["a"], "detected_answers": []}],
        });
        let item = json!({"id": "k", "question": "q", "context": "c", "answers": ["a"]});
        for row in [flat, passage] {
            let mut materialiser = Materialiser::new(&manifest(&["k"])).unwrap();
            materialiser.see(&json!({"header": {}})).unwrap();
            materialiser.see(&row).unwrap();
            assert_eq!(
                materialiser.finish().unwrap().train,
                std::slice::from_ref(&item)
            );
        }
    }

    #[test]
    fn compressed_lines_are_read_and_other_forms_say_what_to_do() {
        use std::io::Write as _;
        let dir = tempfile::tempdir().unwrap();
        let file = File::create(dir.path().join("rows.jsonl.gz")).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        let row = json!({"key": 7, "question": "q", "context": "c", "answers": ["a"]});
        writeln!(gzip, "{row}").unwrap();
        gzip.finish().unwrap();
        let mut materialiser = Materialiser::new(&manifest(&["7"])).unwrap();
        materialiser.see_path(dir.path()).unwrap();
        assert_eq!(materialiser.finish().unwrap().train[0]["id"], "7");

        std::fs::write(dir.path().join("rows.parquet"), "PAR1").unwrap();
        let mut materialiser = Materialiser::new(&manifest(&["7"])).unwrap();
        let error = materialiser.see_path(dir.path()).unwrap_err().to_string();
        assert!(error.contains("JSON Lines"), "{error}");
    }

    #[test]
    fn missing_ids_are_counted_and_the_first_named() {
        let ids = ["1", "2", "3", "4", "5", "6", "7"];
        let error = Materialiser::new(&manifest(&ids)).unwrap().finish();
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("7 of 7 ids") && error.contains("1, 2, 3, 4, 5, …"),
            "{error}"
        );
    }
}
