//! `OpenCode` (session-logs.md, section 5).
//!
//! Sessions, messages and parts of messages are rows of a database, or, before release
//! 1.2, one small JSON file each. After a migration both are there with the same ids; the
//! database counts then.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::assemble::{Assembler, CallResult, Spot, started_call};
use crate::clock;
use crate::database::Database;
use crate::harvest::Run;
use crate::node::{Json, Node};
use crate::origin;
use crate::redact::Door;
use crate::report::SkipReason;
use crate::session::{
    Agent, CallStatus, CommandRun, IncidentKind, Place, PromptKind, Session, ToolCall,
};
use crate::source::{Source, SourceInfo};
use crate::walk::{self, Found};

/// Tools that change the file that they name.
const EDITORS: &[&str] = &["edit", "write", "multiedit"];

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
        let parent = Node::of(&row).get("parent_id").text().map(str::to_owned);
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
        let row = Node::of(row);
        let Some(id) = row.get("id").text() else {
            continue;
        };
        if !known.insert(id.to_owned()) {
            run.report.skip(&file.path, SkipReason::Twin, "");
            continue;
        }
        let revert = parsed(row.get("revert"));
        let mut teller = Teller::new(run.door(), id, Node::of(&revert));
        let facts = &mut teller.assembler.session;
        describe(facts, run.door(), row, &file);
        facts.sub_agents = children.get(id).copied().unwrap_or_default();
        facts.started = clock::time(row.get("time_created"));
        facts.ended = clock::time(row.get("time_updated"));
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
        let row = Node::of(&row);
        let data = parsed(row.get("data"));
        let message = row.get("id").str().unwrap_or_default();
        let mut parts = Vec::new();
        let read = database.rows("part", Some(("message_id", message)), &["id"], |part| {
            parts.push(parsed(Node::of(&part).get("data")));
        });
        failed = failed.take().or(read.err());
        messages += 1;
        teller.message(message, Node::of(&data), &parts);
    })?;
    failed.map_or(Ok(messages), Err)
}

/// The value in a JSON text; null when it is none.
fn parsed(text: Node<'_>) -> Json<'static> {
    text.str()
        .and_then(|text| serde_json::from_str::<Json<'_>>(text).ok())
        .map_or(Json::Null, Json::into_owned)
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
        let node = Node::of(&value);
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
        let node = Node::of(&value);
        let mut teller = Teller::new(run.door(), &id, node.get("revert"));
        let facts = &mut teller.assembler.session;
        describe(facts, run.door(), node, &file);
        facts.sub_agents = children.get(&id).copied().unwrap_or_default();
        facts.started = clock::time(node.at(&["time", "created"]));
        facts.ended = clock::time(node.at(&["time", "updated"]));
        for message in documents(&storage.join("message").join(&id), run) {
            let node = Node::of(&message);
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
fn document(file: &Found, run: &mut Run<'_>) -> Option<Json<'static>> {
    let mut log = run.open(file)?;
    let value = log.whole_document(run.options.limits.line, &mut run.report);
    run.close(log);
    value
}

/// The small files of a folder by name, which is by time. They are read on behalf of
/// their session and neither counted nor remembered.
fn documents(folder: &Path, run: &mut Run<'_>) -> Vec<Json<'static>> {
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

/// Tells the assembler what happened.
struct Teller<'a> {
    assembler: Assembler<'a>,
    /// From this message on all is undone.
    undone_from: Option<String>,
    dead: bool,
    cost: Option<f64>,
    /// The last call of the running turn.
    last_call: Option<String>,
}

impl<'a> Teller<'a> {
    fn new(door: Door<'a>, id: &str, revert: Node<'_>) -> Self {
        let mut assembler = Assembler::new(door);
        assembler.session.id = door.note(id);
        Teller {
            assembler,
            undone_from: revert.get("messageID").text().map(str::to_owned),
            dead: false,
            cost: None,
            last_call: None,
        }
    }

    fn finish(mut self) -> Session {
        self.assembler.session.cost_usd = self.cost;
        origin::of_prompts(self.assembler.finish())
    }

    fn message(&mut self, id: &str, message: Node<'_>, parts: &[Json<'_>]) {
        self.dead |= self.undone_from.as_deref() == Some(id);
        let spot = Spot {
            place: Place::default(),
            at: clock::time(message.at(&["time", "created"])),
        };
        match message.get("role").str() {
            Some("user") => self.prompt(parts, spot),
            Some("assistant") => self.answer(message, parts, spot),
            _ => {}
        }
    }

    fn prompt(&mut self, parts: &[Json<'_>], spot: Spot) {
        self.last_call = None;
        let mut texts = Vec::new();
        let mut images = 0;
        for part in parts.iter().map(Node::of) {
            let text = part.get("text").text();
            match (part.get("type").str(), text) {
                (Some("text"), Some(text)) if part.get("synthetic").is_true() => self
                    .assembler
                    .machine_text("synthetic", &self.assembler.door.note(text), spot.place),
                (Some("text"), Some(text)) if !part.get("ignored").is_true() => texts.push(text),
                (Some("file"), _) => {
                    let kind = part.get("mime").str().unwrap_or_default();
                    images += u32::from(kind.starts_with("image/"));
                }
                _ => {}
            }
        }
        let text = without_quotes(&texts.join("\n"));
        if text.trim().is_empty() && images == 0 {
            return;
        }
        if self.dead {
            self.assembler.dead_prompt(
                &self.assembler.door.prompt(&text),
                PromptKind::Typed,
                images,
                spot,
            );
        } else {
            self.assembler.prompt(
                &self.assembler.door.prompt(&text),
                PromptKind::Typed,
                images,
                spot,
                None,
            );
        }
    }

    fn answer(&mut self, message: Node<'_>, parts: &[Json<'_>], spot: Spot) {
        self.count(message);
        if self.dead {
            return;
        }
        if message.get("summary").is_true() {
            self.assembler.incident(IncidentKind::Compaction, "", spot);
            return;
        }
        if let Some(model) = message.get("modelID").text() {
            let name = match message.get("providerID").text() {
                Some(provider) => format!("{provider}/{model}"),
                None => model.to_owned(),
            };
            self.assembler.model(&self.assembler.door.note(&name));
        }
        // Old releases do not say how a message finished.
        let interim = message
            .get("finish")
            .text()
            .is_some_and(|how| how != "stop");
        for part in parts.iter().map(Node::of) {
            match part.get("type").str() {
                Some("text") if !part.get("ignored").is_true() => {
                    let text = part.get("text").str().unwrap_or_default();
                    self.assembler
                        .text(&self.assembler.door.answer(text), interim, spot);
                }
                Some("tool") => self.tool(part, spot),
                Some("patch") => self.patch(part),
                Some("retry") => {
                    let error = error_text(part.get("error"));
                    self.assembler.incident(
                        IncidentKind::ApiError,
                        &self.assembler.door.note(error),
                        spot,
                    );
                }
                _ => {}
            }
        }
        let error = message.get("error");
        if error.is_some() {
            let name = error.get("name").str().unwrap_or_default();
            match name.contains("Abort") {
                true => self.assembler.interrupted("", spot),
                false => self
                    .assembler
                    .failed(&self.assembler.door.note(error_text(error)), spot),
            }
        }
    }

    /// Tokens and cost: of undone messages too.
    fn count(&mut self, message: Node<'_>) {
        if let Some(cost) = message.get("cost").float() {
            self.cost = Some(self.cost.unwrap_or_default() + cost);
        }
        let tokens = message.get("tokens");
        if !tokens.is_object() {
            return;
        }
        let count = |path: &[&str]| tokens.at(path).count().unwrap_or_default();
        let sum = self.assembler.session.usage.get_or_insert_default();
        sum.input = sum.input.saturating_add(count(&["input"]));
        sum.output = sum
            .output
            .saturating_add(count(&["output"]))
            .saturating_add(count(&["reasoning"]));
        sum.cache_read = sum.cache_read.saturating_add(count(&["cache", "read"]));
        sum.cache_creation = sum
            .cache_creation
            .saturating_add(count(&["cache", "write"]));
    }

    fn tool(&mut self, part: Node<'_>, message: Spot) {
        let door = self.assembler.door;
        let state = part.get("state");
        let time = |name: &str| clock::time(state.at(&["time", name]));
        let spot = Spot {
            at: time("start").or(message.at),
            ..message
        };
        let id = part.get("callID").str().unwrap_or_default();
        let name = part.get("tool").str().unwrap_or_default();
        let input = state.get("input");
        let command = input.get("command").text().filter(|_| name == "bash");
        let call = ToolCall {
            arguments: door.arguments(input),
            command: command.map(|line| CommandRun {
                text: door.command(line),
                workdir: input.get("workdir").text().map(|path| door.note(path)),
                ..CommandRun::default()
            }),
            ..started_call(id, &door.note(name), spot)
        };
        self.assembler.call(call, None);
        self.last_call = Some(id.to_owned());
        let status = match state.get("status").str() {
            Some("completed") => CallStatus::Ok,
            Some("error") => CallStatus::Failed,
            _ => return,
        };
        let output = state
            .get("output")
            .text()
            .or_else(|| state.get("error").text())
            .unwrap_or_default();
        let project = self.assembler.session.project.clone();
        let edits = input
            .get("filePath")
            .text()
            .filter(|_| EDITORS.contains(&name))
            .map(|path| crate::path::absolute(&door.note(path), project.as_deref()));
        let lasted = time("start")
            .zip(time("end"))
            .and_then(|(start, end)| u64::try_from(end.duration_since(start).as_millis()).ok());
        let result = CallResult {
            output: door.output(output),
            status,
            exit_code: state
                .at(&["metadata", "exit"])
                .int()
                .and_then(|code| i32::try_from(code).ok()),
            duration_ms: lasted,
            edits: edits.into_iter().collect(),
        };
        self.assembler.result(id, result, spot.place);
    }

    /// Files that a step changed, by whatever means: the last call gets what no editing
    /// tool named.
    fn patch(&mut self, part: Node<'_>) {
        let door = self.assembler.door;
        let Some(id) = self.last_call.clone() else {
            return;
        };
        for path in part.get("files").list().filter_map(Node::text) {
            let path = door.note(path);
            if self.assembler.has_edit(&path) {
                continue;
            }
            if let Some(call) = self.assembler.call_mut(&id) {
                call.edits.push(path);
            }
        }
    }
}

/// What an error says.
fn error_text(error: Node<'_>) -> &str {
    error
        .at(&["data", "message"])
        .text()
        .or_else(|| error.get("message").text())
        .or_else(|| error.get("name").text())
        .unwrap_or("error")
}

/// The text without the quotation marks that the command line puts around an argument
/// with spaces in it (and a backslash before each mark inside).
fn without_quotes(text: &str) -> String {
    let inner = text
        .trim()
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    match inner {
        Some(inner) if !inner.replace("\\\"", "").contains('"') => inner.replace("\\\"", "\""),
        _ => text.to_owned(),
    }
}
