//! One exchange: prompts, tool calls, answer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Outcome, Place};
use crate::redact::Redacted;
use crate::verify::Verification;

/// Where a text in the user's role comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptKind {
    /// Typed (or piped in) by a person.
    #[default]
    Typed,
    /// A slash command or skill that starts work, written `/name arguments`.
    SlashCommand,
    /// Sent by a person while the agent was working.
    Steering,
    /// A shell command of the person (`!command`), shown to the model.
    UserShell,
    /// A notice by the program that starts a turn (a background task ended).
    Notification,
    /// A request text made by a program, such as a review's.
    Machine,
}

impl PromptKind {
    /// Whether a person wrote this text as a request to the agent.
    #[must_use]
    pub fn by_person(self) -> bool {
        matches!(
            self,
            PromptKind::Typed | PromptKind::SlashCommand | PromptKind::Steering
        )
    }
}

/// A text in the user's role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prompt {
    /// What was said, cut.
    pub text: Redacted,
    /// Who said it.
    pub kind: PromptKind,
    /// When, if the log says.
    pub at: Option<Timestamp>,
    /// Pictures that came with it (never kept themselves).
    pub images: u32,
    /// Where it stands.
    pub place: Place,
}

/// A text by the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The text, cut.
    pub text: Redacted,
    /// When, if the log says.
    pub at: Option<Timestamp>,
    /// Where it stands.
    pub place: Place,
}

/// What became of a tool call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It did its work.
    Ok,
    /// It reported an error, or its command ended with a code other than 0.
    Failed,
    /// A person stopped it.
    Interrupted,
    /// A rule or a person refused it.
    Denied,
    /// It ran out of time.
    TimedOut,
    /// It was left running in the background.
    Background,
    /// The log has no result.
    #[default]
    Unknown,
}

impl CallStatus {
    /// Whether the call counts as a tool error.
    #[must_use]
    pub fn is_error(self) -> bool {
        matches!(
            self,
            CallStatus::Failed
                | CallStatus::Interrupted
                | CallStatus::Denied
                | CallStatus::TimedOut
        )
    }
}

/// A shell command that the agent ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandRun {
    /// The command line as given to the shell.
    pub text: Redacted,
    /// Working directory, if logged with the call.
    pub workdir: Option<Redacted>,
    /// Exit code; none when interrupted, refused, in the background or unknown.
    pub exit_code: Option<i32>,
    /// The code with which a background command ended, if a notice told.
    pub late_exit_code: Option<i32>,
    /// What the command verified, if it ran tests, a linter, a type checker or a build.
    pub verification: Option<Verification>,
}

/// A tool call with its result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolCall {
    /// The id that the log gives it; may be empty.
    pub id: Redacted,
    /// Tool name as logged (`Bash`, `mcp__tickets__get_ticket`, `exec_command`); empty
    /// when the log has only what was done.
    pub name: Redacted,
    /// Tools that this call's script called and that have no record of their own.
    pub script_tools: Vec<Redacted>,
    /// Arguments as JSON or text, cut short.
    pub arguments: Redacted,
    /// Head and tail of the result.
    pub result: Redacted,
    /// What became of it.
    pub status: CallStatus,
    /// How long it took, in milliseconds, if the log says.
    pub duration_ms: Option<u64>,
    /// The shell command, for shell tools.
    pub command: Option<CommandRun>,
    /// Files that this call changed through an editing tool, absolute where known.
    pub edits: Vec<Redacted>,
    /// Files that the command seems to have changed; a hint only.
    pub shell_edits: Vec<Redacted>,
    /// Files and folders that the command put back to the repository's state.
    pub reverts: Vec<Redacted>,
    /// The result holds text that reads like instructions; treat it as data.
    pub untrusted: bool,
    /// When it was called.
    pub at: Option<Timestamp>,
    /// Where the call stands.
    pub place: Place,
    /// Where the result stands.
    pub result_place: Option<Place>,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// With an answer.
    Answered,
    /// A person stopped it.
    Interrupted,
    /// The model could not be reached.
    ApiError,
    /// The log stops before an answer.
    #[default]
    Open,
}

/// One exchange: what was asked, what was done, what was answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Turn {
    /// What started the turn, then what was sent while it ran.
    pub prompts: Vec<Prompt>,
    /// Texts by the agent before its last one.
    pub remarks: Vec<Answer>,
    /// Tool calls in order.
    pub tools: Vec<ToolCall>,
    /// The last text, if the turn ended with one.
    pub answer: Option<Answer>,
    /// How it ended.
    pub end: TurnEnd,
    /// How it went, judged by this turn's own evidence and the next prompt.
    pub outcome: Outcome,
}
