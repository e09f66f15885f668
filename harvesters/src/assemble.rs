//! From what a reader saw, in order, to a [`Session`].
//!
//! A reader walks the live branch of a conversation and tells the [`Assembler`] what
//! happened. The assembler groups it into turns, pairs calls with results, judges
//! verifications, feedback and outcome, and is the only way to build a session: all
//! text passes through its [`Door`].

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use regex::RegexSet;

use crate::feedback::{self, Before};
use crate::outcome;
use crate::redact::Door;
use crate::session::{
    Answer, CallStatus, CommandRun, Feedback, Incident, IncidentKind, MachineText, ModelUse, Place, Prompt, PromptKind,
    SESSION_FORMAT, Session, SkillTrigger, SkillUse, ToolCall, Turn, TurnEnd,
};
use crate::shell;
use crate::verify::{self, Ended};

/// Where and when something was said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spot {
    pub(crate) place: Place,
    pub(crate) at: Option<Timestamp>,
}

/// The result of a tool call. `output` went through the door already.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallResult {
    pub(crate) output: String,
    pub(crate) status: CallStatus,
    pub(crate) exit_code: Option<i32>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) edits: Vec<String>,
}

/// Builds one session.
pub(crate) struct Assembler<'a> {
    pub(crate) door: Door<'a>,
    /// Facts about the session as a whole, filled in by the reader.
    pub(crate) session: Session,
    turns: Vec<Building>,
    calls: HashMap<String, (usize, usize)>,
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

    /// A prompt that starts a turn (a steering one joins the turn that runs).
    pub(crate) fn prompt(&mut self, text: &str, kind: PromptKind, images: u32, spot: Spot, turn_id: Option<&str>) {
        let prompt = self.make_prompt(text, kind, images, spot);
        let joins = kind == PromptKind::Steering && self.turns.last().is_some_and(|open| !open.closed);
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
    pub(crate) fn dead_prompt(&mut self, text: &str, kind: PromptKind, images: u32, spot: Spot) {
        let prompt = self.make_prompt(text, kind, images, spot);
        self.session.dead_prompts.push(prompt);
    }

    fn make_prompt(&self, text: &str, kind: PromptKind, images: u32, spot: Spot) -> Prompt {
        Prompt {
            text: self.door.prompt(text),
            kind,
            at: spot.at,
            images,
            place: spot.place,
        }
    }

    /// A text by the agent. An interim one never is the answer.
    pub(crate) fn text(&mut self, text: &str, interim: bool, spot: Spot) {
        if text.trim().is_empty() {
            return;
        }
        let answer = Answer {
            text: self.door.answer(text),
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
            self.calls.insert(call.id.clone(), (index, building.turn.tools.len()));
        }
        building.turn.tools.push(call);
    }

    /// Whether a call of that id was made.
    pub(crate) fn knows_call(&self, id: &str) -> bool {
        self.calls.contains_key(id)
    }

    /// The call of that id.
    pub(crate) fn call_mut(&mut self, id: &str) -> Option<&mut ToolCall> {
        let (turn, call) = self.calls.get(id).copied()?;
        self.turns.get_mut(turn)?.turn.tools.get_mut(call)
    }

    /// The result of the call of that id.
    pub(crate) fn result(&mut self, id: &str, result: CallResult, place: Place) {
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

    /// The person stopped the agent.
    pub(crate) fn interrupted(&mut self, detail: &str, spot: Spot) {
        if let Some(open) = self.turns.last_mut().filter(|open| !open.closed) {
            open.demote();
            open.turn.end = TurnEnd::Interrupted;
        }
        self.incident(IncidentKind::Interruption, detail, spot);
    }

    /// The turn ended because the model could not be reached.
    pub(crate) fn failed(&mut self, detail: &str, spot: Spot) {
        let open = self.open();
        open.demote();
        open.turn.end = TurnEnd::ApiError;
        self.incident(IncidentKind::ApiError, detail, spot);
    }

    /// Something happened. Inherited incidents are the other session's.
    pub(crate) fn incident(&mut self, kind: IncidentKind, detail: &str, spot: Spot) {
        if self.inherited {
            return;
        }
        self.session.incidents.push(Incident {
            kind,
            detail: self.door.note(detail),
            at: spot.at,
            place: spot.place,
        });
    }

    /// A text in the conversation that a program made.
    pub(crate) fn machine_text(&mut self, kind: &str, text: &str, place: Place) {
        const MOST: usize = 200;
        if self.inherited || text.trim().is_empty() || self.session.machine_texts.len() >= MOST {
            return;
        }
        let text = self.door.note(text);
        self.session.machine_texts.push(MachineText {
            kind: kind.to_owned(),
            text,
            place,
        });
    }

    /// A skill was used.
    pub(crate) fn skill(&mut self, name: &str, trigger: SkillTrigger, place: Place) {
        let name = self.door.note(name.trim_start_matches('/'));
        if self.inherited || name.is_empty() || self.session.skills.iter().any(|skill| skill.name == name) {
            return;
        }
        self.session.skills.push(SkillUse { name, trigger, place });
    }

    /// An instruction file was in force.
    pub(crate) fn instruction_file(&mut self, path: &str) {
        let path = self.door.note(path);
        if !path.is_empty() && !self.session.instruction_files.contains(&path) {
            self.session.instruction_files.push(path);
        }
    }

    /// A message by that model.
    pub(crate) fn model(&mut self, name: &str) {
        let name = self.door.note(name);
        match self.session.models.iter_mut().find(|model| model.name == name) {
            Some(model) => model.messages += 1,
            None => self.session.models.push(ModelUse { name, messages: 1 }),
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

    /// Names a turn that started without a prompt, so that later records find it.
    pub(crate) fn name_turn(&mut self, id: &str) {
        if self.turns.last().is_some_and(|open| !open.closed) {
            let index = self.turns.len() - 1;
            self.turn_ids.entry(id.to_owned()).or_insert(index);
        }
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
                settle(call, door);
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

/// A turn in which nobody said or did anything that matters.
fn is_empty(turn: &Turn) -> bool {
    turn.answer.is_none()
        && turn.tools.is_empty()
        && turn.remarks.is_empty()
        && turn.end == TurnEnd::Open
        && !turn.prompts.iter().any(|prompt| prompt.kind.by_person())
}

/// Judges a finished call and cuts its result.
fn settle(call: &mut ToolCall, door: Door<'_>) {
    if let Some(command) = &mut call.command {
        settle_command(command, &mut call.status, &call.result);
        call.shell_edits = shell::changed_files(&command.text);
    }
    call.untrusted = reads_like_instructions(&call.result);
    call.result = door.keep(std::mem::take(&mut call.result));
}

fn settle_command(command: &mut CommandRun, status: &mut CallStatus, output: &str) {
    if !matches!(status, CallStatus::Ok | CallStatus::Failed | CallStatus::Unknown) {
        command.exit_code = None;
    }
    if let Some(code) = command.exit_code {
        *status = if code == 0 { CallStatus::Ok } else { CallStatus::Failed };
    }
    let ended = match (command.exit_code, *status) {
        (Some(code), _) => Ended::Code(code),
        (None, CallStatus::Background) => command.late_exit_code.map_or(Ended::No, Ended::Code),
        (None, CallStatus::Ok | CallStatus::Failed) => Ended::Unknown,
        (None, _) => Ended::No,
    };
    command.verification = verify::judge(&command.text, ended, output);
}

/// Text in tool results that tries to speak to the agent. It is kept, but marked.
fn reads_like_instructions(text: &str) -> bool {
    static SIGNS: LazyLock<RegexSet> = LazyLock::new(|| {
        RegexSet::new([
            r"(?i)\b(?:ignore|disregard|forget) (?:all |any |the |your )*(?:previous|prior|above|earlier) (?:instructions|prompts|rules)",
            r"(?i)\byou are now (?:a|an|in|the)\b",
            r"(?i)\b(?:new|updated|real) (?:system )?instructions?:",
            r"(?i)\bdo not (?:tell|inform|mention (?:this|it) to) the user\b",
            r"(?i)</?(?:system|system-reminder|assistant|instructions)>",
            r"(?i)\b(?:as an ai|dear (?:ai|assistant|agent)|attention,? (?:ai|assistant|agent|llm))\b",
        ])
        .unwrap_or_else(|_| RegexSet::empty())
    });
    SIGNS.is_match(text)
}

/// Prompts that judge what was done before them.
fn feedback_of(turns: &[Turn]) -> Vec<Feedback> {
    let mut found = Vec::new();
    let mut earlier: Vec<&str> = Vec::new();
    for (index, turn) in turns.iter().enumerate() {
        let persons = turn.prompts.iter().filter(|prompt| prompt.kind.by_person());
        for (position, prompt) in persons.enumerate() {
            let steering = position > 0;
            let about = if steering { Some(index) } else { index.checked_sub(1) };
            let interrupted = !steering
                && index > 0
                && turns[index - 1].end == TurnEnd::Interrupted;
            let before = Before { interrupted, prompts: &earlier };
            let judged = (!earlier.is_empty() && prompt.kind != PromptKind::SlashCommand)
                .then(|| feedback::judge(&prompt.text, before))
                .flatten();
            if let (Some(polarity), Some(about_turn)) = (judged, about) {
                found.push(Feedback {
                    prompt_index: earlier.len(),
                    about_turn,
                    polarity,
                    text: prompt.text.clone(),
                    place: prompt.place,
                });
            }
            earlier.push(&prompt.text);
        }
    }
    found
}

/// Moves inherited turns out: only their prompts are kept.
fn part_inherited(session: &mut Session, inherited: &[bool]) {
    let count = inherited.iter().take_while(|flag| **flag).count();
    if count == 0 {
        return;
    }
    let own = session.turns.split_off(count);
    let history = std::mem::replace(&mut session.turns, own);
    let prompts: Vec<Prompt> = history
        .into_iter()
        .flat_map(|turn| turn.prompts)
        .filter(|prompt| prompt.kind.by_person())
        .collect();
    session.feedback.retain_mut(|said| {
        let own = said.prompt_index >= prompts.len() && said.about_turn >= count;
        said.prompt_index = said.prompt_index.saturating_sub(prompts.len());
        said.about_turn = said.about_turn.saturating_sub(count);
        own
    });
    session.inherited_prompts.extend(prompts);
}

/// A skill whose file was read was used.
fn note_skill_reads(session: &mut Session) {
    static SKILL_FILE: LazyLock<Option<regex::Regex>> =
        LazyLock::new(|| regex::Regex::new(r#"([^/\\\s"']+)[/\\]SKILL\.md\b"#).ok());
    let Some(pattern) = SKILL_FILE.as_ref() else {
        return;
    };
    let mut read: Vec<SkillUse> = Vec::new();
    for call in session.calls() {
        let reads = call.command.as_ref().map_or_else(
            || call.name.to_ascii_lowercase().contains("read").then_some(call.arguments.as_str()),
            |command| shell::steps(&command.text).first().map(|_| command.text.as_str()),
        );
        let ok = matches!(call.status, CallStatus::Ok | CallStatus::Unknown);
        for found in pattern.captures_iter(reads.filter(|_| ok).unwrap_or_default()) {
            read.push(SkillUse {
                name: found[1].to_owned(),
                trigger: SkillTrigger::FileRead,
                place: call.place,
            });
        }
    }
    for skill in read {
        if !session.skills.iter().any(|known| known.name == skill.name) {
            session.skills.push(skill);
        }
    }
}
