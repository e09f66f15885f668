//! A document's place on disk, checked before anything is spent or written.
//!
//! [`preflight`] answers one question: if a proposal for this document were adopted now,
//! could it be written, and where to? A night asks before it spends money; adoption asks
//! again. The answer, a [`Target`], is only ever as old as its caller lets it become:
//! adoption holds the directory open and looks once more at the moment of writing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use skillopt_files::{Directory, Entry, Kind};

use crate::names::live_path;
use crate::proposal::{Base, DOCUMENT_LIMIT};
use crate::refusal::{Refusal, RefusalKind};
use crate::resolve::resolve;
use crate::roots::{AllowedRoots, is_document_name, is_store};
use crate::text::display::has_hidden;

/// Where a document is, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The path as configured.
    pub path: PathBuf,
    /// The path with every link resolved: this is what is written.
    pub real_path: PathBuf,
    /// Directories that adoption would have to make, the outermost first.
    pub missing_directories: Vec<PathBuf>,
    /// The file, if there is one.
    pub entry: Option<Entry>,
}

/// Checks that a document can be adopted: a safe name, inside what configuration allows
/// once links are resolved, an ordinary file of ours that may be written, or a place
/// where one can be made.
///
/// # Errors
///
/// The first rule that says no, with what to do about it.
pub fn preflight(path: &Path, roots: &AllowedRoots) -> Result<Target, Refusal> {
    let text = path.to_str().and_then(live_path);
    let shown = |text: &String| Path::new(text) == path && !has_hidden(text);
    let Some(text) = text.filter(shown) else {
        return Err(Refusal::path(
            RefusalKind::LivePathUnsafe,
            path,
            "a document needs an absolute path to a `.md` file, without `..`, blanks around \
             it, control characters or hidden ones",
        ));
    };
    let path = PathBuf::from(text);
    let named = roots.names(&path);
    let (real, missing) = resolve(&path)?;
    if real.to_str().is_none() {
        return Err(Refusal::path(
            RefusalKind::LivePathUnsafe,
            &path,
            "it leads to a path that is not UTF-8: rename that",
        ));
    }
    if is_store(&real) {
        return Err(Refusal::path(
            RefusalKind::LiveStore,
            &path,
            format!(
                "it is {}, which belongs to a package manager and may not be changed in \
                 place: change it where the package is defined",
                real.display()
            ),
        ));
    }
    if !roots.confines(&real) {
        let place = if real == path {
            "it lies".to_owned()
        } else {
            format!("it leads to {}, which lies", real.display())
        };
        return Err(Refusal::path(
            RefusalKind::LiveOutsideRoots,
            &path,
            format!(
                "{place} outside the skill directories and projects that configuration \
                 allows: add its directory there if it shall be changed"
            ),
        ));
    }
    // A link may not turn an allowed name into a document that agents do not read.
    let real_name = is_document_name(&real) || named && real.file_name() == path.file_name();
    if !(real_name && (named || is_document_name(&path))) {
        return Err(Refusal::path(
            RefusalKind::LiveBasename,
            &path,
            "agents read no document of this name (SKILL.md, a file of a skill's \
             references, CLAUDE.md, AGENTS.md): name the document in configuration if it \
             shall be changed",
        ));
    }
    let target = Target {
        entry: None,
        path,
        real_path: real,
        missing_directories: missing,
    };
    let directory = target.open_nearest()?;
    check_writable_directory(&directory, &target.path)?;
    if !target.missing_directories.is_empty() {
        return Ok(target);
    }
    let entry = directory
        .entry(target.name())
        .map_err(|error| Refusal::path(RefusalKind::LiveUnreadable, &target.path, error))?;
    if let Some(entry) = &entry {
        check_file(entry, &target.path)?;
    }
    Ok(Target { entry, ..target })
}

impl Target {
    /// Reads the document as it is now: what a proposal is based on.
    ///
    /// # Errors
    ///
    /// It is not readable, not UTF-8, larger than
    /// [`DOCUMENT_LIMIT`], or no longer an ordinary file.
    pub fn read(&self) -> Result<Base, Refusal> {
        if !self.missing_directories.is_empty() {
            return Ok(Base::absent());
        }
        let directory = self.open_nearest()?;
        Ok(match read_live(&directory, self.name(), &self.path)? {
            Some((bytes, _)) => Base::of(into_text(bytes, &self.path)?),
            None => Base::absent(),
        })
    }

    /// Whether links lead from the configured path to the real one.
    pub fn is_linked(&self) -> bool {
        self.path != self.real_path
    }

    /// The file's name in its real directory.
    pub(crate) fn name(&self) -> &OsStr {
        self.real_path.file_name().unwrap_or_default()
    }

    /// Opens the real directory, or the nearest one above it that there is, following no
    /// link.
    pub(crate) fn open_nearest(&self) -> Result<Directory, Refusal> {
        let parent = match self.missing_directories.first() {
            Some(outermost) => outermost.parent(),
            None => self.real_path.parent(),
        };
        let parent = parent.unwrap_or(Path::new("/"));
        Directory::open_no_links(parent)
            .map_err(|error| Refusal::path(RefusalKind::LiveMoved, &self.path, error))
    }
}

/// Reads a live document without following a link; `None` if there is none.
pub(crate) fn read_live(
    directory: &Directory,
    name: &OsStr,
    path: &Path,
) -> Result<Option<(Vec<u8>, Entry)>, Refusal> {
    match directory.read(name, DOCUMENT_LIMIT) {
        Ok((bytes, entry)) => {
            check_file(&entry, path)?;
            Ok(Some((bytes, entry)))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error @ skillopt_files::Error::TooLarge { .. }) => Err(Refusal::path(
            RefusalKind::LiveTooLarge,
            path,
            format!("{error}: shorten the document first"),
        )),
        Err(error @ skillopt_files::Error::NotRegular { .. }) => {
            Err(Refusal::path(RefusalKind::LiveNotFile, path, error))
        }
        Err(error) => Err(Refusal::path(RefusalKind::LiveUnreadable, path, error)),
    }
}

/// The text of a live document.
pub(crate) fn into_text(bytes: Vec<u8>, path: &Path) -> Result<String, Refusal> {
    String::from_utf8(bytes).map_err(|error| {
        Refusal::path(
            RefusalKind::LiveNotUtf8,
            path,
            format!(
                "it is not UTF-8 text (first bad byte at offset {}): convert it first",
                error.utf8_error().valid_up_to()
            ),
        )
    })
}

fn check_file(entry: &Entry, path: &Path) -> Result<(), Refusal> {
    if entry.kind != Kind::File {
        return Err(Refusal::path(
            RefusalKind::LiveNotFile,
            path,
            format!(
                "{} is in the document's place: move it away",
                entry.kind.describe()
            ),
        ));
    }
    if entry.links > 1 {
        return Err(Refusal::path(
            RefusalKind::LiveHardlinked,
            path,
            format!(
                "the file has {} names (hard links), and only this one would get the new \
                 text: replace the file by a copy of itself first",
                entry.links
            ),
        ));
    }
    let me = rustix::process::geteuid().as_raw();
    if entry.owner != me {
        return Err(Refusal::path(
            RefusalKind::LiveForeignOwner,
            path,
            format!(
                "the file belongs to user {} and this program runs as user {me}: adopt as its \
                 owner",
                entry.owner
            ),
        ));
    }
    if entry.mode & 0o200 == 0 {
        return Err(Refusal::path(
            RefusalKind::LiveReadOnly,
            path,
            "the file is read-only: make it writable (chmod u+w) if it shall be changed",
        ));
    }
    if entry.length > DOCUMENT_LIMIT {
        return Err(Refusal::path(
            RefusalKind::LiveTooLarge,
            path,
            format!(
                "the document has {} bytes and the limit is {DOCUMENT_LIMIT}: shorten it first",
                entry.length
            ),
        ));
    }
    Ok(())
}

fn check_writable_directory(directory: &Directory, path: &Path) -> Result<(), Refusal> {
    let by_mode = std::fs::metadata(directory.path()).is_ok_and(|metadata| {
        use std::os::unix::fs::MetadataExt;
        let me = rustix::process::geteuid().as_raw();
        metadata.uid() != me || metadata.mode() & 0o200 != 0
    });
    if by_mode && directory.is_writable() {
        return Ok(());
    }
    Err(Refusal::path(
        RefusalKind::LiveDirectoryReadOnly,
        path,
        format!(
            "the directory {} cannot be written, and a document is replaced through it: make \
             it writable if the document shall be changed",
            directory.path().display()
        ),
    ))
}
