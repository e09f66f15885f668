//! An open directory, and work on the names in it.
//!
//! A path can be redirected between two looks at it: someone swaps a directory for a
//! link. An open directory cannot. So whoever must be sure where bytes land opens the
//! directory once, without following a link anywhere on the way
//! ([`Directory::open_no_links`]), and then works with plain names.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Uid};

use crate::entry::{Entry, Identity, Kind};
use crate::error::{Error, Result};
use crate::steps::{Step, Steps};

/// Temporary files of this crate start with this, so that a sweep can recognise them.
pub const TEMPORARY_PREFIX: &str = ".skillopt-";

/// How a walk opens the directories on the way: they need only be passable, not readable.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PASSING: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PASSING: OFlags = OFlags::RDONLY;

/// What a new file gets besides its content.
#[derive(Debug, Clone, Default)]
pub struct Attributes {
    /// Exact permission bits. `None`: `0666` less the process's umask.
    pub mode: Option<u32>,
    /// Owner and group. `None`: those of the process.
    pub owner: Option<(u32, u32)>,
    /// Extended attributes, access lists among them: name and value.
    pub extended: Vec<(Vec<u8>, Vec<u8>)>,
    /// Do not wait until the content is on the disk.
    pub volatile: bool,
}

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    handle: File,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory by its path, following links as usual.
    ///
    /// # Errors
    ///
    /// The directory is missing, not a directory, or may not be read.
    pub fn open(path: &Path) -> Result<Directory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty())
            .map_err(Error::io("open the directory", path))?;
        Ok(Directory {
            handle: File::from(handle),
            path: path.to_path_buf(),
        })
    }

    /// Opens a directory by its absolute path and refuses if any part of it is a link.
    ///
    /// # Errors
    ///
    /// The path is relative or has `..`; a part is missing, a link, or not a directory.
    pub fn open_no_links(path: &Path) -> Result<Directory> {
        let mut parts = path.components().peekable();
        let plain = parts.next() == Some(Component::RootDir)
            && parts
                .clone()
                .all(|part| matches!(part, Component::Normal(_)));
        if !plain {
            return Err(Error::NotPlain {
                path: path.to_path_buf(),
            });
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let first = if parts.peek().is_some() {
            PASSING
        } else {
            OFlags::RDONLY
        };
        let mut handle = rustix::fs::open("/", flags | first, Mode::empty())
            .map_err(Error::io("open the directory", "/"))?;
        while let Some(part) = parts.next() {
            let how = if parts.peek().is_some() {
                PASSING
            } else {
                OFlags::RDONLY
            };
            handle =
                rustix::fs::openat(&handle, part.as_os_str(), flags | how, Mode::empty()).map_err(
                    Error::io("open, without following links, the directory", path),
                )?;
        }
        Ok(Directory {
            handle: File::from(handle),
            path: path.to_path_buf(),
        })
    }

    /// Opens a directory by its name in this one; a link is refused.
    ///
    /// # Errors
    ///
    /// Missing, a link, not a directory, or not readable.
    pub fn child(&self, name: &OsStr) -> Result<Directory> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, name, flags, Mode::empty()).map_err(
            Error::io("open, without following links, the directory", &path),
        )?;
        Ok(Directory {
            handle: File::from(handle),
            path,
        })
    }

    /// Whether this process may add and remove names here.
    pub fn is_writable(&self) -> bool {
        use rustix::fs::Access;
        let needed = Access::WRITE_OK | Access::EXEC_OK;
        rustix::fs::accessat(&self.handle, ".", needed, AtFlags::empty()).is_ok()
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which directory it is.
    ///
    /// # Errors
    ///
    /// The file system does not answer.
    pub fn identity(&self) -> Result<Identity> {
        let stat =
            rustix::fs::fstat(&self.handle).map_err(Error::io("examine", self.path.as_path()))?;
        Ok(Entry::from_stat(&stat).identity)
    }

    /// The names in the directory, in no order.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn names(&self) -> Result<Vec<OsString>> {
        let read = || -> std::result::Result<Vec<OsString>, rustix::io::Errno> {
            let mut names = Vec::new();
            for entry in rustix::fs::Dir::read_from(&self.handle)? {
                let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
                if name != "." && name != ".." {
                    names.push(name);
                }
            }
            Ok(names)
        };
        read().map_err(Error::io("list the directory", &self.path))
    }

    /// What a name stands for, without following it; `None` if there is no such name.
    ///
    /// # Errors
    ///
    /// The file system does not answer.
    pub fn entry(&self, name: &OsStr) -> Result<Option<Entry>> {
        match rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Entry::from_stat(&stat))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::io("examine", self.path.join(name))(errno)),
        }
    }

    /// Reads a regular file of at most `limit` bytes, not following a link, never
    /// blocking on a pipe, and says what the file was while it was read.
    ///
    /// # Errors
    ///
    /// Missing, a link, not a regular file, too large, not readable.
    pub fn read(&self, name: &OsStr, limit: u64) -> Result<(Vec<u8>, Entry)> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let handle = match rustix::fs::openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(errno) => {
                let found = self.entry(name)?.map(|entry| entry.kind);
                return Err(match found {
                    Some(kind) if kind != Kind::File => Error::NotRegular {
                        path,
                        found: kind.describe(),
                    },
                    _ => Error::io("read", path)(errno),
                });
            }
        };
        let file = File::from(handle);
        let bytes = crate::read::read_open(&file, &path, limit)?;
        let stat = rustix::fs::fstat(&file).map_err(Error::io("examine", &path))?;
        Ok((bytes, Entry::from_stat(&stat)))
    }

    /// The extended attributes of a file, for giving them to its successor. Empty where
    /// the file system has none.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub fn extended_attributes(&self, name: &OsStr) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.handle, name, flags, Mode::empty())
            .map_err(Error::io("read the attributes of", self.path.join(name)))?;
        let mut names = vec![0_u8; 64 * 1024];
        let Ok(length) = rustix::fs::flistxattr(&file, &mut names[..]) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for attribute in names[..length].split(|byte| *byte == 0) {
            if attribute.is_empty() {
                continue;
            }
            let mut value = vec![0_u8; 64 * 1024];
            if let Ok(length) = rustix::fs::fgetxattr(&file, attribute, &mut value[..]) {
                value.truncate(length);
                found.push((attribute.to_vec(), value));
            }
        }
        Ok(found)
    }

    /// Makes a new file with this content, on the disk when the call returns. The name
    /// must be free.
    ///
    /// # Errors
    ///
    /// The name is taken, or the operating system refuses. What was written so far stays
    /// under `name`: the caller knows whether it may be removed.
    pub fn create(
        &self,
        name: &OsStr,
        bytes: &[u8],
        attributes: &Attributes,
        steps: &mut dyn Steps,
    ) -> Result<()> {
        let path = self.path.join(name);
        let step = |steps: &mut dyn Steps, step: Step, action: &'static str| {
            steps.before(step, &path).map_err(Error::io(action, &path))
        };
        step(steps, Step::Create, "create")?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // An exact mode is set below, before the file can be found under its real name;
        // until then nobody else may open it.
        let mode = attributes.mode.map_or(0o666, |mode| mode & 0o600);
        let handle = rustix::fs::openat(&self.handle, name, flags, Mode::from_raw_mode(mode as _))
            .map_err(Error::io("create", &path))?;
        let mut file = File::from(handle);
        let (first, second) = bytes.split_at(bytes.len() / 2);
        step(steps, Step::WriteFirstHalf, "write")?;
        file.write_all(first).map_err(Error::io("write", &path))?;
        step(steps, Step::WriteSecondHalf, "write")?;
        file.write_all(second).map_err(Error::io("write", &path))?;
        step(steps, Step::SetAttributes, "set the permissions of")?;
        set_attributes(&file, attributes)
            .map_err(Error::io("set the owner or permissions of", &path))?;
        if attributes.volatile {
            return Ok(());
        }
        step(steps, Step::SyncFile, "write to the disk")?;
        file.sync_all()
            .map_err(Error::io("write to the disk", &path))
    }

    /// Gives a file another name, replacing what has that name.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub fn rename(&self, from: &OsStr, to: &OsStr, steps: &mut dyn Steps) -> Result<()> {
        let path = self.path.join(to);
        steps
            .before(Step::Rename, &path)
            .map_err(Error::io("rename a file to", &path))?;
        rustix::fs::renameat(&self.handle, from, &self.handle, to)
            .map_err(Error::io("rename a file to", &path))
    }

    /// Gives a file a name that nobody has.
    ///
    /// # Errors
    ///
    /// [`Error::is_already_there`] if the name is taken, or the operating system refuses.
    pub fn rename_new(&self, from: &OsStr, to: &OsStr, steps: &mut dyn Steps) -> Result<()> {
        let path = self.path.join(to);
        steps
            .before(Step::Rename, &path)
            .map_err(Error::io("rename a file to", &path))?;
        let renamed =
            rustix::fs::renameat_with(&self.handle, from, &self.handle, to, RenameFlags::NOREPLACE);
        match renamed {
            Err(errno) if is_unsupported(errno) => {
                // A file system without the flag: look first. The window is as small as
                // it can be made there.
                if self.entry(to)?.is_some() {
                    return Err(Error::io("rename a file to", &path)(
                        rustix::io::Errno::EXIST,
                    ));
                }
                rustix::fs::renameat(&self.handle, from, &self.handle, to)
                    .map_err(Error::io("rename a file to", &path))
            }
            other => other.map_err(Error::io("rename a file to", &path)),
        }
    }

    /// Lets two files trade their names in one instant, so that whatever had the name is
    /// still there to be looked at. Says `false`, having done nothing, where the file
    /// system cannot do it.
    ///
    /// # Errors
    ///
    /// The operating system refuses, for instance because one of the names is gone.
    pub fn exchange(&self, one: &OsStr, other: &OsStr, steps: &mut dyn Steps) -> Result<bool> {
        let path = self.path.join(other);
        steps
            .before(Step::Exchange, &path)
            .map_err(Error::io("exchange", &path))?;
        let exchanged = rustix::fs::renameat_with(
            &self.handle,
            one,
            &self.handle,
            other,
            RenameFlags::EXCHANGE,
        );
        match exchanged {
            Ok(()) => Ok(true),
            Err(errno) if is_unsupported(errno) => Ok(false),
            Err(errno) => Err(Error::io("exchange", &path)(errno)),
        }
    }

    /// Removes a file's name.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub fn remove(&self, name: &OsStr, steps: &mut dyn Steps) -> Result<()> {
        let path = self.path.join(name);
        steps
            .before(Step::Remove, &path)
            .map_err(Error::io("remove", &path))?;
        rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())
            .map_err(Error::io("remove", &path))
    }

    /// Makes a directory. `None` for the mode means `0777` less the process's umask.
    ///
    /// # Errors
    ///
    /// The name is taken, or the operating system refuses.
    pub fn make_directory(
        &self,
        name: &OsStr,
        mode: Option<u32>,
        steps: &mut dyn Steps,
    ) -> Result<()> {
        let path = self.path.join(name);
        steps
            .before(Step::MakeDirectory, &path)
            .map_err(Error::io("make the directory", &path))?;
        let mode = Mode::from_raw_mode(mode.unwrap_or(0o777) as _);
        rustix::fs::mkdirat(&self.handle, name, mode)
            .map_err(Error::io("make the directory", &path))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    ///
    /// It is not empty, or the operating system refuses.
    pub fn remove_directory(&self, name: &OsStr, steps: &mut dyn Steps) -> Result<()> {
        let path = self.path.join(name);
        steps
            .before(Step::RemoveDirectory, &path)
            .map_err(Error::io("remove the directory", &path))?;
        rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR)
            .map_err(Error::io("remove the directory", &path))
    }

    /// Forces the directory's names to the disk.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub fn sync(&self, steps: &mut dyn Steps) -> Result<()> {
        let action = "write to the disk the directory";
        steps
            .before(Step::SyncDirectory, &self.path)
            .map_err(Error::io(action, &self.path))?;
        match self.handle.sync_all() {
            // Some network file systems cannot sync a directory and say so.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            other => other.map_err(Error::io(action, &self.path)),
        }
    }

    /// The whole story: a temporary file, its content on the disk, renamed into place,
    /// the name on the disk. On an error nothing of the temporary file is left.
    ///
    /// # Errors
    ///
    /// The operating system refuses; `name` still has what it had.
    pub fn replace(
        &self,
        name: &OsStr,
        bytes: &[u8],
        attributes: &Attributes,
        steps: &mut dyn Steps,
    ) -> Result<()> {
        let temporary = temporary_name();
        let temporary = OsStr::new(&temporary);
        let placed = self
            .create(temporary, bytes, attributes, steps)
            .and_then(|()| self.rename(temporary, name, steps));
        if let Err(error) = placed {
            // The first error is the one to tell; a temporary file that cannot be removed
            // either is swept later by its prefix.
            let _ = rustix::fs::unlinkat(&self.handle, temporary, AtFlags::empty());
            return Err(error);
        }
        if attributes.volatile {
            return Ok(());
        }
        self.sync(steps)
    }
}

/// Reads the content of an open file up to a limit.
pub(crate) fn read_up_to(file: &File, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// A name that nobody else uses, short enough beside names of any length.
pub(crate) fn temporary_name() -> String {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(std::process::id());
    format!("{TEMPORARY_PREFIX}{random:016x}.tmp")
}

fn set_attributes(file: &File, attributes: &Attributes) -> io::Result<()> {
    if let Some((owner, group)) = attributes.owner {
        let now = Entry::from_stat(&rustix::fs::fstat(file)?);
        if (now.owner, now.group) != (owner, group) {
            rustix::fs::fchown(file, Some(Uid::from_raw(owner)), Some(Gid::from_raw(group)))?;
        }
    }
    for (name, value) in &attributes.extended {
        let flags = rustix::fs::XattrFlags::empty();
        let set = rustix::fs::fsetxattr(file, name.as_slice(), value, flags);
        // Labels that the system itself manages (SELinux, capabilities) follow its own
        // policy for the new file; what a person can set must survive.
        if name.starts_with(b"user.") || name == b"system.posix_acl_access" {
            set?;
        }
    }
    if let Some(mode) = attributes.mode {
        // Last, since changing the owner clears the set-uid and set-gid bits.
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode as _))?;
    }
    Ok(())
}

/// The two names of "not supported" are one number on some systems and two on others.
fn is_unsupported(errno: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP].contains(&errno)
}
