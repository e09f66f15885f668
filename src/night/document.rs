//! The documents that a night may propose changes of: a SKILL.md or a file of its `references/` as a
//! whole, or the learned block of an instruction file (CLAUDE.md, AGENTS.md), whose other text
//! belongs to the person.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::skill::front_matter;
use crate::skill::learned::{self, DamagedBlock};

/// Largest document that is read, in bytes.
const MAX_DOCUMENT_BYTES: u64 = 4 << 20;

/// What kind of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    /// A SKILL.md; all of it may change.
    Skill,
    /// A file of a skill's `references/`; all of it may change.
    Reference,
    /// An instruction file; only its learned block may change.
    Memory,
}

impl DocumentKind {
    /// The name in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Skill => "skill",
            Self::Reference => "reference",
            Self::Memory => "memory",
        }
    }
}

/// Why a document cannot be trained.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It cannot be read.
    #[error("cannot read {path}: {message}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Its learned block is damaged.
    #[error("the learned block of {path} is damaged: {source}; mend the file by hand")]
    Block {
        /// The file.
        path: PathBuf,
        /// What is wrong with the block.
        source: DamagedBlock,
    },
}

/// A document as it was when the night began.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// What kind.
    pub kind: DocumentKind,
    /// The skill's name, or the file's name.
    pub name: String,
    /// Where it is, or will be.
    pub path: PathBuf,
    /// Its text; `None` when there is no such file yet.
    pub text: Option<String>,
}

impl Document {
    /// Reads the document at `path`; a missing file is an empty document that adoption creates.
    ///
    /// # Errors
    /// [`DocumentError`].
    pub fn read(kind: DocumentKind, name: &str, path: &Path) -> Result<Self, DocumentError> {
        let text = match skillopt_files::read_text(path, MAX_DOCUMENT_BYTES) {
            Ok(text) => Some(text),
            Err(error) if error.is_not_found() => None,
            Err(error) => {
                return Err(DocumentError::Read {
                    path: path.to_owned(),
                    message: error.to_string(),
                });
            }
        };
        let document = Self {
            kind,
            name: name.to_owned(),
            path: path.to_owned(),
            text,
        };
        if kind == DocumentKind::Memory {
            document.rules()?;
        }
        Ok(document)
    }

    /// What the trainer starts from: a skill's or reference's whole text (line ends as LF; for a skill
    /// a scaffold when there is none yet), or the rules of a learned block, one `- ` line each.
    ///
    /// # Errors
    /// [`DocumentError::Block`].
    pub fn trainable(&self) -> Result<String, DocumentError> {
        match self.kind {
            DocumentKind::Skill => Ok(match &self.text {
                Some(text) if !text.trim().is_empty() => text.replace("\r\n", "\n"),
                _ => front_matter::scaffold(
                    &self.name,
                    "What this developer expects of a coding agent, learnt from earlier sessions. \
                     Read it before any work.",
                    "Learnt from earlier sessions",
                    "Standing habits and preferences of this developer.",
                ),
            }),
            DocumentKind::Reference => {
                let text = self.text.as_deref().unwrap_or_default();
                Ok(text.replace("\r\n", "\n"))
            }
            DocumentKind::Memory => Ok(self
                .rules()?
                .iter()
                .map(|rule| format!("- {rule}\n"))
                .collect()),
        }
    }

    /// The whole document with what was trained in its place.
    ///
    /// # Errors
    /// [`DocumentError::Block`].
    pub fn with_trained(&self, trained: &str) -> Result<String, DocumentError> {
        match self.kind {
            DocumentKind::Skill | DocumentKind::Reference => Ok(trained.to_owned()),
            DocumentKind::Memory => {
                let rules = as_rules(trained);
                let base = self.text.as_deref().unwrap_or_default();
                learned::write(base, &rules).map_err(|source| self.damaged(source))
            }
        }
    }

    fn rules(&self) -> Result<Vec<String>, DocumentError> {
        learned::rules(self.text.as_deref().unwrap_or_default())
            .map_err(|source| self.damaged(source))
    }

    fn damaged(&self, source: DamagedBlock) -> DocumentError {
        DocumentError::Block {
            path: self.path.clone(),
            source,
        }
    }
}

/// A trained text as rules: each list item is one, as is each line outside of a list.
fn as_rules(text: &str) -> Vec<String> {
    let mut rules: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let continued = line.starts_with([' ', '\t']);
        match (continued, rules.last_mut()) {
            (true, Some(rule)) => {
                rule.push(' ');
                rule.push_str(line.trim());
            }
            _ => {
                let rule = line.trim();
                let rule = rule
                    .strip_prefix("- ")
                    .or_else(|| rule.strip_prefix("* "))
                    .unwrap_or(rule);
                if !rule.starts_with('#') {
                    rules.push(rule.trim().to_owned());
                }
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_rule_stays_one_rule() {
        assert_eq!(
            as_rules("## Rules\n- one\n  goes on\n\n- two\nthree\n"),
            ["one goes on", "two", "three"]
        );
    }
}
