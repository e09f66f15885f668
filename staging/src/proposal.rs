//! One document's staged change, with all that a person needs to judge it.
//!
//! A proposal is data from models and logs: every text in it is untrusted, and shown only
//! through [`display_safe`](crate::display_safe). The two long texts lie beside the
//! record, as `base.md` and `proposed.md`, where a person can read and compare them with
//! any tool; the record holds their fingerprints.

use std::collections::BTreeSet;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::text::form::normal;

/// The version of the folder's format that this program writes and reads.
pub const FORMAT: u32 = 1;

/// The largest document that is proposed or adopted, in bytes.
pub const DOCUMENT_LIMIT: u64 = 4 * 1024 * 1024;

/// What sort of document it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    /// A skill's `SKILL.md`, or a file of its `references/`.
    Skill,
    /// A memory document: `CLAUDE.md`, `AGENTS.md`.
    Memory,
}

/// The document that a proposal would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// What sort it is.
    pub kind: DocumentKind,
    /// The name a person knows it by: the skill's name, or the file's.
    pub name: String,
    /// Where the agents read it, absolute, as configured; links are not resolved.
    pub path: PathBuf,
    /// Where it really lay when the proposal was made, links resolved. `None` in a draft:
    /// staging looks; `None` in a proposal: it was not there.
    #[serde(default)]
    pub real_path: Option<PathBuf>,
    /// The agents that read it: `claude-code`, `codex`.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// The document as it was when the proposal was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// Whether there was a file.
    pub existed: bool,
    /// Fingerprint of the file's bytes; empty if there was none.
    pub sha256: String,
    /// The file as it was, byte for byte, with its byte order mark and line endings.
    #[serde(skip)]
    pub text: String,
}

impl Base {
    /// No file.
    pub fn absent() -> Base {
        Base {
            existed: false,
            sha256: String::new(),
            text: String::new(),
        }
    }

    /// A file with this content.
    pub fn of(text: impl Into<String>) -> Base {
        let text = text.into();
        Base {
            existed: true,
            sha256: crate::text::digest::sha256(&text),
            text,
        }
    }

    /// The text in the program's form, to be compared with a proposed text.
    pub fn normal(&self) -> String {
        normal(&self.text)
    }
}

/// The text that is proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedText {
    /// Fingerprint of the text.
    pub sha256: String,
    /// The text, in the program's form.
    #[serde(skip)]
    pub text: String,
}

impl ProposedText {
    /// This text, brought into the program's form.
    pub fn of(text: &str) -> ProposedText {
        let text = normal(text);
        ProposedText {
            sha256: crate::text::digest::sha256(&text),
            text,
        }
    }
}

/// Who an edit is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A model proposed it.
    Model,
    /// A person wrote it in review.
    Person,
}

/// What became of an edit when the proposal was put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditStatus {
    /// The proposed text has it.
    Applied,
    /// It changed nothing: its anchor was not found, or the text was there already.
    NoOp,
    /// It was left out, and is shown so that the reader knows.
    Skipped,
}

/// Where an edit comes from: a place in a session's log, quoted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// The task that was mined from the session.
    pub task: String,
    /// The session.
    pub session: String,
    /// The project that the session worked on.
    pub project: String,
    /// The day or moment, as the log says it.
    pub date: String,
    /// What was said, redacted.
    pub quote: String,
    /// The log file.
    pub file: Option<PathBuf>,
    /// The place in the log file, in bytes from its start.
    pub offset: Option<u64>,
}

/// One change of the document within a proposal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StagedEdit {
    /// Its number in the proposal, by which a person accepts or rejects it; from 1.
    pub index: usize,
    /// What it does: `add`, `delete`, `replace`.
    pub op: String,
    /// The part of the document it belongs to.
    #[serde(default)]
    pub target: String,
    /// The text in the document that it refers to.
    #[serde(default)]
    pub anchor: Option<String>,
    /// The new text.
    #[serde(default)]
    pub content: String,
    /// Why.
    #[serde(default)]
    pub rationale: String,
    /// Who it is from.
    pub origin: Origin,
    /// What became of it.
    pub status: EditStatus,
    /// What the gate's score gained by it alone, where that was measured.
    #[serde(default)]
    pub contribution: Option<f64>,
    /// Where it comes from.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
}

/// One item's score before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemDelta {
    /// The item.
    pub id: String,
    /// What the item is about, in a few words.
    #[serde(default)]
    pub label: String,
    /// Its score under the base, 0 to 1; `None` if it was not measured.
    pub baseline: Option<f64>,
    /// Its score under the proposed text; `None` if it was not measured.
    pub candidate: Option<f64>,
}

/// What the gate said of a text, and every score behind it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GateRecord {
    /// The gate's action: `accept_new_best`, `accept`, `reject`, `reject_unverified`.
    pub action: String,
    /// Whether the gate let it pass.
    pub accepted: bool,
    /// The rule that decided, in words.
    pub rule: String,
    /// What was measured: `hard`, `soft`, `mixed`.
    pub metric: String,
    /// Mean score under the base; `None` if it was not measured.
    pub baseline: Option<f64>,
    /// Mean score under the proposed text.
    pub candidate: Option<f64>,
    /// Candidate less baseline.
    pub gain: Option<f64>,
    /// The gain's confidence interval.
    pub interval: Option<(f64, f64)>,
    /// Items that scored higher.
    pub wins: usize,
    /// Items that scored lower.
    pub losses: usize,
    /// Items that scored the same.
    pub ties: usize,
    /// Items that could not be scored on both sides.
    pub not_measured: usize,
    /// Every item.
    pub items: Vec<ItemDelta>,
}

/// Edits that the gate turned down, kept for the reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RejectedCandidate {
    /// The edits.
    pub edits: Vec<StagedEdit>,
    /// What the gate said.
    pub gate: GateRecord,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Worth knowing.
    Note,
    /// A person must look at it.
    Warning,
    /// Not to be adopted unless a person allows this very risk.
    Danger,
}

/// A risk that was found in the added text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule that found it.
    pub rule: String,
    /// How much it matters.
    pub level: Level,
    /// The line of the proposed text, from 1.
    #[serde(default)]
    pub line: Option<usize>,
    /// What was found.
    pub excerpt: String,
}

/// What a proposal cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Calls of models.
    pub calls: u64,
    /// Tokens in and out.
    pub tokens: u64,
    /// United States dollars, where prices are known.
    pub usd: Option<f64>,
}

/// A proposal before it is staged: everything but its id.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The night that made it; also the name of its folder: `n12`.
    pub night: String,
    /// When it was made.
    pub created: Timestamp,
    /// The document it would change.
    pub document: Document,
    /// The document as it was.
    pub base: Base,
    /// The text that is proposed, in any form.
    pub proposed: String,
    /// The changes one by one.
    pub edits: Vec<StagedEdit>,
    /// What the gate said.
    pub gate: GateRecord,
    /// What the gate turned down.
    pub rejected: Vec<RejectedCandidate>,
    /// The risks found.
    pub lint: Vec<Finding>,
    /// What it cost.
    pub cost: Cost,
    /// Whether real tasks confirmed it; if not it is only a suggestion, and is shown so.
    pub verified: bool,
}

/// A staged proposal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The format's version: [`FORMAT`].
    pub format: u32,
    /// The id, short enough to type: `n12-1`.
    pub id: String,
    /// The night that made it.
    pub night: String,
    /// When it was made.
    pub created: Timestamp,
    /// The document it would change.
    pub document: Document,
    /// The document as it was.
    pub base: Base,
    /// The text that is proposed.
    pub proposed: ProposedText,
    /// The changes one by one.
    #[serde(default)]
    pub edits: Vec<StagedEdit>,
    /// What the gate said.
    #[serde(default)]
    pub gate: GateRecord,
    /// What the gate turned down.
    #[serde(default)]
    pub rejected: Vec<RejectedCandidate>,
    /// The risks found.
    #[serde(default)]
    pub lint: Vec<Finding>,
    /// What it cost.
    #[serde(default)]
    pub cost: Cost,
    /// Whether real tasks confirmed it.
    pub verified: bool,
}

impl Proposal {
    /// The numbers of the edits.
    pub fn edit_numbers(&self) -> BTreeSet<usize> {
        self.edits.iter().map(|edit| edit.index).collect()
    }

    /// JSON has no infinity and no "not a number": such a value was not measured. Nor has
    /// it file names that are not UTF-8: those are shown as well as they can be.
    pub(crate) fn drop_impossible_values(&mut self) {
        let rejected = self
            .rejected
            .iter_mut()
            .flat_map(|rejected| &mut rejected.edits);
        for edit in self.edits.iter_mut().chain(rejected) {
            edit.contribution = edit.contribution.filter(|value| value.is_finite());
            for file in edit.evidence.iter_mut().filter_map(|e| e.file.as_mut()) {
                *file = file.to_string_lossy().into_owned().into();
            }
        }
        let gates = std::iter::once(&mut self.gate)
            .chain(self.rejected.iter_mut().map(|rejected| &mut rejected.gate));
        for gate in gates {
            let items = gate
                .items
                .iter_mut()
                .flat_map(|item| [&mut item.baseline, &mut item.candidate]);
            for value in [&mut gate.baseline, &mut gate.candidate, &mut gate.gain]
                .into_iter()
                .chain(items)
            {
                *value = value.filter(|value| value.is_finite());
            }
            gate.interval = gate
                .interval
                .filter(|(low, high)| low.is_finite() && high.is_finite());
        }
        self.cost.usd = self.cost.usd.filter(|value| value.is_finite());
    }
}
