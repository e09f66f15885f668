//! Whether a keyword that occurs can belong to a secret at all. `key` and `token` are in
//! every other text; a look at the few bytes behind them spares the pattern a walk over
//! all of it. A test may only say no where the rule's pattern cannot match.

/// No name is longer.
const LONGEST_NAME: usize = 32;
/// A test looks no further; beyond, its answer is yes.
const FAR: usize = 2_048;

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
    fn before(self) -> &'a [u8] {
        &self.text[..self.start]
    }

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

/// The beginning of a name, behind what parts the parameters of an address.
pub(crate) fn in_query(hit: Hit<'_>) -> bool {
    let name = ending(hit.before(), LONGEST_NAME, is_name);
    let before = &hit.before()[..hit.start - name.len()];
    matches!(before.last(), Some(b'?' | b'&'))
}

/// A name that dashes lead in, and the end of it.
pub(crate) fn flagged(hit: Hit<'_>) -> bool {
    let is_flag = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let lead = ending(hit.before(), LONGEST_NAME, is_flag);
    let rest = skip(hit.after(), |byte| byte.is_ascii_alphabetic());
    let ends = rest
        .first()
        .is_some_and(|byte| is_space(*byte) || b"=\"'".contains(byte));
    ends && (lead.first() == Some(&b'-') || lead.len() == LONGEST_NAME)
}

/// The rest of a header's name and its colon.
pub(crate) fn headed(hit: Hit<'_>) -> bool {
    let after = hit.after();
    let name = beginning(after, FAR, |byte| {
        byte.is_ascii_alphanumeric() || byte == b'-'
    });
    if name.len() == FAR {
        return true;
    }
    let rest = skip(&after[name.len()..], |byte| byte == b'\\');
    let rest = rest
        .strip_prefix(b"\"")
        .or(rest.strip_prefix(b"'"))
        .unwrap_or(rest);
    skip(rest, is_space).first() == Some(&b':')
}

/// An option later in the same command.
pub(crate) fn with_option(hit: Hit<'_>) -> bool {
    let after = &hit.after()[..hit.after().len().min(FAR)];
    for pair in after.windows(2) {
        if is_space(pair[0]) && pair[1] == b'-' {
            return true;
        }
        if matches!(pair[0], b'\n' | b'|' | b';') {
            return false;
        }
    }
    after.len() == FAR
}

/// An `@` later in the same address.
pub(crate) fn with_user(hit: Hit<'_>) -> bool {
    let address = beginning(hit.after(), FAR, |byte| {
        !is_space(byte) && !b"\"'`<>\\".contains(&byte)
    });
    address.len() == FAR || memchr::memchr(b'@', address).is_some()
}

/// Perhaps what kind of code it is, a sign that it comes, and a digit.
pub(crate) fn digits_come(hit: Hit<'_>) -> bool {
    let after = hit.after();
    let parted = match after.first() {
        Some(b' ' | b'-') => &after[1..],
        _ => after,
    };
    let kinds: [&[u8]; 5] = [b"", b"code", b"password", b"passcode", b"pin"];
    [after, parted].into_iter().any(|rest| {
        kinds.iter().any(|kind| {
            let named = rest
                .get(..kind.len())
                .is_some_and(|name| name.eq_ignore_ascii_case(kind));
            named && is_digit_assigned(&rest[kind.len()..])
        })
    })
}

/// `is`, `:` or `=`, and a digit.
fn is_digit_assigned(text: &[u8]) -> bool {
    let text = skip(text, is_space);
    let value = match text {
        [b':' | b'=', value @ ..] => value,
        [b'i' | b'I', b's' | b'S', value @ ..] => value,
        _ => return false,
    };
    skip(value, is_space)
        .first()
        .is_some_and(u8::is_ascii_digit)
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
    let name = beginning(text, LONGEST_NAME + 1, is_name);
    (name.len() <= LONGEST_NAME).then(|| &text[name.len()..])
}

/// The bytes at the beginning that are wanted, at most so many.
fn beginning(text: &[u8], most: usize, wanted: impl Fn(u8) -> bool) -> &[u8] {
    let text = &text[..text.len().min(most)];
    let count = text.iter().take_while(|byte| wanted(**byte)).count();
    &text[..count]
}

/// The bytes at the end that are wanted, at most so many.
fn ending(text: &[u8], most: usize, wanted: impl Fn(u8) -> bool) -> &[u8] {
    let text = &text[text.len() - text.len().min(most)..];
    let count = text.iter().rev().take_while(|byte| wanted(**byte)).count();
    &text[text.len() - count..]
}

fn skip(text: &[u8], wanted: impl Fn(u8) -> bool) -> &[u8] {
    let count = text.iter().take_while(|byte| wanted(**byte)).count();
    &text[count..]
}

/// What names consist of.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// White space as the patterns see it.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}
