//! Replacing a whole file, so that nobody ever sees half of it.

use std::path::Path;

use serde::Serialize;

use crate::directory::{Attributes, Directory};
use crate::entry::Kind;
use crate::error::{Error, Result};
use crate::private::create_private_dir;
use crate::steps::{NoSteps, Steps};

/// How [`write_atomic`] writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Permission bits of the file. `None`: a file that is replaced keeps its bits, a
    /// new one gets `0600`.
    pub mode: Option<u32>,
    /// Make missing directories above the file, with mode `0700`.
    pub create_parents: bool,
    /// Do not wait for the disk. Readers still see the old content or the new, also after
    /// the process is killed; after a loss of power the file may be missing or empty. For
    /// what is written in thousands and can be made again.
    pub volatile: bool,
}

/// Writes a file so that a reader, or a machine that lost power, sees the old content or
/// the new and nothing between. When the call returns the content is on the disk.
///
/// The name itself is replaced: if it was a symbolic link, the link gives way to the
/// file and what it pointed to is left alone.
///
/// # Errors
///
/// The operating system refuses, or the path names something other than a file; in
/// either case the old content is still there and no temporary file is left.
pub fn write_atomic(path: &Path, bytes: &[u8], options: Options) -> Result<()> {
    write_atomic_with(path, bytes, options, &mut NoSteps)
}

/// [`write_atomic`], with somebody told before each change of the disk.
///
/// # Errors
///
/// As [`write_atomic`], and what `steps` refuses.
pub fn write_atomic_with(
    path: &Path,
    bytes: &[u8],
    options: Options,
    steps: &mut dyn Steps,
) -> Result<()> {
    let no_name = || Error::NoFileName {
        path: path.to_path_buf(),
    };
    let name = path.file_name().ok_or_else(no_name)?;
    let parent = match path.parent().ok_or_else(no_name)? {
        parent if parent.as_os_str().is_empty() => Path::new("."),
        parent => parent,
    };
    if options.create_parents {
        create_private_dir(parent)?;
    }
    let directory = Directory::open(parent)?;
    let kept = match directory.entry(name)? {
        Some(entry) if entry.kind == Kind::File => Some(entry.mode),
        Some(entry) if entry.kind == Kind::Link => None,
        Some(entry) => {
            return Err(Error::NotRegular {
                path: path.to_path_buf(),
                found: entry.kind.describe(),
            });
        }
        None => None,
    };
    let attributes = Attributes {
        mode: options.mode.or(kept).or(Some(0o600)),
        volatile: options.volatile,
        ..Attributes::default()
    };
    directory.replace(name, bytes, &attributes, steps)
}

/// Writes a value as JSON with [`write_atomic`]: indented by two, non-ASCII text as it
/// is, ending in a newline, private, with missing directories made.
///
/// # Errors
///
/// As [`write_atomic`], and if the value has no JSON form.
pub fn write_atomic_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|source| Error::Json {
        path: path.to_path_buf(),
        source,
    })?;
    bytes.push(b'\n');
    let options = Options {
        create_parents: true,
        ..Options::default()
    };
    write_atomic(path, &bytes, options)
}
