//! Sessions into tasks, without a model (sleep-night 5.2).
//!
//! One task a session: its first request is the intent; what the person asked for afterwards is what
//! a judge later holds an attempt against; the last answer is what was tried. Whether it went well
//! is the session's own outcome, which rests on verification runs and feedback in context rather
//! than on words anywhere in the text (weakness 9). Only where that tells nothing, phrases do.

use skillopt_harvesters::session::{Session, Verdict};

use super::feedback::{Phrases, Tone};
use super::task::{Task, dedupe, mined_id, short};
use crate::config::NightConfig;

/// Shortest request that is a task, in characters.
const MIN_INTENT_CHARS: usize = 8;
const MAX_INTENT_CHARS: usize = 800;
const MAX_ANSWER_CHARS: usize = 600;
const MAX_FOLLOW_UP_CHARS: usize = 600;
const MAX_FOLLOW_UPS: usize = 3;

/// At most `config.max_tasks` tasks of `sessions`, in their order, one per distinct request of a project.
#[must_use]
pub fn mine(sessions: &[Session], config: &NightConfig) -> Vec<Task> {
    let own = &config.feedback;
    let phrases = Phrases::with_own(&own.negative, &own.positive);
    let kept_skill = config.kept_skill();
    let tasks = sessions
        .iter()
        .filter_map(|session| task(session, &phrases, &kept_skill));
    let mut tasks = dedupe(tasks.collect());
    tasks.truncate(config.max_tasks);
    tasks
}

fn task(session: &Session, phrases: &Phrases, kept_skill: &str) -> Option<Task> {
    let mut prompts = session.prompts().map(|prompt| prompt.text.trim());
    let first = prompts.next()?;
    if first.chars().count() < MIN_INTENT_CHARS {
        return None;
    }
    let follow_ups: Vec<&str> = prompts
        .filter(|text| !text.is_empty())
        .take(MAX_FOLLOW_UPS)
        .collect();
    let project = session.project.as_deref().unwrap_or_default();
    // Every session may read the skill that nights keep; that says nothing about the task.
    let mut skills = session.skills();
    skills.retain(|name| *name != kept_skill);
    Some(Task {
        context_excerpt: follow_up_text(&follow_ups),
        attempted_solution: session
            .final_answer()
            .map(|answer| short(&answer.text, MAX_ANSWER_CHARS))
            .unwrap_or_default(),
        outcome: outcome(session, phrases).to_owned(),
        tags: tags(session),
        source_sessions: vec![session.id.to_string()],
        skill_hint: match skills.as_slice() {
            [only] => (*only).to_owned(),
            _ => String::new(),
        },
        ..Task::new(
            mined_id(project, first),
            project.to_owned(),
            short(first, MAX_INTENT_CHARS),
        )
    })
}

fn follow_up_text(follow_ups: &[&str]) -> String {
    if follow_ups.is_empty() {
        return String::new();
    }
    let lines: String = follow_ups
        .iter()
        .map(|text| format!("\n- {}", short(text, 200)))
        .collect();
    short(
        &format!("Follow-up constraints from the same session:{lines}"),
        MAX_FOLLOW_UP_CHARS,
    )
}

fn outcome(session: &Session, phrases: &Phrases) -> &'static str {
    let said = || phrases.verdict(session.prompts().map(|prompt| prompt.text.as_str()));
    match session.outcome.verdict {
        Verdict::Success => "success",
        Verdict::Fail => "fail",
        Verdict::Mixed => "mixed",
        Verdict::Unknown => match said() {
            Some(Tone::Positive) => "success",
            Some(Tone::Negative) => "fail",
            None => "unknown",
        },
    }
}

fn tags(session: &Session) -> Vec<String> {
    let mut tags = Vec::new();
    let tools: Vec<&str> = session.tools().into_iter().take(4).collect();
    if !tools.is_empty() {
        tags.push(format!("tools:{}", tools.join("+")));
    }
    if let Some(branch) = session
        .git
        .branch
        .as_deref()
        .filter(|branch| !branch.is_empty())
    {
        tags.push(format!("branch:{branch}"));
    }
    tags
}

#[cfg(test)]
mod tests {
    use skillopt_harvesters::Redactor;
    use skillopt_harvesters::session::{Prompt, Turn};

    use super::*;

    fn session(prompts: &[&str]) -> Session {
        let turn = |text: &&str| Turn {
            prompts: vec![Prompt {
                text: Redactor::new().redacted(*text),
                ..Prompt::default()
            }],
            ..Turn::default()
        };
        Session {
            turns: prompts.iter().map(turn).collect(),
            ..Session::default()
        }
    }

    #[test]
    fn own_phrases_settle_what_nothing_else_tells() {
        let mut config = NightConfig::default();
        config.feedback.negative = vec!["geht nicht".to_owned()];
        let asked = session(&["baue den Import um", "das geht nicht"]);
        assert_eq!(
            mine(std::slice::from_ref(&asked), &config)[0].outcome,
            "fail"
        );
        assert_eq!(
            mine(&[asked], &NightConfig::default())[0].outcome,
            "unknown"
        );
        let mut verified = session(&["baue den Import um", "das geht nicht"]);
        verified.outcome.verdict = Verdict::Success;
        assert_eq!(mine(&[verified], &config)[0].outcome, "success");
    }
}
