//! Where documents may be written: what configuration allows, never what a file says.

use std::path::{Component, Path, PathBuf};

use crate::resolve::resolve;

/// File names that agents read as memory.
const MEMORY_NAMES: [&str; 5] = [
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "AGENTS.override.md",
    "GEMINI.md",
];

/// The file name of a skill.
const SKILL_NAME: &str = "SKILL.md";

/// The folder of a skill whose documents belong to it.
const REFERENCES: &str = "references";

/// The directories and documents that configuration lets this program write to. Made anew
/// from configuration for each adoption; nothing on disk can widen it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedRoots {
    roots: Vec<PathBuf>,
    documents: Vec<PathBuf>,
}

impl AllowedRoots {
    /// Nothing is allowed.
    pub fn new() -> AllowedRoots {
        AllowedRoots::default()
    }

    /// Allows skills in a directory of skills, with the documents of their `references/`.
    #[must_use]
    pub fn skills(mut self, directory: impl Into<PathBuf>) -> AllowedRoots {
        self.roots.push(directory.into());
        self
    }

    /// Allows a project's memory documents and skills.
    #[must_use]
    pub fn project(mut self, directory: impl Into<PathBuf>) -> AllowedRoots {
        self.roots.push(directory.into());
        self
    }

    /// Allows one document, whatever it is called; a link of that name may not lead out of
    /// its directory.
    #[must_use]
    pub fn document(mut self, path: impl Into<PathBuf>) -> AllowedRoots {
        self.documents.push(path.into());
        self
    }

    /// The directories, as configured.
    pub fn directories(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Whether a document is among those that are allowed one by one.
    pub(crate) fn names(&self, path: &Path) -> bool {
        self.documents.iter().any(|document| document == path)
    }

    /// Whether a canonical path is a directory that may be made for an allowed document: in
    /// an allowed directory, that directory itself, or one on the way to it.
    pub(crate) fn reaches(&self, real: &Path) -> bool {
        let parents = self.documents.iter().filter_map(|path| path.parent());
        self.confines(real)
            || self
                .roots
                .iter()
                .map(PathBuf::as_path)
                .chain(parents)
                .any(|place| real_path(place).is_some_and(|place| place.starts_with(real)))
    }

    /// Whether a canonical path is one that may be written.
    pub(crate) fn confines(&self, real: &Path) -> bool {
        let in_root = self
            .roots
            .iter()
            .any(|root| real_path(root).is_some_and(|root| real != root && real.starts_with(root)));
        in_root
            || self.documents.iter().any(|document| {
                let directory = document.parent().and_then(real_path);
                match (directory, document.file_name()) {
                    (Some(directory), Some(name)) => directory.join(name) == real,
                    _ => false,
                }
            })
    }
}

/// Where a configured directory really is, or will be once it is made.
fn real_path(directory: &Path) -> Option<PathBuf> {
    if !directory.is_absolute() {
        return None;
    }
    resolve(directory).ok().map(|(real, _)| real)
}

/// Whether agents read documents of this name: a skill, a document of its `references/`,
/// or a memory document.
pub(crate) fn is_document_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let known = name.is_some_and(|name| name == SKILL_NAME || MEMORY_NAMES.contains(&name));
    known
        || path
            .parent()
            .into_iter()
            .flat_map(Path::components)
            .any(|part| part == Component::Normal(REFERENCES.as_ref()))
}

/// Where package managers keep files that only they may change.
pub(crate) fn is_store(path: &Path) -> bool {
    ["/nix/store", "/gnu/store"]
        .iter()
        .any(|store| path.starts_with(store))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_documents_that_agents_read_have_the_right_name() {
        for path in ["/s/a/SKILL.md", "/p/CLAUDE.md", "/s/a/references/deep/x.md"] {
            assert!(is_document_name(Path::new(path)), "{path}");
        }
        for path in ["/p/README.md", "/s/a/skill.md", "/p/references.md"] {
            assert!(!is_document_name(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn stores_are_recognised_by_whole_parts() {
        assert!(is_store(Path::new("/nix/store/abc-home/SKILL.md")));
        assert!(!is_store(Path::new("/nix/storage/SKILL.md")));
    }
}
