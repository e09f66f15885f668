//! Where output goes: data to standard output, everything else to standard error.
//!
//! Colour and progress only on a terminal; colour never carries meaning alone.

use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;
use serde::Serialize;

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Writes what a command has to say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Printer {
    quiet: bool,
    color: bool,
}

impl Printer {
    /// A printer for this process.
    #[must_use]
    pub(super) fn new(quiet: bool, color: ColorChoice) -> Self {
        let color = match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            }
        };
        Self { quiet, color }
    }

    /// Whether only data and errors are wanted.
    #[must_use]
    pub(super) fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Whether colours are used.
    #[must_use]
    pub(super) fn colour(self) -> bool {
        self.color
    }

    /// Whether progress may be drawn.
    #[must_use]
    pub(super) fn progress(self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// One line of data on standard output. A reader that went away ends the program quietly.
    pub(super) fn line(self, text: impl AsRef<str>) {
        if writeln!(io::stdout(), "{}", text.as_ref()).is_err() {
            std::process::exit(0);
        }
    }

    /// One JSON document on standard output, with the name and version of its form.
    pub(super) fn json(self, schema: &str, value: &impl Serialize) {
        #[derive(Serialize)]
        struct Document<'a, T> {
            schema: &'a str,
            #[serde(flatten)]
            value: &'a T,
        }
        match serde_json::to_string_pretty(&Document { schema, value }) {
            Ok(text) => self.line(text),
            Err(error) => tracing::error!("cannot write {schema} as JSON: {error}"),
        }
    }

    /// One line for people on standard error; nothing with `-q`.
    pub(super) fn note(self, text: impl AsRef<str>) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{}", text.as_ref());
        }
    }

    /// A diff on standard output, coloured on a terminal.
    pub(super) fn diff(self, text: &str) {
        for line in text.lines() {
            let code = match line.as_bytes().first() {
                Some(b'+') if !line.starts_with("+++") => "32",
                Some(b'-') if !line.starts_with("---") => "31",
                Some(b'@') => "36",
                _ => "",
            };
            if self.color && !code.is_empty() {
                self.line(format!("\u{1b}[{code}m{line}\u{1b}[0m"));
            } else {
                self.line(line);
            }
        }
    }
}
