//! Directories that only their owner can look into.

use std::ffi::OsStr;
use std::path::Path;

use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::steps::NoSteps;

/// Makes a directory and every missing one above it, each with mode `0700` and on the disk
/// when the call returns. One that is already there keeps its mode.
///
/// # Errors
///
/// A part of the path is not a directory, or the operating system refuses.
pub fn create_private_dir(path: &Path) -> Result<()> {
    let mut missing: Vec<&OsStr> = Vec::new();
    let mut nearest = path;
    let directory = loop {
        let opened = match nearest {
            here if here.as_os_str().is_empty() => Directory::open(Path::new(".")),
            there => Directory::open(there),
        };
        match (opened, nearest.file_name(), nearest.parent()) {
            (Err(error), Some(name), Some(parent)) if error.is_not_found() => {
                missing.push(name);
                nearest = parent;
            }
            (opened, ..) => break opened?,
        }
    };
    let mut directory = directory;
    while let Some(name) = missing.pop() {
        match directory.make_directory(name, Some(0o700), &mut NoSteps) {
            // Somebody else made it in this moment.
            Err(error) if error.is_already_there() => {}
            made => {
                made?;
                directory.sync(&mut NoSteps)?;
            }
        }
        let path = directory.path().join(name);
        directory = Directory::open(&path).map_err(|error| match error {
            Error::Io { source, .. } => Error::Io {
                action: "make the directory",
                path,
                source,
            },
            other => other,
        })?;
    }
    Ok(())
}
