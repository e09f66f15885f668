//! Putting a change onto a text that somebody else changed meanwhile.
//!
//! The classic three-way merge on lines: what one side changed and the other left alone
//! is taken; what both changed in the same way is taken once; where the two sides
//! touched the same or neighbouring lines differently there is no answer, and a person
//! must decide.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Puts what `proposed` changed of `base` onto `live`, which somebody changed as well.
///
/// `None` if the two changes meet. All three texts are in the program's form.
pub fn rebase(base: &str, proposed: &str, live: &str) -> Option<String> {
    if live == base {
        return Some(proposed.to_owned());
    }
    if proposed == base || proposed == live {
        return Some(live.to_owned());
    }
    merge(base, proposed, live)
}

/// One stretch of the base and what a side has in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hunk<'t> {
    base: Range<usize>,
    lines: Vec<&'t str>,
}

fn merge(base: &str, one: &str, other: &str) -> Option<String> {
    let base_lines: Vec<&str> = base.split_inclusive('\n').collect();
    let mut ours = hunks(&base_lines, one).into_iter().peekable();
    let mut theirs = hunks(&base_lines, other).into_iter().peekable();
    let mut merged = Vec::new();
    let mut done = 0;
    loop {
        let next = match (ours.peek(), theirs.peek()) {
            (None, None) => break,
            (Some(hunk), Some(same)) if hunk == same => {
                theirs.next();
                ours.next()
            }
            (Some(hunk), Some(rival)) if touches(&hunk.base, &rival.base) => return None,
            (Some(hunk), Some(rival)) if hunk.base.start < rival.base.start => ours.next(),
            (Some(_), None) => ours.next(),
            _ => theirs.next(),
        };
        let hunk = next?;
        merged.extend_from_slice(base_lines.get(done..hunk.base.start)?);
        merged.extend_from_slice(&hunk.lines);
        done = hunk.base.end;
    }
    merged.extend_from_slice(base_lines.get(done..)?);
    // A line that lost its newline at the end of one side may have come to stand in the
    // middle of the result.
    let torn = merged
        .iter()
        .rev()
        .skip(1)
        .any(|line| !line.ends_with('\n'));
    (!torn).then(|| merged.concat())
}

fn hunks<'t>(base: &[&'t str], side: &'t str) -> Vec<Hunk<'t>> {
    let side: Vec<&str> = side.split_inclusive('\n').collect();
    capture_diff_slices(Algorithm::Patience, base, &side)
        .into_iter()
        .filter(|op| !matches!(op, DiffOp::Equal { .. }))
        .fold(Vec::new(), |mut hunks: Vec<Hunk<'t>>, op| {
            let (old, new) = (op.old_range(), op.new_range());
            match hunks.last_mut() {
                Some(last) if last.base.end == old.start => {
                    last.base.end = old.end;
                    last.lines.extend_from_slice(&side[new]);
                }
                _ => hunks.push(Hunk {
                    base: old,
                    lines: side[new].to_vec(),
                }),
            }
            hunks
        })
}

/// Whether two stretches overlap or lie side by side; between neighbours the order of
/// what is put in is anybody's guess.
fn touches(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start <= other.end && other.start <= one.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: &str = "one\ntwo\nthree\nfour\nfive\n";

    #[test]
    fn changes_apart_from_each_other_are_both_taken() {
        assert_eq!(
            rebase(
                BASE,
                "one\ntwo\nthree\nfour\nFIVE\n",
                "zero\none\ntwo\nthree\nfour\nfive\n"
            )
            .as_deref(),
            Some("zero\none\ntwo\nthree\nfour\nFIVE\n")
        );
    }

    #[test]
    fn changes_of_the_same_line_need_a_person() {
        assert_eq!(
            rebase(
                BASE,
                "one\n2\nthree\nfour\nfive\n",
                "one\nII\nthree\nfour\nfive\n"
            ),
            None
        );
    }

    #[test]
    fn the_same_change_on_both_sides_is_taken_once() {
        let both = "one\n2\nthree\nfour\nfive\n";
        let more = "one\n2\nthree\nfour\n5\n";
        assert_eq!(rebase(BASE, both, more).as_deref(), Some(more));
    }

    #[test]
    fn two_additions_at_one_place_need_a_person() {
        assert_eq!(
            rebase(BASE, &format!("{BASE}six\n"), &format!("{BASE}seven\n")),
            None
        );
    }

    #[test]
    fn a_removed_line_and_a_distant_addition_fit() {
        assert_eq!(
            rebase(BASE, "two\nthree\nfour\nfive\n", &format!("{BASE}six\n")).as_deref(),
            Some("two\nthree\nfour\nfive\nsix\n")
        );
    }

    proptest! {
        #[test]
        fn an_unchanged_side_gives_way(base in "([abc]\n){0,8}", other in "([abc]\n){0,8}") {
            prop_assert_eq!(rebase(&base, &other, &base), Some(other.clone()));
            prop_assert_eq!(rebase(&base, &base, &other), Some(other.clone()));
            prop_assert_eq!(rebase(&base, &other, &other), Some(other.clone()));
            prop_assert_eq!(merge(&base, &other, &base), Some(other.clone()));
            prop_assert_eq!(merge(&base, &base, &other), Some(other));
        }

        #[test]
        fn it_does_not_matter_who_came_first(
            base in "([abcd]\n){0,8}", one in "([abcd]\n){0,8}", other in "([abcd]\n){0,8}[x]?"
        ) {
            prop_assert_eq!(merge(&base, &one, &other), merge(&base, &other, &one));
        }

        #[test]
        fn an_addition_at_each_end_always_fits(base in "([abcd]\n){1,8}") {
            let (top, bottom) = (format!("top\n{base}"), format!("{base}bottom\n"));
            prop_assert_eq!(merge(&base, &top, &bottom), Some(format!("top\n{base}bottom\n")));
        }
    }
}
