//! Directories that only their owner can look into.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::error::{Error, Result};

/// Makes a directory and every missing one above it, each with mode `0700`. One that is
/// already there keeps its mode.
///
/// # Errors
///
/// A part of the path is not a directory, or the operating system refuses.
pub fn create_private_dir(path: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(Error::io("make the directory", path))
}
