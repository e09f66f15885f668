//! JSON out of replies.
//!
//! A model is asked for one JSON value and answers with prose, fences, examples and slips of
//! syntax. [`extract_object`] and [`extract_array`] find the one value that was meant, or nothing:
//! when a reply holds two candidates, choosing one would be making it up (engine 21, W-J1 to
//! W-J3).
//!
//! What parses strictly comes first; only then is the single candidate mended (`mend`). All of
//! it runs in time linear in the reply and with bounded nesting.

mod mend;
mod scan;

use std::ops::Range;

use serde_json::Value;

use mend::mend;
use scan::Quotes;

/// The one JSON object in a reply.
///
/// In this order: the first fenced `json` block that parses as an object; the text from the first
/// `{` to the last `}`; the only balanced span that parses, when no other looks like an object;
/// the only balanced span, mended. An object that was cut off is never completed, and an object
/// that mending leaves empty is none.
#[must_use]
pub fn extract_object(text: &str) -> Option<Value> {
    let fenced = json_fences(text);
    for block in &fenced {
        if let Some(value) = parse_object(&text[block.clone()]) {
            return Some(value);
        }
    }
    let (first, last) = (text.find('{')?, text.rfind('}')?);
    if first > last {
        return None;
    }
    if let Some(value) = parse_object(&text[first..=last]) {
        return Some(value);
    }
    if let Some(value) = only_parsable(text) {
        return Some(value);
    }
    fenced
        .iter()
        .find_map(|block| mend_only_span(&text[block.clone()]))
        .or_else(|| mend_only_span(text))
}

/// The one JSON array in a reply: in the first fenced `json` block that parses as one, or else the
/// only balanced `[…]` that parses, outside objects and quoted prose.
#[must_use]
pub fn extract_array(text: &str) -> Option<Value> {
    for block in json_fences(text) {
        if let Some(value) = parse(&text[block]).filter(Value::is_array) {
            return Some(value);
        }
    }
    let mut found = None;
    for span in scan::arrays(text) {
        if let Some(value) = parse(&text[span])
            && found.replace(value).is_some()
        {
            return None;
        }
    }
    found
}

fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn parse_object(text: &str) -> Option<Value> {
    parse(text).filter(Value::is_object)
}

/// The contents of blocks opened by three backticks and `json`, whatever its case. A block ends at
/// the next three backticks; when what is before them does not parse, they may be part of the
/// value, so the object that starts the block is tried as far as it goes.
fn json_fences(text: &str) -> Vec<Range<usize>> {
    const FENCE: &str = "```";
    let mut blocks = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(FENCE) {
        let tag = from + at + FENCE.len();
        let is_json = text
            .get(tag..tag + 4)
            .is_some_and(|word| word.eq_ignore_ascii_case("json"))
            && !text[tag + 4..].starts_with(char::is_alphanumeric);
        if !is_json {
            from = tag;
            continue;
        }
        let start = tag + 4;
        let end = text[start..]
            .find(FENCE)
            .map_or(text.len(), |end| start + end);
        let whole = scan::objects(&text[start..], Quotes::Hide)
            .spans
            .into_iter()
            .next();
        match whole {
            // Backticks inside the object: the block reaches to the end of the object.
            Some(span)
                if start + span.start < end && start + span.end > end && blocks.is_empty() =>
            {
                blocks.push(start..start + span.end);
                from = start + span.end;
            }
            _ => {
                blocks.push(start..end);
                from = (end + FENCE.len()).min(text.len());
            }
        }
        if blocks.len() == MOST_FENCES {
            break;
        }
    }
    blocks
}

/// How many fenced blocks are looked at. A reply has one, or a few; the limit keeps the work
/// linear.
const MOST_FENCES: usize = 16;

/// The value of the only balanced span that parses. A second span that parses, or one that looks
/// like an object and does not parse, makes the choice ambiguous.
fn only_parsable(text: &str) -> Option<Value> {
    [Quotes::Ignore, Quotes::Hide]
        .into_iter()
        .find_map(|quotes| {
            let mut found = None;
            for span in scan::objects(text, quotes).spans {
                let span = &text[span];
                let value = parse_object(span);
                let ambiguous = if value.is_some() {
                    found.is_some()
                } else {
                    looks_like_object(span)
                };
                if ambiguous {
                    return None;
                }
                found = found.or(value);
            }
            found
        })
}

/// The only balanced span of a text, mended. A quote that was left out shifts where strings seem to
/// be, so the span may have ended too soon; then it is tried up to the last brace.
fn mend_only_span(text: &str) -> Option<Value> {
    let mut spans = scan::objects(text, Quotes::Hide).spans.into_iter();
    let span = spans.next().filter(|_| spans.next().is_none())?;
    let whole = span.start..text.rfind('}')? + 1;
    let candidate = &text[span];
    if !looks_like_object(candidate) {
        return None;
    }
    mend(candidate).or_else(|| mend(&text[whole]))
}

/// Whether a span starts like an object rather than like braces in prose.
fn looks_like_object(span: &str) -> bool {
    let inside = span.strip_prefix('{').unwrap_or(span).trim_start();
    span.ends_with('}') && (inside.starts_with('"') || inside.starts_with('}'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn prose_with_braces_does_not_hide_the_object() {
        assert_eq!(
            extract_object("{\"a\":1}<!-- {c} -->"),
            Some(json!({"a": 1}))
        );
        assert_eq!(
            extract_object("a 5\" disk {\"a\":1} and {x}"),
            Some(json!({"a": 1}))
        );
    }

    #[test]
    fn two_objects_are_no_object() {
        assert_eq!(extract_object("{\"a\":1} {\"b\":2}"), None);
        assert_eq!(extract_object("{\"a\":1,} {\"b\":2}"), None);
    }

    #[test]
    fn an_array_is_no_object() {
        assert_eq!(extract_object("```json\n[1]\n```"), None);
        assert_eq!(extract_object("[{\"a\":1},{\"b\":2}]"), None);
    }

    #[test]
    fn fences_inside_strings_do_not_end_the_block() {
        let text = "see {x}\n```json\n{\"c\": \"```bash\\nls\\n```\",}\n```\n{y}";
        assert_eq!(extract_object(text), Some(json!({"c": "```bash\nls\n```"})));
    }

    #[test]
    fn a_megabyte_of_braces_takes_no_time() {
        let started = std::time::Instant::now();
        for unit in [
            "{",
            "{\"a\":",
            "{\"a\":[",
            "```json{",
            "\"{",
            "[",
            "[{\"a\":\"",
            "{\"a\":1} ",
            "{\"a\":'",
            "}",
        ] {
            let text = unit.repeat(1_000_000 / unit.len());
            let _ = (extract_object(&text), extract_array(&text));
            let closed = format!("{{\"a\":{text}}}");
            let _ = (extract_object(&closed), extract_array(&closed));
        }
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }

    fn damaged() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("{".to_owned()),
            Just("}".to_owned()),
            Just("[".to_owned()),
            Just("]".to_owned()),
            Just("\"".to_owned()),
            Just(":".to_owned()),
            Just(",".to_owned()),
            Just("\\".to_owned()),
            Just("'".to_owned()),
            Just("```json\n".to_owned()),
            Just("```".to_owned()),
            Just("/*".to_owned()),
            Just("\\u12".to_owned()),
            Just("null".to_owned()),
            Just("...".to_owned()),
            Just("é🙂“".to_owned()),
            "[a-z0-9 \n.-]{1,4}",
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn damage_never_panics(text in damaged()) {
            if let Some(value) = extract_object(&text) {
                prop_assert!(value.is_object());
            }
            if let Some(value) = extract_array(&text) {
                prop_assert!(value.is_array());
            }
        }

        #[test]
        fn an_object_in_plain_prose_is_found(before in "[a-z .]{0,20}", after in "[a-z .]{0,20}", key in "[a-z]{1,5}", content in "\\PC{0,20}") {
            let value = json!({ key: content });
            prop_assert_eq!(extract_object(&format!("{before}{value}{after}")), Some(value.clone()));
            prop_assert_eq!(extract_object(&format!("{before}\n```json\n{value}\n```\n{after}")), Some(value));
        }

        #[test]
        fn prose_is_never_turned_into_an_object(text in "[a-zA-Z .,:;()'\n-]{0,80}") {
            prop_assert_eq!(extract_object(&text), None);
        }
    }
}
