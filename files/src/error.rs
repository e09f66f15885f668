//! What can go wrong with a file: what was being done, with which path, and why.

use std::io;
use std::path::{Path, PathBuf};

/// The result of every operation of this crate, except taking a lock.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A file operation that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was being done, as it follows "cannot": `write`, `rename into place`.
        action: &'static str,
        /// The file or directory it was done to.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is longer than the reader is willing to hold.
    #[error("{} is larger than the limit of {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit that was given, in bytes.
        limit: u64,
    },
    /// The file is not UTF-8.
    #[error("{} is not UTF-8 text: the first bad byte is at offset {offset}", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// Where the text stops being valid, in bytes from the start.
        offset: usize,
    },
    /// The path names a directory, pipe, device or socket (or a link, where links are not followed).
    #[error("{} is {found}, not a regular file", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
        /// What it is instead, with its article: `a directory`.
        found: &'static str,
    },
    /// The path has no parent or no file name to work with.
    #[error("{} does not name a file: it must end in a file name", path.display())]
    NoFileName {
        /// The path.
        path: PathBuf,
    },
    /// A relative path, or one with `..`, where links may not be followed.
    #[error("{} must be an absolute path without `..`", path.display())]
    NotPlain {
        /// The path.
        path: PathBuf,
    },
    /// The value has no JSON form.
    #[error("cannot express the content of {} as JSON: {source}", path.display())]
    Json {
        /// The file that was to be written.
        path: PathBuf,
        /// What the serialiser said.
        source: serde_json::Error,
    },
}

impl Error {
    /// The operating system's kind of error, if it was the operating system that refused.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Error::Io { source, .. } => Some(source.kind()),
            _ => None,
        }
    }

    /// Whether the file or directory is not there.
    pub fn is_not_found(&self) -> bool {
        self.io_kind() == Some(io::ErrorKind::NotFound)
    }

    /// Whether the name is already taken.
    pub fn is_already_there(&self) -> bool {
        matches!(
            self.io_kind(),
            Some(io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty)
        )
    }

    /// Whether a link or something other than a directory was in the way.
    pub fn is_not_a_directory(&self) -> bool {
        use rustix::io::Errno;
        let Error::Io { source, .. } = self else {
            return false;
        };
        [Errno::NOTDIR, Errno::LOOP]
            .iter()
            .any(|errno| source.raw_os_error() == Some(errno.raw_os_error()))
    }

    /// For `map_err`: says what was being done to which path.
    pub(crate) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(E) -> Error {
        let path = path.as_ref().to_path_buf();
        move |source| Error::Io {
            action,
            path,
            source: source.into(),
        }
    }
}
