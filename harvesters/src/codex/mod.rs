//! Codex (session-logs.md, section 3).
//!
//! A session is a thread. Its log is a rollout file, perhaps followed by segments (after
//! going back), perhaps packed, perhaps moved to the archive; a file may lie in two of
//! these forms at once. Threads of sub-agents belong to the thread that started them.
//!
//! - [`files`]: rollout files grouped by thread
//! - [`line`]: one line to facts, whichever of the three formats it is in
//! - [`thread`]: the lines of a thread, dead and inherited ones marked
//! - [`build`]: lines to a session

mod build;
mod call;
mod content;
mod fact;
mod files;
mod item;
mod line;
mod patch;
mod script;
mod thread;
mod work;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::harvest::Run;
use crate::redact::Redacted;
use crate::report::{Report, SkipReason};
use crate::session::Agent;
use crate::source::{Source, SourceInfo};
use crate::stamp::FileStamp;
use crate::tape::keep_all;
use crate::walk::{self, Found};

use files::Threads;

/// Codex's logs.
pub(crate) struct Codex;

impl Source for Codex {
    fn info(&self) -> SourceInfo {
        SourceInfo {
            agent: Agent::Codex,
            title: "Codex",
            reads: "sessions/**/rollout-*.jsonl[.zst], archived_sessions/, history.jsonl, session_index.jsonl",
            location: "$CODEX_HOME or ~/.codex",
            keeps: "prompts, answers, tool calls with results, files, skills, git branch and commit, models, tokens",
        }
    }

    fn default_roots(
        &self,
        _: &str,
        home: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Vec<PathBuf> {
        match variable("CODEX_HOME") {
            Some(root) => vec![PathBuf::from(root)],
            None => vec![home.join(".codex")],
        }
    }

    fn read(&self, root: &Path, run: &mut Run<'_>) -> ControlFlow<()> {
        let mut found = Vec::new();
        for (folder, archived) in [("sessions", false), ("archived_sessions", true)] {
            let files = walk::files(&root.join(folder), &mut run.report, &files::is_rollout);
            found.extend(files.into_iter().map(|file| (file, archived)));
        }
        run.report.files_found += found.len() as u64;
        if run.all_unchanged(found.iter().map(|(file, _)| file)) {
            return ControlFlow::Continue(());
        }
        let index = Index {
            titles: texts_by_id(&root.join("session_index.jsonl"), "id", "thread_name", run),
            typed: texts_by_id(&root.join("history.jsonl"), "session_id", "session_id", run)
                .map(|ids| ids.into_keys().collect()),
        };
        let threads = Threads::group(found, &run.options.known, run.door(), &mut run.report);
        let changed: Vec<_> = threads
            .sessions()
            .filter(|thread| {
                let helpers = threads.sub_agents_of(&thread.id);
                let own = thread.files.iter().map(|file| &file.found);
                !run.all_unchanged(own.chain(helpers))
            })
            .collect();
        run.each_unit(
            &changed,
            |thread| thread.files.iter().map(|file| file.found.stamp.size).sum(),
            |thread, run| {
                build::session(thread, &threads, &index, run)
                    .into_iter()
                    .collect()
            },
        )?;
        for file in threads.sub_agent_files() {
            run.report.skip(&file.path, SkipReason::SubAgent, "");
            run.remember(file);
        }
        for twin in threads.twins() {
            run.remember(twin);
        }
        ControlFlow::Continue(())
    }
}

/// What the files beside the rollouts tell.
struct Index {
    /// Names of threads.
    titles: Option<HashMap<String, Redacted>>,
    /// Threads in which something was typed at a terminal.
    typed: Option<HashSet<String>>,
}

/// A text by id from a small line file; the last line of an id wins. None when there
/// is no such file.
fn texts_by_id(
    path: &Path,
    id: &str,
    text: &str,
    run: &Run<'_>,
) -> Option<HashMap<String, Redacted>> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() {
        return None;
    }
    let file = Found {
        stamp: FileStamp::of(&metadata),
        path: path.to_owned(),
    };
    let door = run.door();
    let mut log = run.open_aside(&file)?;
    let mut texts = HashMap::new();
    log.each_record(keep_all, &mut Report::default(), |_, record, _| {
        if let (Some(id), Some(text)) = (record.get(id).text(), record.get(text).text()) {
            texts.insert(id.to_owned(), door.note(text));
        }
    });
    Some(texts)
}
