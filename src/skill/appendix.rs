//! The appendix of execution notes: reminders of rules that were there and were not followed.
//!
//! Skill-aware reflection tells a missing rule from a lapse. A missing rule becomes an edit; a
//! lapse becomes a note in this protected list at the end of the skill. Notes are merged by their
//! meaning-free part only: case, spacing and closing punctuation do not make a note new
//! (engine 17).

use std::collections::HashSet;

use super::region::{self, RegionKind};
use super::text::{casefold, collapse_blanks, strip, strip_end};

/// The heading inside the region.
pub const HEADING: &str = "## Execution Notes Appendix";

const KIND: RegionKind = RegionKind::Appendix;

/// The notes of the first appendix, in order; none when there is no appendix.
#[must_use]
pub fn notes(document: &str) -> Vec<String> {
    let Some(start) = document.find(KIND.start()) else {
        return Vec::new();
    };
    let inner = start + KIND.start().len();
    let Some(end) = document.find(KIND.end()).filter(|&end| end >= inner) else {
        return Vec::new();
    };
    document[inner..end]
        .split(is_line_end)
        .filter_map(note_of_line)
        .collect()
}

/// Whether the document has both markers of an appendix.
#[must_use]
pub fn exists(document: &str) -> bool {
    region::has_both_markers(document, KIND)
}

/// The document with an empty appendix at its end, or unchanged when it has one.
#[must_use]
pub fn ensure(document: &str) -> String {
    if exists(document) {
        return document.to_owned();
    }
    format!("{}\n\n{}\n", strip_end(document), block(&[]))
}

/// The document whose one appendix, at the end, holds the old notes followed by the new ones,
/// each meaning once.
#[must_use]
pub fn append(document: &str, new: &[String]) -> String {
    let mut all = notes(document);
    all.extend_from_slice(new);
    write(document, &all)
}

/// The document whose one appendix, at the end, holds exactly these notes, each meaning once.
/// Markers inside notes are deleted, so that no note can end the region.
#[must_use]
pub fn write(document: &str, notes: &[String]) -> String {
    let notes: Vec<String> = notes
        .iter()
        .map(|note| region::without_markers(note))
        .collect();
    format!(
        "{}\n\n{}\n",
        region::remove(document, KIND),
        block(&dedupe(&notes))
    )
}

/// The notes with blanks collapsed, without empty ones and without repetitions (by
/// [`canonical`]); the first form of each stays, in order.
#[must_use]
pub fn dedupe(notes: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut kept = Vec::new();
    for note in notes {
        let note = collapse_blanks(note);
        let key = canonical(&note);
        if !key.is_empty() && seen.insert(key) {
            kept.push(note);
        }
    }
    kept
}

/// What makes two notes the same: the text with blanks collapsed, closing punctuation
/// (`. ; : , _ -` and spaces) removed, and case folded.
#[must_use]
pub fn canonical(note: &str) -> String {
    let text = collapse_blanks(note);
    casefold(text.trim_end_matches([' ', '.', ';', ':', ',', '_', '-']))
}

fn block(notes: &[String]) -> String {
    let mut text = format!("{}\n{HEADING}\n", KIND.start());
    for note in notes {
        text.push_str("- ");
        text.push_str(note);
        text.push('\n');
    }
    text.push_str(KIND.end());
    text
}

fn note_of_line(line: &str) -> Option<String> {
    let line = strip(line);
    let title = HEADING.trim_start_matches('#');
    if line.is_empty() || strip(line.trim_start_matches('#')) == strip(title) {
        return None;
    }
    let text = match line.strip_prefix("- ") {
        Some(rest) => rest,
        None => line.strip_prefix(['-', '*']).unwrap_or(line),
    };
    let text = strip(text);
    (!text.is_empty()).then(|| text.to_owned())
}

fn is_line_end(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_form_of_a_note_stays() {
        let notes = [
            "Check units.".to_owned(),
            "check  UNITS".to_owned(),
            " ".to_owned(),
        ];
        assert_eq!(dedupe(&notes), ["Check units."]);
    }

    proptest! {
        #[test]
        fn appending_twice_is_appending_once(
            document in "[a-z\n#]{0,60}",
            notes in prop::collection::vec("[-*#. a-zA-Z\n]{0,20}", 0..6),
        ) {
            let once = append(&document, &notes);
            prop_assert_eq!(append(&once, &notes), once);
        }

        #[test]
        fn old_notes_stay_in_front(
            old in prop::collection::vec("[a-z ]{1,12}", 0..5),
            new in prop::collection::vec("[a-z ]{1,12}", 0..5),
        ) {
            let before = append("# S\n", &old);
            let after = append(&before, &new);
            let (before, after) = (notes(&before), notes(&after));
            prop_assert_eq!(&after[..before.len()], &before[..]);
        }
    }
}
