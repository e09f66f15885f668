//! What is remembered of a log file, so that an unchanged one is not opened again
//! (session-logs.md, rule 3).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Identity, size and time of a file, and a hash of its beginning.
///
/// Modification times lie after copying and syncing, so they never prove a change by
/// themselves; equal identity, size and time together mean that nothing was appended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileStamp {
    /// Device and inode, where the system has them.
    pub identity: Option<(u64, u64)>,
    /// Size in bytes.
    pub size: u64,
    /// Modification time in nanoseconds since 1970.
    pub modified: i64,
    /// BLAKE3 of the first 4 KiB, in hexadecimal; empty until the file was read.
    pub head: String,
    /// Offset after the last line feed that was read: a grown file can be read on here.
    pub read_to: u64,
    /// What the file's reader found out about its place among others, in words of its
    /// own (what they quote of the log is redacted); none where that was not asked. It spares a look into the neighbours of a changed file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kin: Option<String>,
}

impl FileStamp {
    /// The stamp of a file that was not read yet.
    #[must_use]
    pub fn of(metadata: &std::fs::Metadata) -> Self {
        FileStamp {
            identity: identity(metadata),
            size: metadata.len(),
            modified: modified(metadata),
            head: String::new(),
            read_to: 0,
            kin: None,
        }
    }

    /// The modification time, to the second.
    #[must_use]
    pub(crate) fn time(&self) -> Option<jiff::Timestamp> {
        const NANOSECONDS: i64 = 1_000_000_000;
        jiff::Timestamp::from_second(self.modified.div_euclid(NANOSECONDS)).ok()
    }

    /// Whether the file of this remembered stamp can be the same with more at its end; its
    /// beginning was not compared.
    #[must_use]
    pub(crate) fn may_have_grown(&self, now: &FileStamp) -> bool {
        self.identity.is_some() && self.identity == now.identity && self.size < now.size
    }

    /// Whether the file of this remembered stamp is as it was.
    #[must_use]
    pub fn is_unchanged(&self, now: &FileStamp) -> bool {
        self.size == now.size && self.modified == now.modified && self.identity == now.identity
    }
}

/// How much of a file's beginning is hashed.
pub(crate) const HEAD_BYTES: usize = 4096;

/// The hash of a file's beginning.
pub(crate) fn head_hash(head: &[u8]) -> String {
    blake3::hash(&head[..head.len().min(HEAD_BYTES)])
        .to_hex()
        .to_string()
}

/// The stamps of an earlier harvest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileMemory(HashMap<PathBuf, FileStamp>);

impl FileMemory {
    /// A memory with room for so many files.
    pub(crate) fn with_room(files: usize) -> Self {
        FileMemory(HashMap::with_capacity(files))
    }

    /// Remembers a file.
    pub fn insert(&mut self, path: PathBuf, stamp: FileStamp) {
        self.0.insert(path, stamp);
    }

    /// Remembers the files of another memory as well.
    pub(crate) fn absorb(&mut self, other: FileMemory) {
        self.0.extend(other.0);
    }

    /// Remembers what a later harvest saw as well.
    pub fn extend(&mut self, later: &FileMemory) {
        self.0.extend(later.0.clone());
    }

    /// What is remembered of a file.
    #[must_use]
    pub fn get(&self, path: &Path) -> Option<&FileStamp> {
        self.0.get(path)
    }

    /// All remembered files.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &FileStamp)> {
        self.0.iter().map(|(path, stamp)| (path.as_path(), stamp))
    }

    /// Number of remembered files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(PathBuf, FileStamp)> for FileMemory {
    fn from_iter<I: IntoIterator<Item = (PathBuf, FileStamp)>>(stamps: I) -> Self {
        FileMemory(stamps.into_iter().collect())
    }
}

#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &std::fs::Metadata) -> Option<(u64, u64)> {
    None
}

/// Nanoseconds since 1970; 0 when the system cannot tell.
fn modified(metadata: &std::fs::Metadata) -> i64 {
    metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
        .and_then(|age| i64::try_from(age.as_nanos()).ok())
        .unwrap_or_default()
}
