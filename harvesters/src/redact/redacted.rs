//! Text that was redacted, as a type: all that a [`Session`](crate::Session) can be made of.
//!
//! A reader that forgot the door would not compile. Raw text becomes [`Redacted`] in this
//! module alone, by [`Redactor::redacted`] or by the door that readers use, which also cuts
//! it to length:
//!
//! ```
//! use skillopt_harvesters::{Redactor, Session};
//!
//! let title = Redactor::new().redacted("deploy with STRIPE_KEY=sk_live_4eC39HqLyjWDarjtT1zdp7dc");
//! assert!(title.starts_with("deploy with STRIPE_KEY=[redacted:"));
//! let session = Session { title: Some(title), ..Session::default() };
//! ```
//!
//! Text as it is in a log has no way in:
//!
//! ```compile_fail,E0308
//! # use skillopt_harvesters::Session;
//! let raw = String::from("as it is in the log");
//! let session = Session { title: Some(raw), ..Session::default() };
//! ```
//!
//! ```compile_fail,E0277
//! # use skillopt_harvesters::Redacted;
//! let raw = String::from("as it is in the log");
//! let text: Redacted = raw.into();
//! ```
//!
//! What comes of redacted text without raw text stays redacted: a part of it
//! ([`Redacted::part`]), several joined. Anything else that is made of it (quotes removed,
//! control codes left out) is a plain `String` and is redacted again, since taking
//! something out can put the halves of a secret together. Reading it back from JSON is
//! allowed: what this program wrote down was redacted before.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::Redactor;

/// Text without secrets. It reads, compares, hashes and is written to JSON like the text
/// that it is.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Redacted(String);

impl Redactor {
    /// The text without its secrets, as sessions hold it. A `String` without any is kept as
    /// it is, not copied.
    #[must_use]
    pub fn redacted(&self, raw: impl Into<String>) -> Redacted {
        let raw = raw.into();
        match self.replaced(&raw) {
            None => Redacted(raw),
            Some(redacted) => Redacted(redacted),
        }
    }
}

impl Redacted {
    /// No text.
    pub(crate) const EMPTY: Redacted = Redacted(String::new());

    /// Words of this program's own: what stands in its source comes out of no log.
    pub(crate) fn own(words: &'static str) -> Self {
        Redacted(words.to_owned())
    }

    /// What the door let through.
    pub(super) fn by_door(text: String) -> Self {
        Redacted(text)
    }

    /// A part of the text. `pick` can return nothing but a piece of what it is given (or a
    /// constant): its signature sees to that.
    #[must_use]
    pub fn part(&self, pick: impl for<'a> FnOnce(&'a str) -> &'a str) -> Self {
        Redacted(pick(&self.0).to_owned())
    }

    /// The text without white space around it; not copied when there is none.
    #[must_use]
    pub fn trimmed(self) -> Self {
        match self.0.trim().len() == self.0.len() {
            true => self,
            false => self.part(str::trim),
        }
    }

    /// Several texts as one.
    pub(crate) fn joined(texts: &[&Redacted], separator: &'static str) -> Self {
        let texts: Vec<&str> = texts.iter().map(|text| text.as_str()).collect();
        Redacted(texts.join(separator))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, moved out.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Deref for Redacted {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Redacted {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// It hashes and compares as `str` does: a map of it can be asked for a `&str`.
impl Borrow<str> for Redacted {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

impl fmt::Debug for Redacted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl PartialEq<str> for Redacted {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Redacted {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<String> for Redacted {
    fn eq(&self, other: &String) -> bool {
        self.0 == *other
    }
}

impl PartialEq<Redacted> for str {
    fn eq(&self, other: &Redacted) -> bool {
        self == other.0
    }
}

impl PartialEq<Redacted> for &str {
    fn eq(&self, other: &Redacted) -> bool {
        *self == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";

    #[test]
    fn secrets_are_gone_and_the_rest_is_as_it_was() {
        let text = Redactor::new().redacted(format!("key {SECRET} here"));
        assert!(!text.contains(SECRET), "{text}");
        assert!(text.starts_with("key [redacted:") && text.ends_with("] here"));
        assert_eq!(
            Redactor::new().redacted("nothing to hide"),
            "nothing to hide"
        );
    }

    #[test]
    fn text_without_secrets_is_moved_and_not_copied() {
        let raw = "nothing to hide".to_owned();
        let place = raw.as_ptr();
        let text = Redactor::new().redacted(raw).trimmed().into_string();
        assert_eq!(text.as_ptr(), place);
    }

    #[test]
    fn in_json_it_is_the_text_alone() {
        let text = Redactor::new().redacted(" a \"b\" ").trimmed();
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(json, r#""a \"b\"""#);
        assert_eq!(serde_json::from_str::<Redacted>(&json).unwrap(), text);
        assert_eq!(format!("{text} {text:?}"), r#"a "b" "a \"b\"""#);
    }

    #[test]
    fn a_map_of_it_is_asked_with_plain_text() {
        let names = std::collections::HashSet::from([Redacted::own("one")]);
        assert!(names.contains("one") && !names.contains("two"));
    }

    #[test]
    fn parts_and_joined_texts_stay_redacted() {
        let text = Redactor::new().redacted("one two");
        let two = text.part(|text| text.split_once(' ').map_or("", |(_, two)| two));
        assert_eq!(two, "two");
        assert_eq!(Redacted::joined(&[&two, &text], "\n"), "two\none two");
    }
}
