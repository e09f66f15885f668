//! Tool calls and their outputs in the five ways that releases wrote them
//! (session-logs.md, section 3.5).

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::node::Node;
use crate::redact::{Door, Redacted};
use crate::session::CallStatus;
use crate::tape::{Tape, keep_all};
use regex::Regex;

use super::{content, patch, script};

/// A tool call.
pub(super) struct RawCall {
    pub(super) id: Redacted,
    pub(super) name: Redacted,
    pub(super) arguments: Redacted,
    pub(super) command: Option<Redacted>,
    pub(super) workdir: Option<Redacted>,
    /// Paths that its patch changes, as written there.
    pub(super) patched: Vec<String>,
    /// For the code mode: tools and literal commands of the script.
    pub(super) script: Option<Script>,
    /// For `write_stdin`: the running command that it speaks to.
    pub(super) writes_to: Option<String>,
}

/// What a script of the code mode does.
pub(super) struct Script {
    pub(super) tools: Vec<Redacted>,
    pub(super) commands: Vec<Redacted>,
}

/// The output of a call.
pub(super) struct RawOutput {
    pub(super) id: Redacted,
    pub(super) output: Redacted,
    pub(super) status: CallStatus,
    pub(super) exit_code: Option<i32>,
    pub(super) duration_ms: Option<u64>,
    /// The command goes on under this id.
    pub(super) running: Option<String>,
    /// Exit codes that a script printed.
    pub(super) printed: Vec<i32>,
}

/// Tools that run a shell command.
const SHELL_TOOLS: &[&str] = &[
    "shell",
    "shell_command",
    "exec_command",
    "local_shell",
    "container.exec",
    "unified_exec",
    "local_shell_call",
];

/// A call item.
pub(super) fn call(item: Node<'_>, door: Door<'_>) -> RawCall {
    let kind = item.get("type").str().unwrap_or_default();
    let name = item.get("name").text().unwrap_or(match kind {
        "local_shell_call" => "local_shell",
        "web_search_call" => "web_search",
        "image_generation_call" => "image_generation",
        other => other,
    });
    let told = [item.get("arguments"), item.get("input")]
        .into_iter()
        .find(|node| node.str().is_some());
    let text = told.and_then(Node::str);
    let mut tape = Tape::default();
    let parsed = text.and_then(|text| tape.read(text, keep_all).ok());
    let arguments = match parsed {
        Some(value) if value.is_object() => value,
        _ => first_object(item, &["arguments", "input", "action"]),
    };
    let is_shell = SHELL_TOOLS.contains(&name);
    let script_text = text.filter(|_| name == "exec" && kind == "custom_tool_call");
    let line = is_shell.then(|| command_line(arguments)).flatten();
    let patch_text = patch_text(name, text, arguments, line.as_deref(), script_text);
    RawCall {
        id: door.id(item
            .get("call_id")
            .text()
            .or_else(|| item.get("id").text())
            .unwrap_or_default()),
        name: door.note(name),
        arguments: door.arguments(told.filter(|_| parsed.is_none()).unwrap_or(arguments)),
        command: line
            .filter(|line| !line.trim_start().starts_with("apply_patch"))
            .map(|line| door.command(&line)),
        workdir: arguments.get("workdir").text().map(|path| door.note(path)),
        patched: patch_text
            .map(|patch| patch::paths(&patch))
            .unwrap_or_default(),
        script: script_text.map(|text| Script {
            tools: script::tools(text)
                .iter()
                .map(|tool| door.note(tool))
                .collect(),
            commands: script::commands(text)
                .iter()
                .map(|line| door.command(line))
                .collect(),
        }),
        writes_to: (name == "write_stdin")
            .then(|| session_ref(arguments.get("session_id")))
            .flatten(),
    }
}

/// The first of these members that is an object.
fn first_object<'a>(item: Node<'a>, names: &[&str]) -> Node<'a> {
    names
        .iter()
        .map(|name| item.get(name))
        .find(|node| node.is_object())
        .unwrap_or_else(|| item.get("arguments"))
}

/// The id of a running command, a number or a text.
fn session_ref(node: Node<'_>) -> Option<String> {
    node.int()
        .map(|number| number.to_string())
        .or_else(|| node.text().map(str::to_owned))
}

/// The command line in the arguments of a shell tool.
fn command_line(arguments: Node<'_>) -> Option<String> {
    let command = [arguments.get("command"), arguments.get("cmd")]
        .into_iter()
        .find(|node| node.is_some())?;
    match command.text() {
        Some(line) => Some(line.to_owned()),
        None => unwrapped_words(&command.list().filter_map(Node::str).collect::<Vec<_>>()),
    }
}

/// `["bash", "-lc", "x y"]` is the line `x y`; other words are quoted where needed.
pub(super) fn unwrapped_words(words: &[&str]) -> Option<String> {
    let is_shell = |word: &str| {
        let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
        matches!(
            name.trim_end_matches(".exe"),
            "bash" | "sh" | "zsh" | "dash" | "fish" | "pwsh" | "powershell" | "cmd"
        )
    };
    match words {
        [] => None,
        [shell, flag, line] if is_shell(shell) && flag.starts_with(['-', '/']) => {
            Some((*line).to_owned())
        }
        words => Some(
            words
                .iter()
                .map(|word| quoted(word))
                .collect::<Vec<_>>()
                .join(" "),
        ),
    }
}

fn quoted(word: &str) -> Cow<'_, str> {
    let plain = !word.is_empty()
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-./=:,+@%".contains(&byte));
    if plain {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

/// The patch that a call applies.
fn patch_text(
    name: &str,
    text: Option<&str>,
    arguments: Node<'_>,
    line: Option<&str>,
    script: Option<&str>,
) -> Option<String> {
    if name == "apply_patch" {
        let patch = arguments
            .get("input")
            .text()
            .or_else(|| arguments.get("patch").text())
            .or(text);
        return patch.map(str::to_owned);
    }
    if let Some(line) = line.filter(|line| patch::is_patch(line)) {
        return Some(line.to_owned());
    }
    script.and_then(script::patch)
}

/// An output item.
pub(super) fn output(item: Node<'_>, door: Door<'_>) -> RawOutput {
    let id = door.id(item.get("call_id").str().unwrap_or_default());
    let raw = item.get("output");
    if let Some(text) = raw.str()
        && text.trim_start().starts_with('{')
        && let Ok(value) = Tape::default().read(text, keep_all)
        && value.get("metadata").is_there()
    {
        return measured(id, value, door);
    }
    if raw.get("metadata").is_some() {
        return measured(id, raw, door);
    }
    let text = if raw.is_object() {
        content::joined(raw.get("content"))
    } else {
        content::joined(raw)
    };
    let refused = raw.get("success").is_some() && !raw.get("success").is_true();
    let mut found = spoken(id, &text, door);
    if refused && found.status == CallStatus::Ok {
        found.status = CallStatus::Failed;
    }
    found
}

/// `{"output": …, "metadata": {"exit_code": …, "duration_seconds": …}}`
fn measured(id: Redacted, value: Node<'_>, door: Door<'_>) -> RawOutput {
    let exit_code = value
        .at(&["metadata", "exit_code"])
        .int()
        .and_then(|code| i32::try_from(code).ok());
    let text = content::joined(value.get("output"));
    RawOutput {
        id,
        output: door.output(&text),
        status: status_of(exit_code, &text),
        exit_code,
        duration_ms: value
            .at(&["metadata", "duration_seconds"])
            .float()
            .and_then(milliseconds),
        running: None,
        printed: Vec::new(),
    }
}

/// An output whose head says how it went.
fn spoken(id: Redacted, text: &str, door: Door<'_>) -> RawOutput {
    let head = crate::redact::cut(text, 600);
    let exit_code = captured(&EXIT, head).and_then(|code| code.parse().ok());
    let running = captured(&RUNNING, head).map(str::to_owned);
    let is_stopped = |line: &str| line.starts_with("aborted by user");
    let status = if head.starts_with("aborted") || head.lines().take(2).any(is_stopped) {
        CallStatus::Interrupted
    } else if head.starts_with("Script failed") {
        CallStatus::Failed
    } else if refused(head) {
        CallStatus::Denied
    } else if running.is_some() && exit_code.is_none() {
        CallStatus::Background
    } else if head.starts_with("unsupported call") {
        // This release has no such tool: nothing was carried out, nothing failed.
        CallStatus::Unknown
    } else if exit_code.is_none() && head.contains("execution error: command timed out") {
        CallStatus::TimedOut
    } else if exit_code.is_none() && says_failed(head) {
        CallStatus::Failed
    } else {
        status_of(exit_code, head)
    };
    let printed = if head.starts_with("Script ") {
        script::printed_codes(text)
    } else {
        Vec::new()
    };
    RawOutput {
        id,
        output: door.output(text),
        status,
        exit_code,
        duration_ms: captured(&WALL_TIME, head)
            .and_then(|seconds| seconds.parse().ok())
            .and_then(milliseconds),
        running,
        printed,
    }
}

type Pattern = LazyLock<Option<Regex>>;
static EXIT: Pattern = LazyLock::new(|| {
    Regex::new(r"(?m-u)^(?:Exit code:|Process exited with code) (-?\d{1,10})\s*$").ok()
});
static RUNNING: Pattern =
    LazyLock::new(|| Regex::new(r"(?m-u)^Process running with session ID ([!-~]{1,40})\s*$").ok());
static WALL_TIME: Pattern =
    LazyLock::new(|| Regex::new(r"(?m-u)^Wall time:? (\d{1,9}(?:\.\d{1,9})?) seconds").ok());

fn captured<'a>(pattern: &Pattern, text: &'a str) -> Option<&'a str> {
    Some(pattern.as_ref()?.captures(text)?.get(1)?.as_str())
}

fn status_of(exit_code: Option<i32>, text: &str) -> CallStatus {
    match exit_code {
        Some(124) if text.contains("timed out") => CallStatus::TimedOut,
        None | Some(0) => CallStatus::Ok,
        Some(_) => CallStatus::Failed,
    }
}

/// A person or a rule refused the call.
fn refused(head: &str) -> bool {
    [
        "rejected by user",
        "denied by user",
        "approval denied",
        "rejected by the user",
        "user rejected",
    ]
    .iter()
    .any(|sign| head.contains(sign))
}

/// The program could not carry the call out.
fn says_failed(head: &str) -> bool {
    [
        "failed to parse",
        "failed in sandbox",
        "execution error",
        "unknown tool",
        "tool call error",
        "apply_patch verification failed",
        "error:",
        "Error:",
        "failed:",
        "exec_command failed",
        "write_stdin failed",
        "unsupported custom tool",
    ]
    .iter()
    .any(|sign| head.starts_with(sign))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a sane number of seconds"
)]
pub(super) fn milliseconds(seconds: f64) -> Option<u64> {
    (0.0..1.0e9)
        .contains(&seconds)
        .then(|| (seconds * 1_000.0).round() as u64)
}
