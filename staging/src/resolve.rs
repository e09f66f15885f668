//! Where a path really leads, also when the end of it is not there yet.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::refusal::{Refusal, RefusalKind};

/// The path with links resolved, and the directories that are missing on the way.
pub(crate) fn resolve(path: &Path) -> Result<(PathBuf, Vec<PathBuf>), Refusal> {
    if let Ok(real) = path.canonicalize() {
        return Ok((real, Vec::new()));
    }
    let mut missing: Vec<OsString> = Vec::new();
    let mut nearest = path;
    loop {
        match std::fs::symlink_metadata(nearest) {
            Ok(metadata) if metadata.is_symlink() => match nearest.canonicalize() {
                Ok(_) => break,
                Err(error) => {
                    return Err(Refusal::path(
                        RefusalKind::LiveSymlink,
                        path,
                        format!(
                            "{} is a link that cannot be followed ({error}): repair or remove it",
                            nearest.display()
                        ),
                    ));
                }
            },
            Ok(_) => break,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {}
            Err(error) => {
                return Err(Refusal::path(RefusalKind::LiveUnreadable, path, error));
            }
        }
        let (Some(parent), Some(name)) = (nearest.parent(), nearest.file_name()) else {
            break;
        };
        missing.push(name.to_owned());
        nearest = parent;
    }
    let mut real = nearest
        .canonicalize()
        .map_err(|error| Refusal::path(RefusalKind::LiveUnreadable, path, error))?;
    if !real.is_dir() {
        return Err(Refusal::path(
            RefusalKind::AncestorUnsafe,
            path,
            format!("{} is not a directory: move it away", nearest.display()),
        ));
    }
    let mut directories = Vec::new();
    while let Some(name) = missing.pop() {
        real.push(name);
        if !missing.is_empty() {
            directories.push(real.clone());
        }
    }
    Ok((real, directories))
}
