//! A proposal with everything that a reviewer needs: its texts, the live document, the risks.

use std::collections::BTreeSet;

use skillopt_staging::{
    Accepted, DocumentKind, EditStatus, Finding, Staged, StagedEdit, Status, normal, rebase, sha256,
};

use super::screens::Screens;
use crate::night::document::{Document, DocumentKind as NightKind};
use crate::night::risk;
use crate::night::stage::with_edits;

/// The live document, compared with the base of the proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Live {
    /// It is the base.
    AsStaged,
    /// It became something else.
    Changed {
        /// Its bytes as text; empty when it is gone.
        raw: String,
        /// Whether there still is a file.
        exists: bool,
    },
    /// It cannot be read, and why.
    Unreadable(String),
}

impl Live {
    /// Compares the file's text, if there is a file, with what the proposal was made for.
    pub(super) fn of(staged: &Staged, raw: Option<String>) -> Self {
        let base = &staged.proposal.base;
        match raw {
            None if !base.existed => Self::AsStaged,
            Some(text) if base.existed && sha256(&text) == base.sha256 => Self::AsStaged,
            None => Self::Changed {
                raw: String::new(),
                exists: false,
            },
            Some(raw) => Self::Changed { raw, exists: true },
        }
    }
}

/// What was decided about one edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditDecision {
    /// Nothing.
    Undecided,
    /// It is in the approved text.
    Accepted,
    /// It was turned down.
    Rejected,
}

/// A proposal that is looked at.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Opened {
    /// The proposal with its texts and its decision.
    pub(super) staged: Staged,
    /// The live document.
    pub(super) live: Live,
    /// The report of its night; empty when there is none.
    pub(super) report: String,
    /// The text that accepting would write, or that was accepted; none when it no longer fits the
    /// live document.
    pub(super) text: Option<String>,
    /// The risks of that text.
    pub(super) findings: Vec<Finding>,
    /// The edits that no longer fit the live document.
    pub(super) stuck: BTreeSet<usize>,
    /// Whether a text was accepted for a document that became another one since.
    pub(super) stale: bool,
    /// What was worked out to be shown.
    pub(super) screens: Screens,
}

impl Opened {
    /// Puts together what is shown.
    pub(super) fn new(staged: Staged, live: Live, report: String) -> Self {
        let mut opened = Self {
            staged,
            live,
            report,
            text: None,
            findings: Vec::new(),
            stuck: BTreeSet::new(),
            stale: false,
            screens: Screens::default(),
        };
        if matches!(opened.live, Live::Changed { .. }) {
            let numbers = applied(&opened.staged);
            opened.stuck = numbers
                .into_iter()
                .filter(|number| opened.text_of(&BTreeSet::from([*number])).is_none())
                .collect();
        }
        opened.text = match &opened.staged.decision.accepted {
            Some(accepted) => {
                opened.stale = accepted.base_sha256 != opened.replaces();
                if opened.stale {
                    opened.moved(accepted)
                } else {
                    Some(accepted.text.clone())
                }
            }
            None => opened.text_of(&opened.wanted()),
        };
        let text = opened
            .text
            .as_ref()
            .unwrap_or(&opened.staged.proposal.proposed.text);
        opened.findings = risk::of_text(&opened.staged.proposal, &opened.before(), text);
        opened
    }

    /// Its id.
    pub(super) fn id(&self) -> &str {
        &self.staged.proposal.id
    }

    /// The text that a change is compared with: the live document, or the base.
    pub(super) fn before(&self) -> String {
        match &self.live {
            Live::Changed { raw, .. } => normal(raw),
            _ => self.staged.proposal.base.normal(),
        }
    }

    /// The fingerprint of the live document that an approved text replaces, where that is not the
    /// base.
    pub(super) fn base_sha256(&self) -> Option<String> {
        match &self.live {
            Live::Changed { raw, exists: true } => Some(sha256(raw)),
            Live::Changed { .. } => Some(String::new()),
            _ => None,
        }
    }

    /// The fingerprint of the document that an approved text replaces; empty when there is none.
    fn replaces(&self) -> String {
        self.base_sha256()
            .unwrap_or_else(|| self.staged.proposal.base.sha256.clone())
    }

    /// An approved text, put onto a document that changed after the approval.
    fn moved(&self, accepted: &Accepted) -> Option<String> {
        let base = &self.staged.proposal.base;
        if !accepted.edited_by_person {
            return self.text_of(
                &accepted
                    .edits
                    .intersection(&applied(&self.staged))
                    .copied()
                    .collect(),
            );
        }
        let known = accepted.base_sha256 == base.sha256;
        known
            .then(|| rebase(&base.normal(), &accepted.text, &self.before()))
            .flatten()
    }

    /// Every edit that was not turned down.
    pub(super) fn wanted(&self) -> BTreeSet<usize> {
        let edits = applied(&self.staged);
        edits
            .into_iter()
            .filter(|edit| decision(&self.staged, *edit) != EditDecision::Rejected)
            .collect()
    }

    /// The document with just these edits, put onto the live one where that changed; none when they
    /// do not fit it, or cannot be told apart from the others.
    pub(super) fn text_of(&self, edits: &BTreeSet<usize>) -> Option<String> {
        let proposal = &self.staged.proposal;
        let text = if *edits == applied(&self.staged) {
            proposal.proposed.text.clone()
        } else {
            let chosen: Vec<&StagedEdit> = proposal
                .edits
                .iter()
                .filter(|edit| edits.contains(&edit.index))
                .collect();
            let document = Document {
                kind: match proposal.document.kind {
                    DocumentKind::Skill => NightKind::Skill,
                    DocumentKind::Memory => NightKind::Memory,
                },
                name: proposal.document.name.clone(),
                path: proposal.document.path.clone(),
                text: proposal.base.existed.then(|| proposal.base.normal()),
            };
            normal(&with_edits(&document, &chosen).ok()?)
        };
        match &self.live {
            Live::Changed { raw, .. } => rebase(&proposal.base.normal(), &text, &normal(raw)),
            _ => Some(text),
        }
    }
}

/// The numbers of the edits that the proposed text has: those that there is something to decide
/// about.
pub(super) fn applied(staged: &Staged) -> BTreeSet<usize> {
    let edits = staged.proposal.edits.iter();
    edits
        .filter(|edit| edit.status == EditStatus::Applied)
        .map(|edit| edit.index)
        .collect()
}

/// What was decided about an edit.
pub(super) fn decision(staged: &Staged, edit: usize) -> EditDecision {
    let decision = &staged.decision;
    if decision
        .accepted
        .as_ref()
        .is_some_and(|accepted| accepted.edits.contains(&edit))
    {
        EditDecision::Accepted
    } else if decision.rejected_whole
        || decision
            .rejected
            .iter()
            .any(|rejected| rejected.edits.contains(&edit))
    {
        EditDecision::Rejected
    } else {
        EditDecision::Undecided
    }
}

/// The edits that nobody decided about. Empty for a proposal without edits of its own.
pub(super) fn undecided(staged: &Staged) -> BTreeSet<usize> {
    let own_text = staged
        .decision
        .accepted
        .as_ref()
        .is_some_and(|accepted| accepted.edited_by_person);
    if own_text || !staged.status.is_open() {
        return BTreeSet::new();
    }
    let edits = applied(staged);
    edits
        .into_iter()
        .filter(|edit| decision(staged, *edit) == EditDecision::Undecided)
        .collect()
}

/// Whether there is something left to decide.
pub(super) fn waits(staged: &Staged) -> bool {
    staged.status == Status::Pending || !undecided(staged).is_empty()
}
