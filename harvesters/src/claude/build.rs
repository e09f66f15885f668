//! From the rows of a file to a session.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::assemble::{Assembler, CallResult, Spot};
use crate::noise;
use crate::redact::{Door, Redacted};
use crate::session::{
    Agent, CallStatus, CommandRun, IncidentKind, Origin, Place, PromptKind, Session, SkillTrigger,
    ToolCall, Usage,
};

use super::background::Background;
use super::family::Related;
use super::history::History;
use super::results::RawResult;
use super::row::{Block, Message, MessageUsage, RawCall, Row, RowKind};
use super::thread;
use super::transcript::Transcript;
use super::user::{SUMMARY, tagged};

/// Builds the session of a file.
pub(super) fn session(
    related: Related,
    sub_agents: &HashMap<String, Vec<String>>,
    typed: Option<&History>,
    door: Door<'_>,
) -> Session {
    let alive = thread::live(&related.transcript);
    let mut builder = Builder {
        assembler: Assembler::new(door),
        inherited: &related.inherited,
        seen_calls: HashSet::new(),
        edited_paths: HashMap::new(),
        agents_started: 0,
        at_boundary: false,
        background: Background::default(),
    };
    let rows: Vec<(&Row, bool)> = related
        .transcript
        .rows
        .iter()
        .zip(alive)
        .filter(|(row, _)| !row.sidechain)
        .collect();
    for (index, (row, alive)) in rows.iter().enumerate() {
        builder.take(row, *alive, &rows[index + 1..]);
    }
    let agents_started = builder.agents_started;
    let usage = usage_of(&related);
    let Related {
        transcript,
        forked_from,
        superseded,
        ..
    } = &related;
    let mut session = builder.assembler;
    describe(&mut session.session, transcript, door);
    let facts = &mut session.session;
    facts.usage = usage;
    facts.forked_from = forked_from
        .as_ref()
        .and_then(|path| path.file_stem())
        .map(|stem| door.id(&stem.to_string_lossy()));
    facts.superseded_files = superseded
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    let sub_agent_files = sub_agents.get(&transcript.id());
    facts.sub_agent_files = sub_agent_files.cloned().unwrap_or_default();
    // Files below the session are one an agent; those beside it are mostly warm-ups.
    let own_folder = facts
        .sub_agent_files
        .iter()
        .filter(|path| path.contains("/subagents/") || path.contains("\\subagents\\"))
        .count();
    facts.sub_agents = agents_started.max(u32::try_from(own_folder).unwrap_or(u32::MAX));
    let mut session = session.finish();
    session.origin = origin_of(&session, transcript, typed);
    session.resumes = resumes_of(&session, superseded.len());
    session
}

/// Circumstances of the session.
fn describe(session: &mut Session, transcript: &Transcript, door: Door<'_>) {
    session.agent = Agent::Claude;
    session.id = door.note(&transcript.id());
    session.agent_version.clone_from(&transcript.version);
    session.project.clone_from(&transcript.project);
    session.title.clone_from(&transcript.title);
    session.cost_usd = transcript.cost_usd;
    session.files = vec![transcript.path.to_string_lossy().into_owned()];
    // "HEAD" stands for no branch: detached or no repository.
    session.git.branch = transcript.branch.clone().filter(|branch| branch != "HEAD");
    let times = transcript
        .rows
        .iter()
        .filter(|row| !row.sidechain && is_conversation(&row.kind))
        .filter_map(|row| row.at);
    session.started = times.clone().min();
    session.ended = times.max();
}

/// Rows that stand for `user` and `assistant` records.
fn is_conversation(kind: &RowKind) -> bool {
    !matches!(
        kind,
        RowKind::Compacted(_)
            | RowKind::ApiError(_)
            | RowKind::Instructions(_)
            | RowKind::Hook(_)
            | RowKind::Link
            | RowKind::Notice { wakes: false, .. }
            | RowKind::Prompt {
                kind: PromptKind::Steering,
                ..
            }
    )
}

/// Who started the session. Old releases do not say; then only the history of what was
/// typed tells.
fn origin_of(session: &Session, transcript: &Transcript, typed: Option<&History>) -> Origin {
    let first = session.turns.iter().flat_map(|turn| &turn.prompts).next();
    if first.is_some_and(|prompt| noise::is_program_prompt(&prompt.text)) {
        return Origin::Machine;
    }
    match transcript.entrypoint.as_deref() {
        Some(entry) if entry.starts_with("sdk") || entry == "print" => Origin::Headless,
        Some(_) => Origin::Interactive,
        None => match typed {
            Some(typed) if typed.knows(session, transcript.session_id.as_deref()) => {
                Origin::Interactive
            }
            Some(_) => Origin::Headless,
            None => Origin::Unknown,
        },
    }
}

/// A headless run takes one prompt: each further one was another run.
fn resumes_of(session: &Session, superseded: usize) -> u32 {
    let own = session
        .prompts()
        .filter(|prompt| prompt.kind != PromptKind::Steering)
        .count();
    let count = if session.origin == Origin::Headless {
        own.saturating_sub(1).max(superseded)
    } else {
        superseded
    };
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Tokens by message: repeated records of a message repeat its usage, the last counts.
fn usage_of(related: &Related) -> Option<Usage> {
    let mut by_message: HashMap<u64, MessageUsage> = HashMap::new();
    let mut nameless: Vec<MessageUsage> = Vec::new();
    for row in related.transcript.rows.iter().filter(|row| !row.sidechain) {
        let RowKind::Assistant(message) = &row.kind else {
            continue;
        };
        if is_inherited(row, &related.inherited) {
            continue;
        }
        match (message.id, message.usage) {
            (Some(id), Some(usage)) => {
                by_message.insert(id, usage);
            }
            (None, Some(usage)) => nameless.push(usage),
            _ => {}
        }
    }
    let mut total: Option<Usage> = None;
    for usage in by_message.values().chain(&nameless) {
        let sum = total.get_or_insert_default();
        sum.input = sum.input.saturating_add(usage.input);
        sum.output = sum.output.saturating_add(usage.output);
        sum.cache_read = sum.cache_read.saturating_add(usage.cache_read);
        sum.cache_creation = sum.cache_creation.saturating_add(usage.cache_creation);
        sum.approximate |= usage.unfinished;
    }
    total
}

/// The next record that counts.
fn next_of<'r>(following: &[(&'r Row, bool)]) -> Option<&'r RowKind> {
    following
        .iter()
        .filter(|(_, alive)| *alive)
        .map(|(row, _)| &row.kind)
        .find(|kind| {
            !matches!(
                kind,
                RowKind::Link | RowKind::Hook(_) | RowKind::Instructions(_)
            )
        })
}

/// Whether the model speaks next.
fn is_answered(following: &[(&Row, bool)]) -> bool {
    matches!(next_of(following), Some(RowKind::Assistant(_)))
}

/// Whether an older file has this record.
fn is_inherited(row: &Row, inherited: &HashSet<u64>) -> bool {
    row.ids().any(|id| inherited.contains(&id))
}

/// Tells the assembler what happened, row by row.
struct Builder<'a> {
    assembler: Assembler<'a>,
    inherited: &'a HashSet<u64>,
    /// Calls by id and tool: streamed copies repeat both.
    seen_calls: HashSet<(Redacted, Redacted)>,
    /// The file that each editing call is to change.
    edited_paths: HashMap<Redacted, Redacted>,
    agents_started: u32,
    /// The record before was a compaction's mark, which the summary follows.
    at_boundary: bool,
    background: Background,
}

impl Builder<'_> {
    fn take(&mut self, row: &Row, alive: bool, following: &[(&Row, bool)]) {
        let spot = Spot {
            place: Place {
                file: 0,
                offset: row.offset,
            },
            at: row.at,
        };
        if !alive {
            return self.take_dead(row, spot);
        }
        let inherited = is_inherited(row, self.inherited);
        // Records without an id of their own follow what is around them.
        if row.id.is_some() {
            self.assembler.set_inherited(inherited);
        }
        match &row.kind {
            RowKind::Prompt { text, kind, images } => {
                // A command that the program did not know went to the model as it was typed.
                // Copies without ids may have lost what was between the two.
                let asked = row.id.is_some()
                    && text.starts_with('/')
                    && noise::kind_of(text) == Some("command")
                    && is_answered(following);
                let kind = match kind {
                    PromptKind::Typed if asked => PromptKind::SlashCommand,
                    kind => *kind,
                };
                self.assembler
                    .prompt(text.clone(), kind, *images, spot, None)
            }
            RowKind::SlashCommand { name, arguments } => {
                self.slash_command(name, arguments, spot, following)
            }
            RowKind::Notice { text, wakes } => self.notice(text, *wakes, spot),
            RowKind::Machine { kind, text, .. } => {
                if *kind == SUMMARY && !std::mem::take(&mut self.at_boundary) {
                    // Old releases wrote no mark.
                    self.assembler
                        .incident(IncidentKind::Compaction, &Redacted::EMPTY, spot);
                }
                self.assembler
                    .machine_text(Redacted::own(kind), text, spot.place)
            }
            RowKind::Hook(text) => {
                self.assembler
                    .machine_text(Redacted::own("hook"), text, spot.place)
            }
            RowKind::Instructions(paths) => {
                for path in paths {
                    self.assembler.instruction_file(path);
                }
            }
            RowKind::Results(results) => {
                for result in results {
                    self.result(result, spot, following);
                }
            }
            RowKind::Interrupted(text) => self.assembler.interrupted(text, spot),
            RowKind::Assistant(message) => self.message(message, spot, inherited),
            RowKind::Compacted(trigger) => {
                self.at_boundary = true;
                self.assembler
                    .incident(IncidentKind::Compaction, trigger, spot)
            }
            RowKind::ApiError(text) => self.assembler.incident(IncidentKind::ApiError, text, spot),
            RowKind::CommandOutput | RowKind::Link => {}
        }
    }

    /// Of a dead branch only the prompts matter: they are weak complaints.
    fn take_dead(&mut self, row: &Row, spot: Spot) {
        if is_inherited(row, self.inherited) {
            return;
        }
        if let RowKind::Prompt { text, kind, images } = &row.kind
            && kind.by_person()
        {
            self.assembler
                .dead_prompt(text.clone(), *kind, *images, spot);
        }
        if let RowKind::SlashCommand { name, arguments } = &row.kind {
            let text = self.assembler.door.prompt(&format!("/{name} {arguments}"));
            self.assembler
                .dead_prompt(text, PromptKind::SlashCommand, 0, spot);
        }
    }

    /// A slash command is a prompt if work follows: its body, or an answer.
    fn slash_command(
        &mut self,
        name: &Redacted,
        arguments: &Redacted,
        spot: Spot,
        following: &[(&Row, bool)],
    ) {
        let works = matches!(
            next_of(following),
            Some(RowKind::Machine { expands: true, .. })
        ) || is_answered(following);
        if works {
            let text = self.assembler.door.prompt(&format!("/{name} {arguments}"));
            self.assembler
                .prompt(text, PromptKind::SlashCommand, 0, spot, None);
            self.assembler
                .skill(name, SkillTrigger::Command, spot.place);
        }
    }

    /// A notice tells how a background command ended; one that wakes starts a turn.
    fn notice(&mut self, text: &Redacted, wakes: bool, spot: Spot) {
        static EXIT: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"exit code:? (-?\d{1,10})\b").ok());
        let code = EXIT
            .as_ref()
            .and_then(|pattern| pattern.captures(text)?.get(1)?.as_str().parse().ok());
        let id = text.part(|text| tagged(text, "tool-use-id").unwrap_or_default());
        let command = self
            .assembler
            .call_mut(&id)
            .and_then(|call| call.command.as_mut());
        if let Some(command) = command {
            command.late_exit_code = code;
        }
        if wakes {
            self.assembler
                .prompt(text.clone(), PromptKind::Notification, 0, spot, None);
        }
        self.assembler
            .machine_text(Redacted::own("notification"), text, spot.place);
    }

    fn result(&mut self, raw: &RawResult, spot: Spot, following: &[(&Row, bool)]) {
        // A call that the person refused by stopping the agent was interrupted.
        const NEAR: usize = 6;
        let stopped = following
            .iter()
            .take(NEAR)
            .any(|(row, _)| matches!(row.kind, RowKind::Interrupted(_)));
        let status = if raw.rejected && stopped {
            CallStatus::Interrupted
        } else {
            raw.status
        };
        if status == CallStatus::Denied {
            self.assembler
                .incident(IncidentKind::Denial, &raw.output, spot);
        }
        let call = self.assembler.call_mut(&raw.id);
        let is_command = call.as_ref().is_some_and(|call| call.command.is_some());
        let ended = call.and_then(|call| self.background.ended(&call.arguments, &raw.output));
        if let Some((started, code)) = ended
            && let Some(command) = self
                .assembler
                .call_mut(started)
                .and_then(|call| call.command.as_mut())
        {
            command.late_exit_code = Some(code);
        }
        if status == CallStatus::Background {
            self.background.started(&raw.id, &raw.output);
        }
        // Success is not written down: no code and no error is 0.
        let exit_code = match status {
            CallStatus::Ok if is_command => Some(0),
            _ => raw.exit_code,
        };
        let edits = self
            .edited_paths
            .get(&raw.id)
            .map(|asked| raw.path.clone().unwrap_or_else(|| asked.clone()))
            .into_iter()
            .collect();
        let result = CallResult {
            output: raw.output.clone(),
            status,
            exit_code,
            duration_ms: raw.duration_ms,
            edits,
        };
        self.assembler.result(&raw.id, result, spot.place);
    }

    fn message(&mut self, message: &Message, spot: Spot, inherited: bool) {
        if let Some(error) = &message.error {
            return self.assembler.failed(error, spot);
        }
        if let Some(skill) = &message.skill {
            self.assembler.skill(skill, SkillTrigger::Tool, spot.place);
        }
        if let Some(model) = &message.model
            && !inherited
        {
            self.assembler.model(model);
        }
        // Texts beside each other in one message are one answer.
        for blocks in message
            .blocks
            .chunk_by(|one, other| one.is_text() && other.is_text())
        {
            match blocks {
                [Block::Text(text)] => self.assembler.text(text.clone(), false, spot),
                [Block::Call(call)] => self.call(call, spot, inherited),
                texts => {
                    let texts: Vec<&Redacted> = texts.iter().filter_map(Block::text).collect();
                    self.assembler
                        .text(Redacted::joined(&texts, "\n"), false, spot);
                }
            }
        }
    }

    fn call(&mut self, raw: &RawCall, spot: Spot, inherited: bool) {
        if let Some(skill) = &raw.skill {
            self.assembler.skill(skill, SkillTrigger::Tool, spot.place);
        }
        let call = (raw.id.clone(), raw.name.clone());
        if !raw.id.is_empty() && !self.seen_calls.insert(call) {
            return;
        }
        if let Some(path) = &raw.path {
            self.edited_paths.insert(raw.id.clone(), path.clone());
        }
        if matches!(raw.name.as_str(), "Task" | "Agent") && !inherited {
            self.agents_started += 1;
        }
        let call = ToolCall {
            id: raw.id.clone(),
            name: raw.name.clone(),
            arguments: raw.arguments.clone(),
            command: raw.command.as_ref().map(|text| CommandRun {
                text: text.clone(),
                ..CommandRun::default()
            }),
            at: spot.at,
            place: spot.place,
            ..ToolCall::default()
        };
        self.assembler.call(call, None);
    }
}
