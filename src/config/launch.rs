//! From the command line of `train` or `eval` to the configuration that counts (engine 4).
//!
//! Files, then `--set` and `--cfg-options`, then flags; what is retired is taken out before it can
//! have an effect; then the one backend label becomes a backend for each role, models that only
//! stand in for "the usual one" become that of the backend, and a run without a folder gets the
//! name of one. Nothing here has a side effect, and the values of credentials are in no message.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::flags::Flag;
use super::flatten::RETIRED;
use super::layer::{Loaded, load_with_flags};
use super::yaml::join;
use super::{ConfigError, roles};

/// Which command is run; it names the folder of a run without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `train`.
    Train,
    /// `eval`.
    Eval,
}

/// What the command line says.
#[derive(Debug, Clone, PartialEq)]
pub struct Request<'a> {
    /// The command.
    pub command: Command,
    /// The configuration file.
    pub config: &'a Path,
    /// `--cfg-options` and `--set`, `key=value`, in their order.
    pub overrides: &'a [String],
    /// SkillOpt's flags with their values.
    pub flags: &'a [(Flag, Value)],
    /// `--out-root`.
    pub out_root: Option<&'a Path>,
    /// The time that a generated folder's name ends in, `YYYYmmdd_HHMMSS`.
    pub stamp: &'a str,
}

/// What to tell the user about the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarningKind {
    /// An option that has no effect any more.
    Retired,
    /// A credential that every process of the machine could read.
    Credential,
}

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// One sentence.
    pub message: String,
}

/// A command line made into a configuration; types and ranges are not checked yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The merged configuration; its flat form is settled.
    pub loaded: Loaded,
    /// What to tell the user.
    pub warnings: Vec<Warning>,
    /// Where the run is written, absolute.
    pub out_root: PathBuf,
}

/// Models that stand for "the usual one", because the shipped files name them.
const STAND_INS: [&str; 2] = ["gpt-5.4", "gpt-5.5"];

const CLAUDE: &str = "claude-sonnet-4-6";
const CURSOR: &str = "composer-2.5";
const QWEN: &str = "Qwen/Qwen3.5-4B";
const MINIMAX: &str = "MiniMax-M3";

/// Settles what a command line means.
///
/// # Errors
/// [`ConfigError`] for a file or an override that cannot be read.
pub fn settle(request: &Request<'_>) -> Result<Launch, ConfigError> {
    let overrides: Vec<&String> = request
        .overrides
        .iter()
        .filter(|text| !is_retired(key_of(text)))
        .collect();
    let flags: Vec<(&str, Value)> = request
        .flags
        .iter()
        .filter(|(flag, _)| flag.flat != RETIRED.1)
        .map(|(flag, value)| (flag.flat, value.clone()))
        .collect();
    let mut loaded = load_with_flags(request.config, &overrides, &flags)?;
    let in_file = take_retired(&mut loaded);
    let mut warnings: Vec<Warning> = retired(request, in_file).into_iter().collect();
    warnings.extend(credentials(request));

    let mut flat = loaded.flat.as_object().cloned().unwrap_or_default();
    fill_azure(&mut flat);
    settle_backends(&mut flat, request);
    settle_models(&mut flat, request);
    let out_root = out_root(&flat, request);
    flat.insert(
        "out_root".to_owned(),
        Value::from(out_root.display().to_string()),
    );
    loaded.flat = Value::Object(flat);
    Ok(Launch {
        loaded,
        warnings,
        out_root,
    })
}

fn key_of(text: &str) -> &str {
    text.split_once('=').map_or(text, |(key, _)| key)
}

fn is_retired(key: &str) -> bool {
    key == RETIRED.1 || key == join(RETIRED.0, RETIRED.1)
}

/// Takes the retired option out of what the files say.
fn take_retired(loaded: &mut Loaded) -> bool {
    let (section, leaf) = RETIRED;
    let mut found = false;
    if let Some(merged) = loaded.merged.as_object_mut() {
        found |= merged.remove(leaf).is_some();
        if let Some(Value::Object(leaves)) = merged.get_mut(section) {
            found |= leaves.remove(leaf).is_some();
        }
    }
    if let Some(flat) = loaded.flat.as_object_mut() {
        flat.remove(leaf);
    }
    found
}

/// One warning for all places that name the retired option. The file is only named when nothing on
/// the command line is.
fn retired(request: &Request<'_>, in_file: bool) -> Option<Warning> {
    let flag = request.flags.iter().any(|(flag, _)| flag.flat == RETIRED.1);
    let mut sources: Vec<String> = Vec::new();
    if flag {
        sources.push(format!("--{}", RETIRED.1));
    }
    for text in request.overrides {
        let key = key_of(text);
        if is_retired(key) && !sources.iter().any(|source| source == key) {
            sources.push(key.to_owned());
        }
    }
    if sources.is_empty() && in_file {
        sources.push(format!("{} in {}", RETIRED.1, request.config.display()));
    }
    (!sources.is_empty()).then(|| Warning {
        kind: WarningKind::Retired,
        message: format!("{} is retired and has no effect", sources.join(" and ")),
    })
}

/// One warning for each credential on the command line, with the variable that belongs to it.
fn credentials(request: &Request<'_>) -> Vec<Warning> {
    const ENDINGS: [&str; 5] = ["api_key", "api-key", "token", "secret", "password"];
    let is_credential = |name: &str| {
        let name = name.to_lowercase();
        ENDINGS.iter().any(|ending| name.ends_with(ending))
    };
    let of_flags = request
        .flags
        .iter()
        .filter(|(flag, value)| is_credential(flag.name) && value.as_str() != Some(""))
        .map(|(flag, _)| (format!("--{}", flag.name), flag.name));
    let of_overrides = request
        .overrides
        .iter()
        .filter_map(|text| text.split_once('='))
        .map(|(key, _)| (key, key.rsplit('.').next().unwrap_or(key)))
        .filter(|(_, leaf)| is_credential(leaf))
        .map(|(key, leaf)| (key.to_owned(), leaf));
    of_flags
        .chain(of_overrides)
        .map(|(place, leaf)| Warning {
            kind: WarningKind::Credential,
            message: format!(
                "{place} on the command line can be read by every process of this machine; set \
                 the environment variable {} instead",
                leaf.to_uppercase().replace('-', "_")
            ),
        })
        .collect()
}

fn text<'a>(flat: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    flat.get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.trim().is_empty())
}

/// The older names of three settings fill the newer ones where these are blank.
fn fill_azure(flat: &mut Map<String, Value>) {
    for name in ["endpoint", "api_version", "api_key"] {
        let (old, new) = (format!("azure_{name}"), format!("azure_openai_{name}"));
        if text(flat, &new).is_none()
            && let Some(value) = text(flat, &old).map(Value::from)
        {
            flat.insert(new, value);
        }
    }
}

/// Whether the command line sets the setting itself.
fn is_given(request: &Request<'_>, section: &str, leaf: &str, flat: &str) -> bool {
    let place = join(section, leaf);
    request.flags.iter().any(|(flag, _)| flag.flat == flat)
        || request
            .overrides
            .iter()
            .map(|text| key_of(text))
            .any(|key| key == flat || key == place)
}

fn settle_backends(flat: &mut Map<String, Value>, request: &Request<'_>) {
    let label = text(flat, "model_backend").or_else(|| text(flat, "backend"));
    let label = label.map(roles::canonical).unwrap_or_default();
    if !label.is_empty() {
        flat.insert("model_backend".to_owned(), Value::from(label.as_str()));
    }
    let [optimizer, target] = ["optimizer_backend", "target_backend"].map(|role| {
        let own = text(flat, role).map(str::to_owned);
        (own, is_given(request, "model", role, role))
    });
    let (for_optimizer, for_target) =
        roles::resolve(&label, optimizer.0.as_deref(), target.0.as_deref());
    let settled = |(own, given): (Option<String>, bool), from_label: String| match own {
        Some(own) if given => own,
        _ => from_label,
    };
    flat.insert(
        "optimizer_backend".to_owned(),
        Value::from(settled(optimizer, for_optimizer)),
    );
    flat.insert(
        "target_backend".to_owned(),
        Value::from(settled(target, for_target)),
    );
}

fn settle_models(flat: &mut Map<String, Value>, request: &Request<'_>) {
    let minimax = text(flat, "minimax_model").unwrap_or(MINIMAX).to_owned();
    for (role, leaf) in [("optimizer", "optimizer"), ("target", "target")] {
        let key = format!("{role}_model");
        let stands_in = text(flat, &key).is_some_and(|model| STAND_INS.contains(&model));
        if !stands_in || is_given(request, "model", leaf, &key) {
            continue;
        }
        let backend = text(flat, &format!("{role}_backend")).unwrap_or_default();
        let model = match (role, backend) {
            (_, "claude_chat") | ("target", "claude_code_exec") => CLAUDE,
            (_, "qwen_chat") => QWEN,
            ("target", "cursor_exec") => CURSOR,
            ("target", "minimax_chat") => &minimax,
            ("target", "copilot_exec") => "",
            _ => continue,
        };
        flat.insert(key, Value::from(model));
    }
}

fn out_root(flat: &Map<String, Value>, request: &Request<'_>) -> PathBuf {
    let named = request
        .out_root
        .map(Path::to_owned)
        .or_else(|| text(flat, "out_root").map(PathBuf::from));
    let path = named.unwrap_or_else(|| {
        let environment = text(flat, "env").unwrap_or("unknown");
        let (prefix, model) = match request.command {
            Command::Train => ("skillopt", "optimizer_model"),
            Command::Eval => ("eval", "target_model"),
        };
        let model = text(flat, model).unwrap_or("unknown").replace('/', "-");
        let stamp = request.stamp;
        PathBuf::from(format!("outputs/{prefix}_{environment}_{model}_{stamp}"))
    });
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::flags;

    fn settled(file: &str, overrides: &[&str], given: &[(&str, &str)]) -> Launch {
        let home = tempfile::tempdir().unwrap();
        let config = home.path().join("c.yaml");
        std::fs::write(&config, file).unwrap();
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        let flags: Vec<(Flag, Value)> = given
            .iter()
            .map(|(name, text)| {
                let flag = flags::all().find(|flag| flag.name == *name).unwrap();
                (flag, flag.value(text).unwrap())
            })
            .collect();
        settle(&Request {
            command: Command::Train,
            config: &config,
            overrides: &overrides,
            flags: &flags,
            out_root: None,
            stamp: "now",
        })
        .unwrap()
    }

    #[test]
    fn flags_beat_overrides_beat_files_and_keep_their_types() {
        let file = "model: {optimizer: a}\ntrain: {batch_size: 1, seed: 1}\nenv: {name: x}\n";
        let overrides = ["train.batch_size=2", "model.optimizer=b"];
        let launch = settled(
            file,
            &overrides,
            &[("batch_size", "3"), ("data_root", "12")],
        );
        let flat = &launch.loaded.flat;
        assert_eq!(flat["batch_size"], 3);
        assert_eq!(flat["optimizer_model"], "b");
        assert_eq!(flat["data_root"], "12");
        assert_eq!(launch.loaded.merged["env"]["data_root"], "12");
        assert!(launch.out_root.ends_with("outputs/skillopt_x_b_now"));
    }

    #[test]
    fn a_role_that_was_named_keeps_its_backend_and_model() {
        let file = "model: {backend: azure, optimizer: gpt-5.5, target: gpt-5.5}\n";
        let given = [
            ("backend", "claude"),
            ("optimizer_backend", "openai_chat"),
            ("target_model", "gpt-5.5"),
        ];
        let flat = settled(file, &[], &given).loaded.flat;
        assert_eq!(flat["model_backend"], "claude_chat");
        assert_eq!(flat["optimizer_backend"], "openai_chat");
        assert_eq!(flat["optimizer_model"], "gpt-5.5");
        assert_eq!(flat["target_backend"], "claude_chat");
        assert_eq!(flat["target_model"], "gpt-5.5");
    }

    #[test]
    fn the_retired_option_is_said_once_and_leaves_no_trace() {
        let file = "gradient: {max_analyst_rounds: 3}\n";
        let name = "max_analyst_rounds";
        for (overrides, given, said) in [
            (&[][..], &[][..], "c.yaml"),
            (&["max_analyst_rounds=0"], &[], name),
            (
                &["gradient.max_analyst_rounds=1"],
                &[(name, "2")],
                "--max_analyst_rounds and gradient.",
            ),
        ] {
            let launch = settled(file, overrides, given);
            let [warning] = &launch.warnings[..] else {
                panic!("{:?}", launch.warnings)
            };
            assert_eq!(warning.kind, WarningKind::Retired);
            assert!(warning.message.contains(said), "{}", warning.message);
            assert!(!launch.loaded.flat.to_string().contains(name));
            assert!(!launch.loaded.merged.to_string().contains(name));
        }
        let flat = settled("batch_size: 2\n", &["gradient.max_analyst_rounds=1"], &[]);
        assert!(!flat.loaded.structured);
    }

    #[test]
    fn credentials_on_the_command_line_are_warned_of_without_their_values() {
        let launch = settled(
            "model: {optimizer: a}\n",
            &["model.qwen_chat_api_key=s3cret", "train.seed=1"],
            &[("minimax_api_key", "0012"), ("azure_api_key", "")],
        );
        let said: Vec<&str> = launch.warnings.iter().map(|w| w.message.as_str()).collect();
        assert_eq!(said.len(), 2);
        assert!(said[0].contains("MINIMAX_API_KEY") && said[1].contains("QWEN_CHAT_API_KEY"));
        assert!(!said.concat().contains("s3cret") && !said.concat().contains("0012"));
        assert_eq!(launch.loaded.flat["minimax_api_key"], "0012");
    }
}
