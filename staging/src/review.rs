//! Decisions: accept, reject with a reason, supersede, expire.
//!
//! Every decision is on the disk when the call returns. Two reviewers at once take turns,
//! so neither overwrites what the other decided.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use skillopt_files::Lock;

use crate::area::{Staged, StagingArea};
use crate::decision::{Acceptance, Accepted, Closing, Decision, EditSelection, Rejected, Status};
use crate::error::Result;
use crate::proposal::{DOCUMENT_LIMIT, Document, DocumentKind, StagedEdit};
use crate::refusal::{Refusal, RefusalKind};
use crate::text::digest::sha256;
use crate::text::form::normal;

/// How long a decision waits for another one that is just being written.
const PATIENCE: Duration = Duration::from_secs(5);

/// Edits that a person turned down, and why: what later nights are told.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rejection {
    /// The proposal.
    pub proposal: String,
    /// The document.
    pub document: Document,
    /// The edits.
    pub edits: Vec<StagedEdit>,
    /// Why; may be empty.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

impl StagingArea {
    /// Approves a text for a proposal. It replaces an earlier approval; edits that the text
    /// has are no longer rejected.
    ///
    /// # Errors
    ///
    /// The text is not the one that was shown, an edit does not exist, or the proposal is
    /// adopted or superseded.
    pub fn accept(&self, id: &str, acceptance: Acceptance) -> Result<Staged> {
        let text = normal(&acceptance.text);
        if sha256(&acceptance.text) != acceptance.shown_sha256 {
            return Err(Refusal::new(
                RefusalKind::ApprovalMismatch,
                id,
                "the text to accept is not the one that was shown: review it again",
            )
            .into());
        }
        if text.len() as u64 > DOCUMENT_LIMIT {
            return Err(Refusal::new(
                RefusalKind::ProposalTooLarge,
                id,
                format!("a document may have {DOCUMENT_LIMIT} bytes at most"),
            )
            .into());
        }
        self.decide(id, |staged, decision| {
            if let Some(Closing::Superseded { by, .. }) = &decision.closed {
                return Err(Refusal::new(
                    RefusalKind::ProposalClosed,
                    id,
                    format!("{by} supersedes it: decide on that one"),
                ));
            }
            if text.trim().is_empty() && staged.proposal.document.kind == DocumentKind::Skill {
                return Err(Refusal::new(
                    RefusalKind::ProposalEmpty,
                    id,
                    "the text to accept is empty: reject the proposal instead",
                ));
            }
            let edits = select(staged, &acceptance.edits)?;
            decision.forgive(&edits);
            decision.rejected_whole = false;
            decision.closed = None;
            decision.accepted = Some(Accepted {
                edits,
                text_sha256: sha256(&text),
                text: text.clone(),
                base_sha256: acceptance
                    .base_sha256
                    .clone()
                    .unwrap_or_else(|| staged.proposal.base.sha256.clone()),
                edited_by_person: acceptance.edited_by_person,
                at: acceptance.at,
            });
            Ok(())
        })
    }

    /// Turns down edits, or the whole proposal, with a reason that later nights are told.
    /// An approval of a text that has one of these edits is withdrawn.
    ///
    /// # Errors
    ///
    /// An edit does not exist, or the proposal is adopted.
    pub fn reject(
        &self,
        id: &str,
        edits: EditSelection,
        reason: &str,
        at: Timestamp,
    ) -> Result<Staged> {
        self.decide(id, |staged, decision| {
            let chosen = select(staged, &edits)?;
            decision.forgive(&chosen);
            decision.rejected.push(Rejected {
                edits: chosen.clone(),
                reason: reason.trim().to_owned(),
                at,
            });
            decision.rejected_whole |= edits == EditSelection::All;
            let withdrawn = decision
                .accepted
                .as_ref()
                .is_some_and(|accepted| !accepted.edits.is_disjoint(&chosen));
            if withdrawn || decision.rejected_whole {
                decision.accepted = None;
            }
            Ok(())
        })
    }

    /// Takes back what was decided: the proposal is pending again.
    ///
    /// # Errors
    ///
    /// The proposal is adopted.
    pub fn reopen(&self, id: &str) -> Result<Staged> {
        self.decide(id, |_, decision| {
            *decision = Decision::default();
            Ok(())
        })
    }

    /// Closes a proposal because a later one takes its place.
    ///
    /// # Errors
    ///
    /// The proposal is adopted.
    pub fn supersede(&self, id: &str, by: &str, at: Timestamp) -> Result<Staged> {
        self.decide(id, |_, decision| {
            decision.closed = Some(Closing::Superseded {
                by: by.to_owned(),
                at,
            });
            Ok(())
        })
    }

    /// Closes every pending proposal that was made before a moment, and says which.
    ///
    /// # Errors
    ///
    /// The area cannot be read or written.
    pub fn expire(&self, made_before: Timestamp, at: Timestamp) -> Result<Vec<String>> {
        let mut expired = Vec::new();
        for staged in self.list()?.staged {
            if staged.status == Status::Pending && staged.proposal.created < made_before {
                self.decide(&staged.proposal.id, |_, decision| {
                    decision.closed = Some(Closing::Expired { at });
                    Ok(())
                })?;
                expired.push(staged.proposal.id);
            }
        }
        Ok(expired)
    }

    /// Everything that a person turned down, the oldest first.
    ///
    /// # Errors
    ///
    /// The area cannot be read.
    pub fn rejections(&self) -> Result<Vec<Rejection>> {
        let mut rejections: Vec<Rejection> = self
            .list()?
            .staged
            .into_iter()
            .flat_map(|staged| {
                let proposal = staged.proposal;
                staged
                    .decision
                    .rejected
                    .into_iter()
                    .map(move |rejected| Rejection {
                        proposal: proposal.id.clone(),
                        document: proposal.document.clone(),
                        edits: proposal
                            .edits
                            .iter()
                            .filter(|edit| rejected.edits.contains(&edit.index))
                            .cloned()
                            .collect(),
                        reason: rejected.reason,
                        at: rejected.at,
                    })
            })
            .collect();
        rejections.sort_by_key(|rejection| rejection.at);
        Ok(rejections)
    }

    /// Reads, changes and writes a decision while nobody else does.
    fn decide(
        &self,
        id: &str,
        change: impl FnOnce(&Staged, &mut Decision) -> Result<(), Refusal>,
    ) -> Result<Staged> {
        let lock = self.root().join(".decisions.lock");
        let _lock = Lock::acquire_within(&lock, "a review decision", PATIENCE)?;
        let staged = self.load(id)?;
        if let Status::Adopted { adoption, .. } = &staged.status {
            return Err(Refusal::new(
                RefusalKind::AlreadyAdopted,
                id,
                format!("{adoption} adopted it: revert that first"),
            )
            .into());
        }
        let mut decision = staged.decision.clone();
        change(&staged, &mut decision)?;
        decision.proposal_sha256.clone_from(&staged.record_sha256);
        self.write_decision(&staged, &decision)?;
        self.load(id)
    }
}

fn select(staged: &Staged, edits: &EditSelection) -> Result<BTreeSet<usize>, Refusal> {
    let available = staged.proposal.edit_numbers();
    edits.resolve(&available).map_err(|unknown| {
        let known: Vec<String> = available.iter().map(ToString::to_string).collect();
        Refusal::new(
            RefusalKind::EditUnknown,
            &staged.proposal.id,
            format!(
                "there is no edit {unknown}: its edits are {}",
                known.join(", ")
            ),
        )
    })
}
