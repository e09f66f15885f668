//! What a JSON text is read into: a [`Tape`], the values of the text in its order, one entry
//! each, which say how far a list or an object reaches.
//!
//! Texts are places in the text that was read, except those with escapes in them. So a record
//! costs no memory of its own: the tape of one is used again for the next. What a reader says
//! it never looks at ([`Skip`]) is passed over without an entry. [`Json`] is a value that is
//! kept. Both are looked at through a [`Node`].

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Mutex;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::json;
use crate::node::{Node, View};

/// Whether the member `key` of the object that stands under the name `parent` is never
/// looked at. Elements of a list stand under the list's name.
pub(crate) type Skip = fn(parent: &str, key: &str) -> bool;

/// Skips nothing.
pub(crate) fn keep_all(_: &str, _: &str) -> bool {
    false
}

/// A value, or a member's name before its value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// A text as it stands in what was read.
    Read(Span),
    /// A text that is among the tape's own.
    Built(Span),
    /// Elements follow, up to the entry of that number.
    List(usize),
    /// Names and values follow, up to the entry of that number.
    Object(usize),
}

/// Where a text is: its first byte and how many there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: u32,
    pub(crate) length: u32,
}

impl Span {
    /// None for texts beyond 4 GiB, of which no line has one.
    pub(crate) fn new(place: Range<usize>) -> Option<Self> {
        Some(Span {
            start: u32::try_from(place.start).ok()?,
            length: u32::try_from(place.len()).ok()?,
        })
    }

    pub(crate) fn of(self, text: &str) -> &str {
        let start = self.start as usize;
        &text[start..start + self.length as usize]
    }
}

/// What a tape keeps for itself.
const MUCH: usize = 1 << 20;
/// The memory of a long text, for the next one.
static SPARE_TEXTS: Mutex<String> = Mutex::new(String::new());

/// Lets go of the memory that is kept for long texts.
pub(crate) fn release() {
    if let Ok(mut spare) = SPARE_TEXTS.lock() {
        *spare = String::new();
    }
}

/// What a text was read into. Its memory is used again for the next text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    pub(crate) entries: Vec<Entry>,
    /// Texts that do not stand in what was read as they are.
    pub(crate) texts: String,
}

impl Tape {
    /// Reads a text, leaving out what is skipped.
    ///
    /// # Errors
    /// When it is not JSON; says what is wrong with it.
    pub(crate) fn read<'a>(
        &'a mut self,
        text: &'a str,
        skip: Skip,
    ) -> Result<Node<'a>, serde_json::Error> {
        if json::parse(text, skip, self).is_none() {
            self.read_slowly(text, skip)?;
        }
        Ok(self.beside(text))
    }

    /// Reads with `serde_json` what the quick parser leaves to it.
    pub(crate) fn read_slowly(&mut self, text: &str, skip: Skip) -> Result<(), serde_json::Error> {
        self.clear();
        let mut parser = serde_json::Deserializer::from_str(text);
        self.fill(&mut parser, skip)?;
        parser.end()
    }

    fn fill<'de, D: Deserializer<'de>>(&mut self, parser: D, skip: Skip) -> Result<(), D::Error> {
        Reading {
            skip,
            name: "",
            tape: self,
        }
        .deserialize(parser)
    }

    /// The value on it, which was read from that text.
    pub(crate) fn beside<'a>(&'a self, text: &'a str) -> Node<'a> {
        Node::first(text, self)
    }

    /// Makes it empty. Of its memory little is kept for the next text; much goes where the
    /// next long text finds it, on whatever tape.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.entries.shrink_to(MUCH / size_of::<Entry>());
        self.texts.clear();
        if self.texts.capacity() > MUCH {
            let texts = std::mem::take(&mut self.texts);
            if let Ok(mut spare) = SPARE_TEXTS.try_lock() {
                *spare = texts;
            }
        }
    }

    /// Makes ready for a text of that length.
    pub(crate) fn prepare(&mut self, length: usize) {
        self.clear();
        if length > MUCH
            && let Ok(mut spare) = SPARE_TEXTS.try_lock()
        {
            self.texts = std::mem::take(&mut *spare);
            // No more than that can come; it is had from the system as it is written to.
            self.texts.reserve(length);
        }
    }

    /// Adds a text of its own.
    fn build(&mut self, text: &str) {
        let start = self.texts.len();
        self.texts.push_str(text);
        let span = Span::new(start..self.texts.len());
        self.entries.push(span.map_or(Entry::Null, Entry::Built));
    }

    /// Begins a list or an object; the entry that [`Tape::close`] is told.
    pub(crate) fn open(&mut self) -> usize {
        self.entries.push(Entry::Null);
        self.entries.len() - 1
    }

    /// Ends what began at that entry.
    pub(crate) fn close(&mut self, at: usize, container: fn(usize) -> Entry) {
        self.entries[at] = container(self.entries.len());
    }

    /// Adds a copy of a value.
    fn copy(&mut self, node: Node<'_>) {
        match node.view() {
            View::Null => self.entries.push(Entry::Null),
            View::Bool(flag) => self.entries.push(Entry::Bool(flag)),
            View::Int(number) => self.entries.push(Entry::Int(number)),
            View::Float(number) => self.entries.push(Entry::Float(number)),
            View::Text(text) => self.build(text),
            View::List => {
                let at = self.open();
                node.list().for_each(|item| self.copy(item));
                self.close(at, Entry::List);
            }
            View::Object => {
                let at = self.open();
                for (key, member) in node.members() {
                    self.build(key);
                    self.copy(member);
                }
                self.close(at, Entry::Object);
            }
        }
    }

    /// Adds a value of `serde_json`'s.
    fn add(&mut self, value: &Value) {
        match value {
            Value::Null => self.entries.push(Entry::Null),
            Value::Bool(flag) => self.entries.push(Entry::Bool(*flag)),
            Value::Number(number) => self.entries.push(number_of(number)),
            Value::String(text) => self.build(text),
            Value::Array(items) => {
                let at = self.open();
                items.iter().for_each(|item| self.add(item));
                self.close(at, Entry::List);
            }
            Value::Object(members) => {
                let at = self.open();
                for (key, member) in members {
                    self.build(key);
                    self.add(member);
                }
                self.close(at, Entry::Object);
            }
        }
    }
}

/// A number. A count above the range of `i64` is not used as one.
pub(crate) fn number_of(number: &serde_json::Number) -> Entry {
    match number.as_i64() {
        Some(number) => Entry::Int(number),
        None => Entry::Float(number.as_f64().unwrap_or_default()),
    }
}

/// A value that is kept: all its texts are its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Json(Tape);

impl Json {
    /// Reads a text.
    ///
    /// # Errors
    /// When it is not JSON; says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        Tape::default().read(text, keep_all).map(Node::to_json)
    }

    /// A text, as a value.
    pub(crate) fn text(text: &str) -> Self {
        let mut tape = Tape::default();
        tape.build(text);
        Json(tape)
    }

    /// An object with these members, of which each value is a single entry or a text.
    pub(crate) fn object<'m>(members: impl IntoIterator<Item = (&'m str, Scalar<'m>)>) -> Self {
        let mut tape = Tape::default();
        let at = tape.open();
        for (key, member) in members {
            tape.build(key);
            match member {
                Scalar::Null => tape.entries.push(Entry::Null),
                Scalar::Int(number) => tape.entries.push(Entry::Int(number)),
                Scalar::Float(number) => tape.entries.push(Entry::Float(number)),
                Scalar::Text(text) => tape.build(&text),
            }
        }
        tape.close(at, Entry::Object);
        Json(tape)
    }

    /// A view of it; missing for one without a value.
    pub(crate) fn node(&self) -> Node<'_> {
        self.0.beside("")
    }
}

impl From<Node<'_>> for Json {
    fn from(node: Node<'_>) -> Self {
        let mut tape = Tape::default();
        if node.is_there() {
            tape.copy(node);
        }
        Json(tape)
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        let mut tape = Tape::default();
        tape.add(value);
        Json(tape)
    }
}

/// A value without others in it.
pub(crate) enum Scalar<'a> {
    Null,
    Int(i64),
    Float(f64),
    Text(Cow<'a, str>),
}

/// Reads a value onto a tape, leaving out what is skipped.
struct Reading<'k> {
    skip: Skip,
    /// The name that the value stands under; empty at the top.
    name: &'k str,
    tape: &'k mut Tape,
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.tape.entries.push(Entry::Null);
        Ok(())
    }

    fn visit_bool<E>(self, flag: bool) -> Result<(), E> {
        self.tape.entries.push(Entry::Bool(flag));
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.tape.entries.push(Entry::Int(number));
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.tape.entries.push(number_of(&number.into()));
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.tape.entries.push(Entry::Float(number));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.tape.build(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let at = self.tape.open();
        loop {
            let item = Reading {
                skip: self.skip,
                name: self.name,
                tape: self.tape,
            };
            if list.next_element_seed(item)?.is_none() {
                break;
            }
        }
        self.tape.close(at, Entry::List);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let at = self.tape.open();
        while let Some(key) = map.next_key::<String>()? {
            if (self.skip)(self.name, &key) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            self.tape.build(&key);
            map.next_value_seed(Reading {
                skip: self.skip,
                name: &key,
                tape: self.tape,
            })?;
        }
        self.tape.close(at, Entry::Object);
        Ok(())
    }
}
