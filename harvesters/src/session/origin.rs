//! Whose session it is, and who started it.

use serde::{Deserialize, Serialize};

/// The coding agents whose logs are known.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Agent {
    /// Claude Code (`~/.claude`).
    #[default]
    Claude,
    /// Codex (`~/.codex`).
    Codex,
    /// Pi (`~/.pi/agent`).
    Pi,
    /// `OpenCode` (`~/.local/share/opencode`).
    #[serde(rename = "opencode")]
    OpenCode,
    /// Gemini CLI (`~/.gemini`).
    Gemini,
    /// GitHub Copilot CLI (`~/.copilot`).
    CopilotCli,
    /// VS Code chat (Copilot).
    CopilotChat,
    /// Cursor (`~/.cursor`).
    Cursor,
    /// Devin CLI (`~/.local/share/devin/cli`).
    Devin,
}

impl Agent {
    /// The name used in configuration, reports and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Pi => "pi",
            Agent::OpenCode => "opencode",
            Agent::Gemini => "gemini",
            Agent::CopilotCli => "copilot-cli",
            Agent::CopilotChat => "copilot-chat",
            Agent::Cursor => "cursor",
            Agent::Devin => "devin",
        }
    }
}

impl std::fmt::Display for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// How a session came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A person at the terminal or in an editor.
    Interactive,
    /// A person's one-shot run or a script of theirs.
    Headless,
    /// Another program's own call, ours included. Never mined.
    Machine,
    /// The log does not tell.
    #[default]
    Unknown,
}
