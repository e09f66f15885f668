//! What the output of a verification says.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

/// Lines that tell of failure, in the words of the common tools.
static FAILS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    any_of(&[
        r"(?i)\b[1-9]\d* (?:tests? |specs? |examples? |suites? |checks? )?(?:failed|failing|failures?|errors?|broken)\b",
        r"(?i)\b(?:failed|failures?|errors?)[ \t]*[:=][ \t]*[1-9]",
        r"^[ \t]*(?:FAILED|FAIL|ERROR|ERRORS)\b",
        r"^not ok\b",
        r"^(?:#|ℹ) fail [1-9]",
        r"^[ \t]*[1-9]\d* fail\r?$",
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
        r"^[ \t]*(?:(?:✗|✘|×) |✖ [^0-9\n])",
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
static PASSES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    any_of(&[
        r"(?i)\b\d+ (?:tests? |specs? |examples? |checks? )?(?:passed|passing|succeeded)\b",
        r"(?i)\b0 (?:tests? |specs? |checks? )?(?:failed|failures?|failing|errors?|problems?|issues?)\b",
        r"(?i)\bfailed: +0\b",
        r"\bFailures: 0, Errors: 0\b",
        r"^[ \t]*0 fail\r?$",
        r"test result: ok",
        r"^ok\b",
        r"^PASS\b",
        r"^(?:#|ℹ) fail 0",
        r"(?i)\bBUILD SUCCESS",
        r"^[ \t]*(?:OK(?: \(|\r?$|, but)|\[OK\])",
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
        r"^[ \t]*(?:✓|✔) ",
    ])
});

/// One pattern out of several, for all lines of a text at once. Patterns are constants and
/// tested; a broken one would only match nothing. They are about ASCII: with the letters of
/// all languages, a text with one of them is searched slowly.
fn any_of(patterns: &[&str]) -> Option<Regex> {
    // In a group of its own, what one says about case holds for it alone.
    RegexBuilder::new(&format!("(?:{})", patterns.join(")|(?:")))
        .multi_line(true)
        .unicode(false)
        .build()
        .ok()
}

/// Passed, failed, or the output does not say.
pub(super) fn verdict(output: &str) -> Option<bool> {
    let plain = without_colours(output.as_bytes());
    let has = |pattern: &LazyLock<Option<Regex>>| {
        pattern
            .as_ref()
            .is_some_and(|pattern| pattern.is_match(&plain))
    };
    match has(&FAILS) {
        true => Some(false),
        false => has(&PASSES).then_some(true),
    }
}

/// The lines that name what failed.
pub(super) fn failing_lines(output: &str) -> Vec<String> {
    const MOST: usize = 10;
    const LONGEST: usize = 240;
    let plain = without_colours(output.as_bytes());
    let mut at = 0;
    let lines = std::iter::from_fn(|| {
        // No pattern reaches over the end of a line, so the end of a match is in its line.
        let end = FAILS.as_ref()?.shortest_match_at(&plain, at)?;
        let line = line_around(&plain, end.max(1) - 1);
        at = line.end + 1;
        Some(String::from_utf8_lossy(&plain[line]).trim().to_owned())
    });
    lines
        .take(MOST)
        .map(|line| crate::redact::cut(&line, LONGEST).to_owned())
        .collect()
}

/// The line that a byte is in.
fn line_around(text: &[u8], at: usize) -> Range<usize> {
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |before| before + 1);
    let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length);
    start..end
}

/// The output without colour codes.
fn without_colours(output: &[u8]) -> Cow<'_, [u8]> {
    static COLOURS: LazyLock<Option<Regex>> = LazyLock::new(|| any_of(&[r"\x1b\[[0-9;]*[A-Za-z]"]));
    match COLOURS.as_ref() {
        Some(colours) if output.contains(&b'\x1b') => colours.replace_all(output, &b""[..]),
        _ => Cow::Borrowed(output),
    }
}
