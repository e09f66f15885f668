//! What a person, or a policy, decided about a proposal.
//!
//! A decision is a file of its own beside the proposal, replaced whole, so that the
//! proposal itself never changes once it is staged. Whether a proposal has been adopted
//! or reverted is not written here: the records of the adoptions tell, and only they.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Which edits of a proposal are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditSelection {
    /// All of them.
    All,
    /// Those with these numbers.
    Some(Vec<usize>),
}

impl EditSelection {
    /// The numbers that are meant, out of those there are.
    pub(crate) fn resolve(&self, available: &BTreeSet<usize>) -> Result<BTreeSet<usize>, usize> {
        match self {
            EditSelection::All => Ok(available.clone()),
            EditSelection::Some(chosen) => chosen
                .iter()
                .map(|index| available.get(index).copied().ok_or(*index))
                .collect(),
        }
    }
}

/// An approval, as it is handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    /// The edits that `text` has.
    pub edits: EditSelection,
    /// The document as it shall become: the base with those edits, or the person's own
    /// version of it; in any form.
    pub text: String,
    /// [`sha256`](crate::sha256) of the text that was shown when the approval was given. It must be
    /// that of `text` as given.
    pub shown_sha256: String,
    /// Whether a person changed the text after the models.
    pub edited_by_person: bool,
    /// For a text that was rebased onto a newer live document: that document's
    /// fingerprint, which adoption will insist on. `None`: the proposal's own base.
    pub base_sha256: Option<String>,
    /// When it was given.
    pub at: Timestamp,
}

/// An approval, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The numbers of the edits that the text has.
    pub edits: BTreeSet<usize>,
    /// The approved text, in the program's form.
    pub text: String,
    /// Its fingerprint.
    pub text_sha256: String,
    /// The fingerprint of the live document that it replaces; empty: there is none.
    pub base_sha256: String,
    /// Whether a person changed the text after the models.
    pub edited_by_person: bool,
    /// When it was approved.
    pub at: Timestamp,
}

/// A rejection, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// The numbers of the edits.
    pub edits: BTreeSet<usize>,
    /// Why; may be empty. Later nights are told.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

/// Why a proposal is no longer open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// A later proposal takes its place.
    Superseded {
        /// The later one.
        by: String,
        /// When.
        at: Timestamp,
    },
    /// Nobody decided in time.
    Expired {
        /// When.
        at: Timestamp,
    },
}

/// Everything decided about a proposal so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Decision {
    /// The approval, if there is one.
    pub accepted: Option<Accepted>,
    /// The rejections, each with its reason. An edit is in one of them at most.
    #[serde(default)]
    pub rejected: Vec<Rejected>,
    /// Whether the whole proposal was turned down, for good unless it is accepted later.
    #[serde(default)]
    pub rejected_whole: bool,
    /// Why the proposal is no longer open.
    #[serde(default)]
    pub closed: Option<Closing>,
    /// Fingerprint of the proposal's record when this was decided.
    #[serde(default)]
    pub proposal_sha256: String,
}

impl Decision {
    /// Takes edits out of the rejections.
    pub(crate) fn forgive(&mut self, edits: &BTreeSet<usize>) {
        for rejected in &mut self.rejected {
            rejected.edits.retain(|index| !edits.contains(index));
        }
        self.rejected.retain(|rejected| !rejected.edits.is_empty());
    }
}

/// Where a proposal stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Status {
    /// Nobody decided yet, or only about some edits.
    Pending,
    /// Approved, not yet adopted.
    Accepted {
        /// The numbers of the edits that were approved.
        edits: BTreeSet<usize>,
        /// Fingerprint of the approved text.
        text_sha256: String,
        /// When.
        at: Timestamp,
    },
    /// Turned down as a whole.
    Rejected {
        /// Why; may be empty.
        reason: String,
        /// When.
        at: Timestamp,
    },
    /// The live document has it.
    Adopted {
        /// The adoption.
        adoption: String,
        /// When.
        at: Timestamp,
    },
    /// It was adopted, and the adoption was undone.
    Reverted {
        /// The adoption.
        adoption: String,
        /// The operation that undid it.
        by: String,
        /// When.
        at: Timestamp,
    },
    /// A later proposal takes its place.
    Superseded {
        /// The later one.
        by: String,
    },
    /// Nobody decided in time.
    Expired {
        /// When.
        at: Timestamp,
    },
}

impl Status {
    /// The state as a word.
    pub fn word(&self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Accepted { .. } => "accepted",
            Status::Rejected { .. } => "rejected",
            Status::Adopted { .. } => "adopted",
            Status::Reverted { .. } => "reverted",
            Status::Superseded { .. } => "superseded",
            Status::Expired { .. } => "expired",
        }
    }

    /// Whether a person can still decide: pending, or accepted but not adopted.
    pub fn is_open(&self) -> bool {
        matches!(self, Status::Pending | Status::Accepted { .. })
    }
}
