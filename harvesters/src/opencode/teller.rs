//! From messages and their parts to a session.

use crate::assemble::{Assembler, CallResult, Spot, started_call};
use crate::clock;
use crate::node::Node;
use crate::noise;
use crate::redact::{Door, Redacted};
use crate::session::{
    CallStatus, CommandRun, IncidentKind, Origin, Place, PromptKind, Session, ToolCall,
};
use crate::tape::Json;

/// Tools that change the file that they name.
const EDITORS: &[&str] = &["edit", "write", "multiedit"];
/// Tools that change no file themselves. What a command of the shell changed is its own:
/// compiled files, logs, caches.
const NO_EDITORS: &[&str] = &[
    "bash",
    "read",
    "list",
    "grep",
    "glob",
    "webfetch",
    "todowrite",
    "todoread",
    "task",
    "skill",
];

/// Tells the assembler what happened.
pub(super) struct Teller<'a> {
    pub(super) assembler: Assembler<'a>,
    /// From this message on all is undone.
    undone_from: Option<String>,
    dead: bool,
    cost: Option<f64>,
    /// The last call of the running turn.
    last_call: Option<Redacted>,
    /// The Python original's own replay.
    pub(super) by_engine: bool,
}

impl<'a> Teller<'a> {
    pub(super) fn new(door: Door<'a>, id: &str, revert: Node<'_>) -> Self {
        let mut assembler = Assembler::new(door);
        assembler.session.id = door.note(id);
        Teller {
            assembler,
            undone_from: revert.get("messageID").text().map(str::to_owned),
            dead: false,
            cost: None,
            last_call: None,
            by_engine: false,
        }
    }

    pub(super) fn finish(mut self) -> Session {
        self.assembler.session.cost_usd = self.cost;
        let mut session = noise::of_prompts(self.assembler.finish());
        if self.by_engine {
            session.origin = Origin::Machine;
        }
        session
    }

    pub(super) fn message(&mut self, id: &str, message: Node<'_>, parts: &[Json]) {
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

    fn prompt(&mut self, parts: &[Json], spot: Spot) {
        self.last_call = None;
        let mut texts = Vec::new();
        let mut images = 0;
        for part in parts.iter().map(Json::node) {
            let text = part.get("text").text();
            match (part.get("type").str(), text) {
                (Some("text"), Some(text)) if part.get("synthetic").is_true() => {
                    self.assembler.machine_text(
                        Redacted::own("synthetic"),
                        &self.assembler.door.note(text),
                        spot.place,
                    )
                }
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
                self.assembler.door.prompt(&text),
                PromptKind::Typed,
                images,
                spot,
            );
        } else {
            self.assembler.prompt(
                self.assembler.door.prompt(&text),
                PromptKind::Typed,
                images,
                spot,
                None,
            );
        }
    }

    fn answer(&mut self, message: Node<'_>, parts: &[Json], spot: Spot) {
        self.count(message);
        if self.dead {
            return;
        }
        if message.get("summary").is_true() {
            self.assembler
                .incident(IncidentKind::Compaction, &Redacted::EMPTY, spot);
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
        for part in parts.iter().map(Json::node) {
            match part.get("type").str() {
                Some("text") if !part.get("ignored").is_true() => {
                    let text = part.get("text").str().unwrap_or_default();
                    self.assembler
                        .text(self.assembler.door.answer(text), interim, spot);
                }
                Some("tool") => self.tool(part, spot),
                Some("tool-invocation") => {
                    let name = part.at(&["toolInvocation", "toolName"]).str();
                    let name = self.assembler.door.note(name.unwrap_or_default());
                    self.assembler
                        .call(started_call(Redacted::EMPTY, name, spot), None);
                }
                Some("step-start") => self.last_call = None,
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
                true => self.assembler.interrupted(&Redacted::EMPTY, spot),
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
        let id = door.id(part.get("callID").str().unwrap_or_default());
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
            ..started_call(id.clone(), door.note(name), spot)
        };
        self.assembler.call(call, None);
        if !NO_EDITORS.contains(&name) {
            self.last_call = Some(id.clone());
        }
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
        let project = self.assembler.session.project.as_deref();
        let edits = input
            .get("filePath")
            .text()
            .filter(|_| EDITORS.contains(&name))
            .map(|path| door.path(path, project));
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
        self.assembler.result(&id, result, spot.place);
    }

    /// Files that a step changed, by whatever means: its last call that may edit gets what
    /// no editing tool named.
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
