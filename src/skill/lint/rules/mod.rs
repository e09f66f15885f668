//! The table of rules, one file a family.

mod checks;
mod commands;
mod document;
mod network;
mod permissions;
mod secrets;
mod words;

use super::added::Added;
use super::{Context, Level};

/// One thing to look for.
pub struct Rule {
    /// Its name, by which a person allows it.
    pub name: &'static str,
    /// How much its findings matter.
    pub level: Level,
    /// What is wrong with what it finds, in one sentence.
    pub explanation: &'static str,
    /// Added text in which it finds something.
    pub examples: &'static [&'static str],
    /// Added text, alike, in which it finds nothing.
    pub counter_examples: &'static [&'static str],
    pub(super) matcher: Matcher,
}

/// How a rule looks.
pub(super) enum Matcher {
    /// For any of these patterns; case does not matter.
    Patterns(&'static [&'static str]),
    /// With a function: lines and excerpts.
    Function(Look),
}

/// Gives places: a line of the proposed text, when it is about one, and what is there.
pub(super) type Look = fn(&Added<'_>, &Context<'_>) -> Vec<(Option<usize>, String)>;

impl Rule {
    /// All patterns as one. Classes and word boundaries are those of ASCII: the text that is
    /// searched has only plain blanks, and the automata stay a tenth of the size.
    pub(super) fn pattern(&self) -> Option<String> {
        let Matcher::Patterns(patterns) = self.matcher else {
            return None;
        };
        let pattern = ASCII_CLASSES
            .iter()
            .fold(patterns.join("|"), |pattern, (class, ascii)| {
                pattern.replace(class, ascii)
            });
        Some(format!("(?im)(?:{pattern})"))
    }
}

const ASCII_CLASSES: &[(&str, &str)] = &[
    (r"\b", "(?-u:\\b)"),
    (r"\s", "[\t\n\r ]"),
    (r"\S", "[^\t\n\r \0]"),
    (r"\w", "[0-9A-Za-z_]"),
    (r"\d", "[0-9]"),
];

/// All rules.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [
        commands::RULES,
        permissions::RULES,
        checks::RULES,
        words::RULES,
        network::RULES,
        secrets::RULES,
        document::RULES,
    ]
    .into_iter()
    .flatten()
}
