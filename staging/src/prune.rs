//! Removing what nobody needs any more, by age.

use std::path::Path;

use jiff::Timestamp;

use crate::adoption::{self, backups, ledger::Ledger};
use crate::area::StagingArea;
use crate::error::Result;
use crate::sealed::Seal;

impl StagingArea {
    /// Removes decided proposals (rejected, adopted, reverted, superseded, expired) that
    /// were made before a moment, and says which. Open ones stay, however old.
    ///
    /// # Errors
    ///
    /// The area cannot be read or written.
    pub fn prune(&self, made_before: Timestamp) -> Result<Vec<String>> {
        let mut removed = Vec::new();
        for staged in self.list()?.staged {
            if staged.status.is_open() || staged.proposal.created >= made_before {
                continue;
            }
            std::fs::remove_dir_all(&staged.folder).map_err(|source| {
                skillopt_files::Error::Io {
                    action: "remove the decided proposal",
                    path: staged.folder.clone(),
                    source,
                }
            })?;
            removed.push(staged.proposal.id);
        }
        Ok(removed)
    }
}

/// Removes the saved texts of adoptions and reverts before a moment, and says of which.
/// Those can no longer be reverted; their records stay.
///
/// # Errors
///
/// Another process is adopting, or the directory cannot be read or written.
pub fn prune_backups(state: &Path, made_before: Timestamp) -> Result<Vec<String>> {
    let _lock = adoption::lock(state, "removal of old backups")?;
    let ledger = Ledger::load(state, &Seal::open(state)?)?;
    let mut removed = Vec::new();
    for operation in ledger.operations {
        if operation.at < made_before && backups::folder(state, &operation.id).exists() {
            backups::discard(state, &operation.id)?;
            removed.push(operation.id);
        }
    }
    Ok(removed)
}
