//! Whether a prompt judges what the agent did before it (session-logs.md, section 11).
//!
//! Whole words, the first sentences first. Praise must open the prompt or be all of it:
//! "thanks" at the end of a request is manners. Complaints are told from tasks by what
//! they refer to: "it still fails" looks back, "the total is wrong, fix it" is new work.

mod words;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use words::{
    ASKS, ASKS_FOR, BUT, DISAPPROVAL, DISAPPROVAL_ABROAD, GO_ON, POLITE, PRAISE, PRAISE_ABROAD,
    REBUTTAL, REVERT, matches,
};

/// Good or bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Polarity {
    /// The work was good.
    Positive,
    /// The work was not.
    #[default]
    Negative,
}

/// What came before a prompt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before<'a> {
    /// The person stopped the agent just before.
    pub(crate) interrupted: bool,
    /// What the person asked for earlier.
    pub(crate) asked: Option<&'a Asked>,
}

/// What a person asked for, to recognise it when it is asked for again.
#[derive(Debug, Default)]
pub(crate) struct Asked(HashSet<String>);

impl Asked {
    /// Notes a prompt.
    pub(crate) fn add(&mut self, prompt: &str) {
        self.0.insert(plain(prompt));
    }

    /// Whether a plain text was asked for before. Short ones are repeated without meaning it.
    fn has(&self, plain: &str) -> bool {
        const SHORTEST: usize = 20;
        plain.len() >= SHORTEST && self.0.contains(plain)
    }
}

/// The judgement in a prompt that is not the first of its session.
pub(crate) fn judge(prompt: &str, before: Before<'_>) -> Option<Polarity> {
    let text = plain(prompt);
    if text.is_empty() {
        return None;
    }
    let opening = opening(&text);
    let judges = !matches(&ASKS_FOR, opening);
    if judges && matches(&DISAPPROVAL, opening) || matches(&DISAPPROVAL_ABROAD, opening) {
        return Some(Polarity::Negative);
    }
    let praise = judges && matches(&PRAISE, opening) || matches(&PRAISE_ABROAD, opening);
    if praise {
        let but = matches(&BUT, &text);
        return Some(if but {
            Polarity::Negative
        } else {
            Polarity::Positive
        });
    }
    if before.interrupted && !matches(&GO_ON, opening) && !is_question(prompt) {
        return Some(Polarity::Negative);
    }
    let again = before.asked.is_some_and(|asked| asked.has(&text));
    again.then_some(Polarity::Negative)
}

/// Whether a prompt asks to take the work back.
pub(crate) fn asks_revert(prompt: &str) -> bool {
    matches(&REVERT, opening(&plain(prompt)))
}

/// Whether a prompt only asks for an answer, not for work.
pub(crate) fn is_question(prompt: &str) -> bool {
    let text = plain(prompt);
    if matches(&POLITE, &text) {
        return false;
    }
    let last = text
        .trim_end_matches(['"', '\'', ')', ' '])
        .split_inclusive(['.', '!', '?', '\n'])
        .rfind(|sentence| !sentence.trim().is_empty())
        .unwrap_or_default();
    last.trim_end().ends_with(['?', '？']) || !text.contains('?') && matches(&ASKS, &text)
}

/// Whether an answer shows that a complaint was unfounded.
pub(crate) fn rebuts(answer: &str) -> bool {
    matches(&REBUTTAL, opening(&plain(answer)))
}

/// Lower case, straight quotes, single spaces, without quoted code.
fn plain(text: &str) -> String {
    const ENOUGH: usize = 1_000;
    let text = crate::redact::cut(text.trim(), ENOUGH).to_lowercase();
    let text = text.replace(['’', '‘', '´'], "'");
    text.split([' ', '\t', '\r'])
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The first two sentences, or about as much.
fn opening(text: &str) -> &str {
    const MOST: usize = 200;
    let end = text
        .char_indices()
        .filter(|(_, letter)| matches!(letter, '!' | '?' | '\n' | '。' | '！'))
        .nth(1)
        .map_or(text.len(), |(position, letter)| {
            position + letter.len_utf8()
        });
    crate::redact::cut(&text[..end], MOST)
}

#[cfg(test)]
mod tests;
