//! Claude Code (session-logs.md, section 2).
//!
//! A folder of `projects/` holds conversations, one a file. Most files stand alone;
//! some repeat others: a fork copies its parent's records, an old resume copies them
//! under new ids. So files are read in families: files that share record ids near
//! their beginning. Within a family the oldest file owns what is shared.
//!
//! - [`row`]: one record, classified and reduced to what matters
//! - [`thread`]: which records are on the live branch
//! - [`build`]: live rows to a session

mod attachment;
mod background;
mod build;
mod family;
mod history;
mod queue;
mod results;
mod row;
mod thread;
mod transcript;
mod user;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::harvest::Run;
use crate::report::SkipReason;
use crate::session::Agent;
use crate::source::{Source, SourceInfo};
use crate::walk::{self, Found};

use history::History;
use transcript::Transcript;

/// Claude Code's logs.
pub(crate) struct ClaudeCode;

impl Source for ClaudeCode {
    fn info(&self) -> SourceInfo {
        SourceInfo {
            agent: Agent::Claude,
            title: "Claude Code",
            reads: "projects/*/*.jsonl, history.jsonl",
            location: "$CLAUDE_CONFIG_DIR or ~/.claude",
            keeps: "prompts, answers, tool calls with results, files, skills, git branch, models, tokens",
        }
    }

    fn default_roots(
        &self,
        _: &str,
        home: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Vec<PathBuf> {
        match variable("CLAUDE_CONFIG_DIR") {
            Some(root) => vec![PathBuf::from(root)],
            None => vec![home.join(".claude")],
        }
    }

    fn read(&self, root: &Path, run: &mut Run<'_>) -> ControlFlow<()> {
        let found = walk::files(&root.join("projects"), &mut run.report, &|name| {
            ends_with(name, ".jsonl")
        });
        let typed = History::read(root, run);
        let Ok(projects) = fs_err::canonicalize(root.join("projects")) else {
            return ControlFlow::Continue(());
        };
        let mut families = Vec::new();
        for folder in folders(&projects, found).into_values() {
            families.extend(families_of(folder, run));
        }
        read_families(&families, typed.as_ref(), run)
    }
}

/// Whether a file name ends so, in any case.
fn ends_with(name: &str, ending: &str) -> bool {
    name.len() >= ending.len()
        && name.is_char_boundary(name.len() - ending.len())
        && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending)
}

/// The logs of one project folder.
#[derive(Default)]
struct Folder {
    sessions: Vec<Found>,
    /// Logs of sub-agents: beside the sessions (2.0) or below one (2.1).
    sub_agents: Vec<Found>,
}

/// Sorts log files by project folder and by what they are.
fn folders(projects: &Path, found: Vec<Found>) -> BTreeMap<PathBuf, Folder> {
    let mut folders: BTreeMap<PathBuf, Folder> = BTreeMap::new();
    for file in found {
        let Ok(relative) = file.path.strip_prefix(projects) else {
            continue;
        };
        let mut parts = relative.components();
        let Some(slug) = parts.next() else {
            continue;
        };
        let depth = parts.clone().count();
        let name = file
            .path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let below_session = relative
            .components()
            .any(|part| part.as_os_str() == "subagents");
        let is_agent = name.starts_with("agent-") || below_session;
        let folder = folders.entry(projects.join(slug)).or_default();
        match (depth, is_agent) {
            (_, true) => folder.sub_agents.push(file),
            // Beside the sessions: notes, outputs of tools.
            (2.., false) if is_aside(relative) => {}
            (_, false) => folder.sessions.push(file),
        }
    }
    folders
}

/// Whether a file lies in a folder of a project or session that holds no conversations.
fn is_aside(relative: &Path) -> bool {
    relative.components().any(|part| {
        ["memory", "tool-results"]
            .iter()
            .any(|name| part.as_os_str() == *name)
    })
}

/// Files that are read together, and the sub-agents of their folder.
struct Family {
    members: Vec<Found>,
    /// Files of sub-agents by session.
    sub_agents: Arc<HashMap<String, Vec<String>>>,
}

impl Family {
    fn bytes(&self) -> u64 {
        self.members.iter().map(|file| file.stamp.size).sum()
    }
}

/// The families of a project folder in which something changed.
fn families_of(folder: Folder, run: &mut Run<'_>) -> Vec<Family> {
    run.report.files_found += (folder.sessions.len() + folder.sub_agents.len()) as u64;
    let everything = folder.sessions.iter().chain(&folder.sub_agents);
    if run.all_unchanged(everything) {
        return Vec::new();
    }
    for file in &folder.sub_agents {
        run.report.skip(&file.path, SkipReason::SubAgent, "");
        run.remember(file);
    }
    let sub_agents = Arc::new(family::owners(&folder.sub_agents));
    let helpers: HashMap<&Path, &Found> = folder
        .sub_agents
        .iter()
        .map(|file| (file.path.as_path(), file))
        .collect();
    family::families(folder.sessions, &run.options.known)
        .into_iter()
        .filter(|members| {
            // A new log of a sub-agent is news of the session that started it.
            let helpers = members
                .iter()
                .filter_map(|file| sub_agents.get(file.path.file_stem()?.to_str()?))
                .flatten()
                .filter_map(|path| helpers.get(Path::new(path)).copied());
            let helpers: Vec<&Found> = helpers.collect();
            !run.all_unchanged(members.iter().chain(helpers))
        })
        .map(|members| Family {
            members,
            sub_agents: Arc::clone(&sub_agents),
        })
        .collect()
}

/// Reads the sessions of families.
fn read_families(
    families: &[Family],
    typed: Option<&History>,
    run: &mut Run<'_>,
) -> ControlFlow<()> {
    run.each_unit(families, Family::bytes, |family, run| {
        let transcripts = family
            .members
            .iter()
            .filter_map(|file| Transcript::read(file, run))
            .collect();
        family::relate(transcripts, run)
            .into_iter()
            .map(|related| build::session(related, &family.sub_agents, typed, run.door()))
            .collect()
    })
}
