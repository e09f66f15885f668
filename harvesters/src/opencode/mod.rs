//! `OpenCode` (session-logs.md, section 5).
//!
//! Sessions, messages and parts of messages are rows of a database, or, before release
//! 1.2, one small JSON file each. After a migration both are there with the same ids; the
//! database counts then.

mod teller;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::clock;
use crate::database::Database;
use crate::harvest::Run;
use crate::node::Node;
use crate::redact::Door;
use crate::report::SkipReason;
use crate::session::{Agent, Session};
use crate::source::{Source, SourceInfo};
use crate::tape::Json;
use crate::walk::{self, Found};

use teller::Teller;

/// `OpenCode`'s store.
pub(crate) struct OpenCode;

impl Source for OpenCode {
    fn info(&self) -> SourceInfo {
        SourceInfo {
            agent: Agent::OpenCode,
            title: "OpenCode",
            reads: "opencode.db and opencode-*.db (tables session, message, part), storage/{session,message,part}",
            location: "$XDG_DATA_HOME/opencode or ~/.local/share/opencode, $OPENCODE_DB",
            keeps: "prompts, answers, tool calls with results, files, models, tokens, cost",
        }
    }

    fn default_roots(
        &self,
        _: &str,
        home: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Vec<PathBuf> {
        let data =
            variable("XDG_DATA_HOME").map_or_else(|| home.join(".local/share"), PathBuf::from);
        let folder = data.join("opencode");
        // The variable names a file, absolute or in that folder.
        let named = variable("OPENCODE_DB").map(|path| folder.join(path));
        std::iter::once(folder.clone()).chain(named).collect()
    }

    fn read(&self, root: &Path, run: &mut Run<'_>) -> ControlFlow<()> {
        let mut known = HashSet::new();
        for path in databases(root) {
            stored(&path, &mut known, run)?;
        }
        tree(&root.join("storage"), &known, run)
    }
}

/// The root itself if it is a file, else the databases in it.
fn databases(root: &Path) -> Vec<PathBuf> {
    if root.is_file() {
        return vec![root.to_owned()];
    }
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name == "opencode.db" || name.starts_with("opencode-") && name.ends_with(".db")
        })
        .collect();
    paths.sort();
    paths
}

/// Reads a database.
fn stored(path: &Path, known: &mut HashSet<String>, run: &mut Run<'_>) -> ControlFlow<()> {
    let Some((database, file)) = Database::changed(path, run) else {
        return ControlFlow::Continue(());
    };
    let mut sessions = Vec::new();
    let mut children: HashMap<String, u32> = HashMap::new();
    let listed = database.rows("session", None, &["time_created", "id"], |row| {
        let parent = row.node().get("parent_id").text().map(str::to_owned);
        match parent {
            Some(parent) => *children.entry(parent).or_default() += 1,
            None => sessions.push(row),
        }
    });
    if let Err(reason) = listed {
        run.report.skip(&file.path, SkipReason::Database, &reason);
    }
    for _ in 0..children.values().sum::<u32>() {
        run.report.skip(&file.path, SkipReason::SubAgent, "");
    }
    let mut told = 0;
    for row in &sessions {
        run.report.records += 1;
        let row = row.node();
        let Some(id) = row.get("id").text() else {
            continue;
        };
        if !known.insert(id.to_owned()) {
            run.report.skip(&file.path, SkipReason::Twin, "");
            continue;
        }
        let revert = parsed(row.get("revert"));
        let mut teller = Teller::new(run.door(), id, revert.node());
        let facts = &mut teller.assembler.session;
        describe(facts, run.door(), row, &file);
        facts.sub_agents = children.get(id).copied().unwrap_or_default();
        facts.started = clock::time(row.get("time_created"));
        facts.ended = clock::time(row.get("time_updated"));
        let metadata = parsed(row.get("metadata"));
        facts.git.branch = metadata
            .node()
            .get("gitBranch")
            .text()
            .map(|name| teller.assembler.door.note(name));
        teller.by_engine = row.get("agent").str().is_some_and(is_engine);
        match tell_rows(&database, id, &mut teller) {
            Ok(messages) => told += messages,
            Err(reason) => run.report.skip(&file.path, SkipReason::Database, &reason),
        }
        run.emit(teller.finish())?;
    }
    if told == 0 && !sessions.is_empty() && database.has("session_message") {
        run.report.warnings.push(
            "OpenCode: the database has sessions but no messages; its event tables are not read"
                .to_owned(),
        );
    }
    ControlFlow::Continue(())
}

/// Tells the messages of a session, one at a time; returns how many there were.
fn tell_rows(database: &Database, id: &str, teller: &mut Teller<'_>) -> Result<u64, String> {
    let mut messages = 0;
    let mut failed = None;
    let order = ["time_created", "id"];
    database.rows("message", Some(("session_id", id)), &order, |row| {
        let row = row.node();
        let data = parsed(row.get("data"));
        let message = row.get("id").str().unwrap_or_default();
        let mut parts = Vec::new();
        let read = database.rows("part", Some(("message_id", message)), &["id"], |part| {
            parts.push(parsed(part.node().get("data")));
        });
        failed = failed.take().or(read.err());
        messages += 1;
        teller.message(message, data.node(), &parts);
    })?;
    failed.map_or(Ok(messages), Err)
}

/// Whether an agent's name is one that the Python original makes for its replays: a prefix
/// and 32 hexadecimal digits.
fn is_engine(agent: &str) -> bool {
    const DIGITS: usize = 32;
    agent.strip_prefix("skillopt-sleep-").is_some_and(|id| {
        id.len() == DIGITS
            && id
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

/// The value in a JSON text; null when it is none.
fn parsed(text: Node<'_>) -> Json {
    text.str()
        .and_then(|text| Json::parse(text).ok())
        .unwrap_or_default()
}

/// Reads the tree of small files.
fn tree(storage: &Path, known: &HashSet<String>, run: &mut Run<'_>) -> ControlFlow<()> {
    let files = walk::files(&storage.join("session"), &mut run.report, &|name| {
        name.ends_with(".json")
    });
    run.report.files_found += files.len() as u64;
    let changed: Vec<Found> = files
        .into_iter()
        .filter(|file| !run.all_unchanged(std::iter::once(file)))
        .collect();
    let mut sessions = Vec::new();
    let mut children: HashMap<String, u32> = HashMap::new();
    for file in changed {
        let Some(value) = document(&file, run) else {
            continue;
        };
        let node = value.node();
        let id = node.get("id").text().unwrap_or_default().to_owned();
        if let Some(parent) = node.get("parentID").text() {
            *children.entry(parent.to_owned()).or_default() += 1;
            run.report.skip(&file.path, SkipReason::SubAgent, "");
        } else if known.contains(&id) {
            run.report.skip(&file.path, SkipReason::Twin, "");
        } else if is_name(&id) {
            sessions.push((file, id, value));
        } else {
            run.report.skip(&file.path, SkipReason::Empty, "");
        }
    }
    for (file, id, value) in sessions {
        let node = value.node();
        let mut teller = Teller::new(run.door(), &id, node.get("revert"));
        let facts = &mut teller.assembler.session;
        describe(facts, run.door(), node, &file);
        facts.sub_agents = children.get(&id).copied().unwrap_or_default();
        facts.started = clock::time(node.at(&["time", "created"]));
        facts.ended = clock::time(node.at(&["time", "updated"]));
        for message in documents(&storage.join("message").join(&id), run) {
            let node = message.node();
            let name = node.get("id").str().unwrap_or_default();
            let parts = match is_name(name) {
                true => documents(&storage.join("part").join(name), run),
                false => Vec::new(),
            };
            teller.message(name, node, &parts);
        }
        run.emit(teller.finish())?;
    }
    ControlFlow::Continue(())
}

/// Whether an id can be the name of a folder and nothing else.
fn is_name(id: &str) -> bool {
    !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Reads a small file; what goes wrong is noted.
fn document(file: &Found, run: &mut Run<'_>) -> Option<Json> {
    let mut log = run.open(file)?;
    let value = log.whole_document(run.options.limits.line, &mut run.report);
    run.close(log);
    value
}

/// The small files of a folder by name, which is by time. They are read on behalf of
/// their session and neither counted nor remembered.
fn documents(folder: &Path, run: &mut Run<'_>) -> Vec<Json> {
    let files = walk::files(folder, &mut run.report, &|name| name.ends_with(".json"));
    let mut values = Vec::new();
    for file in files {
        let Some(mut log) = run.open_aside(&file) else {
            run.report.skip(&file.path, SkipReason::Unreadable, "");
            continue;
        };
        values.extend(log.whole_document(run.options.limits.line, &mut run.report));
    }
    values
}

/// What both stores say about a session in the same words.
fn describe(facts: &mut Session, door: Door<'_>, node: Node<'_>, file: &Found) {
    let note = |name: &str| node.get(name).text().map(|text| door.note(text));
    facts.agent = Agent::OpenCode;
    facts.files = vec![file.path.to_string_lossy().into_owned()];
    facts.project = note("directory");
    facts.title = note("title");
    facts.agent_version = note("version");
}
