//! Scripts of the code mode: which tools they call, and with which literal commands
//! (session-logs.md, section 3.5).

use std::sync::LazyLock;

use regex::Regex;

/// Names of the tools that a script calls, in order of first mention.
pub(super) fn tools(script: &str) -> Vec<String> {
    static CALL: LazyLock<Option<Regex>> = LazyLock::new(|| {
        // Letters of other languages would make a hundred copies of their tables.
        Regex::new(
            r#"(?-u)\btools(?:\.([A-Za-z_]\w{0,99})|\[\s*["']([\w.:-]{1,100})["']\s*\])\s*\("#,
        )
        .ok()
    });
    let mut names: Vec<String> = Vec::new();
    for found in CALL.iter().flat_map(|call| call.captures_iter(script)) {
        if let Some(name) = found.get(1).or_else(|| found.get(2))
            && !names.iter().any(|known| known == name.as_str())
        {
            names.push(name.as_str().to_owned());
        }
    }
    names
}

/// Tools that exist in every release: a script that failed may have called them.
pub(super) fn is_built_in(tool: &str) -> bool {
    tool.starts_with("mcp__")
        || matches!(
            tool,
            "exec_command"
                | "write_stdin"
                | "apply_patch"
                | "update_plan"
                | "view_image"
                | "web_search"
        )
}

/// Literal commands that a script runs, in order.
pub(super) fn commands(script: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for (at, name) in script.match_indices("exec_command") {
        let rest = script[at + name.len()..].trim_start();
        let Some(arguments) = rest.strip_prefix('(') else {
            continue;
        };
        if let Some(command) = member(arguments, &["cmd", "command"]) {
            commands.push(command);
        }
    }
    commands
}

/// The patch that a script applies, if it is a literal.
pub(super) fn patch(script: &str) -> Option<String> {
    let at = script.find("apply_patch")? + "apply_patch".len();
    let rest = script[at..].trim_start().strip_prefix('(')?.trim_start();
    literal(rest).or_else(|| member(rest, &["input", "patch"]))
}

/// The literal value of a member of the object at the start of `arguments`.
fn member(arguments: &str, names: &[&str]) -> Option<String> {
    const NEAR: usize = 400;
    let object = arguments.trim_start().strip_prefix('{')?;
    let head = crate::redact::cut(object, NEAR);
    names.iter().find_map(|name| {
        let mut from = 0;
        while let Some(found) = head[from..].find(name) {
            let at = from + found;
            from = at + name.len();
            let before = head[..at].trim_end_matches(['"', '\'']).trim_end();
            if !(before.is_empty() || before.ends_with([',', '{'])) {
                continue;
            }
            let after = object[from..].trim_start_matches(['"', '\'']).trim_start();
            if let Some(value) = after.strip_prefix(':') {
                return literal(value.trim_start());
            }
        }
        None
    })
}

/// The string literal at the start of a text; none when it is computed.
fn literal(text: &str) -> Option<String> {
    let mut letters = text.chars();
    let quote = letters
        .next()
        .filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    let mut value = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            letter if letter == quote => return Some(value),
            '\\' => match letters.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                'u' => value.push(unicode(&mut letters)?),
                '\n' => {}
                other => value.push(other),
            },
            '$' if quote == '`' && letters.as_str().starts_with('{') => return None,
            letter => value.push(letter),
        }
    }
    None
}

/// The character of `\uXXXX` or `\u{X}`.
fn unicode(letters: &mut std::str::Chars<'_>) -> Option<char> {
    let rest = letters.as_str();
    let (digits, skip) = match rest.strip_prefix('{') {
        Some(inner) => {
            let end = inner.find('}')?;
            (&inner[..end], end + 2)
        }
        None => (rest.get(..4)?, 4),
    };
    let letter = u32::from_str_radix(digits, 16)
        .ok()
        .and_then(char::from_u32);
    letters.nth(skip - 1)?;
    Some(letter.unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Exit codes that a script printed, one a line: `exit 1`, `exit code: 1`,
/// `"exit_code":1`.
pub(super) fn printed_codes(output: &str) -> Vec<i32> {
    static CODE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r#"(?m-u)^(?:exit(?:ed)?(?: (?:code|status))?[ :=]+(-?\d{1,5}))\s*$|"exit_code"\s*:\s*(-?\d{1,5})"#).ok()
    });
    // Most outputs have no such word in them, and that is seen sooner.
    let possible = memchr::memmem::find(output.as_bytes(), b"exit").is_some();
    CODE.iter()
        .filter(|_| possible)
        .flat_map(|code| code.captures_iter(output))
        .filter_map(|found| found.get(1).or_else(|| found.get(2))?.as_str().parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_commands_are_read_and_computed_ones_left() {
        let script = r#"const [a, b] = await Promise.all([
            tools.exec_command({cmd: "pytest -k \"a\"", workdir: "/x"}),
            tools.exec_command({"yield_time_ms": 10, "cmd": 'ls'}),
            tools.exec_command({cmd: `cat ${file}`}),
            tools.exec_command({cmd: `echo hi`})]);
            await tools.mcp__tickets__get({}); await tools["apply_patch"]("x");"#;
        assert_eq!(commands(script), ["pytest -k \"a\"", "ls", "echo hi"]);
        assert_eq!(
            tools(script),
            ["exec_command", "mcp__tickets__get", "apply_patch"]
        );
    }

    #[test]
    fn literal_patches_and_printed_codes_are_read() {
        let script =
            r#"await tools.apply_patch("*** Begin Patch\n*** Update File: a.py\n*** End Patch");"#;
        assert_eq!(
            patch(script).unwrap(),
            "*** Begin Patch\n*** Update File: a.py\n*** End Patch"
        );
        assert_eq!(
            printed_codes("1 failed\nexit 1\n{\"exit_code\": 0}"),
            [1, 0]
        );
    }
}
