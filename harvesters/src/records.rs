//! Lines to JSON records (session-logs.md, rule 4).
//!
//! A line is one record, as a rule. What is torn, glued to another record or not valid
//! UTF-8 is mended as far as that is certain; what cannot be read is told to a [`Findings`].

use std::borrow::Cow;

use serde_json::Value;

use crate::lines::Line;
use crate::node::Node;
use crate::report::{Findings, Flaw, Repair, Report};
use crate::tape::{Json, Skip, Tape};

/// Hands out the records of a line: usually one; several when a line feed was lost. What
/// is skipped is passed over without being built. The tape is used again for each line.
pub(crate) fn each_of(
    line: &Line<'_>,
    skip: Skip,
    tape: &mut Tape,
    findings: &mut Findings<'_>,
    mut take: impl FnMut(Node<'_>, &mut Report),
) {
    // The whole line is checked at once: texts that are skipped count as well.
    let valid = std::str::from_utf8(line.bytes);
    if let Ok(text) = valid
        && let Ok(value) = tape.read(text, skip)
    {
        return hand_out(value, line, findings, &mut take);
    }
    for value in mended(line, valid.ok(), findings) {
        hand_out(value.node(), line, findings, &mut take);
    }
}

/// Only objects are records.
fn hand_out(
    value: Node<'_>,
    line: &Line<'_>,
    findings: &mut Findings<'_>,
    take: &mut impl FnMut(Node<'_>, &mut Report),
) {
    if !value.is_object() {
        return findings.flaw(line.offset, Flaw::NotAnObject, "");
    }
    findings.report.records += 1;
    take(value, findings.report);
}

/// What can be read of a line that is not one value; its text if it is valid UTF-8.
fn mended(line: &Line<'_>, valid: Option<&str>, findings: &mut Findings<'_>) -> Vec<Json> {
    let text = match valid {
        Some(text) => Cow::Borrowed(text),
        None => {
            findings.repair(Repair::InvalidUtf8);
            String::from_utf8_lossy(line.bytes)
        }
    };
    let text = match replace_lone_surrogates(&text) {
        Some(fixed) => {
            findings.repair(Repair::LoneSurrogate);
            Cow::Owned(fixed)
        }
        None => text,
    };
    let (values, leftover) = split_glued(&text);
    match (values.len(), leftover) {
        (0, Some(flaw)) => {
            // Without a line feed the writer may still be busy with it.
            let flaw = if flaw == Flaw::Torn && !line.ended {
                Flaw::Unfinished
            } else {
                flaw
            };
            findings.flaw(line.offset, flaw, "");
        }
        (_, Some(flaw)) => findings.flaw(line.offset, flaw, "part of a glued line"),
        (2.., None) => findings.repair(Repair::Glued),
        _ => {}
    }
    values
}

/// How often a damaged line is tried again from a later record start.
const MOST_TRIES: usize = 64;

/// Reads values that follow each other. After damage, looks for the next `{"` from
/// which a whole value reaches to the end of the line or to another value.
fn split_glued(text: &str) -> (Vec<Json>, Option<Flaw>) {
    let mut values = Vec::new();
    let mut flaw = None;
    let mut rest = text;
    let mut tries = 0;
    while !rest.trim_start().is_empty() {
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) if values.is_empty() || value.is_object() => {
                let used = stream.byte_offset();
                values.push(Json::from(&value));
                rest = rest.get(used..).unwrap_or_default();
            }
            Some(Ok(_)) | None => {
                flaw = Some(Flaw::Torn);
                break;
            }
            Some(Err(error)) => {
                flaw = Some(flaw_of(&error));
                match next_record(rest, &mut tries) {
                    Some(start) => rest = &rest[start..],
                    None => break,
                }
            }
        }
    }
    (values, flaw)
}

/// The start of a later record in a damaged text. A nested object is no record: after
/// a record only the end or another record may follow.
fn next_record(text: &str, tries: &mut usize) -> Option<usize> {
    let mut from = 1;
    while *tries < MOST_TRIES {
        let start = from + text.get(from..)?.find("{\"")?;
        *tries += 1;
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        if let Some(Ok(value)) = stream.next() {
            let after = text[start + stream.byte_offset()..].trim_start();
            if value.is_object() && (after.is_empty() || after.starts_with('{')) {
                return Some(start);
            }
        }
        from = start + 1;
    }
    None
}

/// Why a line could not be parsed.
pub(crate) fn flaw_of(error: &serde_json::Error) -> Flaw {
    if error.to_string().starts_with("recursion limit") {
        Flaw::TooDeep
    } else {
        Flaw::Torn
    }
}

/// Replaces half surrogate pairs (`\ud83d` alone), which strict parsers refuse.
fn replace_lone_surrogates(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut from = 0;
    while let Some(found) = text[from..].find("\\u") {
        let at = from + found;
        let escaped = text.as_bytes()[..at]
            .iter()
            .rev()
            .take_while(|byte| **byte == b'\\')
            .count()
            % 2
            == 1;
        from = at + 2;
        let Some(unit) = (!escaped).then(|| hex_unit(text, at)).flatten() else {
            continue;
        };
        let paired = matches!(hex_unit(text, at + 6), Some(0xDC00..=0xDFFF));
        match unit {
            0xD800..=0xDBFF if paired => from = at + 12,
            0xD800..=0xDFFF => {
                out.push_str(&text[copied..at]);
                out.push_str("\\ufffd");
                copied = at + 6;
                from = copied;
            }
            _ => {}
        }
    }
    (copied > 0).then(|| out + &text[copied..])
}

/// The code unit of a `\uXXXX` at that position.
fn hex_unit(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}
