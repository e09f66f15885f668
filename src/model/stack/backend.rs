//! The backends by name.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use super::ModelError;

/// Which protocol a role's model is spoken to in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// Any Chat Completions server.
    OpenaiCompatible,
    /// Replies from a file of rules.
    Scripted,
}

/// Every accepted spelling (backends 1.2).
const SPELLINGS: [(&str, Backend); 5] = [
    ("openai_compatible", Backend::OpenaiCompatible),
    ("openai_compatible_chat", Backend::OpenaiCompatible),
    ("openai-compatible", Backend::OpenaiCompatible),
    ("compat", Backend::OpenaiCompatible),
    ("scripted", Backend::Scripted),
];

/// Names that SkillOpt knows (backends 1.1, 1.2) and this version does not speak.
const NOT_BUILT: [&str; 23] = [
    "anthropic",
    "azure",
    "azure-openai",
    "azure_openai",
    "claude",
    "claude_chat",
    "claude_code_exec",
    "codex",
    "codex_exec",
    "copilot",
    "copilot_chat",
    "copilot_cli",
    "copilot_exec",
    "cursor",
    "cursor_agent",
    "cursor_exec",
    "github_copilot",
    "minimax",
    "minimax_chat",
    "openai",
    "openai_chat",
    "qwen",
    "qwen_chat",
];

/// What a user without a model can do, one way after the other.
pub(super) const HOW_TO_CONFIGURE: &str = "\
these models can be used:
  openai_compatible: any Chat Completions server (OpenAI, a gateway, or a local one such as \
llama.cpp, vLLM or Ollama)
    export OPENAI_COMPATIBLE_BASE_URL=http://127.0.0.1:8080/v1
    export OPENAI_COMPATIBLE_API_KEY=...   (a key alone means https://api.openai.com/v1)
    export OPENAI_COMPATIBLE_MODEL=NAME
    (OPTIMIZER_ or TARGET_ in front of a name sets one role apart)
    or: --model both=openai_compatible:NAME@http://127.0.0.1:8080/v1
    or, in config.yaml, under models.optimizer and models.target: base_url, api_key_env, model
  scripted: replies from a file of rules, without a model
    --model both=scripted:FILE";

/// The names to offer.
pub(super) fn names() -> String {
    "openai_compatible, scripted".to_owned()
}

/// The nearest right name, as the end of a sentence; empty when none is near.
pub(super) fn did_you_mean(name: &str) -> String {
    SPELLINGS
        .iter()
        .map(|(spelling, _)| (*spelling, strsim::jaro_winkler(name, spelling)))
        .filter(|(_, likeness)| *likeness > 0.8)
        .max_by(|left, right| left.1.total_cmp(&right.1))
        .map(|(spelling, _)| format!("; did you mean `{spelling}`?"))
        .unwrap_or_default()
}

impl FromStr for Backend {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Backend, ModelError> {
        let name = text.trim().to_lowercase();
        if let Some((_, backend)) = SPELLINGS.iter().find(|(spelling, _)| *spelling == name) {
            Ok(*backend)
        } else if NOT_BUILT.contains(&name.as_str()) {
            Err(ModelError::BackendNotBuilt { name })
        } else {
            Err(ModelError::UnknownBackend { name })
        }
    }
}

impl<'de> Deserialize<'de> for Backend {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Backend, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
