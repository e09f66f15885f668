//! The update stage: a selected patch applied to the current skill.

use super::patch::Patch;
use crate::skill::edit::{Edit, EditReport, EditSummary, apply_patch};
use crate::skill::hash::skill_hash;

/// A document with edits applied, and the report of which applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The whole document.
    pub skill: String,
    /// First 16 hex digits of its SHA-256.
    pub hash: String,
    /// The edits that were to be applied, in order.
    pub patch: Patch,
    /// One entry per edit.
    pub reports: Vec<EditReport>,
}

impl Candidate {
    /// Applies the items of `patch` to `skill`, one after another.
    #[must_use]
    pub fn from_patch(skill: &str, patch: Patch) -> Self {
        let (skill, reports) = apply_patch(skill, patch.items.iter().map(Edit::from_fields));
        Self {
            hash: skill_hash(&skill),
            skill,
            patch,
            reports,
        }
    }

    /// Counts by outcome.
    #[must_use]
    pub fn summary(&self) -> EditSummary {
        EditSummary::of(&self.reports)
    }
}
