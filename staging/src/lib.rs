//! Proposals, decisions, adoption and revert of skill documents.
//!
//! A night ends with proposals; a person decides; only then does a live document change.
//! This crate keeps that promise. It knows nothing of models and never reaches the
//! network. All it knows of a document is its path, its text, and what configuration
//! allows.
//!
//! # The way of a change
//!
//! ```text
//! preflight ─▶ read ─▶ (a night) ─▶ stage ─▶ accept | reject ─▶ adopt ─▶ revert
//!    │           │                    │            │               │        │
//!  Target       Base                Draft      Acceptance     AdoptionPlan RevertPlan
//! ```
//!
//! ```no_run
//! # use skillopt_staging::*; use std::path::Path;
//! # fn night(base: &Base) -> Draft { unimplemented!() }
//! # fn story(state: &Path, document: &Path, at: jiff::Timestamp) -> Result<()> {
//! let roots = AllowedRoots::new().skills("/home/dev/.claude/skills").project("/home/dev/proj");
//! let target = preflight(document, &roots)?;          // before money is spent
//! let base = target.read()?;                          // base.normal() is what models see
//!
//! let area = StagingArea::open(&state.join("staging"))?;
//! let proposal = area.stage(night(&base))?;           // n12-1
//!
//! let shown = proposal.proposed.text.clone();         // or a subset of edits, or a person's text
//! area.accept(&proposal.id, Acceptance {
//!     edits: EditSelection::All,
//!     shown_sha256: sha256(&shown),
//!     text: shown,
//!     edited_by_person: false,
//!     base_sha256: None,                              // Some(live) after a `rebase`
//!     at,
//! })?;
//!
//! let plan = area.plan(&[&proposal.id], Approver::Person, at)?;
//! let what = dry_run(&plan, state, &roots)?;          // what would be written where
//! let adoption = adopt(&plan, state, &roots)?;        // all or nothing
//! revert(&RevertPlan { adoption: Some(adoption.id), force: false, at }, state, &roots)?;
//! # Ok(()) }
//! ```
//!
//! # All there is to call
//!
//! ```text
//! preflight(&Path, &AllowedRoots) -> Result<Target, Refusal>      Target::read() -> Result<Base, Refusal>
//! AllowedRoots::new().skills(dir).project(dir).document(file)
//!
//! StagingArea::open(&Path)          .stage(Draft) -> Proposal       .list() -> Listing
//!   .load(id) -> Staged             .find(query) -> Staged          .history(Option<&Path>) -> Vec<HistoryEntry>
//!   .accept(id, Acceptance)         .reject(id, EditSelection, reason, at)   .reopen(id)   -> Staged
//!   .supersede(id, by, at)          .expire(before, at) -> ids      .prune(before) -> ids
//!   .rejections() -> Vec<Rejection> .plan(&[id], Approver, at) -> AdoptionPlan
//!
//! dry_run(&AdoptionPlan, state, &roots) -> DryRun          adopt(...) -> Adoption
//! dry_run_revert(&RevertPlan, state, &roots) -> Vec<PlannedRevert>   revert(...) -> Adoption
//! recover(state, &roots) -> Option<Recovery>               is_interrupted(state) -> bool
//! Ledger::open(state)  .latest() .get(id) .is_in_force(id) prune_backups(state, before) -> ids
//!
//! rebase(base, proposed, live) -> Option<String>           normal(raw), in_form_of(text, raw)
//! unified_diff(base, proposed, path), inline_diff(base, proposed, context) -> Vec<Vec<DiffLine>>
//! display_safe, has_hidden, one_line, table_cell, prose, markdown, score, sha256
//! skill_name, resolvable_name, live_path, within, collision_key
//! SkillRoots::new().project(dir).home(dir).plugins(dir).directory(dir)   .find(name) -> Lookup
//! ```
//!
//! # On disk
//!
//! | under the state directory | what |
//! |---|---|
//! | `staging/<night>/<proposal>/` | `proposal.json`, `base.md`, `proposed.md`, `decision.json` |
//! | `adoptions/<id>.json` | the record of an adoption or revert |
//! | `adoptions/journal.json` | only while one is under way |
//! | `backups/<id>/` | each document before and after it |
//! | `adopt.lock`, `seal.key` | one adopter at a time; what marks our own records |
//!
//! Everything is private (`0600` in `0700`), written whole or not at all, and has a format
//! version.
//!
//! # Where to read on
//!
//! [`StagingArea`] for proposals and decisions, [`preflight`] and [`AllowedRoots`] for
//! what may be written, [`adopt`] and [`revert`] for how, [`RefusalKind`] for every reason
//! why not.

mod adoption;
mod area;
mod decision;
mod error;
mod history;
mod names;
mod proposal;
mod prune;
mod refusal;
mod resolve;
mod review;
mod roots;
mod sealed;
mod skills;
mod stage;
mod target;
mod text;

pub use adoption::ledger::{AdoptedDocument, Adoption, Approver, FileState, Ledger, OperationKind};
pub use adoption::plan::{AdoptionPlan, DryRun, PlannedText, PlannedWrite, dry_run};
pub use adoption::recovery::{Outcome, RecoveredDocument, Recovery};
pub use adoption::revert::{PlannedRevert, RevertPlan, dry_run_revert, revert, revert_with};
pub use adoption::{adopt, adopt_with, is_interrupted, recover, recover_with};
pub use area::{Listing, Staged, StagingArea};
pub use decision::{Acceptance, Accepted, Closing, Decision, EditSelection, Rejected, Status};
pub use error::{Error, Result};
pub use history::{HistoryEntry, HistoryEvent};
pub use names::{collision_key, live_path, resolvable_name, skill_name, within};
pub use proposal::{
    Base, Cost, DOCUMENT_LIMIT, Document, DocumentKind, Draft, EditStatus, Evidence, FORMAT,
    Finding, GateRecord, ItemDelta, Level, Origin, Proposal, ProposedText, RejectedCandidate,
    StagedEdit,
};
pub use prune::prune_backups;
pub use refusal::{Refusal, RefusalKind};
pub use review::Rejection;
pub use roots::AllowedRoots;
pub use skills::{Lookup, PROJECT_SKILLS, SkillRoots, version_order};
pub use target::{Target, preflight};
pub use text::diff::{DiffLine, LineChange, Span, inline_diff, unified_diff};
pub use text::digest::sha256;
pub use text::display::{display_safe, has_hidden, markdown, one_line, prose, score, table_cell};
pub use text::form::{in_form_of, normal};
pub use text::merge::rebase;
