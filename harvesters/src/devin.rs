//! Devin's command line (session-logs.md, section 10).
//!
//! The database holds a forest of messages for each session; the live branch leads from
//! the session's last message to a root. A transcript is written only at a clean exit and
//! does not name the directory, but has what commands answered and what they cost: where
//! it is not behind the database, it is read, and the database tells the rest.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::assemble::{Assembler, CallResult, Spot, given_call};
use crate::clock;
use crate::database::{self, Database};
use crate::harvest::Run;
use crate::node::Node;
use crate::noise;
use crate::redact::{Door, Redacted};
use crate::report::SkipReason;
use crate::session::{Agent, CallStatus, Place, PromptKind, Session, ToolCall};
use crate::source::{Source, SourceInfo};
use crate::tape::Json;
use crate::walk::{self, Found};

/// Tools that run a command line.
const SHELLS: &[&str] = &["exec", "bash", "shell"];
/// Tools that change the file that they name.
const EDITORS: &[&str] = &["edit", "write", "create"];

/// Devin's store.
pub(crate) struct Devin;

impl Source for Devin {
    fn info(&self) -> SourceInfo {
        SourceInfo {
            agent: Agent::Devin,
            title: "Devin",
            reads: "sessions.db (tables sessions, message_nodes), transcripts/*.json",
            location: "~/.local/share/devin/cli (%APPDATA%\\devin\\cli on Windows), $CHISEL_SESSION_DB",
            keeps: "prompts, answers, tool calls with results, files, models, tokens",
        }
    }

    fn default_roots(
        &self,
        os: &str,
        home: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Vec<PathBuf> {
        let data = match variable("APPDATA").filter(|_| os == "windows") {
            Some(data) => PathBuf::from(data),
            None => home.join(".local/share"),
        };
        let named = variable("CHISEL_SESSION_DB").map(PathBuf::from);
        std::iter::once(data.join("devin/cli"))
            .chain(named)
            .collect()
    }

    fn read(&self, root: &Path, run: &mut Run<'_>) -> ControlFlow<()> {
        let path = match root.is_file() {
            true => root.to_owned(),
            false => root.join("sessions.db"),
        };
        let files = database::files(&path, &mut run.report);
        let transcripts = walk::files(&root.join("transcripts"), &mut run.report, &|name| {
            name.ends_with(".json")
        });
        run.report.files_found += (files.len().min(1) + transcripts.len()) as u64;
        // What one file lacks, another has: they are read together or not at all.
        if run.all_unchanged(files.iter().chain(&transcripts)) {
            return ControlFlow::Continue(());
        }
        let mut written = HashMap::new();
        for file in transcripts {
            if let Some(session) = transcript(&file, run) {
                written.insert(session.id.clone(), session);
            }
        }
        if let Some(file) = files.first()
            && let Some(database) = Database::open(&files, run)
        {
            stored(&database, file, &mut written, run)?;
        }
        let mut rest: Vec<Session> = written.into_values().collect();
        rest.sort_by(|one, other| one.files.cmp(&other.files));
        for session in rest {
            run.emit(session)?;
        }
        ControlFlow::Continue(())
    }
}

/// Reads one transcript.
fn transcript(file: &Found, run: &mut Run<'_>) -> Option<Session> {
    let door = run.door();
    let mut log = run.open(file)?;
    let document = log.whole_document(run.options.limits.line, &mut run.report);
    run.close(log);
    let document = document?;
    let document = document.node();
    let schema = document.get("schema_version").text();
    if schema.is_some_and(|schema| !schema.starts_with("ATIF")) {
        run.report.unknown_kind(Agent::Devin, "schema");
        return None;
    }
    let mut assembler = Assembler::new(door);
    let facts = &mut assembler.session;
    facts.agent = Agent::Devin;
    let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
    facts.id = door.note(document.get("session_id").text().unwrap_or(&stem));
    facts.files = vec![file.path.to_string_lossy().into_owned()];
    let model = document.at(&["agent", "model_name"]);
    let mut steps = 0;
    for step in document.get("steps").list() {
        steps += 1;
        let spot = Spot {
            place: Place::default(),
            at: clock::time(step.get("timestamp")),
        };
        let facts = &mut assembler.session;
        facts.started = facts.started.or(spot.at);
        facts.ended = facts.ended.max(spot.at);
        let text = content(step.get("message"));
        match step.get("source").str() {
            Some("user") if !text.trim().is_empty() => assembler.prompt(
                assembler.door.prompt(&text),
                PromptKind::Typed,
                0,
                spot,
                None,
            ),
            Some("agent") => {
                if let Some(name) = step.get("model_name").text().or_else(|| model.text()) {
                    assembler.model(&assembler.door.note(name));
                }
                assembler.text(assembler.door.answer(&text), false, spot);
                count(&mut assembler, step.get("metrics"));
                calls(&mut assembler, step, spot);
            }
            _ => {}
        }
    }
    if steps == 0 {
        run.report.skip(&file.path, SkipReason::Empty, "");
        return None;
    }
    Some(noise::of_prompts(assembler.finish()))
}

/// The calls of a step and what they answered. Ids may repeat: results stand beside
/// their calls.
fn calls(assembler: &mut Assembler<'_>, step: Node<'_>, spot: Spot) {
    for raw in step.get("tool_calls").list() {
        let id = raw.get("tool_call_id").str().unwrap_or_default();
        let name = raw.get("function_name").str().unwrap_or_default();
        call(assembler, id, name, raw.get("arguments"), spot);
    }
    for found in step.at(&["observation", "results"]).list() {
        let id = found.get("source_call_id").str().unwrap_or_default();
        result(assembler, id, &content(found.get("content")), spot);
    }
}

/// Prompt tokens include what was cached.
fn count(assembler: &mut Assembler<'_>, metrics: Node<'_>) {
    if !metrics.is_object() {
        return;
    }
    let count = |name: &str| metrics.get(name).count().unwrap_or_default();
    let sum = assembler.session.usage.get_or_insert_default();
    let cached = count("cached_tokens");
    sum.input = sum
        .input
        .saturating_add(count("prompt_tokens").saturating_sub(cached));
    sum.output = sum.output.saturating_add(count("completion_tokens"));
    sum.cache_read = sum.cache_read.saturating_add(cached);
}

fn call(assembler: &mut Assembler<'_>, id: &str, name: &str, arguments: Node<'_>, spot: Spot) {
    let door = assembler.door;
    let parsed = arguments.str().and_then(|text| Json::parse(text).ok());
    let arguments = parsed.as_ref().map_or(arguments, Json::node);
    let command = arguments
        .get("command")
        .text()
        .filter(|_| SHELLS.contains(&name));
    let path = ["file_path", "path"]
        .into_iter()
        .find_map(|key| arguments.get(key).text())
        .filter(|_| EDITORS.contains(&name))
        .map(|path| door.path(path, assembler.session.project.as_deref()));
    let call = ToolCall {
        edits: path.into_iter().collect(),
        ..given_call(id, name, arguments, command, door, spot)
    };
    assembler.call(call, None);
}

/// How a command ended is told in its output, if at all.
fn result(assembler: &mut Assembler<'_>, id: &str, output: &str, spot: Spot) {
    static EXIT: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?m)^Exit code: (-?\d{1,9})\s*\z").ok());
    let door = assembler.door;
    let id = door.id(id);
    let is_command = assembler
        .call_mut(&id)
        .is_some_and(|call| call.command.is_some());
    let exit_code = EXIT
        .as_ref()
        .filter(|_| is_command)
        .and_then(|exit| exit.captures(output)?.get(1)?.as_str().parse().ok());
    let result = CallResult {
        output: door.output(output),
        status: CallStatus::Ok,
        exit_code,
        ..CallResult::default()
    };
    assembler.result(&id, result, spot.place);
}

/// A text, also when it is a list of parts.
fn content(node: Node<'_>) -> String {
    if let Some(text) = node.str() {
        return text.to_owned();
    }
    let texts: Vec<&str> = node
        .list()
        .filter_map(|part| part.get("text").text())
        .collect();
    texts.join("\n")
}

/// Hands out the sessions of the database, each in its fuller form.
fn stored(
    database: &Database,
    file: &Found,
    written: &mut HashMap<Redacted, Session>,
    run: &mut Run<'_>,
) -> ControlFlow<()> {
    let mut rows = Vec::new();
    let listed = database.rows("sessions", None, &["created_at", "id"], |row| {
        rows.push(row)
    });
    if let Err(reason) = listed {
        run.report.skip(&file.path, SkipReason::Database, &reason);
    }
    for row in &rows {
        run.report.records += 1;
        let row = row.node();
        let Some(id) = row.get("id").text() else {
            continue;
        };
        let transcript = written.remove(&run.door().note(id));
        if row.get("hidden").is_true() || row.get("hidden").int().is_some_and(|flag| flag != 0) {
            run.report.skip(&file.path, SkipReason::Machine, "");
            continue;
        }
        let session = match (
            stored_session(database, id, row, file, run.door()),
            transcript,
        ) {
            (Ok(stored), Some(transcript)) => fuller(stored, transcript),
            (Ok(stored), None) => stored,
            (Err(reason), transcript) => {
                run.report.skip(&file.path, SkipReason::Database, &reason);
                match transcript {
                    Some(transcript) => transcript,
                    None => continue,
                }
            }
        };
        run.emit(session)?;
    }
    ControlFlow::Continue(())
}

/// The transcript with what only the database has, unless the session went on after the
/// last clean exit.
fn fuller(stored: Session, mut transcript: Session) -> Session {
    if stored.prompts().count() > transcript.prompts().count() {
        return stored;
    }
    transcript.project = stored.project;
    transcript.title = stored.title;
    transcript.dead_prompts = stored.dead_prompts;
    transcript.files.extend(stored.files);
    transcript
}

/// A message's place in the forest.
struct Link {
    node: i64,
    parent: Option<i64>,
}

fn stored_session(
    database: &Database,
    id: &str,
    row: Node<'_>,
    file: &Found,
    door: Door<'_>,
) -> Result<Session, String> {
    let note = |name: &str| row.get(name).text().map(|text| door.note(text));
    let mut assembler = Assembler::new(door);
    let facts = &mut assembler.session;
    facts.agent = Agent::Devin;
    facts.id = door.note(id);
    facts.files = vec![file.path.to_string_lossy().into_owned()];
    facts.project = note("working_directory");
    facts.title = note("title");
    facts.started = clock::time(row.get("created_at"));
    facts.ended = clock::time(row.get("last_activity_at"));
    let of_session = Some(("session_id", id));
    let order = ["row_id", "created_at"];
    let mut links = Vec::new();
    database.rows("message_nodes", of_session, &order, |row| {
        let row = row.node();
        if let Some(node) = row.get("node_id").int() {
            let parent = row.get("parent_node_id").int();
            links.push(Link { node, parent });
        }
    })?;
    let live = live(&links, row.get("main_chain_id").int());
    let model = row.get("model").text();
    database.rows("message_nodes", of_session, &order, |row| {
        let row = row.node();
        let is_live = row
            .get("node_id")
            .int()
            .is_some_and(|node| live.contains(&node));
        let spot = Spot {
            place: Place::default(),
            at: clock::time(row.get("created_at")),
        };
        let message = row.get("chat_message").str().unwrap_or_default();
        let message = Json::parse(message).unwrap_or_default();
        tell(&mut assembler, message.node(), is_live, model, spot);
    })?;
    Ok(noise::of_prompts(assembler.finish()))
}

/// The nodes from the last message of the main chain up to its root.
fn live(links: &[Link], last: Option<i64>) -> HashSet<i64> {
    let parents: HashMap<i64, Option<i64>> =
        links.iter().map(|link| (link.node, link.parent)).collect();
    let mut live = HashSet::new();
    let mut next = last
        .filter(|node| parents.contains_key(node))
        .or_else(|| links.last().map(|link| link.node));
    while let Some(node) = next.filter(|node| live.insert(*node)) {
        next = parents.get(&node).copied().flatten();
    }
    live
}

fn tell(
    assembler: &mut Assembler<'_>,
    message: Node<'_>,
    live: bool,
    model: Option<&str>,
    spot: Spot,
) {
    let text = content(message.get("content"));
    match message.get("role").str() {
        Some("user") if text.trim().is_empty() => {}
        Some("user") if live => assembler.prompt(
            assembler.door.prompt(&text),
            PromptKind::Typed,
            0,
            spot,
            None,
        ),
        Some("user") => {
            assembler.dead_prompt(assembler.door.prompt(&text), PromptKind::Typed, 0, spot)
        }
        Some("assistant") if live => {
            if let Some(model) = model {
                assembler.model(&assembler.door.note(model));
            }
            assembler.text(assembler.door.answer(&text), false, spot);
            for raw in message.get("tool_calls").list() {
                let id = raw.get("id").str().unwrap_or_default();
                let name = raw.get("name").str().unwrap_or_default();
                call(assembler, id, name, raw.get("arguments"), spot);
            }
        }
        Some("tool") if live => {
            let id = message.get("tool_call_id").str().unwrap_or_default();
            result(assembler, id, &text, spot);
        }
        _ => {}
    }
}
