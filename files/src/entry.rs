//! What the file system says about one name, without following it.

use rustix::fs::{FileType, Stat};

/// Which file it is, whatever its name: equal for two names of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The device that holds the file.
    pub device: u64,
    /// The file's number on that device.
    pub inode: u64,
}

/// What sort of thing a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; what it points to was not looked at.
    Link,
    /// A named pipe, which could block whoever opens it.
    Pipe,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
    /// Anything else.
    Other,
}

impl Kind {
    /// The kind with its article, for messages.
    pub fn describe(self) -> &'static str {
        match self {
            Kind::File => "a regular file",
            Kind::Directory => "a directory",
            Kind::Link => "a symbolic link",
            Kind::Pipe => "a named pipe",
            Kind::Socket => "a socket",
            Kind::Device => "a device",
            Kind::Other => "of an unknown kind",
        }
    }
}

/// One name in a directory, as it stood at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Which file it is.
    pub identity: Identity,
    /// Length in bytes.
    pub length: u64,
    /// Permission bits, including set-uid, set-gid and sticky (`0o7777`).
    pub mode: u32,
    /// The owner's number.
    pub owner: u32,
    /// The group's number.
    pub group: u32,
    /// How many names the file has; more than one means hard links.
    pub links: u64,
    /// Last change of the content, in nanoseconds since 1970.
    pub modified_ns: i128,
}

impl Entry {
    #[expect(
        clippy::unnecessary_cast,
        clippy::useless_conversion,
        reason = "the widths of these fields differ between platforms"
    )]
    pub(crate) fn from_stat(stat: &Stat) -> Entry {
        let kind = match FileType::from_raw_mode(stat.st_mode as _) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            FileType::Fifo => Kind::Pipe,
            FileType::Socket => Kind::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => Kind::Device,
            _ => Kind::Other,
        };
        Entry {
            kind,
            identity: Identity {
                device: stat.st_dev as u64,
                inode: stat.st_ino as u64,
            },
            length: u64::try_from(stat.st_size).unwrap_or(0),
            mode: u32::from(stat.st_mode) & 0o7777,
            owner: stat.st_uid,
            group: stat.st_gid,
            links: stat.st_nlink as u64,
            modified_ns: i128::from(stat.st_mtime) * 1_000_000_000 + stat.st_mtime_nsec as i128,
        }
    }
}
