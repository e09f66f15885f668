//! The outer form of a document: byte order mark, line endings, final newline.
//!
//! Inside the program a document has no byte order mark and its lines end in `\n`
//! ([`normal`]). On disk it keeps whatever form its owner gave it ([`in_form_of`]): lines
//! that did not change keep their very ending, new lines get the document's usual one.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The byte order mark.
const MARK: char = '\u{feff}';

/// The text as the program works on it: no byte order mark, lines ending in `\n`.
pub fn normal(raw: &str) -> String {
    let text = raw.strip_prefix(MARK).unwrap_or(raw);
    with_plain_endings(text)
}

/// The text as it goes to disk, in the form that `raw`, the document so far, has.
///
/// What did not change comes back byte for byte: `in_form_of(&normal(raw), raw) == raw`.
/// A document without final newline stays so; one with keeps it. An empty or missing
/// document has no form, and the text is written as it is.
pub fn in_form_of(text: &str, raw: &str) -> String {
    let (mark, old) = match raw.strip_prefix(MARK) {
        Some(rest) => ("\u{feff}", rest),
        None => ("", raw),
    };
    let text = match text.strip_prefix(MARK) {
        Some(rest) if !mark.is_empty() && !old.starts_with(MARK) => rest,
        _ => text,
    };
    let mut new = with_plain_endings(text);
    let old_lines = lines(old);
    if let Some(last) = old_lines.last() {
        if last.ending.is_empty() && new.ends_with('\n') {
            new.pop();
        } else if !last.ending.is_empty() && !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
    }
    let endings = endings_for(&new, &old_lines);
    let mut out = String::with_capacity(mark.len() + new.len() + endings.len());
    out.push_str(mark);
    for (line, ending) in lines(&new).iter().zip(endings) {
        out.push_str(line.text);
        // An empty line ending in `\n` right after a `\r` would be read as one ending.
        if ending == "\n" && line.text.is_empty() && out.ends_with('\r') {
            out.push('\r');
        } else if !line.ending.is_empty() {
            out.push_str(ending);
        }
    }
    out
}

/// One line and how it ends: `\n`, `\r\n`, `\r`, or nothing at the end of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'t> {
    pub(crate) text: &'t str,
    pub(crate) ending: &'t str,
}

/// The lines of a text of any form.
pub(crate) fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (end, length) = match rest.find(['\n', '\r']) {
            Some(at) if rest[at..].starts_with("\r\n") => (at, 2),
            Some(at) => (at, 1),
            None => (rest.len(), 0),
        };
        lines.push(Line {
            text: &rest[..end],
            ending: &rest[end..end + length],
        });
        rest = &rest[end + length..];
    }
    lines
}

fn with_plain_endings(text: &str) -> String {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text.to_owned()
    }
}

/// The ending of each line of `new`, taken from the lines of the old text it repeats.
fn endings_for<'t>(new: &str, old: &[Line<'t>]) -> Vec<&'t str> {
    let new_lines = lines(new);
    let usual = usual_ending(old);
    let mut endings = vec![usual; new_lines.len()];
    let uniform = old
        .iter()
        .all(|line| line.ending == usual || line.ending.is_empty());
    if uniform {
        return endings;
    }
    let old_texts: Vec<&str> = old.iter().map(|line| line.text).collect();
    let new_texts: Vec<&str> = new_lines.iter().map(|line| line.text).collect();
    for op in capture_diff_slices(Algorithm::Myers, &old_texts, &new_texts) {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = op
        {
            for offset in 0..len {
                let kept = old[old_index + offset].ending;
                if !kept.is_empty() {
                    endings[new_index + offset] = kept;
                }
            }
        }
    }
    endings
}

/// The ending that most lines have; `\n` if none has any.
fn usual_ending<'t>(lines: &[Line<'t>]) -> &'t str {
    ["\n", "\r\n", "\r"]
        .into_iter()
        .map(|ending| (ending, lines.iter().filter(|l| l.ending == ending).count()))
        .rev()
        .max_by_key(|(_, count)| *count)
        .filter(|(_, count)| *count > 0)
        .map_or("\n", |(ending, _)| ending)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_program_sees_plain_lines() {
        assert_eq!(normal("\u{feff}a\r\nb\rc\n"), "a\nb\nc\n");
    }

    #[test]
    fn each_form_is_kept() {
        for (raw, expected) in [
            ("a\r\nb\r\n", "a\r\nX\r\nb\r\n"),
            ("\u{feff}a\nb\n", "\u{feff}a\nX\nb\n"),
            ("a\rb\r", "a\rX\rb\r"),
            ("a\nb", "a\nX\nb"),
            ("a\r\nb", "a\r\nX\r\nb"),
            ("", "a\nX\nb\n"),
        ] {
            assert_eq!(in_form_of("a\nX\nb\n", raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn in_a_mixed_document_unchanged_lines_keep_their_ending() {
        assert_eq!(
            in_form_of("a\nX\nb\nc\n", "a\r\nb\nc\r\n"),
            "a\r\nX\r\nb\nc\r\n"
        );
    }

    #[test]
    fn a_missing_final_newline_is_added_where_the_document_had_one() {
        assert_eq!(in_form_of("a\nb", "a\r\n"), "a\r\nb\r\n");
        assert_eq!(in_form_of("", "a\n"), "");
    }

    #[test]
    fn a_model_that_answers_in_another_form_changes_nothing() {
        assert_eq!(
            in_form_of("\u{feff}a\r\nb\r\n", "\u{feff}a\n"),
            "\u{feff}a\nb\n"
        );
        assert_eq!(in_form_of("a\r\nb\r\n", "a\n"), "a\nb\n");
    }

    fn documents() -> impl Strategy<Value = String> {
        let pieces = prop_oneof![
            Just("\n"),
            Just("\r\n"),
            Just("\r"),
            Just("a"),
            Just("b"),
            Just("- x"),
            Just("\u{feff}"),
        ];
        proptest::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn nothing_changed_means_no_byte_changed(raw in documents()) {
            prop_assert_eq!(in_form_of(&normal(&raw), &raw), raw);
        }

        #[test]
        fn the_content_on_disk_is_the_content_proposed(raw in documents(), text in "[ab\n]{0,20}") {
            let written = normal(&in_form_of(&text, &raw));
            prop_assert_eq!(
                written.trim_end_matches('\n').trim_start_matches(MARK),
                text.trim_end_matches('\n')
            );
        }
    }
}
