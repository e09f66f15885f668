//! Semantic density: how much of a skill is made of words that command.
//!
//! An optional small bonus in the gate score. Between two skills that score alike, it prefers the
//! one whose own text gives the clearer orders; guidance and appendix do not count (engine 13).

use std::collections::HashSet;

use super::region::RegionKind;
use super::text::strip;

/// The words that count when the configuration names none.
pub const LEADING_WORDS: [&str; 11] = [
    "must",
    "always",
    "never",
    "only",
    "critical",
    "important",
    "resolve",
    "prefer",
    "ensure",
    "strict",
    "verify",
];

/// The share, 0 to 1, of the skill's words that are among `words` ([`LEADING_WORDS`] for `None`),
/// whatever their case. A word is a run of ASCII letters and digits of the lower-cased text.
#[must_use]
pub fn density(document: &str, words: Option<&[String]>) -> f64 {
    if strip(document).is_empty() {
        return 0.0;
    }
    let body = without_regions(document).to_lowercase();
    let wanted: HashSet<String> = match words {
        Some(words) => words.iter().map(|word| word.to_lowercase()).collect(),
        None => LEADING_WORDS.iter().map(|&word| word.to_owned()).collect(),
    };
    let (mut total, mut hits) = (0_u32, 0_u32);
    for word in body
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        total += 1;
        hits += u32::from(wanted.contains(word));
    }
    if total == 0 {
        0.0
    } else {
        f64::from(hits) / f64::from(total)
    }
}

/// Complete regions are left out; of an unclosed one only the first start marker is.
fn without_regions(document: &str) -> String {
    let mut text = document.to_owned();
    for kind in RegionKind::ALL {
        while let Some(start) = text.find(kind.start()) {
            let inner = start + kind.start().len();
            match text[inner..].find(kind.end()) {
                Some(end) => text.replace_range(start..inner + end + kind.end().len(), ""),
                None => {
                    text.replace_range(start..inner, "");
                    break;
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_body_counts() {
        let document = "Always read.\n<!-- SLOW_UPDATE_START -->\nnever\n<!-- SLOW_UPDATE_END -->";
        assert!((density(document, None) - 0.5).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn density_is_a_share(document in ".{0,200}") {
            let value = density(&document, None);
            prop_assert!((0.0..=1.0).contains(&value));
        }
    }
}
