//! What became of the edits of a patch (engine 12.1).
//!
//! Every edit leaves one entry, whether it was applied or not, because the optimizer learns from
//! the ones that were not.

use serde::{Deserialize, Serialize};

/// What became of an edit. Names are those of engine 12.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditStatus {
    /// Added at the end.
    AppliedAppend,
    /// Added before the first protected region.
    AppliedAppendBeforeProtectedRegion,
    /// Added after the target's line.
    AppliedInsertAfter,
    /// No target found: added at the end instead.
    AppliedInsertAfterFallbackAppend,
    /// No target found: added before the first protected region instead.
    AppliedInsertAfterFallbackBeforeProtectedRegion,
    /// The target was replaced.
    AppliedReplace,
    /// The target was removed.
    AppliedDelete,
    /// The edit would have changed a protected region, or made or unmade one.
    SkippedProtectedRegion,
    /// A replacement of nothing.
    SkippedReplaceMissingTarget,
    /// The text to replace is not there.
    SkippedReplaceTargetNotFound,
    /// A deletion of nothing.
    SkippedDeleteMissingTarget,
    /// The text to delete is not there.
    SkippedDeleteTargetNotFound,
    /// An operation that does not exist.
    SkippedUnknownOp,
    /// The item was no edit at all.
    Error,
}

impl EditStatus {
    /// Whether the edit was applied, be it at another place than asked.
    #[must_use]
    pub fn is_applied(self) -> bool {
        matches!(
            self,
            EditStatus::AppliedAppend
                | EditStatus::AppliedAppendBeforeProtectedRegion
                | EditStatus::AppliedInsertAfter
                | EditStatus::AppliedReplace
                | EditStatus::AppliedDelete
        ) || self.is_fallback()
    }

    /// Whether the edit was applied at another place than asked (W-E4).
    #[must_use]
    pub fn is_fallback(self) -> bool {
        matches!(
            self,
            EditStatus::AppliedInsertAfterFallbackAppend
                | EditStatus::AppliedInsertAfterFallbackBeforeProtectedRegion
        )
    }
}

/// One entry of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditReport {
    /// The edit's position in the patch, from 1.
    pub index: usize,
    /// Its operation; empty when it was no edit.
    pub op: String,
    /// The first 200 code points of its target.
    pub target: String,
    /// The first 200 code points of its content, as it was applied.
    pub content_preview: String,
    /// What became of it.
    pub status: EditStatus,
    /// Whether the document is different after it. An applied edit that changes nothing is worth
    /// telling the optimizer (W-E4).
    #[serde(default)]
    pub changed: bool,
    /// Why it was no edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a patch went, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditSummary {
    /// Edits in the patch.
    pub total: usize,
    /// Edits that were applied.
    pub applied: usize,
    /// Edits that were refused.
    pub skipped: usize,
    /// Items that were no edits.
    pub errors: usize,
}

impl EditSummary {
    /// Counts a report.
    #[must_use]
    pub fn of(report: &[EditReport]) -> EditSummary {
        let mut summary = EditSummary {
            total: report.len(),
            ..EditSummary::default()
        };
        for entry in report {
            match entry.status {
                EditStatus::Error => summary.errors += 1,
                status if status.is_applied() => summary.applied += 1,
                _ => summary.skipped += 1,
            }
        }
        summary
    }
}
