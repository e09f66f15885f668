//! What happens during a night, for progress lines, the log and the database.

use serde::Serialize;

use crate::trainer::event::Event;

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum NightEvent<'a> {
    /// A night begins, or goes on.
    Started {
        /// Its number.
        night: i64,
        /// Whether an interrupted one goes on.
        resumed: bool,
    },
    /// The logs were read.
    Harvested {
        /// Sessions within scope and time.
        sessions: usize,
        /// Log files read.
        files: u64,
        /// Files, folders and lines that may have held something and were not read.
        skipped: u64,
    },
    /// Tasks were mined and split.
    Mined {
        /// For reflection.
        train: usize,
        /// For the gate.
        validation: usize,
        /// Measured only.
        test: usize,
    },
    /// Training of one document begins.
    TrainingStarted {
        /// The document.
        document: &'a str,
    },
    /// Something happened in the trainer.
    Training {
        /// The document.
        document: &'a str,
        /// What.
        training: &'a Event<'a>,
    },
    /// Training of one document ended.
    TrainingFinished {
        /// The document.
        document: &'a str,
        /// Whether its best version differs from the live one.
        improved: bool,
    },
    /// A proposal was staged.
    Staged {
        /// Its id.
        proposal: &'a str,
        /// The file that it would change.
        path: &'a str,
    },
    /// A proposal was adopted without a person.
    Adopted {
        /// The adoption.
        adoption: &'a str,
        /// The proposal.
        proposal: &'a str,
        /// The file that was written.
        path: &'a str,
    },
    /// The night ended.
    Finished {
        /// Proposals staged.
        proposals: usize,
    },
}

/// Whoever follows a night.
pub trait Watch: Send + Sync {
    /// Takes note of `event`. A watcher that fails does so on its own.
    fn watch(&self, event: &NightEvent<'_>);
}
