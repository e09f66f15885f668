//! What is judged once all is known: commands, results, feedback, history.

use std::sync::LazyLock;

use regex::RegexSet;

use crate::feedback::{self, Asked, Before};
use crate::redact::{Door, Words};
use crate::session::{
    CallStatus, CommandRun, Feedback, Prompt, PromptKind, Session, SkillTrigger, SkillUse,
    ToolCall, Turn, TurnEnd,
};
use crate::shell;
use crate::verify::{self, Ended};

/// A turn in which nobody said or did anything that matters.
pub(super) fn is_empty(turn: &Turn) -> bool {
    turn.answer.is_none()
        && turn.tools.is_empty()
        && turn.remarks.is_empty()
        && turn.end == TurnEnd::Open
        && !turn.prompts.iter().any(|prompt| prompt.kind.by_person())
}

/// Judges a finished call and cuts its result.
pub(super) fn settle(call: &mut ToolCall, project: Option<&str>, door: Door<'_>) {
    if let Some(command) = &mut call.command {
        let has_result = call.result_place.is_some();
        let steps = shell::steps(&command.text);
        let ended = settle_status(command, &mut call.status, has_result);
        command.verification =
            verify::judge(&command.text, &steps, ended, &call.result, door.redactor);
        let folder = command.workdir.as_deref().or(project);
        // Their quotes are gone, so they go through the door once more.
        let absolute =
            |paths: Vec<String>| paths.iter().map(|path| door.path(path, folder)).collect();
        call.shell_edits = absolute(shell::changed_files(&steps));
        if call.status == CallStatus::Ok {
            call.reverts = absolute(shell::reverted_files(&steps));
        }
    }
    call.result = door.keep(std::mem::take(&mut call.result));
    // What is not kept cannot speak to anybody.
    let verified = call
        .command
        .as_ref()
        .and_then(|command| command.verification.as_ref());
    let failing = verified.map_or(&[][..], |verified| &verified.failing);
    call.untrusted = std::iter::once(&call.result)
        .chain(failing)
        .any(|text| reads_like_instructions(text));
}

/// Makes exit code and status agree; how the command ended.
fn settle_status(command: &mut CommandRun, status: &mut CallStatus, has_result: bool) -> Ended {
    if !matches!(
        status,
        CallStatus::Ok | CallStatus::Failed | CallStatus::Unknown
    ) {
        command.exit_code = None;
    }
    if let Some(code) = command.exit_code {
        *status = if code == 0 {
            CallStatus::Ok
        } else {
            CallStatus::Failed
        };
    }
    match (command.exit_code, *status) {
        (Some(code), _) => Ended::Code(code),
        (None, CallStatus::Background) => command.late_exit_code.map_or(Ended::No, Ended::Code),
        (None, CallStatus::Ok | CallStatus::Failed) => Ended::Unknown,
        (None, CallStatus::Unknown) if has_result => Ended::Unknown,
        (None, _) => Ended::No,
    }
}

/// Words of which one is in every text that a sign is found in.
const SIGN_WORDS: &[&str] = &[
    "previous instructions",
    "previous prompts",
    "previous rules",
    "prior instructions",
    "prior prompts",
    "prior rules",
    "above instructions",
    "above prompts",
    "above rules",
    "earlier instructions",
    "earlier prompts",
    "earlier rules",
    "you are now ",
    "instruction:",
    "instructions:",
    "do not tell the user",
    "do not inform the user",
    "do not mention this to the user",
    "do not mention it to the user",
    "system>",
    "system-reminder>",
    "assistant>",
    "instructions>",
    "as an ai",
    "dear a",
    "attention",
];

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
    static WORDS: LazyLock<Option<Words>> = LazyLock::new(|| Words::new(SIGN_WORDS));
    // Letters that the patterns take for an `s` and a `k`, and words cannot.
    let has = |letter: &str| memchr::memmem::find(text.as_bytes(), letter.as_bytes()).is_some();
    let disguised = || !text.is_ascii() && (has("\u{17f}") || has("\u{212a}"));
    let possible = WORDS
        .as_ref()
        .is_none_or(|words| words.any(text.as_bytes()) || disguised());
    possible && SIGNS.is_match(text)
}

/// Prompts that judge what was done before them.
pub(super) fn feedback_of(turns: &[Turn]) -> Vec<Feedback> {
    let mut found = Vec::new();
    let mut asked = Asked::default();
    let mut earlier = 0;
    for (index, turn) in turns.iter().enumerate() {
        let persons = turn.prompts.iter().filter(|prompt| prompt.kind.by_person());
        for (position, prompt) in persons.enumerate() {
            let steering = position > 0;
            let about = if steering {
                Some(index)
            } else {
                index.checked_sub(1)
            };
            let interrupted =
                !steering && index > 0 && turns[index - 1].end == TurnEnd::Interrupted;
            let before = Before {
                interrupted,
                asked: Some(&asked),
            };
            let judged = (earlier > 0 && prompt.kind != PromptKind::SlashCommand)
                .then(|| feedback::judge(&prompt.text, before))
                .flatten();
            if let (Some(polarity), Some(about_turn)) = (judged, about) {
                found.push(Feedback {
                    prompt_index: earlier,
                    about_turn,
                    polarity,
                    text: prompt.text.clone(),
                    place: prompt.place,
                });
            }
            asked.add(&prompt.text);
            earlier += 1;
        }
    }
    found
}

/// Moves inherited turns out: only their prompts are kept.
pub(super) fn part_inherited(session: &mut Session, inherited: &[bool]) {
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
pub(super) fn note_skill_reads(session: &mut Session) {
    static SKILL_FILE: LazyLock<Option<regex::Regex>> =
        LazyLock::new(|| regex::Regex::new(r#"([^/\\\s"']+)[/\\]SKILL\.md\b"#).ok());
    let Some(pattern) = SKILL_FILE.as_ref() else {
        return;
    };
    let mut read: Vec<SkillUse> = Vec::new();
    for call in session.calls() {
        let reads = call.command.as_ref().map_or_else(
            || {
                call.name
                    .to_ascii_lowercase()
                    .contains("read")
                    .then_some(&call.arguments)
            },
            |command| Some(&command.text),
        );
        let ok = matches!(call.status, CallStatus::Ok | CallStatus::Unknown);
        let Some(reads) = reads.filter(|text| ok && text.contains("SKILL.md")) else {
            continue;
        };
        // A comment reads nothing.
        if call.command.is_some() && shell::steps(reads).is_empty() {
            continue;
        }
        for name in pattern.captures_iter(reads).filter_map(|all| all.get(1)) {
            read.push(SkillUse {
                name: reads.part(|text| text.get(name.range()).unwrap_or_default()),
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
