//! Commands that go on in the background, in releases that the agent had to ask how they
//! went (`BashOutput`); later ones send a notice.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::redact::Redacted;

/// The calls that started such commands, by the id that the program gave each.
#[derive(Default)]
pub(super) struct Background(HashMap<String, Redacted>);

// The program makes the ids, of ASCII: all languages' letters would be eighty copies of their
// tables to compile.
type Pattern = LazyLock<Option<Regex>>;
static STARTED: Pattern =
    LazyLock::new(|| Regex::new(r"(?-u)running in background with ID: ([\w-]{1,80})").ok());
static ASKED: Pattern =
    LazyLock::new(|| Regex::new(r#"(?-u)"(?:bash_id|shell_id|task_id)":"([\w-]{1,80})""#).ok());
static ENDED: Pattern = LazyLock::new(|| Regex::new(r"<exit_code>(-?\d{1,10})</exit_code>").ok());

impl Background {
    /// A call started a command.
    pub(super) fn started(&mut self, call: &Redacted, output: &str) {
        if let Some(id) = first(&STARTED, output) {
            self.0.insert(id.to_owned(), call.clone());
        }
    }

    /// The call whose command ended, and with which code, when another call asked for that.
    pub(super) fn ended(&self, arguments: &str, output: &str) -> Option<(&Redacted, i32)> {
        if self.0.is_empty() {
            return None;
        }
        let call = self.0.get(first(&ASKED, arguments)?)?;
        let code = first(&ENDED, output)?.parse().ok()?;
        Some((call, code))
    }
}

fn first<'t>(pattern: &Pattern, text: &'t str) -> Option<&'t str> {
    Some(pattern.as_ref()?.captures(text)?.get(1)?.as_str())
}
