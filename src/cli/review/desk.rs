//! Where decisions are taken: the staging area, the live documents, and what stands between them.
//!
//! The flags, the plain prompts and the screens all decide through this one type, so that each way
//! checks and stores the same things.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use skillopt_staging::{
    Acceptance, Adoption, AllowedRoots, Approver, DOCUMENT_LIMIT, EditSelection, Error, Finding,
    PlannedWrite, Staged, StagingArea, Status, adopt, dry_run, sha256,
};

use super::opened::{EditDecision, Live, Opened, applied, decision};
use crate::night::risk;

/// Largest report of a night that is shown, in bytes.
const MAX_REPORT_BYTES: u64 = 4 << 20;

/// Why a decision was not stored.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum DeskError {
    /// The staging area refused it.
    #[error(transparent)]
    Staging(#[from] Error),
    /// The edits do not fit the document any more.
    #[error(
        "{0}: these edits no longer fit the document, which changed meanwhile; accept the others one by one, edit the text (`e`, --edit), or reject"
    )]
    DoesNotFit(String),
    /// A text of the person's own would be lost.
    #[error("{0}: your own text is accepted; reject the proposal first to go back to single edits")]
    OwnText(String),
    /// The editor.
    #[error(transparent)]
    Editor(#[from] super::editor::EditorError),
}

/// What adopting the accepted proposals would do.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::cli) struct Preview {
    /// The files that would be written.
    pub(in crate::cli) writes: Vec<PlannedWrite>,
    /// Proposals that cannot be adopted, and why.
    pub(in crate::cli) refused: Vec<(String, String)>,
    /// Proposals that a rule holds back until it is allowed by name.
    pub(in crate::cli) held: Vec<(String, Vec<String>)>,
}

/// The reviewer's desk.
pub(in crate::cli) struct Desk {
    area: StagingArea,
    state: PathBuf,
    nights: PathBuf,
    roots: AllowedRoots,
}

impl Desk {
    /// A desk over a staging area.
    pub(in crate::cli) fn new(
        area: StagingArea,
        state: &Path,
        nights: PathBuf,
        roots: AllowedRoots,
    ) -> Self {
        Self {
            area,
            state: state.to_owned(),
            nights,
            roots,
        }
    }

    /// The proposal with its texts, the live document and the risks.
    pub(super) fn open(&self, id: &str) -> Result<Opened, DeskError> {
        Ok(self.opened(self.area.load(id)?))
    }

    fn opened(&self, staged: Staged) -> Opened {
        let live = match skillopt_files::read_text(&staged.proposal.document.path, DOCUMENT_LIMIT) {
            Ok(text) => Live::of(&staged, Some(text)),
            Err(error) if error.is_not_found() => Live::of(&staged, None),
            Err(error) => Live::Unreadable(error.to_string()),
        };
        let report = self.report(&staged.proposal.night);
        Opened::new(staged, live, report)
    }

    fn report(&self, night: &str) -> String {
        let number = night
            .strip_prefix('n')
            .and_then(|number| number.parse::<u64>().ok());
        let path = self
            .nights
            .join(format!("night-{:04}", number.unwrap_or(0)))
            .join("report.md");
        skillopt_files::read_text(&path, MAX_REPORT_BYTES).unwrap_or_default()
    }

    /// Accepts just these edits: the text with them is what will be adopted.
    pub(super) fn accept(&self, id: &str, edits: &BTreeSet<usize>) -> Result<Opened, DeskError> {
        let opened = self.open(id)?;
        let all = applied(&opened.staged);
        let text = opened
            .text_of(edits)
            .ok_or_else(|| DeskError::DoesNotFit(id.to_owned()))?;
        let selection = if *edits == all {
            EditSelection::All
        } else {
            EditSelection::Some(edits.iter().copied().collect())
        };
        self.store(&opened, selection, text, false)
    }

    /// Accepts these edits along with those that were accepted before.
    pub(super) fn accept_too(
        &self,
        id: &str,
        edits: &BTreeSet<usize>,
    ) -> Result<Opened, DeskError> {
        let opened = self.open(id)?;
        let accepted = opened.staged.decision.accepted.as_ref();
        if accepted.is_some_and(|accepted| accepted.edited_by_person) {
            return match opened.text.clone().filter(|_| opened.stale) {
                Some(text) => self.accept_text(id, text),
                None if opened.stale => Err(DeskError::DoesNotFit(id.to_owned())),
                None => Err(DeskError::OwnText(id.to_owned())),
            };
        }
        let staged = opened.staged;
        let before = applied(&staged)
            .into_iter()
            .filter(|edit| decision(&staged, *edit) == EditDecision::Accepted);
        self.accept(id, &before.chain(edits.iter().copied()).collect())
    }

    /// Accepts a text that a person wrote.
    pub(super) fn accept_text(&self, id: &str, text: String) -> Result<Opened, DeskError> {
        let opened = self.open(id)?;
        let edits = opened.wanted().into_iter().collect();
        self.store(&opened, EditSelection::Some(edits), text, true)
    }

    fn store(
        &self,
        opened: &Opened,
        edits: EditSelection,
        text: String,
        own: bool,
    ) -> Result<Opened, DeskError> {
        let acceptance = Acceptance {
            edits,
            shown_sha256: sha256(&text),
            text,
            edited_by_person: own,
            base_sha256: opened.base_sha256(),
            at: Timestamp::now(),
        };
        Ok(self.opened(self.area.accept(opened.id(), acceptance)?))
    }

    /// Turns down edits, or with `None` the whole proposal. Other edits stay accepted.
    pub(super) fn reject(
        &self,
        id: &str,
        edits: Option<&BTreeSet<usize>>,
        reason: &str,
    ) -> Result<Opened, DeskError> {
        let before = self.area.load(id)?;
        let selection = match edits {
            None => EditSelection::All,
            Some(edits) => EditSelection::Some(edits.iter().copied().collect()),
        };
        let staged = self.area.reject(id, selection, reason, Timestamp::now())?;
        if let Some(edits) = edits {
            let accepted = before
                .decision
                .accepted
                .as_ref()
                .filter(|accepted| !accepted.edited_by_person);
            let rest: BTreeSet<usize> = accepted
                .map(|accepted| accepted.edits.difference(edits).copied().collect())
                .unwrap_or_default();
            if staged.decision.accepted.is_none() && !rest.is_empty() {
                return self.accept(id, &rest);
            }
        }
        Ok(self.opened(staged))
    }

    /// The text that the person's editor starts from.
    pub(super) fn text_to_edit(&self, opened: &Opened) -> String {
        opened
            .text
            .clone()
            .unwrap_or_else(|| opened.staged.proposal.proposed.text.clone())
    }

    /// What adopting would do with those of `ids` that are accepted.
    pub(in crate::cli) fn preview(
        &self,
        ids: &[String],
        allowed: &[String],
    ) -> Result<Preview, DeskError> {
        let mut preview = Preview::default();
        let mut free: Vec<String> = Vec::new();
        for id in ids {
            let staged = self.area.load(id)?;
            if !matches!(staged.status, Status::Accepted { .. }) {
                continue;
            }
            let risks = self.risks(staged);
            let held: Vec<String> = risk::dangers(&risks)
                .into_iter()
                .filter(|rule| !allowed.iter().any(|name| name == rule))
                .map(str::to_owned)
                .collect();
            if held.is_empty() {
                free.push(id.clone());
            } else {
                preview.held.push((id.clone(), held));
            }
        }
        // What is refused is left out until the rest can be adopted together.
        while !free.is_empty() {
            let plan = self.area.plan(&free, Approver::Person, Timestamp::now())?;
            let planned = dry_run(&plan, &self.state, &self.roots)?;
            if planned.refusals.is_empty() {
                preview.writes = planned.writes;
                break;
            }
            let count = free.len();
            for (id, refusal) in planned.refusals {
                free.retain(|other| *other != id);
                preview.refused.push((id, refusal.to_string()));
            }
            if free.len() == count {
                break;
            }
        }
        Ok(preview)
    }

    /// The risks of the text that was accepted, against what it replaces.
    pub(in crate::cli) fn risks(&self, staged: Staged) -> Vec<Finding> {
        self.opened(staged).findings
    }

    /// Adopts what a preview showed.
    pub(super) fn adopt(&self, preview: &Preview) -> Result<Adoption, DeskError> {
        let ids: Vec<&str> = preview
            .writes
            .iter()
            .map(|write| write.proposal.as_str())
            .collect();
        let plan = self.area.plan(&ids, Approver::Person, Timestamp::now())?;
        Ok(adopt(&plan, &self.state, &self.roots)?)
    }
}
