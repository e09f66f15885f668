//! Which projects are wanted, and to which of them a session belongs.

use std::path::{Path, PathBuf};

use crate::cursor;
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
                folders.iter().any(|folder| {
                    Path::new(project).starts_with(folder)
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
