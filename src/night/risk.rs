//! The risks of a proposed text, as a proposal keeps them and as a reviewer is shown them.
//!
//! A text is looked at when it is staged, again when a person accepts some of its edits or edits it,
//! and once more before it is adopted: what counts is the text that would be written.

use std::collections::BTreeSet;

use skillopt_staging::{Document, DocumentKind, Finding, Level, Proposal};

use super::task::Task;
use crate::skill::lint::{self, Context, Host};

/// The rule whose findings need the night's tasks; they are kept from staging on.
const TASK_ANSWER: &str = "task-answer";

/// What the lint finds in a night's proposal, with the answers of its tasks at hand.
#[must_use]
pub fn of_draft<'t>(
    document: &Document,
    base: &str,
    proposed: &str,
    tasks: impl Iterator<Item = &'t Task>,
) -> Vec<Finding> {
    // A rubric or a person's own words may well become a rule; an answer may not.
    let answers: Vec<&str> = tasks
        .filter(|task| matches!(task.reference_kind.as_str(), "exact" | "answer"))
        .map(|task| task.reference.as_str())
        .collect();
    look(document, base, proposed, &answers)
}

/// What the lint finds in a text that would be written for `proposal` in place of `base`.
#[must_use]
pub fn of_text(proposal: &Proposal, base: &str, text: &str) -> Vec<Finding> {
    let mut findings = look(&proposal.document, base, text, &[]);
    let kept = proposal.lint.iter().filter(|finding| {
        finding.rule == TASK_ANSWER && text.contains(finding.excerpt.trim_end_matches('…'))
    });
    findings.splice(0..0, kept.cloned());
    findings
}

/// The rules of the highest level among the findings: each must be allowed by name.
#[must_use]
pub fn dangers(findings: &[Finding]) -> BTreeSet<&str> {
    findings
        .iter()
        .filter(|finding| finding.level == Level::Danger)
        .map(|finding| finding.rule.as_str())
        .collect()
}

/// The level in a word.
#[must_use]
pub fn level_name(level: Level) -> &'static str {
    match level {
        Level::Note => "note",
        Level::Warning => "warning",
        Level::Danger => "danger",
    }
}

fn look(document: &Document, base: &str, text: &str, answers: &[&str]) -> Vec<Finding> {
    let reads = |host: &str| document.hosts.iter().any(|other| other == host);
    let host = match (reads("claude-code"), reads("codex")) {
        (true, false) => Host::ClaudeCode,
        (false, true) => Host::Codex,
        (false, false) if !document.hosts.is_empty() => Host::Other,
        _ => Host::Any,
    };
    let context = Context {
        task_answers: answers,
        host,
        // A file of a skill's references has no front matter.
        is_skill: document.kind == DocumentKind::Skill && document.path.ends_with("SKILL.md"),
    };
    lint::lint(base, text, &context)
        .into_iter()
        .map(|finding| Finding {
            rule: finding.rule.to_owned(),
            level: match finding.level {
                lint::Level::Note => Level::Note,
                lint::Level::Warning => Level::Warning,
                lint::Level::Danger => Level::Danger,
            },
            line: finding.line,
            excerpt: finding.excerpt,
        })
        .collect()
}
