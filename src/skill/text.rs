//! What "character", "blank" and "same text" mean for skill documents.
//!
//! Lengths are counted in Unicode code points, and blanks include U+001C–U+001F besides the
//! Unicode white space (engine 2). Every operator on documents uses these definitions, so that a
//! document trained elsewhere is cut at the same places here.

/// Whether `c` is blank: Unicode white space, or one of the separators U+001C–U+001F.
#[must_use]
pub fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The text without blanks at both ends.
#[must_use]
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// The text without blanks at its end.
#[must_use]
pub fn strip_end(text: &str) -> &str {
    text.trim_end_matches(is_blank)
}

/// The first `count` code points.
#[must_use]
pub fn clip(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// The text with every run of blanks replaced by one space, and none at its ends.
#[must_use]
pub fn collapse_blanks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(is_blank).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// The text with runs of three or more line feeds cut down to two.
#[must_use]
pub fn collapse_newlines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut run = 0;
    for c in text.chars() {
        run = if c == '\n' { run + 1 } else { 0 };
        if run <= 2 {
            out.push(c);
        }
    }
    out
}

/// Full Unicode case folding, for comparing texts regardless of case (`ß` equals `ss`, every
/// sigma equals every other).
///
/// Lower, upper and lower again gives the folding of every letter but the dotless i, which upper
/// case would merge with `i`.
#[must_use]
pub fn casefold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == 'ı' {
            out.push(c);
            continue;
        }
        for lower in c.to_lowercase() {
            for upper in lower.to_uppercase() {
                for folded in upper.to_lowercase() {
                    out.push(if folded == 'ς' { 'σ' } else { folded });
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_equates_what_unicode_equates() {
        for (left, right) in [
            ("Straße", "STRASSE"),
            ("ẞ", "ss"),
            ("ΑΣ", "ας"),
            ("ﬁn", "FIN"),
            ("K", "k"),
        ] {
            assert_eq!(casefold(left), casefold(right), "{left} and {right}");
        }
        assert_ne!(casefold("ı"), casefold("i"));
    }

    #[test]
    fn information_separators_are_blank() {
        assert_eq!(strip("\u{1f} a b\u{1c}\n"), "a b");
        assert_eq!(strip_end("\u{200b}"), "\u{200b}");
    }

    #[test]
    fn clipping_counts_code_points() {
        assert_eq!(clip("é🙂x", 2), "é🙂");
        assert_eq!(clip("ab", 5), "ab");
    }

    #[test]
    fn newline_runs_are_cut_to_two() {
        assert_eq!(collapse_newlines("a\n\n\n\nb\n\nc"), "a\n\nb\n\nc");
    }
}
