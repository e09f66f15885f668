//! Whether a document forbids what a rule found: "never use `--no-verify`".
//!
//! Such a rule is what a careful developer writes, so a prohibition lowers a danger to a warning. It
//! never removes a finding: "never hesitate to …" begins alike, and a person has to read on.

use std::sync::LazyLock;

use regex::Regex;

/// How far before the found text the prohibition may begin, in bytes.
const REACH: usize = 80;

/// A negation, at once followed by a verb of doing, and nothing that ends the clause.
static FORBIDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:never|do\s+not|don['’]t|must\s+not|mustn['’]t|should\s+not|shouldn['’]t|may\s+not|avoid|refuse\s+to)\s+(?:ever\s+)?(?:use|using|run|running|execute|executing|pass|passing|call|calling|add|adding|set|setting|commit|committing|write|writing|push|pushing|install|installing|pipe|piping|skip|skipping|disable|disabling|ignore|ignoring|delete|deleting|remove|removing|try|reach\s+for)?[^.;:!?,\n\x00]*$",
    )
    .ok()
});

/// Whether the words before `start` forbid what comes there.
pub(super) fn precedes(text: &str, start: usize) -> bool {
    let mut from = start.saturating_sub(REACH);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let before = &text[from..start];
    // "never hesitate to run X" asks for X.
    let urges = [
        "hesitate", "forget", "fail to", "wait", "without", "ask", "stop",
    ];
    FORBIDS.as_ref().is_some_and(|forbids| {
        forbids.find(before).is_some_and(|found| {
            !urges
                .iter()
                .any(|word| found.as_str().to_lowercase().contains(word))
        })
    })
}
