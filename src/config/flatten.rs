//! The name, place and type of every setting (engine 3.5), and what follows from that table:
//! flattening, and the detection of unknown keys.
//!
//! A setting has two names: its place in a structured file (`optimizer.learning_rate`) and its
//! flat name (`edit_budget`), which run records and legacy files use. Most leaves equal their flat
//! names.

use serde_json::{Map, Value};

use super::layer::{Loaded, Origins};
use super::yaml::join;
use super::{ConfigError, nearest};

/// The six sections of a structured file.
pub const SECTIONS: [&str; 6] = [
    "model",
    "train",
    "gradient",
    "optimizer",
    "evaluation",
    "env",
];

/// What values a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text; an override is never re-typed as a number (W-C4).
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Switch,
    /// A list of texts.
    Words,
}

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its section.
    pub section: &'static str,
    /// Its name within the section.
    pub leaf: &'static str,
    /// Its flat name.
    pub flat: &'static str,
    /// What values it takes.
    pub kind: Kind,
}

impl Setting {
    /// Its place in a structured file.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}.{}", self.section, self.leaf)
    }

    /// The one setting whose flat name is the name of a section, and which therefore must not be
    /// taken for it (W-C1).
    pub(super) fn is_env_name(&self) -> bool {
        self.flat == "env"
    }
}

const fn same(section: &'static str, leaf: &'static str, kind: Kind) -> Setting {
    Setting {
        section,
        leaf,
        flat: leaf,
        kind,
    }
}

const fn renamed(
    section: &'static str,
    leaf: &'static str,
    flat: &'static str,
    kind: Kind,
) -> Setting {
    Setting {
        section,
        leaf,
        flat,
        kind,
    }
}

use Kind::{Integer, Number, Switch, Text, Words};

/// Every mapped setting.
pub const SETTINGS: &[Setting] = &[
    renamed("model", "backend", "model_backend", Text),
    renamed("model", "optimizer", "optimizer_model", Text),
    renamed("model", "target", "target_model", Text),
    same("model", "optimizer_backend", Text),
    same("model", "target_backend", Text),
    same("model", "reasoning_effort", Text),
    same("model", "rewrite_reasoning_effort", Text),
    same("model", "rewrite_max_completion_tokens", Integer),
    same("model", "optimizer_price_in", Number),
    same("model", "optimizer_price_out", Number),
    same("model", "target_price_in", Number),
    same("model", "target_price_out", Number),
    same("model", "codex_exec_path", Text),
    same("model", "codex_exec_sandbox", Text),
    same("model", "codex_exec_profile", Text),
    same("model", "codex_exec_full_auto", Switch),
    same("model", "codex_exec_reasoning_effort", Text),
    same("model", "codex_exec_use_sdk", Text),
    same("model", "codex_exec_network_access", Switch),
    same("model", "codex_exec_web_search", Switch),
    same("model", "codex_exec_approval_policy", Text),
    same("model", "claude_code_exec_path", Text),
    same("model", "claude_code_exec_profile", Text),
    same("model", "claude_code_exec_use_sdk", Text),
    same("model", "claude_code_exec_effort", Text),
    same("model", "claude_code_exec_max_thinking_tokens", Integer),
    same("model", "cursor_exec_path", Text),
    same("model", "cursor_exec_sandbox", Text),
    same("model", "copilot_exec_path", Text),
    same("model", "copilot_exec_home", Text),
    same("model", "copilot_exec_allow_all_tools", Switch),
    same("model", "copilot_chat_optimizer_model", Text),
    same("model", "copilot_chat_target_model", Text),
    same("model", "copilot_chat_timeout", Integer),
    same("model", "codex_trace_to_optimizer", Switch),
    same("model", "azure_endpoint", Text),
    same("model", "azure_api_version", Text),
    same("model", "azure_api_key", Text),
    same("model", "azure_openai_endpoint", Text),
    same("model", "azure_openai_api_version", Text),
    same("model", "azure_openai_api_key", Text),
    same("model", "azure_openai_auth_mode", Text),
    same("model", "azure_openai_ad_scope", Text),
    same("model", "azure_openai_managed_identity_client_id", Text),
    same("model", "optimizer_azure_openai_endpoint", Text),
    same("model", "optimizer_azure_openai_api_version", Text),
    same("model", "optimizer_azure_openai_api_key", Text),
    same("model", "optimizer_azure_openai_auth_mode", Text),
    same("model", "optimizer_azure_openai_ad_scope", Text),
    same(
        "model",
        "optimizer_azure_openai_managed_identity_client_id",
        Text,
    ),
    same("model", "target_azure_openai_endpoint", Text),
    same("model", "target_azure_openai_api_version", Text),
    same("model", "target_azure_openai_api_key", Text),
    same("model", "target_azure_openai_auth_mode", Text),
    same("model", "target_azure_openai_ad_scope", Text),
    same(
        "model",
        "target_azure_openai_managed_identity_client_id",
        Text,
    ),
    same("model", "qwen_chat_base_url", Text),
    same("model", "qwen_chat_api_key", Text),
    same("model", "qwen_chat_temperature", Number),
    same("model", "qwen_chat_timeout_seconds", Number),
    same("model", "qwen_chat_max_tokens", Integer),
    same("model", "qwen_chat_enable_thinking", Switch),
    same("model", "qwen_chat_thinking_mode", Text),
    same("model", "optimizer_qwen_chat_base_url", Text),
    same("model", "optimizer_qwen_chat_api_key", Text),
    same("model", "optimizer_qwen_chat_temperature", Number),
    same("model", "optimizer_qwen_chat_timeout_seconds", Number),
    same("model", "optimizer_qwen_chat_max_tokens", Integer),
    same("model", "optimizer_qwen_chat_enable_thinking", Switch),
    same("model", "optimizer_qwen_chat_thinking_mode", Text),
    same("model", "target_qwen_chat_base_url", Text),
    same("model", "target_qwen_chat_api_key", Text),
    same("model", "target_qwen_chat_temperature", Number),
    same("model", "target_qwen_chat_timeout_seconds", Number),
    same("model", "target_qwen_chat_max_tokens", Integer),
    same("model", "target_qwen_chat_enable_thinking", Switch),
    same("model", "target_qwen_chat_thinking_mode", Text),
    same("model", "minimax_region", Text),
    same("model", "minimax_base_url", Text),
    same("model", "minimax_api_key", Text),
    same("model", "minimax_model", Text),
    same("model", "minimax_temperature", Number),
    same("model", "minimax_max_tokens", Integer),
    same("model", "minimax_enable_thinking", Switch),
    same("train", "num_epochs", Integer),
    same("train", "train_size", Integer),
    same("train", "steps_per_epoch", Integer),
    same("train", "batch_size", Integer),
    same("train", "accumulation", Integer),
    same("train", "seed", Integer),
    same("gradient", "minibatch_size", Integer),
    same("gradient", "merge_batch_size", Integer),
    same("gradient", "analyst_workers", Integer),
    same("gradient", "failure_only", Switch),
    renamed("optimizer", "learning_rate", "edit_budget", Integer),
    renamed("optimizer", "min_learning_rate", "min_edit_budget", Integer),
    same("optimizer", "lr_scheduler", Text),
    same("optimizer", "lr_control_mode", Text),
    same("optimizer", "skill_update_mode", Text),
    same("optimizer", "prompts_dir", Text),
    renamed(
        "optimizer",
        "meta_learning_rate",
        "meta_edit_budget",
        Integer,
    ),
    same("optimizer", "use_slow_update", Switch),
    same("optimizer", "slow_update_samples", Integer),
    same("optimizer", "slow_update_gate_with_selection", Switch),
    same("optimizer", "longitudinal_pair_policy", Text),
    same("optimizer", "use_meta_skill", Switch),
    same("optimizer", "use_skill_aware_reflection", Switch),
    same("optimizer", "skill_aware_appendix_source", Text),
    same("optimizer", "skill_aware_consolidate_threshold", Integer),
    same("evaluation", "use_gate", Switch),
    same("evaluation", "gate_metric", Text),
    same("evaluation", "gate_mixed_weight", Number),
    same("evaluation", "gate_rule", Text),
    same("evaluation", "gate_alpha", Number),
    same("evaluation", "gate_reject_level", Number),
    same("evaluation", "gate_smallest_gain", Number),
    same("evaluation", "gate_max_repeats", Integer),
    same("evaluation", "gate_full_scores", Switch),
    same("evaluation", "gate_prescreen", Switch),
    same("evaluation", "gate_attribute", Switch),
    same("evaluation", "gate_no_regression", Switch),
    same("evaluation", "result_cache", Text),
    same("evaluation", "coverage_floor", Number),
    same("evaluation", "use_semantic_density", Switch),
    same("evaluation", "semantic_density_weight", Number),
    same("evaluation", "leading_words", Words),
    same("evaluation", "sel_env_num", Integer),
    same("evaluation", "test_env_num", Integer),
    same("evaluation", "eval_test", Switch),
    renamed("env", "name", "env", Text),
    same("env", "skill_init", Text),
    same("env", "out_root", Text),
];

/// The settings of the `env` section that every benchmark has; they pass under their own names.
pub const COMMON_ENV: &[(&str, Kind)] = &[
    ("split_mode", Text),
    ("split_ratio", Text),
    ("split_seed", Integer),
    ("split_dir", Text),
    ("data_path", Text),
    ("split_output_dir", Text),
    ("workers", Integer),
    ("limit", Integer),
    ("max_turns", Integer),
    ("exec_timeout", Integer),
    ("max_completion_tokens", Integer),
];

/// Accepted for the sake of old files, and ignored: structured section, name (engine 4).
pub const RETIRED: (&str, &str) = ("gradient", "max_analyst_rounds");

/// The setting with this flat name.
#[must_use]
pub fn by_flat(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.flat == name)
}

/// The setting at this place.
#[must_use]
pub fn by_place(section: &str, leaf: &str) -> Option<&'static Setting> {
    SETTINGS
        .iter()
        .find(|setting| setting.section == section && setting.leaf == leaf)
}

/// Whether a file is structured: one of the sections is a mapping (engine 3.1).
#[must_use]
pub fn is_structured(map: &Map<String, Value>) -> bool {
    SECTIONS
        .iter()
        .any(|section| map.get(*section).is_some_and(Value::is_object))
}

/// The flat form of a merged configuration (engine 3.4). Unmapped keys outside `env` have no flat
/// form; [`check_keys`] reports them.
#[must_use]
pub fn flatten(merged: &Map<String, Value>) -> Map<String, Value> {
    if !is_structured(merged) {
        return merged.clone();
    }
    let section = |name: &str| merged.get(name).and_then(Value::as_object);
    let mut flat: Map<String, Value> = merged
        .iter()
        .filter(|(key, _)| !SECTIONS.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    for setting in SETTINGS {
        if let Some(value) = section(setting.section).and_then(|keys| keys.get(setting.leaf)) {
            flat.insert(setting.flat.to_owned(), value.clone());
        }
    }
    for (key, value) in section("env").into_iter().flatten() {
        if by_place("env", key).is_none() {
            flat.insert(key.clone(), value.clone());
        }
    }
    flat
}

/// Checks that something reads every key, and returns what the user should be told of keys that
/// are accepted and ignored. `env_options` are the chosen benchmark's own keys.
///
/// # Errors
/// [`ConfigError::UnknownKey`] for the first key that nothing reads.
pub fn check_keys(loaded: &Loaded, env_options: &[&str]) -> Result<Vec<String>, ConfigError> {
    let mut notices = Vec::new();
    let Some(merged) = loaded.merged.as_object() else {
        return Ok(notices);
    };
    let is_env_key =
        |key: &str| COMMON_ENV.iter().any(|(name, _)| *name == key) || env_options.contains(&key);
    for (key, value) in merged {
        match value {
            Value::Object(leaves) if SECTIONS.contains(&key.as_str()) => {
                for leaf in leaves.keys() {
                    if (key.as_str(), leaf.as_str()) == RETIRED {
                        notices.push(retired(&loaded.origins, &join(key, leaf)));
                    } else if by_place(key, leaf).is_none() && !(key == "env" && is_env_key(leaf)) {
                        return Err(unknown_leaf(loaded, key, leaf, env_options));
                    }
                }
            }
            // An empty section.
            Value::Null if SECTIONS.contains(&key.as_str()) => {}
            _ if key == RETIRED.1 => notices.push(retired(&loaded.origins, key)),
            _ if by_flat(key).is_some() || is_env_key(key) => {}
            _ => return Err(unknown_top(loaded, key, env_options)),
        }
    }
    for (flat, why) in IGNORED {
        if loaded.flat.get(*flat).is_some_and(|value| !value.is_null()) {
            let place = by_flat(flat).map_or_else(|| (*flat).to_owned(), Setting::place);
            notices.push(format!("`{place}` is accepted and has no effect: {why}"));
        }
    }
    Ok(notices)
}

/// Settings that SkillOpt's files carry and its engine never used (W-C8).
const IGNORED: &[(&str, &str)] = &[
    ("meta_edit_budget", "no step of the method uses it"),
    (
        "steps_per_epoch",
        "it follows from train_size, batch_size and accumulation",
    ),
];

fn retired(origins: &Origins, key: &str) -> String {
    format!("{}: `{key}` is retired and has no effect", origins.of(key))
}

/// A key that is unknown in its section may be known elsewhere, or by its flat name.
fn unknown_leaf(loaded: &Loaded, section: &str, leaf: &str, env_options: &[&str]) -> ConfigError {
    let key = join(section, leaf);
    let elsewhere = SETTINGS
        .iter()
        .find(|setting| setting.leaf == leaf || setting.flat == leaf)
        .map(Setting::place);
    let within = || {
        let own = SETTINGS
            .iter()
            .filter(|setting| setting.section == section)
            .map(|setting| setting.leaf);
        let of_env = COMMON_ENV
            .iter()
            .map(|(name, _)| *name)
            .chain(env_options.iter().copied())
            .filter(|_| section == "env");
        nearest(leaf, own.chain(of_env)).map(|name| join(section, name))
    };
    ConfigError::UnknownKey {
        origin: loaded.origins.of(&key),
        nearest: elsewhere.or_else(within),
        key,
    }
}

fn unknown_top(loaded: &Loaded, key: &str, env_options: &[&str]) -> ConfigError {
    let flat = SETTINGS.iter().map(|setting| setting.flat);
    let env = COMMON_ENV.iter().map(|(name, _)| *name);
    let candidates = SECTIONS
        .into_iter()
        .chain(flat)
        .chain(env)
        .chain(env_options.iter().copied());
    ConfigError::UnknownKey {
        origin: loaded.origins.of(key),
        nearest: nearest(key, candidates).map(|name| match by_flat(name) {
            Some(setting) if loaded.structured => setting.place(),
            _ => name.to_owned(),
        }),
        key: key.to_owned(),
    }
}
