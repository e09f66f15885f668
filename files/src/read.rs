//! Reading what may be anything: huge, a pipe, not text.

use std::fs::File;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::directory::read_up_to;
use crate::entry::{Entry, Kind};
use crate::error::{Error, Result};

/// Reads a regular file of at most `limit` bytes. Links are followed; a pipe or device
/// is refused and does not block.
///
/// # Errors
///
/// Missing, not a regular file, larger than `limit`, not readable.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let handle = rustix::fs::open(path, flags, Mode::empty()).map_err(Error::io("read", path))?;
    read_open(&File::from(handle), path, limit)
}

/// Reads a regular file of at most `limit` bytes as UTF-8.
///
/// # Errors
///
/// As [`read_bounded`], and if the content is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> Result<String> {
    String::from_utf8(read_bounded(path, limit)?).map_err(|error| Error::NotText {
        path: path.to_path_buf(),
        offset: error.utf8_error().valid_up_to(),
    })
}

/// Reads an open file after making sure that it is a regular one.
pub(crate) fn read_open(file: &File, path: &Path, limit: u64) -> Result<Vec<u8>> {
    let stat = rustix::fs::fstat(file).map_err(Error::io("examine", path))?;
    let entry = Entry::from_stat(&stat);
    if entry.kind != Kind::File {
        return Err(Error::NotRegular {
            path: path.to_path_buf(),
            found: entry.kind.describe(),
        });
    }
    let too_large = || Error::TooLarge {
        path: path.to_path_buf(),
        limit,
    };
    if entry.length > limit {
        return Err(too_large());
    }
    read_up_to(file, limit)
        .map_err(Error::io("read", path))?
        .ok_or_else(too_large)
}
