//! Where the balanced spans of a reply are.
//!
//! One pass each, whatever the text: an opening brace that is never closed costs no second look.

use std::ops::Range;

/// What a double quote outside an object means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// It starts or ends a quotation; braces inside do not count.
    Hide,
    /// Nothing.
    Ignore,
}

/// The balanced spans of a text.
pub(super) struct Spans {
    /// The outermost ones, in order, up to the first brace that is never closed.
    pub(super) spans: Vec<Range<usize>>,
    /// The outermost ones after it.
    pub(super) after_unclosed: Vec<Range<usize>>,
}

/// The balanced `{…}` of a text. Inside braces, quoted text and escapes are respected.
pub(super) fn objects(text: &str, quotes: Quotes) -> Spans {
    let mut open: Vec<usize> = Vec::new();
    let mut closed: Vec<Range<usize>> = Vec::new();
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        if escaped {
            escaped = false;
            continue;
        }
        match byte {
            b'\\' if quoted && !open.is_empty() => escaped = true,
            b'"' if !open.is_empty() || quotes == Quotes::Hide => quoted = !quoted,
            _ if quoted => {}
            b'{' => open.push(at),
            b'}' => {
                if let Some(start) = open.pop() {
                    while closed.last().is_some_and(|span| span.start > start) {
                        closed.pop();
                    }
                    closed.push(start..at + 1);
                }
            }
            _ => {}
        }
    }
    let unclosed = open.first().copied().unwrap_or(text.len());
    let (spans, after_unclosed) = closed.into_iter().partition(|span| span.start < unclosed);
    Spans {
        spans,
        after_unclosed,
    }
}

/// The balanced `[…]` outside balanced objects and outside quoted prose.
pub(super) fn arrays(text: &str) -> Vec<Range<usize>> {
    let objects = objects(text, Quotes::Hide);
    let mut objects = objects
        .spans
        .into_iter()
        .chain(objects.after_unclosed)
        .peekable();
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    let mut quoted = false;
    let mut at = 0;
    while at < bytes.len() {
        while objects.peek().is_some_and(|object| object.end <= at) {
            objects.next();
        }
        if !quoted && objects.peek().is_some_and(|object| object.start == at) {
            at = objects.next().map_or(at + 1, |object| object.end);
            continue;
        }
        match bytes[at] {
            b'"' => quoted = !quoted,
            b'[' if !quoted => match close_of(bytes, at) {
                Some(end) => {
                    spans.push(at..end);
                    at = end;
                    continue;
                }
                // Everything after it is inside a bracket that never closes.
                None => break,
            },
            _ => {}
        }
        at += 1;
    }
    spans
}

fn close_of(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, &byte) in bytes.iter().enumerate().skip(start) {
        if escaped {
            escaped = false;
            continue;
        }
        match byte {
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' => depth += 1,
            b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}
