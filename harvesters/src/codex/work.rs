//! The work of a thread: calls, their outputs, and the items that tell of the same
//! commands and edits again (session-logs.md, section 3.5).

use std::collections::{HashMap, HashSet};

use crate::assemble::{Assembler, CallResult, Spot, started_call};
use crate::redact::Redacted;
use crate::session::{CallStatus, CommandRun, IncidentKind, ToolCall};

use super::call::{RawCall, RawOutput};
use super::fact::{CommandItem, Fact};

use super::script;
use super::thread::Marked;

/// Most folders of a thread that are kept.
const MOST_FOLDERS: usize = 50;

/// Keeps track of calls while a thread is told.
pub(super) struct Work {
    /// The log has items for commands; then scripts need not be read for them.
    has_command_items: bool,
    /// The log tells of edits apart from calls.
    has_edit_records: bool,
    folder: Option<Redacted>,
    first_folder: Option<Redacted>,
    later_folders: Vec<Redacted>,
    /// Files that a call's patch is to change.
    patches: HashMap<Redacted, Vec<Redacted>>,
    /// Calls whose result an item told already.
    settled: HashSet<Redacted>,
    /// Literal commands of a script, in its order.
    script_order: HashMap<Redacted, Vec<Redacted>>,
    /// Commands that had not ended with their script.
    going_on: HashMap<Redacted, Redacted>,
    /// Literal commands of a script: calls made up for them.
    script_commands: HashMap<Redacted, Vec<Redacted>>,
    /// Commands that go on, by the id that later input is sent to.
    running: HashMap<String, Redacted>,
    writes: HashMap<Redacted, String>,
    /// Scripts that were stopped, by turn: the stopped command itself may follow.
    stopped_scripts: HashMap<String, Redacted>,
    agents_spawned: u32,
}

impl Work {
    pub(super) fn new(lines: &[Marked]) -> Work {
        let any = |wanted: fn(&Fact) -> bool| {
            lines
                .iter()
                .any(|marked| marked.line.facts.iter().any(wanted))
        };
        Work {
            has_command_items: any(|fact| matches!(fact, Fact::Command(item) if !item.by_user)),
            has_edit_records: any(|fact| matches!(fact, Fact::Edit { .. })),
            folder: None,
            first_folder: None,
            later_folders: Vec::new(),
            patches: HashMap::new(),
            settled: HashSet::new(),
            script_order: HashMap::new(),
            going_on: HashMap::new(),
            script_commands: HashMap::new(),
            running: HashMap::new(),
            writes: HashMap::new(),
            stopped_scripts: HashMap::new(),
            agents_spawned: 0,
        }
    }

    /// Folders that were entered after the first one.
    pub(super) fn later_folders(&self) -> &[Redacted] {
        &self.later_folders
    }

    /// The first working directory that any record names.
    pub(super) fn first_folder(&self) -> Option<&Redacted> {
        self.first_folder.as_ref()
    }

    /// Sub-agents that calls started.
    pub(super) fn agents_spawned(&self) -> u32 {
        self.agents_spawned
    }

    /// Takes a fact about work; gives one back that is about something else.
    pub(super) fn take(
        &mut self,
        fact: Fact,
        spot: Spot,
        turn: Option<&str>,
        to: &mut Assembler<'_>,
    ) -> Option<Fact> {
        match fact {
            Fact::Meta(meta) => self.enter(meta.cwd.as_ref()),
            Fact::Cwd(cwd) => self.enter(Some(&cwd)),
            Fact::Turn { ref cwd, .. } => {
                self.enter(cwd.as_ref());
                return Some(fact);
            }
            Fact::Call(call) => self.call(*call, spot, turn, to),
            Fact::Output(output) => self.output(*output, spot, turn, to),
            Fact::Command(item) => self.command(*item, spot, turn, to),
            Fact::Edit { id, paths, ok } => self.edit(id, &paths, ok, spot, turn, to),
            Fact::Tool {
                id,
                name,
                arguments,
                output,
                ok,
            } => {
                let call = ToolCall {
                    arguments,
                    ..started_call(id, name, spot)
                };
                let result = CallResult {
                    output,
                    ..plain_result(if ok {
                        CallStatus::Ok
                    } else {
                        CallStatus::Failed
                    })
                };
                self.told(call, result, spot, turn, to);
            }
            other => return Some(other),
        }
        None
    }

    /// Notes the working directory.
    fn enter(&mut self, folder: Option<&Redacted>) {
        if let Some(folder) = folder {
            self.first_folder.get_or_insert_with(|| folder.clone());
            self.folder = Some(folder.clone());
            let known = self.later_folders.iter().any(|one| one == folder);
            if self.first_folder.as_ref() != Some(folder)
                && !known
                && self.later_folders.len() < MOST_FOLDERS
            {
                self.later_folders.push(folder.clone());
            }
        }
    }

    fn call(&mut self, raw: RawCall, spot: Spot, turn: Option<&str>, to: &mut Assembler<'_>) {
        if !raw.id.is_empty() && to.knows_call(&raw.id) {
            return;
        }
        if let Some(folder) = &raw.workdir {
            self.first_folder.get_or_insert_with(|| folder.clone());
        }
        if raw.name == "spawn_agent" {
            self.agents_spawned += 1;
        }
        let folder = raw.workdir.as_deref().or(self.folder.as_deref());
        let from_script = raw.script.is_some();
        let told_apart = from_script && self.has_edit_records;
        if !raw.patched.is_empty() && !told_apart {
            let paths = raw
                .patched
                .iter()
                .map(|path| to.door.path(path, folder))
                .collect();
            self.patches.insert(raw.id.clone(), paths);
        }
        if let Some(running) = raw.writes_to {
            self.writes.insert(raw.id.clone(), running);
        }
        let (tools, commands) = match raw.script {
            Some(script) => (script.tools, Some((raw.id.clone(), script.commands))),
            None => (Vec::new(), None),
        };
        let workdir = raw.workdir;
        to.call(
            ToolCall {
                arguments: raw.arguments,
                script_tools: tools,
                command: raw.command.map(|text| CommandRun {
                    text,
                    workdir,
                    ..CommandRun::default()
                }),
                ..started_call(raw.id, raw.name, spot)
            },
            turn,
        );
        if let Some((id, commands)) = commands {
            self.script_calls(id, commands, spot, turn, to);
        }
    }

    /// The literal commands of a script: where no items will tell of them they become
    /// calls, else only their order is remembered.
    fn script_calls(
        &mut self,
        script: Redacted,
        commands: Vec<Redacted>,
        spot: Spot,
        turn: Option<&str>,
        to: &mut Assembler<'_>,
    ) {
        if self.has_command_items {
            self.script_order.insert(script, commands);
        } else {
            let ids: Vec<Redacted> = (0..commands.len())
                .map(|index| to.door.id(&format!("{script}#{index}")))
                .collect();
            for (id, text) in ids.iter().zip(commands) {
                let command = Some(CommandRun {
                    text,
                    ..CommandRun::default()
                });
                to.call(
                    ToolCall {
                        command,
                        ..started_call(id.clone(), Redacted::own("exec_command"), spot)
                    },
                    turn,
                );
            }
            self.script_commands.insert(script, ids);
        }
    }

    fn output(&mut self, raw: RawOutput, spot: Spot, turn: Option<&str>, to: &mut Assembler<'_>) {
        if self.settled.contains(&raw.id) {
            return to.add_output(&raw.id, raw.output.part(printed_by));
        }
        if raw.status == CallStatus::Denied {
            to.incident(IncidentKind::Denial, &raw.output, spot);
        }
        if let Some(running) = &raw.running {
            let owner = self
                .writes
                .get(&raw.id)
                .and_then(|id| self.running.get(id))
                .unwrap_or(&raw.id)
                .clone();
            self.running.insert(running.clone(), owner);
        }
        self.end_of_running(&raw, spot, to);
        let is_spawn = |call: &mut ToolCall| call.name == "spawn_agent";
        if raw.status == CallStatus::Unknown && to.call_mut(&raw.id).is_some_and(is_spawn) {
            // This release has no agents to start.
            self.agents_spawned = self.agents_spawned.saturating_sub(1);
        }
        let edits = self.patches.remove(&raw.id).unwrap_or_default();
        let status = self.script_output(&raw, spot, turn, to);
        let edits = match raw.status {
            CallStatus::Ok => edits,
            _ => Vec::new(),
        };
        let result = CallResult {
            output: raw.output,
            status,
            exit_code: raw.exit_code,
            duration_ms: raw.duration_ms,
            edits,
        };
        to.result(&raw.id, result, spot.place);
    }

    /// Input to a running command brought its end.
    fn end_of_running(&mut self, raw: &RawOutput, spot: Spot, to: &mut Assembler<'_>) {
        let Some(owner) = self
            .writes
            .get(&raw.id)
            .and_then(|running| self.running.get(running))
            .cloned()
        else {
            return;
        };
        if owner != raw.id && raw.exit_code.is_some() {
            let result = CallResult {
                output: raw.output.clone(),
                exit_code: raw.exit_code,
                duration_ms: raw.duration_ms,
                ..plain_result(raw.status)
            };
            to.result(&owner, result, spot.place);
        }
    }

    /// What the output of a script says about the tools that it called; what became of
    /// the script itself.
    fn script_output(
        &mut self,
        raw: &RawOutput,
        spot: Spot,
        turn: Option<&str>,
        to: &mut Assembler<'_>,
    ) -> CallStatus {
        if let Some(commands) = self.script_order.remove(&raw.id) {
            if commands.len() > 1 {
                to.order_commands(&raw.id, &commands);
            }
            let untold = commands
                .into_iter()
                .filter(|line| !to.has_command_after(&raw.id, line));
            self.going_on
                .extend(untold.map(|line| (line, raw.id.clone())));
        }
        let Some(call) = to.call_mut(&raw.id) else {
            return raw.status;
        };
        if raw.status == CallStatus::Failed {
            call.script_tools.retain(|tool| script::is_built_in(tool));
        }
        let is_script = call.name == "exec" && call.command.is_none();
        if let Some(turn) = turn.filter(|_| is_script && raw.status == CallStatus::Interrupted) {
            self.stopped_scripts.insert(turn.to_owned(), raw.id.clone());
        }
        let Some(commands) = self
            .script_commands
            .remove(&raw.id)
            .filter(|commands| !commands.is_empty())
        else {
            return raw.status;
        };
        // One code a command, in order; otherwise nobody can tell which is whose.
        let codes = (raw.printed.len() == commands.len()).then_some(&raw.printed);
        for (index, id) in commands.iter().enumerate() {
            let exit_code = codes.and_then(|codes| codes.get(index).copied());
            let status = match (raw.status, exit_code) {
                (CallStatus::Interrupted, _) => CallStatus::Interrupted,
                (_, Some(0)) => CallStatus::Ok,
                (_, Some(_)) => CallStatus::Failed,
                (_, None) => CallStatus::Unknown,
            };
            let output = if commands.len() == 1 {
                raw.output.clone()
            } else {
                Redacted::EMPTY
            };
            to.result(
                id,
                CallResult {
                    output,
                    exit_code,
                    ..plain_result(status)
                },
                spot.place,
            );
        }
        match raw.status {
            // The command counts as interrupted, not its script as well.
            CallStatus::Interrupted => CallStatus::Unknown,
            status => status,
        }
    }

    fn command(
        &mut self,
        item: CommandItem,
        spot: Spot,
        turn: Option<&str>,
        to: &mut Assembler<'_>,
    ) {
        if item.by_user {
            return;
        }
        if item.status == CallStatus::Interrupted
            && let Some(script) = turn.and_then(|turn| self.stopped_scripts.get(turn))
            && let Some(call) = to.call_mut(script)
        {
            call.status = CallStatus::Unknown;
        }
        if item.status == CallStatus::Denied {
            to.incident(IncidentKind::Denial, &item.output, spot);
        }
        let edits = self.patches.remove(&item.id).unwrap_or_default();
        let mut call = ToolCall {
            command: Some(CommandRun {
                text: item.command,
                workdir: item.workdir,
                ..CommandRun::default()
            }),
            ..started_call(item.id, Redacted::own("exec_command"), spot)
        };
        // A script's own call that an item tells of under the same id ran this command.
        if let Some(known) = to.call_mut(&call.id)
            && known.command.is_none()
        {
            known.command = call.command.take();
        }
        let result = CallResult {
            output: item.output,
            exit_code: item.exit_code,
            duration_ms: item.duration_ms,
            edits,
            ..plain_result(item.status)
        };
        let script = call
            .command
            .as_ref()
            .and_then(|run| self.going_on.remove(&run.text));
        let id = call.id.clone();
        self.told(call, result, spot, turn, to);
        if let Some(script) = script {
            to.move_to_script(&id, &script);
        }
    }

    fn edit(
        &mut self,
        id: Redacted,
        paths: &[String],
        ok: bool,
        spot: Spot,
        turn: Option<&str>,
        to: &mut Assembler<'_>,
    ) {
        let edits = paths
            .iter()
            .map(|path| to.door.path(path, self.folder.as_deref()))
            .collect();
        let result = CallResult {
            edits,
            ..plain_result(if ok {
                CallStatus::Ok
            } else {
                CallStatus::Failed
            })
        };
        self.told(
            started_call(id, Redacted::own("apply_patch"), spot),
            result,
            spot,
            turn,
            to,
        );
    }

    /// An item told of a call: of a known one the result, else the call as well.
    fn told(
        &mut self,
        call: ToolCall,
        result: CallResult,
        spot: Spot,
        turn: Option<&str>,
        to: &mut Assembler<'_>,
    ) {
        let mut id = call.id.clone();
        if id.is_empty() {
            // Without an id the call cannot be found again: give it one of its own.
            id = to
                .door
                .id(&format!("@{}:{}", spot.place.file, spot.place.offset));
        }
        if !to.knows_call(&id) {
            to.call(
                ToolCall {
                    id: id.clone(),
                    ..call
                },
                turn,
            );
        }
        self.settled.insert(id.clone());
        to.result(&id, result, spot.place);
    }
}

/// What a command printed, without what the program says about it before.
fn printed_by(output: &str) -> &str {
    const HEAD: &str = "\nOutput:\n";
    output.split_once(HEAD).map_or(output, |(_, rest)| rest)
}

fn plain_result(status: CallStatus) -> CallResult {
    CallResult {
        status,
        ..CallResult::default()
    }
}
