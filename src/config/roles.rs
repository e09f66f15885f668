//! From the one backend label of a SkillOpt file to a backend for each role (backends 2.1).

/// A label's other spellings (backends 1.2).
const ALIASES: [(&str, &str); 17] = [
    ("azure", "azure_openai"),
    ("azure-openai", "azure_openai"),
    ("", "azure_openai"),
    ("openai", "codex_exec"),
    ("codex", "codex_exec"),
    ("claude", "claude_chat"),
    ("anthropic", "claude_chat"),
    ("cursor", "cursor_exec"),
    ("cursor_agent", "cursor_exec"),
    ("copilot", "copilot_chat"),
    ("copilot_cli", "copilot_chat"),
    ("github_copilot", "copilot_chat"),
    ("qwen", "qwen_chat"),
    ("minimax", "minimax_chat"),
    ("openai_compatible_chat", "openai_compatible"),
    ("openai-compatible", "openai_compatible"),
    ("compat", "openai_compatible"),
];

/// Every label that the command line takes.
pub const LABELS: &[&str] = &[
    "anthropic",
    "azure",
    "azure-openai",
    "azure_openai",
    "claude",
    "claude_chat",
    "claude_code_exec",
    "codex",
    "codex_exec",
    "compat",
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
    "openai-compatible",
    "openai_chat",
    "openai_compatible",
    "openai_compatible_chat",
    "qwen",
    "qwen_chat",
    "scripted",
];

/// The label's one right spelling: lower case, without aliases.
#[must_use]
pub fn canonical(label: &str) -> String {
    let label = label.trim().to_lowercase();
    match ALIASES.iter().find(|(alias, _)| *alias == label) {
        Some((_, name)) => (*name).to_owned(),
        None => label,
    }
}

/// The backends of optimizer and target. The label replaces a role's backend only where that is
/// at its shipped default: absent, blank or `openai_chat`.
#[must_use]
pub fn resolve(label: &str, optimizer: Option<&str>, target: Option<&str>) -> (String, String) {
    let label = canonical(label);
    let label = label.as_str();
    let (for_optimizer, for_target) = match label {
        "claude_chat" | "codex_exec" | "copilot_chat" | "openai_compatible" | "scripted" => {
            (label, label)
        }
        "claude_code_exec" | "cursor_exec" | "copilot_exec" | "qwen_chat" | "minimax_chat" => {
            ("openai_chat", label)
        }
        _ => ("openai_chat", "openai_chat"),
    };
    let settle = |own: Option<&str>, from_label: &str| match own.map(str::trim) {
        None | Some("" | "openai_chat") => from_label.to_owned(),
        Some(own) => own.to_owned(),
    };
    (settle(optimizer, for_optimizer), settle(target, for_target))
}

/// Whether the label means anything; one that does not would silently mean `openai_chat`.
#[must_use]
pub fn is_known(label: &str) -> bool {
    let label = label.trim().to_lowercase();
    label == "openai_chat"
        || label == "azure_openai"
        || ALIASES.iter().any(|(alias, _)| *alias == label)
        || resolve(&label, None, None).1 != "openai_chat"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_fills_only_the_roles_that_nobody_set() {
        let pair = |label, optimizer, target| {
            let (optimizer, target) = resolve(label, optimizer, target);
            format!("{optimizer} {target}")
        };
        assert_eq!(
            pair("compat", None, Some("")),
            "openai_compatible openai_compatible"
        );
        assert_eq!(
            pair(" Codex", Some("minimax_chat"), Some("openai_chat")),
            "minimax_chat codex_exec"
        );
        assert_eq!(pair("qwen", None, None), "openai_chat qwen_chat");
        assert_eq!(
            pair("azure", None, Some("claude_chat")),
            "openai_chat claude_chat"
        );
        assert!(LABELS.iter().all(|label| is_known(label)));
        assert!(is_known("anthropic") && !is_known("openai_compatable"));
    }
}
