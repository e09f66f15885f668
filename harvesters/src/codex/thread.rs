//! The lines of a thread: of all its files in order, with what is dead and what was
//! copied from another thread marked (session-logs.md, section 3.6).

use std::collections::HashSet;

use crate::harvest::{OpenLog, Records, Run};
use crate::node::Node;
use crate::redact::{Door, Redacted};
use crate::report::Report;
use crate::tape::Skip;

use super::fact::{Fact, Line, Meta};
use super::files::{RolloutFile, ThreadFiles, Threads};
use super::line;

/// A thread, read.
pub(super) struct Thread {
    pub(super) lines: Vec<Marked>,
    /// The head of the thread's first file.
    pub(super) meta: Meta,
}

/// A line and its standing.
pub(super) struct Marked {
    pub(super) line: Line,
    /// The person went back beyond it.
    pub(super) dead: bool,
    /// It belongs to the thread that this one was forked from.
    pub(super) inherited: bool,
}

impl Thread {
    /// Reads a thread's files; none when none of them has a line.
    pub(super) fn read(
        thread: &ThreadFiles,
        threads: &Threads,
        run: &mut Run<'_>,
    ) -> Option<Thread> {
        let door = run.door();
        let mut lines = Vec::new();
        for (index, file) in thread.files.iter().enumerate() {
            let Some(mut log) = run.open(&file.found) else {
                continue;
            };
            read_file(index, &mut log, false, door, &mut run.report, &mut lines);
            run.close(log);
        }
        let mut thread = Thread::of(lines)?;
        thread.mark_copies(threads, run);
        Some(thread)
    }

    /// Reads a thread for the sake of one that was forked from it.
    fn read_aside(files: &[RolloutFile], run: &Run<'_>) -> Option<Thread> {
        let door = run.door();
        let mut report = Report::default();
        let mut lines = Vec::new();
        for (index, file) in files.iter().enumerate() {
            if let Some(mut log) = run.open_aside(&file.found) {
                read_file(index, &mut log, true, door, &mut report, &mut lines);
            }
        }
        Thread::of(lines)
    }

    fn of(lines: Vec<Line>) -> Option<Thread> {
        let mut lines: Vec<Marked> = lines
            .into_iter()
            .map(|line| Marked {
                line,
                dead: false,
                inherited: false,
            })
            .collect();
        if lines.is_empty() {
            return None;
        }
        let meta = lines
            .iter_mut()
            .flat_map(|marked| &mut marked.line.facts)
            .find_map(|fact| match fact {
                Fact::Meta(meta) => Some(std::mem::take(&mut **meta)),
                _ => None,
            })
            .unwrap_or_default();
        let mut thread = Thread { lines, meta };
        thread.mark_segments();
        Some(thread)
    }

    /// A segment goes on from an ordinal: later lines of earlier files are dead.
    fn mark_segments(&mut self) {
        let ends: Vec<(u32, u64)> = self
            .lines
            .iter()
            .filter(|marked| marked.line.file > 0)
            .flat_map(|marked| {
                marked
                    .line
                    .facts
                    .iter()
                    .map(move |fact| (marked.line.file, fact))
            })
            .filter_map(|(file, fact)| match fact {
                Fact::Meta(meta)
                    if meta.id.is_none() || meta.id == self.meta.id || self.meta.id.is_none() =>
                {
                    meta.base.as_ref().map(|(_, end)| (file, *end))
                }
                _ => None,
            })
            .collect();
        for marked in &mut self.lines {
            let line = &marked.line;
            marked.dead |= ends.iter().any(|(file, end)| {
                line.file < *file && line.ordinal.is_some_and(|ordinal| ordinal >= *end)
            });
        }
    }

    /// A legacy fork repeats its parent's lines after its own head: everything up to the
    /// last copied line is the parent's. Before heads named the parent, its own head among
    /// the copies did.
    fn mark_copies(&mut self, threads: &Threads, run: &Run<'_>) {
        let foreign = |marked: &Marked| {
            let facts = marked.line.facts.iter().filter(|_| marked.line.file == 0);
            let ids = facts.filter_map(|fact| match fact {
                Fact::Meta(meta) => meta.id.clone(),
                _ => None,
            });
            ids.into_iter().find(|id| Some(id) != self.meta.id.as_ref())
        };
        let lines = self.lines.iter().enumerate().skip(1);
        let mut heads = lines.filter_map(|(index, marked)| Some((index, foreign(marked)?)));
        let Some((first, parent)) = heads.next().filter(|_| self.meta.base.is_none()) else {
            return;
        };
        let head = heads.next_back().map_or(first, |(last, _)| last);
        let parent = self.meta.forked_from.get_or_insert(parent);
        let parent = threads
            .get(parent)
            .and_then(|files| Thread::read_aside(&files.files, run));
        let end = match parent {
            Some(parent) => self.copied_from(&parent),
            None => self.older_than_start(),
        };
        for marked in &mut self.lines[1..=end.max(head)] {
            marked.inherited = true;
        }
    }

    /// The last line that the parent has as well, in a run of copies from the start. What
    /// the parent wrote after the fork may be the same as what the fork did, and is no copy.
    fn copied_from(&self, parent: &Thread) -> usize {
        // Copies may leave a few lines out or add some.
        const MOST_STRANGE: usize = 8;
        let start = self.meta.started.or(self.lines[0].line.at);
        let payloads = |before_fork: bool| -> HashSet<u64> {
            let known = parent.lines.iter().filter(|marked| {
                let later = marked
                    .line
                    .at
                    .zip(start)
                    .is_some_and(|(at, start)| at > start);
                !(before_fork && later)
            });
            known.map(|marked| marked.line.payload).collect()
        };
        let known = match payloads(true) {
            // Times that were changed say nothing.
            none if none.is_empty() => payloads(false),
            known => known,
        };
        let mut last = 0;
        let mut strange = 0;
        for (index, marked) in self.lines.iter().enumerate().skip(1) {
            if known.contains(&marked.line.payload) {
                last = index;
                strange = 0;
            } else {
                strange += 1;
                if strange > MOST_STRANGE {
                    break;
                }
            }
        }
        last
    }

    /// The last line that was written before the thread's own start.
    fn older_than_start(&self) -> usize {
        let start = self.meta.started.or(self.lines[0].line.at);
        self.lines
            .iter()
            .rposition(|marked| {
                marked
                    .line
                    .at
                    .zip(start)
                    .is_some_and(|(at, start)| at < start)
            })
            .unwrap_or(0)
    }

    /// The history that a paginated fork refers to: the lines of other threads before
    /// it, oldest thread first. Each comes with the id of its thread.
    pub(super) fn history(&self, threads: &Threads, run: &Run<'_>) -> Vec<(String, Vec<Marked>)> {
        const DEEPEST: usize = 8;
        let mut history = Vec::new();
        let own = self.meta.id.clone().unwrap_or_default().into_string();
        let mut seen = vec![own];
        let mut base = self.meta.base.clone();
        while let Some((id, end)) = base.take() {
            if seen.contains(&id) || seen.len() > DEEPEST {
                break;
            }
            let Some(parent) = threads
                .get(&id)
                .and_then(|files| Thread::read_aside(&files.files, run))
            else {
                break;
            };
            let lines = parent
                .lines
                .into_iter()
                .filter(|marked| {
                    !marked.dead && marked.line.ordinal.is_none_or(|ordinal| ordinal < end)
                })
                .collect();
            base = parent.meta.base;
            history.push((id.clone(), lines));
            seen.push(id);
        }
        history.reverse();
        history
    }
}

/// Reads one file's lines.
fn read_file(
    index: usize,
    log: &mut OpenLog,
    is_parent: bool,
    door: Door<'_>,
    report: &mut Report,
    lines: &mut Vec<Line>,
) {
    let mut reader = FileReader {
        file: u32::try_from(index).unwrap_or(u32::MAX),
        door,
        hashed: true,
        has_head: is_parent,
        own_id: None,
        ordinals: HashSet::new(),
        told: HashSet::new(),
        lines,
    };
    log.read_into(&mut reader, report);
}

/// Takes the lines of one file in.
struct FileReader<'a> {
    file: u32,
    door: Door<'a>,
    /// Payloads are compared between a fork and its parent only: a thread that names none
    /// needs no hashes.
    hashed: bool,
    has_head: bool,
    own_id: Option<Redacted>,
    /// A repeated ordinal is a repeated line.
    ordinals: HashSet<u64>,
    /// Calls that items told everything of.
    told: HashSet<Redacted>,
    lines: &'a mut Vec<Line>,
}

impl FileReader<'_> {
    /// Whether the line is the output of a call that an item told of.
    fn is_told(&self, line: &[u8]) -> bool {
        // Where programs write it; elsewhere it costs time and nothing else.
        const HEAD: usize = 400;
        const BEFORE_ID: &[u8] = b"_call_output\",\"call_id\":\"";
        if self.told.is_empty() {
            return false;
        }
        let head = &line[..line.len().min(HEAD)];
        let Some(at) = memchr::memmem::find(head, BEFORE_ID) else {
            return false;
        };
        let id = &head[at + BEFORE_ID.len()..];
        let id = memchr::memchr(b'"', id).and_then(|end| std::str::from_utf8(&id[..end]).ok());
        id.is_some_and(|id| self.told.contains(id))
    }
}

impl Records for FileReader<'_> {
    fn skip(&self, line: &[u8]) -> Skip {
        if self.hashed {
            skipped
        } else if self.is_told(line) {
            unread_or_told
        } else {
            unread
        }
    }

    fn take(&mut self, offset: u64, record: Node<'_>, report: &mut Report) {
        let context = line::Context {
            file: self.file,
            hashed: self.hashed,
            told: &self.told,
            door: self.door,
        };
        let line = line::read(record, offset, context, report);
        let told = line.facts.iter().filter_map(Fact::settles);
        self.told.extend(told.cloned());
        let head = line.facts.iter().find_map(|fact| match fact {
            Fact::Meta(meta) => Some(meta),
            _ => None,
        });
        match head {
            Some(meta) if !self.has_head => {
                self.has_head = true;
                self.hashed = meta.forked_from.is_some();
                self.own_id.clone_from(&meta.id);
            }
            Some(meta) if meta.id != self.own_id => self.hashed = true,
            _ => {}
        }
        let ordinals = &mut self.ordinals;
        if line.ordinal.is_none_or(|ordinal| ordinals.insert(ordinal)) {
            self.lines.push(line);
        }
    }
}

/// What is never looked at and may be long: the program's own instructions and what a
/// command printed, in a second form. Reasoning stays: copies are recognised by it.
fn skipped(parent: &str, key: &str) -> bool {
    match parent {
        "payload" => key == "base_instructions",
        "item" => matches!(key, "stdout" | "stderr" | "formatted_output"),
        _ => false,
    }
}

/// The same where no line is compared with another thread's.
fn unread(parent: &str, key: &str) -> bool {
    skipped(parent, key)
        || match parent {
            "payload" => matches!(
                key,
                "encrypted_content"
                    | "summary"
                    | "last_agent_message"
                    | "rate_limits"
                    | "replacement_history"
                    | "thread_token_usage"
            ),
            // Changes stand under the path of their file.
            _ => key == "unified_diff",
        }
}

/// The same in the output of a call that an item told everything of.
fn unread_or_told(parent: &str, key: &str) -> bool {
    parent == "payload" && key == "output" || unread(parent, key)
}
