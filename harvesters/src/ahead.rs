//! Reading ahead: what is being read on other threads while earlier sessions are handed
//! out.
//!
//! Units of work are begun in order, small ones together, and ended in any; they are taken
//! in order. So that memory stays bounded, a batch is begun only while what was begun and
//! not taken yet is little. The thread that takes may be one of the pool: then it works as
//! well while it waits.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::harvest::{HarvestOptions, Run};
use crate::report::Report;
use crate::session::Session;
use crate::stamp::FileMemory;

/// How many bytes of logs are read before their sessions are handed out: enough to keep
/// all cores busy, little enough that their sessions fit in memory.
const MOST: u64 = 16 << 20;

/// What came of one unit of work.
pub(crate) struct Part {
    pub(crate) sessions: Vec<Session>,
    pub(crate) report: Report,
    pub(crate) files: FileMemory,
    pub(crate) read: Vec<PathBuf>,
}

impl Part {
    /// Reads a unit in a run of its own.
    pub(crate) fn read<U>(
        unit: &U,
        options: &HarvestOptions,
        read: &impl Fn(&U, &mut Run<'_>) -> Vec<Session>,
    ) -> Self {
        let mut nobody = |_: Session| ControlFlow::Continue(());
        let mut run = Run {
            options,
            report: Report::default(),
            files: FileMemory::default(),
            read: Vec::new(),
            each: &mut nobody,
        };
        let sessions = read(unit, &mut run);
        Part {
            sessions,
            report: run.report,
            files: run.files,
            read: run.read,
        }
    }
}

/// How many bytes of small logs are read at one go. To wake the thread that waits for them
/// takes as long as to read some ten kilobytes.
const BATCH: u64 = 1 << 20;

/// The units that are read next at one go, those behind them, and how many bytes they have;
/// none when there are no more.
pub(crate) fn batch<U>(units: &[U], bytes: impl Fn(&U) -> u64) -> Option<(&[U], &[U], u64)> {
    let mut size = 0;
    let count = units
        .iter()
        .take_while(|unit| {
            let goes_on = size < BATCH;
            size += if goes_on { bytes(unit) } else { 0 };
            goes_on
        })
        .count();
    let (batch, rest) = units.split_at(count);
    (count > 0).then_some((batch, rest, size))
}

/// The batches that were begun and not taken yet, in order.
pub(crate) struct Ahead {
    begun: VecDeque<(Receiver<Vec<Part>>, u64)>,
    bytes: u64,
}

/// Where the outcome of a batch goes.
pub(crate) struct Place(SyncSender<Vec<Part>>);

impl Place {
    /// Puts the outcome in its place; nobody may wait for it any more.
    pub(crate) fn fill(self, parts: Vec<Part>) {
        drop(self.0.send(parts));
    }
}

impl Ahead {
    pub(crate) fn new() -> Self {
        Ahead {
            begun: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Whether another batch may be begun.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes < MOST
    }

    /// Begins a batch of so many bytes.
    pub(crate) fn begin(&mut self, bytes: u64) -> Place {
        let (sender, receiver) = sync_channel(1);
        self.begun.push_back((receiver, bytes));
        self.bytes += bytes;
        Place(sender)
    }

    /// The outcome of the batch that was begun first; none when all were taken.
    pub(crate) fn next(&mut self) -> Option<Vec<Part>> {
        let (receiver, bytes) = self.begun.pop_front()?;
        self.bytes -= bytes;
        wait(&receiver)
    }
}

/// Waits for an outcome. None when it can never come: then its thread panicked, and the
/// scope that it ran in hands that on.
fn wait(receiver: &Receiver<Vec<Part>>) -> Option<Vec<Part>> {
    /// Between two looks for work that another thread may have begun.
    const SHORT: Duration = Duration::from_micros(200);
    while rayon::current_thread_index().is_some() {
        let pause = match rayon::yield_now() {
            Some(rayon::Yield::Executed) => Duration::ZERO,
            _ => SHORT,
        };
        match receiver.recv_timeout(pause) {
            Ok(parts) => return Some(parts),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    receiver.recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(number: u64) -> Vec<Part> {
        vec![Part {
            sessions: Vec::new(),
            report: Report {
                files_read: number,
                ..Report::default()
            },
            files: FileMemory::default(),
            read: Vec::new(),
        }]
    }

    fn taken(ahead: &mut Ahead) -> Option<u64> {
        ahead.next().map(|parts| parts[0].report.files_read)
    }

    #[test]
    fn small_units_are_read_together_and_none_is_left_out() {
        let sizes = [1, BATCH, 5, BATCH + 1, 7, 8];
        let mut waiting = &sizes[..];
        let mut found = Vec::new();
        while let Some((units, rest, size)) = batch(waiting, |size| *size) {
            assert_eq!(size, units.iter().sum::<u64>());
            found.push(units.len());
            waiting = rest;
        }
        assert_eq!(found, [2, 2, 2]);
    }

    #[test]
    fn outcomes_are_taken_in_order_whichever_comes_first() {
        let mut ahead = Ahead::new();
        let first = ahead.begin(1);
        let second = ahead.begin(MOST);
        assert!(!ahead.has_room());
        second.fill(parts(2));
        first.fill(parts(1));
        assert_eq!(taken(&mut ahead), Some(1));
        assert_eq!(taken(&mut ahead), Some(2));
        assert!(ahead.has_room());
        assert_eq!(taken(&mut ahead), None);
    }

    #[test]
    fn the_only_thread_of_a_pool_works_while_it_waits() {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap();
        let numbers = pool.install(|| {
            rayon::in_place_scope_fifo(|scope| {
                let mut ahead = Ahead::new();
                for number in 0..3 {
                    let place = ahead.begin(1);
                    scope.spawn_fifo(move |_| place.fill(parts(number)));
                }
                std::iter::from_fn(|| taken(&mut ahead)).collect::<Vec<_>>()
            })
        });
        assert_eq!(numbers, [0, 1, 2]);
    }
}
