//! Mending an object that almost parses.
//!
//! The slips that models make: trailing, doubled and missing commas, raw line breaks in strings,
//! quotes that were not escaped, single or typographic quotes, comments, Python's literals, bad
//! escapes, numbers that JSON does not write so, an ellipsis for "and so on". Only a complete
//! object is mended, never one that was cut off; what a mended text cannot say stays out.

use serde_json::{Map, Number, Value};

/// How deep a value may nest.
const MOST_NESTING: usize = 96;

/// How far a quotation mark looks ahead to tell whether it closes its string.
const LOOKAHEAD: usize = 256;

/// The object in the text, mended; `None` when it is empty or beyond mending.
pub(super) fn mend(text: &str) -> Option<Value> {
    let mut mender = Mender { text, at: 0 };
    mender.skip_blanks();
    if mender.peek() != Some('{') {
        return None;
    }
    match mender.object(0, Place::Member)? {
        Value::Object(object) if object.is_empty() => None,
        value => Some(value),
    }
}

struct Mender<'a> {
    text: &'a str,
    at: usize,
}

/// Where a string stands, which decides what may follow its closing quote.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Key,
    Member,
    Element,
}

impl Mender<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn step(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Blanks and comments.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            let skipped = rest.len() - trimmed.len();
            let comment = if let Some(inside) = trimmed.strip_prefix("/*") {
                inside.find("*/").map_or(trimmed.len(), |end| end + 4)
            } else if trimmed.starts_with("//") || trimmed.starts_with('#') {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else {
                0
            };
            self.at += skipped + comment;
            if comment == 0 {
                return;
            }
        }
    }

    fn object(&mut self, depth: usize, place: Place) -> Option<Value> {
        if depth > MOST_NESTING {
            return None;
        }
        self.step();
        let mut members = Map::new();
        loop {
            self.skip_separators();
            match self.peek()? {
                '}' => {
                    self.step();
                    return Some(Value::Object(members));
                }
                // A list's bracket where a brace should be: the list around has ended, if there is
                // one; otherwise the bracket is one too many.
                ']' if place == Place::Element => return Some(Value::Object(members)),
                ']' => {
                    self.step();
                    continue;
                }
                ':' => {
                    self.step();
                    continue;
                }
                _ => {}
            }
            let key = self.key()?;
            self.skip_blanks();
            if self.peek() == Some(':') {
                self.step();
            }
            self.skip_blanks();
            let value = match self.peek()? {
                ',' | '}' => Value::String(String::new()),
                _ => self.value(depth, Place::Member)?,
            };
            if !key.is_empty() {
                members.insert(key, value);
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        if depth > MOST_NESTING {
            return None;
        }
        self.step();
        let mut elements = Vec::new();
        loop {
            self.skip_separators();
            match self.peek()? {
                ']' => {
                    self.step();
                    return Some(Value::Array(elements));
                }
                // A brace where a bracket should be: the object around has ended.
                '}' => return Some(Value::Array(elements)),
                ':' => {
                    self.step();
                }
                _ => elements.push(self.value(depth, Place::Element)?),
            }
        }
    }

    /// Blanks, commas, and dots that stand for "and so on".
    fn skip_separators(&mut self) {
        loop {
            self.skip_blanks();
            if self.peek() == Some(',') || self.peek() == Some('…') {
                self.step();
            } else if self.rest().starts_with("...") {
                self.at += 3;
            } else {
                return;
            }
        }
    }

    fn value(&mut self, depth: usize, place: Place) -> Option<Value> {
        match self.peek()? {
            '{' => self.object(depth + 1, place),
            '[' => self.array(depth + 1),
            c if closing_quote(c).is_some() => self.string(place).map(Value::String),
            _ => Some(self.bare()),
        }
    }

    fn key(&mut self) -> Option<String> {
        if self.peek().and_then(closing_quote).is_some() {
            return self.string(Place::Key);
        }
        let rest = self.rest();
        let end = rest
            .find([':', '"', ',', '}', '{', '[', ']', '\n'])
            .unwrap_or(rest.len());
        let key = rest[..end].trim().to_owned();
        self.at += end;
        match self.peek() {
            // The opening quote was forgotten.
            Some('"') => {
                self.step();
            }
            Some('{' | '[' | ']') if key.is_empty() => {
                self.step();
            }
            _ => {}
        }
        Some(key)
    }

    /// A word or number without quotes.
    fn bare(&mut self) -> Value {
        let rest = self.rest();
        let end = rest
            .find([',', '}', ']', '\n', '{', '[', '"'])
            .unwrap_or(rest.len());
        let mut word = &rest[..end];
        for comment in ["/*", "//", "#"] {
            word = word.split(comment).next().unwrap_or(word);
        }
        let first = word.split_whitespace().next().unwrap_or_default();
        // A number ends at a blank; words belong together.
        let word = if number(first).is_some() {
            first
        } else {
            word.trim_end()
        };
        let start = rest.find(word).unwrap_or(0);
        let length = start + word.len();
        let value = literal(word.trim());
        // Something must be consumed, or a stray character would be met for ever.
        self.at += if length == 0 {
            rest.chars().next().map_or(0, char::len_utf8)
        } else {
            length
        };
        value
    }

    fn string(&mut self, place: Place) -> Option<String> {
        let close = self.step().and_then(closing_quote)?;
        let mut text = String::new();
        loop {
            match self.step()? {
                '\\' => self.escape(&mut text)?,
                c if c == close && self.closes(place) => return Some(text),
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Option<()> {
        match self.step()? {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            c @ ('"' | '\\' | '/' | '\'') => text.push(c),
            'u' => match self.code_unit() {
                Some(unit) => self.push_unit(unit, text),
                None => text.push_str("\\u"),
            },
            // Not an escape: a backslash that was meant as one.
            c => {
                text.push('\\');
                text.push(c);
            }
        }
        Some(())
    }

    fn push_unit(&mut self, unit: u16, text: &mut String) {
        let mut units = vec![unit];
        if (0xd800..0xdc00).contains(&unit) && self.rest().starts_with("\\u") {
            let before = self.at;
            self.at += 2;
            match self.code_unit() {
                Some(low) if (0xdc00..0xe000).contains(&low) => units.push(low),
                _ => self.at = before,
            }
        }
        text.push_str(&String::from_utf16_lossy(&units));
    }

    fn code_unit(&mut self) -> Option<u16> {
        let digits = self
            .rest()
            .get(..4)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let unit = u16::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(unit)
    }

    /// Whether the quote just read ends its string, by what follows it.
    fn closes(&self, place: Place) -> bool {
        let rest = clip(self.rest(), LOOKAHEAD);
        let after = rest.trim_start();
        let Some(next) = after.chars().next() else {
            return true;
        };
        match (place, next) {
            (Place::Key, _) => next == ':' || after.len() < rest.len() || !next.is_alphanumeric(),
            (_, '}' | ']') => true,
            (_, '/' | '#') => after.starts_with("/*") || after.starts_with("//") || next == '#',
            (Place::Member, ',') => {
                let after = after.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
                after.is_empty()
                    || after.starts_with(['}', ']', '.', '/', '#'])
                    || starts_key(after)
            }
            (Place::Element, ',') => true,
            (Place::Member, _) => closing_quote(next).is_some() && starts_key(after),
            (Place::Element, _) => {
                after.len() < rest.len() && (closing_quote(next).is_some() || next == '{')
            }
        }
    }
}

/// Whether the text starts with something that reads as a member's key: quoted or bare, then a
/// colon.
fn starts_key(text: &str) -> bool {
    let mut chars = text.chars();
    let Some(first) = chars.next() else {
        return false;
    };
    let body = match closing_quote(first) {
        Some(close) => {
            let rest = chars.as_str();
            let Some((_, after)) = rest.split_once(close) else {
                return false;
            };
            after
        }
        None => text
            .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_' || c == '-')
            .trim_start_matches('"'),
    };
    body.len() < text.len() && body.trim_start().starts_with(':')
}

/// The quote that closes a string opened by this one.
fn closing_quote(open: char) -> Option<char> {
    match open {
        '"' => Some('"'),
        '\'' => Some('\''),
        '“' => Some('”'),
        '‘' => Some('’'),
        _ => None,
    }
}

fn literal(word: &str) -> Value {
    match word.to_ascii_lowercase().as_str() {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        // JSON has no number for these; they say that there is no value.
        "null" | "none" | "nan" | "infinity" | "-infinity" => Value::Null,
        _ => number(word).unwrap_or_else(|| Value::String(word.to_owned())),
    }
}

/// Numbers as JSON writes them, and with a plus sign, leading zeros, or nothing before or after
/// the point.
fn number(word: &str) -> Option<Value> {
    if !word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
        || !word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'))
    {
        return None;
    }
    if let Ok(whole) = word.parse::<i64>() {
        return Some(whole.into());
    }
    Number::from_f64(word.parse().ok()?).map(Value::Number)
}

fn clip(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_usual_slips_are_mended() {
        for (text, value) in [
            ("{\"a\":[1,2,],}", json!({"a": [1, 2]})),
            ("{\"a\":1,,\"b\":2}", json!({"a": 1, "b": 2})),
            ("{\"a\" 1}", json!({"a": 1})),
            ("{\"a\":\"x\"\n\"b\":\"y\"}", json!({"a": "x", "b": "y"})),
            (
                "{\"a\":\"the \"best\" rule\",\"x\":1}",
                json!({"a": "the \"best\" rule", "x": 1}),
            ),
            (
                "{\"a\":\"say \"x\", then go\",\"x\":1}",
                json!({"a": "say \"x\", then go", "x": 1}),
            ),
            ("{\"a\":\"\\d+\"}", json!({"a": "\\d+"})),
            ("{\"a\": 'b', \"c\": “d”}", json!({"a": "b", "c": "d"})),
            (
                "{\"a\":True /* c */, # d\n\"b\":None}",
                json!({"a": true, "b": null}),
            ),
            ("{\"a\":{b\": \"c\"}}", json!({"a": {"b": "c"}})),
            ("{\"a\":[1, 2, ...], ...}", json!({"a": [1, 2]})),
            (
                "{\"a\":+1,\"b\":.5,\"c\":007}",
                json!({"a": 1, "b": 0.5, "c": 7}),
            ),
            ("{\"a\":[\"x\" \"y\"]}", json!({"a": ["x", "y"]})),
            ("{\"a\":[1]],\"b\":2}", json!({"a": [1], "b": 2})),
            (
                "{\"a\":[{\"b\":1],\"c\":2}",
                json!({"a": [{"b": 1}], "c": 2}),
            ),
            (
                "{\"a\":1 // one\n,\"b\":'it's'}",
                json!({"a": 1, "b": "it's"}),
            ),
        ] {
            assert_eq!(mend(text), Some(value), "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let text = format!("{{\"a\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
        assert_eq!(mend(&text), None);
    }

    #[test]
    fn nothing_is_made_of_nothing() {
        assert_eq!(mend("{,}"), None);
        assert_eq!(mend("{\"a\":1"), None);
    }
}
