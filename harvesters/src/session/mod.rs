//! A session: one conversation with a coding agent, with the evidence in it.
//!
//! The same type for every agent. Readers fill it through [`crate::assemble`];
//! mining reads it through the accessors at the bottom. All text of a log in a [`Session`],
//! ids and names too, is [`Redacted`], cut to the sizes of [`crate::TextLimits`]. A plain
//! `String` is a path of a log file, which was found in a folder and not in a log.
//!
//! A session is a list of turns. A turn starts with what a person (or a program)
//! said, holds the tool calls and texts that followed, and ends with an answer, an
//! interruption, an error, or not at all. Only the branch that is alive at the end
//! is in `turns`; prompts on branches that the person rewound are in `dead_prompts`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

mod origin;
mod outcome;
mod turn;

pub use origin::{Agent, Origin};
pub use outcome::{Outcome, Signal, SignalKind, Verdict};
pub use turn::{Answer, CallStatus, CommandRun, Prompt, PromptKind, ToolCall, Turn, TurnEnd};

use crate::feedback::Polarity;
use crate::redact::Redacted;
use crate::verify::Verification;

/// Where in the logs a fact stands.
///
/// `file` indexes [`Session::files`]; `offset` is the byte at which the line starts,
/// in the unpacked stream for packed files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Place {
    /// Index into [`Session::files`].
    pub file: u32,
    /// Byte offset of the line (or 0 for stores without lines).
    pub offset: u64,
}

/// A prompt that judges what the agent did before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Feedback {
    /// Index into [`Session::prompts`].
    pub prompt_index: usize,
    /// Index into [`Session::turns`] of the turn that is judged.
    pub about_turn: usize,
    /// Good or bad.
    pub polarity: Polarity,
    /// The prompt's text.
    pub text: Redacted,
    /// Where it stands.
    pub place: Place,
}

/// What a skill use was seen by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillTrigger {
    /// The agent called the skill tool.
    #[default]
    Tool,
    /// A slash command or `$name` by the person.
    Command,
    /// The agent read the skill's file.
    FileRead,
}

/// A skill that was used (not merely offered).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkillUse {
    /// Skill name as logged, without slash.
    pub name: Redacted,
    /// What it was seen by first.
    pub trigger: SkillTrigger,
    /// Where it stands.
    pub place: Place,
}

/// A model and how many of its messages are in the main conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelUse {
    /// Model name as logged.
    pub name: Redacted,
    /// Number of messages or turns by it.
    pub messages: u32,
}

/// Tokens over all model calls of the main conversation, each counted once
/// (session-logs.md, sections 2.5 and 3.6). Dead branches count, inherited history
/// and sub-agents do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input that was not cached.
    pub input: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the cache.
    pub cache_creation: u64,
    /// Some numbers are placeholders of unfinished streams.
    pub approximate: bool,
}

/// Kinds of incidents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncidentKind {
    /// A person stopped the agent.
    #[default]
    Interruption,
    /// A tool was refused.
    Denial,
    /// The model could not be reached, or refused.
    ApiError,
    /// The conversation was summarised to save context.
    Compaction,
}

/// Something that happened to a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Incident {
    /// What happened.
    pub kind: IncidentKind,
    /// The message, if any, cut short.
    pub detail: Redacted,
    /// When.
    pub at: Option<Timestamp>,
    /// Where it stands.
    pub place: Place,
}

/// Texts by programs in the conversation that a person did not write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineText {
    /// `hook`, `reminder`, `summary`, `skill_body`, `notification`, ...
    pub kind: Redacted,
    /// The text, cut short.
    pub text: Redacted,
    /// Where it stands.
    pub place: Place,
}

/// State of the repository at the start, as logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GitState {
    /// Branch name; none when detached or outside a repository.
    pub branch: Option<Redacted>,
    /// Full commit id, where the agent logs one.
    pub commit: Option<Redacted>,
    /// Remote address without user information.
    pub repository: Option<Redacted>,
}

/// The version of the serialised form.
pub const SESSION_FORMAT: u32 = 1;

/// One conversation with a coding agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Session {
    /// Version of this form, see [`SESSION_FORMAT`].
    pub format: u32,
    /// The id that the log knows the session by.
    pub id: Redacted,
    /// Whose log it is.
    pub agent: Agent,
    /// Version of the agent at the start.
    pub agent_version: Option<Redacted>,
    /// Who started it.
    pub origin: Origin,
    /// A title, if the agent made one.
    pub title: Option<Redacted>,
    /// Working directory at the start, as logged.
    pub project: Option<Redacted>,
    /// Working directories that the agent changed to later, where the log says.
    pub later_folders: Vec<Redacted>,
    /// Repository state at the start, as logged.
    pub git: GitState,
    /// First time of the conversation.
    pub started: Option<Timestamp>,
    /// Last time of the conversation.
    pub ended: Option<Timestamp>,
    /// When its file was last written, where the log has no times.
    pub written: Option<Timestamp>,
    /// Files of the conversation, in order. [`Place::file`] points here. Their paths are
    /// those by which they were found, so that they can be opened again: not redacted.
    pub files: Vec<String>,
    /// Files of its sub-agents; paths like those of `files`.
    pub sub_agent_files: Vec<String>,
    /// Earlier files that this session repeats whole; paths like those of `files`.
    pub superseded_files: Vec<String>,
    /// The session was moved to the agent's archive.
    pub archived: bool,
    /// The session that this one was forked from.
    pub forked_from: Option<Redacted>,
    /// Turns of the live branch, own ones only.
    pub turns: Vec<Turn>,
    /// Prompts on branches that the person rewound.
    pub dead_prompts: Vec<Prompt>,
    /// Prompts that belong to the session that this one was forked from.
    pub inherited_prompts: Vec<Prompt>,
    /// Texts that look like prompts and are none.
    pub machine_texts: Vec<MachineText>,
    /// Prompts that judge the work before them.
    pub feedback: Vec<Feedback>,
    /// Skills used.
    pub skills: Vec<SkillUse>,
    /// Instruction files in force (`CLAUDE.md`, `AGENTS.md`).
    pub instruction_files: Vec<Redacted>,
    /// Models that answered.
    pub models: Vec<ModelUse>,
    /// Tokens; none when the log has none.
    pub usage: Option<Usage>,
    /// Cost in US dollars, where the agent logs it.
    pub cost_usd: Option<f64>,
    /// Interruptions, refusals, API errors, compactions.
    pub incidents: Vec<Incident>,
    /// Sub-agents started.
    pub sub_agents: u32,
    /// Times that the conversation was taken up again.
    pub resumes: u32,
    /// How the session went.
    pub outcome: Outcome,
}

impl Session {
    /// When something happened in it last, as far as is known.
    #[must_use]
    pub fn last_active(&self) -> Option<Timestamp> {
        self.ended.or(self.written)
    }

    /// What a person asked for on the live branch, in order.
    pub fn prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.turns
            .iter()
            .flat_map(|turn| &turn.prompts)
            .filter(|prompt| prompt.kind.by_person())
    }

    /// The last text of each turn that ended in an answer.
    pub fn finals(&self) -> impl Iterator<Item = &Answer> {
        self.turns.iter().filter_map(|turn| turn.answer.as_ref())
    }

    /// The last answer of the session.
    #[must_use]
    pub fn final_answer(&self) -> Option<&Answer> {
        self.finals().last()
    }

    /// Prompts that judge the work before them.
    #[must_use]
    pub fn feedback(&self) -> &[Feedback] {
        &self.feedback
    }

    /// All tool calls of the live branch, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.turns.iter().flat_map(|turn| &turn.tools)
    }

    /// Names of the tools that were called, in order of first use. Calls whose tool the
    /// log does not name are left out.
    #[must_use]
    pub fn tools(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for call in self.calls() {
            for name in std::iter::once(&call.name).chain(&call.script_tools) {
                if !name.is_empty() && !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// Shell commands, in order.
    pub fn commands(&self) -> impl Iterator<Item = (&ToolCall, &CommandRun)> {
        self.calls()
            .filter_map(|call| call.command.as_ref().map(|command| (call, command)))
    }

    /// Tests, linters, type checkers and builds that were run, in order.
    pub fn verifications(&self) -> impl Iterator<Item = (&CommandRun, &Verification)> {
        self.commands()
            .filter_map(|(_, run)| run.verification.as_ref().map(|found| (run, found)))
    }

    /// Number of calls that failed, were refused or were interrupted.
    #[must_use]
    pub fn tool_errors(&self) -> usize {
        self.calls().filter(|call| call.status.is_error()).count()
    }

    /// Files changed through editing tools, in order of first change. Files that a
    /// later command put back to the repository's state are not among them.
    #[must_use]
    pub fn files_edited(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = Vec::new();
        for call in self.calls() {
            for path in &call.edits {
                if !paths.contains(&path.as_str()) {
                    paths.push(path);
                }
            }
            paths.retain(|path| !call.reverts.iter().any(|back| is_within(path, back)));
        }
        paths
    }

    /// Names of the skills used, in order of first use.
    #[must_use]
    pub fn skills(&self) -> Vec<&str> {
        self.skills
            .iter()
            .map(|skill| skill.name.as_str())
            .collect()
    }

    /// How often an incident of this kind happened.
    #[must_use]
    pub fn count(&self, kind: IncidentKind) -> usize {
        self.incidents
            .iter()
            .filter(|incident| incident.kind == kind)
            .count()
    }

    /// The model with most messages.
    #[must_use]
    pub fn main_model(&self) -> Option<&str> {
        let most = self.models.iter().map(|model| model.messages).max()?;
        self.models
            .iter()
            .find(|model| model.messages == most)
            .map(|model| model.name.as_str())
    }

    /// Whether mining should look at it: a person's session in which something was
    /// asked (session-logs.md, section 11). Sub-agents never become sessions.
    #[must_use]
    pub fn is_minable(&self) -> bool {
        self.origin != Origin::Machine && self.turns.iter().any(|turn| !turn.prompts.is_empty())
    }

    /// The file and byte offset of a place, for quoting the source.
    #[must_use]
    pub fn locate(&self, place: Place) -> Option<(&str, u64)> {
        let file = usize::try_from(place.file).ok()?;
        self.files
            .get(file)
            .map(|path| (path.as_str(), place.offset))
    }
}

/// Whether a path is a file or lies in a folder, by spelling.
fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
