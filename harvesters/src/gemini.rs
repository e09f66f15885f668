//! Gemini CLI (session-logs.md, section 6).
//!
//! A file is a log of changes: a line with an id inserts or replaces a message, `$set`
//! changes the header or replaces all messages, `$rewindTo` drops the last ones. Older
//! releases wrote one JSON document. Either way the messages at the end are the session.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::assemble::{Assembler, CallResult, Spot, started_call};
use crate::clock;
use crate::harvest::Run;
use crate::node::Node;
use crate::noise;
use crate::redact::Redacted;
use crate::report::SkipReason;
use crate::session::{
    Agent, CallStatus, CommandRun, Origin, Place, PromptKind, Session, ToolCall, Usage,
};
use crate::source::{Source, SourceInfo};
use crate::tape::{Json, keep_all};
use crate::walk::{self, Found};
use regex::Regex;

/// Gemini CLI's logs.
pub(crate) struct GeminiCli;

impl Source for GeminiCli {
    fn info(&self) -> SourceInfo {
        SourceInfo {
            agent: Agent::Gemini,
            title: "Gemini CLI",
            reads: "tmp/*/chats/session-*.jsonl and .json, projects.json",
            location: "~/.gemini",
            keeps: "prompts, answers, tool calls with results, files, models, tokens",
        }
    }

    fn default_roots(
        &self,
        _: &str,
        home: &Path,
        _: &dyn Fn(&str) -> Option<OsString>,
    ) -> Vec<PathBuf> {
        vec![home.join(".gemini")]
    }

    fn read(&self, root: &Path, run: &mut Run<'_>) -> ControlFlow<()> {
        let files = walk::files(&root.join("tmp"), &mut run.report, &|name| {
            name.ends_with(".jsonl") || name.starts_with("session-") && name.ends_with(".json")
        });
        for file in files {
            let folder = file.path.parent();
            if folder
                .and_then(Path::file_name)
                .is_none_or(|name| name != "chats")
            {
                // chats/<parent>/<id>.jsonl belongs to a sub-agent.
                let below = folder.and_then(Path::parent).and_then(Path::file_name);
                if below.is_some_and(|name| name == "chats") {
                    run.report.skip(&file.path, SkipReason::SubAgent, "");
                }
                continue;
            }
            run.report.files_found += 1;
            if run.all_unchanged(std::iter::once(&file)) {
                continue;
            }
            if let Some(session) = session(&file, root, run) {
                run.emit(session)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The messages as they are after the changes so far.
#[derive(Default)]
struct Chat {
    id: Option<String>,
    started: Option<jiff::Timestamp>,
    sub_agent: bool,
    messages: Vec<(u64, Json)>,
    /// The fullest copy of each message with tool calls: a checkpoint at resume leaves
    /// the calls of the messages that it repeats out.
    with_calls: HashMap<String, (u64, Json)>,
    /// Tokens by message: of dropped messages too.
    tokens: HashMap<String, Usage>,
}

impl Chat {
    fn apply(&mut self, offset: u64, node: Node<'_>) {
        let set = node.get("$set");
        if set.is_object() {
            self.header(set);
            if set.get("messages").is_some() {
                self.messages.clear();
                for message in set.get("messages").list() {
                    self.put(offset, message);
                }
            }
        } else if let Some(id) = node.get("$rewindTo").text() {
            if let Some(at) = self.position(id) {
                self.messages.truncate(at);
            }
        } else if node.get("sessionId").text().is_some() {
            self.header(node);
            for message in node.get("messages").list() {
                self.put(offset, message);
            }
        } else if node.get("id").text().is_some() {
            self.put(offset, node);
        }
    }

    fn header(&mut self, node: Node<'_>) {
        self.id = self
            .id
            .take()
            .or_else(|| node.get("sessionId").text().map(str::to_owned));
        self.started = self.started.or_else(|| clock::time(node.get("startTime")));
        self.sub_agent |= node.get("kind").str() == Some("subagent");
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.messages
            .iter()
            .position(|(_, message)| message.node().get("id").str() == Some(id))
    }

    /// Inserts a message or replaces the one of its id.
    fn put(&mut self, offset: u64, message: Node<'_>) {
        let Some(id) = message.get("id").text() else {
            return;
        };
        if let Some(usage) = usage_of(message) {
            self.tokens.insert(id.to_owned(), usage);
        }
        if message.get("toolCalls").list().next().is_some() {
            self.with_calls
                .insert(id.to_owned(), (offset, message.to_json()));
        }
        let fullest = self
            .with_calls
            .get(id)
            .cloned()
            .unwrap_or_else(|| (offset, message.to_json()));
        match self.position(id) {
            Some(at) => self.messages[at] = fullest,
            None => self.messages.push(fullest),
        }
    }
}

/// Tokens of a message: input includes what was cached, output has no thoughts in it.
fn usage_of(message: Node<'_>) -> Option<Usage> {
    let tokens = message.get("tokens");
    let count = |name: &str| tokens.get(name).count().unwrap_or_default();
    tokens.is_object().then(|| Usage {
        input: count("input").saturating_sub(count("cached")),
        output: count("output").saturating_add(count("thoughts")),
        cache_read: count("cached"),
        ..Usage::default()
    })
}

/// Reads one file.
fn session(file: &Found, root: &Path, run: &mut Run<'_>) -> Option<Session> {
    let door = run.door();
    let mut chat = Chat::default();
    let mut log = run.open(file)?;
    if file
        .path
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        let document = log.whole_document(run.options.limits.line, &mut run.report);
        if let Some(document) = document {
            chat.apply(0, document.node());
        }
    } else {
        log.each_record(keep_all, &mut run.report, |offset, record, _| {
            chat.apply(offset, record)
        });
    }
    run.close(log);
    if chat.sub_agent {
        run.report.skip(&file.path, SkipReason::SubAgent, "");
        return None;
    }
    if chat.messages.is_empty() {
        run.report.skip(&file.path, SkipReason::Empty, "");
        return None;
    }
    let mut assembler = Assembler::new(door);
    let facts = &mut assembler.session;
    facts.agent = Agent::Gemini;
    facts.id = chat
        .id
        .as_deref()
        .map(|id| door.note(id))
        .unwrap_or_default();
    facts.project = project_of(file, root).map(|path| door.note(&path));
    facts.files = vec![file.path.to_string_lossy().into_owned()];
    facts.started = chat.started;
    facts.ended = chat
        .messages
        .iter()
        .filter_map(|(_, message)| clock::time(message.node().get("timestamp")))
        .max()
        .or(chat.started);
    for (offset, message) in &chat.messages {
        tell(&mut assembler, message.node(), *offset);
    }
    assembler.session.usage = chat.tokens.values().copied().reduce(|sum, usage| Usage {
        input: sum.input.saturating_add(usage.input),
        output: sum.output.saturating_add(usage.output),
        cache_read: sum.cache_read.saturating_add(usage.cache_read),
        ..sum
    });
    let mut session = assembler.finish();
    let first = session.prompts().next();
    session.origin = match first.is_some_and(|prompt| noise::is_program_prompt(&prompt.text)) {
        true => Origin::Machine,
        false => Origin::Unknown,
    };
    Some(session)
}

/// The project of a folder: as written in it, else as `projects.json` names it. A bare
/// hash cannot be turned back.
fn project_of(file: &Found, root: &Path) -> Option<String> {
    const LONGEST: u64 = 1 << 20;
    let folder = file.path.parent()?.parent()?;
    let small = |path: &Path| -> Option<String> {
        let metadata = std::fs::symlink_metadata(path).ok()?;
        let mut text = String::new();
        metadata.is_file().then_some(())?;
        fs_err::File::open(path)
            .ok()?
            .take(LONGEST)
            .read_to_string(&mut text)
            .ok()?;
        Some(text)
    };
    if let Some(path) = small(&folder.join(".project_root")) {
        return Some(path.trim().to_owned());
    }
    let slug = folder.file_name()?.to_str()?;
    let text = small(&root.join("projects.json"))?;
    let projects = Json::parse(&text).ok()?;
    projects
        .node()
        .get("projects")
        .members()
        .find(|(_, name)| name.str() == Some(slug))
        .map(|(path, _)| path.to_owned())
}

/// Tells the assembler one message.
fn tell(assembler: &mut Assembler<'_>, message: Node<'_>, offset: u64) {
    let spot = Spot {
        place: Place { file: 0, offset },
        at: clock::time(message.get("timestamp")),
    };
    let door = assembler.door;
    let content = message.get("content");
    match message.get("type").str().unwrap_or_default() {
        "user" => {
            let text = prompt_text(content);
            let text = text.trim();
            if text.starts_with("<session_context>") {
                assembler.machine_text(Redacted::own("context"), &door.note(text), spot.place);
            } else if !text.is_empty() {
                assembler.prompt(door.prompt(text), PromptKind::Typed, 0, spot, None);
            }
        }
        "gemini" => {
            if let Some(model) = message.get("model").text() {
                assembler.model(&door.note(model));
            }
            assembler.text(door.answer(&prompt_text(content)), false, spot);
            for call in message.get("toolCalls").list() {
                tell_call(assembler, call, spot);
            }
        }
        "error" => assembler.failed(&door.note(&prompt_text(content)), spot),
        "info" if prompt_text(content).contains("cancelled") => {
            assembler.interrupted(&Redacted::EMPTY, spot)
        }
        _ => {}
    }
}

/// The text of a content; contents of files that were named with `@` are left out.
fn prompt_text(content: Node<'_>) -> String {
    if let Some(text) = content.str() {
        return text.to_owned();
    }
    content
        .list()
        .filter_map(|part| part.get("text").text())
        .take_while(|text| {
            !text
                .trim_start()
                .starts_with("--- Content from referenced files")
        })
        .collect::<Vec<_>>()
        .join("")
}

fn tell_call(assembler: &mut Assembler<'_>, raw: Node<'_>, spot: Spot) {
    static EXIT: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?m)^Exit Code: (-?\d{1,10})\s*$").ok());
    let door = assembler.door;
    let id = door.id(raw.get("id").str().unwrap_or_default());
    let name = raw.get("name").str().unwrap_or_default();
    let arguments = raw.get("args");
    let line = (name == "run_shell_command")
        .then(|| arguments.get("command").text())
        .flatten();
    assembler.call(
        ToolCall {
            arguments: door.arguments(arguments),
            command: line.map(|line| CommandRun {
                text: door.command(line),
                ..CommandRun::default()
            }),
            ..started_call(id.clone(), door.note(name), spot)
        },
        None,
    );
    let status = match raw.get("status").str() {
        Some("success") => CallStatus::Ok,
        Some("error") => CallStatus::Failed,
        Some("cancelled") => CallStatus::Interrupted,
        _ => return,
    };
    let output = raw
        .get("result")
        .list()
        .filter_map(|part| part.at(&["functionResponse", "response", "output"]).text())
        .collect::<Vec<_>>()
        .join("\n");
    // The status is success whatever the exit; the code is told only when it is not 0.
    let told = EXIT
        .as_ref()
        .and_then(|exit| exit.captures(&output)?.get(1)?.as_str().parse().ok());
    let exit_code = (line.is_some() && status == CallStatus::Ok).then(|| told.unwrap_or(0));
    let edits = matches!(name, "replace" | "write_file" | "edit")
        .then(|| arguments.get("file_path").text())
        .flatten()
        .map(|path| door.note(path))
        .into_iter()
        .collect();
    let result = CallResult {
        output: door.output(&output),
        status,
        exit_code,
        duration_ms: None,
        edits,
    };
    assembler.result(&id, result, spot.place);
}
