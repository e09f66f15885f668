//! The lines that a proposal adds, and the text of them that patterns see.

use std::collections::HashSet;

/// The lines of the proposed text that the base has nowhere.
pub(super) struct Added<'t> {
    /// The base.
    pub(super) base: &'t str,
    /// The proposed text.
    pub(super) proposed: &'t str,
    /// The added lines with their numbers, from 1.
    pub(super) lines: Vec<(usize, &'t str)>,
    text: String,
    /// Where each added line begins in `text`.
    starts: Vec<usize>,
}

impl<'t> Added<'t> {
    /// A line that only moved is not new. A line that changed is new as a whole: the old words in it
    /// may mean something else now.
    pub(super) fn new(base: &'t str, proposed: &'t str) -> Self {
        let known: HashSet<&str> = base.lines().map(str::trim).collect();
        let lines: Vec<(usize, &str)> = proposed
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
            .filter(|(_, line)| !line.trim().is_empty() && !known.contains(line.trim()))
            .collect();
        let mut text = String::new();
        let mut starts = Vec::with_capacity(lines.len());
        let mut previous = 0;
        for (number, line) in &lines {
            if previous > 0 && *number != previous + 1 {
                // Lines with others between them are not read as one sentence.
                text.push_str("\n\u{0}\n");
            }
            previous = *number;
            starts.push(text.len());
            let plain = plain(line);
            match plain.strip_suffix('\\') {
                Some(continued) => {
                    text.push_str(continued);
                    text.push(' ');
                }
                None => {
                    text.push_str(&plain);
                    text.push('\n');
                }
            }
        }
        Self {
            base,
            proposed,
            lines,
            text,
            starts,
        }
    }

    /// What patterns see: the added lines without hidden characters and marks of emphasis, which
    /// would otherwise split a word in two; continued commands on one line.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The number and the words of the line at an offset of [`Added::text`].
    pub(super) fn line_at(&self, offset: usize) -> (usize, &'t str) {
        let index = self
            .starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1);
        self.lines.get(index).copied().unwrap_or((0, ""))
    }
}

/// Whether nobody sees the character: controls, formatting and direction marks, fillers.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{e0000}'..='\u{e01ef}')
}

fn plain(line: &str) -> String {
    let seen: String = line
        .chars()
        .filter(|c| !is_hidden(*c) && *c != '`')
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .collect();
    seen.replace("**", "").trim_end().to_owned()
}
