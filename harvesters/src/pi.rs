//! Pi (session-logs.md, section 4).
//!
//! A file is a tree of entries; the live branch leads from the last entry to its root.
//! Ids of tool calls repeat between runs, so a result belongs to the latest call of its
//! id. Older files (version 1) have no ids: then the file's order is the conversation.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::assemble::{Assembler, CallResult, Spot, given_call, started_call};
use crate::clock;
use crate::harvest::Run;
use crate::node::Node;
use crate::noise;
use crate::redact::Redacted;
use crate::report::SkipReason;
use crate::session::{
    Agent, CallStatus, IncidentKind, Origin, Place, PromptKind, Session, ToolCall, Usage,
};
use crate::source::{Source, SourceInfo};
use crate::tape::{Json, Skip};
use crate::walk::{self, Found};

/// Pi's logs.
pub(crate) struct Pi;

impl Source for Pi {
    fn info(&self) -> SourceInfo {
        SourceInfo {
            agent: Agent::Pi,
            title: "Pi",
            reads: "sessions/**/*.jsonl",
            location: "$PI_CODING_AGENT_DIR or ~/.pi/agent",
            keeps: "prompts, answers, tool calls with results, files, models, tokens",
        }
    }

    fn default_roots(
        &self,
        _: &str,
        home: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Vec<PathBuf> {
        vec![variable("PI_CODING_AGENT_DIR").map_or_else(|| home.join(".pi/agent"), PathBuf::from)]
    }

    fn read(&self, root: &Path, run: &mut Run<'_>) -> ControlFlow<()> {
        let files = walk::files(&root.join("sessions"), &mut run.report, &|name| {
            name.ends_with(".jsonl")
        });
        run.report.files_found += files.len() as u64;
        for file in files {
            if run.all_unchanged(std::iter::once(&file)) {
                continue;
            }
            if let Some(session) = session(&file, run) {
                run.emit(session)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// An entry of the tree and where it stands.
struct Entry {
    offset: u64,
    value: Json,
}

impl Entry {
    fn node(&self) -> Node<'_> {
        self.value.node()
    }
}

/// Reads one file.
fn session(file: &Found, run: &mut Run<'_>) -> Option<Session> {
    let door = run.door();
    let mut log = run.open(file)?;
    let mut header = None;
    let mut entries = Vec::new();
    log.each_record(PICTURES, &mut run.report, |offset, record, _| {
        if record.get("type").str() == Some("session") {
            header.get_or_insert_with(|| record.to_json());
        } else {
            entries.push(Entry {
                offset,
                value: record.to_json(),
            });
        }
    });
    run.close(log);
    if entries.is_empty() {
        run.report.skip(&file.path, SkipReason::Empty, "");
        return None;
    }
    let header = header.unwrap_or_default();
    let live = match header.node().get("version").int() {
        // The first version knows no branches.
        Some(1) => vec![true; entries.len()],
        _ => live(&entries),
    };
    let mut teller = Teller {
        assembler: Assembler::new(door),
        usage: None,
        edits: HashMap::new(),
    };
    for (entry, live) in entries.iter().zip(live) {
        teller.tell(entry, live);
    }
    let header = header.node();
    let usage = teller.usage;
    let facts = &mut teller.assembler.session;
    facts.agent = Agent::Pi;
    facts.id = header
        .get("id")
        .text()
        .map_or_else(|| door.id(&stem(&file.path)), |id| door.note(id));
    facts.project = header.get("cwd").text().map(|path| door.note(path));
    facts.files = vec![file.path.to_string_lossy().into_owned()];
    facts.usage = usage;
    facts.started = clock::time(header.get("timestamp"));
    facts.ended = entries
        .iter()
        .filter_map(|entry| clock::time(entry.node().get("timestamp")))
        .max();
    let mut session = teller.assembler.finish();
    let first = session.prompts().next();
    session.origin = match first.is_some_and(|prompt| noise::is_program_prompt(&prompt.text)) {
        true => Origin::Machine,
        false => Origin::Unknown,
    };
    Some(session)
}

/// The id in a name `<time>_<id>.jsonl`.
fn stem(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.rsplit_once('_')
        .map_or_else(|| name.clone().into_owned(), |(_, id)| id.to_owned())
}

/// The data of pictures: they may be megabytes.
const PICTURES: Skip = |parent, key| parent == "content" && key == "data";

/// For each entry, whether it is on the branch that is alive at the end.
fn live(entries: &[Entry]) -> Vec<bool> {
    let by_id: HashMap<&str, usize> = entries
        .iter()
        .enumerate()
        .filter_map(|(index, entry)| entry.node().get("id").text().map(|id| (id, index)))
        .collect();
    if by_id.is_empty() {
        return vec![true; entries.len()];
    }
    let mut live = vec![false; entries.len()];
    let mut next = Some(entries.len() - 1);
    let mut seen = HashSet::new();
    while let Some(at) = next.filter(|at| seen.insert(*at)) {
        live[at] = true;
        next = match entries[at].node().get("parentId").text() {
            // A parent whose line is lost or damaged stood right before.
            Some(id) => by_id.get(id).copied().or_else(|| at.checked_sub(1)),
            None => None,
        };
    }
    live
}

/// Tells the assembler what happened.
struct Teller<'a> {
    assembler: Assembler<'a>,
    usage: Option<Usage>,
    /// The file that each editing call is to change, as logged, by the latest call of an id.
    edits: HashMap<String, String>,
}

impl Teller<'_> {
    fn tell(&mut self, entry: &Entry, live: bool) {
        let node = entry.node();
        let spot = Spot {
            place: Place {
                file: 0,
                offset: entry.offset,
            },
            at: clock::time(node.get("timestamp")),
        };
        let message = node.get("message");
        match (
            node.get("type").str().unwrap_or_default(),
            message.get("role").str().unwrap_or_default(),
        ) {
            ("message", "user") => self.prompt(message, live, spot),
            ("message", "assistant") => self.answer(message, live, spot),
            ("message", "toolResult") if live => self.result(message, spot),
            ("compaction", _) if live => {
                self.assembler
                    .incident(IncidentKind::Compaction, &Redacted::EMPTY, spot)
            }
            ("session_info", _) => {
                if let Some(name) = node.get("name").text() {
                    self.assembler.session.title = Some(self.assembler.door.note(name));
                }
            }
            _ => {}
        }
    }

    fn prompt(&mut self, message: Node<'_>, live: bool, spot: Spot) {
        let (text, images) = content(message.get("content"));
        let text = self.assembler.door.prompt(&text);
        if text.trim().is_empty() && images == 0 {
            return;
        }
        if live {
            self.assembler
                .prompt(text, PromptKind::Typed, images, spot, None);
        } else {
            self.assembler
                .dead_prompt(text, PromptKind::Typed, images, spot);
        }
    }

    fn answer(&mut self, message: Node<'_>, live: bool, spot: Spot) {
        let door = self.assembler.door;
        let usage = message.get("usage");
        if usage.is_object() {
            let count = |name: &str| usage.get(name).count().unwrap_or_default();
            let sum = self.usage.get_or_insert_default();
            sum.input = sum.input.saturating_add(count("input"));
            sum.output = sum.output.saturating_add(count("output"));
            sum.cache_read = sum.cache_read.saturating_add(count("cacheRead"));
            sum.cache_creation = sum.cache_creation.saturating_add(count("cacheWrite"));
        }
        if !live {
            return;
        }
        if let Some(model) = message.get("model").text() {
            let name = match message.get("provider").text() {
                Some(provider) => format!("{provider}/{model}"),
                None => model.to_owned(),
            };
            self.assembler.model(&door.note(&name));
        }
        let said = message.get("content");
        if let Some(text) = said.text() {
            self.assembler.text(door.answer(text), false, spot);
        }
        for block in said.list() {
            match block.get("type").str() {
                Some("text") => {
                    let text = door.answer(block.get("text").str().unwrap_or_default());
                    self.assembler.text(text, false, spot);
                }
                Some("toolCall") => self.call(block, spot),
                _ => {}
            }
        }
        match message.get("stopReason").str() {
            Some("aborted") => self.assembler.interrupted(&Redacted::EMPTY, spot),
            Some("error") => {
                let error = message.get("errorMessage").str().unwrap_or("API error");
                self.assembler.failed(&door.note(error), spot);
            }
            _ => {}
        }
    }

    fn call(&mut self, block: Node<'_>, spot: Spot) {
        let door = self.assembler.door;
        let id = block.get("id").str().unwrap_or_default();
        let name = block.get("name").str().unwrap_or_default();
        let arguments = block.get("arguments");
        if matches!(name, "edit" | "write")
            && let Some(path) = arguments
                .get("path")
                .text()
                .or_else(|| arguments.get("file_path").text())
        {
            self.edits.insert(id.to_owned(), path.to_owned());
        }
        let command = (name == "bash")
            .then(|| arguments.get("command").text())
            .flatten();
        let call = given_call(id, name, arguments, command, door, spot);
        self.assembler.call(call, None);
    }

    fn result(&mut self, message: Node<'_>, spot: Spot) {
        let door = self.assembler.door;
        let raw_id = message.get("toolCallId").str().unwrap_or_default();
        let id = door.id(raw_id);
        let (text, _) = content(message.get("content"));
        let failed = message.get("isError").is_true();
        let is_command = self
            .assembler
            .call_mut(&id)
            .is_some_and(|call| call.command.is_some());
        let code = text
            .rsplit_once("Command exited with code ")
            .and_then(|(_, code)| code.trim().parse().ok());
        let status = match (
            failed,
            text.contains("Command aborted"),
            text.contains("Command timed out"),
        ) {
            (true, true, _) => CallStatus::Interrupted,
            (true, _, true) => CallStatus::TimedOut,
            (true, false, false) => CallStatus::Failed,
            (false, ..) => CallStatus::Ok,
        };
        let project = self.assembler.session.project.as_deref();
        let edits = self
            .edits
            .remove(raw_id)
            .map(|path| door.path(&path, project))
            .into_iter()
            .collect();
        if !self.assembler.knows_call(&id)
            && let Some(name) = message.get("toolName").text()
        {
            // The record of the call is gone; what it answered is not.
            let call = ToolCall {
                result: door.output(&text),
                result_place: Some(spot.place),
                status,
                ..started_call(id, door.note(name), spot)
            };
            return self.assembler.call(call, None);
        }
        let result = CallResult {
            output: door.output(&text),
            status,
            exit_code: if is_command && !failed { Some(0) } else { code },
            duration_ms: None,
            edits,
        };
        self.assembler.result(&id, result, spot.place);
    }
}

/// The text of a content and the number of its pictures.
fn content(content: Node<'_>) -> (String, u32) {
    if let Some(text) = content.str() {
        return (text.to_owned(), 0);
    }
    let texts: Vec<&str> = content
        .list()
        .filter_map(|block| block.get("text").text())
        .collect();
    let images = content
        .list()
        .filter(|block| block.get("type").str() == Some("image"))
        .count();
    (texts.join("\n"), u32::try_from(images).unwrap_or(u32::MAX))
}
