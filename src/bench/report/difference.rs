//! The difference between two documents, as lines.

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// Unchanged lines that are shown around a change.
const CONTEXT: usize = 3;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Line {
    /// `+`, `-`, a blank for an unchanged line, `…` for a gap.
    pub(super) sign: char,
    /// The line without its end.
    pub(super) text: String,
}

/// The changed lines with some around them; none when nothing changed.
pub(super) fn difference(before: &str, after: &str) -> Vec<Line> {
    let diff = TextDiff::from_lines(before, after);
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            lines.push(Line {
                sign: '…',
                text: String::new(),
            });
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Insert => '+',
                ChangeTag::Delete => '-',
                ChangeTag::Equal => ' ',
            };
            let text = change.value().trim_end_matches(['\n', '\r']).to_owned();
            lines.push(Line { sign, text });
        }
    }
    lines
}
