//! Reading ahead: what is being read on other threads while earlier sessions are handed
//! out.
//!
//! Units of work are begun in order and ended in any; they are taken in order. So that
//! memory stays bounded, a unit is begun only while what was begun and not taken yet is
//! little. The thread that takes may be one of the pool: then it works as well while it waits.

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

/// The units that were begun and not taken yet, in order.
pub(crate) struct Ahead {
    begun: VecDeque<(Receiver<Part>, u64)>,
    bytes: u64,
}

/// Where the outcome of a unit goes.
pub(crate) struct Place(SyncSender<Part>);

impl Place {
    /// Puts the outcome in its place; nobody may wait for it any more.
    pub(crate) fn fill(self, part: Part) {
        drop(self.0.send(part));
    }
}

impl Ahead {
    pub(crate) fn new() -> Self {
        Ahead {
            begun: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Whether another unit may be begun.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes < MOST
    }

    /// Begins a unit of so many bytes.
    pub(crate) fn begin(&mut self, bytes: u64) -> Place {
        let (sender, receiver) = sync_channel(1);
        self.begun.push_back((receiver, bytes));
        self.bytes += bytes;
        Place(sender)
    }

    /// The outcome of the unit that was begun first; none when all were taken.
    pub(crate) fn next(&mut self) -> Option<Part> {
        let (receiver, bytes) = self.begun.pop_front()?;
        self.bytes -= bytes;
        wait(&receiver)
    }
}

/// Waits for an outcome. None when it can never come: then its thread panicked, and the
/// scope that it ran in hands that on.
fn wait(receiver: &Receiver<Part>) -> Option<Part> {
    /// Between two looks for work that another thread may have begun.
    const SHORT: Duration = Duration::from_micros(200);
    while rayon::current_thread_index().is_some() {
        let pause = match rayon::yield_now() {
            Some(rayon::Yield::Executed) => Duration::ZERO,
            _ => SHORT,
        };
        match receiver.recv_timeout(pause) {
            Ok(part) => return Some(part),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    receiver.recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(number: u64) -> Part {
        Part {
            sessions: Vec::new(),
            report: Report {
                files_read: number,
                ..Report::default()
            },
            files: FileMemory::default(),
            read: Vec::new(),
        }
    }

    fn taken(ahead: &mut Ahead) -> Option<u64> {
        ahead.next().map(|part| part.report.files_read)
    }

    #[test]
    fn outcomes_are_taken_in_order_whichever_comes_first() {
        let mut ahead = Ahead::new();
        let first = ahead.begin(1);
        let second = ahead.begin(MOST);
        assert!(!ahead.has_room());
        second.fill(part(2));
        first.fill(part(1));
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
                    scope.spawn_fifo(move |_| place.fill(part(number)));
                }
                std::iter::from_fn(|| taken(&mut ahead)).collect::<Vec<_>>()
            })
        });
        assert_eq!(numbers, [0, 1, 2]);
    }
}
