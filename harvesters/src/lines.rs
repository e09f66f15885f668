//! Bytes to lines (session-logs.md, rules 2 and 3).
//!
//! A [`Lines`] walks a log line by line in bounded memory. A bad line costs itself and
//! never the file: what was wrong is told to a [`Findings`] and reading goes on.
//! Nothing is ever read past the size that the file had when it was opened, so a log
//! that grows while it is read cannot keep the reader busy.

use std::cell::Cell;
use std::io::Read;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::records::flaw_of;
use crate::report::{Findings, Flaw, Repair};
use crate::tape::Json;

/// One line of a log, without its line feed.
pub(crate) struct Line<'a> {
    /// Where the line starts.
    pub(crate) offset: u64,
    /// Its bytes, without BOM, carriage return and NULs.
    pub(crate) bytes: &'a [u8],
    /// Whether a line feed ended it.
    pub(crate) ended: bool,
}

/// Reads lines up to a cap. A line is handed out where it was read to: only what is left
/// of the last one is moved when more is read.
pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// What was read and not handed out yet is this part of the buffer.
    unread: Range<usize>,
    /// Where the unread part begins in the log.
    offset: u64,
    ended_at: u64,
    cap: usize,
    /// While the buffer is large.
    large: Option<Large>,
}

/// The right to a large buffer, and the buffer that stands back for it.
struct Large {
    spare: MutexGuard<'static, Vec<u8>>,
    small: Vec<u8>,
}

thread_local! {
    /// The buffer of the last log that this thread read, for its next one: to get a
    /// new one and to grow it costs more than to read a small log.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl<R> Drop for Lines<R> {
    fn drop(&mut self) {
        self.give_back();
        SPARE.set(std::mem::take(&mut self.buffer));
    }
}

/// Only one log at a time has a line in memory that is longer than [`LARGE`]: with what is read
/// out of it, it takes twice its length, on every thread. Here is the buffer for it: to have
/// the system make so much empty memory takes as long as to read the line.
static SPARE_LARGE: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// A buffer beyond this is the one for long lines.
const LARGE: usize = 2 << 20;
/// How long the buffer for long lines is made at once. The system gives the memory when it
/// is written to; to grow a buffer, copying it, would need one and a half times as much.
const LONGEST: usize = 64 << 20;

/// Lets go of the memory that is kept for long lines.
pub(crate) fn release() {
    *lock(&SPARE_LARGE) = Vec::new();
}

/// A lock that a thread left behind when it panicked guards as good a buffer.
fn lock(spare: &'static Mutex<Vec<u8>>) -> MutexGuard<'static, Vec<u8>> {
    spare.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R> Lines<R> {
    /// Moves on to the large buffer.
    fn take_large(&mut self) {
        let mut spare = lock(&SPARE_LARGE);
        let mut buffer = std::mem::take(&mut *spare);
        let unread = &self.buffer[self.unread.clone()];
        let length = self.cap.min(LONGEST).saturating_add(BUFFER);
        if buffer.len() < length.max(unread.len()) {
            drop(buffer);
            buffer = vec![0; length.max(unread.len())];
        }
        buffer[..unread.len()].copy_from_slice(unread);
        self.unread = 0..unread.len();
        let small = std::mem::replace(&mut self.buffer, buffer);
        self.large = Some(Large { spare, small });
    }

    /// Moves back to the small buffer, if this is the large one. What is unread is little.
    fn give_back(&mut self) {
        let Some(Large { mut spare, small }) = self.large.take() else {
            return;
        };
        let buffer = std::mem::replace(&mut self.buffer, small);
        let unread = &buffer[self.unread.clone()];
        self.buffer.resize(self.buffer.len().max(unread.len()), 0);
        self.buffer[..unread.len()].copy_from_slice(unread);
        self.unread = 0..unread.len();
        *spare = buffer;
    }
}

impl<R: Read> Lines<R> {
    /// Lines of `source`, none longer than `cap` bytes.
    pub(crate) fn new(source: R, cap: usize) -> Self {
        Lines {
            source,
            buffer: SPARE.take(),
            unread: 0..0,
            offset: 0,
            ended_at: 0,
            cap,
            large: None,
        }
    }

    /// Bytes handed out so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the last line that a line feed ended, ended.
    pub(crate) fn ended_at(&self) -> u64 {
        self.ended_at
    }

    /// At least so many of the bytes that were not handed out yet, where there are as many.
    pub(crate) fn peek(&mut self, count: usize) -> std::io::Result<&[u8]> {
        while self.unread.len() < count && self.read_more()? > 0 {}
        Ok(&self.buffer[self.unread.clone()])
    }

    /// The next line that is not blank; none at the end or after a read error.
    pub(crate) fn next_line(&mut self, findings: &mut Findings<'_>) -> Option<Line<'_>> {
        loop {
            let start = self.offset;
            match self.take_line() {
                Ok(Taken::Nothing) => return None,
                Ok(Taken::TooLong) => findings.flaw(start, Flaw::Oversized, ""),
                Ok(Taken::Line { place, ended }) => {
                    let kept = tidy(&mut self.buffer[place.clone()], start == 0, findings);
                    if !kept.is_empty() {
                        let place = place.start + kept.start..place.start + kept.end;
                        return Some(Line {
                            offset: start,
                            bytes: &self.buffer[place],
                            ended,
                        });
                    }
                }
                Err(error) => {
                    findings.flaw(start, Flaw::ReadError, &error.to_string());
                    return None;
                }
            }
        }
    }

    /// Everything as one JSON object.
    pub(crate) fn document(&mut self, cap: usize, findings: &mut Findings<'_>) -> Option<Json> {
        let mut bytes = self.buffer[self.unread.clone()].to_vec();
        let most = u64::try_from(cap).unwrap_or(u64::MAX);
        let read = self
            .source
            .by_ref()
            .take(most.saturating_add(1).saturating_sub(bytes.len() as u64))
            .read_to_end(&mut bytes);
        self.unread = 0..0;
        self.offset += bytes.len() as u64;
        self.ended_at = self.offset;
        let flaw = match read {
            Err(error) => {
                findings.flaw(0, Flaw::ReadError, &error.to_string());
                return None;
            }
            Ok(_) if bytes.len() > cap => Flaw::Oversized,
            Ok(_) => {
                match Json::parse(String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}')) {
                    Ok(value) if value.node().is_object() => return Some(value),
                    Ok(_) => Flaw::NotAnObject,
                    Err(error) => flaw_of(&error),
                }
            }
        };
        findings.flaw(0, flaw, "");
        None
    }

    /// Takes the bytes up to and with the next line feed, dropping a line beyond the cap.
    fn take_line(&mut self) -> std::io::Result<Taken> {
        let mut searched = 0;
        let mut dropped = false;
        if self.unread.len() <= BUFFER {
            self.give_back();
        }
        loop {
            let unread = &self.buffer[self.unread.clone()];
            let end = memchr::memchr(b'\n', &unread[searched..]).map(|found| searched + found);
            let length = end.unwrap_or(unread.len());
            dropped |= length > self.cap;
            if let Some(end) = end {
                let place = self.take(end + 1);
                self.ended_at = self.offset;
                return Ok(match dropped {
                    true => Taken::TooLong,
                    false => Taken::Line {
                        place: place.start..place.end - 1,
                        ended: true,
                    },
                });
            }
            searched = length;
            if dropped {
                self.take(length);
                self.give_back();
                searched = 0;
            }
            if self.read_more()? == 0 {
                let place = self.take(self.unread.len());
                return Ok(match (dropped, place.is_empty()) {
                    (true, _) => Taken::TooLong,
                    (false, true) => Taken::Nothing,
                    (false, false) => Taken::Line {
                        place,
                        ended: false,
                    },
                });
            }
        }
    }

    /// Takes so many of the unread bytes; where they are.
    fn take(&mut self, count: usize) -> Range<usize> {
        let place = self.unread.start..self.unread.start + count;
        self.unread.start = place.end;
        self.offset += count as u64;
        place
    }

    /// Reads on, making room first; how many bytes there were.
    fn read_more(&mut self) -> std::io::Result<usize> {
        if self.buffer.is_empty() {
            self.buffer = vec![0; BUFFER];
        }
        // What is read is kept at the beginning, where the caches have it; no byte is moved
        // more often than others were handed out.
        let is_full = self.unread.end == self.buffer.len();
        if is_full || self.unread.len() <= self.unread.start {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        if self.unread.end == self.buffer.len() {
            let most = self.cap.saturating_add(BUFFER);
            let length = self.buffer.len().saturating_mul(2).min(most);
            if length > LARGE && self.large.is_none() {
                self.take_large();
            }
            if self.unread.end == self.buffer.len() {
                self.buffer.resize(length.max(self.buffer.len() + 1), 0);
            }
        }
        loop {
            let end = self.buffer.len().min(self.unread.end + BUFFER);
            match self.source.read(&mut self.buffer[self.unread.end..end]) {
                Ok(count) => {
                    self.unread.end += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// What was taken of a log.
enum Taken {
    Nothing,
    TooLong,
    /// A line, by its place in the buffer.
    Line {
        place: Range<usize>,
        ended: bool,
    },
}

/// Strips BOM, NULs, and white space at the ends; where what is left is in the line.
fn tidy(line: &mut [u8], first: bool, findings: &mut Findings<'_>) -> Range<usize> {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    let mut start = 0;
    if first && line.starts_with(BOM) {
        start = BOM.len();
        findings.repair(Repair::Bom);
    }
    let mut end = line.len();
    if memchr::memchr(0, &line[start..]).is_some() {
        end = without_nuls(line, start);
        findings.repair(Repair::Nul);
    }
    while end > start && line[end - 1].is_ascii_whitespace() {
        if line[end - 1] == b'\r' {
            findings.repair(Repair::CarriageReturn);
        }
        end -= 1;
    }
    while start < end && line[start].is_ascii_whitespace() {
        start += 1;
    }
    start..end
}

/// Closes up the bytes from `start` on that are no NULs; where they end then.
fn without_nuls(line: &mut [u8], start: usize) -> usize {
    let mut end = start;
    for at in start..line.len() {
        if line[at] != 0 {
            line[end] = line[at];
            end += 1;
        }
    }
    end
}

/// Opens a regular file for reading, packed (`.zst`) or plain, limited to the size
/// that it has now.
pub(crate) fn open(path: &std::path::Path, size: u64) -> std::io::Result<Box<dyn Read>> {
    let file = fs_err::File::open(path)?.take(size);
    if path.extension().is_some_and(|extension| extension == "zst") {
        // Several frames may follow each other: the decoder goes on by itself.
        let decoder = zstd::stream::read::Decoder::new(file)?;
        Ok(Box::new(decoder.take(MOST_UNPACKED)))
    } else {
        Ok(Box::new(file))
    }
}

/// How much of a log is read at a time, in bytes: little enough to stay in the caches.
const BUFFER: usize = 64 * 1024;
/// A packed log that unpacks to more is no log (16 GiB).
const MOST_UNPACKED: u64 = 16 << 30;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::report::Report;

    /// Hands out a few bytes at a time.
    struct Slowly<'a> {
        bytes: &'a [u8],
        step: usize,
    }

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.step.min(buffer.len());
            (&mut self.bytes).take(count as u64).read(buffer)
        }
    }

    /// Every line's offset, length and end, and the report.
    fn read(bytes: &[u8], step: usize, cap: usize) -> (Vec<(u64, usize, bool)>, Report) {
        let mut report = Report::default();
        let mut lines = Lines::new(Slowly { bytes, step }, cap);
        let mut found = Vec::new();
        let file = std::path::Path::new("log");
        while let Some(line) = lines.next_line(&mut Findings {
            report: &mut report,
            file,
        }) {
            assert!(line.bytes.iter().all(|byte| *byte == b'x'));
            found.push((line.offset, line.bytes.len(), line.ended));
        }
        assert_eq!(lines.offset(), bytes.len() as u64);
        (found, report)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn lines_of_any_length_are_found_however_they_are_read(
            lengths in proptest::collection::vec(prop_oneof![0..9_usize, 0..3 * BUFFER], 0..6),
            step in prop_oneof![1_000..9_000_usize, Just(usize::MAX)],
            cap in prop_oneof![Just(100_usize), Just(BUFFER), Just(usize::MAX)],
            ended in any::<bool>(),
        ) {
            let mut bytes = Vec::new();
            let mut expected = Vec::new();
            let mut too_long = 0;
            for (index, length) in lengths.iter().enumerate() {
                let ended = ended || index + 1 < lengths.len();
                match *length {
                    0 => {}
                    length if length > cap => too_long += 1,
                    length => expected.push((bytes.len() as u64, length, ended)),
                }
                bytes.resize(bytes.len() + length, b'x');
                bytes.extend(ended.then_some(b'\n'));
            }
            let (found, report) = read(&bytes, step, cap);
            prop_assert_eq!(found, expected);
            let counted = report.flaw_counts.get(&Flaw::Oversized).copied();
            prop_assert_eq!(counted.unwrap_or_default(), too_long);
        }
    }

    #[test]
    fn a_large_buffer_is_given_back_after_its_line() {
        let mut bytes = vec![b'x'; LARGE + 1];
        bytes.extend_from_slice(b"\nxx\nx");
        let mut lines = Lines::new(bytes.as_slice(), usize::MAX);
        let mut report = Report::default();
        let file = std::path::Path::new("log");
        let mut lengths = Vec::new();
        let mut held = Vec::new();
        loop {
            let mut findings = Findings {
                report: &mut report,
                file,
            };
            let Some(line) = lines.next_line(&mut findings) else {
                break;
            };
            lengths.push(line.bytes.len());
            held.push(lines.large.is_some());
        }
        assert_eq!(lengths, [LARGE + 1, 2, 1]);
        assert_eq!(held, [true, false, false]);
        assert!(lines.buffer.len() <= LARGE);
    }
}
