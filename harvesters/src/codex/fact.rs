//! What a line of a rollout says, whichever format it is in.

use jiff::Timestamp;

use crate::redact::Redacted;
use crate::session::CallStatus;

use super::call::{RawCall, RawOutput};

/// How a line was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// The item itself.
    Bare,
    /// `{timestamp, type, payload}`.
    Legacy,
    /// The same with an ordinal.
    Paginated,
}

/// A line reduced to what matters.
pub(super) struct Line {
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) at: Option<Timestamp>,
    pub(super) format: Format,
    pub(super) ordinal: Option<u64>,
    /// The id of its turn, by which lines are put together.
    pub(super) turn: Option<String>,
    /// Hash of the payload, to recognise copies in forks; 0 where nobody will ask.
    pub(super) payload: u64,
    pub(super) facts: Vec<Fact>,
}

/// What a line says. A prompt or answer is said up to three times: by an item, by an
/// event, and by the message that the model saw.
pub(super) enum Fact {
    Meta(Box<Meta>),
    Turn {
        model: Option<Redacted>,
        cwd: Option<Redacted>,
    },
    Cwd(Redacted),
    Instructions(Redacted),
    /// `thread` is the thread that the prompt was said in, where the log says.
    Prompt {
        text: Redacted,
        images: u32,
        by: Teller,
        thread: Option<Redacted>,
    },
    Answer {
        text: Redacted,
        interim: bool,
        by: Teller,
    },
    Machine {
        kind: &'static str,
        text: Redacted,
    },
    Skill(Redacted),
    Call(Box<RawCall>),
    Output(Box<RawOutput>),
    Command(Box<CommandItem>),
    Edit {
        id: Redacted,
        /// As logged: relative ones need the folder.
        paths: Vec<String>,
        ok: bool,
    },
    Tool {
        id: Redacted,
        name: Redacted,
        arguments: Redacted,
        output: Redacted,
        ok: bool,
    },
    AgentStarted,
    ReviewStarted,
    ReviewEnded,
    TurnStarted,
    TurnEnded {
        error: Option<Redacted>,
    },
    TurnAborted {
        interrupted: bool,
    },
    RolledBack(usize),
    Compacted(CompactedBy),
    ApiError(Redacted),
    Usage {
        response: String,
        usage: Tokens,
    },
    Count {
        total: Option<Tokens>,
        last: Option<Tokens>,
    },
}

impl Fact {
    /// The call of which an item tells everything: a later output says nothing new. The item
    /// of a quick command may lack what it printed.
    pub(super) fn settles(&self) -> Option<&Redacted> {
        match self {
            Fact::Command(item) if !item.by_user && !item.output.is_empty() => Some(&item.id),
            Fact::Edit { id, .. } | Fact::Tool { id, .. } => Some(id),
            _ => None,
        }
        .filter(|id| !id.is_empty())
    }
}

/// Who tells of a prompt or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Teller {
    Item,
    Event,
    Message,
}

/// Who tells of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompactedBy {
    Line,
    Item,
    Event,
}

/// The head of a file.
#[derive(Default)]
pub(super) struct Meta {
    pub(super) id: Option<Redacted>,
    pub(super) started: Option<Timestamp>,
    pub(super) cwd: Option<Redacted>,
    pub(super) source: Option<Redacted>,
    pub(super) version: Option<Redacted>,
    pub(super) branch: Option<Redacted>,
    pub(super) commit: Option<Redacted>,
    pub(super) repository: Option<Redacted>,
    pub(super) forked_from: Option<Redacted>,
    /// The thread whose history is continued, and the ordinal at which it is left.
    pub(super) base: Option<(String, u64)>,
}

/// A command that was run, as an item tells it.
pub(super) struct CommandItem {
    pub(super) id: Redacted,
    pub(super) command: Redacted,
    pub(super) workdir: Option<Redacted>,
    pub(super) output: Redacted,
    pub(super) status: CallStatus,
    pub(super) exit_code: Option<i32>,
    pub(super) duration_ms: Option<u64>,
    pub(super) by_user: bool,
}

/// Tokens of a call, as logged: input includes what was cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) cached: u64,
    pub(super) written: u64,
    pub(super) output: u64,
}
