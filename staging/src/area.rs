//! Proposals on disk: `<root>/<night>/<proposal>/{proposal.json, base.md, proposed.md}`.
//!
//! A proposal's folder appears whole or not at all, and nothing in it changes afterwards;
//! only `decision.json` comes and goes beside it. Reading trusts nothing: sizes are
//! bounded, links are not followed, texts must have the fingerprints that were recorded,
//! and a folder that cannot be read is named while the others are still listed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use skillopt_files::{Directory, Kind, NoSteps, create_private_dir};

use crate::adoption::ledger::Ledger;
use crate::decision::{Closing, Decision, Status};
use crate::error::Result;
use crate::proposal::{DOCUMENT_LIMIT, FORMAT, Proposal};
use crate::refusal::{Refusal, RefusalKind};
use crate::sealed::Seal;
use crate::text::digest::sha256;

/// Largest record of a proposal, in bytes.
const RECORD_LIMIT: u64 = 16 * 1024 * 1024;

pub(crate) const RECORD: &str = "proposal.json";
pub(crate) const BASE: &str = "base.md";
pub(crate) const PROPOSED: &str = "proposed.md";
const DECISION: &str = "decision.json";
const DECISION_FORMAT: &str = "skillopt-sleep.decision/1";

/// A proposal, what was decided about it, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Staged {
    /// The proposal. In a [`Listing`] without its texts.
    pub proposal: Proposal,
    /// What was decided so far.
    pub decision: Decision,
    /// Where it stands.
    pub status: Status,
    /// The proposal's folder.
    pub folder: PathBuf,
    /// Fingerprint of the proposal's record as it is on disk.
    pub(crate) record_sha256: String,
}

/// All proposals, the oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    /// The proposals, without their texts.
    pub staged: Vec<Staged>,
    /// The folders that cannot be read, and why.
    pub unreadable: Vec<Refusal>,
}

/// The directory that holds the proposals.
#[derive(Debug, Clone)]
pub struct StagingArea {
    root: PathBuf,
    state: PathBuf,
}

impl StagingArea {
    /// Opens, or makes, the area at `<state>/staging`.
    ///
    /// # Errors
    ///
    /// The directory cannot be made.
    pub fn open(root: &Path) -> Result<StagingArea> {
        create_private_dir(root)?;
        Ok(StagingArea {
            root: root.to_path_buf(),
            state: root.parent().unwrap_or(root).to_path_buf(),
        })
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The state directory around it.
    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    pub(crate) fn seal(&self) -> Result<Seal> {
        Seal::open(&self.state)
    }

    /// All proposals, the oldest first, and the folders that cannot be read.
    ///
    /// # Errors
    ///
    /// The area itself or the records of adoptions cannot be read.
    pub fn list(&self) -> Result<Listing> {
        let mut listing = Listing::default();
        let seal = self.seal()?;
        let ledger = Ledger::load(&self.state, &seal)?;
        let root = Directory::open(&self.root)?;
        for night in folders_of(&self.root)? {
            let opened = root
                .child(OsStr::new(&night))
                .and_then(|directory| folders_of(directory.path()).map(|names| (directory, names)));
            let (directory, names) = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    listing
                        .unreadable
                        .push(unreadable(&self.root.join(&night), error));
                    continue;
                }
            };
            for name in names {
                match self.read(&directory, &night, &name, &seal, &ledger, false) {
                    Ok(staged) => listing.staged.push(staged),
                    Err(crate::Error::Refused(refusal)) => listing.unreadable.push(refusal),
                    Err(error) => listing
                        .unreadable
                        .push(unreadable(&directory.path().join(&name), error)),
                }
            }
        }
        listing
            .staged
            .sort_by_key(|staged| (staged.proposal.created, number(&staged.proposal.id)));
        Ok(listing)
    }

    /// One proposal with its texts, by its exact id.
    ///
    /// # Errors
    ///
    /// There is none, or one of its files is missing, changed or impossible.
    pub fn load(&self, id: &str) -> Result<Staged> {
        let unknown = || {
            Refusal::new(
                RefusalKind::ProposalUnknown,
                id,
                "there is no such proposal: `review --list` shows them",
            )
        };
        let night = id.rsplit_once('-').map(|(night, _)| night);
        let night = night
            .filter(|night| is_folder_name(night))
            .ok_or_else(unknown)?;
        if !is_folder_name(id) {
            return Err(unknown().into());
        }
        let directory = Directory::open(&self.root)?.child(OsStr::new(night));
        let directory = match directory {
            Err(error) if error.is_not_found() => return Err(unknown().into()),
            other => other?,
        };
        if directory.entry(OsStr::new(id))?.is_none() {
            return Err(unknown().into());
        }
        let seal = self.seal()?;
        let ledger = Ledger::load(&self.state, &seal)?;
        self.read(&directory, night, id, &seal, &ledger, true)
    }

    /// One proposal with its texts, by what a person types: its id, the beginning of an
    /// id, the document's name or path. Where several match, the only open one is meant.
    ///
    /// # Errors
    ///
    /// None matches, or several do.
    pub fn find(&self, query: &str) -> Result<Staged> {
        let listing = self.list()?;
        let all = || listing.staged.iter();
        let exact: Vec<&Staged> = all().filter(|s| s.proposal.id == query).collect();
        let by_document: Vec<&Staged> = all()
            .filter(|s| {
                s.proposal.document.name == query || s.proposal.document.path == Path::new(query)
            })
            .collect();
        let by_prefix: Vec<&Staged> = all()
            .filter(|s| !query.is_empty() && s.proposal.id.starts_with(query))
            .collect();
        let matching = [exact, by_document, by_prefix]
            .into_iter()
            .find(|matching| !matching.is_empty())
            .unwrap_or_default();
        let open: Vec<&Staged> = matching
            .iter()
            .copied()
            .filter(|s| s.status.is_open())
            .collect();
        let chosen = match (matching.as_slice(), open.as_slice()) {
            ([one], _) | (_, [one]) => one,
            ([], _) => {
                return self
                    .load(query)
                    .map_err(|error| among(error, &listing.unreadable));
            }
            _ => {
                let ids: Vec<&str> = matching.iter().map(|s| s.proposal.id.as_str()).collect();
                return Err(Refusal::new(
                    RefusalKind::ProposalAmbiguous,
                    query,
                    format!("several proposals match: name one of {}", ids.join(", ")),
                )
                .into());
            }
        };
        self.load(&chosen.proposal.id)
    }

    pub(crate) fn write_decision(&self, staged: &Staged, decision: &Decision) -> Result<()> {
        let path = staged.folder.join(DECISION);
        self.seal()?
            .write(&path, DECISION_FORMAT, decision, &mut NoSteps)
    }

    fn read(
        &self,
        night_directory: &Directory,
        night: &str,
        id: &str,
        seal: &Seal,
        ledger: &Ledger,
        with_texts: bool,
    ) -> Result<Staged> {
        let folder = self.root.join(night).join(id);
        let directory = night_directory
            .child(OsStr::new(id))
            .map_err(|error| unreadable(&folder, error))?;
        let (bytes, _) = directory
            .read(OsStr::new(RECORD), RECORD_LIMIT)
            .map_err(|error| unreadable(&folder.join(RECORD), error))?;
        let mut proposal = parse(&bytes, &folder.join(RECORD))?;
        if proposal.id != id || proposal.night != night {
            return Err(Refusal::path(
                RefusalKind::ProposalInvalid,
                &folder,
                "the record belongs to another proposal: remove the folder",
            )
            .into());
        }
        if with_texts {
            let base = read_text(
                &directory,
                BASE,
                &proposal.base.sha256,
                proposal.base.existed,
            )?;
            proposal.base.text = base;
            proposal.proposed.text =
                read_text(&directory, PROPOSED, &proposal.proposed.sha256, true)?;
        }
        let decision = seal
            .read::<Decision>(
                &folder.join(DECISION),
                DECISION_FORMAT,
                RefusalKind::DecisionInvalid,
            )?
            .unwrap_or_default();
        let status = status(&proposal, &decision, ledger);
        Ok(Staged {
            proposal,
            decision,
            status,
            folder,
            record_sha256: sha256(&bytes),
        })
    }
}

/// Where a proposal stands: the records of adoptions decide first, then the decisions.
fn status(proposal: &Proposal, decision: &Decision, ledger: &Ledger) -> Status {
    if let Some(status) = ledger.status_of(&proposal.id) {
        let accepted_again = match (&status, &decision.accepted) {
            (Status::Reverted { at, .. }, Some(accepted)) => accepted.at > *at,
            _ => false,
        };
        if !accepted_again {
            return status;
        }
    }
    match &decision.closed {
        Some(Closing::Superseded { by, .. }) => return Status::Superseded { by: by.clone() },
        Some(Closing::Expired { at }) => return Status::Expired { at: *at },
        None => {}
    }
    if let Some(accepted) = &decision.accepted {
        return Status::Accepted {
            edits: accepted.edits.clone(),
            text_sha256: accepted.text_sha256.clone(),
            at: accepted.at,
        };
    }
    let turned_down: BTreeSet<usize> = decision
        .rejected
        .iter()
        .flat_map(|rejected| rejected.edits.iter().copied())
        .collect();
    let edits = proposal.edit_numbers();
    let all = !edits.is_empty() && edits.is_subset(&turned_down);
    match decision.rejected.last() {
        Some(last) if decision.rejected_whole || all => Status::Rejected {
            reason: last.reason.clone(),
            at: last.at,
        },
        _ => Status::Pending,
    }
}

/// That a proposal is unknown may be due to those that cannot be read.
fn among(error: crate::Error, unreadable: &[Refusal]) -> crate::Error {
    match (error, unreadable) {
        (crate::Error::Refused(refusal), [first, rest @ ..])
            if refusal.kind == RefusalKind::ProposalUnknown =>
        {
            let more = match rest.len() {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            let reason = format!("{}; one cannot be read: {first}{more}", refusal.reason);
            Refusal::new(refusal.kind, refusal.subject, reason).into()
        }
        (error, _) => error,
    }
}

fn parse(bytes: &[u8], path: &Path) -> Result<Proposal, Refusal> {
    #[derive(serde::Deserialize)]
    struct Version {
        format: u32,
    }
    let invalid = |error: serde_json::Error| {
        Refusal::path(
            RefusalKind::ProposalInvalid,
            path,
            format!("the record cannot be understood ({error}): remove the proposal's folder"),
        )
    };
    let version: Version = serde_json::from_slice(bytes).map_err(invalid)?;
    if version.format != FORMAT {
        return Err(Refusal::path(
            RefusalKind::ProposalFormat,
            path,
            format!(
                "the record has format {} and this version reads {FORMAT}: use the version of \
                 the program that wrote it",
                version.format
            ),
        ));
    }
    serde_json::from_slice(bytes).map_err(invalid)
}

fn read_text(
    directory: &Directory,
    name: &str,
    fingerprint: &str,
    existed: bool,
) -> Result<String, Refusal> {
    let path = directory.path().join(name);
    if !existed {
        return Ok(String::new());
    }
    let (bytes, _) = directory
        .read(OsStr::new(name), DOCUMENT_LIMIT)
        .map_err(|error| unreadable(&path, error))?;
    let changed = || {
        Refusal::path(
            RefusalKind::ProposalHashMismatch,
            &path,
            "the text is not the one that was staged: restore it, or reject the proposal",
        )
    };
    if sha256(&bytes) != fingerprint {
        return Err(changed());
    }
    String::from_utf8(bytes).map_err(|_| changed())
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> Refusal {
    Refusal::path(
        RefusalKind::ProposalUnreadable,
        path,
        format!("{error}: restore it, or remove the proposal's folder"),
    )
}

/// The number at the end of a proposal's id.
pub(crate) fn number(id: &str) -> Option<u64> {
    id.rsplit_once('-')
        .and_then(|(_, number)| number.parse().ok())
}

/// Names that are folders of ours: no separators, no hidden files, short.
pub(crate) fn is_folder_name(name: &str) -> bool {
    let first = name
        .chars()
        .next()
        .is_some_and(|c| c.is_ascii_alphanumeric());
    first
        && name.len() <= 80
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// The folders in a directory that may be ours, in order; links and the rest are passed
/// over.
pub(crate) fn folders_of(path: &Path) -> skillopt_files::Result<Vec<String>> {
    let directory = Directory::open(path)?;
    let mut names: Vec<String> = directory
        .names()?
        .into_iter()
        .filter_map(|name| name.into_string().ok())
        .filter(|name| is_folder_name(name))
        .collect();
    names.retain(|name| {
        directory
            .entry(OsStr::new(name))
            .ok()
            .flatten()
            .is_some_and(|entry| entry.kind == Kind::Directory)
    });
    names.sort();
    Ok(names)
}
