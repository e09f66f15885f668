//! How a command ends: an exit status, and for a failure one report with its causes and a hint.

use std::fmt;

/// The exit statuses of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Done; also "nothing to do".
    Done = 0,
    /// The input or the situation is wrong.
    Situation = 1,
    /// Waiting for a person or another agent.
    Waiting = 3,
    /// No usable model.
    NoModel = 4,
    /// The budget is used up; state is kept.
    Budget = 5,
    /// A bug of ours.
    Bug = 70,
    /// Stopped by Ctrl-C; state is kept.
    Interrupted = 130,
}

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    /// What the process returns.
    pub status: ExitStatus,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    /// A failure with a message of its own.
    #[must_use]
    pub fn new(status: ExitStatus, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
        }
    }

    /// A failure of the user's input or situation.
    #[must_use]
    pub fn situation(error: &dyn std::error::Error) -> Self {
        Self::of(ExitStatus::Situation, error)
    }

    /// A failure made of an error and its chain of causes.
    #[must_use]
    pub fn of(status: ExitStatus, error: &dyn std::error::Error) -> Self {
        let mut failure = Self::new(status, error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            // Many errors put their cause into their own message; saying it once is enough.
            let text = cause.to_string();
            if !failure.message.contains(&text) {
                failure.causes.push(text);
            }
            source = cause.source();
        }
        failure
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// The causes below the message, outermost first.
    #[must_use]
    pub fn causes(&self) -> &[String] {
        &self.causes
    }

    /// What to do next.
    #[must_use]
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
