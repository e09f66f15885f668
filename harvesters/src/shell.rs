//! Command lines, taken apart as far as it takes to see what was run and whose exit
//! code the shell reported. No shell grammar: chains, quotes, here-documents, loops.

/// How a step is joined to the one that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;` or a line feed
    Then,
    /// `|`
    Pipe,
    /// `&`
    Background,
    /// Nothing follows.
    End,
}

/// One simple command of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Its words without quotes; redirections left out.
    pub(crate) words: Vec<String>,
    /// Files that its output is redirected to.
    pub(crate) writes: Vec<String>,
    /// What joins it to the next step.
    pub(crate) join: Join,
}

/// Command lines longer than this are scripts that nobody verifies with.
const LONGEST: usize = 16_000;

/// The simple commands of a command line.
pub(crate) fn steps(line: &str) -> Vec<Step> {
    let mut parser = Parser {
        line: crate::redact::cut(line, LONGEST),
        at: 0,
        steps: Vec::new(),
        words: Vec::new(),
        writes: Vec::new(),
        heredocs: Vec::new(),
    };
    parser.run();
    parser.steps
}

/// Reads a command line from left to right. All that means something to it is ASCII, so
/// it goes by bytes and stops at beginnings of letters only.
struct Parser<'l> {
    line: &'l str,
    at: usize,
    steps: Vec<Step>,
    words: Vec<String>,
    writes: Vec<String>,
    heredocs: Vec<String>,
}

impl<'l> Parser<'l> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.line.as_bytes().get(self.at + ahead).copied()
    }

    /// What lies ahead up to a byte that ends it, which is passed over.
    fn pass_until(&mut self, ends: impl Fn(u8) -> bool) -> &'l str {
        let rest = &self.line[self.at..];
        let length = rest.bytes().position(ends).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// The letter ahead, which is passed over.
    fn pass_letter(&mut self) -> Option<char> {
        let letter = self.line[self.at..].chars().next()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn run(&mut self) {
        while let Some(letter) = self.peek(0) {
            match letter {
                b'\n' => {
                    self.at += 1;
                    self.close(Join::Then);
                    self.skip_heredocs();
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'#' if self.words_ended() => {
                    self.pass_until(|byte| byte == b'\n');
                }
                b';' => self.operator(1, Join::Then),
                b'&' if self.peek(1) == Some(b'&') => self.operator(2, Join::And),
                b'&' if self.peek(1) == Some(b'>') => self.redirection(),
                b'&' => self.operator(1, Join::Background),
                b'|' if self.peek(1) == Some(b'|') => self.operator(2, Join::Or),
                b'|' => self.operator(if self.peek(1) == Some(b'&') { 2 } else { 1 }, Join::Pipe),
                b'(' | b')' => self.at += 1,
                b'<' | b'>' => self.redirection(),
                b'0'..=b'9' if matches!(self.peek(1), Some(b'>' | b'<')) => {
                    self.at += 1;
                    self.redirection();
                }
                _ => {
                    let word = self.word();
                    self.words.push(word);
                }
            }
        }
        self.close(Join::End);
        if let Some(last) = self.steps.last_mut()
            && last.join == Join::Then
        {
            last.join = Join::End;
        }
    }

    /// Whether the position is at the start of a word.
    fn words_ended(&self) -> bool {
        self.line[..self.at]
            .chars()
            .next_back()
            .is_none_or(|letter| letter.is_whitespace() || letter == ';')
    }

    fn operator(&mut self, length: usize, join: Join) {
        self.at += length;
        self.close(join);
    }

    fn close(&mut self, join: Join) {
        if self.words.is_empty() && self.writes.is_empty() {
            return;
        }
        self.steps.push(Step {
            words: std::mem::take(&mut self.words),
            writes: std::mem::take(&mut self.writes),
            join,
        });
    }

    /// `> file`, `2>&1`, `<<END`: only files that are written to are kept.
    fn redirection(&mut self) {
        let operator = self.pass_until(|byte| !b"<>&|-".contains(&byte));
        self.pass_until(|byte| !matches!(byte, b' ' | b'\t'));
        if matches!(self.peek(0), None | Some(b'\n')) {
            return;
        }
        let target = self.word();
        if operator.starts_with("<<") && !operator.starts_with("<<<") {
            self.heredocs.push(target);
        } else if operator.starts_with('>') && !operator.ends_with('&')
            || operator == "&>"
            || operator == "&>>"
        {
            self.writes.push(target);
        }
    }

    /// Skips the bodies of here-documents that the line just read announced.
    fn skip_heredocs(&mut self) {
        for end in std::mem::take(&mut self.heredocs) {
            loop {
                let line = self.pass_until(|byte| byte == b'\n');
                if self.peek(0).is_none() {
                    return;
                }
                self.at += 1;
                if line.trim() == end {
                    break;
                }
            }
        }
    }

    /// One word, quotes removed, `$(…)` kept together.
    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\'' | b'"' | b'`' => self.quoted(byte, &mut word),
                b'\\' => {
                    self.at += 1;
                    word.extend(self.pass_letter().filter(|letter| *letter != '\n'));
                }
                b'$' if self.peek(1) == Some(b'(') => self.substitution(&mut word),
                b'$' => {
                    self.at += 1;
                    word.push('$');
                }
                _ if ends_word(byte) => break,
                _ => word.push_str(self.pass_until(is_special)),
            }
        }
        word
    }

    fn quoted(&mut self, quote: u8, word: &mut String) {
        self.at += 1;
        loop {
            word.push_str(self.pass_until(|byte| byte == quote || byte == b'\\' && quote == b'"'));
            match self.peek(0) {
                Some(b'\\') if quote == b'"' => {
                    self.at += 1;
                    word.extend(self.pass_letter());
                }
                Some(_) => {
                    self.at += 1;
                    return;
                }
                None => return,
            }
        }
    }

    fn substitution(&mut self, word: &mut String) {
        let mut depth = 0;
        loop {
            word.push_str(self.pass_until(|byte| matches!(byte, b'(' | b')')));
            match self.pass_letter() {
                Some('(') => {
                    depth += 1;
                    word.push('(');
                }
                Some(letter) => {
                    depth -= 1;
                    word.push(letter);
                    if depth == 0 {
                        return;
                    }
                }
                None => return,
            }
        }
    }
}

/// Whether a byte ends a word that is not quoted.
fn ends_word(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')'
    )
}

/// Whether a byte in a word is more than a part of it.
fn is_special(byte: u8) -> bool {
    ends_word(byte) || matches!(byte, b'\'' | b'"' | b'`' | b'\\' | b'$')
}

/// Files that a command line seems to change: redirections, `sed -i`, `tee`, `git
/// checkout --`. A hint, never proof.
pub(crate) fn changed_files(steps: &[Step]) -> Vec<String> {
    let mut files = Vec::new();
    for step in steps {
        files.extend(
            step.writes
                .iter()
                .filter(|path| !path.starts_with("/dev/"))
                .cloned(),
        );
        let words: Vec<&str> = step.words.iter().map(String::as_str).collect();
        let plain = |from: usize| {
            words
                .iter()
                .skip(from)
                .filter(|word| !word.starts_with('-'))
        };
        match words.as_slice() {
            ["sed", ..]
                if words
                    .iter()
                    .any(|word| word.starts_with("-i") || *word == "--in-place") =>
            {
                files.extend(plain(1).skip(1).map(|word| (*word).to_owned()));
            }
            ["tee" | "touch", ..] => files.extend(plain(1).map(|word| (*word).to_owned())),
            ["mv" | "cp", ..] => files.extend(plain(1).next_back().map(|word| (*word).to_owned())),
            _ => {}
        }
    }
    files.retain(|path| !path.is_empty() && !path.contains(['$', '*', '{']));
    files.dedup();
    files
}

/// Files or folders that a command line puts back to what the repository has.
pub(crate) fn reverted_files(steps: &[Step]) -> Vec<String> {
    let mut files = Vec::new();
    for step in steps {
        let words: Vec<&str> = step.words.iter().map(String::as_str).collect();
        let paths = match words.as_slice() {
            ["git", "checkout", rest @ ..] if rest.contains(&"--") || rest.contains(&".") => rest,
            ["git", "restore", rest @ ..] => rest,
            ["git", "reset", rest @ ..] if rest.contains(&"--hard") => &["."],
            ["git", "stash"] => &["."],
            _ => continue,
        };
        files.extend(
            paths
                .iter()
                .filter(|word| !word.starts_with('-') && !word.starts_with("HEAD"))
                .map(|word| (*word).to_owned()),
        );
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(line: &str) -> Vec<(String, Join)> {
        steps(line)
            .into_iter()
            .map(|step| (step.words.join(" "), step.join))
            .collect()
    }

    #[test]
    fn chains_quotes_and_redirections_are_told_apart() {
        assert_eq!(
            shape("cd 'a b' && pytest -k \"x && y\" 2>&1 | tail -3; echo done"),
            [
                ("cd a b".to_owned(), Join::And),
                ("pytest -k x && y".to_owned(), Join::Pipe),
                ("tail -3".to_owned(), Join::Then),
                ("echo done".to_owned(), Join::End),
            ]
        );
    }

    #[test]
    fn bodies_of_here_documents_are_no_commands() {
        assert_eq!(
            shape("cat > run.sh <<'EOF'\npytest\nEOF\nsh run.sh"),
            [
                ("cat".to_owned(), Join::Then),
                ("sh run.sh".to_owned(), Join::End)
            ]
        );
    }

    #[test]
    fn shell_edits_are_hinted_at() {
        assert_eq!(
            changed_files(&steps(
                "sed -i 's/a/b/' src/a.rs && echo x >> notes.md 2>/dev/null"
            )),
            ["src/a.rs", "notes.md"]
        );
        assert_eq!(
            reverted_files(&steps("git checkout -- src test && git status")),
            ["src", "test"]
        );
    }
}
