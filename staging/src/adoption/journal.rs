//! What an operation is about to do, written down before it does anything.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use skillopt_files::{Directory, NoSteps, Steps, TEMPORARY_PREFIX};

use super::ledger::FileState;
use crate::error::Result;
use crate::refusal::RefusalKind;
use crate::sealed::Seal;

const FORMAT: &str = "skillopt-sleep.journal/1";

/// An operation that began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// The operation's id.
    pub(crate) operation: String,
    /// The documents, in the order in which they are written.
    pub(crate) targets: Vec<Entry>,
}

/// One document of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The path as configured, for messages.
    pub(crate) path: PathBuf,
    /// The path that is written.
    pub(crate) real_path: PathBuf,
    /// The file before; `None` if there was none.
    pub(crate) before: Option<FileState>,
    /// Fingerprint of the file after; `None` if it is to be removed.
    pub(crate) after: Option<String>,
    /// Name of the temporary file beside it.
    pub(crate) temporary: String,
    /// Directories that are made for it, the outermost first.
    pub(crate) directories: Vec<PathBuf>,
}

impl Entry {
    pub(crate) fn before_sha256(&self) -> Option<&str> {
        self.before.as_ref().map(|before| before.sha256.as_str())
    }

    /// Whether a file has the mode and owner that the original had.
    pub(crate) fn had_attributes(&self, file: &skillopt_files::Entry) -> bool {
        self.before.as_ref().is_some_and(|before| {
            (before.mode, before.owner, before.group) == (file.mode, file.owner, file.group)
        })
    }

    /// Whether the operation leaves the file as it is.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.before_sha256() == self.after.as_deref()
    }
}

/// The journal's file; it is there only while an operation is under way.
pub(crate) fn path(state: &Path) -> PathBuf {
    state.join("adoptions").join("journal.json")
}

/// Name of the temporary file of the n-th document of an operation.
pub(crate) fn temporary(operation: &str, document: usize) -> String {
    format!("{TEMPORARY_PREFIX}{operation}-{document}.tmp")
}

impl Journal {
    pub(crate) fn write(&self, state: &Path, seal: &Seal, steps: &mut dyn Steps) -> Result<()> {
        seal.write(&path(state), FORMAT, self, steps)
    }

    pub(crate) fn read(state: &Path, seal: &Seal) -> Result<Option<Journal>> {
        seal.read(&path(state), FORMAT, RefusalKind::JournalInvalid)
    }
}

/// Removes the journal: the end of an operation, one way or the other.
///
/// The operation has ended as soon as the name is gone. If the disk then refuses to
/// promise that it stays gone, a power failure may bring the journal back, and recovery
/// undoes the operation and says so; the documents are whole either way.
pub(crate) fn remove(state: &Path, steps: &mut dyn Steps) -> Result<()> {
    let path = path(state);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let directory = match Directory::open(parent) {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    };
    if directory.entry(name)?.is_some() {
        directory.remove(name, steps)?;
        if let Err(error) = directory.sync(steps) {
            tracing::warn!(%error, "the end of an adoption may not be on the disk yet");
        }
    }
    Ok(())
}

/// Removes temporary files that a killed process left among our own records. Only to be
/// called under the lock.
pub(crate) fn sweep(state: &Path) -> Result<()> {
    let directory = match Directory::open(&state.join("adoptions")) {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    };
    for name in directory.names()? {
        let ours = name.to_str().is_some_and(|name| {
            name.starts_with(TEMPORARY_PREFIX)
                && Path::new(name).extension().is_some_and(|end| end == "tmp")
        });
        if ours {
            directory.remove(&name, &mut NoSteps)?;
        }
    }
    Ok(())
}
