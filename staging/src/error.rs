//! What can go wrong in this crate.

use std::path::PathBuf;

use skillopt_files::LockError;

use crate::refusal::{Refusal, RefusalKind};
use crate::text::display::display_safe;

/// The result of most operations of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rule said no; nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A file operation failed before any document was changed.
    #[error(transparent)]
    File(#[from] skillopt_files::Error),
    /// Another process is adopting or reverting.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// A file operation failed in the middle of an adoption or revert, and everything that
    /// had been written was put back.
    #[error("{source}; {}", put_back(left))]
    PutBack {
        /// What failed.
        source: skillopt_files::Error,
        /// Documents that somebody else changed meanwhile; their text was kept.
        left: Vec<PathBuf>,
    },
    /// An adoption failed, and putting everything back failed too.
    #[error(
        "the adoption failed ({primary}) and could not be undone completely ({rollback}): \
         the next adoption or revert tries again from the journal {}",
        journal.display()
    )]
    RollbackIncomplete {
        /// Why the adoption failed.
        primary: Box<Error>,
        /// Why it could not be undone.
        rollback: Box<Error>,
        /// The journal that recovery will use.
        journal: PathBuf,
    },
}

impl Error {
    /// The reason as a word, if a rule said no.
    pub fn refusal(&self) -> Option<RefusalKind> {
        match self {
            Error::Refused(refusal) => Some(refusal.kind),
            _ => None,
        }
    }
}

fn put_back(left: &[PathBuf]) -> String {
    if left.is_empty() {
        return "every document is as it was before".to_owned();
    }
    let left: Vec<String> = left
        .iter()
        .map(|path| display_safe(&path.display().to_string()))
        .collect();
    format!(
        "the documents are as they were before, but for {}, which somebody else changed \
         meanwhile and which keeps their text",
        left.join(", ")
    )
}
