//! Exact and keyword judging: is the reference in the response?
//!
//! Both compare whole words. `42` is not in `420`, and `the` is not in `then` (sleep-night 6.4,
//! weakness 22).

use std::collections::BTreeSet;

/// The text in lower case with everything that is neither a word nor a blank as a blank, and
/// blanks collapsed. Letters, digits, marks and `_` make words.
#[must_use]
pub fn normalise(text: &str) -> String {
    let spaced: String = text
        .to_lowercase()
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || c == '_' {
                c
            } else {
                ' '
            }
        })
        .collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the words of the reference stand together in the response. A reference without words
/// is in nothing.
#[must_use]
pub fn contains_reference(reference: &str, response: &str) -> bool {
    let (reference, response) = (normalise(reference), normalise(response));
    let words: Vec<&str> = reference
        .split(' ')
        .filter(|word| !word.is_empty())
        .collect();
    let within: Vec<&str> = response.split(' ').collect();
    !words.is_empty() && within.windows(words.len()).any(|window| window == words)
}

/// The share of the reference's words that the response holds, 0 to 1. Words of one or two
/// characters do not count; without others it is 0.
#[must_use]
pub fn keyword_share(reference: &str, response: &str) -> f64 {
    let (reference, response) = (normalise(reference), normalise(response));
    let wanted: BTreeSet<&str> = reference
        .split(' ')
        .filter(|word| word.chars().count() > 2)
        .collect();
    let held: BTreeSet<&str> = response.split(' ').collect();
    if wanted.is_empty() {
        return 0.0;
    }
    wanted.intersection(&held).count() as f64 / wanted.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_count_and_not_parts_of_them() {
        assert!(contains_reference("42", "it is 42."));
        assert!(!contains_reference("42", "it is 420"));
        assert!(!contains_reference("!!!", "anything"));
        assert!((keyword_share("the cat", "then a cat") - 0.5).abs() < 1e-12);
    }
}
