//! What the deviations refer to about projects in scope, and about phrases in a text.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::Vector;

/// The conditions of deviations about scope and feedback.
pub(super) fn holds(name: &str, vector: &Vector, ours: &Value) -> Option<bool> {
    let (input, expected) = (&vector.input, &vector.expected);
    Some(match name {
        "phrase_in_a_word" => expected
            .as_array()
            .is_some_and(|signals| signals.iter().any(|signal| !at_a_word(input, signal))),
        "signals_at_words" => {
            let known: Vec<Value> = expected.as_array().cloned().unwrap_or_default();
            let apostrophe = |signal: &Value| signal.as_str().is_some_and(|s| s.contains('\''));
            let mut ours: Vec<Value> = ours.as_array().cloned().unwrap_or_default();
            ours.retain(|signal| {
                known.contains(signal) || !(apostrophe(signal) && at_a_word(input, signal))
            });
            ours == known
                .into_iter()
                .filter(|signal| at_a_word(input, signal))
                .collect::<Vec<_>>()
        }
        "typographic_apostrophe" => input["text"]
            .as_str()
            .unwrap_or_default()
            .contains(['’', '‘']),
        "project_is_above" => {
            let wanted = wanted_folders(input);
            let project = resolved(input["project"].as_str().unwrap_or_default());
            let is_above = |folder: &PathBuf| *folder != project && folder.starts_with(&project);
            wanted.iter().any(is_above)
        }
        "project_is_below" => {
            let project = resolved(input["project"].as_str().unwrap_or_default());
            let mut wanted = wanted_folders(input).into_iter();
            wanted.any(|folder| project != folder && project.starts_with(folder))
        }
        "project_is_unknown" => input["project"] == "",
        _ => return None,
    })
}

/// Whether a signal's phrase stands at the beginning of a word of the text. A person's own phrases
/// count wherever they stand.
fn at_a_word(input: &Value, signal: &Value) -> bool {
    let plain = |text: &Value| {
        let text = text.as_str().unwrap_or_default().to_lowercase();
        text.replace(['\u{2019}', '\u{2018}', '\u{2bc}'], "'")
    };
    let (said, signal) = (plain(&input["text"]), plain(signal));
    let (tone, phrase) = signal.split_once(':').unwrap_or(("", &signal));
    let own = match tone {
        "neg" => plain(&input["extra_negative"]),
        _ => plain(&input["extra_positive"]),
    };
    own.split(',').any(|own| own.trim() == phrase)
        || said.match_indices(phrase).any(|(at, _)| {
            let before = said[..at].chars().next_back();
            before.is_none_or(|letter| !letter.is_alphanumeric())
        })
}

/// A path as the system would resolve it if it had no links.
pub(super) fn resolved(path: &str) -> PathBuf {
    let mut resolved = PathBuf::from("/");
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            part => resolved.push(part),
        }
    }
    resolved
}

/// The folders that an input's scope asks for.
fn wanted_folders(input: &Value) -> Vec<PathBuf> {
    let wanted = match input["scope"].as_array() {
        Some(listed) => listed.clone(),
        None => vec![input["invoked_project"].clone()],
    };
    let wanted = wanted.iter().filter_map(Value::as_str);
    wanted
        .filter(|path| !path.is_empty())
        .map(resolved)
        .collect()
}
