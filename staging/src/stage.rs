//! Putting a proposal on disk, so that its folder appears whole or not at all.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use skillopt_files::{
    Directory, NoSteps, Options, create_private_dir, write_atomic, write_atomic_json,
};

use crate::area::{BASE, PROPOSED, RECORD, StagingArea, folders_of, is_folder_name, number};
use crate::error::Result;
use crate::names::is_label;
use crate::proposal::{DOCUMENT_LIMIT, DocumentKind, Draft, FORMAT, Proposal, ProposedText};
use crate::refusal::{Refusal, RefusalKind};
use crate::text::digest::sha256;

impl StagingArea {
    /// Stages a proposal and gives it its id: the night's name and a number.
    ///
    /// # Errors
    ///
    /// The draft contradicts itself or changes nothing, or the disk refuses; nothing is
    /// staged then.
    pub fn stage(&self, draft: Draft) -> Result<Proposal> {
        check_draft(&draft)?;
        let night = self.root().join(&draft.night);
        create_private_dir(&night)?;
        let nights = Directory::open(&night)?;
        let making = making_name(&nights)?;
        let folder = night.join(&making);
        let mut proposal = into_proposal(draft);
        let placed = fill(&folder, &proposal)
            .and_then(|()| place(&nights, OsStr::new(&making), &mut proposal));
        if let Err(error) = placed {
            // Nobody knows of the folder yet; what cannot be removed is only litter.
            let _ = std::fs::remove_dir_all(&folder);
            return Err(error);
        }
        tracing::info!(proposal = %proposal.id, document = %proposal.document.path.display(), "staged");
        Ok(proposal)
    }
}

fn check_draft(draft: &Draft) -> Result<(), Refusal> {
    let path = &draft.document.path;
    if !is_folder_name(&draft.night) {
        return Err(Refusal::new(
            RefusalKind::NightUnsafe,
            &draft.night,
            "a night's name has letters, digits, `.`, `_` and `-`, at most 64, and begins with \
             a letter or digit",
        ));
    }
    if !path.is_absolute() || path.to_str().is_none() {
        return Err(Refusal::path(
            RefusalKind::LivePathUnsafe,
            path,
            "a proposal needs the document's absolute path, as UTF-8",
        ));
    }
    if !is_label(&draft.document.name) {
        return Err(Refusal::path(
            RefusalKind::ProposalInvalid,
            path,
            format!(
                "{:?} is no name to show a document under: it has to be visible, on one line, \
                 at most 1000 bytes, and without `..`",
                draft.document.name
            ),
        ));
    }
    let given = draft.document.real_path.as_ref();
    if let Some(given) = given.filter(|given| path.canonicalize().ok().as_ref() != Some(given)) {
        return Err(Refusal::path(
            RefusalKind::LiveMoved,
            path,
            format!("the proposal was made for {}", given.display()),
        ));
    }
    let proposed = ProposedText::of(&draft.proposed);
    if proposed.text.len() as u64 > DOCUMENT_LIMIT || draft.base.text.len() as u64 > DOCUMENT_LIMIT
    {
        return Err(Refusal::path(
            RefusalKind::ProposalTooLarge,
            path,
            format!("a document may have {DOCUMENT_LIMIT} bytes at most"),
        ));
    }
    if proposed.text.trim().is_empty()
        && (draft.document.kind == DocumentKind::Skill || !draft.base.existed)
    {
        return Err(Refusal::path(
            RefusalKind::ProposalEmpty,
            path,
            "the proposed text is empty",
        ));
    }
    if draft.base.existed && proposed.text == draft.base.normal() {
        return Err(Refusal::path(
            RefusalKind::NothingToChange,
            path,
            "the proposed text is the document's own",
        ));
    }
    let base = &draft.base;
    let honest = if base.existed {
        base.sha256 == sha256(&base.text)
    } else {
        base.sha256.is_empty() && base.text.is_empty()
    };
    let numbers: BTreeSet<usize> = draft.edits.iter().map(|edit| edit.index).collect();
    if !honest || numbers.len() != draft.edits.len() {
        return Err(Refusal::path(
            RefusalKind::ProposalInvalid,
            path,
            "the draft's base has another fingerprint than its text, or two edits share a number",
        ));
    }
    Ok(())
}

fn into_proposal(draft: Draft) -> Proposal {
    let mut proposal = Proposal {
        format: FORMAT,
        id: String::new(),
        night: draft.night,
        created: draft.created,
        document: draft.document,
        base: draft.base,
        proposed: ProposedText::of(&draft.proposed),
        edits: draft.edits,
        gate: draft.gate,
        rejected: draft.rejected,
        lint: draft.lint,
        cost: draft.cost,
        verified: draft.verified,
    };
    if proposal.document.real_path.is_none() {
        // A link that is turned elsewhere before adoption shall be noticed.
        let real = proposal.document.path.canonicalize().ok();
        proposal.document.real_path = real.filter(|real| real.to_str().is_some());
    }
    proposal.drop_impossible_values();
    proposal
}

/// Writes everything but the record, whose id is not known yet.
fn fill(folder: &Path, proposal: &Proposal) -> Result<()> {
    let options = Options {
        create_parents: true,
        ..Options::default()
    };
    if proposal.base.existed {
        write_atomic(&folder.join(BASE), proposal.base.text.as_bytes(), options)?;
    }
    let text = proposal.proposed.text.as_bytes();
    Ok(write_atomic(&folder.join(PROPOSED), text, options)?)
}

/// Gives the folder the first free number of its night, and the record that number.
fn place(night: &Directory, making: &OsStr, proposal: &mut Proposal) -> Result<()> {
    let taken = folders_of(night.path())?;
    let mut number = taken
        .iter()
        .filter_map(|name| number(name))
        .max()
        .unwrap_or(0);
    loop {
        number += 1;
        proposal.id = format!("{}-{number}", proposal.night);
        write_atomic_json(&night.path().join(making).join(RECORD), proposal)?;
        match night.rename_new(making, OsStr::new(&proposal.id), &mut NoSteps) {
            Err(error) if error.is_already_there() => {}
            done => {
                done?;
                return Ok(night.sync(&mut NoSteps)?);
            }
        }
    }
}

fn making_name(night: &Directory) -> Result<String> {
    for attempt in 0_u32.. {
        let name = format!(".making-{}-{attempt}", std::process::id());
        match night.make_directory(OsStr::new(&name), Some(0o700), &mut NoSteps) {
            Err(error) if error.is_already_there() => {}
            done => return Ok(done.map(|()| name)?),
        }
    }
    Ok(String::new())
}
