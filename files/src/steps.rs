//! The seam where tests stop a write in the middle.
//!
//! What a crash leaves behind depends on the exact step it hits. [`Steps::before`] is
//! called ahead of every system call that changes the disk; a test that fails or
//! unwinds there sees what a process killed at that point leaves.

use std::io;
use std::path::Path;

/// One change of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// A new file appears under its temporary name, still empty.
    Create,
    /// The first half of the content is written.
    WriteFirstHalf,
    /// The second half of the content is written.
    WriteSecondHalf,
    /// Mode, owner and extended attributes are set.
    SetAttributes,
    /// The file's content is forced to the disk.
    SyncFile,
    /// A file takes another name, perhaps replacing what had it.
    Rename,
    /// Two files trade their names.
    Exchange,
    /// A name is removed.
    Remove,
    /// A directory is made.
    MakeDirectory,
    /// A directory is removed.
    RemoveDirectory,
    /// The directory's names are forced to the disk.
    SyncDirectory,
}

/// Someone who wants to know of, or to stop, each change of the disk.
pub trait Steps {
    /// Called before the step happens to `path`. An error stops the write there; it is
    /// reported as if the operating system had refused.
    ///
    /// # Errors
    ///
    /// Whatever the observer wants to be seen as the operating system's refusal.
    fn before(&mut self, step: Step, path: &Path) -> io::Result<()>;
}

/// Lets every step happen.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSteps;

impl Steps for NoSteps {
    fn before(&mut self, _step: Step, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}
