//! A tolerant view of a JSON value: every field is optional and may have any type.
//!
//! Readers never ask what a value is, they ask for what they can use. All access to
//! log records goes through [`Node`], so that the parser behind it can change.

use serde_json::Value;

/// A value that may be missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a>(Option<&'a Value>);

impl<'a> Node<'a> {
    /// A view of a parsed value.
    pub(crate) fn of(value: &'a Value) -> Self {
        Node(Some(value))
    }

    /// The member of that name; missing when this is no object.
    pub(crate) fn get(self, key: &str) -> Node<'a> {
        Node(self.0.and_then(|value| value.get(key)))
    }

    /// The member at the end of a path of names.
    pub(crate) fn at(self, path: &[&str]) -> Node<'a> {
        path.iter().fold(self, |node, key| node.get(key))
    }

    /// Text, if it is text.
    pub(crate) fn str(self) -> Option<&'a str> {
        self.0.and_then(Value::as_str)
    }

    /// Text that is not empty.
    pub(crate) fn text(self) -> Option<&'a str> {
        self.str().filter(|text| !text.is_empty())
    }

    /// A whole number, also when written with a fraction of zero or as text.
    pub(crate) fn int(self) -> Option<i64> {
        let value = self.0?;
        value
            .as_i64()
            .or_else(|| value.as_f64().and_then(whole))
            .or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()))
    }

    /// A count: a whole number that is not negative.
    pub(crate) fn count(self) -> Option<u64> {
        self.int().and_then(|number| u64::try_from(number).ok())
    }

    /// A number.
    pub(crate) fn float(self) -> Option<f64> {
        self.0.and_then(Value::as_f64)
    }

    /// Whether it is literally true.
    pub(crate) fn is_true(self) -> bool {
        self.0.and_then(Value::as_bool) == Some(true)
    }

    /// Whether there is something that is not null.
    pub(crate) fn is_some(self) -> bool {
        self.0.is_some_and(|value| !value.is_null())
    }

    /// Whether it is an object.
    pub(crate) fn is_object(self) -> bool {
        self.0.is_some_and(Value::is_object)
    }

    /// Its elements; none when it is no list.
    pub(crate) fn list(self) -> impl DoubleEndedIterator<Item = Node<'a>> {
        self.0
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .map(Node::of)
    }

    /// Its members; none when it is no object.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        self.0
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str(), Node::of(value)))
    }

    /// The value itself.
    pub(crate) fn value(self) -> Option<&'a Value> {
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
