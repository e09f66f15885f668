//! What the output of a verification says.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use regex::bytes::{RegexSet, RegexSetBuilder};

/// Lines that tell of failure, in the words of the common tools.
static FAILS: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"(?i)\b[1-9]\d* (?:tests? |specs? |examples? |suites? |checks? )?(?:failed|failing|failures?|errors?|broken)\b",
        r"(?i)\b(?:failed|failures?|errors?)\s*[:=]\s*[1-9]",
        r"^\s*(?:FAILED|FAIL|ERROR|ERRORS)\b",
        r"^not ok\b",
        r"^# fail [1-9]",
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
        r"^(?:E  |AssertionError|panicked at)",
        r"^\s*(?:✗|✘|×) ",
    ])
});

/// Lines that tell of success.
static PASSES: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"(?i)\b\d+ (?:tests? |specs? |examples? |checks? )?(?:passed|passing|succeeded)\b",
        r"(?i)\b0 (?:failed|failures?|failing|errors?|problems?)\b",
        r"test result: ok",
        r"^ok\b",
        r"^PASS\b",
        r"^# fail 0",
        r"(?i)\bBUILD SUCCESS",
        r"^OK(?: \(|$)",
        r"(?i)\ball (?:checks|tests|files) (?:passed|pass|ok)",
        r"(?i)\bno (?:issues|errors|problems|lint errors) found",
        r"(?i)^success: ",
        r"Finished `?\w+`? .*target",
        r"(?i)\bcompiled successfully",
        r"^\s*(?:✓|✔) ",
    ])
});

/// Patterns are constants and tested; a broken one would only match nothing. They are about
/// ASCII: with the letters of all languages, a line with one of them is searched slowly.
fn set(patterns: &[&str]) -> RegexSet {
    RegexSetBuilder::new(patterns)
        .unicode(false)
        .build()
        .unwrap_or_else(|_| RegexSet::empty())
}

/// Passed, failed, or the output does not say.
pub(super) fn verdict(output: &str) -> Option<bool> {
    let plain = without_colours(output);
    if plain.lines().any(fails) {
        return Some(false);
    }
    let passes = |line: &str| PASSES.is_match(line.as_bytes());
    plain.lines().any(passes).then_some(true)
}

/// Whether a line tells of failure; `0 failed` does not.
fn fails(line: &str) -> bool {
    FAILS.is_match(line.as_bytes())
}

/// The lines that name what failed.
pub(super) fn failing_lines(output: &str) -> Vec<String> {
    const MOST: usize = 10;
    const LONGEST: usize = 240;
    without_colours(output)
        .lines()
        .filter(|line| fails(line))
        .take(MOST)
        .map(|line| crate::redact::cut(line.trim(), LONGEST).to_owned())
        .collect()
}

/// The output without colour codes.
fn without_colours(output: &str) -> Cow<'_, str> {
    static COLOURS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\x1b\[[0-9;]*[A-Za-z]").ok());
    match COLOURS.as_ref() {
        Some(colours) if output.contains('\x1b') => colours.replace_all(output, ""),
        _ => Cow::Borrowed(output),
    }
}
