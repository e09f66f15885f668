//! One harvest: all wanted sources, read once, with an account of everything skipped.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::ahead::{self, Ahead, Part};
use crate::lines::{self, Lines};
use crate::node::Node;
use crate::noise;
use crate::records;
use crate::redact::{Door, Redactor, TextLimits};
use crate::report::{Findings, Report, SkipReason};
use crate::scope::ProjectScope;
use crate::session::{Agent, Origin, SESSION_FORMAT, Session};
use crate::source::{Roots, Source, registry};
use crate::stamp::{FileMemory, FileStamp, HEAD_BYTES, head_hash};
use crate::tape::{self, Json, Skip, Tape};
use crate::walk::Found;

/// The text that our own program puts into each of its model calls. A session whose
/// first prompt contains it is never mined.
pub const OWN_CALL_MARKER: &str = "skillopt-sleep:internal-call";

/// Caps that keep a harvest bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest line, in bytes; a longer one is dropped and counted.
    pub line: usize,
    /// Largest file, in bytes; a larger one is skipped and counted.
    pub file: u64,
    /// Most sessions handed out; 0 for no limit.
    pub sessions: usize,
    /// How long kept texts may be.
    pub text: TextLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            line: 64 << 20,
            file: 8 << 30,
            sessions: 0,
            text: TextLimits::default(),
        }
    }
}

/// What to harvest.
#[derive(Clone, Debug, Default)]
pub struct HarvestOptions {
    /// The wanted sources; none for all.
    pub sources: Vec<Agent>,
    /// Only sessions in which something happened at this time or later, or nobody knows when.
    pub since: Option<Timestamp>,
    /// The wanted projects.
    pub projects: ProjectScope,
    /// Caps.
    pub limits: Limits,
    /// What removes secrets.
    pub redactor: Redactor,
    /// Files of earlier harvests: what has not changed since is not opened.
    pub known: FileMemory,
    /// Texts by which first prompts of further programs are known.
    pub program_markers: Vec<String>,
    /// Hand out other programs' own calls as well (with [`Origin::Machine`]).
    pub include_machine: bool,
}

impl HarvestOptions {
    /// Whether somebody wants a session, and why not. One that went to a wanted project
    /// later gets that project ([`ProjectScope::takes`]).
    ///
    /// # Errors
    /// The reason for leaving it out.
    pub fn wants(&self, session: &mut Session) -> Result<(), SkipReason> {
        if session.origin == Origin::Machine && !self.include_machine {
            return Err(SkipReason::Machine);
        }
        if session.origin != Origin::Machine && !session.is_minable() {
            return Err(SkipReason::NoPrompt);
        }
        if !self.projects.takes(session, &self.redactor) {
            return Err(SkipReason::OutOfScope);
        }
        match (self.since, session.last_active()) {
            (Some(since), Some(last)) if last < since => Err(SkipReason::TooOld),
            _ => Ok(()),
        }
    }

    /// Stands for everything that decides what a session read from given files looks like.
    /// Sessions kept under another fingerprint must be read again.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let said = format!(
            "{READERS} {SESSION_FORMAT} {:?} {:?} {}",
            self.limits,
            self.program_markers,
            self.redactor.fingerprint()
        );
        blake3::hash(said.as_bytes()).to_hex().to_string()
    }
}

/// The version of the readers: counted up when one of them gives another session for the
/// same file.
const READERS: u32 = 2;

/// What a harvest brought in.
#[derive(Clone, Debug, Default)]
pub struct Harvest {
    /// Sessions, in the order of sources and files.
    pub sessions: Vec<Session>,
    /// What was read and what was skipped.
    pub report: Report,
    /// Stamps of all files that were seen, for [`HarvestOptions::known`] of the next
    /// harvest.
    pub files: FileMemory,
}

/// The account of a harvest whose sessions were handed to a callback.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// What was read and what was skipped.
    pub report: Report,
    /// Stamps of all files that were seen.
    pub files: FileMemory,
    /// Those of them that were opened: their sessions are the ones that were handed out,
    /// whatever an earlier harvest found in them.
    pub read: Vec<PathBuf>,
}

/// Reads the logs below `roots` into sessions. Never fails: what cannot be read is in
/// the report.
#[must_use]
pub fn harvest(roots: &Roots, options: &HarvestOptions) -> Harvest {
    let mut sessions = Vec::new();
    let account = harvest_each(roots, options, |session| {
        sessions.push(session);
        ControlFlow::Continue(())
    });
    Harvest {
        sessions,
        report: account.report,
        files: account.files,
    }
}

/// As [`harvest`], handing each session to `each` in order, so that only those of about
/// 16 MiB of logs are in memory. Logs are read on all threads of the current `rayon`
/// pool, `each` is called on this one. Ends early when `each` breaks; files that were not reached are not in the
/// returned stamps then.
pub fn harvest_each(
    roots: &Roots,
    options: &HarvestOptions,
    mut each: impl FnMut(Session) -> ControlFlow<()>,
) -> Account {
    let mut run = Run {
        options,
        report: Report::default(),
        files: FileMemory::with_room(options.known.len()),
        read: Vec::new(),
        each: &mut each,
    };
    for source in registry() {
        let agent = source.info().agent;
        if !options.sources.is_empty() && !options.sources.contains(&agent) {
            continue;
        }
        if read_source(*source, roots, &mut run).is_break() {
            break;
        }
    }
    run.report.redact(&options.redactor);
    lines::release();
    tape::release();
    Account {
        report: run.report,
        files: run.files,
        read: run.read,
    }
}

/// Reads all roots of one source. Many files and no session is how a change of format
/// shows: that is worth a warning.
fn read_source(source: &dyn Source, roots: &Roots, run: &mut Run<'_>) -> ControlFlow<()> {
    // A few changed files may well hold nothing; a few files may not be all that there are.
    let suspicious = if run.options.known.is_empty() { 3 } else { 20 };
    let info = source.info();
    let read_before = run.report.files_read;
    let skipped_before = run.outside();
    for root in roots.of(info.agent) {
        source.read(root, run)?;
    }
    let read = run.report.files_read - read_before;
    let kept = run
        .report
        .by_agent
        .get(&info.agent)
        .copied()
        .unwrap_or_default();
    let outside = run.outside() - skipped_before;
    if read >= suspicious && kept == 0 && outside == 0 {
        run.report.warnings.push(format!(
            "{}: {read} files were read but no prompt was found in them; the format may have changed",
            info.title
        ));
    }
    ControlFlow::Continue(())
}

/// A harvest in progress, as a source sees it.
pub struct Run<'a> {
    pub(crate) options: &'a HarvestOptions,
    pub(crate) report: Report,
    pub(crate) files: FileMemory,
    pub(crate) read: Vec<PathBuf>,
    pub(crate) each: &'a mut dyn FnMut(Session) -> ControlFlow<()>,
}

impl<'a> Run<'a> {
    /// The door for all text. It borrows the options, not the run.
    pub(crate) fn door(&self) -> Door<'a> {
        Door {
            redactor: &self.options.redactor,
            limits: &self.options.limits.text,
        }
    }

    /// Reads units of work on all cores and hands their sessions out in the order of
    /// the units, so that the outcome is the one of reading them one by one. `read`
    /// gets a run of its own to note things in, and returns its sessions instead of
    /// emitting them. While one unit's sessions are handed out, later ones are read, as many as
    /// [`Ahead`] has room for.
    pub(crate) fn each_unit<U: Sync>(
        &mut self,
        units: &[U],
        bytes: impl Fn(&U) -> u64,
        read: impl Fn(&U, &mut Run<'_>) -> Vec<Session> + Sync,
    ) -> ControlFlow<()> {
        let options = self.options;
        let read = &read;
        let mut ahead = Ahead::new();
        rayon::in_place_scope_fifo(|scope| {
            let mut waiting = units;
            loop {
                while ahead.has_room()
                    && let Some((batch, rest, size)) = ahead::batch(waiting, &bytes)
                {
                    waiting = rest;
                    let place = ahead.begin(size);
                    scope.spawn_fifo(move |_| {
                        let parts = batch.iter().map(|unit| Part::read(unit, options, read));
                        place.fill(parts.collect());
                    });
                }
                let Some(parts) = ahead.next() else {
                    return ControlFlow::Continue(());
                };
                for part in parts {
                    self.report.absorb(part.report);
                    self.files.absorb(part.files);
                    self.read.extend(part.read);
                    for session in part.sessions {
                        self.emit(session)?;
                    }
                }
            }
        })
    }

    /// Sessions that were left out on purpose.
    fn outside(&self) -> u64 {
        [
            SkipReason::OutOfScope,
            SkipReason::TooOld,
            SkipReason::Machine,
        ]
        .into_iter()
        .map(|reason| self.report.skips(reason))
        .sum()
    }

    /// Whether none of these files changed since they were last read. If so, they are
    /// counted and remembered, and need not be opened.
    pub(crate) fn all_unchanged<'f>(&mut self, files: impl Iterator<Item = &'f Found>) -> bool {
        let known = &self.options.known;
        let unchanged: Option<Vec<_>> = files
            .map(|found| {
                let stamp = known.get(&found.path)?;
                stamp.is_unchanged(&found.stamp).then_some((found, stamp))
            })
            .collect();
        for (found, stamp) in unchanged.iter().flatten() {
            self.report.files_unchanged += 1;
            self.files.insert(found.path.clone(), (*stamp).clone());
        }
        unchanged.is_some()
    }

    /// Remembers a file that gives no session of its own and was not opened, so that it
    /// does not count as new the next time.
    pub(crate) fn remember(&mut self, found: &Found) {
        self.files.insert(found.path.clone(), found.stamp.clone());
    }

    /// Opens a log; what goes wrong is noted.
    pub(crate) fn open(&mut self, found: &Found) -> Option<OpenLog> {
        let log = open_log(found, &self.options.limits, &mut self.report)?;
        self.report.files_read += 1;
        Some(log)
    }

    /// Opens a log that is read on another one's behalf and has its own turn for the
    /// report.
    pub(crate) fn open_aside(&self, found: &Found) -> Option<OpenLog> {
        open_log(found, &self.options.limits, &mut Report::default())
    }

    /// Remembers a log that was read to its end.
    pub(crate) fn close(&mut self, mut log: OpenLog) {
        self.report.bytes_read += log.lines.offset();
        log.stamp.read_to = log.lines.ended_at();
        self.read.push(log.path.clone());
        self.files.insert(log.path, log.stamp);
    }

    /// Hands a session out, unless nobody wants it.
    pub(crate) fn emit(&mut self, mut session: Session) -> ControlFlow<()> {
        if noise::is_program_call(&session, &self.options.program_markers) {
            session.origin = Origin::Machine;
        }
        if let Err(reason) = self.options.wants(&mut session) {
            let file = session.files.first().cloned().unwrap_or_default();
            self.report.skip(Path::new(&file), reason, "");
            return ControlFlow::Continue(());
        }
        self.report.sessions += 1;
        *self.report.by_agent.entry(session.agent).or_default() += 1;
        (self.each)(session)?;
        let most = self.options.limits.sessions as u64;
        if most > 0 && self.report.sessions >= most {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Opens a regular file below the size cap.
fn open_log(found: &Found, limits: &Limits, report: &mut Report) -> Option<OpenLog> {
    if found.stamp.size > limits.file {
        report.skip(&found.path, SkipReason::TooLarge, "");
        return None;
    }
    // The file may have been replaced by a pipe or a link since it was listed.
    match std::fs::symlink_metadata(&found.path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => {
            report.skip(&found.path, SkipReason::NotAFile, "");
            return None;
        }
        Err(error) => {
            report.unreadable(&found.path, &error);
            return None;
        }
    }
    let opened = lines::open(&found.path, found.stamp.size).and_then(|source| {
        let mut lines = Lines::new(source, limits.line);
        let head = head_hash(lines.peek(HEAD_BYTES)?);
        Ok((lines, head))
    });
    match opened {
        Ok((lines, head)) => Some(OpenLog {
            lines,
            path: found.path.clone(),
            stamp: FileStamp {
                head,
                ..found.stamp.clone()
            },
        }),
        Err(error) => {
            report.unreadable(&found.path, &error);
            None
        }
    }
}

/// A log that is being read.
pub(crate) struct OpenLog {
    pub(crate) lines: Lines<Box<dyn Read>>,
    path: PathBuf,
    stamp: FileStamp,
}

impl OpenLog {
    /// Reads every record: its offset and its value without what is skipped. Bad lines
    /// are left out and noted.
    pub(crate) fn each_record(
        &mut self,
        skip: Skip,
        report: &mut Report,
        take: impl FnMut(u64, Node<'_>, &mut Report),
    ) {
        self.read_into(&mut Alike { skip, take }, report);
    }

    /// The same for a reader that decides with each line what it skips.
    pub(crate) fn read_into(&mut self, reader: &mut impl Records, report: &mut Report) {
        let mut tape = Tape::default();
        loop {
            let mut findings = Findings {
                report,
                file: &self.path,
            };
            let Some(line) = self.lines.next_line(&mut findings) else {
                return;
            };
            let skip = reader.skip(line.bytes);
            records::each_of(&line, skip, &mut tape, &mut findings, |record, report| {
                reader.take(line.offset, record, report);
            });
            // What a long line left there goes before another log may have one.
            tape.clear();
        }
    }

    /// Reads a log that is one JSON document, up to `cap` bytes.
    pub(crate) fn whole_document(&mut self, cap: usize, report: &mut Report) -> Option<Json> {
        let mut findings = Findings {
            report,
            file: &self.path,
        };
        let value = self.lines.document(cap, &mut findings)?;
        report.records += 1;
        Some(value)
    }
}

/// Takes the records of a log, one after the other.
pub(crate) trait Records {
    /// What is never looked at of the record in this line.
    fn skip(&self, line: &[u8]) -> Skip;

    /// Takes a record and its offset.
    fn take(&mut self, offset: u64, record: Node<'_>, report: &mut Report);
}

/// Takes all records in the same way.
struct Alike<F> {
    skip: Skip,
    take: F,
}

impl<F: FnMut(u64, Node<'_>, &mut Report)> Records for Alike<F> {
    fn skip(&self, _: &[u8]) -> Skip {
        self.skip
    }

    fn take(&mut self, offset: u64, record: Node<'_>, report: &mut Report) {
        (self.take)(offset, record, report);
    }
}
