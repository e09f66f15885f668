//! What a reviewer should know about the text that a proposal adds.
//!
//! [`lint`] looks only at lines that the base does not have: a document's owner answers for what it
//! said before. Each [`Rule`] of the table has a name, a level, an explanation and examples both
//! ways. A finding is a reason to look, and the highest level a reason to stop; the absence of
//! findings proves nothing, since words can ask for anything in ways that no pattern knows.
//!
//! ```text
//! base, proposed ──added──▶ lines nobody had ──rules──▶ findings, one line each
//! ```
//!
//! Pure, and linear in the length of both texts: the patterns are automata without backtracking, and
//! each rule reports a bounded number of findings.

mod added;
mod prohibition;
mod rules;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use regex::Regex;

use added::Added;
pub use rules::{Rule, rules};

/// Most findings of one rule; what lies beyond is no news.
const MAX_FINDINGS: usize = 20;

/// Longest excerpt, in characters.
const MAX_EXCERPT: usize = 160;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Worth knowing.
    Note,
    /// A person must look at it.
    Warning,
    /// Not to be adopted unless a person allows this very rule.
    Danger,
}

/// The agent that reads the document, where that sets a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Host {
    /// Not known, or several: the limits of all of them count.
    #[default]
    Any,
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Another one, without such limits.
    Other,
}

/// What else is known about the proposal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// The answers by which the night's tasks are judged. A document that holds them scores well
    /// and helps nobody.
    pub task_answers: &'a [&'a str],
    /// Who reads the document.
    pub host: Host,
    /// Whether it is a `SKILL.md`, found by its front matter.
    pub is_skill: bool,
}

/// Something in the added text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// How much it matters here.
    pub level: Level,
    /// The line of the proposed text, from 1; none when it is about the whole document.
    pub line: Option<usize>,
    /// What was found, not yet made safe to show.
    pub excerpt: String,
}

/// A place in the added text that a rule points at.
struct Hit {
    line: Option<usize>,
    excerpt: String,
    level: Level,
}

/// The findings in what `proposed` has and `base` has not, the gravest first.
#[must_use]
pub fn lint(base: &str, proposed: &str, context: &Context<'_>) -> Vec<Finding> {
    let added = Added::new(base, proposed);
    let mut findings: Vec<Finding> = COMPILED
        .iter()
        .flat_map(|(rule, pattern)| {
            let hits = match pattern {
                Some(pattern) => by_pattern(rule, pattern, &added),
                None => by_function(rule, &added, context),
            };
            hits.into_iter().take(MAX_FINDINGS).map(|hit| Finding {
                rule: rule.name,
                level: hit.level,
                line: hit.line,
                excerpt: hit.excerpt,
            })
        })
        .collect();
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.level), finding.line));
    findings
}

/// The rule of this name.
#[must_use]
pub fn rule(name: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.name == name)
}

/// The rules with their patterns compiled; `None` for those that look with a function.
static COMPILED: LazyLock<Vec<(&'static Rule, Option<Regex>)>> = LazyLock::new(|| {
    rules()
        .map(|rule| {
            (
                rule,
                rule.pattern().and_then(|pattern| Regex::new(&pattern).ok()),
            )
        })
        .collect()
});

fn by_pattern(rule: &Rule, pattern: &Regex, added: &Added<'_>) -> Vec<Hit> {
    let mut hits: Vec<Hit> = Vec::new();
    // Several matches on one line are one finding; the bound keeps the time linear.
    for found in pattern.find_iter(added.text()).take(4 * MAX_FINDINGS) {
        let (line, text) = added.line_at(found.start());
        if hits.last().is_some_and(|hit| hit.line == Some(line)) {
            continue;
        }
        let forbidden = prohibition::precedes(added.text(), found.start());
        hits.push(Hit {
            line: Some(line),
            excerpt: excerpt(text),
            level: if forbidden {
                rule.level.min(Level::Warning)
            } else {
                rule.level
            },
        });
    }
    hits
}

fn by_function(rule: &Rule, added: &Added<'_>, context: &Context<'_>) -> Vec<Hit> {
    let rules::Matcher::Function(look) = rule.matcher else {
        return Vec::new();
    };
    look(added, context)
        .into_iter()
        .map(|(line, excerpt)| Hit {
            line,
            excerpt: self::excerpt(&excerpt),
            level: rule.level,
        })
        .collect()
}

fn excerpt(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_EXCERPT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
