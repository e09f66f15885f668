//! Writing several documents so that all of them change or none does.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use skillopt_files::{Attributes, Directory, Entry, NoSteps, Steps};

use super::backups::{self, Side};
use super::journal::{self, Journal};
use super::ledger::{Adoption, FileState};
use super::recovery;
use crate::error::{Error, Result};
use crate::proposal::DOCUMENT_LIMIT;
use crate::refusal::{Refusal, RefusalKind};
use crate::roots::AllowedRoots;
use crate::sealed::Seal;
use crate::target::Target;
use crate::text::digest::sha256;

/// One file's change, checked and ready.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) target: Target,
    /// The file as it was read; `None` if there is none.
    pub(crate) before: Option<Before>,
    /// The bytes it shall have; `None` if it shall be gone.
    pub(crate) after: Option<Vec<u8>>,
    /// Permission bits for a file that is not there yet; `None` leaves it to the umask.
    pub(crate) mode: Option<u32>,
}

/// A live file that was read.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entry: Entry,
    pub(crate) extended: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Change {
    fn before_sha256(&self) -> Option<String> {
        self.before.as_ref().map(|before| sha256(&before.bytes))
    }

    fn after_sha256(&self) -> Option<String> {
        self.after.as_ref().map(sha256)
    }

    /// The new file takes over everything that the old one had besides its text.
    fn attributes(&self) -> Attributes {
        match &self.before {
            Some(before) => Attributes {
                mode: Some(before.entry.mode),
                owner: Some((before.entry.owner, before.entry.group)),
                extended: before.extended.clone(),
                volatile: false,
            },
            None => Attributes {
                mode: self.mode,
                ..Attributes::default()
            },
        }
    }
}

/// Carries out the changes of an operation and records it, or puts everything back.
pub(crate) fn run(
    state: &Path,
    seal: &Seal,
    roots: &AllowedRoots,
    operation: &mut Adoption,
    changes: Vec<Change>,
    steps: &mut dyn Steps,
) -> Result<()> {
    let mut journal = Journal {
        operation: operation.id.clone(),
        targets: changes
            .iter()
            .enumerate()
            .map(|(number, change)| journal::Entry {
                path: change.target.path.clone(),
                real_path: change.target.real_path.clone(),
                before: change
                    .before
                    .as_ref()
                    .map(|before| FileState::of(&before.bytes, &before.entry)),
                after: change.after_sha256(),
                temporary: journal::temporary(&operation.id, number),
                directories: change.target.missing_directories.clone(),
            })
            .collect(),
    };
    let mut made = BTreeSet::new();
    let done = carry_out(state, seal, operation, &journal, &changes, &mut made, steps);
    let Err(primary) = done else {
        tracing::info!(operation = %operation.id, documents = changes.len(), "done");
        return Ok(());
    };
    tracing::warn!(operation = %operation.id, error = %primary, "failed, putting everything back");
    for target in &mut journal.targets {
        target
            .directories
            .retain(|directory| made.contains(directory));
    }
    match recovery::undo(state, &journal, roots, steps) {
        Ok(undone) => Err(match primary {
            Error::File(source) => Error::PutBack {
                source,
                left: undone.left_changed(),
            },
            primary => primary,
        }),
        Err(rollback) => Err(Error::RollbackIncomplete {
            primary: Box::new(primary),
            rollback: Box::new(rollback),
            journal: journal::path(state),
        }),
    }
}

fn carry_out(
    state: &Path,
    seal: &Seal,
    operation: &mut Adoption,
    journal: &Journal,
    changes: &[Change],
    made: &mut BTreeSet<PathBuf>,
    steps: &mut dyn Steps,
) -> Result<()> {
    journal.write(state, seal, steps)?;
    for (number, change) in changes.iter().enumerate() {
        if let Some(before) = &change.before {
            let bytes = &before.bytes;
            backups::save(state, &operation.id, number, Side::Before, bytes, steps)?;
        }
        if let Some(after) = &change.after {
            backups::save(state, &operation.id, number, Side::After, after, steps)?;
        }
    }
    for (number, change) in changes.iter().enumerate() {
        if journal.targets[number].is_unchanged() {
            continue;
        }
        let directory = make_directories(&change.target, made, steps)?;
        let attributes = change.attributes();
        let swap = Swap {
            directory: &directory,
            name: change.target.name(),
            temporary: OsStr::new(&journal.targets[number].temporary),
            path: &change.target.path,
        };
        swap.run(
            change.before_sha256().as_deref(),
            change.after.as_deref().map(|bytes| (bytes, &attributes)),
            steps,
        )?;
        operation.documents[number].made_directories = change
            .target
            .missing_directories
            .iter()
            .filter(|directory| made.contains(*directory))
            .cloned()
            .collect();
    }
    for change in changes {
        verify(change)?;
    }
    operation.write(state, seal, steps)?;
    journal::remove(state, steps)
}

/// Opens the document's directory, making what is missing of it.
fn make_directories(
    target: &Target,
    made: &mut BTreeSet<PathBuf>,
    steps: &mut dyn Steps,
) -> Result<Directory> {
    let mut directory = target.open_nearest()?;
    for missing in &target.missing_directories {
        let name = missing.file_name().unwrap_or_default();
        if !made.contains(missing) {
            directory.make_directory(name, None, steps)?;
            made.insert(missing.clone());
            directory.sync(steps)?;
        }
        directory = directory.child(name)?;
    }
    Ok(directory)
}

/// The document holds what was written.
fn verify(change: &Change) -> Result<(), Refusal> {
    let changed = |reason: String| {
        Refusal::path(
            RefusalKind::ChangedAfterPublication,
            &change.target.path,
            format!("{reason}: somebody else changed it in this moment; try again"),
        )
    };
    let parent = change.target.real_path.parent().unwrap_or(Path::new("/"));
    let directory = match Directory::open_no_links(parent) {
        Err(error) if error.is_not_found() && change.after.is_none() => return Ok(()),
        other => other.map_err(|error| changed(error.to_string()))?,
    };
    let found =
        found(&directory, change.target.name()).map_err(|error| changed(error.to_string()))?;
    if found == change.after_sha256() {
        Ok(())
    } else {
        Err(changed(
            "the document is not what was just written".to_owned(),
        ))
    }
}

/// Fingerprint of a file; `None` if there is none.
pub(crate) fn found(directory: &Directory, name: &OsStr) -> skillopt_files::Result<Option<String>> {
    match directory.read(name, 16 * DOCUMENT_LIMIT) {
        Ok((bytes, _)) => Ok(Some(sha256(bytes))),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The replacement of one file in one instant.
pub(crate) struct Swap<'t> {
    /// Its directory, held open, so that no link can redirect the write.
    pub(crate) directory: &'t Directory,
    pub(crate) name: &'t OsStr,
    /// The name for the new file until then, and for the old one afterwards.
    pub(crate) temporary: &'t OsStr,
    /// The document, for messages.
    pub(crate) path: &'t Path,
}

impl Swap<'_> {
    /// Puts `new` in the place of a file with the fingerprint `expected`. `None` means no
    /// file, on either side.
    ///
    /// The old file is looked at once more *after* it lost its name: if somebody saved
    /// another text in the very last moment, that text gets its name back.
    pub(crate) fn run(
        &self,
        expected: Option<&str>,
        new: Option<(&[u8], &Attributes)>,
        steps: &mut dyn Steps,
    ) -> Result<()> {
        if let Some((bytes, attributes)) = new {
            self.directory
                .create(self.temporary, bytes, attributes, steps)?;
            if let Err(error) = self.check_place() {
                // By its path the temporary file could not be found again.
                let _ = self.directory.remove(self.temporary, &mut NoSteps);
                return Err(error);
            }
        } else {
            self.check_place()?;
        }
        match (expected, new) {
            (None, None) => {}
            (None, Some(_)) => match self.directory.rename_new(self.temporary, self.name, steps) {
                Err(error) if error.is_already_there() => return Err(self.changed().into()),
                other => other?,
            },
            (Some(expected), None) => {
                self.directory
                    .rename_new(self.name, self.temporary, steps)?;
                self.confirm(expected, |swap| {
                    swap.directory
                        .rename_new(swap.temporary, swap.name, &mut NoSteps)
                })?;
                self.directory.remove(self.temporary, steps)?;
            }
            (Some(expected), Some(_)) => return self.trade(expected, steps),
        }
        Ok(self.directory.sync(steps)?)
    }

    /// Puts the temporary file in the place of a file with the fingerprint `expected`.
    pub(crate) fn trade(&self, expected: &str, steps: &mut dyn Steps) -> Result<()> {
        if self.directory.exchange(self.temporary, self.name, steps)? {
            self.confirm(expected, |swap| {
                swap.directory
                    .exchange(swap.temporary, swap.name, &mut NoSteps)
                    .map(drop)
            })?;
            self.directory.remove(self.temporary, steps)?;
        } else {
            // No exchange on this file system: look, then replace at once.
            if found(self.directory, self.name)?.as_deref() != Some(expected) {
                return Err(self.changed().into());
            }
            self.directory.rename(self.temporary, self.name, steps)?;
        }
        Ok(self.directory.sync(steps)?)
    }

    /// The path still leads to the directory that is held open.
    fn check_place(&self) -> Result<()> {
        let now = Directory::open_no_links(self.directory.path())?;
        if now.identity()? == self.directory.identity()? {
            return Ok(());
        }
        Err(Refusal::path(
            RefusalKind::LiveMoved,
            self.path,
            "its directory was replaced in this moment: try again",
        )
        .into())
    }

    /// The file that lost its name is the one that was expected; if not, it gets it back.
    fn confirm(
        &self,
        expected: &str,
        put_back: impl FnOnce(&Self) -> skillopt_files::Result<()>,
    ) -> Result<()> {
        if found(self.directory, self.temporary)
            .ok()
            .flatten()
            .as_deref()
            == Some(expected)
        {
            return Ok(());
        }
        put_back(self)?;
        Err(self.changed().into())
    }

    fn changed(&self) -> Refusal {
        Refusal::path(
            RefusalKind::ChangedInTransaction,
            self.path,
            "somebody saved the document in this very moment, and their text was kept: review \
             it again",
        )
    }
}

/// Reads a live file with all that its successor takes over.
pub(crate) fn read_before(target: &Target) -> Result<Option<Before>, Refusal> {
    if !target.missing_directories.is_empty() {
        return Ok(None);
    }
    let directory = target.open_nearest()?;
    let name: OsString = target.name().to_owned();
    let Some((bytes, entry)) = crate::target::read_live(&directory, &name, &target.path)? else {
        return Ok(None);
    };
    let extended = directory
        .extended_attributes(&name)
        .map_err(|error| Refusal::path(RefusalKind::LiveUnreadable, &target.path, error))?;
    Ok(Some(Before {
        bytes,
        entry,
        extended,
    }))
}
