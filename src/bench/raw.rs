//! Raw data: one JSON or JSON Lines file in any of the forms in which benchmark sources come
//! (engine 5.2, benchmarks 2.5).
//!
//! The suffix decides what a lone object means. In a `.jsonl` file it is the one item; in any other
//! file it holds the items, in its list `data` or as its values, unless its values are no items
//! either: then it is one (W-D2).

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::error::DataError;
use super::layout;

/// Largest data file, in bytes.
pub(super) const MAX_FILE_BYTES: u64 = 1 << 30;

/// A raw data file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The file, absolute.
    pub path: PathBuf,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its items, at least one.
    pub rows: Vec<Value>,
}

impl Source {
    /// Reads a file, or the only `*.json` or `*.jsonl` file of a folder.
    ///
    /// # Errors
    /// [`DataError`] when `path` is blank (W-D5), is missing, is a folder of splits or one without
    /// exactly one data file, or when the file is not JSON or has no items.
    pub fn read(path: &Path) -> Result<Source, DataError> {
        let path = std::path::absolute(the_file(path)?)
            .map_err(|error| DataError::read(path, error.to_string()))?;
        let text = skillopt_files::read_text(&path, MAX_FILE_BYTES)
            .map_err(|error| DataError::read(&path, error.to_string()))?;
        let rows = parse(&path, &text)?;
        if rows.is_empty() {
            return Err(DataError::read(&path, "it has no items"));
        }
        Ok(Source {
            sha256: sha256(text.as_bytes()),
            path,
            rows,
        })
    }
}

/// The items in the text of a data file; `path` names it in errors, and its suffix counts.
///
/// # Errors
/// [`DataError::Parse`] when the text is neither one JSON value nor one a line.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Value>, DataError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(rows)) => Ok(rows),
        Ok(whole) if suffix(path) == "jsonl" => Ok(vec![whole]),
        Ok(whole) => Ok(unwrapped(whole)),
        Err(whole) => lines(path, text).map_err(|error| {
            // In a file that is one array, its own error says more than that of a line.
            if text.trim_start().starts_with('[') && suffix(path) != "jsonl" {
                DataError::parse(path, whole.line(), whole.to_string())
            } else {
                error
            }
        }),
    }
}

/// One JSON value a line. Lines end at LF only: other Unicode line ends may stand inside strings
/// (W-D2).
///
/// # Errors
/// [`DataError::Parse`] with the first line that is no JSON.
pub fn lines(path: &Path, text: &str) -> Result<Vec<Value>, DataError> {
    text.trim_start_matches('\u{feff}')
        .split('\n')
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            serde_json::from_str(line)
                .map_err(|error| DataError::parse(path, index + 1, error.to_string()))
        })
        .collect()
}

/// SHA-256 in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

pub(super) fn suffix(path: &Path) -> &str {
    path.extension()
        .and_then(|suffix| suffix.to_str())
        .unwrap_or_default()
}

/// The items that one JSON value holds.
fn unwrapped(whole: Value) -> Vec<Value> {
    let Value::Object(mut fields) = whole else {
        return vec![whole];
    };
    if let Some(Value::Array(rows)) = fields.get_mut("data") {
        return std::mem::take(rows);
    }
    if fields.values().all(Value::is_object) {
        return fields.into_iter().map(|(_, row)| row).collect();
    }
    vec![Value::Object(fields)]
}

fn the_file(path: &Path) -> Result<PathBuf, DataError> {
    if path.as_os_str().is_empty() {
        return Err(DataError::read(
            path,
            "no file is named; set env.data_path to a .json or .jsonl file",
        ));
    }
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    if layout::NAMES.iter().any(|name| path.join(name).is_dir()) {
        return Err(DataError::read(
            path,
            "it is split already; use env.split_mode=split_dir and name it in env.split_dir",
        ));
    }
    let mut files = data_files(path)?;
    match (files.pop(), files.len()) {
        (Some(file), 0) => Ok(file),
        (None, _) => Err(DataError::read(
            path,
            "there is no *.json or *.jsonl file in it",
        )),
        (Some(_), others) => Err(DataError::read(
            path,
            format!("there are {} data files in it; name one", others + 1),
        )),
    }
}

/// The `*.json` and `*.jsonl` files of a folder, by name.
pub(super) fn data_files(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let entries = fs_err::read_dir(folder)
        .map_err(|error| DataError::read(folder, error.to_string()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut files: Vec<PathBuf> = entries
        .filter(|path| matches!(suffix(path), "json" | "jsonl") && path.is_file())
        .collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_suffix_decides_what_a_lone_object_means() {
        let read = |name: &str, text: &str| parse(Path::new(name), text).unwrap();
        let row = r#"{"id": "a", "question": "q"}"#;
        assert_eq!(read("one.jsonl", row).len(), 1);
        assert_eq!(read("one.json", row), [json!({"id": "a", "question": "q"})]);
        let table = r#"{"x": {"id": 1}, "y": {"id": 2}}"#;
        assert_eq!(read("t.json", table), [json!({"id": 1}), json!({"id": 2})]);
        assert_eq!(
            read("t.jsonl", table),
            [json!({"x": {"id": 1}, "y": {"id": 2}})]
        );
        assert_eq!(read("t.json", r#"{"data": []}"#), Vec::<Value>::new());
        assert_eq!(
            read("t.jsonl", "\u{feff}{\"q\": \"a\u{2028}b\"}\r\n\n{\"q\": 2}"),
            [json!({"q": "a\u{2028}b"}), json!({"q": 2})]
        );
    }

    #[test]
    fn errors_name_the_line() {
        let error = parse(Path::new("d.json"), "{\"id\": 1}\nbroken").unwrap_err();
        assert!(error.to_string().starts_with("d.json, line 2: "), "{error}");
        let error = parse(Path::new("d.json"), "[\n{\"id\": 1},\n{]").unwrap_err();
        assert!(error.to_string().starts_with("d.json, line 3: "), "{error}");
    }
}
