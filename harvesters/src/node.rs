//! A tolerant view of a JSON value: every field is optional and may have any type.
//!
//! Readers never ask what a value is, they ask for what they can use. All access to
//! log records goes through [`Node`], so that the parser behind it can change.

use std::hash::{Hash, Hasher};
use std::ops::Range;

use serde_json::Value;

use crate::tape::{Entry, Json, Tape};

/// Where a value is: its entry on a tape, beside the text that was read.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    text: &'a str,
    tape: &'a Tape,
    at: usize,
}

impl<'a> Place<'a> {
    fn entry(self) -> Entry {
        self.tape.entries[self.at]
    }

    fn at(self, at: usize) -> Self {
        Place { at, ..self }
    }

    /// The entry behind this value.
    fn next(self) -> usize {
        match self.entry() {
            Entry::List(end) | Entry::Object(end) => end,
            _ => self.at + 1,
        }
    }

    /// The last member of that name.
    fn member(self, key: &str) -> Option<Self> {
        let Entry::Object(end) = self.entry() else {
            return None;
        };
        let mut found = None;
        let mut name = self.at(self.at + 1);
        while name.at < end {
            let member = self.at(name.at + 1);
            if name.is_text(key) {
                found = Some(member);
            }
            name = self.at(member.next());
        }
        found
    }

    /// Whether it is this text. Most are not, and that is seen by their length.
    fn is_text(self, text: &str) -> bool {
        match self.entry() {
            Entry::Read(span) | Entry::Built(span) if span.length as usize != text.len() => false,
            _ => self.str() == Some(text),
        }
    }

    fn str(self) -> Option<&'a str> {
        match self.entry() {
            Entry::Read(span) => Some(span.of(self.text)),
            Entry::Built(span) => Some(span.of(&self.tape.texts)),
            _ => None,
        }
    }

    /// The entries of a list or an object; none of anything else.
    fn inside(self) -> Range<usize> {
        match self.entry() {
            Entry::List(end) | Entry::Object(end) => self.at + 1..end,
            _ => 0..0,
        }
    }
}

/// What kind of value there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum View<'a> {
    /// Also when it is missing.
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
    List,
    Object,
}

/// A value that may be missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a>(Option<Place<'a>>);

impl<'a> Node<'a> {
    /// The first value on a tape that was read from that text; missing when there is none.
    pub(crate) fn first(text: &'a str, tape: &'a Tape) -> Self {
        let is_there = !tape.entries.is_empty();
        Node(is_there.then_some(Place { text, tape, at: 0 }))
    }

    /// What kind of value it is.
    pub(crate) fn view(self) -> View<'a> {
        let Some(place) = self.0 else {
            return View::Null;
        };
        match place.entry() {
            Entry::Null => View::Null,
            Entry::Bool(flag) => View::Bool(flag),
            Entry::Int(number) => View::Int(number),
            Entry::Float(number) => View::Float(number),
            Entry::Read(_) | Entry::Built(_) => View::Text(place.str().unwrap_or_default()),
            Entry::List(_) => View::List,
            Entry::Object(_) => View::Object,
        }
    }

    /// The member of that name, the last one if there are several; missing when this is
    /// no object.
    pub(crate) fn get(self, key: &str) -> Node<'a> {
        Node(self.0.and_then(|place| place.member(key)))
    }

    /// The member at the end of a path of names.
    pub(crate) fn at(self, path: &[&str]) -> Node<'a> {
        path.iter().fold(self, |node, key| node.get(key))
    }

    /// Text, if it is text.
    pub(crate) fn str(self) -> Option<&'a str> {
        self.0?.str()
    }

    /// Text that is not empty.
    pub(crate) fn text(self) -> Option<&'a str> {
        self.str().filter(|text| !text.is_empty())
    }

    /// A whole number, also when written with a fraction of zero or as text.
    pub(crate) fn int(self) -> Option<i64> {
        match self.view() {
            View::Int(number) => Some(number),
            View::Float(number) => whole(number),
            View::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// A count: a whole number that is not negative.
    pub(crate) fn count(self) -> Option<u64> {
        self.int().and_then(|number| u64::try_from(number).ok())
    }

    /// A number.
    #[expect(
        clippy::cast_precision_loss,
        reason = "measurements are far below the range that floats hold exactly"
    )]
    pub(crate) fn float(self) -> Option<f64> {
        match self.view() {
            View::Int(number) => Some(number as f64),
            View::Float(number) => Some(number),
            _ => None,
        }
    }

    /// Whether it is literally true.
    pub(crate) fn is_true(self) -> bool {
        self.view() == View::Bool(true)
    }

    /// Whether there is something that is not null.
    pub(crate) fn is_some(self) -> bool {
        self.view() != View::Null
    }

    /// Whether there is a value, be it null.
    pub(crate) fn is_there(self) -> bool {
        self.0.is_some()
    }

    /// Whether it is an object.
    pub(crate) fn is_object(self) -> bool {
        self.view() == View::Object
    }

    /// Its elements; none when it is no list.
    pub(crate) fn list(self) -> impl Iterator<Item = Node<'a>> {
        let list = self
            .0
            .filter(|place| matches!(place.entry(), Entry::List(_)));
        let mut inside = list.map_or(0..0, Place::inside);
        std::iter::from_fn(move || {
            let item = list?.at(inside.next()?);
            inside.start = item.next();
            Some(Node(Some(item)))
        })
    }

    /// Its members in the order of the text; none when it is no object.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        let object = self
            .0
            .filter(|place| matches!(place.entry(), Entry::Object(_)));
        let mut inside = object.map_or(0..0, Place::inside);
        std::iter::from_fn(move || {
            let key = object?.at(inside.next()?);
            let member = key.at(key.next());
            inside.start = member.next();
            Some((key.str().unwrap_or_default(), Node(Some(member))))
        })
    }

    /// A copy to keep.
    pub(crate) fn to_json(self) -> Json {
        Json::from(self)
    }

    /// The same as a value of `serde_json`'s.
    pub(crate) fn to_value(self) -> Value {
        match self.view() {
            View::Null => Value::Null,
            View::Bool(flag) => Value::from(flag),
            View::Int(number) => Value::from(number),
            View::Float(number) => Value::from(number),
            View::Text(text) => Value::from(text),
            View::List => self.list().map(Node::to_value).collect(),
            View::Object => self
                .members()
                .map(|(key, member)| (key.to_owned(), member.to_value()))
                .collect(),
        }
    }
}

/// The order of an object's members makes no difference to its hash.
impl Hash for Node<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let view = self.view();
        std::mem::discriminant(&view).hash(state);
        match view {
            View::Null => {}
            View::Bool(flag) => flag.hash(state),
            View::Int(number) => number.hash(state),
            View::Float(number) => number.to_bits().hash(state),
            View::Text(text) => text.hash(state),
            View::List => {
                state.write_usize(self.list().count());
                self.list().for_each(|item| item.hash(state));
            }
            View::Object => {
                let sum = self.members().fold(0_u64, |sum, member| {
                    let mut hasher = std::hash::DefaultHasher::new();
                    member.hash(&mut hasher);
                    sum.wrapping_add(hasher.finish())
                });
                sum.hash(state);
            }
        }
    }
}

/// A float that stands for a whole number.
#[expect(
    clippy::cast_possible_truncation,
    reason = "checked to be whole and in the range that floats hold exactly"
)]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9.0e15).then_some(number as i64)
}
