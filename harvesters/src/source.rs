//! The agents whose logs can be read, one file or folder of this crate each.
//!
//! Adding a source means one module with a [`Source`] and one line in [`registry`]. Text that
//! it reads gets into a session through the door of its [`Run`] alone ([`crate::Redacted`]).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::harvest::Run;
use crate::session::Agent;

/// What a source is, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SourceInfo {
    /// Whose logs.
    pub agent: Agent,
    /// The agent's name as people write it.
    pub title: &'static str,
    /// What is read, relative to its root.
    pub reads: &'static str,
    /// Where its root is.
    pub location: &'static str,
    /// What is kept of it.
    pub keeps: &'static str,
}

/// One agent's logs.
pub trait Source: Sync {
    /// What it is.
    fn info(&self) -> SourceInfo;

    /// Its roots for an operating system (as [`std::env::consts::OS`] names it), a home
    /// directory and an environment, existing or not.
    fn default_roots(
        &self,
        os: &str,
        home: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Vec<PathBuf>;

    /// Reads everything below one root and hands sessions to the run. Breaks when the
    /// run wants no more.
    fn read(&self, root: &Path, run: &mut Run<'_>) -> ControlFlow<()>;
}

/// All sources, in the order in which they are read.
#[must_use]
pub fn registry() -> &'static [&'static dyn Source] {
    &[
        &crate::claude::ClaudeCode,
        &crate::codex::Codex,
        &crate::pi::Pi,
        &crate::gemini::GeminiCli,
        &crate::copilot_cli::CopilotCli,
        &crate::copilot_chat::CopilotChat,
        &crate::opencode::OpenCode,
        &crate::cursor::Cursor,
        &crate::devin::Devin,
    ]
}

/// Where each agent keeps its logs. Always given explicitly, so that a test cannot
/// touch a real home by accident.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roots(BTreeMap<Agent, Vec<PathBuf>>);

impl Roots {
    /// No roots: nothing will be read.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The roots of all sources below a home directory, with the agents' own
    /// environment variables (`CLAUDE_CONFIG_DIR`, `CODEX_HOME`, …) taken into account.
    #[must_use]
    pub fn from_env(home: &Path) -> Self {
        Self::from_vars(std::env::consts::OS, home, &|name| std::env::var_os(name))
    }

    /// As [`Roots::from_env`], with operating system and environment given.
    #[must_use]
    pub fn from_vars(os: &str, home: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut roots = Self::none();
        for source in registry() {
            for root in source.default_roots(os, home, &set) {
                roots.add(source.info().agent, root);
            }
        }
        roots
    }

    /// These roots and one more. A root that is already there under another spelling
    /// is not added again.
    #[must_use]
    pub fn with(mut self, agent: Agent, root: impl Into<PathBuf>) -> Self {
        self.add(agent, root.into());
        self
    }

    fn add(&mut self, agent: Agent, root: PathBuf) {
        let real = |path: &Path| fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let roots = self.0.entry(agent).or_default();
        if !roots.iter().any(|known| real(known) == real(&root)) {
            roots.push(root);
        }
    }

    /// The roots of one agent.
    #[must_use]
    pub fn of(&self, agent: Agent) -> &[PathBuf] {
        self.0.get(&agent).map(Vec::as_slice).unwrap_or_default()
    }
}
