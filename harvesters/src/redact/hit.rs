//! Whether a keyword that occurs can belong to a secret at all. `key` and `token` are in
//! every other text; a look at the few bytes behind them spares the pattern a walk over
//! all of it. A test may only say no where the rule's pattern cannot match.

/// A test of a keyword's surroundings.
pub(crate) type Near = fn(Hit<'_>) -> bool;

/// A keyword that was found.
#[derive(Clone, Copy)]
pub(crate) struct Hit<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl<'a> Hit<'a> {
    fn after(self) -> &'a [u8] {
        &self.text[self.end..]
    }
}

/// No test.
pub(crate) fn anywhere(_: Hit<'_>) -> bool {
    true
}

/// At least so many letters and digits follow.
pub(crate) fn letters_follow<const COUNT: usize>(hit: Hit<'_>) -> bool {
    hit.after()
        .get(..COUNT)
        .is_some_and(|bytes| bytes.iter().all(u8::is_ascii_alphanumeric))
}

/// The rest of a name, closing quotes, and a sign that a value comes.
pub(crate) fn assigned(hit: Hit<'_>) -> bool {
    let Some(rest) = after_name(hit.after()) else {
        return false;
    };
    let rest = skip(rest, |byte| byte == b'\\');
    let rest = rest
        .strip_prefix(b"\"")
        .or(rest.strip_prefix(b"'"))
        .unwrap_or(rest);
    let rest = skip(rest, is_space);
    matches!(rest.first(), Some(b'=' | b':' | b'%'))
}

/// The rest of a name and an equals sign.
pub(crate) fn in_query(hit: Hit<'_>) -> bool {
    after_name(hit.after()).is_some_and(|rest| rest.first() == Some(&b'='))
}

/// The rest of a word, white space, and a value that is no word.
pub(crate) fn spoken(hit: Hit<'_>) -> bool {
    let after = hit.after();
    let is_api = hit.text[hit.start..hit.end].eq_ignore_ascii_case(b"api");
    let rest = if is_api {
        let name = match after.first() {
            Some(b'_' | b' ' | b'-') => &after[1..],
            _ => after,
        };
        match name.get(..3) {
            Some(key) if key.eq_ignore_ascii_case(b"key") => &name[3..],
            _ => return false,
        }
    } else {
        skip(after, |byte| byte.is_ascii_alphabetic())
    };
    let value = skip(rest, is_space);
    if value.len() == rest.len() {
        return false;
    }
    let behind_is = match value.get(..2) {
        Some(verb) if verb.eq_ignore_ascii_case(b"is") => Some(skip(&value[2..], is_space)),
        _ => None,
    };
    is_no_word(value) || behind_is.is_some_and(is_no_word)
}

/// Whether a value stands here, perhaps quoted, that is no plain word.
fn is_no_word(text: &[u8]) -> bool {
    const SHORTEST: usize = 6;
    const LONG_WORD: usize = 16;
    let text = match text.first() {
        Some(b'"' | b'\'' | b'`') => &text[1..],
        _ => text,
    };
    let length = text
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"_./+=:@!#$%^*-".contains(byte))
        .count();
    let value = &text[..length];
    length >= SHORTEST
        && (length >= LONG_WORD
            || value
                .iter()
                .any(|byte| byte.is_ascii_digit() || b"_+=@#!%".contains(byte)))
}

/// What follows the rest of a name; none when no name is that long.
fn after_name(text: &[u8]) -> Option<&[u8]> {
    const LONGEST: usize = 32;
    let rest = skip(text, |byte| {
        byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
    });
    (text.len() - rest.len() <= LONGEST).then_some(rest)
}

fn skip(text: &[u8], wanted: impl Fn(u8) -> bool) -> &[u8] {
    let count = text.iter().take_while(|byte| wanted(**byte)).count();
    &text[count..]
}

/// White space as the patterns see it.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}
