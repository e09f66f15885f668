//! Undoing an adoption, also a while later, also when others were adopted since.

use std::path::Path;

use jiff::Timestamp;
use skillopt_files::{NoSteps, Steps};

use super::backups::{self, Side};
use super::ledger::{AdoptedDocument, Adoption, Approver, FileState, Ledger, OperationKind};
use super::recovery;
use super::transaction::{self, Change, read_before};
use crate::error::Result;
use crate::refusal::{Refusal, RefusalKind};
use crate::roots::AllowedRoots;
use crate::sealed::Seal;
use crate::target::preflight;
use crate::text::digest::sha256;
use crate::text::form::{in_form_of, normal};
use crate::text::merge::rebase;

/// What shall be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevertPlan {
    /// The adoption, or a revert that shall itself be undone. `None`: the latest adoption
    /// that is in force.
    pub adoption: Option<String>,
    /// Restore the saved text even where the document was changed since. What is lost that
    /// way is saved with the revert, which can itself be reverted.
    pub force: bool,
    /// When.
    pub at: Timestamp,
}

/// What a revert would do to a document.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PlannedRevert {
    /// The document.
    pub document: AdoptedDocument,
    /// The patch from the live document to the text after the revert; empty if the
    /// document is to be removed or already is as it should be.
    pub diff: String,
    /// Whether the document is to be removed, since the adoption created it.
    pub removes: bool,
    /// Whether later changes of the document are kept, the adoption's own taken out.
    pub merges: bool,
}

/// Undoes an adoption: every document gets back what it was before. Where a document was
/// changed since, only the adoption's own changes are taken out, if that is possible.
/// Documents that the adoption created are removed, and the directories it made if they
/// are empty.
///
/// # Errors
///
/// There is no such adoption, it is not in force, a document was changed in the same
/// place, or a file operation failed; nothing is changed then.
pub fn revert(plan: &RevertPlan, state: &Path, roots: &AllowedRoots) -> Result<Adoption> {
    revert_with(plan, state, roots, &mut NoSteps)
}

/// [`revert`], with somebody told before each change of the disk.
///
/// # Errors
///
/// As [`revert`], and what `steps` refuses.
pub fn revert_with(
    plan: &RevertPlan,
    state: &Path,
    roots: &AllowedRoots,
    steps: &mut dyn Steps,
) -> Result<Adoption> {
    let name = plan.adoption.as_deref().unwrap_or("the latest adoption");
    let _lock = super::lock(state, &format!("revert of {name}"))?;
    let seal = Seal::open(state)?;
    let recovered = recovery::recover(state, &seal, roots, steps)?;
    let ledger = Ledger::load(state, &seal)?;
    let undone = choose(plan, &ledger)?;
    let mut documents = Vec::new();
    let mut changes = Vec::new();
    for number in 0..undone.documents.len() {
        let (planned, change) = prepare(state, undone, number, plan.force, roots)?;
        documents.push(planned.document);
        changes.push(change);
    }
    let mut operation = Adoption {
        id: ledger.next_id(state)?,
        kind: OperationKind::Revert,
        at: plan.at,
        by: Approver::Person,
        reverts: Some(undone.id.clone()),
        forced: plan.force,
        documents,
        recovered: None,
    };
    transaction::run(state, &seal, roots, &mut operation, changes, steps)?;
    for document in &undone.documents {
        // The revert is done; a directory that is in use by now stays.
        let _ = recovery::remove_directories(&document.made_directories, roots, &mut NoSteps);
    }
    operation.recovered = recovered;
    Ok(operation)
}

/// What [`revert`] would do. Writes nothing.
///
/// # Errors
///
/// As [`revert`].
pub fn dry_run_revert(
    plan: &RevertPlan,
    state: &Path,
    roots: &AllowedRoots,
) -> Result<Vec<PlannedRevert>> {
    let ledger = Ledger::load(state, &Seal::open(state)?)?;
    let undone = choose(plan, &ledger)?;
    (0..undone.documents.len())
        .map(|number| prepare(state, undone, number, plan.force, roots).map(|(planned, _)| planned))
        .collect()
}

fn choose<'l>(plan: &RevertPlan, ledger: &'l Ledger) -> Result<&'l Adoption, Refusal> {
    let Some(id) = &plan.adoption else {
        return ledger.latest().ok_or_else(|| {
            Refusal::new(
                RefusalKind::AdoptionUnknown,
                "revert",
                "there is no adoption in force: nothing to undo",
            )
        });
    };
    let Some(found) = ledger.get(id) else {
        if let Some(bad) = ledger
            .unreadable
            .iter()
            .find(|refusal| refusal.subject.ends_with(&format!("/{id}.json")))
        {
            return Err(bad.clone());
        }
        return Err(Refusal::new(
            RefusalKind::AdoptionUnknown,
            id,
            "there is no such adoption: `log` shows them",
        ));
    };
    match ledger.reverted_by(id) {
        Some(revert) if !ledger.is_in_force(id) => Err(Refusal::new(
            RefusalKind::AlreadyReverted,
            id,
            format!("{} reverted it already", revert.id),
        )),
        _ => Ok(found),
    }
}

/// What undoing means for one document as it is now.
fn prepare(
    state: &Path,
    undone: &Adoption,
    number: usize,
    force: bool,
    roots: &AllowedRoots,
) -> Result<(PlannedRevert, Change)> {
    let document = &undone.documents[number];
    let target = preflight(&document.path, roots)?;
    if target.real_path != document.real_path {
        return Err(Refusal::path(
            RefusalKind::LiveMoved,
            &document.path,
            format!(
                "{} wrote {}, and the path leads to {} now: put the link back first",
                undone.id,
                document.real_path.display(),
                target.real_path.display()
            ),
        )
        .into());
    }
    let before = read_before(&target)?;
    let live = before.as_ref().map(|before| before.bytes.as_slice());
    let wrote = |side, fingerprint: Option<&str>| {
        fingerprint
            .map(|fingerprint| backups::load(state, &undone.id, number, side, fingerprint))
            .transpose()
    };
    let original_sha256 = document.before.as_ref().map(|b| b.sha256.as_str());
    let live_sha256 = live.map(sha256);
    let mut merges = false;
    let after = if live_sha256.as_deref() == original_sha256 {
        live.map(<[u8]>::to_vec)
    } else {
        let original = wrote(Side::Before, original_sha256)?;
        if live_sha256 == document.after || force {
            original
        } else {
            let adopted = wrote(Side::After, document.after.as_deref())?;
            merges = true;
            let merged = take_out(adopted.as_deref(), live, original.as_deref());
            Some(merged.ok_or_else(|| conflict(undone, document, live.is_none()))?)
        }
    };
    let text = |bytes: Option<&[u8]>| normal(&String::from_utf8_lossy(bytes.unwrap_or_default()));
    let removes = after.is_none() && live.is_some();
    let name = document.path.display().to_string();
    let diff = if removes {
        String::new()
    } else {
        crate::unified_diff(&text(live), &text(after.as_deref()), &name)
    };
    let planned = PlannedRevert {
        diff,
        removes,
        merges,
        document: AdoptedDocument {
            before: before
                .as_ref()
                .map(|before| FileState::of(&before.bytes, &before.entry)),
            after: after.as_ref().map(sha256),
            made_directories: Vec::new(),
            ..document.clone()
        },
    };
    let mode = document.before.as_ref().map(|before| before.mode);
    let change = Change {
        target,
        before,
        after,
        mode,
    };
    Ok((planned, change))
}

/// The live text without what the adoption changed; byte for byte where it can be.
fn take_out(
    adopted: Option<&[u8]>,
    live: Option<&[u8]>,
    original: Option<&[u8]>,
) -> Option<Vec<u8>> {
    let text = |bytes: Option<&[u8]>| String::from_utf8(bytes?.to_vec()).ok();
    let (adopted, live, original) = (text(adopted)?, text(live)?, text(original)?);
    let merged = rebase(&adopted, &original, &live).or_else(|| {
        // An editor may have changed every line ending; the lines themselves may fit.
        let merged = rebase(&normal(&adopted), &normal(&original), &normal(&live))?;
        Some(in_form_of(&merged, &live))
    });
    merged.map(String::into_bytes)
}

fn conflict(undone: &Adoption, document: &AdoptedDocument, gone: bool) -> Refusal {
    let what = if gone {
        "it was removed since"
    } else if document.before.is_none() {
        "the adoption created it, and it was changed since"
    } else {
        "it was changed since in the same place"
    };
    Refusal::path(
        RefusalKind::RevertConflict,
        &document.path,
        format!(
            "{} cannot be taken out, because {what}: change it by hand, or use --force to \
             restore the text before {} (the present text is kept and can be brought back)",
            undone.id, undone.id
        ),
    )
}
