//! The state of a chat after all changes in its log.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::tape::Json;

/// Members of the state that matter. What is typed and not sent is not among them.
const WANTED: &[&str] = &[
    "sessionId",
    "creationDate",
    "lastMessageDate",
    "customTitle",
    "requests",
];
/// A change deeper than this is none.
const DEEPEST: usize = 64;
/// A text longer than this is kept by its ends only.
const LONGEST_TEXT: usize = 1 << 20;
/// What is kept of a long text, at either end. More than the door looks at.
const KEPT: usize = 128 * 1024;
/// The changes to one chat that are kept, in bytes; with more it is given up.
const MOST: usize = 512 << 20;

/// A chat as it is after the changes so far.
#[derive(Default)]
pub(super) struct State {
    members: Map<String, Value>,
    /// Where each request was written first, by id.
    offsets: HashMap<String, u64>,
    taken: usize,
}

impl State {
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether it is too large to be kept.
    pub(super) fn is_full(&self) -> bool {
        self.taken > MOST
    }

    /// A member of the state, taken out; null if it has none.
    pub(super) fn take_member(&mut self, name: &str) -> Json {
        Json::from(&self.members.remove(name).unwrap_or_default())
    }

    /// Where a request stands.
    pub(super) fn offset(&self, id: &str) -> u64 {
        self.offsets.get(id).copied().unwrap_or_default()
    }

    /// Applies one line; tells whether it was a change.
    pub(super) fn apply(&mut self, offset: u64, record: &Value) -> bool {
        let value = record.get("v");
        let path: Vec<&Value> = record.get("k").map(list).into_iter().flatten().collect();
        match record.get("kind").and_then(Value::as_i64) {
            Some(0) => match value {
                Some(value) if value.is_object() => self.start(offset, value),
                _ => return false,
            },
            Some(1) => self.set(offset, &path, value),
            Some(2) => self.append(
                offset,
                &path,
                value,
                record.get("i").and_then(Value::as_u64),
            ),
            Some(3) => {
                if let Some((last, path)) = path.split_last()
                    && let Some(parent) = self.find(path)
                {
                    delete(parent, last);
                }
            }
            _ => return false,
        }
        true
    }

    /// A whole state in place of the one so far.
    pub(super) fn start(&mut self, offset: u64, state: &Value) {
        self.members.clear();
        for name in WANTED {
            if let Some(value) = state.get(name) {
                let value = self.take(value);
                self.note(offset, name, &value);
                self.members.insert((*name).to_owned(), value);
            }
        }
    }

    fn set(&mut self, offset: u64, path: &[&Value], value: Option<&Value>) {
        let (Some((last, parents)), Some(value)) = (path.split_last(), value) else {
            return;
        };
        if !is_wanted(path) || self.is_full() {
            return;
        }
        let value = self.take(value);
        if parents.is_empty() {
            let name = last.as_str().unwrap_or_default();
            self.note(offset, name, &value);
            self.members.insert(name.to_owned(), value);
        } else if let Some(parent) = self.find(parents) {
            match (parent, last.as_str(), last.as_u64()) {
                (Value::Object(members), Some(name), _) => {
                    members.insert(name.to_owned(), value);
                }
                (Value::Array(items), _, Some(index)) => {
                    let index = usize::try_from(index).unwrap_or(usize::MAX);
                    if index < items.len() {
                        items[index] = value;
                    } else if index == items.len() {
                        items.push(value);
                    }
                }
                _ => {}
            }
        }
    }

    /// Cuts a list at an index, if one is given, and adds to it.
    fn append(&mut self, offset: u64, path: &[&Value], value: Option<&Value>, cut: Option<u64>) {
        if !is_wanted(path) || self.is_full() {
            return;
        }
        let added: Vec<Value> = value
            .map(list)
            .into_iter()
            .flatten()
            .map(|value| self.take(value))
            .collect();
        if let [name] = path {
            let name = name.as_str().unwrap_or_default();
            for value in &added {
                self.note_request(offset, name, value);
            }
            let list = self
                .members
                .entry(name)
                .or_insert_with(|| Value::Array(Vec::new()));
            extend(list, cut, added);
            return;
        }
        let Some((last, parents)) = path.split_last() else {
            return;
        };
        let Some(parent) = self.find(parents) else {
            return;
        };
        match (parent, last.as_str(), last.as_u64()) {
            (Value::Object(members), Some(name), _) => {
                let list = members
                    .entry(name)
                    .or_insert_with(|| Value::Array(Vec::new()));
                extend(list, cut, added);
            }
            (Value::Array(items), _, Some(index)) => {
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                if let Some(list) = items.get_mut(index) {
                    extend(list, cut, added);
                }
            }
            _ => {}
        }
    }

    /// The value at a path.
    fn find(&mut self, path: &[&Value]) -> Option<&mut Value> {
        if path.len() > DEEPEST {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let mut value = self.members.get_mut(first.as_str()?)?;
        for key in rest {
            value = match value {
                Value::Object(members) => members.get_mut(key.as_str()?)?,
                Value::Array(items) => items.get_mut(usize::try_from(key.as_u64()?).ok()?)?,
                _ => return None,
            };
        }
        Some(value)
    }

    fn note(&mut self, offset: u64, name: &str, value: &Value) {
        for request in list(value) {
            self.note_request(offset, name, request);
        }
    }

    fn note_request(&mut self, offset: u64, name: &str, request: &Value) {
        let id = request.get("requestId").and_then(Value::as_str);
        if let Some(id) = id.filter(|id| name == "requests" && !id.is_empty()) {
            self.offsets.entry(id.to_owned()).or_insert(offset);
        }
    }

    /// A copy of a value to be kept.
    fn take(&mut self, value: &Value) -> Value {
        let mut value = value.clone();
        self.taken = self.taken.saturating_add(trim(&mut value));
        value
    }
}

/// The elements of a list; none when it is none.
fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Whether a change concerns something that matters.
fn is_wanted(path: &[&Value]) -> bool {
    path.first()
        .and_then(|name| name.as_str())
        .is_some_and(|name| WANTED.contains(&name))
}

fn extend(list: &mut Value, cut: Option<u64>, added: Vec<Value>) {
    if let Value::Array(items) = list {
        if let Some(cut) = cut {
            items.truncate(usize::try_from(cut).unwrap_or(usize::MAX));
        }
        items.extend(added);
    }
}

fn delete(parent: &mut Value, key: &Value) {
    match (parent, key.as_str(), key.as_u64()) {
        (Value::Object(members), Some(name), _) => {
            members.remove(name);
        }
        (Value::Array(items), _, Some(index)) => {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            if index < items.len() {
                items.remove(index);
            }
        }
        _ => {}
    }
}

/// Cuts the middle out of very long texts (pictures); returns the size of the rest. A
/// value is not deeper than the parser allows.
fn trim(value: &mut Value) -> usize {
    const NODE: usize = 32;
    NODE + match value {
        Value::String(text) => {
            if text.len() > LONGEST_TEXT {
                let head = text.floor_char_boundary(KEPT);
                let tail = text.ceil_char_boundary(text.len() - KEPT);
                *text = format!("{}\n[…]\n{}", &text[..head], &text[tail..]);
            }
            text.len()
        }
        Value::Array(items) => items.iter_mut().map(trim).sum(),
        Value::Object(members) => members
            .iter_mut()
            .map(|(key, value)| key.len() + trim(value))
            .sum(),
        _ => 0,
    }
}
