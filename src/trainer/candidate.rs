//! A document with a step's changes in it, and how it came about.

use serde_json::{Value, json};

use super::patch::Patch;
use super::update_mode::UpdateMode;
use crate::skill::hash::skill_hash;
use crate::skill::{Edit, EditReport, EditSummary, apply_patch};

/// A candidate for the next skill.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The whole document.
    pub skill: String,
    /// First 16 hex digits of its SHA-256.
    pub hash: String,
    /// What was to be carried out, in order.
    pub patch: Patch,
    /// In patch mode one entry per edit: what became of it.
    pub reports: Vec<EditReport>,
    /// In the rewrite modes: the file that records the rewrite, and what it holds.
    pub rewrite: Option<(&'static str, Value)>,
    /// In the rewrite modes: what changed, in the model's words.
    pub change_summary: Option<Vec<String>>,
}

impl Candidate {
    /// Applies the edits of `patch` to `skill`, one after another.
    #[must_use]
    pub fn from_edits(skill: &str, patch: Patch) -> Self {
        let (skill, reports) = apply_patch(skill, patch.items.iter().map(Edit::from_fields));
        Self {
            reports,
            ..Self::whole(skill, patch)
        }
    }

    /// A document that was written as a whole.
    #[must_use]
    pub fn whole(skill: String, patch: Patch) -> Self {
        Self {
            hash: skill_hash(&skill),
            skill,
            patch,
            reports: Vec::new(),
            rewrite: None,
            change_summary: None,
        }
    }

    /// The short form of each item, for those who should know what was tried. An edit that did not
    /// apply as it was asked for has a `status` (W-B3).
    #[must_use]
    pub fn short_forms(&self, mode: UpdateMode) -> Vec<Value> {
        let mut forms: Vec<Value> = self
            .patch
            .items
            .iter()
            .map(|item| mode.short_form(item))
            .collect();
        for (form, report) in forms.iter_mut().zip(&self.reports) {
            if !report.status.is_applied() || report.status.is_fallback() {
                form["status"] = json!(report.status);
            }
        }
        forms
    }

    /// Which edits applied, in numbers; `None` in the rewrite modes.
    #[must_use]
    pub fn summary(&self) -> Option<EditSummary> {
        self.change_summary
            .is_none()
            .then(|| EditSummary::of(&self.reports))
    }
}
