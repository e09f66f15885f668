//! The document being trained: parse, protected regions, edits. Pure: no I/O, no async.
//!
//! A skill is one Markdown document. [`edit`] changes it in bounded steps and reports every change
//! ([`edit_report`]); [`region`] keeps the passages that step edits may not touch, and [`appendix`]
//! owns one of them; [`learned`] keeps the block of learnt rules in a person's own `CLAUDE.md` or
//! `AGENTS.md`; [`lint`] says what a reviewer should know of an added text; [`front_matter`] reads and starts a `SKILL.md`; [`hash`] and [`density`] measure a
//! document. [`text`] says what a character and a blank are for all of them.

pub mod appendix;
pub mod density;
pub mod edit;
pub mod edit_report;
pub mod front_matter;
pub mod hash;
pub mod learned;
pub mod lint;
pub mod region;
pub mod text;

pub use edit::{Edit, EditOp, MalformedEdit, apply_edit, apply_patch};
pub use edit_report::{EditReport, EditStatus, EditSummary};
pub use hash::skill_hash;
