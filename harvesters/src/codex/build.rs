//! From the lines of a thread to a session.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::assemble::{Assembler, Spot};
use crate::harvest::Run;
use crate::noise;
use crate::redact::Redacted;
use crate::report::SkipReason;
use crate::session::{
    Agent, IncidentKind, Origin, Place, PromptKind, Session, SkillTrigger, Usage,
};

use super::Index;
use super::fact::{CompactedBy, Fact, Format, Line, Meta, Teller, Tokens};
use super::files::{ThreadFiles, Threads};
use super::thread::{Marked, Thread};
use super::work::Work;

/// Builds the session of a thread; none when its files hold nothing.
pub(super) fn session(
    files: &ThreadFiles,
    threads: &Threads,
    index: &Index,
    run: &mut Run<'_>,
) -> Option<Session> {
    let Some(mut thread) = Thread::read(files, threads, run) else {
        for file in &files.files {
            run.report.skip(&file.found.path, SkipReason::Empty, "");
        }
        return None;
    };
    let history = thread.history(threads, run);
    let tellers = Tellers::of(
        history
            .iter()
            .flat_map(|(_, lines)| lines)
            .chain(&thread.lines),
    );
    mark_rolled_back(&mut thread.lines, &tellers);
    let mut teller = Storyteller {
        assembler: Assembler::new(run.door()),
        work: Work::new(&thread.lines),
        tellers,
        own_id: Redacted::EMPTY,
        in_turn: false,
        in_review: false,
        prompts_in_turn: 0,
        pending_error: None,
        agents: 0,
        reviews: 0,
    };
    for (id, lines) in history {
        teller.own_id = run.door().id(&id);
        for marked in lines {
            let place = Place {
                file: u32::MAX,
                offset: marked.line.offset,
            };
            teller.tell(marked.line, true, place);
        }
        teller.end_turn();
    }
    teller.own_id = thread
        .meta
        .id
        .clone()
        .unwrap_or_else(|| run.door().id(&files.id));
    let Thread { lines, meta } = thread;
    let sums = Sums::of(&lines);
    for marked in lines {
        let place = Place {
            file: marked.line.file,
            offset: marked.line.offset,
        };
        if marked.dead {
            teller.tell_dead(marked.line, place);
        } else {
            teller.tell(marked.line, marked.inherited, place);
        }
    }
    teller.end_turn();
    Some(finish(teller, meta, sums, files, threads, index))
}

/// What is summed up over all lines, dead ones included.
struct Sums {
    usage: Option<Usage>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Sums {
    fn of(lines: &[Marked]) -> Sums {
        let times = lines.iter().filter_map(|marked| marked.line.at);
        Sums {
            usage: usage_of(lines),
            first: times.clone().min(),
            last: times.max(),
        }
    }
}

/// Fills in the circumstances and finishes the session.
fn finish(
    teller: Storyteller<'_>,
    meta: Meta,
    sums: Sums,
    files: &ThreadFiles,
    threads: &Threads,
    index: &Index,
) -> Session {
    let Storyteller {
        mut assembler,
        work,
        agents,
        reviews,
        ..
    } = teller;
    let session = &mut assembler.session;
    session.agent = Agent::Codex;
    session.id = meta.id.unwrap_or_else(|| assembler.door.id(&files.id));
    session.agent_version = meta.version;
    session.project = meta.cwd.or_else(|| work.first_folder().cloned());
    session.later_folders = work.later_folders().to_vec();
    session.git.branch = meta.branch.filter(|branch| branch != "HEAD");
    session.git.commit = meta.commit;
    session.git.repository = meta.repository;
    session.title = index
        .titles
        .as_ref()
        .and_then(|titles| titles.get(session.id.as_str()).cloned());
    session.files = files
        .files
        .iter()
        .map(|file| file.found.path.to_string_lossy().into_owned())
        .collect();
    session.archived = files.files.iter().all(|file| file.archived);
    session.sub_agent_files = threads
        .sub_agents_of(&files.id)
        .into_iter()
        .map(|file| file.path.to_string_lossy().into_owned())
        .collect();
    session.forked_from = meta.forked_from;
    session.sub_agents = agents.max(work.agents_spawned()) + reviews;
    session.usage = sums.usage;
    session.started = sums.first.or(meta.started);
    session.ended = sums.last.or(meta.started);
    let mut session = assembler.finish();
    session.origin = origin_of(&session, meta.source.as_deref(), index);
    session.resumes = resumes_of(&session);
    session
}

/// Who started the session.
fn origin_of(session: &Session, source: Option<&str>, index: &Index) -> Origin {
    let first = session.turns.iter().flat_map(|turn| &turn.prompts).next();
    if first.is_some_and(|prompt| noise::is_program_prompt(&prompt.text)) {
        return Origin::Machine;
    }
    match source {
        Some(source) if source.contains("exec") || source == "mcp" || source.contains("sdk") => {
            Origin::Headless
        }
        Some(_) => Origin::Interactive,
        None => match &index.typed {
            Some(ids) if ids.contains(session.id.as_str()) => Origin::Interactive,
            Some(_) => Origin::Headless,
            None => Origin::Unknown,
        },
    }
}

/// A headless run takes one prompt: each further one was another run.
fn resumes_of(session: &Session) -> u32 {
    let own = session
        .prompts()
        .filter(|prompt| prompt.kind != PromptKind::Steering)
        .count();
    let count = if session.origin == Origin::Headless {
        own.saturating_sub(1)
    } else {
        0
    };
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Tokens of all own lines, dead ones included: by response where there are records of
/// calls, else from counts whose total moved (section 3.6, rule 8).
fn usage_of(lines: &[Marked]) -> Option<Usage> {
    let mut total: Option<Usage> = None;
    let mut responses: HashMap<&str, Tokens> = HashMap::new();
    let mut previous: Option<Tokens> = None;
    let mut counted = Vec::new();
    let has_records = lines.iter().any(|marked| {
        marked
            .line
            .facts
            .iter()
            .any(|fact| matches!(fact, Fact::Usage { .. }))
    });
    for marked in lines {
        for fact in &marked.line.facts {
            match fact {
                Fact::Usage { response, usage } if !marked.inherited && !response.is_empty() => {
                    responses.insert(response, *usage);
                }
                Fact::Usage { usage, .. } if !marked.inherited => counted.push(*usage),
                Fact::Count {
                    total: Some(sum),
                    last,
                } => {
                    let moved = previous.replace(*sum) != Some(*sum);
                    let wanted = !has_records || marked.line.format == Format::Legacy;
                    if moved && wanted && !marked.inherited {
                        counted.extend(last);
                    }
                }
                _ => {}
            }
        }
    }
    for tokens in responses.values().chain(&counted) {
        let sum = total.get_or_insert_default();
        let uncached = tokens
            .input
            .saturating_sub(tokens.cached)
            .saturating_sub(tokens.written);
        sum.input = sum.input.saturating_add(uncached);
        sum.cache_read = sum.cache_read.saturating_add(tokens.cached);
        sum.cache_creation = sum.cache_creation.saturating_add(tokens.written);
        sum.output = sum.output.saturating_add(tokens.output);
    }
    total
}

/// Marks what the person went back beyond in the legacy format: the last n turns before
/// a mark are dead.
fn mark_rolled_back(lines: &mut [Marked], tellers: &Tellers) {
    let mut starts: Vec<usize> = Vec::new();
    for index in 0..lines.len() {
        let mut undone = 0;
        for fact in &lines[index].line.facts {
            match fact {
                Fact::Prompt { by, .. }
                    if !lines[index].dead && tellers.prompts(lines[index].line.format) == *by =>
                {
                    starts.push(index);
                }
                Fact::RolledBack(turns) => undone = undone.max(*turns),
                _ => {}
            }
        }
        if undone > 0 {
            let kept = starts.len().saturating_sub(undone);
            if let Some(from) = starts.drain(kept..).next() {
                for marked in &mut lines[from..index] {
                    marked.dead = true;
                }
            }
        }
    }
}

/// Who is believed about prompts and answers. Each is told up to three times, never
/// are two tellers of one format mixed (section 3.4).
struct Tellers {
    prompts: [Teller; 3],
    answers: [Teller; 3],
    compactions: CompactedBy,
}

impl Tellers {
    fn of<'l>(lines: impl Iterator<Item = &'l Marked>) -> Tellers {
        let mut prompts = [Teller::Message; 3];
        let mut answers = [Teller::Message; 3];
        let mut compactions = CompactedBy::Event;
        for marked in lines {
            let format = slot(marked.line.format);
            for fact in &marked.line.facts {
                match fact {
                    Fact::Prompt { by, .. } => prompts[format] = better(prompts[format], *by),
                    Fact::Answer { by, .. } => answers[format] = better(answers[format], *by),
                    Fact::Compacted(CompactedBy::Line) => compactions = CompactedBy::Line,
                    Fact::Compacted(CompactedBy::Item) if compactions == CompactedBy::Event => {
                        compactions = CompactedBy::Item;
                    }
                    _ => {}
                }
            }
        }
        Tellers {
            prompts,
            answers,
            compactions,
        }
    }

    fn prompts(&self, format: Format) -> Teller {
        self.prompts[slot(format)]
    }

    fn answers(&self, format: Format) -> Teller {
        self.answers[slot(format)]
    }
}

fn slot(format: Format) -> usize {
    match format {
        Format::Bare => 0,
        Format::Legacy => 1,
        Format::Paginated => 2,
    }
}

/// Items before events before messages.
fn better(one: Teller, other: Teller) -> Teller {
    match (one, other) {
        (Teller::Item, _) | (_, Teller::Item) => Teller::Item,
        (Teller::Event, _) | (_, Teller::Event) => Teller::Event,
        _ => Teller::Message,
    }
}

/// Tells the assembler what happened, line by line.
struct Storyteller<'a> {
    assembler: Assembler<'a>,
    work: Work,
    tellers: Tellers,
    /// The thread whose lines are told.
    own_id: Redacted,
    in_turn: bool,
    /// A review was asked for: the program words the prompt, and may log it twice.
    in_review: bool,
    prompts_in_turn: usize,
    /// An error that the end of the turn may repeat.
    pending_error: Option<(Redacted, Spot)>,
    agents: u32,
    reviews: u32,
}

impl Storyteller<'_> {
    fn tell(&mut self, line: Line, inherited: bool, place: Place) {
        let spot = Spot { place, at: line.at };
        self.assembler.set_inherited(inherited);
        let turn = line.turn.as_deref();
        for fact in line.facts {
            let Some(fact) = self.work.take(fact, spot, turn, &mut self.assembler) else {
                continue;
            };
            match fact {
                Fact::Prompt {
                    text,
                    images,
                    by,
                    thread,
                } if by == self.tellers.prompts(line.format) => {
                    self.prompt(text, images, thread.as_ref(), spot, turn);
                }
                Fact::Answer { text, interim, by } if by == self.tellers.answers(line.format) => {
                    self.assembler.text(text, interim, spot);
                }
                Fact::Machine { kind, text } => {
                    self.assembler
                        .machine_text(Redacted::own(kind), &text, place);
                }
                Fact::Skill(name) => self.assembler.skill(&name, SkillTrigger::Command, place),
                Fact::Instructions(path) => self.assembler.instruction_file(&path),
                Fact::Turn {
                    model: Some(model), ..
                } if !inherited => self.assembler.model(&model),
                Fact::AgentStarted if !inherited => self.agents += 1,
                Fact::ReviewStarted => {
                    self.in_review = true;
                    self.reviews += u32::from(!inherited);
                }
                Fact::ReviewEnded => self.in_review = false,
                Fact::TurnStarted => {
                    self.in_turn = true;
                    self.prompts_in_turn = 0;
                }
                Fact::TurnEnded { error } => self.turn_ended(error.as_ref(), spot),
                Fact::TurnAborted { interrupted } => {
                    if interrupted {
                        self.assembler.interrupted(&Redacted::EMPTY, spot);
                    }
                    self.end_turn();
                }
                Fact::ApiError(text) => self.pending_error = Some((text, spot)),
                Fact::Compacted(by) if by == self.tellers.compactions => {
                    self.assembler
                        .incident(IncidentKind::Compaction, &Redacted::EMPTY, spot);
                }
                _ => {}
            }
        }
    }

    fn prompt(
        &mut self,
        text: Redacted,
        images: u32,
        thread: Option<&Redacted>,
        spot: Spot,
        turn: Option<&str>,
    ) {
        let foreign = thread.is_some_and(|thread| *thread != self.own_id);
        if self.in_review && self.prompts_in_turn > 0 {
            return;
        }
        let kind = match (
            foreign || self.in_review,
            self.in_turn && self.prompts_in_turn > 0,
        ) {
            (true, _) => PromptKind::Machine,
            (false, true) => PromptKind::Steering,
            (false, false) => PromptKind::Typed,
        };
        if kind != PromptKind::Steering {
            self.settle_error();
        }
        self.prompts_in_turn += 1;
        self.assembler.prompt(text, kind, images, spot, turn);
    }

    /// Of a dead branch only the prompts matter.
    fn tell_dead(&mut self, line: Line, place: Place) {
        let spot = Spot { place, at: line.at };
        for fact in line.facts {
            if let Fact::Prompt {
                text, images, by, ..
            } = fact
                && by == self.tellers.prompts(line.format)
            {
                self.assembler
                    .dead_prompt(text, PromptKind::Typed, images, spot);
            }
        }
    }

    fn turn_ended(&mut self, error: Option<&Redacted>, spot: Spot) {
        if let Some(error) = error {
            self.pending_error = None;
            self.assembler.failed(error, spot);
        }
        self.end_turn();
    }

    fn end_turn(&mut self) {
        self.settle_error();
        self.in_turn = false;
        self.prompts_in_turn = 0;
        self.assembler.close_turn();
    }

    /// An error that no end of a turn repeated ended the turn itself.
    fn settle_error(&mut self) {
        if let Some((text, spot)) = self.pending_error.take() {
            self.assembler.failed(&text, spot);
        }
    }
}
