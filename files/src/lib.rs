//! Crash-safe file writes and process locks.
//!
//! Every write of the program goes through this crate, so that one promise holds
//! everywhere: **a reader, and a machine that lost power, sees the old content or the
//! new content and never a mixture**. The way is always the same: a temporary file in
//! the same directory, write, fsync, rename, fsync the directory.
//!
//! | to do | use |
//! |---|---|
//! | replace or create a file | [`write_atomic`], [`write_atomic_json`] |
//! | add a line to a JSONL file | [`append_line`] |
//! | make a private directory | [`create_private_dir`] |
//! | read what may be huge, a pipe, or not text | [`read_bounded`], [`read_text`] |
//! | let only one process do something | [`Lock`] |
//! | write where a path may be swapped for a link meanwhile | [`Directory`] |
//! | stop at any single step, to test what a crash leaves | [`Steps`] |
//!
//! The layers: [`Directory`] holds an open directory and works on names in it, so that
//! nothing that happens to the path afterwards can redirect a write; the functions on
//! paths are thin stories on top of it.

mod append;
mod atomic;
mod directory;
mod entry;
mod error;
mod lock;
mod private;
mod read;
mod steps;

pub use append::append_line;
pub use atomic::{Options, write_atomic, write_atomic_json, write_atomic_with};
pub use directory::{Attributes, Directory, TEMPORARY_PREFIX};
pub use entry::{Entry, Identity, Kind};
pub use error::{Error, Result};
pub use lock::{Lock, LockError};
pub use private::create_private_dir;
pub use read::{read_bounded, read_text};
pub use steps::{NoSteps, Step, Steps};
