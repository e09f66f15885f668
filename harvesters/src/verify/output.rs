//! What the output of a verification says.

use std::sync::LazyLock;

use regex::RegexSet;

/// Lines that tell of failure, in the words of the common tools.
static FAILS: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"(?i)\b[1-9]\d* (?:tests? |specs? |examples? |suites? |checks? )?(?:failed|failing|failures?|errors?|broken)\b",
        r"(?i)\b(?:failed|failures?|errors?)\s*[:=]\s*[1-9]",
        r"^\s*(?:FAILED|FAIL|ERROR|ERRORS)\b",
        r"^not ok\b",
        r"^[#ℹ] fail [1-9]",
        r"^\s*[1-9]\d* fail$",
        r"test result: FAILED",
        r"^=+ (?:FAILURES|ERRORS) =+",
        r"^--- FAIL",
        r"(?i)\bBUILD FAIL(?:ED|URE)\b",
        r"^npm (?:ERR!|error)",
        r"^error(?:\[\w+\])?:",
        r"\berror TS\d+:",
        r":\d+:\d+:? (?:fatal )?error\b",
        r"^Traceback \(most recent call last\)",
        r"^make(?:\[\d+\])?: \*\*\*",
        r"^(?:E  |AssertionError|panicked at|panic:)",
        r"^\s*(?:[✗✘×] |✖ \D)",
        r"^\[(?i:error)\]",
        r"^> Task \S+ FAILED",
        r"^error Command failed",
        r"\bELIFECYCLE\b",
        r"(?i)\bsome tests failed\b",
        r"(?i)\b[1-9]\d* (?:offenses?|issues?)\b",
        r"(?i)^(?:would reformat|\[warn\] code style issues)\b",
        r"^\S+:\d+:\d+:? [A-Z]{1,3}\d{3,4}\b",
    ])
});

/// Lines that tell of success.
static PASSES: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"(?i)\b\d+ (?:tests? |specs? |examples? |checks? )?(?:passed|passing|succeeded)\b",
        r"(?i)\b0 (?:tests? |specs? |checks? )?(?:failed|failures?|failing|errors?|problems?|issues?)\b",
        r"(?i)\bfailed: +0\b",
        r"\bFailures: 0, Errors: 0\b",
        r"^\s*0 fail$",
        r"test result: ok",
        r"^ok\b",
        r"^PASS\b",
        r"^[#ℹ] fail 0",
        r"(?i)\bBUILD SUCCESS",
        r"^\s*(?:OK(?: \(|$|, but)|\[OK\])",
        r"^\[success\]",
        r"\bExecuted \d+ of \d+ SUCCESS\b",
        r"(?i)\ball (?:checks|tests|files) (?:passed|pass|ok)",
        r"^All matched files use ",
        r"(?i)\bno offenses detected\b",
        r"(?i)^\d+ files? would be left unchanged",
        r"(?i)\bno (?:issues|errors|problems|lint errors) found",
        r"(?i)^success: ",
        r"Finished `?\w+`? .*target",
        r"(?i)\bcompiled successfully",
        r"^\s*[✓✔] ",
    ])
});

/// Patterns are constants and tested; a broken one would only match nothing.
fn set(patterns: &[&str]) -> RegexSet {
    RegexSet::new(patterns).unwrap_or_else(|_| RegexSet::empty())
}

/// Passed, failed, or the output does not say.
pub(super) fn verdict(output: &str) -> Option<bool> {
    if lines(output).any(|line| fails(&line)) {
        Some(false)
    } else {
        lines(output)
            .any(|line| PASSES.is_match(&line))
            .then_some(true)
    }
}

/// Whether a line tells of failure; `0 failed` does not.
fn fails(line: &str) -> bool {
    FAILS.is_match(line)
}

/// The lines that name what failed.
pub(super) fn failing_lines(output: &str) -> impl Iterator<Item = String> {
    const MOST: usize = 10;
    const LONGEST: usize = 240;
    lines(output)
        .filter(|line| fails(line))
        .take(MOST)
        .map(|line| crate::redact::cut(line.trim(), LONGEST).to_owned())
}

/// Lines without colour codes.
fn lines(output: &str) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
    static COLOURS: LazyLock<Option<regex::Regex>> =
        LazyLock::new(|| regex::Regex::new(r"\x1b\[[0-9;]*[A-Za-z]").ok());
    output.lines().map(|line| match COLOURS.as_ref() {
        Some(colours) if line.contains('\x1b') => colours.replace_all(line, ""),
        _ => std::borrow::Cow::Borrowed(line),
    })
}
