//! The original's filters as pure functions (sleep-night.md, section 3.1).
//!
//! Readers do not use them: record kinds and provenance tell a person's prompts from
//! the rest far better. They are here so that both can be compared.

/// Fragments of the original's own prompts.
const ENGINE_FRAGMENTS: &[&str] = &[
    "## CURRENT SKILL",
    "## FAILED TASKS",
    "## SUCCESSFUL TASKS",
    "## OUTPUT FORMAT",
    "You are a strict grader",
    "Score the response 0.0-1.0",
    "You are SkillOpt-Sleep",
    "You are an expert success-pattern analyst",
    "You are an expert failure-pattern analyst",
    "## TASK\n",
    "## SKILL\n",
    "## Skill\n",
];

/// Texts by which other agents' sessions are known.
const FOREIGN_MARKERS: &[&str] = &[
    "You are a Claude-Mem",
    "Hello memory agent",
    "You are driving **SkillOpt-Sleep**",
];

/// Whether the original takes a text in the user's role for no prompt (section 3.1).
#[must_use]
pub fn is_meta_prompt(text: &str) -> bool {
    const TAG_WINDOW: usize = 200;
    let text = trim(text);
    if text.is_empty() || text.starts_with('<') && text.ends_with('>') {
        return true;
    }
    if text.starts_with('/') && text.split_whitespace().count() <= 3 {
        return true;
    }
    if ["[Pasted text", "Caveat:", "# /"]
        .iter()
        .any(|opening| text.starts_with(opening))
    {
        return true;
    }
    let head = crate::redact::cut(text, TAG_WINDOW);
    head.contains("<command-message>") || head.contains("<command-name>")
}

/// Whether the original takes a session for a call of its own (section 3.1). Times are
/// compared by their first 19 characters, as it does.
#[must_use]
pub fn is_headless_session(
    prompts: &[&str],
    user_turns: usize,
    started: &str,
    ended: &str,
) -> bool {
    const SHORT: usize = 200;
    const QUICK_SECONDS: i64 = 3;
    if user_turns != 1 {
        return user_turns == 0;
    }
    let first = prompts.first().copied().unwrap_or_default();
    if ENGINE_FRAGMENTS
        .iter()
        .any(|fragment| first.contains(fragment))
    {
        return true;
    }
    match (second_of(started), second_of(ended)) {
        (Some(start), Some(end)) => first.chars().count() < SHORT && end - start < QUICK_SECONDS,
        _ => false,
    }
}

/// The second that `YYYY-MM-DDTHH:MM:SS` at the start of a text names.
fn second_of(time: &str) -> Option<i64> {
    const LENGTH: usize = 19;
    let head = time.get(..LENGTH)?;
    let civil = jiff::civil::DateTime::strptime("%Y-%m-%dT%H:%M:%S", head).ok()?;
    jiff::tz::TimeZone::UTC
        .to_timestamp(civil)
        .ok()
        .map(jiff::Timestamp::as_second)
}

/// Whether the original takes a session for another agent's (section 3.1). Extra
/// markers are separated by commas.
#[must_use]
pub fn is_foreign_session(prompts: &[&str], extra_markers: &str) -> bool {
    let Some(first) = prompts.first() else {
        return false;
    };
    let extra = extra_markers
        .split(',')
        .map(trim)
        .filter(|marker| !marker.is_empty());
    FOREIGN_MARKERS
        .iter()
        .copied()
        .chain(extra)
        .any(|marker| first.contains(marker))
}

/// White space as Python trims it.
fn trim(text: &str) -> &str {
    text.trim_matches(|letter: char| letter.is_whitespace() || ('\x1c'..='\x1f').contains(&letter))
}
