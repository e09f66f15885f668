//! What can be wrong with benchmark data.

use std::path::{Path, PathBuf};

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
    /// A file cannot be written.
    #[error("cannot write the data to {path}: {message}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
}

impl DataError {
    pub(super) fn read(path: &Path, message: impl Into<String>) -> DataError {
        DataError::Read {
            path: path.to_owned(),
            message: message.into(),
        }
    }

    pub(super) fn parse(
        path: &Path,
        line: impl Into<Option<usize>>,
        message: impl Into<String>,
    ) -> DataError {
        DataError::Parse {
            path: path.to_owned(),
            line: line.into(),
            message: message.into(),
        }
    }

    pub(super) fn write(path: &Path, error: impl std::fmt::Display) -> DataError {
        DataError::Write {
            path: path.to_owned(),
            message: error.to_string(),
        }
    }
}
