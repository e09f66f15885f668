//! A tolerant view of a JSON value: every field is optional and may have any type.
//!
//! Readers never ask what a value is, they ask for what they can use. All access to
//! log records goes through [`Node`], so that the parser behind it can change.
//!
//! The value behind it, [`Json`], borrows from the line wherever it can, and what a
//! reader says it never looks at ([`Skip`]) is passed over without being built.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Whether the member `key` of the object that stands under the name `parent` is never
/// looked at. Elements of a list stand under the list's name.
pub(crate) type Skip = fn(parent: &str, key: &str) -> bool;

/// Skips nothing.
pub(crate) fn keep_all(_: &str, _: &str) -> bool {
    false
}

/// A JSON value that borrows from the text that it was read from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    /// Members in the order of the text. Of members with one name the last counts.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl Json<'_> {
    /// Whether it is an object.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Json::Object(_))
    }

    /// The same, borrowing nothing.
    pub(crate) fn into_owned(self) -> Json<'static> {
        let text = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Json::Null => Json::Null,
            Json::Bool(flag) => Json::Bool(flag),
            Json::Int(number) => Json::Int(number),
            Json::Float(number) => Json::Float(number),
            Json::Text(value) => Json::Text(text(value)),
            Json::List(items) => Json::List(items.into_iter().map(Json::into_owned).collect()),
            Json::Object(members) => Json::Object(
                members
                    .into_iter()
                    .map(|(key, member)| (text(key), member.into_owned()))
                    .collect(),
            ),
        }
    }
}

/// The order of an object's members makes no difference to its hash.
impl Hash for Json<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Json::Null => {}
            Json::Bool(flag) => flag.hash(state),
            Json::Int(number) => number.hash(state),
            Json::Float(number) => number.to_bits().hash(state),
            Json::Text(text) => text.hash(state),
            Json::List(items) => items.hash(state),
            Json::Object(members) => {
                let sum = members.iter().fold(0_u64, |sum, member| {
                    let mut hasher = std::hash::DefaultHasher::new();
                    member.hash(&mut hasher);
                    sum.wrapping_add(hasher.finish())
                });
                sum.hash(state);
            }
        }
    }
}

impl From<Value> for Json<'static> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Json::Null,
            Value::Bool(flag) => Json::Bool(flag),
            Value::Number(number) => match number.as_i64() {
                Some(number) => Json::Int(number),
                None => Json::Float(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Json::Text(Cow::Owned(text)),
            Value::Array(items) => Json::List(items.into_iter().map(Json::from).collect()),
            Value::Object(members) => Json::Object(
                members
                    .into_iter()
                    .map(|(key, member)| (Cow::Owned(key), Json::from(member)))
                    .collect(),
            ),
        }
    }
}

impl<'de: 'a, 'a> serde::Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Reading::all_but(keep_all).deserialize(deserializer)
    }
}

/// Reads a value, leaving out what is skipped.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'k> {
    skip: Skip,
    /// The name that the value stands under; empty at the top.
    name: &'k str,
}

impl Reading<'static> {
    /// A whole record without the skipped members.
    pub(crate) fn all_but(skip: Skip) -> Self {
        Reading { skip, name: "" }
    }
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = Json<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json<'de>, E> {
        Ok(Json::Int(number))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a count above the range of i64 is not used as one"
    )]
    fn visit_u64<E>(self, number: u64) -> Result<Json<'de>, E> {
        Ok(i64::try_from(number).map_or(Json::Float(number as f64), Json::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json<'de>, E> {
        Ok(Json::Float(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = map.next_key_seed(Key)? {
            if (self.skip)(self.name, &key) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let member = map.next_value_seed(Reading {
                skip: self.skip,
                name: &key,
            })?;
            members.push((key, member));
        }
        Ok(Json::Object(members))
    }
}

/// Reads a member's name.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a member's name")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// A value that may be missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a>(Option<&'a Json<'a>>);

impl<'a> Node<'a> {
    /// A view of a parsed value.
    pub(crate) fn of(value: &'a Json<'a>) -> Self {
        Node(Some(value))
    }

    /// The member of that name; missing when this is no object.
    pub(crate) fn get(self, key: &str) -> Node<'a> {
        Node(match self.0 {
            Some(Json::Object(members)) => members
                .iter()
                .rev()
                .find(|(name, _)| name == key)
                .map(|(_, member)| member),
            _ => None,
        })
    }

    /// The member at the end of a path of names.
    pub(crate) fn at(self, path: &[&str]) -> Node<'a> {
        path.iter().fold(self, |node, key| node.get(key))
    }

    /// Text, if it is text.
    pub(crate) fn str(self) -> Option<&'a str> {
        match self.0 {
            Some(Json::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Text that is not empty.
    pub(crate) fn text(self) -> Option<&'a str> {
        self.str().filter(|text| !text.is_empty())
    }

    /// A whole number, also when written with a fraction of zero or as text.
    pub(crate) fn int(self) -> Option<i64> {
        match self.0? {
            Json::Int(number) => Some(*number),
            Json::Float(number) => whole(*number),
            Json::Text(text) => text.trim().parse().ok(),
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
        match self.0? {
            Json::Int(number) => Some(*number as f64),
            Json::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// Whether it is literally true.
    pub(crate) fn is_true(self) -> bool {
        matches!(self.0, Some(Json::Bool(true)))
    }

    /// Whether there is something that is not null.
    pub(crate) fn is_some(self) -> bool {
        !matches!(self.0, None | Some(Json::Null))
    }

    /// Whether it is an object.
    pub(crate) fn is_object(self) -> bool {
        self.0.is_some_and(Json::is_object)
    }

    /// Its elements; none when it is no list.
    pub(crate) fn list(self) -> impl DoubleEndedIterator<Item = Node<'a>> {
        match self.0 {
            Some(Json::List(items)) => items.as_slice(),
            _ => &[],
        }
        .iter()
        .map(Node::of)
    }

    /// Its members; none when it is no object.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        match self.0 {
            Some(Json::Object(members)) => members.as_slice(),
            _ => &[],
        }
        .iter()
        .map(|(key, value)| (&**key, Node::of(value)))
    }

    /// The value itself.
    pub(crate) fn value(self) -> Option<&'a Json<'a>> {
        self.0
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
