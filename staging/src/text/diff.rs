//! Differences between two texts: as a patch, and line by line with the changed words.

use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// After this long the search for the smallest difference gives way to a coarser one, so
/// that a document without a common line does not hold up review.
const PATIENCE: Duration = Duration::from_millis(500);

/// Unchanged lines around each change in a patch.
const CONTEXT: usize = 3;

/// The difference as a unified patch with `a/` and `b/` in front of `path`. Empty if the
/// texts are equal. The text is exact and may hold terminal escapes: show it through
/// [`display_safe`](crate::display_safe).
pub fn unified_diff(base: &str, proposed: &str, path: &str) -> String {
    if base == proposed {
        return String::new();
    }
    let path = path.trim_start_matches('/');
    TextDiff::configure()
        .timeout(PATIENCE)
        .diff_lines(base, proposed)
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string()
}

/// What happened to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineChange {
    /// Both texts have it.
    Same,
    /// Only the proposed text has it.
    Added,
    /// Only the base has it.
    Removed,
}

/// A stretch of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The words, without the line's newline, safe to show on a terminal.
    pub text: String,
    /// Whether it is these words that changed, in a line that is otherwise kept.
    pub changed: bool,
}

/// One line of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffLine {
    /// What happened to it.
    pub change: LineChange,
    /// Its number in the base, from 1.
    pub old_line: Option<usize>,
    /// Its number in the proposed text, from 1.
    pub new_line: Option<usize>,
    /// Its words.
    pub spans: Vec<Span>,
    /// Whether it ends the text without a newline.
    pub missing_newline: bool,
}

/// The difference line by line in groups that belong together, each with up to
/// `context` unchanged lines around it; changed words are marked. No groups if the texts
/// are equal.
pub fn inline_diff(base: &str, proposed: &str, context: usize) -> Vec<Vec<DiffLine>> {
    let diff = TextDiff::configure()
        .timeout(PATIENCE)
        .diff_lines(base, proposed);
    diff.grouped_ops(context)
        .iter()
        .map(|group| {
            group
                .iter()
                .flat_map(|op| diff.iter_inline_changes(op))
                .map(|change| DiffLine {
                    change: match change.tag() {
                        ChangeTag::Equal => LineChange::Same,
                        ChangeTag::Insert => LineChange::Added,
                        ChangeTag::Delete => LineChange::Removed,
                    },
                    old_line: change.old_index().map(|index| index + 1),
                    new_line: change.new_index().map(|index| index + 1),
                    spans: spans(change.values()),
                    missing_newline: change.missing_newline(),
                })
                .collect()
        })
        .filter(|group: &Vec<DiffLine>| !group.is_empty())
        .collect()
}

fn spans(values: &[(bool, &str)]) -> Vec<Span> {
    values
        .iter()
        .map(|(changed, text)| Span {
            text: super::display::display_safe(text.trim_end_matches('\n')),
            changed: *changed,
        })
        .filter(|span| !span.text.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_names_the_file_and_shows_a_missing_newline() {
        assert_eq!(
            unified_diff("a\nb\n", "a\nc", "/home/x/SKILL.md"),
            "--- a/home/x/SKILL.md\n+++ b/home/x/SKILL.md\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\
             \\ No newline at end of file\n"
        );
        assert_eq!(unified_diff("a", "a", "x"), "");
    }

    #[test]
    fn changed_words_are_marked() {
        let groups = inline_diff("run the tests\n", "run all the tests\n", 3);
        let added = &groups[0][1];
        assert_eq!(added.change, LineChange::Added);
        assert_eq!((added.old_line, added.new_line), (None, Some(1)));
        let changed: String = added
            .spans
            .iter()
            .filter(|span| span.changed)
            .map(|span| span.text.as_str())
            .collect();
        assert_eq!(changed.trim(), "all");
    }

    #[test]
    fn escapes_in_a_line_are_shown_and_distant_lines_left_out() {
        let base: String = (0..40).map(|n| format!("{n}\n")).collect();
        let proposed = base.replace("20\n", "\u{1b}[2J\n");
        let groups = inline_diff(&base, &proposed, 2);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].len(), 6);
        let shown: Vec<&str> = groups[0]
            .iter()
            .flat_map(|line| &line.spans)
            .map(|span| span.text.as_str())
            .collect();
        assert!(shown.concat().contains("<U+001B>[2J"), "{shown:?}");
        assert!(inline_diff("a", "a", 3).is_empty());
    }
}
