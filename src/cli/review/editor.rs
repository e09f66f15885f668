//! The person's own editor, on a copy of the proposed text.

use std::io;
use std::process::Command;

use skillopt_staging::DOCUMENT_LIMIT;

/// Why there is no edited text.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum EditorError {
    /// Nobody said which editor, and there is no terminal to guess for.
    #[error("there is no editor: set VISUAL or EDITOR")]
    None,
    /// It could not be started, or the copy not be written or read.
    #[error(
        "cannot edit the text with `{editor}`: {source}; set VISUAL or EDITOR to another editor"
    )]
    Io {
        /// The editor.
        editor: String,
        /// What is wrong.
        source: io::Error,
    },
    /// It ended with an error.
    #[error("`{editor}` ended with {status}; nothing was changed")]
    Failed {
        /// The editor.
        editor: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// What it left is no text.
    #[error("the edited text cannot be used: {0}")]
    Text(#[from] skillopt_files::Error),
}

/// `VISUAL`, else `EDITOR`, else `vi` where there is a terminal.
pub(super) fn name(terminal: bool) -> Result<String, EditorError> {
    ["VISUAL", "EDITOR"]
        .iter()
        .filter_map(|variable| std::env::var(variable).ok())
        .find(|editor| !editor.trim().is_empty())
        .or_else(|| terminal.then(|| "vi".to_owned()))
        .ok_or(EditorError::None)
}

/// The text as the person left it; none when it was not changed.
pub(super) fn edit(editor: &str, text: &str) -> Result<Option<String>, EditorError> {
    let failed = |source| EditorError::Io {
        editor: editor.to_owned(),
        source,
    };
    let folder = tempfile::Builder::new()
        .prefix("skillopt-sleep-edit-")
        .tempdir()
        .map_err(failed)?;
    let path = folder.path().join("SKILL.md");
    std::fs::write(&path, text).map_err(failed)?;
    // The variable may hold arguments, as in `code --wait`.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(&path)
        .status()
        .map_err(failed)?;
    if !status.success() {
        return Err(EditorError::Failed {
            editor: editor.to_owned(),
            status,
        });
    }
    let edited = skillopt_files::read_text(&path, DOCUMENT_LIMIT)?;
    Ok((edited != text).then_some(edited))
}
