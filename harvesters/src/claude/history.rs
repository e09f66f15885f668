//! What was typed at a terminal (`history.jsonl`). Old logs do not say who started a
//! session; whoever is in this file was a person.

use std::collections::HashSet;
use std::path::Path;

use crate::harvest::Run;
use crate::redact::Redacted;
use crate::report::Report;
use crate::session::Session;
use crate::stamp::FileStamp;
use crate::tape::keep_all;
use crate::walk::Found;

/// The typed lines. None of them are kept for longer than a harvest.
#[derive(Default)]
pub(super) struct History {
    /// Sessions that they name.
    sessions: HashSet<String>,
    /// Project and text of those that name none, as up to 2.0.
    lines: HashSet<(Redacted, Redacted)>,
}

impl History {
    /// Reads the file below a root. None when there is no such file, which then says
    /// nothing.
    pub(super) fn read(root: &Path, run: &Run<'_>) -> Option<History> {
        let path = root.join("history.jsonl");
        let metadata = std::fs::symlink_metadata(&path).ok()?;
        if !metadata.is_file() {
            return None;
        }
        let file = Found {
            stamp: FileStamp::of(&metadata),
            path,
        };
        let door = run.door();
        let mut log = run.open_aside(&file)?;
        let mut history = History::default();
        log.each_record(keep_all, &mut Report::default(), |_, record, _| {
            if let Some(id) = record.get("sessionId").text() {
                history.sessions.insert(id.to_owned());
            } else if let Some(project) = record.get("project").text() {
                let text = record.get("display").str().unwrap_or_default();
                let line = (door.note(project), door.prompt(text.trim()));
                history.lines.insert(line);
            }
        });
        Some(history)
    }

    /// Whether something was typed in a session, known under this other id as well.
    pub(super) fn knows(&self, session: &Session, alias: Option<&str>) -> bool {
        let named = [Some(session.id.as_str()), alias];
        if named
            .into_iter()
            .flatten()
            .any(|id| self.sessions.contains(id))
        {
            return true;
        }
        let Some(project) = session.project.clone().filter(|_| !self.lines.is_empty()) else {
            return false;
        };
        let mut texts = session
            .prompts()
            .map(|prompt| prompt.text.clone().trimmed());
        texts.any(|text| self.lines.contains(&(project.clone(), text)))
    }
}
