//! The table of secret shapes (session-logs.md, section 13; sleep-night.md, section 5.9).
//!
//! One row a kind: its name (which becomes the placeholder), words of which one must
//! be in what it finds, the shape, a text that it must find and one that it must leave.
//! Where a shape has a group `v`, only that group is the secret: names stay readable.
//! Order matters: where two shapes overlap, the earlier row names the kind.

mod assignments;
mod platforms;
mod products;
mod services;
mod shapes;

use super::hit::{self, Near};
use super::plausible::{self, Check};

/// One kind of secret.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Name of the kind, used in the placeholder `[redacted:name]`.
    pub name: &'static str,
    /// Lower-case words; every match has one of them in it.
    pub keywords: &'static [&'static str],
    /// The shape, with the secret in the group `v` or all of it.
    pub pattern: &'static str,
    /// A text in which the rule must find something.
    pub example: &'static str,
    /// A text in which it must find nothing.
    pub counter_example: &'static str,
    /// Whether a keyword can belong to a match where it stands.
    pub(crate) near: Near,
    /// How many bytes before a keyword a match can begin at most; none where that is not
    /// known, then the pattern walks over the whole text.
    pub(crate) reach: Option<usize>,
    /// Words of which one must be anywhere in the text as well; none for no such test.
    pub(crate) beside: &'static [&'static str],
    /// A further test of the value.
    pub(crate) check: Check,
}

/// A row without a further test.
const fn row(
    name: &'static str,
    keywords: &'static [&'static str],
    pattern: &'static str,
    example: &'static str,
    counter_example: &'static str,
) -> Rule {
    Rule {
        name,
        keywords,
        pattern,
        example,
        counter_example,
        near: hit::anywhere,
        reach: None,
        beside: &[],
        check: plausible::any,
    }
}

/// The built-in rules, specific ones first.
pub fn built_in() -> impl Iterator<Item = &'static Rule> {
    platforms::PLATFORMS
        .iter()
        .chain(services::SERVICES)
        .chain(products::PRODUCTS)
        .chain(shapes::SHAPES)
        .chain(assignments::ASSIGNMENTS)
}
