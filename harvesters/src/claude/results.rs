//! Results of tool calls (session-logs.md, section 2.6).

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::node::Node;
use crate::redact::{Door, Redacted};
use crate::session::CallStatus;

/// The result of one call.
pub(super) struct RawResult {
    pub(super) id: Redacted,
    pub(super) output: Redacted,
    pub(super) status: CallStatus,
    /// The exit code that a failed command's text names.
    pub(super) exit_code: Option<i32>,
    /// The person refused the call; an interruption may follow.
    pub(super) rejected: bool,
    /// The file that was changed.
    pub(super) path: Option<Redacted>,
    pub(super) duration_ms: Option<u64>,
}

/// What is read of the structured copy of a result.
pub(super) const STRUCTURED: &[&str] = &[
    "interrupted",
    "backgroundTaskId",
    "filePath",
    "durationMs",
    "totalDurationMs",
];

/// All results in a record.
pub(super) fn of(record: Node<'_>, door: Door<'_>) -> Vec<RawResult> {
    let structured = record.get("toolUseResult");
    record
        .at(&["message", "content"])
        .list()
        .filter(|block| block.get("type").str() == Some("tool_result"))
        .map(|block| result(record, block, structured, door))
        .collect()
}

fn result(record: Node<'_>, block: Node<'_>, structured: Node<'_>, door: Door<'_>) -> RawResult {
    let text = content_text(block.get("content"));
    let is_error = block.get("is_error").is_true();
    let denial = record.get("toolDenialKind").text();
    let rejected = denial.is_some_and(|kind| kind.starts_with("user"))
        || text.starts_with("The user doesn't want to proceed with this tool use")
        || text.starts_with("The user doesn't want to take this action");
    let status = if rejected || denied(record, &text, is_error, denial) {
        CallStatus::Denied
    } else if text.starts_with(STOPPED)
        || is_error && last_line(&text).starts_with(STOPPED)
        || structured.get("interrupted").is_true()
    {
        CallStatus::Interrupted
    } else if structured.get("backgroundTaskId").text().is_some()
        || text.starts_with("Command running in background")
    {
        CallStatus::Background
    } else if is_error && timed_out(&text) {
        CallStatus::TimedOut
    } else if is_error || text.starts_with("<tool_use_error>") {
        CallStatus::Failed
    } else {
        CallStatus::Ok
    };
    RawResult {
        id: door.id(block.get("tool_use_id").str().unwrap_or_default()),
        output: door.output(&text),
        status,
        exit_code: if status == CallStatus::Failed {
            exit_code(&text)
        } else {
            None
        },
        rejected,
        path: structured
            .get("filePath")
            .text()
            .map(|path| door.note(path)),
        duration_ms: structured
            .get("durationMs")
            .count()
            .or_else(|| structured.get("totalDurationMs").count()),
    }
}

/// Begins what the program writes where the person stopped the agent. A command that was
/// stopped has its code and its output before it.
const STOPPED: &str = "[Request interrupted by user";

fn last_line(text: &str) -> &str {
    text.trim_end().rsplit('\n').next().unwrap_or_default()
}

/// Whether a rule or a mode refused the call.
fn denied(record: Node<'_>, text: &str, is_error: bool, denial: Option<&str>) -> bool {
    let decision = record.at(&["permissionDecision", "decision"]).str();
    is_error
        && (denial.is_some()
            || matches!(decision, Some("reject" | "deny" | "denied"))
            || says_denied(text))
}

/// How releases say that they refused a call, at the beginning of its result.
fn says_denied(text: &str) -> bool {
    const OPENINGS: &[&str] = &[
        "Claude requested permissions to ",
        "Permission to use ",
        "This command requires approval",
        "Command contains ",
        "Contains command_substitution",
    ];
    const SIGNS: &[&str] = &[
        "haven't granted it yet",
        "is disabled for this session",
        "require approval: ",
        "requires approval: ",
        "was blocked. For security, ",
        "denied by your permission settings",
    ];
    let start = crate::redact::cut(text, 400);
    OPENINGS.iter().any(|opening| start.starts_with(opening))
        || SIGNS.iter().any(|sign| start.contains(sign))
}

fn timed_out(text: &str) -> bool {
    let start = crate::redact::cut(text, 400);
    start.contains("Command timed out") || start.contains("timed out after")
}

/// `Exit code N` at the start of a failed command's text.
fn exit_code(text: &str) -> Option<i32> {
    static EXIT: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^(?:Error: )?Exit code (-?\d{1,10})\b").ok());
    EXIT.as_ref()?.captures(text)?.get(1)?.as_str().parse().ok()
}

/// A result's text, pictures left out.
fn content_text(content: Node<'_>) -> Cow<'_, str> {
    if let Some(text) = content.str() {
        return Cow::Borrowed(text);
    }
    let parts = content.list().filter_map(|part| part.get("text").text());
    match parts.collect::<Vec<_>>().as_slice() {
        [text] => Cow::Borrowed(*text),
        texts => Cow::Owned(texts.join("\n")),
    }
}
