//! What an adoption would write, and every reason why it may not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use super::ledger::{AdoptedDocument, Approver, FileState};
use super::transaction::{Change, read_before};
use crate::area::{Staged, StagingArea};
use crate::decision::{Accepted, Status};
use crate::error::Result;
use crate::names::collision_key;
use crate::proposal::{DOCUMENT_LIMIT, Level};
use crate::refusal::{Refusal, RefusalKind};
use crate::roots::AllowedRoots;
use crate::target::{into_text, preflight};
use crate::text::diff::unified_diff;
use crate::text::digest::sha256;
use crate::text::form::{in_form_of, normal};

/// What shall be adopted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptionPlan {
    /// The proposals and the texts to write for them.
    pub items: Vec<PlannedText>,
    /// Who lets it happen.
    pub by: Approver,
    /// When.
    pub at: Timestamp,
}

/// One proposal and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedText {
    /// The proposal's id.
    pub proposal: String,
    /// The text; it must be the one that was approved.
    pub text: String,
}

impl StagingArea {
    /// A plan to adopt these proposals with the texts that were approved for them; for
    /// [`Approver::Automatic`] with the staged texts, which nobody decided about.
    ///
    /// # Errors
    ///
    /// There is no such proposal, or it is not accepted; or, for the policy, the gate did not
    /// confirm it or somebody decided about it.
    pub fn plan(
        &self,
        ids: &[impl AsRef<str>],
        by: Approver,
        at: Timestamp,
    ) -> Result<AdoptionPlan> {
        let items = ids.iter().map(|id| {
            let staged = self.load(id.as_ref())?;
            let text = approval(&staged, by)?.text;
            Ok(PlannedText {
                proposal: staged.proposal.id,
                text,
            })
        });
        Ok(AdoptionPlan {
            items: items.collect::<Result<_>>()?,
            by,
            at,
        })
    }
}

/// A write that an adoption would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedWrite {
    /// The proposal.
    pub proposal: String,
    /// The document, as configured.
    pub path: PathBuf,
    /// The file that is written, links resolved.
    pub real_path: PathBuf,
    /// Directories that are made for it.
    pub makes_directories: Vec<PathBuf>,
    /// The file now; `None` if it is new.
    pub before: Option<FileState>,
    /// Fingerprint of the bytes that are written.
    pub after_sha256: String,
    /// How many they are.
    pub after_length: u64,
    /// The patch from the live document to the new text.
    pub diff: String,
}

/// What an adoption would do, without doing it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct DryRun {
    /// What would be written where.
    pub writes: Vec<PlannedWrite>,
    /// The proposals that could not be adopted, and why. Any of them stops an adoption.
    pub refusals: Vec<(String, Refusal)>,
}

/// What [`adopt`](crate::adopt) would do. Writes nothing, and so recovers nothing either:
/// after an interrupted adoption ([`is_interrupted`](crate::is_interrupted)) call
/// [`recover`](crate::recover) first.
///
/// # Errors
///
/// The staging area cannot be read; refusals are part of the answer.
pub fn dry_run(plan: &AdoptionPlan, state: &Path, roots: &AllowedRoots) -> Result<DryRun> {
    let area = StagingArea::open(&state.join("staging"))?;
    let mut dry_run = DryRun::default();
    let mut prepared = Vec::new();
    for item in &plan.items {
        match prepare_one(item, plan.by, &area, roots) {
            Ok(one) => prepared.push(one),
            Err(crate::Error::Refused(refusal)) => {
                dry_run.refusals.push((item.proposal.clone(), refusal));
            }
            Err(error) => return Err(error),
        }
    }
    if let Err(refusal) = check_together(&prepared) {
        dry_run.refusals.push((refusal.subject.clone(), refusal));
    }
    for Prepared { document, change } in prepared {
        let after = change.after.unwrap_or_default();
        let text = String::from_utf8_lossy(&after);
        let live = change.before.map(|before| before.bytes).unwrap_or_default();
        let live = String::from_utf8_lossy(&live);
        let name = document.path.display().to_string();
        dry_run.writes.push(PlannedWrite {
            proposal: document.proposal,
            diff: unified_diff(&normal(&live), &normal(&text), &name),
            path: document.path,
            real_path: document.real_path,
            makes_directories: change.target.missing_directories,
            before: document.before,
            after_sha256: document.after.unwrap_or_default(),
            after_length: after.len() as u64,
        });
    }
    Ok(dry_run)
}

/// A document that passed every check.
pub(crate) struct Prepared {
    pub(crate) document: AdoptedDocument,
    pub(crate) change: Change,
}

pub(crate) fn prepare(
    plan: &AdoptionPlan,
    area: &StagingArea,
    roots: &AllowedRoots,
) -> Result<Vec<Prepared>> {
    let prepared = plan
        .items
        .iter()
        .map(|item| prepare_one(item, plan.by, area, roots))
        .collect::<Result<Vec<_>>>()?;
    check_together(&prepared)?;
    Ok(prepared)
}

fn prepare_one(
    item: &PlannedText,
    by: Approver,
    area: &StagingArea,
    roots: &AllowedRoots,
) -> Result<Prepared> {
    let staged = area.load(&item.proposal)?;
    let accepted = approval(&staged, by)?;
    let proposal = &staged.proposal;
    let refuse = |kind, reason: String| Refusal::new(kind, &proposal.id, reason);
    if by == Approver::Person && staged.decision.proposal_sha256 != staged.record_sha256 {
        return Err(refuse(
            RefusalKind::ProposalChanged,
            "the proposal was changed after it was approved: review it again".to_owned(),
        )
        .into());
    }
    let text = normal(&item.text);
    if sha256(&text) != accepted.text_sha256 {
        return Err(refuse(
            RefusalKind::ApprovalMismatch,
            "the text to adopt is not the one that was approved: review it again".to_owned(),
        )
        .into());
    }
    let risk = proposal
        .lint
        .iter()
        .find(|finding| finding.level > Level::Note);
    if let (Approver::Automatic, Some(finding)) = (by, risk) {
        return Err(refuse(
            RefusalKind::RiskNeedsPerson,
            format!(
                "its text has the risk `{}`, which only a person may accept: review it",
                finding.rule
            ),
        )
        .into());
    }
    let target = preflight(&proposal.document.path, roots)?;
    let staged_at = proposal.document.real_path.as_ref();
    if let Some(staged_at) = staged_at.filter(|staged_at| **staged_at != target.real_path) {
        return Err(Refusal::path(
            RefusalKind::LiveMoved,
            &target.path,
            format!(
                "it led to {} when the proposal was made and leads to {} now: reject the \
                 proposal, the next night makes a new one",
                staged_at.display(),
                target.real_path.display()
            ),
        )
        .into());
    }
    let before = read_before(&target)?;
    let live_sha256 = before
        .as_ref()
        .map(|before| sha256(&before.bytes))
        .unwrap_or_default();
    let live = match &before {
        Some(before) => into_text(before.bytes.clone(), &target.path)?,
        None => String::new(),
    };
    let after = in_form_of(&text, &live);
    if before.is_some() && after == live {
        return Err(Refusal::path(
            RefusalKind::NothingToChange,
            &target.path,
            format!(
                "it already has the text of {}: reject the proposal",
                proposal.id
            ),
        )
        .into());
    }
    if live_sha256 != accepted.base_sha256 {
        let what = match (before.is_some(), accepted.base_sha256.is_empty()) {
            (true, true) => "was created",
            (false, _) => "was removed",
            _ => "was changed",
        };
        return Err(Refusal::path(
            RefusalKind::LiveDrift,
            &target.path,
            format!(
                "it {what} after {} was made: review the proposal again, which shows what \
                 still applies to the document as it is now",
                proposal.id
            ),
        )
        .into());
    }
    if after.len() as u64 > DOCUMENT_LIMIT {
        return Err(refuse(
            RefusalKind::ProposalTooLarge,
            format!("a document may have {DOCUMENT_LIMIT} bytes at most"),
        )
        .into());
    }
    let document = AdoptedDocument {
        proposal: proposal.id.clone(),
        name: proposal.document.name.clone(),
        kind: proposal.document.kind,
        path: target.path.clone(),
        real_path: target.real_path.clone(),
        before: before
            .as_ref()
            .map(|before| FileState::of(&before.bytes, &before.entry)),
        after: Some(sha256(&after)),
        made_directories: Vec::new(),
        edits: accepted.edits.clone(),
        edited_by_person: accepted.edited_by_person,
    };
    Ok(Prepared {
        document,
        change: Change {
            target,
            before,
            after: Some(after.into_bytes()),
            mode: None,
        },
    })
}

/// What may be written for a proposal: what a person approved, or for the policy the staged text.
fn approval(staged: &Staged, by: Approver) -> Result<Accepted, Refusal> {
    match by {
        Approver::Person => approved(staged).cloned(),
        Approver::Automatic => undecided(staged),
    }
}

/// The staged text of a proposal that the gate confirmed and nobody decided about. Nothing of it is
/// kept as a decision: if the adoption comes to nothing, the proposal still waits for a person.
fn undecided(staged: &Staged) -> Result<Accepted, Refusal> {
    let proposal = &staged.proposal;
    let needs_person = |reason: &str| {
        let reason = format!("{reason}: only a person may adopt it");
        Err(Refusal::new(RefusalKind::NeedsPerson, &proposal.id, reason))
    };
    if !(proposal.verified && proposal.gate.accepted) {
        return needs_person("the gate did not accept it");
    }
    if staged.status != Status::Pending || !staged.decision.rejected.is_empty() {
        return needs_person("somebody decided about it");
    }
    Ok(Accepted {
        edits: proposal.edit_numbers(),
        text: proposal.proposed.text.clone(),
        text_sha256: proposal.proposed.sha256.clone(),
        base_sha256: proposal.base.sha256.clone(),
        edited_by_person: false,
        at: proposal.created,
    })
}

/// The approval of a proposal that may be adopted.
fn approved(staged: &Staged) -> Result<&Accepted, Refusal> {
    let id = &staged.proposal.id;
    let refusal = match (&staged.status, &staged.decision.accepted) {
        (Status::Accepted { .. }, Some(accepted)) => return Ok(accepted),
        (Status::Adopted { adoption, .. }, _) => Refusal::new(
            RefusalKind::AlreadyAdopted,
            id,
            format!("{adoption} adopted it already"),
        ),
        (Status::Superseded { .. } | Status::Expired { .. }, _) => Refusal::new(
            RefusalKind::ProposalClosed,
            id,
            format!("it is {}: accept it in review first", staged.status.word()),
        ),
        (status, _) => Refusal::new(
            RefusalKind::ProposalNotAccepted,
            id,
            format!("it is {}: accept it in review first", status.word()),
        ),
    };
    Err(refusal)
}

/// No two proposals lead to one file, not even on a file system that ignores case.
fn check_together(prepared: &[Prepared]) -> Result<(), Refusal> {
    let mut ids = BTreeSet::new();
    let mut places: BTreeMap<String, &str> = BTreeMap::new();
    for one in prepared {
        let id = one.document.proposal.as_str();
        if !ids.insert(id) {
            return Err(Refusal::new(
                RefusalKind::SelectionDuplicate,
                id,
                "it is named twice: name it once",
            ));
        }
        let key = collision_key(&one.change.target.real_path.display().to_string());
        let identity = one
            .change
            .target
            .entry
            .map(|entry| format!("\0{}:{}", entry.identity.device, entry.identity.inode));
        for key in std::iter::once(key).chain(identity) {
            if let Some(other) = places.insert(key, id) {
                return Err(Refusal::new(
                    RefusalKind::LiveTargetCollision,
                    id,
                    format!(
                        "{other} leads to the same file {}: adopt one of them",
                        one.change.target.real_path.display()
                    ),
                ));
            }
        }
    }
    Ok(())
}
