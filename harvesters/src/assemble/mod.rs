//! From what a reader saw, in order, to a [`Session`].
//!
//! A reader walks the live branch of a conversation and tells the [`Assembler`] what
//! happened. The assembler groups it into turns, pairs calls with results, judges
//! verifications, feedback and outcome, and is the only way to build a session. It is told
//! [`Redacted`] text, which went through the [`Door`] already: redacting it again would cost
//! as much and find nothing. Ids of calls are redacted like the rest, here and in the
//! results that name them.

mod settle;

use std::collections::HashMap;

use jiff::Timestamp;

use crate::node::Node;
use crate::noise;
use crate::outcome;
use crate::redact::{Door, Redacted};
use crate::session::{
    Answer, CallStatus, CommandRun, Incident, IncidentKind, MachineText, ModelUse, Place, Prompt,
    PromptKind, SESSION_FORMAT, Session, SkillTrigger, SkillUse, ToolCall, Turn, TurnEnd,
};

use settle::{feedback_of, is_empty, note_skill_reads, part_inherited, settle};

/// Where and when something was said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spot {
    pub(crate) place: Place,
    pub(crate) at: Option<Timestamp>,
}

/// The result of a tool call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallResult {
    pub(crate) output: Redacted,
    pub(crate) status: CallStatus,
    pub(crate) exit_code: Option<i32>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) edits: Vec<Redacted>,
}

/// A call of which nothing but its beginning is known.
pub(crate) fn started_call(id: Redacted, name: Redacted, spot: Spot) -> ToolCall {
    ToolCall {
        id,
        name,
        at: spot.at,
        place: spot.place,
        ..ToolCall::default()
    }
}

/// A call with what it was given, through the door; `command` is the line that it runs, for
/// tools that run one.
pub(crate) fn given_call(
    id: &str,
    name: &str,
    arguments: Node<'_>,
    command: Option<&str>,
    door: Door<'_>,
    spot: Spot,
) -> ToolCall {
    ToolCall {
        arguments: door.arguments(arguments),
        command: command.map(|line| CommandRun {
            text: door.command(line),
            ..CommandRun::default()
        }),
        ..started_call(door.id(id), door.note(name), spot)
    }
}

/// The text without white space around it and without the NUL bytes that some stores pad
/// with; what they held apart is redacted once more.
fn plain(text: Redacted, door: Door<'_>) -> Redacted {
    let text = text.trimmed();
    match text.contains('\0') {
        true => door.redactor.redacted(text.replace('\0', "")),
        false => text,
    }
}

/// Builds one session.
pub(crate) struct Assembler<'a> {
    pub(crate) door: Door<'a>,
    /// Facts about the session as a whole, filled in by the reader.
    pub(crate) session: Session,
    turns: Vec<Building>,
    calls: HashMap<Redacted, (usize, usize)>,
    turn_ids: HashMap<String, usize>,
    /// What comes now belongs to the session that this one was forked from.
    inherited: bool,
}

/// A turn that is being built.
#[derive(Default)]
struct Building {
    turn: Turn,
    /// The last text, which is the answer unless something follows.
    pending: Option<(Answer, bool)>,
    inherited: bool,
    closed: bool,
}

impl<'a> Assembler<'a> {
    pub(crate) fn new(door: Door<'a>) -> Self {
        Assembler {
            door,
            session: Session {
                format: SESSION_FORMAT,
                ..Session::default()
            },
            turns: Vec::new(),
            calls: HashMap::new(),
            turn_ids: HashMap::new(),
            inherited: false,
        }
    }

    /// Whether what follows is inherited history.
    pub(crate) fn set_inherited(&mut self, inherited: bool) {
        if inherited != self.inherited {
            self.close_turn();
        }
        self.inherited = inherited;
    }

    /// A prompt that starts a turn (a steering one joins the turn that runs). A text that
    /// only stands where prompts stand starts a turn without one, so that what follows is
    /// not taken for the work on the request before it.
    pub(crate) fn prompt(
        &mut self,
        text: Redacted,
        kind: PromptKind,
        images: u32,
        spot: Spot,
        turn_id: Option<&str>,
    ) {
        if text.trim().is_empty() && images == 0 {
            return;
        }
        if let Some(made) = Self::made_by(&text, kind, images) {
            self.machine_text(Redacted::own(made), &text, spot.place);
            if kind == PromptKind::Typed {
                self.start_turn();
            }
            return;
        }
        let prompt = self.make_prompt(text, kind, images, spot);
        let joins =
            kind == PromptKind::Steering && self.turns.last().is_some_and(|open| !open.closed);
        if !joins {
            self.start_turn();
        }
        if let Some(id) = turn_id {
            let index = self.turns.len() - 1;
            self.turn_ids.entry(id.to_owned()).or_insert(index);
        }
        self.open().turn.prompts.push(prompt);
    }

    /// A prompt on a branch that the person rewound.
    pub(crate) fn dead_prompt(
        &mut self,
        text: Redacted,
        kind: PromptKind,
        images: u32,
        spot: Spot,
    ) {
        if Self::made_by(&text, kind, images).is_some() {
            return;
        }
        let prompt = self.make_prompt(text, kind, images, spot);
        self.session.dead_prompts.push(prompt);
    }

    /// What made a text that only stands where prompts stand.
    fn made_by(text: &str, kind: PromptKind, images: u32) -> Option<&'static str> {
        let is_typed = matches!(kind, PromptKind::Typed | PromptKind::Steering);
        noise::kind_of(text).filter(|_| is_typed && images == 0)
    }

    fn make_prompt(&self, text: Redacted, kind: PromptKind, images: u32, spot: Spot) -> Prompt {
        Prompt {
            text: plain(text, self.door),
            kind,
            at: spot.at,
            images,
            place: spot.place,
        }
    }

    /// A text by the agent. An interim one never is the answer.
    pub(crate) fn text(&mut self, text: Redacted, interim: bool, spot: Spot) {
        if text.trim().is_empty() {
            return;
        }
        let answer = Answer {
            text: plain(text, self.door),
            at: spot.at,
            place: spot.place,
        };
        let open = self.open();
        open.demote();
        open.pending = Some((answer, interim));
    }

    /// A tool call; belongs to the turn of that id, if known, else to the running one.
    pub(crate) fn call(&mut self, call: ToolCall, turn_id: Option<&str>) {
        let known = turn_id.and_then(|id| self.turn_ids.get(id).copied());
        let index = match known {
            Some(index) => index,
            None => {
                self.open();
                self.turns.len() - 1
            }
        };
        let Some(building) = self.turns.get_mut(index) else {
            return;
        };
        if !building.closed {
            building.demote();
        }
        if !call.id.is_empty() {
            self.calls
                .insert(call.id.clone(), (index, building.turn.tools.len()));
        }
        building.turn.tools.push(call);
    }

    /// Whether a call of that id was made.
    pub(crate) fn knows_call(&self, id: &Redacted) -> bool {
        self.calls.contains_key(id)
    }

    /// The call of that id.
    pub(crate) fn call_mut(&mut self, id: &Redacted) -> Option<&mut ToolCall> {
        let (turn, call) = self.calls.get(id).copied()?;
        self.turns.get_mut(turn)?.turn.tools.get_mut(call)
    }

    /// Whether a call of the running turn changed that file.
    pub(crate) fn has_edit(&self, path: &str) -> bool {
        self.turns.last().is_some_and(|open| {
            open.turn
                .tools
                .iter()
                .any(|call| call.edits.iter().any(|known| known == path))
        })
    }

    /// The result of the call of that id.
    pub(crate) fn result(&mut self, id: &Redacted, result: CallResult, place: Place) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        call.result_place = Some(place);
        call.status = result.status;
        if !result.output.is_empty() || call.result.is_empty() {
            call.result = result.output;
        }
        call.duration_ms = result.duration_ms.or(call.duration_ms);
        if result.status == CallStatus::Ok {
            for path in result.edits {
                if !call.edits.contains(&path) {
                    call.edits.push(path);
                }
            }
        } else {
            call.edits.clear();
        }
        if let Some(command) = &mut call.command {
            command.exit_code = result.exit_code;
        }
    }

    /// What a call printed, where its result did not tell.
    pub(crate) fn add_output(&mut self, id: &Redacted, output: Redacted) {
        if let Some(call) = self.call_mut(id).filter(|call| call.result.is_empty()) {
            call.result = output;
        }
    }

    /// Puts the commands that a script started at the same time, and that were written
    /// down as they ended, into the order of the script.
    pub(crate) fn order_commands(&mut self, script: &Redacted, commands: &[Redacted]) {
        let Some((turn, first)) = self.calls.get(script).copied() else {
            return;
        };
        let Some(building) = self.turns.get_mut(turn) else {
            return;
        };
        let position = |call: &ToolCall| {
            let line = &call.command.as_ref()?.text;
            commands.iter().position(|command| command == line)
        };
        let tools = &mut building.turn.tools;
        let slots: Vec<usize> = (first + 1..tools.len())
            .filter(|index| position(&tools[*index]).is_some())
            .collect();
        let mut moved: Vec<ToolCall> = slots
            .iter()
            .map(|index| std::mem::take(&mut tools[*index]))
            .collect();
        moved.sort_by_key(position);
        for (slot, call) in slots.into_iter().zip(moved) {
            self.calls.insert(call.id.clone(), (turn, slot));
            tools[slot] = call;
        }
    }

    /// Whether that command was told of after a call.
    pub(crate) fn has_command_after(&self, call: &Redacted, line: &Redacted) -> bool {
        let Some((turn, at)) = self.calls.get(call).copied() else {
            return false;
        };
        let tools = self.turns.get(turn).map(|open| &open.turn.tools[..]);
        let later = tools
            .and_then(|tools| tools.get(at + 1..))
            .unwrap_or_default();
        later
            .iter()
            .any(|call| call.command.as_ref().is_some_and(|run| run.text == *line))
    }

    /// Puts a command that went on after the script that started it to the script's others.
    pub(crate) fn move_to_script(&mut self, id: &Redacted, script: &Redacted) {
        let (Some((turn, from)), Some((other, at))) =
            (self.calls.get(id).copied(), self.calls.get(script).copied())
        else {
            return;
        };
        let Some(open) = self
            .turns
            .get_mut(turn)
            .filter(|_| turn == other && at < from)
        else {
            return;
        };
        let tools = &mut open.turn.tools;
        let others = tools[at + 1..from]
            .iter()
            .take_while(|call| call.command.is_some());
        let place = at + 1 + others.count();
        tools[place..=from].rotate_right(1);
        for (index, call) in tools.iter().enumerate().take(from + 1).skip(place) {
            self.calls.insert(call.id.clone(), (turn, index));
        }
    }

    /// The person stopped the agent.
    pub(crate) fn interrupted(&mut self, detail: &Redacted, spot: Spot) {
        if let Some(open) = self.turns.last_mut().filter(|open| !open.closed) {
            open.demote();
            open.turn.end = TurnEnd::Interrupted;
        }
        self.incident(IncidentKind::Interruption, detail, spot);
    }

    /// The turn ended because the model could not be reached.
    pub(crate) fn failed(&mut self, detail: &Redacted, spot: Spot) {
        let open = self.open();
        open.demote();
        open.turn.end = TurnEnd::ApiError;
        self.incident(IncidentKind::ApiError, detail, spot);
    }

    /// Something happened. Inherited incidents are the other session's.
    pub(crate) fn incident(&mut self, kind: IncidentKind, detail: &Redacted, spot: Spot) {
        if self.inherited {
            return;
        }
        self.session.incidents.push(Incident {
            kind,
            detail: self.door.shorten(detail),
            at: spot.at,
            place: spot.place,
        });
    }

    /// A text in the conversation that a program made.
    pub(crate) fn machine_text(&mut self, kind: Redacted, text: &Redacted, place: Place) {
        const MOST: usize = 200;
        if self.inherited || text.trim().is_empty() || self.session.machine_texts.len() >= MOST {
            return;
        }
        let text = self.door.shorten(text);
        self.session
            .machine_texts
            .push(MachineText { kind, text, place });
    }

    /// A skill was used.
    pub(crate) fn skill(&mut self, name: &Redacted, trigger: SkillTrigger, place: Place) {
        let plain = name.trim_start_matches('/');
        if self.inherited
            || plain.is_empty()
            || self.session.skills.iter().any(|skill| skill.name == plain)
        {
            return;
        }
        self.session.skills.push(SkillUse {
            name: name.part(|name| name.trim_start_matches('/')),
            trigger,
            place,
        });
    }

    /// An instruction file was in force.
    pub(crate) fn instruction_file(&mut self, path: &Redacted) {
        let known = &mut self.session.instruction_files;
        if !path.is_empty() && !known.iter().any(|one| one == path) {
            known.push(path.clone());
        }
    }

    /// A message by that model.
    pub(crate) fn model(&mut self, name: &Redacted) {
        match self
            .session
            .models
            .iter_mut()
            .find(|model| model.name == *name)
        {
            Some(model) => model.messages += 1,
            None => self.session.models.push(ModelUse {
                name: name.clone(),
                messages: 1,
            }),
        }
    }

    /// Nothing more belongs to the running turn.
    pub(crate) fn close_turn(&mut self) {
        if let Some(open) = self.turns.last_mut() {
            open.close();
        }
    }

    fn start_turn(&mut self) {
        self.close_turn();
        self.turns.push(Building {
            inherited: self.inherited,
            ..Building::default()
        });
    }

    /// The running turn; one without a prompt when none runs.
    fn open(&mut self) -> &mut Building {
        if self.turns.last().is_none_or(|open| open.closed) {
            self.start_turn();
        }
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }

    /// The session. Feedback and outcome are judged with the inherited history in
    /// sight; then that history goes back to the session that it belongs to.
    pub(crate) fn finish(mut self) -> Session {
        self.close_turn();
        let door = self.door;
        let mut inherited = Vec::new();
        let mut session = self.session;
        for mut building in self.turns {
            for call in &mut building.turn.tools {
                settle(call, session.project.as_deref(), door);
            }
            if !is_empty(&building.turn) {
                inherited.push(building.inherited);
                session.turns.push(building.turn);
            }
        }
        session.feedback = feedback_of(&session.turns);
        outcome::judge(&mut session);
        part_inherited(&mut session, &inherited);
        note_skill_reads(&mut session);
        session
    }
}

impl Building {
    /// Something follows the last text: it was a remark.
    fn demote(&mut self) {
        if let Some((remark, _)) = self.pending.take() {
            self.turn.remarks.push(remark);
        }
    }

    fn close(&mut self) {
        self.closed = true;
        match self.pending.take() {
            Some((answer, false)) if self.turn.end == TurnEnd::Open => {
                self.turn.answer = Some(answer);
                self.turn.end = TurnEnd::Answered;
            }
            Some((remark, _)) => self.turn.remarks.push(remark),
            None => {}
        }
    }
}
