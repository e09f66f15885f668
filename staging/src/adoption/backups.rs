//! Saved texts: what each document was before an operation and after it.
//!
//! They lie in `<state>/backups/<operation>/`, two files a document, named by the
//! document's place in the operation: `0.before`, `0.after`.

use std::path::{Path, PathBuf};

use skillopt_files::{Options, Steps, read_bounded, write_atomic_with};

use crate::error::Result;
use crate::proposal::DOCUMENT_LIMIT;
use crate::refusal::{Refusal, RefusalKind};
use crate::text::digest::sha256;

/// The two sides of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

pub(crate) fn folder(state: &Path, operation: &str) -> PathBuf {
    state.join("backups").join(operation)
}

fn path(state: &Path, operation: &str, document: usize, side: Side) -> PathBuf {
    let side = match side {
        Side::Before => "before",
        Side::After => "after",
    };
    folder(state, operation).join(format!("{document}.{side}"))
}

pub(crate) fn save(
    state: &Path,
    operation: &str,
    document: usize,
    side: Side,
    bytes: &[u8],
    steps: &mut dyn Steps,
) -> Result<()> {
    let options = Options {
        mode: Some(0o600),
        create_parents: true,
        ..Options::default()
    };
    let path = path(state, operation, document, side);
    Ok(write_atomic_with(&path, bytes, options, steps)?)
}

/// A saved text, if it still is what was saved.
pub(crate) fn load(
    state: &Path,
    operation: &str,
    document: usize,
    side: Side,
    fingerprint: &str,
) -> Result<Vec<u8>, Refusal> {
    let path = path(state, operation, document, side);
    // An editor's text that a revert saved may be larger than what is ever proposed.
    let bytes = read_bounded(&path, 16 * DOCUMENT_LIMIT).map_err(|error| {
        Refusal::path(
            RefusalKind::BackupMissing,
            &path,
            format!("the saved text cannot be read ({error}): restore it from your own backup"),
        )
    })?;
    if sha256(&bytes) != fingerprint {
        return Err(Refusal::path(
            RefusalKind::BackupChanged,
            &path,
            "the saved text was changed and is not used: restore it from your own backup",
        ));
    }
    Ok(bytes)
}

/// Removes what an operation saved.
pub(crate) fn discard(state: &Path, operation: &str) -> Result<()> {
    let folder = folder(state, operation);
    match std::fs::remove_dir_all(&folder) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(skillopt_files::Error::Io {
                action: "remove the saved texts in",
                path: folder,
                source,
            }
            .into())
        }
        _ => Ok(()),
    }
}
