//! Live documents change here and nowhere else.
//!
//! The story of one adoption, over any number of documents:
//!
//! 1. take the lock, and undo what an interrupted adoption left ([`recovery`]);
//! 2. check every proposal and every target; the first that says no ends it, with nothing
//!    changed ([`plan`]);
//! 3. write the journal: what was there, what shall be there ([`journal`]);
//! 4. save originals and new texts, then replace file by file, each in one instant, each
//!    checked to have replaced exactly what was checked before ([`transaction`]);
//! 5. write the record of the adoption ([`ledger`]) and remove the journal: that is the
//!    commit.
//!
//! Whatever fails in between, the documents go back to what they were, now or, if the
//! process died, when the next one takes the lock. A [`revert`] is the same transaction
//! with old texts for new ones, and is recorded alike, so it can itself be reverted.

pub(crate) mod backups;
pub(crate) mod journal;
pub(crate) mod ledger;
pub(crate) mod plan;
pub(crate) mod recovery;
pub(crate) mod revert;
pub(crate) mod transaction;

use std::path::Path;

use skillopt_files::{Lock, NoSteps, Steps};

use crate::area::StagingArea;
use crate::error::Result;
use crate::refusal::{Refusal, RefusalKind};
use ledger::{Adoption, Ledger, OperationKind};
use plan::{AdoptionPlan, Prepared};
use recovery::Recovery;

/// Adopts the accepted texts of any number of proposals, all or none.
///
/// What an interrupted operation left is put in order first, and the result tells of it.
/// To tell of it also when this adoption is then refused, call [`recover`] before.
///
/// # Errors
///
/// A proposal is not accepted, changed since, or its document cannot or may not be
/// written: nothing changed. A file operation failed: everything was put back, or
/// [`Error::RollbackIncomplete`](crate::Error::RollbackIncomplete) says that recovery has
/// to finish it.
pub fn adopt(plan: &AdoptionPlan, state: &Path, roots: &crate::AllowedRoots) -> Result<Adoption> {
    adopt_with(plan, state, roots, &mut NoSteps)
}

/// [`adopt`], with somebody told before each change of the disk: for tests that stop it
/// anywhere.
///
/// # Errors
///
/// As [`adopt`], and what `steps` refuses.
pub fn adopt_with(
    plan: &AdoptionPlan,
    state: &Path,
    roots: &crate::AllowedRoots,
    steps: &mut dyn Steps,
) -> Result<Adoption> {
    if plan.items.is_empty() {
        return Err(Refusal::new(
            RefusalKind::NothingToChange,
            "adopt",
            "no proposal is named: accept one in review first",
        )
        .into());
    }
    let ids: Vec<&str> = plan
        .items
        .iter()
        .map(|item| item.proposal.as_str())
        .collect();
    let area = StagingArea::open(&state.join("staging"))?;
    let _lock = lock(state, &format!("adoption of {}", ids.join(", ")))?;
    let seal = area.seal()?;
    let recovered = recovery::recover(state, &seal, roots, steps)?;
    let prepared: Vec<Prepared> = plan::prepare(plan, &area, roots)?;
    let ledger = Ledger::load(state, &seal)?;
    let (documents, changes) = prepared
        .into_iter()
        .map(|prepared| (prepared.document, prepared.change))
        .unzip();
    let mut adoption = Adoption {
        id: ledger.next_id(state)?,
        kind: OperationKind::Adopt,
        at: plan.at,
        by: plan.by,
        reverts: None,
        forced: false,
        documents,
        recovered: None,
    };
    transaction::run(state, &seal, roots, &mut adoption, changes, steps)?;
    adoption.recovered = recovered;
    Ok(adoption)
}

/// Undoes what an interrupted adoption or revert left, and says what it did; `None` if
/// there is nothing to do. Adopting and reverting do this by themselves.
///
/// # Errors
///
/// Another process is adopting, or the journal cannot be trusted or carried out.
pub fn recover(state: &Path, roots: &crate::AllowedRoots) -> Result<Option<Recovery>> {
    recover_with(state, roots, &mut NoSteps)
}

/// [`recover`], with somebody told before each change of the disk.
///
/// # Errors
///
/// As [`recover`], and what `steps` refuses.
pub fn recover_with(
    state: &Path,
    roots: &crate::AllowedRoots,
    steps: &mut dyn Steps,
) -> Result<Option<Recovery>> {
    let seal = crate::sealed::Seal::open(state)?;
    let _lock = lock(state, "recovery of an interrupted adoption")?;
    recovery::recover(state, &seal, roots, steps)
}

/// Whether an interrupted adoption or revert waits for recovery.
pub fn is_interrupted(state: &Path) -> bool {
    journal::path(state).exists()
}

pub(crate) fn lock(state: &Path, holder: &str) -> Result<Lock> {
    Ok(Lock::acquire(&state.join("adopt.lock"), holder)?)
}
