//! Adding lines to a JSONL file.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::error::{Error, Result};

/// Adds one line in a single write, so that lines of several writers do not mix. A new
/// file gets mode `0600`. If the file ends in a torn line, left by a crash, the new line
/// starts on its own line. With `sync` the line is on the disk when the call returns.
///
/// # Errors
///
/// The operating system refuses.
pub fn append_line(path: &Path, line: &str, sync: bool) -> Result<()> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(Error::io("open for appending", path))?;
    let length = file.metadata().map_err(Error::io("examine", path))?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)
            .map_err(Error::io("read the end of", path))?;
    }
    let mut bytes = Vec::with_capacity(line.len() + 2);
    if last != [b'\n'] {
        bytes.push(b'\n');
    }
    // One line per record, whatever is in it.
    bytes.extend(line.bytes().filter(|byte| *byte != b'\n'));
    bytes.push(b'\n');
    file.write_all(&bytes)
        .map_err(Error::io("append to", path))?;
    if sync {
        file.sync_data()
            .map_err(Error::io("write to the disk", path))?;
    }
    Ok(())
}
