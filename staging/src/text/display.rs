//! Text from logs and models, made safe to show.
//!
//! Such text may carry terminal escapes that move the cursor or rename the window,
//! characters that reverse the reading direction, and characters that nobody sees. Two
//! ways to deal with them, for two purposes:
//!
//! - [`display_safe`] makes them *visible*. Review uses it, because a reviewer must see
//!   what a document contains.
//! - [`one_line`], [`table_cell`] and [`prose`] *remove* them. Reports use these, for
//!   names and reasons that only need to be readable.

/// Shows every character that a terminal would act on, or not show at all, as its code
/// point in angle brackets: `<U+001B>`. Newlines and tabs stay.
pub fn display_safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => safe.push(character),
            hidden if is_hidden(hidden) => {
                safe.push_str(&format!("<U+{:04X}>", u32::from(hidden)));
            }
            visible => safe.push(visible),
        }
    }
    safe
}

/// Whether a text has characters that [`display_safe`] would have to show by number.
pub fn has_hidden(text: &str) -> bool {
    text.chars()
        .any(|character| !matches!(character, '\n' | '\t') && is_hidden(character))
}

/// The text as a single line: terminal escapes are gone, control and format characters
/// and runs of white space have become one blank each.
pub fn one_line(text: &str) -> String {
    let plain = strip_escapes(text);
    let blanked: String = plain
        .chars()
        .map(|c| if is_control_or_format(c) { ' ' } else { c })
        .collect();
    blanked.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// [`one_line`], with what a Markdown or HTML table would interpret as entities.
pub fn table_cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for character in one_line(text).chars() {
        match character {
            '&' => cell.push_str("&amp;"),
            '<' => cell.push_str("&lt;"),
            '>' => cell.push_str("&gt;"),
            '|' => cell.push_str("&#124;"),
            '`' => cell.push_str("&#96;"),
            plain => cell.push(plain),
        }
    }
    cell
}

/// [`table_cell`], with Markdown's other signs escaped as well, for running text. Not for
/// code spans, where the escapes would show.
pub fn prose(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    for character in table_cell(text).chars() {
        if "\\*_[]()#+!{}".contains(character) {
            prose.push('\\');
        }
        prose.push(character);
    }
    prose
}

/// [`one_line`], for a line of Markdown that people also read as it is: links, images and tags are
/// taken apart, marks of emphasis and of code stay.
pub fn markdown(text: &str) -> String {
    one_line(text).replace('[', "\\[").replace('<', "\\<")
}

/// A score with three decimals; a dash for what was not measured or is not a number.
pub fn score(value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        Some(value) => format!("{value:.3}"),
        None => "\u{2014}".to_owned(),
    }
}

/// Removes ANSI control sequences, operating system commands (to their end or the end
/// of the text) and two-character escapes.
fn strip_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('\u{1b}') {
        plain.push_str(&rest[..start]);
        let escape = &rest[start..];
        let length = escape_length(escape);
        if length == 0 {
            plain.push('\u{1b}');
            rest = &escape[1..];
        } else {
            rest = &escape[length..];
        }
    }
    plain.push_str(rest);
    plain
}

/// How many bytes at the start of `text` are one terminal escape; 0 if it is none.
fn escape_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.get(1) {
        Some(b'[') => {
            let run = |from: usize, range: std::ops::RangeInclusive<u8>| {
                from + bytes[from..]
                    .iter()
                    .take_while(|byte| range.contains(byte))
                    .count()
            };
            let end = run(run(2, 0x30..=0x3f), 0x20..=0x2f);
            match bytes.get(end) {
                Some(0x40..=0x7e) => end + 1,
                _ => 2,
            }
        }
        Some(b']') => {
            let body = &bytes[2..];
            let end = body.iter().position(|byte| matches!(byte, 0x07 | 0x1b));
            match end {
                Some(at) if body[at] == 0x07 => 2 + at + 1,
                Some(at) if body.get(at + 1) == Some(&b'\\') => 2 + at + 2,
                Some(at) => 2 + at,
                None => bytes.len(),
            }
        }
        Some(0x40..=0x5f) => 2,
        _ => 0,
    }
}

/// What a terminal acts on or does not show: controls, format characters (reading
/// direction, zero width, tags), line separators, and the fillers that look like blanks.
pub(crate) fn is_hidden(character: char) -> bool {
    is_control_or_format(character)
        || matches!(
            character,
            '\u{2028}' | '\u{2029}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{34f}'
        )
        || matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Unicode's general categories Cc and Cf.
fn is_control_or_format(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{890}'..='\u{891}'
                | '\u{8e2}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{2064}'
                | '\u{2066}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{110bd}'
                | '\u{110cd}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0001}'
                | '\u{e0020}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_hidden_reaches_a_terminal(text in "([\u{0}-\u{ff}]|\u{1b}|\\[|\\]|\u{202e}|\\PC){0,40}") {
            prop_assert!(!has_hidden(&display_safe(&text)));
            let line = one_line(&text);
            prop_assert!(!line.chars().any(|c| c.is_control()), "{line:?}");
            prop_assert_eq!(line.trim(), &line);
            prop_assert!(!prose(&text).contains(['<', '|', '`']));
        }
    }

    #[test]
    fn what_a_terminal_would_act_on_is_shown_by_number() {
        assert_eq!(
            display_safe("a\u{1b}[31mb\tc\r\n\u{202e}d\u{200b}"),
            "a<U+001B>[31mb\tc<U+000D>\n<U+202E>d<U+200B>"
        );
        assert_eq!(display_safe("naïve 日本 🎉"), "naïve 日本 🎉");
        assert!(has_hidden("a\u{feff}") && !has_hidden("a\n\tb"));
    }

    #[test]
    fn reports_get_one_line_without_escapes() {
        assert_eq!(one_line("\u{1b}]0;title\u{7}x"), "x");
        assert_eq!(one_line("\u{1b}(B"), "(B");
        assert_eq!(one_line("  many \n spaces\u{1b}[?25l "), "many spaces");
        assert_eq!(table_cell("a|b<c>`&"), "a&#124;b&lt;c&gt;&#96;&amp;");
        assert_eq!(prose("# a_b"), "\\# a\\_b");
    }

    #[test]
    fn an_escape_that_never_ends_takes_no_more_than_the_text() {
        for text in [
            "\u{1b}",
            "\u{1b}[",
            "\u{1b}[3",
            "\u{1b}]8;;x",
            "\u{1b}]a\u{1b}",
        ] {
            assert!(!one_line(text).contains('\u{1b}'), "{text:?}");
        }
    }

    #[test]
    fn a_score_that_was_not_measured_is_a_dash() {
        assert_eq!(score(Some(0.12345)), "0.123");
        assert_eq!(score(Some(f64::NAN)), "\u{2014}");
        assert_eq!(score(None), "\u{2014}");
    }
}
