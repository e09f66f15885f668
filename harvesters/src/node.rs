//! A tolerant view of a JSON value: every field is optional and may have any type.
//!
//! Readers never ask what a value is, they ask for what they can use. All access to
//! log records goes through [`Node`], so that the parser behind it can change.
//!
//! Behind it is a [`Tape`]: the values of a text in the order of the text, one entry
//! each, which say how far a list or an object reaches. Texts are places in the text that
//! was read, except those with escapes in them. So a record costs no memory of its own:
//! the tape of one is used again for the next. What a reader says it never looks at
//! ([`Skip`]) is passed over without an entry. [`Json`] is a value that is kept.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Mutex;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::json;

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
    length: u32,
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
        Node((!self.entries.is_empty()).then_some(Place {
            text,
            tape: self,
            at: 0,
        }))
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
    Text(std::borrow::Cow<'a, str>),
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
        let mut tape = Tape::default();
        if self.is_there() {
            tape.copy(self);
        }
        Json(tape)
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
