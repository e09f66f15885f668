//! Telling a person's prompts from other programs' calls (session-logs.md, section 11,
//! first row).

use crate::harvest::OWN_CALL_MARKER;
use crate::session::{Origin, Session};

/// Beginnings of prompts that programs write: graders, memory agents, title makers,
/// the original's own calls. Compared with the start of a session's first prompt.
const PROGRAM_OPENINGS: &[&str] = &[
    "You are a strict grader",
    "You are SkillOpt-Sleep",
    "You are driving **SkillOpt-Sleep**",
    "You are an expert success-pattern analyst",
    "You are an expert failure-pattern analyst",
    "You are a Claude-Mem",
    "Hello memory agent",
    "<skillopt_sleep_internal_replay_v1>",
    "Please write a 5-10 word title",
    "Analyze if this message indicates a new conversation topic",
];

/// Pairs of texts that together only a program's template has.
const PROGRAM_TEMPLATES: &[(&str, &str)] = &[
    ("## CURRENT SKILL", "## FAILED TASKS"),
    ("## CURRENT SKILL", "## SUCCESSFUL TASKS"),
    ("## CURRENT SKILL", "## OUTPUT FORMAT"),
    ("Score the response 0.0-1.0", "## RESPONSE"),
    ("Score the response 0.0-1.0", "## TASK"),
];

/// Whether the first prompt of a session was written by a program.
pub(crate) fn is_program_prompt(prompt: &str) -> bool {
    let text = prompt.trim_start();
    text.contains(OWN_CALL_MARKER)
        || PROGRAM_OPENINGS
            .iter()
            .any(|opening| text.starts_with(opening))
        || PROGRAM_TEMPLATES
            .iter()
            .any(|(one, other)| text.contains(one) && text.contains(other))
}

/// The session, marked when a program wrote its first prompt: all that can be told where
/// a log does not say who started it.
pub(crate) fn of_prompts(mut session: Session) -> Session {
    let by_program = session
        .prompts()
        .next()
        .is_some_and(|prompt| is_program_prompt(&prompt.text));
    session.origin = match by_program {
        true => Origin::Machine,
        false => Origin::Unknown,
    };
    session
}
