//! The door through which text leaves a reader: redacted first, cut afterwards.
//!
//! Raw text goes in, [`Redacted`] comes out; sessions take nothing else. The methods differ
//! in how much of a text they keep. What a reader makes up of several raw texts (a path and
//! its folder, a name and its arguments) goes in as one.

use std::borrow::Cow;

use serde_json::Value;

use super::{Redacted, Redactor};
use crate::node::{Node, View};
use crate::path;

/// How long texts may be that are kept, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextLimits {
    /// A prompt.
    pub prompt: usize,
    /// An answer.
    pub answer: usize,
    /// A command line.
    pub command: usize,
    /// A tool's arguments.
    pub arguments: usize,
    /// A tool's result, head and tail together.
    pub result: usize,
    /// Everything else: paths, titles, machine texts.
    pub note: usize,
}

impl Default for TextLimits {
    fn default() -> Self {
        TextLimits {
            prompt: 16_000,
            answer: 16_000,
            command: 4_000,
            arguments: 500,
            result: 2_000,
            note: 1_000,
        }
    }
}

/// Text up to this size is redacted whole; of longer text, both ends.
const WHOLE: usize = 32 * 1024;
/// Redacted but not kept, at the inner edges of the two ends: a secret that the cut
/// halves lies here.
const MARGIN: usize = 8 * 1024;
/// Output that is looked at for signs of failing and passing, in characters.
const OUTPUT: usize = 8_000;
/// Stands between head and tail.
const GAP: &str = "\n[…]\n";

/// Redacts and cuts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door<'a> {
    pub(crate) redactor: &'a Redactor,
    pub(crate) limits: &'a TextLimits,
}

impl Door<'_> {
    /// A prompt.
    pub(crate) fn prompt(self, raw: &str) -> Redacted {
        Redacted::by_door(self.head(raw.trim(), self.limits.prompt))
    }

    /// An answer or remark.
    pub(crate) fn answer(self, raw: &str) -> Redacted {
        Redacted::by_door(self.head(raw.trim(), self.limits.answer))
    }

    /// A command line, white space kept.
    pub(crate) fn command(self, raw: &str) -> Redacted {
        Redacted::by_door(self.head(raw, self.limits.command))
    }

    /// A title, a name, a machine text.
    pub(crate) fn note(self, raw: &str) -> Redacted {
        Redacted::by_door(self.head(raw.trim(), self.limits.note))
    }

    /// A path, made absolute by the folder that it is relative to.
    pub(crate) fn path(self, raw: &str, folder: Option<&str>) -> Redacted {
        self.note(&path::absolute(raw.trim(), folder))
    }

    /// The id of a session, a call, a thread: what records are known to each other by. It
    /// stands in sessions and may hold a secret like any other text, so it goes through the
    /// door wherever it is read, and ids are compared as they come out.
    pub(crate) fn id(self, raw: &str) -> Redacted {
        self.note(raw)
    }

    /// A note out of text that went through the door already.
    pub(crate) fn shorten(self, text: &Redacted) -> Redacted {
        text.part(|text| cut(text.trim(), self.limits.note))
    }

    /// Cuts output that went through the door already to what is kept.
    pub(crate) fn keep(self, output: Redacted) -> Redacted {
        let limit = self.limits.result;
        if !is_longer(&output, limit) {
            return output;
        }
        Redacted::by_door(Self::both_ends(&output, &output, limit))
    }

    /// What a command printed: both ends, long enough to judge it by. Kept only until
    /// the session is put together.
    pub(crate) fn output(self, raw: &str) -> Redacted {
        Redacted::by_door(self.ends(raw, OUTPUT))
    }

    /// A tool's arguments. Long members are cut first to what can matter, so that a
    /// written file of megabytes is not redacted for the sake of 500 characters.
    pub(crate) fn arguments(self, raw: Node<'_>) -> Redacted {
        let limit = self.limits.arguments;
        Redacted::by_door(match raw.view() {
            View::Null => String::new(),
            View::Text(text) => self.head(text.trim(), limit),
            _ => cut(&self.brief(raw, 0).to_string(), limit).to_owned(),
        })
    }

    /// The value with redacted, shortened texts.
    fn brief(self, value: Node<'_>, depth: usize) -> Value {
        const DEEPEST: usize = 4;
        const MOST_ITEMS: usize = 12;
        match value.view() {
            View::Text(text) => Value::String(self.head(text, self.limits.arguments)),
            View::List | View::Object if depth >= DEEPEST => Value::String("…".to_owned()),
            View::List => value
                .list()
                .take(MOST_ITEMS)
                .map(|item| self.brief(item, depth + 1))
                .collect(),
            View::Object => Value::Object(
                value
                    .members()
                    .take(MOST_ITEMS)
                    .map(|(key, member)| {
                        let member = self.brief(member, depth + 1);
                        let key = self.head(key, self.limits.arguments);
                        // The texts in it are redacted; the name alone may hide all of it.
                        let member = match super::hides(&key, &member) {
                            true => super::hidden(),
                            false => member,
                        };
                        (key, member)
                    })
                    .collect(),
            ),
            View::Null => Value::Null,
            View::Bool(flag) => Value::Bool(flag),
            View::Int(number) => Value::from(number),
            View::Float(number) => Value::from(number),
        }
    }

    /// The redacted beginning of a text.
    fn head(self, raw: &str, limit: usize) -> String {
        let window = cut_bytes(raw, limit * 4 + 2 * MARGIN);
        let redacted = self.redactor.redact(window);
        let safe = if window.len() < raw.len() {
            cut_bytes(&redacted, redacted.len().saturating_sub(MARGIN))
        } else {
            &redacted
        };
        cut(safe, limit).to_owned()
    }

    /// The redacted beginning and end of a text.
    fn ends(self, raw: &str, limit: usize) -> String {
        if raw.len() > WHOLE {
            return Self::both_ends(&self.first_part(raw), &self.last_part(raw), limit);
        }
        let redacted = self.redactor.redact(raw);
        if !is_longer(&redacted, limit) {
            return redacted.into_owned();
        }
        Self::both_ends(&redacted, &redacted, limit)
    }

    fn both_ends(head: &str, tail: &str, limit: usize) -> String {
        let half = limit / 2;
        format!("{}{GAP}{}", cut(head, half), cut_front(tail, half))
    }

    /// The redacted first part of a long text, without the margin at its end.
    fn first_part<'a>(self, raw: &'a str) -> Cow<'a, str> {
        let redacted = self.redactor.redact(cut_bytes(raw, WHOLE / 2));
        let safe = redacted.len().saturating_sub(MARGIN);
        Cow::Owned(cut_bytes(&redacted, safe).to_owned())
    }

    /// The redacted last part of a long text, without the margin at its beginning.
    fn last_part<'a>(self, raw: &'a str) -> Cow<'a, str> {
        let from = ceil_boundary(raw, raw.len() - WHOLE / 2);
        let redacted = self.redactor.redact(&raw[from..]);
        let safe = ceil_boundary(&redacted, MARGIN.min(redacted.len()));
        Cow::Owned(redacted[safe..].to_owned())
    }
}

/// Whether a text has more than `limit` characters.
fn is_longer(text: &str, limit: usize) -> bool {
    text.len() > limit && text.chars().count() > limit
}

/// The first `limit` characters.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    // A text has no more characters than bytes, and mostly as many.
    match text.as_bytes().get(..limit) {
        None => return text,
        Some(head) if head.is_ascii() => return &text[..limit],
        Some(_) => {}
    }
    text.char_indices()
        .nth(limit)
        .map_or(text, |(end, _)| &text[..end])
}

/// The last `limit` characters.
fn cut_front(text: &str, limit: usize) -> &str {
    if limit == 0 {
        return "";
    }
    match text.len().checked_sub(limit) {
        None => return text,
        Some(from) if text.as_bytes()[from..].is_ascii() => return &text[from..],
        Some(_) => {}
    }
    text.char_indices()
        .rev()
        .nth(limit - 1)
        .map_or(text, |(start, _)| &text[start..])
}

/// At most `limit` bytes from the beginning.
fn cut_bytes(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// The next character boundary.
fn ceil_boundary(text: &str, at: usize) -> usize {
    text.ceil_char_boundary(at)
}
