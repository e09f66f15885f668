//! From the state of a chat to a session.

use crate::assemble::{Assembler, CallResult, Spot, started_call};
use crate::clock;
use crate::node::Node;
use crate::noise;
use crate::redact::{Door, Redacted};
use crate::report::Report;
use crate::session::{Agent, CallStatus, CommandRun, Place, PromptKind, Session, ToolCall};
use crate::tape::Json;

use super::replay::State;

/// Parts of a response that say nothing about what was done.
const SILENT: &[&str] = &[
    "thinking",
    "progressMessage",
    "progressTask",
    "progressTaskSerialized",
    "confirmation",
    "codeblockUri",
    "undoStop",
    "mcpServersStarting",
    "prepareToolInvocation",
    "warning",
    "command",
    "references",
];

/// The session of a chat.
pub(super) fn session(
    state: &mut State,
    door: Door<'_>,
    project: Option<&str>,
    report: &mut Report,
) -> Session {
    let mut assembler = Assembler::new(door);
    let facts = &mut assembler.session;
    let mut note = |name: &str| {
        let value = state.take_member(name);
        value.node().text().map(|text| door.note(text))
    };
    facts.agent = Agent::CopilotChat;
    facts.id = note("sessionId").unwrap_or_default();
    facts.title = note("customTitle");
    facts.project = project.map(|path| door.note(path));
    facts.started = clock::time(state.take_member("creationDate").node());
    facts.ended = clock::time(state.take_member("lastMessageDate").node());
    let mut last = None;
    let requests = state.take_member("requests");
    for request in requests.node().list() {
        let at = clock::time(request.get("timestamp"));
        let completed = clock::time(request.at(&["modelState", "completedAt"]));
        last = last.max(at).max(completed);
        let id = request.get("requestId").str().unwrap_or_default();
        let offset = state.offset(id);
        let spot = Spot {
            place: Place { file: 0, offset },
            at,
        };
        let mut teller = Teller {
            assembler: &mut assembler,
            request,
            spot,
            text: String::new(),
            calls: 0,
        };
        teller.tell(report);
    }
    let facts = &mut assembler.session;
    facts.started = facts.started.or(last);
    facts.ended = facts.ended.or(last);
    noise::of_prompts(assembler.finish())
}

/// Tells one request and its response.
struct Teller<'t, 'a, 's> {
    assembler: &'t mut Assembler<'a>,
    request: Node<'s>,
    spot: Spot,
    /// Text so far: links to files and symbols stand between its pieces.
    text: String,
    calls: usize,
}

impl<'s> Teller<'_, '_, 's> {
    fn tell(&mut self, report: &mut Report) {
        let message = self.request.get("message");
        let text = message
            .get("text")
            .text()
            .or_else(|| message.text())
            .unwrap_or_default();
        if self.is_for_another() {
            return;
        }
        let made = noise::kind_of(text).filter(|_| !text.is_empty());
        if made.is_some() || self.request.get("isSystemInitiated").is_true() {
            self.assembler.machine_text(
                Redacted::own(made.unwrap_or("system")),
                &self.assembler.door.note(text),
                self.spot.place,
            );
            return;
        }
        if !text.trim().is_empty() {
            let is_command = text
                .strip_prefix('/')
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_lowercase()));
            let kind = match is_command {
                true => PromptKind::SlashCommand,
                false => PromptKind::Typed,
            };
            self.assembler
                .prompt(self.assembler.door.prompt(text), kind, 0, self.spot, None);
        }
        let parts: Vec<Node<'_>> = self.request.get("response").list().collect();
        if let Some(model) = self
            .request
            .get("modelId")
            .text()
            .filter(|_| !parts.is_empty())
        {
            self.assembler.model(&self.assembler.door.note(model));
        }
        for part in parts {
            self.part(part, report);
        }
        self.flush();
        let error = self.request.at(&["result", "errorDetails"]);
        if self.request.get("isCanceled").is_true() {
            self.assembler.interrupted(&Redacted::EMPTY, self.spot);
        } else if error.is_some() {
            let error = error.get("message").str().unwrap_or("error");
            self.assembler
                .failed(&self.assembler.door.note(error), self.spot);
        }
    }

    /// Whether the request went to another extension's participant of the chat.
    fn is_for_another(&self) -> bool {
        let extension = self.request.at(&["agent", "extensionId"]);
        let name = extension
            .text()
            .or_else(|| extension.get("_lower").text())
            .or_else(|| extension.get("value").text());
        // What is built in has a name without a publisher.
        name.is_some_and(|name| {
            name.contains('.') && !name.to_ascii_lowercase().starts_with("github.copilot")
        })
    }

    fn part(&mut self, part: Node<'s>, report: &mut Report) {
        let value = part.get("value").str();
        match part.get("kind").str() {
            None | Some("markdown") => self.text.push_str(value.unwrap_or_default()),
            Some("markdownContent") => {
                let text = part.at(&["content", "value"]).str().or(value);
                self.text.push_str(text.unwrap_or_default());
            }
            Some("inlineReference") => {
                let reference = part.get("inlineReference");
                let name = part
                    .get("name")
                    .text()
                    .or_else(|| reference.get("name").text());
                let path = uri_path(reference).or_else(|| uri_path(reference.get("uri")));
                let file = path.map(|path| path.rsplit('/').next().unwrap_or(path));
                self.text.push_str(name.or(file).unwrap_or_default());
            }
            Some("toolInvocationSerialized") => {
                self.flush();
                self.call(part);
            }
            Some("textEditGroup" | "notebookEditGroup") => {
                self.flush();
                self.edit(part);
            }
            Some(kind) if SILENT.contains(&kind) => {}
            Some(kind) => report.unknown_kind(Agent::CopilotChat, kind),
        }
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        self.assembler
            .text(self.assembler.door.answer(&text), false, self.spot);
    }

    /// Ids need not be those of the model's calls, and need not be there.
    fn call(&mut self, part: Node<'_>) {
        let door = self.assembler.door;
        let logged = part.get("toolCallId").text();
        let id = match logged {
            Some(id) => door.id(id),
            None => door.id(&format!("{}-{}", self.spot.place.offset, self.calls)),
        };
        self.calls += 1;
        let specific = part.get("toolSpecificData");
        let line = specific.get("commandLine");
        let command = line
            .get("original")
            .text()
            .or_else(|| line.text())
            .filter(|_| specific.get("kind").str() == Some("terminal"));
        let arguments = self.arguments(logged);
        let name = part.get("toolId").str().unwrap_or_default();
        let call = ToolCall {
            arguments: door.arguments(arguments.node()),
            command: command.map(|line| CommandRun {
                text: door.command(line),
                ..CommandRun::default()
            }),
            ..started_call(id.clone(), door.note(name), self.spot)
        };
        self.assembler.call(call, None);
        let exit_code = specific
            .at(&["terminalCommandState", "exitCode"])
            .int()
            .and_then(|code| i32::try_from(code).ok());
        if exit_code.is_none() && !part.get("isComplete").is_true() {
            return;
        }
        let output = match specific.at(&["terminalCommandOutput", "text"]).text() {
            Some(text) => text.to_owned(),
            None => self.output(logged),
        };
        let result = CallResult {
            output: door.output(&output),
            status: CallStatus::Ok,
            exit_code,
            ..CallResult::default()
        };
        self.assembler.result(&id, result, self.spot.place);
    }

    /// The arguments of a call, if the model's record of it has the same id.
    fn arguments(&self, id: Option<&str>) -> Json {
        let rounds = self.request.at(&["result", "metadata", "toolCallRounds"]);
        let text = rounds
            .list()
            .flat_map(|round| round.get("toolCalls").list())
            .find(|call| id.is_some() && call.get("id").text() == id)
            .and_then(|call| call.get("arguments").text());
        text.map_or_else(Json::default, |text| {
            Json::parse(text).unwrap_or_else(|_| Json::text(text))
        })
    }

    /// What a call answered, if the record of it has the same id.
    fn output(&self, id: Option<&str>) -> String {
        let results = self.request.at(&["result", "metadata", "toolCallResults"]);
        let texts: Vec<&str> = results
            .get(id.unwrap_or_default())
            .get("content")
            .list()
            .filter_map(|part| part.get("value").text())
            .collect();
        texts.join("\n")
    }

    /// An edit of a file. The log does not say by which tool.
    fn edit(&mut self, part: Node<'_>) {
        let Some(path) = uri_path(part.get("uri")) else {
            return;
        };
        let door = self.assembler.door;
        let path = door.note(path);
        if self.assembler.has_edit(&path) {
            return;
        }
        let call = ToolCall {
            arguments: path.clone(),
            status: CallStatus::Ok,
            edits: vec![path],
            ..started_call(Redacted::EMPTY, Redacted::EMPTY, self.spot)
        };
        self.assembler.call(call, None);
    }
}

/// The path of an address that was taken apart.
fn uri_path(uri: Node<'_>) -> Option<&str> {
    uri.get("fsPath").text().or_else(|| uri.get("path").text())
}
