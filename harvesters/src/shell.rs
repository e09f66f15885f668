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
        rest: crate::redact::cut(line, LONGEST)
            .chars()
            .collect::<Vec<_>>(),
        at: 0,
        steps: Vec::new(),
        words: Vec::new(),
        writes: Vec::new(),
        heredocs: Vec::new(),
    };
    parser.run();
    parser.steps
}

/// Reads a command line from left to right.
struct Parser {
    rest: Vec<char>,
    at: usize,
    steps: Vec<Step>,
    words: Vec<String>,
    writes: Vec<String>,
    heredocs: Vec<String>,
}

impl Parser {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn run(&mut self) {
        while let Some(letter) = self.peek(0) {
            match letter {
                '\n' => {
                    self.at += 1;
                    self.close(Join::Then);
                    self.skip_heredocs();
                }
                ' ' | '\t' | '\r' => self.at += 1,
                '#' if self.words_ended() => self.skip_comment(),
                ';' => self.operator(1, Join::Then),
                '&' if self.peek(1) == Some('&') => self.operator(2, Join::And),
                '&' if self.peek(1) == Some('>') => self.redirection(),
                '&' => self.operator(1, Join::Background),
                '|' if self.peek(1) == Some('|') => self.operator(2, Join::Or),
                '|' => self.operator(if self.peek(1) == Some('&') { 2 } else { 1 }, Join::Pipe),
                '(' | ')' => self.at += 1,
                '<' | '>' => self.redirection(),
                '0'..='9' if matches!(self.peek(1), Some('>' | '<')) => {
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
        self.at == 0 || self.rest[self.at - 1].is_whitespace() || self.rest[self.at - 1] == ';'
    }

    fn skip_comment(&mut self) {
        while self.peek(0).is_some_and(|letter| letter != '\n') {
            self.at += 1;
        }
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
        let start = self.at;
        while matches!(self.peek(0), Some('<' | '>' | '&' | '|' | '-')) {
            self.at += 1;
        }
        let operator: String = self.rest[start..self.at].iter().collect();
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.at += 1;
        }
        if matches!(self.peek(0), None | Some('\n')) {
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
                let start = self.at;
                self.skip_comment();
                let line: String = self.rest[start..self.at].iter().collect();
                let over = self.peek(0).is_none();
                self.at += 1;
                if over || line.trim() == end {
                    break;
                }
            }
            self.at = self.at.min(self.rest.len());
        }
    }

    /// One word, quotes removed, `$(…)` kept together.
    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(letter) = self.peek(0) {
            match letter {
                '\'' => self.quoted('\'', &mut word),
                '"' => self.quoted('"', &mut word),
                '`' => self.quoted('`', &mut word),
                '\\' => {
                    if let Some(next) = self.peek(1)
                        && next != '\n'
                    {
                        word.push(next);
                    }
                    self.at += 2;
                }
                '$' if self.peek(1) == Some('(') => self.substitution(&mut word),
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                _ => {
                    word.push(letter);
                    self.at += 1;
                }
            }
        }
        self.at = self.at.min(self.rest.len());
        word
    }

    fn quoted(&mut self, quote: char, word: &mut String) {
        self.at += 1;
        while let Some(letter) = self.peek(0) {
            self.at += 1;
            if letter == quote {
                return;
            }
            if letter == '\\' && quote == '"' {
                if let Some(next) = self.peek(0) {
                    word.push(next);
                    self.at += 1;
                }
            } else {
                word.push(letter);
            }
        }
    }

    fn substitution(&mut self, word: &mut String) {
        let mut depth = 0;
        while let Some(letter) = self.peek(0) {
            word.push(letter);
            self.at += 1;
            match letter {
                '(' => depth += 1,
                ')' => {
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                }
                _ => {}
            }
        }
    }
}

/// Files that a command line seems to change: redirections, `sed -i`, `tee`, `git
/// checkout --`. A hint, never proof.
pub(crate) fn changed_files(line: &str) -> Vec<String> {
    let mut files = Vec::new();
    for step in steps(line) {
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
pub(crate) fn reverted_files(line: &str) -> Vec<String> {
    let mut files = Vec::new();
    for step in steps(line) {
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
            changed_files("sed -i 's/a/b/' src/a.rs && echo x >> notes.md 2>/dev/null"),
            ["src/a.rs", "notes.md"]
        );
        assert_eq!(
            reverted_files("git checkout -- src test && git status"),
            ["src", "test"]
        );
    }
}
