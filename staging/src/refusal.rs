//! Why something was not done: a stable word for programs, a sentence for people.

use serde::Serialize;

/// Makes the enum and the word of each variant from one table.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)*) => {
        /// The reason of a refusal, as a word that does not change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        #[non_exhaustive]
        pub enum RefusalKind {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)*
        }

        impl RefusalKind {
            /// The word, for scripts.
            pub fn as_str(self) -> &'static str {
                match self { $(RefusalKind::$variant => $word,)* }
            }
        }
    };
}

kinds! {
    /// The path is relative, has `..` or control characters, or is not a Markdown file.
    LivePathUnsafe = "live_path_unsafe",
    /// The file name is not one that agents read.
    LiveBasename = "live_basename",
    /// A link that leads nowhere or in a circle.
    LiveSymlink = "live_symlink",
    /// The document really lies outside every directory that configuration allows.
    LiveOutsideRoots = "live_outside_roots",
    /// A pipe, device, socket or directory is in the document's place.
    LiveNotFile = "live_not_file",
    /// The file has a second name, which would be left behind.
    LiveHardlinked = "live_hardlinked",
    /// The file's permissions say that it is not to be written.
    LiveReadOnly = "live_read_only",
    /// The directory takes no new files from us.
    LiveDirectoryReadOnly = "live_directory_read_only",
    /// The file belongs to somebody else.
    LiveForeignOwner = "live_foreign_owner",
    /// A package manager owns the file.
    LiveStore = "live_store",
    /// The file is larger than documents may be.
    LiveTooLarge = "live_too_large",
    /// The file is not UTF-8.
    LiveNotUtf8 = "live_not_utf8",
    /// The file cannot be read.
    LiveUnreadable = "live_unreadable",
    /// Something other than a directory is above a document that is to be created.
    AncestorUnsafe = "ancestor_unsafe",
    /// The document changed since the proposal was made.
    LiveDrift = "live_drift",
    /// The path leads to another file than it did when the proposal was made.
    LiveMoved = "live_moved",
    /// Two proposals of one adoption lead to one file.
    LiveTargetCollision = "live_target_collision",
    /// The document already is what the proposal would make of it.
    NothingToChange = "nothing_to_change",
    /// No proposal matches.
    ProposalUnknown = "proposal_unknown",
    /// Several proposals match.
    ProposalAmbiguous = "proposal_ambiguous",
    /// A file of the proposal is missing or cannot be read.
    ProposalUnreadable = "proposal_unreadable",
    /// The proposal was written by another version of this program.
    ProposalFormat = "proposal_format",
    /// A file of the proposal has impossible content.
    ProposalInvalid = "proposal_invalid",
    /// A text of the proposal is not the one that was staged.
    ProposalHashMismatch = "proposal_hash_mismatch",
    /// The proposal has nothing in it.
    ProposalEmpty = "proposal_empty",
    /// The proposal's text is larger than documents may be.
    ProposalTooLarge = "proposal_too_large",
    /// The proposal changed after it was approved.
    ProposalChanged = "proposal_changed",
    /// Nobody accepted the proposal.
    ProposalNotAccepted = "proposal_not_accepted",
    /// The proposal is not one that may be adopted without a person.
    NeedsPerson = "needs_person",
    /// The text has a risk that only a person may accept.
    RiskNeedsPerson = "risk_needs_person",
    /// The proposal was superseded or expired.
    ProposalClosed = "proposal_closed",
    /// The proposal has been adopted before.
    AlreadyAdopted = "already_adopted",
    /// The text is not the one that was shown and approved.
    ApprovalMismatch = "approval_mismatch",
    /// The decision's file is not as this program wrote it.
    DecisionInvalid = "decision_invalid",
    /// A proposal is selected twice.
    SelectionDuplicate = "selection_duplicate",
    /// The proposal has no edit of that number.
    EditUnknown = "edit_unknown",
    /// The night's name cannot be a folder's name.
    NightUnsafe = "night_unsafe",
    /// The document was saved by somebody else in the very moment.
    ChangedInTransaction = "changed_in_transaction",
    /// The document was saved by somebody else right after it was written.
    ChangedAfterPublication = "changed_after_publication",
    /// The journal of an interrupted adoption is not as this program wrote it.
    JournalInvalid = "journal_invalid",
    /// An interrupted adoption cannot be undone.
    RecoveryFailed = "recovery_failed",
    /// No adoption matches.
    AdoptionUnknown = "adoption_unknown",
    /// The adoption's record is not as this program wrote it.
    ReceiptInvalid = "receipt_invalid",
    /// The adoption has been reverted before.
    AlreadyReverted = "already_reverted",
    /// The document changed where the adoption had changed it.
    RevertConflict = "revert_conflict",
    /// The saved original is gone.
    BackupMissing = "backup_missing",
    /// The saved original is not what was saved.
    BackupChanged = "backup_changed",
    /// The key that seals this program's records cannot be used.
    KeyUnusable = "key_unusable",
}

impl std::fmt::Display for RefusalKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Something that was not done, before any harm was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{subject}: {reason}")]
pub struct Refusal {
    /// The reason as a word.
    pub kind: RefusalKind,
    /// What it is about: a path, a proposal's id. Safe to show.
    pub subject: String,
    /// What is wrong and what to do next. Safe to show.
    pub reason: String,
}

impl Refusal {
    pub(crate) fn new(
        kind: RefusalKind,
        subject: impl std::fmt::Display,
        reason: impl std::fmt::Display,
    ) -> Refusal {
        Refusal {
            kind,
            subject: on_one_line(&subject.to_string()),
            reason: on_one_line(&reason.to_string()),
        }
    }

    pub(crate) fn path(
        kind: RefusalKind,
        path: &std::path::Path,
        reason: impl std::fmt::Display,
    ) -> Refusal {
        Refusal::new(kind, path.display(), reason)
    }
}

/// [`display_safe`](crate::display_safe), with line ends shown by number too: a path that has one
/// may not make a second message of what follows.
fn on_one_line(text: &str) -> String {
    crate::display_safe(text).replace('\n', "<U+000A>")
}
