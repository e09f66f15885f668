//! Which projects are wanted, and to which of them a session belongs.

use std::path::{Path, PathBuf};

use crate::cursor;
use crate::path;
use crate::redact::Redactor;
use crate::session::{Agent, Session};

/// Which projects are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProjectScope {
    /// All, also sessions without a known project.
    #[default]
    All,
    /// Sessions that started in one of these directories or below.
    Under(Vec<PathBuf>),
}

/// What a session's place is known by.
#[derive(Clone, Copy, Debug)]
pub struct Whereabouts<'a, Folder> {
    /// Whose session.
    pub agent: Agent,
    /// Where it began.
    pub project: Option<&'a str>,
    /// Where it went later.
    pub later_folders: &'a [Folder],
    /// The first of its log files.
    pub file: &'a str,
}

impl ProjectScope {
    /// Whether a session is wanted. One whose log does not say where it started, or that
    /// went to a wanted project later, gets that project: redacted, since it may be one of
    /// these folders as the user wrote it.
    pub fn takes(&self, session: &mut Session, redactor: &Redactor) -> bool {
        let file = session.files.first().map(String::as_str);
        let found = self.project_of(Whereabouts {
            agent: session.agent,
            project: session.project.as_deref(),
            later_folders: &session.later_folders,
            file: file.unwrap_or_default(),
        });
        let Some(project) = found else {
            return false;
        };
        if project.as_deref() != session.project.as_deref() {
            session.project = project.map(|project| redactor.redacted(project));
        }
        true
    }

    /// The project of a session that was there: where it began if that is wanted, else the
    /// last wanted folder that it went to. `None` when the session is in none.
    #[must_use]
    pub fn project_of<Folder: AsRef<str>>(
        &self,
        place: Whereabouts<'_, Folder>,
    ) -> Option<Option<String>> {
        if self.includes(place.project) {
            return Some(place.project.map(str::to_owned));
        }
        let mut entered = place.later_folders.iter().rev().map(AsRef::as_ref);
        let entered = entered.find(|folder| self.includes(Some(folder)));
        let found = entered.map(str::to_owned);
        found.or_else(|| self.by_folder_name(place)).map(Some)
    }

    /// The wanted project that a session of Cursor belongs to by the name of its folder,
    /// which cannot be turned back into a path.
    fn by_folder_name<Folder>(&self, place: Whereabouts<'_, Folder>) -> Option<String> {
        let ProjectScope::Under(projects) = self else {
            return None;
        };
        if place.agent != Agent::Cursor || place.project.is_some() {
            return None;
        }
        let name = cursor::folder_of(place.file)?;
        let mut projects = projects.iter();
        let project = projects.find(|project| cursor::folder_name(project) == name)?;
        Some(project.to_string_lossy().into_owned())
    }

    /// Whether a session of that project is wanted. A session without a project is in
    /// no scope but [`ProjectScope::All`].
    #[must_use]
    pub fn includes(&self, project: Option<&str>) -> bool {
        match (self, project) {
            (ProjectScope::All, _) => true,
            (ProjectScope::Under(_), None | Some("")) => false,
            (ProjectScope::Under(folders), Some(project)) => {
                let real = fs_err::canonicalize(project).ok();
                let project = spelled(project);
                folders.iter().any(|folder| {
                    let wanted = spelled(&folder.to_string_lossy());
                    Path::new(&project).starts_with(wanted)
                        || real.as_ref().is_some_and(|real| {
                            real.starts_with(
                                fs_err::canonicalize(folder).unwrap_or_else(|_| folder.clone()),
                            )
                        })
                })
            }
        }
    }
}

/// An absolute path with `.` and `..` resolved by spelling, so that a folder that is gone is
/// compared as well. Any other text is left as it is.
fn spelled(path: &str) -> String {
    match path.starts_with('/') {
        true => format!("/{}", path::normal(path).trim_start_matches('/')),
        false => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_compared_as_they_resolve_not_as_they_are_spelled() {
        let includes = |folder: &str, project: &str| {
            ProjectScope::Under(vec![folder.into()]).includes(Some(project))
        };
        assert!(includes("/gone/proj", "/gone/./proj/../proj/a"));
        assert!(includes("/gone/proj/../proj", "/gone/proj/a"));
        assert!(includes("/", "/gone/proj"));
        assert!(!includes("/gone/proj", "/gone/proj/.."));
        assert!(!includes("/gone/proj", "/gone/proj2"));
    }
}
