//! Items of the paginated format (session-logs.md, section 3.3).

use crate::clock;
use crate::node::Node;
use crate::redact::Door;
use crate::session::CallStatus;

use super::call::{milliseconds, unwrapped_words};
use super::content;
use super::fact::{CommandItem, CompactedBy, Fact, Teller};

/// Reads an `item_completed` event.
pub(super) fn read(body: Node<'_>, door: Door<'_>, facts: &mut Vec<Fact>) {
    let item = body.get("item");
    match item.get("type").str().unwrap_or_default() {
        "UserMessage" => {
            let parts = item.get("content");
            facts.push(Fact::Prompt {
                text: door.prompt(content::request(&content::joined(parts))),
                images: content::images(parts),
                by: Teller::Item,
                thread: body.get("thread_id").text().map(|id| door.id(id)),
            });
        }
        "AgentMessage" => facts.push(Fact::Answer {
            text: door.answer(&content::joined(item.get("content"))),
            interim: item.get("phase").str() == Some("commentary"),
            by: Teller::Item,
        }),
        "CommandExecution" => facts.push(Fact::Command(Box::new(command(body, item, door)))),
        "FileChange" => facts.push(Fact::Edit {
            id: door.id(item.get("id").str().unwrap_or_default()),
            paths: changed_paths(item.get("changes")),
            ok: item
                .get("status")
                .str()
                .is_none_or(|status| status == "completed"),
        }),
        "McpToolCall" => facts.push(mcp(item, door)),
        "SubAgentActivity" if item.get("kind").str() == Some("started") => {
            facts.push(Fact::AgentStarted)
        }
        "EnteredReviewMode" => facts.push(Fact::ReviewStarted),
        "ExitedReviewMode" => facts.push(Fact::ReviewEnded),
        "ContextCompaction" => facts.push(Fact::Compacted(CompactedBy::Item)),
        _ => {}
    }
}

/// The files of a change. A moved file is in both places.
pub(super) fn changed_paths(changes: Node<'_>) -> Vec<String> {
    let mut paths = Vec::new();
    for (path, change) in changes.members() {
        paths.push(path.to_owned());
        paths.extend(change.get("move_path").text().map(str::to_owned));
    }
    for change in changes.list() {
        paths.extend(change.get("path").text().map(str::to_owned));
    }
    paths
}

fn command(body: Node<'_>, item: Node<'_>, door: Door<'_>) -> CommandItem {
    let words: Vec<&str> = item.get("command").list().filter_map(Node::str).collect();
    let line = match item.get("command").text() {
        Some(line) => line.to_owned(),
        None => unwrapped_words(&words).unwrap_or_default(),
    };
    let code = item
        .get("exit_code")
        .int()
        .and_then(|code| i32::try_from(code).ok());
    let status = match (item.get("status").str(), code) {
        (Some("declined"), _) => CallStatus::Denied,
        // -1 stands for a command that did not end by itself.
        (_, Some(-1)) => CallStatus::Interrupted,
        (_, Some(0)) => CallStatus::Ok,
        (_, Some(_)) | (Some("failed"), None) => CallStatus::Failed,
        (Some("in_progress"), None) => CallStatus::Background,
        (_, None) => CallStatus::Unknown,
    };
    let cwd = item
        .get("cwd")
        .text()
        .map(|path| path.strip_prefix("file://").unwrap_or(path));
    CommandItem {
        id: door.id(item.get("id").str().unwrap_or_default()),
        command: door.command(&line),
        workdir: cwd.map(|path| door.note(path)),
        output: door.output(item.get("aggregated_output").str().unwrap_or_default()),
        status,
        exit_code: code.filter(|code| *code >= 0),
        duration_ms: duration(body, item),
        by_user: item.get("source").str() == Some("user_shell"),
    }
}

/// How long an item took: as it says, else between its start and its end.
fn duration(body: Node<'_>, item: Node<'_>) -> Option<u64> {
    let told = item.get("duration");
    if let Some(seconds) = told.get("secs").float() {
        return milliseconds(seconds + told.get("nanos").float().unwrap_or_default() / 1.0e9);
    }
    let start = clock::time(body.get("started_at_ms"))?;
    let end = clock::time(body.get("completed_at_ms"))?;
    u64::try_from(end.as_millisecond().checked_sub(start.as_millisecond())?).ok()
}

fn mcp(item: Node<'_>, door: Door<'_>) -> Fact {
    let server = item.get("server").str().unwrap_or_default();
    let tool = item.get("tool").str().unwrap_or_default();
    let result = item.get("result");
    let ok = item.get("status").str() != Some("failed")
        && !result.get("isError").is_true()
        && !item.get("error").is_some();
    Fact::Tool {
        id: door.id(item.get("id").str().unwrap_or_default()),
        name: door.note(&format!("mcp__{server}__{tool}")),
        arguments: door.arguments(item.get("arguments")),
        output: door.output(&content::joined(result.get("content"))),
        ok,
    }
}
