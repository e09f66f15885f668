//! What a harvest read, and everything that it did not, with the reason.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::redact::Redactor;
use crate::session::Agent;

/// What was wrong with a line that was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// No complete JSON value.
    Torn,
    /// The last line, without a line feed: it may still be being written.
    Unfinished,
    /// Valid JSON that is no object.
    NotAnObject,
    /// Longer than the cap for one line.
    Oversized,
    /// Nested deeper than 128 levels.
    TooDeep,
    /// The file could not be read on from here.
    ReadError,
}

/// What was wrong with a line that could be used nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    /// A byte order mark was stripped.
    Bom,
    /// NUL bytes were stripped.
    Nul,
    /// A carriage return was stripped.
    CarriageReturn,
    /// Invalid UTF-8 was replaced.
    InvalidUtf8,
    /// Half surrogate pairs were replaced.
    LoneSurrogate,
    /// Records without a line feed between them were parted.
    Glued,
}

/// Why a file or folder gave no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// It could not be opened or listed.
    Unreadable,
    /// It was gone when it was its turn.
    Vanished,
    /// A symbolic link, which is never followed.
    SymbolicLink,
    /// No regular file: a pipe, a socket, a device.
    NotAFile,
    /// Deeper than any log lies.
    TooDeep,
    /// Larger than the cap for one file.
    TooLarge,
    /// Nothing in it.
    Empty,
    /// Only metadata: nobody asked anything.
    NoPrompt,
    /// Repeated whole in a later file.
    Superseded,
    /// A sub-agent's, which belongs to its parent session.
    SubAgent,
    /// Another program's own call, or ours.
    Machine,
    /// The same log in a second place.
    Twin,
    /// The session lies outside the wanted projects.
    OutOfScope,
    /// The session ended before the wanted time.
    TooOld,
    /// A database that could not be read.
    Database,
}

impl SkipReason {
    /// Whether something that was looked for may have been missed; the other reasons say that
    /// there was nothing to take.
    #[must_use]
    pub fn is_loss(self) -> bool {
        match self {
            Self::Unreadable
            | Self::Vanished
            | Self::SymbolicLink
            | Self::NotAFile
            | Self::TooDeep
            | Self::TooLarge
            | Self::Database => true,
            Self::Empty
            | Self::NoPrompt
            | Self::Superseded
            | Self::SubAgent
            | Self::Machine
            | Self::Twin
            | Self::OutOfScope
            | Self::TooOld => false,
        }
    }
}

/// One thing that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The file or folder.
    pub file: String,
    /// Why.
    pub reason: SkipReason,
    /// The system's message or a short note; may be empty.
    pub detail: String,
}

/// One line that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedLine {
    /// The file.
    pub file: String,
    /// Where the line starts.
    pub offset: u64,
    /// What was wrong.
    pub flaw: Flaw,
    /// A short note; may be empty.
    pub detail: String,
}

/// How many single skips are listed; the counts go on.
const MOST_LISTED: usize = 500;
/// How many unknown kinds are kept apart.
const MOST_KINDS: usize = 200;

/// The account of a harvest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Log files found.
    pub files_found: u64,
    /// Log files read.
    pub files_read: u64,
    /// Log files that had not changed and were not opened.
    pub files_unchanged: u64,
    /// Bytes read, unpacked.
    pub bytes_read: u64,
    /// Records read.
    pub records: u64,
    /// Sessions handed out.
    pub sessions: u64,
    /// Sessions handed out, by agent.
    pub by_agent: BTreeMap<Agent, u64>,
    /// Files and folders that gave no session, counted by reason.
    pub skip_counts: BTreeMap<SkipReason, u64>,
    /// The first of them.
    pub skipped: Vec<Skipped>,
    /// Lines that were skipped, counted by flaw.
    pub flaw_counts: BTreeMap<Flaw, u64>,
    /// The first of them.
    pub skipped_lines: Vec<SkippedLine>,
    /// Lines that were repaired, counted by kind.
    pub repairs: BTreeMap<Repair, u64>,
    /// Record kinds that no reader knows, as `agent/kind`, counted. A rising count is
    /// how a change of format is noticed.
    pub unknown_kinds: BTreeMap<String, u64>,
    /// Things that a person should look at.
    pub warnings: Vec<String>,
}

impl Report {
    /// Records that a file or folder was skipped.
    pub fn skip(&mut self, file: &Path, reason: SkipReason, detail: &str) {
        *self.skip_counts.entry(reason).or_default() += 1;
        if self.skipped.len() < MOST_LISTED {
            self.skipped.push(Skipped {
                file: file.to_string_lossy().into_owned(),
                reason,
                detail: detail.to_owned(),
            });
        }
    }

    /// Files, folders and lines that may have held something and were not read.
    #[must_use]
    pub fn losses(&self) -> u64 {
        let skipped = self.skip_counts.iter();
        let skipped = skipped.filter(|(reason, _)| reason.is_loss());
        skipped.map(|(_, count)| count).sum::<u64>() + self.flaw_counts.values().sum::<u64>()
    }

    /// Records that a file could not be opened or listed.
    pub fn unreadable(&mut self, file: &Path, error: &std::io::Error) {
        let reason = if error.kind() == std::io::ErrorKind::NotFound {
            SkipReason::Vanished
        } else {
            SkipReason::Unreadable
        };
        self.skip(file, reason, &error.kind().to_string());
    }

    /// Counts a record kind that no reader knows. Names come from logs: only names
    /// that look like names are kept apart.
    pub(crate) fn unknown_kind(&mut self, agent: Agent, kind: &str) {
        let plain = !kind.is_empty()
            && kind.len() <= 48
            && kind
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte));
        let key = format!("{agent}/{}", if plain { kind } else { "?" });
        if self.unknown_kinds.len() < MOST_KINDS || self.unknown_kinds.contains_key(&key) {
            *self.unknown_kinds.entry(key).or_default() += 1;
        }
    }

    /// Takes secrets out of what it names as logs do.
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        for (kind, count) in std::mem::take(&mut self.unknown_kinds) {
            let kind = redactor.redacted(kind).into_string();
            *self.unknown_kinds.entry(kind).or_default() += count;
        }
    }

    /// Takes over what was noted elsewhere, after what was noted here.
    pub fn absorb(&mut self, other: Report) {
        let Report {
            files_found,
            files_read,
            files_unchanged,
            bytes_read,
            records,
            sessions,
            by_agent,
            skip_counts,
            skipped,
            flaw_counts,
            skipped_lines,
            repairs,
            unknown_kinds,
            warnings,
        } = other;
        self.files_found += files_found;
        self.files_read += files_read;
        self.files_unchanged += files_unchanged;
        self.bytes_read += bytes_read;
        self.records += records;
        self.sessions += sessions;
        add(&mut self.by_agent, by_agent);
        add(&mut self.skip_counts, skip_counts);
        add(&mut self.flaw_counts, flaw_counts);
        add(&mut self.repairs, repairs);
        let room = |listed: usize| MOST_LISTED.saturating_sub(listed);
        self.skipped
            .extend(skipped.into_iter().take(room(self.skipped.len())));
        self.skipped_lines.extend(
            skipped_lines
                .into_iter()
                .take(room(self.skipped_lines.len())),
        );
        for (kind, count) in unknown_kinds {
            if self.unknown_kinds.len() < MOST_KINDS || self.unknown_kinds.contains_key(&kind) {
                *self.unknown_kinds.entry(kind).or_default() += count;
            }
        }
        self.warnings.extend(warnings);
    }

    /// How often this reason occurred.
    #[must_use]
    pub fn skips(&self, reason: SkipReason) -> u64 {
        self.skip_counts.get(&reason).copied().unwrap_or_default()
    }

    /// How many lines had this flaw.
    #[must_use]
    pub fn flaws(&self, flaw: Flaw) -> u64 {
        self.flaw_counts.get(&flaw).copied().unwrap_or_default()
    }
}

/// Adds counts to counts.
fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, more: BTreeMap<K, u64>) {
    for (key, count) in more {
        *counts.entry(key).or_default() += count;
    }
}

/// Where the reader of one file tells what it found.
pub(crate) struct Findings<'a> {
    pub(crate) report: &'a mut Report,
    pub(crate) file: &'a Path,
}

impl Findings<'_> {
    /// A line was skipped.
    pub(crate) fn flaw(&mut self, offset: u64, flaw: Flaw, detail: &str) {
        *self.report.flaw_counts.entry(flaw).or_default() += 1;
        if self.report.skipped_lines.len() < MOST_LISTED {
            self.report.skipped_lines.push(SkippedLine {
                file: self.file.to_string_lossy().into_owned(),
                offset,
                flaw,
                detail: detail.to_owned(),
            });
        }
    }

    /// A line was repaired.
    pub(crate) fn repair(&mut self, repair: Repair) {
        *self.report.repairs.entry(repair).or_default() += 1;
    }
}
