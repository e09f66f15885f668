//! One record of Claude Code, classified (session-logs.md, sections 2.3 to 2.6).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::Timestamp;

use crate::node::Node;
use crate::redact::{Door, Redacted};
use crate::session::PromptKind;

use super::attachment;
use super::results::RawResult;
use super::user;

/// A record reduced to what matters.
pub(super) struct Row {
    pub(super) offset: u64,
    pub(super) at: Option<Timestamp>,
    /// Hash of the record's id.
    pub(super) id: Option<u64>,
    /// Hash of its parent's id.
    pub(super) parent: Option<u64>,
    pub(super) sidechain: bool,
    pub(super) kind: RowKind,
}

impl Row {
    /// The ids by which it can be recognised in another file.
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        let message = match &self.kind {
            RowKind::Assistant(message) => message.id,
            _ => None,
        };
        self.id.into_iter().chain(message)
    }
}

/// What a record is.
pub(super) enum RowKind {
    /// A person's text.
    Prompt {
        text: Redacted,
        kind: PromptKind,
        images: u32,
    },
    /// A slash command: a prompt if work follows.
    SlashCommand { name: Redacted, arguments: Redacted },
    /// Output of a built-in command: the slash command before it was no prompt.
    CommandOutput,
    /// A notice by the program that the model answers.
    Notice { text: Redacted, wakes: bool },
    /// A text by a program.
    Machine {
        kind: &'static str,
        text: Redacted,
        expands: bool,
    },
    /// Results of tool calls.
    Results(Vec<RawResult>),
    /// The person stopped the agent.
    Interrupted(Redacted),
    /// A message of the model, or a part of it.
    Assistant(Message),
    /// The conversation was summarised.
    Compacted(Redacted),
    /// The model could not be reached; the program tries again.
    ApiError(Redacted),
    /// Instruction files in force.
    Instructions(Vec<Redacted>),
    /// A hook's output.
    Hook(Redacted),
    /// Nothing that matters, but a link in the chain.
    Link,
}

/// A message of the model, or one content block of it.
pub(super) struct Message {
    /// Hash of the message id.
    pub(super) id: Option<u64>,
    pub(super) model: Option<Redacted>,
    pub(super) blocks: Vec<Block>,
    pub(super) usage: Option<MessageUsage>,
    /// The text of an API error shown as a message.
    pub(super) error: Option<Redacted>,
    /// On behalf of which skill.
    pub(super) skill: Option<Redacted>,
}

/// Tokens of one message, as that record has them.
#[derive(Clone, Copy, Default)]
pub(super) struct MessageUsage {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_creation: u64,
    /// The stream had not ended: output is a placeholder.
    pub(super) unfinished: bool,
}

/// One content block.
pub(super) enum Block {
    Text(Redacted),
    Call(RawCall),
}

impl Block {
    pub(super) fn text(&self) -> Option<&Redacted> {
        match self {
            Block::Text(text) => Some(text),
            Block::Call(_) => None,
        }
    }

    pub(super) fn is_text(&self) -> bool {
        self.text().is_some()
    }
}

/// A tool call as logged.
pub(super) struct RawCall {
    pub(super) id: Redacted,
    pub(super) name: Redacted,
    pub(super) arguments: Redacted,
    pub(super) command: Option<Redacted>,
    /// The file that an editing tool is to change.
    pub(super) path: Option<Redacted>,
    pub(super) skill: Option<Redacted>,
}

/// A short stand-in for an id.
pub(super) fn key(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// What a record is.
pub(super) fn classify(record: Node<'_>, kind: &str, door: Door<'_>) -> RowKind {
    match kind {
        "user" => user::classify(record, door),
        "assistant" => RowKind::Assistant(message(record, door)),
        "attachment" => attachment::classify(record, door),
        _ => system(record, door),
    }
}

/// Whether a repeated record says more than its first copy.
pub(super) fn is_richer(new: &RowKind, old: &RowKind) -> bool {
    match (new, old) {
        (RowKind::Assistant(new), RowKind::Assistant(old)) => new.blocks.len() > old.blocks.len(),
        (RowKind::Results(new), RowKind::Results(old)) => new.len() > old.len(),
        (_, RowKind::Link) => true,
        _ => false,
    }
}

/// A `system` record.
fn system(record: Node<'_>, door: Door<'_>) -> RowKind {
    match record.get("subtype").str().unwrap_or_default() {
        "compact_boundary" => {
            let trigger = record
                .at(&["compactMetadata", "trigger"])
                .str()
                .unwrap_or_default();
            RowKind::Compacted(door.note(trigger))
        }
        "api_error" => {
            let error = record.get("error");
            let text = error
                .get("formatted")
                .text()
                .or_else(|| error.get("message").text())
                .or_else(|| record.get("content").text())
                .or_else(|| error.str());
            RowKind::ApiError(door.note(text.unwrap_or("API error")))
        }
        "local_command" => RowKind::CommandOutput,
        _ => RowKind::Link,
    }
}

/// An `assistant` record.
fn message(record: Node<'_>, door: Door<'_>) -> Message {
    let message = record.get("message");
    let model = message.get("model").text();
    let synthetic = model == Some("<synthetic>");
    let is_error = record.get("isApiErrorMessage").is_true();
    let content = message.get("content");
    let mut blocks: Vec<Block> = Vec::new();
    if let Some(text) = content.text() {
        blocks.push(Block::Text(door.answer(text)));
    }
    blocks.extend(content.list().filter_map(|block| block_of(block, door)));
    let error = is_error.then(|| {
        let text = blocks.iter().find_map(|block| match block {
            Block::Text(text) => Some(text.clone()),
            Block::Call(_) => None,
        });
        text.unwrap_or_else(|| door.note(record.get("error").str().unwrap_or("API error")))
    });
    if synthetic || is_error {
        blocks.clear();
    }
    Message {
        id: message.get("id").text().map(key),
        model: model
            .filter(|_| !synthetic && !is_error)
            .map(|name| door.note(name)),
        blocks,
        usage: usage(message).filter(|_| !synthetic && !is_error),
        error,
        skill: record
            .get("attributionSkill")
            .text()
            .map(|name| door.note(name)),
    }
}

fn usage(message: Node<'_>) -> Option<MessageUsage> {
    let usage = message.get("usage");
    usage.is_object().then(|| {
        let count = |name: &str| usage.get(name).count().unwrap_or_default();
        MessageUsage {
            input: count("input_tokens"),
            output: count("output_tokens"),
            cache_read: count("cache_read_input_tokens"),
            cache_creation: count("cache_creation_input_tokens"),
            unfinished: !message.get("stop_reason").is_some(),
        }
    })
}

fn block_of(block: Node<'_>, door: Door<'_>) -> Option<Block> {
    match block.get("type").str()? {
        "text" => block
            .get("text")
            .text()
            .map(|text| Block::Text(door.answer(text))),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => Some(Block::Call(call(block, door))),
        _ => None,
    }
}

/// Tools that change the file that they name.
const EDITING_TOOLS: &[&str] = &[
    "Edit",
    "MultiEdit",
    "Write",
    "NotebookEdit",
    "Update",
    "Create",
];
/// Tools that run a shell command.
const SHELL_TOOLS: &[&str] = &["Bash", "PowerShell", "Shell"];

fn call(block: Node<'_>, door: Door<'_>) -> RawCall {
    let name = block.get("name").str().unwrap_or_default();
    let input = block.get("input");
    let path = EDITING_TOOLS
        .contains(&name)
        .then(|| {
            input
                .get("file_path")
                .text()
                .or_else(|| input.get("notebook_path").text())
        })
        .flatten();
    RawCall {
        id: door.id(block.get("id").str().unwrap_or_default()),
        name: door.note(name),
        arguments: door.arguments(input),
        command: SHELL_TOOLS
            .contains(&name)
            .then(|| input.get("command").text().map(|text| door.command(text)))
            .flatten(),
        path: path.map(|path| door.note(path)),
        skill: (name == "Skill")
            .then(|| {
                input
                    .get("skill")
                    .text()
                    .or_else(|| input.get("command").text())
            })
            .flatten()
            .map(|skill| door.note(skill)),
    }
}
