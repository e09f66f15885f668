//! The story of a document: every proposal, decision, adoption and revert.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use crate::adoption::ledger::{Approver, Ledger, OperationKind};
use crate::area::StagingArea;
use crate::decision::Closing;
use crate::error::Result;

/// Something that happened to a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum HistoryEvent {
    /// A night proposed a change.
    Staged {
        /// The proposal.
        proposal: String,
        /// The night.
        night: String,
        /// Whether real tasks confirmed it.
        verified: bool,
    },
    /// It was approved.
    Accepted {
        /// The proposal.
        proposal: String,
        /// The numbers of the edits.
        edits: Vec<usize>,
        /// Whether a person changed the text.
        edited_by_person: bool,
    },
    /// Edits of it were turned down.
    Rejected {
        /// The proposal.
        proposal: String,
        /// The numbers of the edits.
        edits: Vec<usize>,
        /// Why; may be empty.
        reason: String,
    },
    /// A later proposal took its place.
    Superseded {
        /// The proposal.
        proposal: String,
        /// The later one.
        by: String,
    },
    /// Nobody decided in time.
    Expired {
        /// The proposal.
        proposal: String,
    },
    /// The live document got it.
    Adopted {
        /// The operation.
        adoption: String,
        /// The proposal.
        proposal: String,
        /// Who let it happen.
        by: Approver,
    },
    /// An operation was undone.
    Reverted {
        /// The operation that did it.
        revert: String,
        /// The operation that was undone.
        adoption: String,
    },
}

/// One line of a document's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistoryEntry {
    /// When.
    pub at: Timestamp,
    /// The document.
    pub path: PathBuf,
    /// What.
    pub event: HistoryEvent,
}

impl StagingArea {
    /// What happened to a document, or to all of them, the oldest first. Decisions are
    /// listed as they stand; ones that were taken back are not.
    ///
    /// # Errors
    ///
    /// The area cannot be read.
    pub fn history(&self, document: Option<&Path>) -> Result<Vec<HistoryEntry>> {
        let mut entries = Vec::new();
        for staged in self.list()?.staged {
            let proposal = &staged.proposal;
            let id = proposal.id.clone();
            let mut push = |at, event| {
                entries.push(HistoryEntry {
                    at,
                    path: proposal.document.path.clone(),
                    event,
                });
            };
            push(
                proposal.created,
                HistoryEvent::Staged {
                    proposal: id.clone(),
                    night: proposal.night.clone(),
                    verified: proposal.verified,
                },
            );
            if let Some(accepted) = &staged.decision.accepted {
                push(
                    accepted.at,
                    HistoryEvent::Accepted {
                        proposal: id.clone(),
                        edits: accepted.edits.iter().copied().collect(),
                        edited_by_person: accepted.edited_by_person,
                    },
                );
            }
            for rejected in &staged.decision.rejected {
                push(
                    rejected.at,
                    HistoryEvent::Rejected {
                        proposal: id.clone(),
                        edits: rejected.edits.iter().copied().collect(),
                        reason: rejected.reason.clone(),
                    },
                );
            }
            match &staged.decision.closed {
                Some(Closing::Superseded { by, at }) => push(
                    *at,
                    HistoryEvent::Superseded {
                        proposal: id,
                        by: by.clone(),
                    },
                ),
                Some(Closing::Expired { at }) => push(*at, HistoryEvent::Expired { proposal: id }),
                None => {}
            }
        }
        for operation in Ledger::load(self.state(), &self.seal()?)?.operations {
            for adopted in &operation.documents {
                let event = match (operation.kind, &operation.reverts) {
                    (OperationKind::Revert, Some(undone)) => HistoryEvent::Reverted {
                        revert: operation.id.clone(),
                        adoption: undone.clone(),
                    },
                    _ => HistoryEvent::Adopted {
                        adoption: operation.id.clone(),
                        proposal: adopted.proposal.clone(),
                        by: operation.by,
                    },
                };
                entries.push(HistoryEntry {
                    at: operation.at,
                    path: adopted.path.clone(),
                    event,
                });
            }
        }
        if let Some(document) = document {
            entries.retain(|entry| entry.path == document);
        }
        // Stable: what happened at one moment keeps the order of the story.
        entries.sort_by_key(|entry| entry.at);
        Ok(entries)
    }
}
