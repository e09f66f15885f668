//! Copilot CLI (session-logs.md, section 7).
//!
//! A session's event log is the truth. The database is an index of sessions; it is read
//! only for sessions that have no event log.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::assemble::{Assembler, Spot, started_call};
use crate::clock;
use crate::database::Database;
use crate::events::Teller;
use crate::harvest::Run;
use crate::node::Node;
use crate::noise;
use crate::redact::Redacted;
use crate::report::SkipReason;
use crate::session::{Agent, CallStatus, CommandRun, Place, PromptKind, Session, ToolCall};
use crate::source::{Source, SourceInfo};
use crate::tape::{Json, keep_all};
use crate::walk::{self, Found};

/// The file beside a log that tells where the session was.
const WORKSPACE: &str = "workspace.yaml";

/// Copilot CLI's logs.
pub(crate) struct CopilotCli;

impl Source for CopilotCli {
    fn info(&self) -> SourceInfo {
        SourceInfo {
            agent: Agent::CopilotCli,
            title: "Copilot CLI",
            reads: "session-state/*/events.jsonl and workspace.yaml, session-state/*.jsonl, session-store.db",
            location: "$COPILOT_HOME or ~/.copilot",
            keeps: "prompts, answers, tool calls with results, files, skills, models, tokens, commit",
        }
    }

    fn default_roots(
        &self,
        _: &str,
        home: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Vec<PathBuf> {
        vec![variable("COPILOT_HOME").map_or_else(|| home.join(".copilot"), PathBuf::from)]
    }

    fn read(&self, root: &Path, run: &mut Run<'_>) -> ControlFlow<()> {
        let files = walk::files(&root.join("session-state"), &mut run.report, &|name| {
            name.ends_with(".jsonl")
        });
        let mut known = HashSet::new();
        // A folder's log sorts before the older file of the same id.
        for file in files {
            let Some(id) = id_of(&file.path) else {
                continue;
            };
            run.report.files_found += 1;
            if !known.insert(id.clone()) {
                run.report.skip(&file.path, SkipReason::Twin, "");
                continue;
            }
            let aside = file.path.parent().map(|folder| folder.join(WORKSPACE));
            let aside = aside.and_then(walk::aside);
            if run.all_unchanged(std::iter::once(&file).chain(&aside)) {
                continue;
            }
            if let Some(aside) = &aside {
                run.remember(aside);
            }
            if let Some(session) = session(&file, &id, run) {
                run.emit(session)?;
            }
        }
        stored(&root.join("session-store.db"), &known, run)
    }
}

/// The session of `session-state/<id>/events.jsonl` or `session-state/<id>.jsonl`.
fn id_of(path: &Path) -> Option<String> {
    let folder = path.parent()?;
    let is_state = |folder: &Path| {
        folder
            .file_name()
            .is_some_and(|name| name == "session-state")
    };
    let named = if is_state(folder) {
        path.file_stem()?
    } else if path.file_name()? == "events.jsonl" && is_state(folder.parent()?) {
        folder.file_name()?
    } else {
        return None;
    };
    Some(named.to_string_lossy().into_owned())
}

/// Reads one event log.
fn session(file: &Found, id: &str, run: &mut Run<'_>) -> Option<Session> {
    let door = run.door();
    let mut log = run.open(file)?;
    let mut teller = Teller::new(Agent::CopilotCli, door);
    log.each_record(keep_all, &mut run.report, |offset, record, report| {
        teller.tell(offset, record, report)
    });
    run.close(log);
    if teller.is_empty() {
        run.report.skip(&file.path, SkipReason::Empty, "");
        return None;
    }
    let workspace = workspace(file);
    let written = |key: &str| {
        workspace
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| door.note(value))
    };
    let facts = teller.facts();
    facts.files = vec![file.path.to_string_lossy().into_owned()];
    if facts.id.is_empty() {
        facts.id = door.note(id);
    }
    facts.title = written("name");
    facts.project = facts.project.take().or_else(|| written("cwd"));
    facts.git.branch = facts.git.branch.take().or_else(|| written("branch"));
    Some(noise::of_prompts(teller.finish()))
}

/// The lines `key: value` of `workspace.yaml` beside the log.
fn workspace(file: &Found) -> Vec<(String, String)> {
    const LONGEST: u64 = 64 * 1024;
    let read = || -> Option<String> {
        let path = file.path.parent()?.join(WORKSPACE);
        if !std::fs::symlink_metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        fs_err::File::open(&path)
            .ok()?
            .take(LONGEST)
            .read_to_end(&mut bytes)
            .ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(key, value)| {
            let value = value.trim().trim_matches(['"', '\'']);
            (key.to_owned(), value.to_owned())
        })
        .filter(|(_, value)| !value.is_empty() && value != "null")
        .collect()
}

/// Sessions that only the database knows.
fn stored(path: &Path, known: &HashSet<String>, run: &mut Run<'_>) -> ControlFlow<()> {
    let Some((database, file)) = Database::changed(path, run) else {
        return ControlFlow::Continue(());
    };
    let mut sessions = Vec::new();
    let listed = database.rows("sessions", None, &["created_at", "id"], |row| {
        let id = row.node().get("id").str();
        if id.is_some_and(|id| !known.contains(id)) {
            sessions.push(row);
        }
    });
    if let Err(reason) = listed {
        run.report.skip(&file.path, SkipReason::Database, &reason);
    }
    for row in sessions {
        run.report.records += 1;
        match stored_session(&database, row.node(), &file, run) {
            Ok(session) => run.emit(session)?,
            Err(reason) => run.report.skip(&file.path, SkipReason::Database, &reason),
        }
    }
    ControlFlow::Continue(())
}

/// Puts a session together from the tables.
fn stored_session(
    database: &Database,
    row: Node<'_>,
    file: &Found,
    run: &Run<'_>,
) -> Result<Session, String> {
    let door = run.door();
    let note = |name: &str| row.get(name).text().map(|text| door.note(text));
    let mut assembler = Assembler::new(door);
    let facts = &mut assembler.session;
    facts.agent = Agent::CopilotCli;
    facts.id = note("id").unwrap_or_default();
    facts.files = vec![file.path.to_string_lossy().into_owned()];
    facts.title = note("summary");
    facts.project = note("cwd");
    facts.git.branch = note("branch");
    facts.started = clock::time(row.get("created_at"));
    facts.ended = clock::time(row.get("updated_at")).or(facts.started);
    let id = row.get("id").str().unwrap_or_default();
    let of_session = |table: &str, order: &[&str]| -> Result<Vec<Json>, String> {
        let mut rows = Vec::new();
        if database.has(table) {
            database.rows(table, Some(("session_id", id)), order, |row| rows.push(row))?;
        }
        Ok(rows)
    };
    let touched = of_session("session_files", &["turn_index", "id"])?;
    let commands = of_session("forge_trajectory_events", &["turn_index", "id"])?;
    let mut is_first = true;
    for turn in of_session("turns", &["turn_index"])? {
        let turn = turn.node();
        let index = turn.get("turn_index").int();
        let spot = Spot {
            place: Place::default(),
            at: clock::time(turn.get("timestamp")),
        };
        if let Some(text) = turn.get("user_message").text() {
            assembler.prompt(
                assembler.door.prompt(text),
                PromptKind::Typed,
                0,
                spot,
                None,
            );
        }
        // Older stores do not say in which turn a file was touched: the first gets it.
        let first = std::mem::take(&mut is_first);
        let in_turn = |row: &Node<'_>| {
            let told = row.get("turn_index").int();
            told == index || first && told.is_none()
        };
        for row in touched.iter().map(Json::node).filter(in_turn) {
            assembler.call(touching_call(&assembler, row), None);
        }
        for row in commands.iter().map(Json::node).filter(in_turn) {
            if let Some(call) = command_call(&assembler, row) {
                assembler.call(call, None);
            }
        }
        let answer = turn.get("assistant_response").str().unwrap_or_default();
        assembler.text(assembler.door.answer(answer), false, Spot::default());
    }
    Ok(noise::of_prompts(assembler.finish()))
}

/// A call of which the file is known; only some tools change it.
fn touching_call(assembler: &Assembler<'_>, row: Node<'_>) -> ToolCall {
    let door = assembler.door;
    let name = row.get("tool_name").str().unwrap_or_default();
    let path = door.note(row.get("file_path").str().unwrap_or_default());
    let spot = Spot {
        place: Place::default(),
        at: clock::time(row.get("first_seen_at")),
    };
    ToolCall {
        arguments: path.clone(),
        status: CallStatus::Ok,
        edits: matches!(name, "edit" | "create")
            .then_some(path)
            .into_iter()
            .collect(),
        ..started_call(Redacted::EMPTY, door.note(name), spot)
    }
}

/// A command and how it ended. Which tool ran it is not stored.
fn command_call(assembler: &Assembler<'_>, row: Node<'_>) -> Option<ToolCall> {
    let door = assembler.door;
    let line = row.get("command").text()?;
    let id = row.get("tool_call_id").str().unwrap_or_default();
    let spot = Spot {
        place: Place::default(),
        at: clock::time(row.get("created_at")),
    };
    let code = row.get("exit_code").int();
    Some(ToolCall {
        command: Some(CommandRun {
            text: door.command(line),
            exit_code: code.and_then(|code| i32::try_from(code).ok()),
            ..CommandRun::default()
        }),
        result: door.output(row.get("output").str().unwrap_or_default()),
        result_place: Some(Place::default()),
        ..started_call(door.id(id), Redacted::EMPTY, spot)
    })
}
