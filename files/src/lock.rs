//! Locks that die with their holder.
//!
//! The lock is the kernel's, on an open file: when the holder ends, however it ends, the
//! lock is free. What the file says (who, since when) is only for the message that the
//! next one gets; it decides nothing. The file stays where it is, since removing it
//! would let two processes lock two files of the same name.

use std::fs::{File, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::directory::read_up_to;
use crate::error::Error;
use crate::private::create_private_dir;

/// How often a waiting process looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Longest record that is read from a lock file.
const RECORD_LIMIT: u64 = 4096;

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody has it.
    #[error(
        "{holder} (process {pid}) holds the lock {} since {since}: wait until it has ended, or stop it",
        path.display()
    )]
    Held {
        /// The lock file.
        path: PathBuf,
        /// What the holder said it is doing; `another process` if it did not say.
        holder: String,
        /// The holder's process number; 0 if unknown.
        pid: u32,
        /// When it took the lock, as RFC 3339; `an unknown time` if it did not say.
        since: String,
    },
    /// The lock file cannot be used.
    #[error(transparent)]
    File(#[from] Error),
}

#[derive(Serialize, Deserialize)]
struct Record {
    holder: String,
    pid: u32,
    since: String,
}

/// A lock, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock at once or says who has it. `holder` is told to whoever comes
    /// second: a phrase such as `the nightly run n12`.
    ///
    /// # Errors
    ///
    /// [`LockError::Held`] if another process, or another part of this one, has it;
    /// [`LockError::File`] if the file cannot be made or locked.
    pub fn acquire(path: &Path, holder: &str) -> Result<Lock, LockError> {
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            create_private_dir(parent)?;
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))
            .map_err(Error::io("open the lock file", path))?;
        let file = File::from(handle);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(&file, path)),
            Err(TryLockError::Error(source)) => {
                return Err(Error::io("lock", path)(source).into());
            }
        }
        let mut lock = Lock {
            file,
            path: path.to_path_buf(),
        };
        lock.record(holder)
            .map_err(Error::io("write the lock file", path))?;
        Ok(lock)
    }

    /// As [`Lock::acquire`], but waits up to `patience` for the holder to end.
    ///
    /// # Errors
    ///
    /// As [`Lock::acquire`]; [`LockError::Held`] only after `patience` has passed.
    pub fn acquire_within(
        path: &Path,
        holder: &str,
        patience: Duration,
    ) -> Result<Lock, LockError> {
        let deadline = Instant::now() + patience;
        loop {
            match Lock::acquire(path, holder) {
                Err(LockError::Held { .. }) if Instant::now() < deadline => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    std::thread::sleep(left.min(LOOK_AGAIN));
                }
                decided => return decided,
            }
        }
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn record(&mut self, holder: &str) -> std::io::Result<()> {
        let record = Record {
            holder: holder.to_owned(),
            pid: std::process::id(),
            since: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        };
        let mut bytes = serde_json::to_vec(&record)?;
        bytes.push(b'\n');
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&bytes)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // An old name in the file would mislead.
        let _ = self.file.set_len(0);
        // Closing the file would free the lock too, but not while a child process that is
        // just being started still has a copy of the file.
        let _ = self.file.unlock();
    }
}

/// The holder may just be writing its record, or have died: then less is known.
fn held(file: &File, path: &Path) -> LockError {
    let record = read_up_to(file, RECORD_LIMIT)
        .ok()
        .flatten()
        .and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
    let record = record.unwrap_or_else(|| Record {
        holder: "another process".to_owned(),
        pid: 0,
        since: "an unknown time".to_owned(),
    });
    // Anybody may have written the record; what it says ends up on a terminal.
    let plain = |text: String| text.chars().filter(|c| !c.is_control()).collect();
    LockError::Held {
        path: path.to_path_buf(),
        holder: plain(record.holder),
        pid: record.pid,
        since: plain(record.since),
    }
}
