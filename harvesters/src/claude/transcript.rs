//! One file of Claude Code, read into rows.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use jiff::Timestamp;

use crate::clock;
use crate::harvest::Run;
use crate::node::Node;
use crate::redact::{Door, Redacted};
use crate::report::{Report, SkipReason};
use crate::session::Agent;
use crate::walk::Found;

use super::attachment;
use super::queue::Queue;
use super::results;
use super::row::{self, Row, RowKind, key};
use super::user;

/// A file's rows and what its records say about the session as a whole.
pub(super) struct Transcript {
    pub(super) path: PathBuf,
    pub(super) rows: Vec<Row>,
    /// Ids of records, hashed.
    pub(super) record_ids: HashSet<u64>,
    /// Ids of model messages, hashed.
    pub(super) message_ids: HashSet<u64>,
    /// First time in file order, metadata lines included.
    pub(super) written_from: Option<Timestamp>,
    pub(super) version: Option<Redacted>,
    pub(super) entrypoint: Option<Redacted>,
    pub(super) project: Option<Redacted>,
    pub(super) branch: Option<Redacted>,
    pub(super) title: Option<Redacted>,
    pub(super) cost_usd: Option<f64>,
    /// The session id that the records name.
    pub(super) session_id: Option<Redacted>,
    rows_by_id: HashMap<u64, usize>,
    queue: Queue,
    /// Rows that were made up for messages that only the queue tells of.
    absorbed: Vec<usize>,
}

impl Transcript {
    /// Reads a file. None when it cannot be opened or has no record at all.
    pub(super) fn read(file: &Found, run: &mut Run<'_>) -> Option<Transcript> {
        let door = run.door();
        let mut log = run.open(file)?;
        let mut transcript = Transcript::empty(file.path.clone());
        log.each_record(skipped, &mut run.report, |offset, record, report| {
            transcript.add(offset, record, door, report);
        });
        let empty = log.lines.offset() == 0;
        run.close(log);
        if transcript.rows.is_empty() {
            let reason = if empty {
                SkipReason::Empty
            } else {
                SkipReason::NoPrompt
            };
            run.report.skip(&file.path, reason, "");
            return None;
        }
        Some(transcript)
    }

    fn empty(path: PathBuf) -> Self {
        Transcript {
            path,
            rows: Vec::new(),
            record_ids: HashSet::new(),
            message_ids: HashSet::new(),
            written_from: None,
            version: None,
            entrypoint: None,
            project: None,
            branch: None,
            title: None,
            cost_usd: None,
            session_id: None,
            rows_by_id: HashMap::new(),
            queue: Queue::default(),
            absorbed: Vec::new(),
        }
    }

    /// The session's id is the name of its file: records may name others.
    pub(super) fn id(&self) -> String {
        self.path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Whether the release that wrote the file resumed into a copy and had no forks: up to
    /// 1.0.117. Later ones go on in the same file, and a copy is a fork.
    pub(super) fn resumes_by_copy(&self) -> bool {
        const LAST: u32 = 117;
        let version = self.version.as_deref().unwrap_or_default();
        let patch = version.strip_prefix("1.0.").map(str::parse::<u32>);
        matches!(patch, Some(Ok(patch)) if patch <= LAST)
    }

    /// All ids by which a record can be recognised in another file.
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        self.record_ids.iter().chain(&self.message_ids).copied()
    }

    /// The time of the last record.
    pub(super) fn own_from(&self) -> Option<Timestamp> {
        self.rows.iter().filter_map(|row| row.at).max()
    }

    /// Takes one record in.
    fn add(&mut self, offset: u64, record: Node<'_>, door: Door<'_>, report: &mut Report) {
        let at = clock::time(record.get("timestamp"));
        self.written_from = self.written_from.or(at);
        let kind = record.get("type").str().unwrap_or_default();
        match kind {
            "user" | "assistant" => {
                if !record.get("isSidechain").is_true() {
                    self.note_circumstances(record, door);
                }
                self.add_row(offset, at, record, kind, door);
            }
            "system" | "attachment" => {
                self.note_circumstances(record, door);
                self.add_row(offset, at, record, kind, door);
            }
            "queue-operation" => {
                if let Some(message) = self.queue.take(record) {
                    self.add_absorbed(offset, at, &message, door);
                }
            }
            "summary" => self.note_title(record.get("summary"), door),
            "ai-title" => self.note_title(record.get("aiTitle"), door),
            "custom-title" => self.note_title(record.get("customTitle"), door),
            "cost-state" => self.cost_usd = record.get("totalCostUSD").float().or(self.cost_usd),
            known if IGNORED.contains(&known) => {}
            unknown => report.unknown_kind(Agent::Claude, unknown),
        }
    }

    fn note_title(&mut self, title: Node<'_>, door: Door<'_>) {
        if let Some(text) = title.text() {
            self.title = Some(door.note(text));
        }
    }

    /// Circumstances of the session: the first record that names them counts.
    fn note_circumstances(&mut self, record: Node<'_>, door: Door<'_>) {
        note(&mut self.version, record.get("version"), door);
        note(&mut self.entrypoint, record.get("entrypoint"), door);
        note(&mut self.project, record.get("cwd"), door);
        note(&mut self.branch, record.get("gitBranch"), door);
        note(&mut self.session_id, record.get("sessionId"), door);
    }

    /// Adds a row, unless its record was there before: then the richer of the two stays.
    fn add_row(
        &mut self,
        offset: u64,
        at: Option<Timestamp>,
        record: Node<'_>,
        kind: &str,
        door: Door<'_>,
    ) {
        let parent = record
            .get("parentUuid")
            .text()
            .or_else(|| record.get("logicalParentUuid").text())
            .map(key);
        let above = parent.and_then(|id| self.row_of(id));
        let new = Row {
            offset,
            at,
            id: record.get("uuid").text().map(key),
            parent,
            sidechain: record.get("isSidechain").is_true(),
            kind: user::below(
                above.map(|above| &self.rows[above].kind),
                row::classify(record, kind, door),
            ),
        };
        if let RowKind::Assistant(message) = &new.kind
            && let Some(id) = message.id
            && !new.sidechain
        {
            self.message_ids.insert(id);
        }
        match &new.kind {
            // Nobody tells of it any more.
            RowKind::Assistant(_) => self.absorbed.clear(),
            kind => self.drop_absorbed(kind),
        }
        let Some(id) = new.id else {
            self.rows.push(new);
            return;
        };
        self.record_ids.insert(id);
        match self.rows_by_id.get(&id) {
            Some(first) => {
                let first = &mut self.rows[*first];
                if row::is_richer(&new.kind, &first.kind) {
                    first.kind = new.kind;
                }
            }
            None => {
                self.rows_by_id.insert(id, self.rows.len());
                self.rows.push(new);
            }
        }
    }

    /// Adds a row for a message that the model was given, and that has no record.
    fn add_absorbed(&mut self, offset: u64, at: Option<Timestamp>, message: &str, door: Door<'_>) {
        self.absorbed.push(self.rows.len());
        self.rows.push(Row {
            offset,
            at,
            id: None,
            parent: None,
            sidechain: false,
            kind: attachment::absorbed(message, 0, true, door),
        });
    }

    /// A record tells of a message after all: the row that was made up for it goes.
    fn drop_absorbed(&mut self, told: &RowKind) {
        let RowKind::Prompt { text: told, .. } = told else {
            return;
        };
        let rows = &mut self.rows;
        self.absorbed.retain(|index| {
            let made_up = &mut rows[*index].kind;
            let is_told = matches!(made_up, RowKind::Prompt { text, .. } if text == told);
            if is_told {
                *made_up = RowKind::Link;
            }
            !is_told
        });
    }

    /// The row of a record id.
    pub(super) fn row_of(&self, id: u64) -> Option<usize> {
        self.rows_by_id.get(&id).copied()
    }
}

/// Keeps the first text that is told.
fn note(field: &mut Option<Redacted>, told: Node<'_>, door: Door<'_>) {
    if field.is_none() {
        *field = told.text().map(|text| door.note(text));
    }
}

/// What is never looked at and may be long: the structured copy of a result but for a
/// few facts, reasoning, and what a record kind without a conversation holds.
fn skipped(parent: &str, key: &str) -> bool {
    match parent {
        "toolUseResult" => !results::STRUCTURED.contains(&key),
        "content" => matches!(key, "thinking" | "signature"),
        "" => matches!(key, "snapshot" | "rendered"),
        _ => false,
    }
}

/// Record kinds that are known and hold nothing of the conversation (section 2.3).
/// `api-request*` repeat it with roles: never look inside.
const IGNORED: &[&str] = &[
    "agent-name",
    "agent-color",
    "tag",
    "pr-link",
    "last-prompt",
    "file-history-snapshot",
    "file-history-delta",
    "mode",
    "permission-mode",
    "tools-used",
    "atis-latch",
    "api-request",
    "api-request-shape",
    "api-request-blob",
    "progress",
    "fork-context-ref",
    "derived-from",
    "continued-in",
    "content-replacement",
    "worktree-state",
    "bridge-session",
    "memory-mode",
    "session-owner",
    "history-suppression",
    "isolation-latch",
    "dev-mods",
    "ended-by-model",
    "frame-link",
    "resume-head-vouch",
    "data-flow-records",
    "artifact-comment-monitor",
];
