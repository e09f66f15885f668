//! Undoing an operation that did not come to its end.
//!
//! Recovery believes the disk, not the journal: it puts a document back only if the
//! document holds exactly what the operation wrote, and only with bytes that have the
//! recorded fingerprint, and only inside what configuration allows now. A document that
//! somebody changed meanwhile is left alone and named. It can itself be interrupted
//! anywhere and started again.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Serialize;
use skillopt_files::{Attributes, Directory, Entry, Error as FileError, Steps};

use super::backups::{self, Side};
use super::journal::{self, Journal};
use super::ledger;
use super::transaction::Swap;
use crate::error::Result;
use crate::proposal::DOCUMENT_LIMIT;
use crate::refusal::{Refusal, RefusalKind};
use crate::roots::AllowedRoots;
use crate::sealed::Seal;
use crate::text::digest::sha256;

/// What recovery did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// The operation that was undone.
    pub operation: String,
    /// What became of its documents.
    pub documents: Vec<RecoveredDocument>,
}

/// One document of an undone operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecoveredDocument {
    /// The document's path, as configured.
    pub path: PathBuf,
    /// What was done.
    pub outcome: Outcome,
}

/// What recovery did with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The operation had not changed it yet.
    Untouched,
    /// It has its former text again, or is gone again.
    Restored,
    /// Somebody changed it after the operation had; their text was kept.
    LeftChanged,
}

impl Recovery {
    /// The documents that somebody else had changed, and that were left as they are.
    pub fn left_changed(&self) -> Vec<PathBuf> {
        let documents = self.documents.iter();
        documents
            .filter(|document| document.outcome == Outcome::LeftChanged)
            .map(|document| document.path.clone())
            .collect()
    }

    /// One sentence a document, safe to show.
    pub fn lines(&self) -> Vec<String> {
        self.documents
            .iter()
            .map(|document| {
                let path = crate::display_safe(&document.path.display().to_string());
                match document.outcome {
                    Outcome::Untouched => format!("{path}: was not changed yet"),
                    Outcome::Restored => format!("{path}: is again as it was"),
                    Outcome::LeftChanged => format!(
                        "{path}: was changed by somebody else meanwhile and left as it is; the \
                         text before is in the backups of {}",
                        self.operation
                    ),
                }
            })
            .collect()
    }
}

/// Undoes what the journal tells of, if there is one.
pub(crate) fn recover(
    state: &Path,
    seal: &Seal,
    roots: &AllowedRoots,
    steps: &mut dyn Steps,
) -> Result<Option<Recovery>> {
    let journal = Journal::read(state, seal)?;
    journal::sweep(state)?;
    let Some(journal) = journal else {
        return Ok(None);
    };
    let recovery = undo(state, &journal, roots, steps)?;
    for line in recovery.lines() {
        tracing::warn!(operation = %recovery.operation, "recovered: {line}");
    }
    Ok(Some(recovery))
}

/// Undoes an operation as far as it went.
pub(crate) fn undo(
    state: &Path,
    journal: &Journal,
    roots: &AllowedRoots,
    steps: &mut dyn Steps,
) -> Result<Recovery> {
    let mut documents = Vec::new();
    for (number, target) in journal.targets.iter().enumerate().rev() {
        let document = Undo {
            state,
            operation: &journal.operation,
            number,
            target,
        };
        documents.push(RecoveredDocument {
            path: target.path.clone(),
            outcome: document.run(roots, steps)?,
        });
    }
    documents.reverse();
    for target in journal.targets.iter().rev() {
        remove_directories(&target.directories, roots, steps)?;
    }
    ledger::discard(state, &journal.operation, steps)?;
    let kept = documents
        .iter()
        .any(|document| document.outcome == Outcome::LeftChanged);
    if !kept {
        backups::discard(state, &journal.operation)?;
    }
    journal::remove(state, steps)?;
    Ok(Recovery {
        operation: journal.operation.clone(),
        documents,
    })
}

/// Removes directories that an operation made, as far as nothing is in them.
pub(crate) fn remove_directories(
    directories: &[PathBuf],
    roots: &AllowedRoots,
    steps: &mut dyn Steps,
) -> Result<()> {
    for made in directories.iter().rev() {
        let (Some(parent), Some(name)) = (made.parent(), made.file_name()) else {
            continue;
        };
        let Ok(directory) = Directory::open_no_links(parent) else {
            continue;
        };
        if !roots.reaches(made) {
            continue;
        }
        match directory.remove_directory(name, steps) {
            Err(error) if error.is_not_found() || error.is_already_there() => {}
            other => {
                other?;
                directory.sync(steps)?;
            }
        }
    }
    Ok(())
}

struct Undo<'t> {
    state: &'t Path,
    operation: &'t str,
    number: usize,
    target: &'t journal::Entry,
}

impl Undo<'_> {
    fn run(&self, roots: &AllowedRoots, steps: &mut dyn Steps) -> Result<Outcome> {
        let real = &self.target.real_path;
        if !roots.confines(real) {
            return Err(Refusal::path(
                RefusalKind::RecoveryFailed,
                &self.target.path,
                format!(
                    "an interrupted adoption has to be undone at {}, which configuration does \
                     not allow: allow it again, or restore the document by hand from {} and \
                     remove {}",
                    real.display(),
                    backups::folder(self.state, self.operation).display(),
                    journal::path(self.state).display()
                ),
            )
            .into());
        }
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Ok(Outcome::Untouched);
        };
        let directory = match Directory::open_no_links(parent) {
            Err(error) if error.is_not_found() && self.target.before.is_none() => {
                return Ok(Outcome::Untouched);
            }
            // Somebody removed the directory, or put a link in its place: nothing of ours
            // is there.
            Err(error) if error.is_not_found() || error.is_not_a_directory() => {
                return Ok(Outcome::LeftChanged);
            }
            other => other?,
        };
        let temporary = OsStr::new(&self.target.temporary);
        let spare = read(&directory, temporary).unwrap_or(None);
        let live = match read(&directory, name) {
            // A link, a directory, a pipe: whatever it is, it is not ours.
            Err(FileError::NotRegular { .. } | FileError::TooLarge { .. }) => {
                return self.leave(&directory, spare.as_ref(), steps);
            }
            other => other?,
        };
        let live_sha256 = live.as_ref().map(|(bytes, _)| sha256(bytes));
        let swap = Swap {
            directory: &directory,
            name,
            temporary,
            path: &self.target.path,
        };
        if live_sha256.as_deref() == self.target.before_sha256() {
            self.drop_spare(&directory, spare.is_some(), steps)?;
            return Ok(Outcome::Untouched);
        }
        if live_sha256 != self.target.after {
            return self.leave(&directory, spare.as_ref(), steps);
        }
        self.put_back(&swap, live, spare, steps)
    }

    /// Gives the document back what our text took the place of.
    fn put_back(
        &self,
        swap: &Swap<'_>,
        live: Option<Found>,
        spare: Option<Found>,
        steps: &mut dyn Steps,
    ) -> Result<Outcome> {
        if spare
            .as_ref()
            .is_some_and(|(bytes, _)| !self.is_ours(bytes))
        {
            // Somebody's text lost its name to ours in the last moment before the end.
            swap.directory.rename(swap.temporary, swap.name, steps)?;
            swap.directory.sync(steps)?;
            return Ok(Outcome::LeftChanged);
        }
        let original =
            spare.filter(|(bytes, _)| Some(sha256(bytes).as_str()) == self.target.before_sha256());
        let live_sha256 = live.as_ref().map(|(bytes, _)| sha256(bytes));
        match (&original, live_sha256.as_deref()) {
            (Some((_, entry)), None) if self.target.had_attributes(entry) => {
                swap.directory
                    .rename_new(swap.temporary, swap.name, steps)?;
                swap.directory.sync(steps)?;
            }
            (Some((_, entry)), Some(ours)) if self.is_original(swap, entry, live.as_ref()) => {
                swap.trade(ours, steps)?;
            }
            (_, ours) => {
                let mode = live.as_ref().map(|(_, entry)| entry.mode);
                let bytes = original.map(|(bytes, _)| bytes);
                self.restore(swap, ours, mode, bytes, steps)?;
            }
        }
        Ok(Outcome::Restored)
    }

    /// Whether the spare file is the original with all that belongs to it, rather than a copy that
    /// an interrupted recovery did not finish, and nobody changed the document's mode since.
    fn is_original(&self, swap: &Swap<'_>, spare: &Entry, live: Option<&Found>) -> bool {
        let attributes = |name: &OsStr| swap.directory.extended_attributes(name).ok();
        self.target.had_attributes(spare)
            && live.is_some_and(|(_, entry)| self.target.had_attributes(entry))
            && attributes(swap.temporary) == attributes(swap.name)
    }

    /// Leaves somebody's text where it is, and takes only our own litter away.
    fn leave(
        &self,
        directory: &Directory,
        spare: Option<&Found>,
        steps: &mut dyn Steps,
    ) -> Result<Outcome> {
        let ours = spare.is_some_and(|(bytes, _)| self.is_ours(bytes));
        self.drop_spare(directory, ours, steps)?;
        Ok(Outcome::LeftChanged)
    }

    /// Writes the original again, in place of our text.
    ///
    /// The file keeps a mode that somebody gave it since: ours had the original's.
    fn restore(
        &self,
        swap: &Swap<'_>,
        live_sha256: Option<&str>,
        mode: Option<u32>,
        original: Option<Vec<u8>>,
        steps: &mut dyn Steps,
    ) -> Result<()> {
        let Some(before) = &self.target.before else {
            self.drop_spare(swap.directory, true, steps)?;
            return swap.run(live_sha256, None, steps);
        };
        let bytes = match original {
            Some(original) => original,
            None => self.saved_original(&before.sha256)?,
        };
        self.drop_spare(swap.directory, true, steps)?;
        let extended = match live_sha256 {
            Some(_) => swap.directory.extended_attributes(swap.name)?,
            None => Vec::new(),
        };
        let attributes = Attributes {
            mode: Some(mode.unwrap_or(before.mode)),
            owner: Some((before.owner, before.group)),
            extended,
            volatile: false,
        };
        swap.run(live_sha256, Some((&bytes, &attributes)), steps)
    }

    fn saved_original(&self, fingerprint: &str) -> Result<Vec<u8>, Refusal> {
        let (state, operation) = (self.state, self.operation);
        backups::load(state, operation, self.number, Side::Before, fingerprint).map_err(|refusal| {
            Refusal::path(
                RefusalKind::RecoveryFailed,
                &self.target.path,
                format!(
                    "an interrupted adoption cannot be undone ({refusal}): restore the \
                     document by hand and remove {}",
                    journal::path(state).display()
                ),
            )
        })
    }

    /// Whether a temporary file holds one of our texts, or the beginning of one.
    fn is_ours(&self, spare: &[u8]) -> bool {
        let known = sha256(spare);
        if Some(known.as_str()) == self.target.before_sha256()
            || Some(&known) == self.target.after.as_ref()
        {
            return true;
        }
        let begins = |side, fingerprint: Option<&str>| {
            fingerprint.is_some_and(|fingerprint| {
                backups::load(self.state, self.operation, self.number, side, fingerprint)
                    .is_ok_and(|text| text.starts_with(spare))
            })
        };
        begins(Side::After, self.target.after.as_deref())
            || begins(Side::Before, self.target.before_sha256())
    }

    /// Removes the temporary file, if there is one.
    fn drop_spare(
        &self,
        directory: &Directory,
        is_there: bool,
        steps: &mut dyn Steps,
    ) -> Result<()> {
        if !is_there {
            return Ok(());
        }
        match directory.remove(OsStr::new(&self.target.temporary), steps) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => {
                removed?;
                Ok(directory.sync(steps)?)
            }
        }
    }
}

/// A file that is there.
type Found = (Vec<u8>, Entry);

fn read(directory: &Directory, name: &OsStr) -> skillopt_files::Result<Option<Found>> {
    match directory.read(name, 16 * DOCUMENT_LIMIT) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
