//! The event log that Copilot CLI and VS Code's Copilot extension share (session-logs.md,
//! sections 7 and 8): one event a line, in the order in which things happened.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::assemble::{Assembler, CallResult, Spot, given_call};
use crate::clock;
use crate::node::Node;
use crate::redact::{Door, Redacted};
use crate::report::Report;
use crate::session::{
    Agent, CallStatus, IncidentKind, Place, PromptKind, Session, SkillTrigger, Usage,
};
use crate::tape::Json;

/// Tools that run a command line.
const SHELLS: &[&str] = &["bash", "powershell", "shell", "run_in_terminal"];
/// Tools that change the file that they name.
const EDITORS: &[&str] = &[
    "edit",
    "create",
    "create_file",
    "replace_string_in_file",
    "insert_edit_into_file",
];

/// Tells the assembler one event after the other.
pub(crate) struct Teller<'a> {
    agent: Agent,
    assembler: Assembler<'a>,
    /// Calls that a message asked for and that have not started yet. Ids repeat between
    /// runs, so a start without a request is a call of its own.
    asked: HashSet<String>,
    /// The file that each editing call is to change, as logged, by the latest call of an id.
    edits: HashMap<String, String>,
    /// Tokens as the last shutdown added them up, for logs without single records.
    total: Option<Usage>,
    events: u64,
}

impl<'a> Teller<'a> {
    pub(crate) fn new(agent: Agent, door: Door<'a>) -> Self {
        let mut assembler = Assembler::new(door);
        assembler.session.agent = agent;
        Teller {
            agent,
            assembler,
            asked: HashSet::new(),
            edits: HashMap::new(),
            total: None,
            events: 0,
        }
    }

    /// The facts about the session as a whole, to be filled in.
    pub(crate) fn facts(&mut self) -> &mut Session {
        &mut self.assembler.session
    }

    /// Whether nothing was told.
    pub(crate) fn is_empty(&self) -> bool {
        self.events == 0
    }

    pub(crate) fn finish(mut self) -> Session {
        let facts = &mut self.assembler.session;
        facts.usage = facts.usage.or(self.total);
        self.assembler.finish()
    }

    /// One event.
    pub(crate) fn tell(&mut self, offset: u64, event: Node<'_>, report: &mut Report) {
        let kind = event.get("type").str().unwrap_or_default();
        let data = event.get("data");
        let spot = Spot {
            place: Place { file: 0, offset },
            at: clock::time(event.get("timestamp")),
        };
        self.events += 1;
        // What a sub-agent does is not the conversation, but it has happened.
        self.times(spot);
        if event.get("agentId").text().is_some() && kind != "subagent.started" {
            return;
        }
        match kind {
            "session.start" => self.context(data),
            "session.resume" => {
                self.context(data);
                self.assembler.session.resumes += 1;
            }
            "session.shutdown" => self.shutdown(data),
            "session.usage_record" => self.usage(data.get("usage")),
            "session.compaction_complete" => {
                self.assembler
                    .incident(IncidentKind::Compaction, &Redacted::EMPTY, spot)
            }
            "session.error" => {
                let error = data.get("message").str().unwrap_or("error");
                self.assembler
                    .failed(&self.assembler.door.note(error), spot);
            }
            "user.message" => self.prompt(data, spot),
            "assistant.message" => self.answer(data, spot),
            "tool.execution_start" => self.start(data, spot),
            "tool.execution_complete" => self.complete(data, spot),
            "skill.invoked" => {
                if let Some(name) = data.get("name").text() {
                    self.assembler.skill(
                        &self.assembler.door.note(name),
                        SkillTrigger::Tool,
                        spot.place,
                    );
                }
            }
            "subagent.started" => self.assembler.session.sub_agents += 1,
            "abort" => self.assembler.interrupted(&Redacted::EMPTY, spot),
            "system.notification" => {
                let text = data.get("content").str().unwrap_or_default();
                self.assembler.machine_text(
                    Redacted::own("notification"),
                    &self.assembler.door.note(text),
                    spot.place,
                );
            }
            "assistant.turn_start"
            | "assistant.turn_end"
            | "system.message"
            | "session.truncation" => {}
            other => {
                if !other.starts_with("hook.") && !other.starts_with("subagent.") {
                    report.unknown_kind(self.agent, other);
                }
            }
        }
    }

    fn times(&mut self, spot: Spot) {
        let facts = &mut self.assembler.session;
        facts.started = facts.started.or(spot.at);
        facts.ended = facts.ended.max(spot.at);
    }

    /// Where and with what a run of the session began; the first run decides.
    fn context(&mut self, data: Node<'_>) {
        let door = self.assembler.door;
        let note = |node: Node<'_>| node.text().map(|text| door.note(text));
        let context = data.get("context");
        let facts = &mut self.assembler.session;
        if facts.id.is_empty() {
            facts.id = note(data.get("sessionId")).unwrap_or_default();
        }
        facts.agent_version = facts
            .agent_version
            .take()
            .or_else(|| note(data.get("copilotVersion")));
        facts.project = facts.project.take().or_else(|| note(context.get("cwd")));
        facts.git.branch = facts
            .git
            .branch
            .take()
            .or_else(|| note(context.get("branch")));
        facts.git.commit = facts
            .git
            .commit
            .take()
            .or_else(|| note(context.get("headCommit")));
    }

    /// Input includes what was read from the cache; output includes reasoning.
    fn usage(&mut self, usage: Node<'_>) {
        if usage.is_object() {
            let sum = self.assembler.session.usage.get_or_insert_default();
            add(sum, usage);
        }
    }

    /// Sums over the whole session, earlier runs included.
    fn shutdown(&mut self, data: Node<'_>) {
        let metrics = data
            .get("modelMetrics")
            .members()
            .chain(data.at(&["accountingSnapshot", "modelMetrics"]).members());
        let mut seen = HashSet::new();
        let mut total = None;
        for (model, metrics) in metrics {
            if seen.insert(model) && metrics.get("usage").is_object() {
                add(total.get_or_insert_default(), metrics.get("usage"));
            }
        }
        self.total = total.or(self.total);
    }

    fn prompt(&mut self, data: Node<'_>, spot: Spot) {
        self.asked.clear();
        let text = data.get("content").str().unwrap_or_default();
        match data.get("source").text() {
            None | Some("user") if !text.trim().is_empty() => self.assembler.prompt(
                self.assembler.door.prompt(text),
                PromptKind::Typed,
                0,
                spot,
                None,
            ),
            None | Some("user") => {}
            Some(source) => {
                let kind = self.assembler.door.note(source);
                self.assembler
                    .machine_text(kind, &self.assembler.door.note(text), spot.place);
            }
        }
    }

    fn answer(&mut self, data: Node<'_>, spot: Spot) {
        if let Some(model) = data.get("model").text() {
            self.assembler.model(&self.assembler.door.note(model));
        }
        let text = data.get("content").str().unwrap_or_default();
        self.assembler
            .text(self.assembler.door.answer(text), false, spot);
        for request in data.get("toolRequests").list() {
            let id = request.get("toolCallId").str().unwrap_or_default();
            self.asked.insert(id.to_owned());
            let name = request.get("name").str().unwrap_or_default();
            self.call(id, name, request.get("arguments"), spot);
        }
    }

    fn start(&mut self, data: Node<'_>, spot: Spot) {
        let id = data.get("toolCallId").str().unwrap_or_default();
        if !self.asked.remove(id) {
            let name = data.get("toolName").str().unwrap_or_default();
            self.call(id, name, data.get("arguments"), spot);
        }
    }

    fn call(&mut self, id: &str, name: &str, arguments: Node<'_>, spot: Spot) {
        let door = self.assembler.door;
        // Some releases write the arguments as JSON in a string.
        let parsed = arguments.str().and_then(|text| Json::parse(text).ok());
        let arguments = parsed.as_ref().map_or(arguments, Json::node);
        let path = ["path", "filePath", "file_path"]
            .into_iter()
            .find_map(|key| arguments.get(key).text());
        self.edits.remove(id);
        if let Some(path) = path.filter(|_| EDITORS.contains(&name)) {
            self.edits.insert(id.to_owned(), path.to_owned());
        }
        let command = arguments
            .get("command")
            .text()
            .filter(|_| SHELLS.contains(&name));
        let call = given_call(id, name, arguments, command, door, spot);
        self.assembler.call(call, None);
    }

    /// Success says that the tool ran, whatever its command's exit code.
    fn complete(&mut self, data: Node<'_>, spot: Spot) {
        let id = data.get("toolCallId").str().unwrap_or_default();
        let succeeded = data.get("success").is_true();
        let error = data.get("error");
        let output = data
            .at(&["result", "content"])
            .text()
            .or_else(|| error.get("message").text())
            .or_else(|| error.text())
            .unwrap_or_default();
        let door = self.assembler.door;
        let project = self.assembler.session.project.as_deref();
        let edits = self
            .edits
            .remove(id)
            .map(|path| door.path(&path, project))
            .into_iter()
            .collect();
        let result = CallResult {
            output: door.output(output),
            status: match succeeded {
                true => CallStatus::Ok,
                false => CallStatus::Failed,
            },
            exit_code: data
                .at(&["shellExecution", "exitCode"])
                .int()
                .and_then(|code| i32::try_from(code).ok())
                .or_else(|| told_code(output)),
            duration_ms: None,
            edits,
        };
        self.assembler.result(&door.id(id), result, spot.place);
    }
}

/// The exit code at the end of a command's output, where old releases told it.
fn told_code(output: &str) -> Option<i32> {
    static CODE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"<(?:shellId: \S{1,40} completed|exited) with exit code (-?\d{1,10})>\s*$").ok()
    });
    // The sentence is short, and the output before it may be long.
    const TAIL: usize = 200;
    let from = output.ceil_char_boundary(output.len().saturating_sub(TAIL));
    let found = CODE.as_ref()?.captures(&output[from..])?;
    found.get(1)?.as_str().parse().ok()
}

fn add(sum: &mut Usage, usage: Node<'_>) {
    let count = |name: &str| usage.get(name).count().unwrap_or_default();
    let cached = count("cacheReadTokens");
    sum.input = sum
        .input
        .saturating_add(count("inputTokens").saturating_sub(cached));
    sum.output = sum.output.saturating_add(count("outputTokens"));
    sum.cache_read = sum.cache_read.saturating_add(cached);
    sum.cache_creation = sum.cache_creation.saturating_add(count("cacheWriteTokens"));
}
