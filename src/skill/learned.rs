//! The block of learnt rules in a person's own document (`CLAUDE.md`, `AGENTS.md`).
//!
//! The rest of such a document belongs to its writer, so the block is edited where it stands:
//! every byte outside it stays, line endings included, and a document whose markers are damaged is
//! refused rather than guessed at. Inside the block, every rule is one line that starts with `- `
//! (sleep-night 12, weakness 31).

use std::ops::Range;

use super::region;
use super::text::{casefold, collapse_blanks, strip};

/// The comment that opens the block.
pub const START: &str = "<!-- SKILLOPT-SLEEP:LEARNED START -->";
/// The comment that closes the block.
pub const END: &str = "<!-- SKILLOPT-SLEEP:LEARNED END -->";
/// The heading inside the block.
pub const HEADING: &str = "## Learned preferences & procedures";
/// The line that tells a reader where the rules come from.
pub const BANNER: &str = "_Kept by skillopt-sleep: rules learnt from past sessions that passed a held-out check. Edit or delete them freely._";

/// The fewest characters of a rule that an anchor must show, unless it is the whole rule. A
/// shorter one matches by accident.
pub const SHORTEST_ANCHOR: usize = 3;

/// Why a document's block cannot be edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DamagedBlock {
    /// A start marker without an end marker after it.
    #[error(
        "the learnt block is opened and never closed; add the line `{END}` where it should end"
    )]
    Unclosed,
    /// An end marker without a start marker before it.
    #[error("the learnt block is closed and never opened; delete the line `{END}`")]
    Unopened,
    /// More than one block.
    #[error("there is more than one learnt block; keep one of them")]
    Repeated,
}

/// A change of the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleEdit {
    /// Adds a rule, unless it is there already.
    Add {
        /// The rule.
        content: String,
    },
    /// Removes the one rule that the anchor names.
    Delete {
        /// A part of the rule, or the whole of it.
        anchor: String,
    },
    /// Puts a rule in place of the one that the anchor names.
    Replace {
        /// A part of the old rule, or the whole of it.
        anchor: String,
        /// The new rule; an empty one deletes.
        content: String,
    },
}

/// What became of a list of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleChanges {
    /// The new document.
    pub document: String,
    /// The positions, from 0, of the edits that changed something.
    pub applied: Vec<usize>,
    /// The positions of the others: nothing to add, no rule named, or more than one.
    pub unmatched: Vec<usize>,
}

/// The rules in the document's block, in order; none when it has no block.
///
/// # Errors
/// [`DamagedBlock`] when the markers do not form exactly one block.
pub fn rules(document: &str) -> Result<Vec<String>, DamagedBlock> {
    Ok(find(document)?.map_or_else(Vec::new, |span| rules_between(&document[inner(&span)])))
}

/// What stands between the markers, without blanks around it; empty when there is no block.
///
/// # Errors
/// [`DamagedBlock`] when the markers do not form exactly one block.
pub fn inner_text(document: &str) -> Result<&str, DamagedBlock> {
    Ok(find(document)?.map_or("", |span| strip(&document[inner(&span)])))
}

/// The document with exactly these rules in its block. A document without a block gets one at its
/// end; nothing changes when the rules are already those.
///
/// # Errors
/// [`DamagedBlock`] when the markers do not form exactly one block.
pub fn write(document: &str, rules: &[String]) -> Result<String, DamagedBlock> {
    let rules: Vec<String> = rules
        .iter()
        .map(|rule| one_line(rule))
        .filter(|rule| !rule.is_empty())
        .collect();
    let newline = newline_of(document);
    match find(document)? {
        Some(span) => {
            if rules_between(&document[inner(&span)]) == rules {
                return Ok(document.to_owned());
            }
            Ok(format!(
                "{}{}{}",
                &document[..span.start],
                block(&rules, newline),
                &document[span.end..]
            ))
        }
        None if rules.is_empty() => Ok(document.to_owned()),
        None => {
            let gap = match document {
                "" => String::new(),
                text if text.ends_with('\n') => newline.to_owned(),
                _ => newline.repeat(2),
            };
            Ok(format!(
                "{document}{gap}{}{newline}",
                block(&rules, newline)
            ))
        }
    }
}

/// Applies edits in order to the rules of the document.
///
/// Rules are compared by their words, whatever the case and spacing. An anchor must name exactly
/// one rule, by its whole text or by at least [`SHORTEST_ANCHOR`] characters of it.
///
/// # Errors
/// [`DamagedBlock`] when the markers do not form exactly one block.
pub fn apply(document: &str, edits: &[RuleEdit]) -> Result<RuleChanges, DamagedBlock> {
    let mut rules = rules(document)?;
    let (mut applied, mut unmatched) = (Vec::new(), Vec::new());
    for (position, edit) in edits.iter().enumerate() {
        let changed = match edit {
            RuleEdit::Add { content } => add(&mut rules, content),
            RuleEdit::Delete { anchor } => replace(&mut rules, anchor, ""),
            RuleEdit::Replace { anchor, content } => replace(&mut rules, anchor, content),
        };
        if changed {
            applied.push(position)
        } else {
            unmatched.push(position)
        }
    }
    let document = if applied.is_empty() {
        document.to_owned()
    } else {
        write(document, &rules)?
    };
    Ok(RuleChanges {
        document,
        applied,
        unmatched,
    })
}

fn add(rules: &mut Vec<String>, content: &str) -> bool {
    let content = one_line(content);
    let key = key(&content);
    if key.is_empty() || rules.iter().any(|rule| self::key(rule) == key) {
        return false;
    }
    rules.push(content);
    true
}

fn replace(rules: &mut Vec<String>, anchor: &str, content: &str) -> bool {
    let Some(index) = named(rules, anchor) else {
        return false;
    };
    let content = one_line(content);
    if content.is_empty() {
        rules.remove(index);
        return true;
    }
    if rules[index] == content {
        return false;
    }
    rules[index] = content;
    true
}

fn named(rules: &[String], anchor: &str) -> Option<usize> {
    let anchor = key(&one_line(anchor));
    if anchor.is_empty() {
        return None;
    }
    let keys: Vec<String> = rules.iter().map(|rule| key(rule)).collect();
    if let Some(index) = keys.iter().position(|key| *key == anchor) {
        return Some(index);
    }
    if anchor.chars().count() < SHORTEST_ANCHOR {
        return None;
    }
    let mut holders = keys
        .iter()
        .enumerate()
        .filter(|(_, key)| key.contains(&anchor))
        .map(|(index, _)| index);
    holders.next().filter(|_| holders.next().is_none())
}

fn key(rule: &str) -> String {
    casefold(&collapse_blanks(rule))
}

/// A rule as it is written: one line, without a bullet, and without anything that would read as a
/// marker.
fn one_line(rule: &str) -> String {
    let mut text = region::without_markers(rule);
    while text.contains(START) || text.contains(END) {
        text = text.replace(START, "").replace(END, "");
    }
    let text = collapse_blanks(&text);
    let text = text.strip_prefix("- ").unwrap_or(&text);
    if text == "-" {
        String::new()
    } else {
        strip(text).to_owned()
    }
}

fn find(document: &str) -> Result<Option<Range<usize>>, DamagedBlock> {
    let (start, end) = match (document.find(START), document.find(END)) {
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(DamagedBlock::Unclosed),
        (None, Some(_)) => return Err(DamagedBlock::Unopened),
        (Some(start), Some(end)) => (start, end),
    };
    if end < start {
        return Err(DamagedBlock::Unopened);
    }
    let (starts, ends) = (
        document.matches(START).count(),
        document.matches(END).count(),
    );
    match starts.cmp(&ends) {
        std::cmp::Ordering::Greater => Err(DamagedBlock::Unclosed),
        std::cmp::Ordering::Less => Err(DamagedBlock::Unopened),
        std::cmp::Ordering::Equal if starts > 1 => Err(DamagedBlock::Repeated),
        std::cmp::Ordering::Equal => Ok(Some(start..end + END.len())),
    }
}

fn inner(span: &Range<usize>) -> Range<usize> {
    span.start + START.len()..span.end - END.len()
}

/// A line that starts with `- ` begins a rule; an indented line without a bullet goes on with it.
fn rules_between(text: &str) -> Vec<String> {
    let mut rules: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let bare = strip(line);
        if let Some(rule) = bare.strip_prefix("- ") {
            let rule = strip(rule);
            open = !rule.is_empty();
            if open {
                rules.push(rule.to_owned());
            }
        } else if open && !bare.is_empty() && line.starts_with([' ', '\t']) {
            if let Some(rule) = rules.last_mut() {
                rule.push(' ');
                rule.push_str(bare);
            }
        } else {
            open = false;
        }
    }
    rules
}

fn block(rules: &[String], newline: &str) -> String {
    let mut lines = vec![
        START.to_owned(),
        HEADING.to_owned(),
        String::new(),
        BANNER.to_owned(),
        String::new(),
    ];
    lines.extend(rules.iter().map(|rule| format!("- {rule}")));
    lines.push(END.to_owned());
    lines.join(newline)
}

fn newline_of(document: &str) -> &'static str {
    let crlf = document.matches("\r\n").count();
    let all = document.matches('\n').count();
    if crlf * 2 > all { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(rules: &[&str]) -> Vec<String> {
        rules.iter().map(|rule| (*rule).to_owned()).collect()
    }

    #[test]
    fn written_rules_read_back() {
        let document = write(
            "# Mine\n\n\n\n  kept \n",
            &texts(&["use tabs", "--flag first", "a\nb"]),
        )
        .unwrap();
        assert!(document.starts_with("# Mine\n\n\n\n  kept \n\n<!-- SKILLOPT-SLEEP"));
        assert_eq!(
            rules(&document).unwrap(),
            ["use tabs", "--flag first", "a b"]
        );
    }

    #[test]
    fn the_block_stays_where_it_is() {
        let document = format!("top\n{START}\n- old\n{END}\nbottom\n\n\n\n");
        let next = write(&document, &texts(&["new"])).unwrap();
        assert!(next.starts_with("top\n") && next.ends_with("\nbottom\n\n\n\n"));
        assert_eq!(rules(&next).unwrap(), ["new"]);
    }

    #[test]
    fn line_endings_are_kept() {
        let next = write("a\r\nb\r\n", &texts(&["x", "y"])).unwrap();
        assert_eq!(next.matches("\r\n").count(), next.matches('\n').count());
    }

    #[test]
    fn a_damaged_block_is_refused() {
        for (document, damage) in [
            (format!("a {START} b"), DamagedBlock::Unclosed),
            (format!("a {END} b"), DamagedBlock::Unopened),
            (format!("{END} {START}"), DamagedBlock::Unopened),
            (
                format!("{START} {END} {START} {END}"),
                DamagedBlock::Repeated,
            ),
            (format!("{START} {START} {END}"), DamagedBlock::Unclosed),
        ] {
            assert_eq!(write(&document, &texts(&["x"])), Err(damage), "{document}");
        }
    }

    #[test]
    fn an_anchor_must_name_one_rule() {
        let document = write(
            "",
            &texts(&["run the tests twice", "run the tests alone", "go"]),
        )
        .unwrap();
        let delete = |anchor: &str| {
            apply(
                &document,
                &[RuleEdit::Delete {
                    anchor: anchor.into(),
                }],
            )
            .unwrap()
        };
        assert_eq!(delete("run the tests").unmatched, [0]);
        assert_eq!(delete("al").unmatched, [0]);
        assert_eq!(
            rules(&delete("TESTS  alone").document).unwrap(),
            ["run the tests twice", "go"]
        );
        assert_eq!(rules(&delete("Go").document).unwrap().len(), 2);
    }

    #[test]
    fn a_rule_cannot_break_out_of_the_block() {
        let document = write("", &texts(&[&format!("x {END} y {START}")])).unwrap();
        assert_eq!(rules(&document).unwrap(), ["x y"]);
    }

    proptest! {
        #[test]
        fn text_outside_the_block_is_kept(
            before in "[a-z \r\n]{0,30}", after in "[a-z \r\n]{0,30}",
            old in prop::collection::vec("[a-z -]{1,10}", 0..4),
            new in prop::collection::vec("\\PC{0,20}", 0..4),
        ) {
            let block: String = old.iter().map(|rule| format!("- {rule}\n")).collect();
            let document = format!("{before}{START}\n{block}{END}{after}");
            let next = write(&document, &new).unwrap();
            let (head, tail) = (format!("{before}{START}"), format!("{END}{after}"));
            prop_assert!(next.starts_with(&head) && next.ends_with(&tail));
            prop_assert_eq!(write(&next, &new).unwrap(), next.clone());
            prop_assert_eq!(write(&next, &rules(&next).unwrap()).unwrap(), next);
        }
    }
}
