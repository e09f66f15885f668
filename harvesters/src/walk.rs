//! Finding log files without being led astray: links are not followed, pipes are not
//! opened, folders that cannot be read are noted and passed by.

use std::path::{Path, PathBuf};

use crate::report::{Report, SkipReason};
use crate::stamp::FileStamp;

/// No agent nests its logs deeper.
const DEEPEST: usize = 10;

/// A regular file that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) stamp: FileStamp,
}

/// A regular file that is read on behalf of another one, if it is there: a change of it is
/// a change of that other one.
pub(crate) fn aside(path: PathBuf) -> Option<Found> {
    let metadata = std::fs::symlink_metadata(&path).ok()?;
    metadata.is_file().then(|| Found {
        stamp: FileStamp::of(&metadata),
        path,
    })
}

/// All regular files below `root` whose name `wanted` accepts, sorted by path. A
/// missing root is no error: that agent is not used here.
pub(crate) fn files(root: &Path, report: &mut Report, wanted: &dyn Fn(&str) -> bool) -> Vec<Found> {
    let mut found = Vec::new();
    // The root itself may be a link (dotfiles kept elsewhere); what is below may not.
    let Ok(root) = fs_err::canonicalize(root) else {
        return found;
    };
    let mut folders = vec![(root, 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                report.unreadable(&folder, &error);
                continue;
            }
        };
        for entry in entries {
            match entry {
                Ok(entry) => visit(&entry, depth, &mut folders, &mut found, report, wanted),
                Err(error) => report.unreadable(&folder, &error),
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Sorts one entry of a folder into folders to visit and files to read.
fn visit(
    entry: &std::fs::DirEntry,
    depth: usize,
    folders: &mut Vec<(PathBuf, usize)>,
    found: &mut Vec<Found>,
    report: &mut Report,
    wanted: &dyn Fn(&str) -> bool,
) {
    let path = entry.path();
    let kind = match entry.file_type() {
        Ok(kind) => kind,
        Err(error) => return report.unreadable(&path, &error),
    };
    if kind.is_dir() {
        if depth < DEEPEST {
            folders.push((path, depth + 1));
        } else {
            report.skip(&path, SkipReason::TooDeep, "");
        }
        return;
    }
    if !entry.file_name().to_str().is_some_and(wanted) {
        // A link to a folder may have any name: say that it was not followed.
        if kind.is_symlink() && path.is_dir() {
            report.skip(&path, SkipReason::SymbolicLink, "");
        }
        return;
    }
    if kind.is_symlink() {
        return report.skip(&path, SkipReason::SymbolicLink, "");
    }
    if !kind.is_file() {
        return report.skip(&path, SkipReason::NotAFile, "");
    }
    match entry.metadata() {
        Ok(metadata) => found.push(Found {
            stamp: FileStamp::of(&metadata),
            path,
        }),
        Err(error) => report.unreadable(&path, &error),
    }
}
