//! Patterns of rule judges: Python's dialect, matched in linear time.
//!
//! Judges are written, often by a model, for Python's `re`. The regex crate reads nearly the same
//! language and cannot be made to hang; what it spells differently is translated here. Look-around
//! and back-references, which only a backtracking engine can match, are refused (sleep-night 6.1,
//! weakness 20).

use regex::Regex;

/// Compiles a pattern.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = translate(pattern)?;
    Regex::new(&translated).map_err(|error| reason(&error))
}

fn reason(error: &regex::Error) -> String {
    match error {
        // The last line of a syntax error names it; those before show where.
        regex::Error::Syntax(text) => {
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
        regex::Error::CompiledTooBig(_) => "the pattern is too large".to_owned(),
        other => other.to_string(),
    }
}

fn translate(pattern: &str) -> Result<String, String> {
    let multi_line = has_flag(pattern, 'm');
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => escape(chars.next(), &mut out)?,
            _ if in_class => {
                match c {
                    ']' => in_class = false,
                    // Sets of sets are not Python's.
                    '[' | '&' | '~' => out.push('\\'),
                    _ => {}
                }
                out.push(c);
            }
            '[' => {
                in_class = true;
                out.push(c);
                if chars.peek() == Some(&'^') {
                    out.extend(chars.next());
                }
                // A bracket that comes first is a member.
                if chars.peek() == Some(&']') {
                    chars.next();
                    out.push_str("\\]");
                }
            }
            '$' if !multi_line => out.push_str("(?:\\n?\\z)"),
            '{' if !is_repetition(chars.clone()) => out.push_str("\\{"),
            '(' if is_comment(chars.clone()) => {
                if !chars.any(|c| c == ')') {
                    return Err("a comment is not closed".to_owned());
                }
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}

fn escape(next: Option<char>, out: &mut String) -> Result<(), String> {
    match next {
        None => return Err("the pattern ends in a backslash".to_owned()),
        Some('Z') => out.push_str("\\z"),
        Some(c @ ('1'..='9')) => {
            return Err(format!(
                "back-reference \\{c} cannot be matched in linear time"
            ));
        }
        Some(c @ ('p' | 'P' | 'z' | 'K' | 'R' | 'X' | 'h' | 'H' | 'G' | 'Q' | 'E')) => {
            return Err(format!("there is no escape \\{c}"));
        }
        Some(c @ ('<' | '>')) => out.push(c),
        Some(c) if c.is_whitespace() || !c.is_ascii() => out.push(c),
        Some(c) => {
            out.push('\\');
            out.push(c);
        }
    }
    Ok(())
}

/// Whether what follows a `{` makes it a repetition; otherwise it is an ordinary character.
fn is_repetition(after: impl Iterator<Item = char>) -> bool {
    let inside: String = after
        .take_while(|&c| c.is_ascii_digit() || c == ',' || c == '}')
        .collect();
    let Some((bounds, _)) = inside.split_once('}') else {
        return false;
    };
    bounds.bytes().any(|byte| byte.is_ascii_digit()) && bounds.matches(',').count() <= 1
}

fn is_comment(mut after: impl Iterator<Item = char>) -> bool {
    after.next() == Some('?') && after.next() == Some('#')
}

fn has_flag(pattern: &str, flag: char) -> bool {
    pattern.split("(?").skip(1).any(|rest| {
        let flags: &str = rest.split([')', ':']).next().unwrap_or_default();
        !flags.is_empty() && flags.chars().all(|c| c.is_ascii_alphabetic()) && flags.contains(flag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pythons_spelling_is_understood() {
        for (pattern, text, found) in [
            ("yes\\Z", "yes\n", false),
            ("yes$", "yes\n", true),
            ("(?m)^a$", "b\na\nc", true),
            ("[[:alpha:]]", "a:]", true),
            ("[]a]", "]", true),
            ("x{", "x{", true),
            ("a{2}", "aa", true),
            ("(?#note)a", "a", true),
            ("\\<b\\>", "<b>", true),
        ] {
            assert_eq!(compile(pattern).unwrap().is_match(text), found, "{pattern}");
        }
    }

    #[test]
    fn what_takes_for_ever_is_refused() {
        for pattern in [
            "(a)\\1",
            "(?=a)b",
            "(?<!a)b",
            "(?P<x>a)(?P=x)",
            "[a-",
            "\\p{L}",
            "a\\",
        ] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn a_hostile_pattern_is_harmless() {
        let started = std::time::Instant::now();
        assert!(
            !compile("(a+)+$")
                .unwrap()
                .is_match(&format!("{}b", "a".repeat(5000)))
        );
        assert!(started.elapsed().as_secs() < 5);
    }
}
