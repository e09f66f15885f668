//! The records of all adoptions and reverts: `<state>/adoptions/<id>.json`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use skillopt_files::{Directory, Entry, Steps};

use super::recovery::Recovery;
use crate::decision::Status;
use crate::error::Result;
use crate::proposal::DocumentKind;
use crate::refusal::{Refusal, RefusalKind};
use crate::sealed::Seal;
use crate::text::digest::sha256;

const FORMAT: &str = "skillopt-sleep.adoption/1";

/// What an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// It wrote accepted texts.
    Adopt,
    /// It undid an earlier operation.
    Revert,
}

/// Who let it happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// A person.
    Person,
    /// The policy for adopting without a person.
    Automatic,
}

/// A file as it was at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Fingerprint of its bytes.
    pub sha256: String,
    /// Length in bytes.
    pub length: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owner's number.
    pub owner: u32,
    /// Group's number.
    pub group: u32,
}

impl FileState {
    pub(crate) fn of(bytes: &[u8], entry: &Entry) -> FileState {
        FileState {
            sha256: sha256(bytes),
            length: bytes.len() as u64,
            mode: entry.mode,
            owner: entry.owner,
            group: entry.group,
        }
    }
}

/// One document of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptedDocument {
    /// The proposal it comes from.
    pub proposal: String,
    /// The document's name.
    pub name: String,
    /// What sort it is.
    pub kind: DocumentKind,
    /// The path as configured.
    pub path: PathBuf,
    /// The path that was written.
    pub real_path: PathBuf,
    /// The file before; `None` if there was none.
    pub before: Option<FileState>,
    /// Fingerprint of the file after; `None` if it was removed.
    pub after: Option<String>,
    /// Directories that were made for it, the outermost first.
    pub made_directories: Vec<PathBuf>,
    /// The numbers of the proposal's edits that it got.
    pub edits: BTreeSet<usize>,
    /// Whether a person changed the text after the models.
    pub edited_by_person: bool,
}

/// An operation on live documents, with what is needed to undo it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adoption {
    /// The id: `a7`.
    pub id: String,
    /// What it did.
    pub kind: OperationKind,
    /// When.
    pub at: Timestamp,
    /// Who let it happen.
    pub by: Approver,
    /// For a revert: the operation that it undid.
    pub reverts: Option<String>,
    /// Whether a revert went over later changes of the documents.
    pub forced: bool,
    /// The documents.
    pub documents: Vec<AdoptedDocument>,
    /// What an earlier, interrupted operation had left and was put in order first.
    #[serde(skip)]
    pub recovered: Option<Recovery>,
}

/// All operations, the oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    /// The operations.
    pub operations: Vec<Adoption>,
    /// The records that cannot be read, and why.
    pub unreadable: Vec<Refusal>,
}

impl Ledger {
    /// Reads the records of a state directory.
    ///
    /// # Errors
    ///
    /// The directory cannot be read. Single bad records are listed instead.
    pub fn open(state: &Path) -> Result<Ledger> {
        Ledger::load(state, &Seal::open(state)?)
    }

    pub(crate) fn load(state: &Path, seal: &Seal) -> Result<Ledger> {
        let mut ledger = Ledger::default();
        let directory = match Directory::open(&folder(state)) {
            Err(error) if error.is_not_found() => return Ok(ledger),
            other => other?,
        };
        // A record whose journal is still there is not committed: it will be undone.
        let pending = super::journal::Journal::read(state, seal)
            .ok()
            .flatten()
            .map(|journal| journal.operation);
        for name in directory.names()? {
            let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".json")) else {
                continue;
            };
            if number(id).is_none() || pending.as_deref() == Some(id) {
                continue;
            }
            let path = path(state, id);
            match seal.read::<Adoption>(&path, FORMAT, RefusalKind::ReceiptInvalid) {
                Ok(Some(adoption)) if adoption.id == id => ledger.operations.push(adoption),
                Ok(Some(_)) => ledger.unreadable.push(Refusal::path(
                    RefusalKind::ReceiptInvalid,
                    &path,
                    "the record belongs to another adoption: it is not used",
                )),
                Ok(None) => {}
                Err(crate::Error::Refused(refusal)) => ledger.unreadable.push(refusal),
                Err(error) => return Err(error),
            }
        }
        ledger
            .operations
            .sort_by_key(|operation| number(&operation.id));
        Ok(ledger)
    }

    /// The operation of an id.
    pub fn get(&self, id: &str) -> Option<&Adoption> {
        self.operations.iter().find(|operation| operation.id == id)
    }

    /// The operation that undid another one.
    pub fn reverted_by(&self, id: &str) -> Option<&Adoption> {
        self.operations
            .iter()
            .rev()
            .find(|operation| operation.reverts.as_deref() == Some(id))
    }

    /// Whether what an operation did holds: it was not undone, or that was undone again.
    pub fn is_in_force(&self, id: &str) -> bool {
        match self.reverted_by(id) {
            None => true,
            Some(revert) => !self.is_in_force(&revert.id),
        }
    }

    /// The latest adoption that is in force.
    pub fn latest(&self) -> Option<&Adoption> {
        self.operations.iter().rev().find(|operation| {
            operation.kind == OperationKind::Adopt && self.is_in_force(&operation.id)
        })
    }

    /// Where the records leave a proposal; `None` if it never was adopted.
    pub(crate) fn status_of(&self, proposal: &str) -> Option<Status> {
        let adoption = self.operations.iter().rev().find(|operation| {
            operation.kind == OperationKind::Adopt
                && operation
                    .documents
                    .iter()
                    .any(|document| document.proposal == proposal)
        })?;
        Some(match self.reverted_by(&adoption.id) {
            Some(revert) if !self.is_in_force(&adoption.id) => Status::Reverted {
                adoption: adoption.id.clone(),
                by: revert.id.clone(),
                at: revert.at,
            },
            _ => Status::Adopted {
                adoption: adoption.id.clone(),
                at: adoption.at,
            },
        })
    }

    /// The first id that neither a record nor saved texts have.
    pub(crate) fn next_id(&self, state: &Path) -> Result<String> {
        let mut highest = 0;
        for taken in [folder(state), state.join("backups")] {
            let names = match Directory::open(&taken) {
                Err(error) if error.is_not_found() => continue,
                other => other?.names()?,
            };
            let numbers = names.iter().filter_map(|name| {
                let name = name.to_str()?;
                number(name.strip_suffix(".json").unwrap_or(name))
            });
            highest = numbers.fold(highest, u64::max);
        }
        Ok(format!("a{}", highest + 1))
    }
}

impl Adoption {
    pub(crate) fn write(&self, state: &Path, seal: &Seal, steps: &mut dyn Steps) -> Result<()> {
        seal.write(&path(state, &self.id), FORMAT, self, steps)
    }
}

/// Removes the record of an operation that did not come to its end.
pub(crate) fn discard(state: &Path, id: &str, steps: &mut dyn Steps) -> Result<()> {
    let directory = match Directory::open(&folder(state)) {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    };
    let name = format!("{id}.json");
    if directory.entry(OsStr::new(&name))?.is_some() {
        directory.remove(OsStr::new(&name), steps)?;
    }
    Ok(())
}

fn folder(state: &Path) -> PathBuf {
    state.join("adoptions")
}

fn path(state: &Path, id: &str) -> PathBuf {
    folder(state).join(format!("{id}.json"))
}

fn number(id: &str) -> Option<u64> {
    id.strip_prefix('a')
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|digits| digits.parse().ok())
}
