//! The quick way from a line to a [`Json`].
//!
//! Logs are JSON as programs write it: valid, without white space to speak of, most of
//! it in a few long texts. So long texts are searched for their end many bytes at a time,
//! and what is skipped is checked and not built. Whatever is unusual is left to `serde_json`, which
//! knows what is wrong with it: what this parser takes, `serde_json` takes for the same value.

use std::borrow::Cow;

use crate::tape::{Entry, Skip, Span, Tape, number_of};

/// Deeper nesting is left to `serde_json`, which ends at 127.
const DEEPEST: usize = 100;

/// Reads the value that a text is onto a tape, without what is skipped. None when that is
/// not easily told; what is on the tape is nothing then.
pub(crate) fn parse(text: &str, skip: Skip, tape: &mut Tape) -> Option<()> {
    tape.prepare(text.len());
    if has_control_characters(text.as_bytes()) {
        return None;
    }
    let mut parser = Parser {
        text,
        at: 0,
        skip,
        tape,
    };
    parser.value("", 0)?;
    parser.pass_space();
    (parser.at == text.len()).then_some(())
}

/// Bytes that no text may have in it. (White space between values may; few do.)
fn has_control_characters(bytes: &[u8]) -> bool {
    const PIECE: usize = 1024;
    bytes
        .chunks(PIECE)
        .any(|piece| piece.iter().fold(b' ', |least, byte| least.min(*byte)) < b' ')
}

/// Reads a text from left to right.
struct Parser<'t, 'p> {
    text: &'t str,
    at: usize,
    skip: Skip,
    tape: &'p mut Tape,
}

impl<'t> Parser<'t, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes beyond a byte that must be there.
    fn pass(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn pass_space(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    /// The value that begins here and stands under that name.
    fn value(&mut self, name: &str, depth: usize) -> Option<()> {
        self.pass_space();
        let entry = match self.peek()? {
            b'"' => self.string()?,
            b'{' => return self.object(name, depth + 1),
            b'[' => return self.list(name, depth + 1),
            b't' => self.word("true", Entry::Bool(true))?,
            b'f' => self.word("false", Entry::Bool(false))?,
            b'n' => self.word("null", Entry::Null)?,
            _ => self.number()?,
        };
        self.tape.entries.push(entry);
        Some(())
    }

    fn word(&mut self, word: &str, value: Entry) -> Option<Entry> {
        let there = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        there.then(|| {
            self.at += word.len();
            value
        })
    }

    fn object(&mut self, name: &str, depth: usize) -> Option<()> {
        let at = self.tape.open();
        self.each_of(b'{', b'}', depth, |parser| {
            parser.pass_space();
            let entry = parser.string()?;
            let key = parser.text_of(entry);
            parser.pass_space();
            parser.pass(b':')?;
            if (parser.skip)(name, &key) {
                return parser.skip_value(depth);
            }
            parser.tape.entries.push(entry);
            parser.value(&key, depth)
        })?;
        self.tape.close(at, Entry::Object);
        Some(())
    }

    fn list(&mut self, name: &str, depth: usize) -> Option<()> {
        let at = self.tape.open();
        self.each_of(b'[', b']', depth, |parser| parser.value(name, depth))?;
        self.tape.close(at, Entry::List);
        Some(())
    }

    /// The text of an entry, which outlives what is added to the tape.
    fn text_of(&self, entry: Entry) -> Cow<'t, str> {
        match entry {
            Entry::Read(span) => Cow::Borrowed(span.of(self.text)),
            Entry::Built(span) => Cow::Owned(span.of(&self.tape.texts).to_owned()),
            _ => Cow::Borrowed(""),
        }
    }

    /// Goes over a value, checking it.
    fn skip_value(&mut self, depth: usize) -> Option<()> {
        self.pass_space();
        match self.peek()? {
            b'"' => self.skip_string(),
            b'{' => self.each_of(b'{', b'}', depth + 1, |parser| {
                parser.pass_space();
                parser.skip_string()?;
                parser.pass_space();
                parser.pass(b':')?;
                parser.skip_value(depth + 1)
            }),
            b'[' => self.each_of(b'[', b']', depth + 1, |parser| parser.skip_value(depth + 1)),
            b't' => self.word("true", Entry::Null).map(drop),
            b'f' => self.word("false", Entry::Null).map(drop),
            b'n' => self.word("null", Entry::Null).map(drop),
            _ => self.number().map(drop),
        }
    }

    /// Goes over what stands between brackets with commas between.
    fn each_of(
        &mut self,
        open: u8,
        close: u8,
        depth: usize,
        mut each: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        self.pass(open)?;
        self.pass_space();
        if self.pass(close).is_some() {
            return Some(());
        }
        loop {
            each(self)?;
            self.pass_space();
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b',' => {}
                byte if byte == close => return Some(()),
                _ => return None,
            }
        }
    }

    /// Where the next quote or backslash is, from here on.
    fn next_special(&self) -> Option<usize> {
        // Most texts are short: a search of many bytes at a time costs more to begin.
        const SHORT: usize = 16;
        let rest = &self.text.as_bytes()[self.at..];
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\');
        let found = rest[..rest.len().min(SHORT)].iter().position(is_special);
        let found = match found {
            Some(found) => found,
            None => SHORT + memchr::memchr2(b'"', b'\\', rest.get(SHORT..)?)?,
        };
        Some(self.at + found)
    }

    /// A text; one with escapes is built among those of the tape.
    fn string(&mut self) -> Option<Entry> {
        self.pass(b'"')?;
        let start = self.at;
        self.at = self.next_special()?;
        if self.pass(b'"').is_some() {
            return Span::new(start..self.at - 1).map(Entry::Read);
        }
        let built = self.tape.texts.len();
        self.tape.texts.push_str(&self.text[start..self.at]);
        while self.pass(b'"').is_none() {
            let letter = self.escape()?;
            self.tape.texts.push(letter);
            let start = self.at;
            self.at = self.next_special()?;
            self.tape.texts.push_str(&self.text[start..self.at]);
        }
        Span::new(built..self.tape.texts.len()).map(Entry::Built)
    }

    fn skip_string(&mut self) -> Option<()> {
        self.pass(b'"')?;
        loop {
            self.at = self.next_special()?;
            if self.pass(b'"').is_some() {
                return Some(());
            }
            self.escape()?;
        }
    }

    /// The letter that an escape stands for. Half a surrogate pair is none.
    fn escape(&mut self) -> Option<char> {
        self.pass(b'\\')?;
        let kind = self.peek()?;
        self.at += 1;
        Some(match kind {
            b'n' => '\n',
            b'"' => '"',
            b'\\' => '\\',
            b't' => '\t',
            b'/' => '/',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let unit = self.code_unit()?;
                if !(0xD800..0xE000).contains(&unit) {
                    return char::from_u32(unit);
                }
                self.pass(b'\\')?;
                self.pass(b'u')?;
                let low = self.code_unit()?;
                if unit >= 0xDC00 || !(0xDC00..0xE000).contains(&low) {
                    return None;
                }
                char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00))?
            }
            _ => return None,
        })
    }

    fn code_unit(&mut self) -> Option<u32> {
        const DIGITS: usize = 4;
        let digits = self.text.as_bytes().get(self.at..self.at + DIGITS)?;
        self.at += DIGITS;
        digits.iter().try_fold(0, |unit, digit| {
            Some(unit << 4 | char::from(*digit).to_digit(16)?)
        })
    }

    fn number(&mut self) -> Option<Entry> {
        // So many digits fit in an `i64` in any case.
        const MOST_DIGITS: usize = 18;
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let length = rest
            .iter()
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .count();
        let number = &self.text[start..start + length];
        self.at += length;
        let digits = number.strip_prefix('-').unwrap_or(number);
        let is_plain = digits.len() <= MOST_DIGITS
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && digits.starts_with(|first: char| matches!(first, '1'..='9'));
        if is_plain || number == "0" {
            return number.parse().ok().map(Entry::Int);
        }
        serde_json::from_str(number).ok().as_ref().map(number_of)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::node::{Node, View};
    use crate::tape::keep_all;

    fn skip_x(parent: &str, key: &str) -> bool {
        key == "x" || parent == "only" && key != "kept"
    }

    fn by_serde(text: &str, skip: Skip) -> Option<String> {
        let mut tape = Tape::default();
        tape.read_slowly(text, skip).ok()?;
        Some(format!("{:?}", Shown(tape.beside(text))))
    }

    fn quickly(text: &str, skip: Skip) -> Option<String> {
        let mut tape = Tape::default();
        parse(text, skip, &mut tape)?;
        Some(format!("{:?}", Shown(tape.beside(text))))
    }

    /// Shows a value with the order and the repetitions of its members.
    struct Shown<'a>(Node<'a>);

    impl std::fmt::Debug for Shown<'_> {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            match self.0.view() {
                View::List => formatter
                    .debug_list()
                    .entries(self.0.list().map(Shown))
                    .finish(),
                View::Object => formatter
                    .debug_list()
                    .entries(self.0.members().map(|(key, member)| (key, Shown(member))))
                    .finish(),
                view => view.fmt(formatter),
            }
        }
    }

    #[test]
    fn what_programs_write_is_read_the_quick_way() {
        for text in [
            r#"{"a":"b","c":[1,-2,3.5,true,false,null,{}],"d":{"e":"x\n\"y\" \u00e9 \ud83d\ude00"}}"#,
            r#"{"x":{"deep":["\\",{"y":[]}]},"only":{"kept":1,"other":"\""},"n":[{"x":1}]}"#,
            r#" { "a" : [ 0 , 123456789012345678901 , 1e3 ] } "#,
            r#""日本語 and a text that is longer than sixteen bytes""#,
        ] {
            assert_eq!(quickly(text, skip_x), by_serde(text, skip_x), "{text}");
            assert!(quickly(text, skip_x).is_some(), "{text}");
            assert_eq!(quickly(text, keep_all), by_serde(text, keep_all), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_not_taken() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "01",
            "-",
            "1.",
            "nul",
            "\"\\ud800\"",
            "\"\\x\"",
            "\"a\tb\"",
            "[1] 2",
            "\"\\u12\"",
            "\"abc",
            "{\"x\":\"\\q\"}",
            "{\"x\":[1}}",
            "\"\\",
            "+1",
            ".5",
        ] {
            assert_eq!(quickly(text, skip_x), None, "{text}");
            assert_eq!(by_serde(text, keep_all), None, "{text}");
        }
    }

    /// Values with keys that are skipped among them.
    fn values() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            any::<u64>().prop_map(serde_json::Value::from),
            any::<f64>().prop_map(serde_json::Value::from),
            any::<String>().prop_map(serde_json::Value::from),
            "[a\"\\\\\n]{0,40}".prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let key = prop_oneof![
                proptest::sample::select(vec!["x", "only", "kept", "a"]).prop_map(str::to_owned),
                any::<String>(),
            ];
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
                proptest::collection::vec((key, inner), 0..5)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_is_read_as_serde_reads_it(value in values()) {
            let text = value.to_string();
            prop_assert!(quickly(&text, skip_x).is_some());
            prop_assert_eq!(quickly(&text, skip_x), by_serde(&text, skip_x));
        }

        #[test]
        fn what_is_taken_of_a_damaged_text_is_what_serde_takes(
            value in values(),
            at in any::<prop::sample::Index>(),
            piece in "[\"\\\\{}\\[\\],:0-9eu. -]{0,3}",
        ) {
            let mut text = value.to_string();
            let at = text.floor_char_boundary(at.index(text.len()));
            let end = text.ceil_char_boundary(at + 1);
            text.replace_range(at..end, &piece);
            if let Some(value) = quickly(&text, skip_x) {
                prop_assert_eq!(Some(value), by_serde(&text, skip_x));
            }
        }
    }
}
