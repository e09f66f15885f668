//! The night's configuration: one YAML file of our own form.
//!
//! Every key has a default, so an absent file is a valid one; `configs/sleep.yaml` is the default
//! written out with comments, and a test keeps the two equal. Unknown keys, wrong types and values
//! out of range are errors that name the line and the key.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::duration::TimeSpan;
use super::modes::{GateMetric, LrScheduler};
use super::yaml::{self, join};
use super::{ConfigError, Origin, nearest, paths};
use crate::model::budget::Limits;
use crate::model::stack::Environment;
use crate::model::{ModelsConfig, Role};

/// The commented default, for `init` to write.
pub const DEFAULT_YAML: &str = include_str!("../../configs/sleep.yaml");

/// Whose sessions are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}

/// Where the agents keep their files; null: where the agent itself looks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Homes {
    /// Instead of `CLAUDE_CONFIG_DIR` or `~/.claude`.
    pub claude: Option<PathBuf>,
    /// Instead of `CODEX_HOME` or `~/.codex`.
    pub codex: Option<PathBuf>,
}

impl Homes {
    /// The folder of a source; none when there is no home directory.
    #[must_use]
    pub fn of(&self, source: Source, env: Environment<'_>) -> Option<PathBuf> {
        let (own, variable, folder) = match source {
            Source::Claude => (&self.claude, "CLAUDE_CONFIG_DIR", ".claude"),
            Source::Codex => (&self.codex, "CODEX_HOME", ".codex"),
        };
        own.as_deref()
            .map(|path| paths::expand(path, env))
            .or_else(|| {
                env(variable)
                    .filter(|text| !text.is_empty())
                    .map(PathBuf::from)
            })
            .or_else(|| Some(paths::home(env)?.join(folder)))
    }
}

/// Which projects' sessions count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProjectMode {
    /// The project that the command runs in.
    Invoked,
    /// All that have sessions.
    #[default]
    All,
    /// Those that are listed.
    List,
}

/// Which projects' sessions count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Projects {
    /// How they are chosen.
    pub mode: ProjectMode,
    /// The folders, for [`ProjectMode::List`].
    pub paths: Vec<PathBuf>,
}

/// The skill document that a night may change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SkillDocument {
    /// Whether it may change.
    pub enabled: bool,
    /// Its file; null: `skills/<name>/SKILL.md` in the agent's home.
    pub path: Option<PathBuf>,
    /// The name of the skill that collects what fits no other.
    pub name: String,
}

impl Default for SkillDocument {
    fn default() -> SkillDocument {
        SkillDocument {
            enabled: true,
            path: None,
            name: "skillopt-sleep-learned".to_owned(),
        }
    }
}

/// The memory documents whose learned block a night may change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryDocuments {
    /// Whether they may change.
    pub enabled: bool,
    /// Their names, looked for in each project.
    pub files: Vec<PathBuf>,
}

impl Default for MemoryDocuments {
    fn default() -> MemoryDocuments {
        MemoryDocuments {
            enabled: false,
            files: vec!["CLAUDE.md".into(), "AGENTS.md".into()],
        }
    }
}

/// What a night may change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Documents {
    /// The skill document.
    pub skill: SkillDocument,
    /// The memory documents.
    pub memory: MemoryDocuments,
}

/// How the trainer runs at night.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NightTrain {
    /// Passes over the training tasks; at least 1.
    pub epochs: usize,
    /// Tasks of a step; at least 1.
    pub batch_size: usize,
    /// Most edits of a step.
    pub edit_budget: usize,
    /// Most edits of the last step, for schedules that fall.
    pub min_edit_budget: usize,
    /// Rollouts that one reflection sees; at least 1.
    pub minibatch_size: usize,
    /// Patches that one merge call sees; at least 2.
    pub merge_batch_size: usize,
    /// How the edit budget runs over the steps.
    pub lr_scheduler: LrScheduler,
    /// Which score the gate compares.
    pub gate_metric: GateMetric,
    /// The weight of the soft score in a mixed one, from 0 to 1.
    pub gate_mixed_weight: f64,
    /// Reject a candidate that does worse on any validation task.
    pub gate_no_regression: bool,
}

impl Default for NightTrain {
    fn default() -> NightTrain {
        NightTrain {
            epochs: 1,
            batch_size: 40,
            edit_budget: 4,
            min_edit_budget: 2,
            minibatch_size: 8,
            merge_batch_size: 8,
            lr_scheduler: LrScheduler::Constant,
            gate_metric: GateMetric::Mixed,
            gate_mixed_weight: 0.5,
            gate_no_regression: false,
        }
    }
}

/// The hard limits of a night; null: none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NightBudget {
    /// Tokens sent and received.
    pub tokens: Option<u64>,
    /// US dollars; needs the prices under `models`.
    pub usd: Option<f64>,
    /// Model calls.
    pub calls: Option<u64>,
    /// Wall time.
    pub time: Option<TimeSpan>,
}

impl Default for NightBudget {
    fn default() -> NightBudget {
        NightBudget {
            tokens: Some(2_000_000),
            usd: None,
            calls: None,
            time: Some(TimeSpan::from_hours(6)),
        }
    }
}

impl NightBudget {
    /// No limit at all.
    #[must_use]
    pub fn none() -> NightBudget {
        NightBudget {
            tokens: None,
            usd: None,
            calls: None,
            time: None,
        }
    }

    /// Applies `--budget tokens=N,usd=N,calls=N,time=DUR`; `none` as a value takes a limit away.
    ///
    /// # Errors
    /// [`ConfigError::Override`] that says what is wrong with the text.
    pub fn apply(&mut self, text: &str) -> Result<(), ConfigError> {
        let failure = |reason: String| ConfigError::Override {
            option: "--budget",
            text: text.to_owned(),
            reason,
        };
        for item in text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            let (name, value) = item
                .split_once('=')
                .ok_or_else(|| failure(format!("`{item}` has no `=`")))?;
            let value = (value != "none").then_some(value);
            let wrong = |what: &str| failure(format!("`{item}` is not {what}"));
            let count = |value: Option<&str>| {
                value
                    .map(|digits| digits.replace('_', "").parse::<u64>())
                    .transpose()
                    .map_err(|_| wrong("a whole number"))
            };
            match name {
                "tokens" => self.tokens = count(value)?,
                "calls" => self.calls = count(value)?,
                "usd" => {
                    self.usd = value
                        .map(str::parse::<f64>)
                        .transpose()
                        .ok()
                        .filter(|usd| usd.is_none_or(|usd| usd.is_finite() && usd >= 0.0))
                        .ok_or_else(|| wrong("an amount of money"))?;
                }
                "time" => self.time = value.map(str::parse).transpose().map_err(failure)?,
                other => {
                    let near = nearest(other, ["tokens", "calls", "usd", "time"]);
                    return Err(failure(match near {
                        Some(near) => format!("`{other}` is no limit; did you mean `{near}`?"),
                        None => {
                            format!("`{other}` is no limit; there are tokens, usd, calls, time")
                        }
                    }));
                }
            }
        }
        Ok(())
    }

    /// As the models' budget takes them.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            calls: self.calls,
            tokens: self.tokens,
            usd: self.usd,
            time: self.time.map(TimeSpan::duration),
        }
    }
}

/// A kind of secret to look for beside the built-in ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretPattern {
    /// What it is called where it was replaced.
    pub name: String,
    /// A regular expression that matches it.
    pub pattern: String,
}

/// What is taken out of logs when they are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Redact {
    /// Kinds of secrets beside the built-in ones.
    pub extra: Vec<SecretPattern>,
    /// Also replace the user's name, host and home directory.
    pub identity: bool,
}

/// What happens to proposals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Staging {
    /// Days after which decided proposals are deleted; at least 1.
    pub keep_days: u32,
}

impl Default for Staging {
    fn default() -> Staging {
        Staging { keep_days: 30 }
    }
}

/// Everything that a night needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NightConfig {
    /// Whose sessions are read.
    pub sources: Vec<Source>,
    /// Where they are.
    pub homes: Homes,
    /// Which projects' sessions count.
    pub projects: Projects,
    /// How far back the first night looks; null or `0s`: to the beginning. Later nights start
    /// where the last one ended.
    pub lookback: Option<TimeSpan>,
    /// Most sessions of a night; null: three times `max_tasks`.
    pub max_sessions: Option<usize>,
    /// Most tasks of a night; at least 1.
    pub max_tasks: usize,
    /// The share of real tasks that the gate validates on.
    pub val_fraction: f64,
    /// The share of real tasks that are only measured. Both shares together stay below 1.
    pub test_fraction: f64,
    /// Seeds the split and every shuffle.
    pub seed: u64,
    /// What a night may change.
    pub documents: Documents,
    /// More folders in which skills are looked for.
    pub skill_roots: Vec<PathBuf>,
    /// How the trainer runs.
    pub train: NightTrain,
    /// Wishes in free text, given to every reflection.
    pub preferences: String,
    /// The hard limits.
    pub budget: NightBudget,
    /// Which models to use.
    pub models: ModelsConfig,
    /// What is taken out of logs.
    pub redact: Redact,
    /// What happens to proposals.
    pub staging: Staging,
}

impl Default for NightConfig {
    fn default() -> NightConfig {
        NightConfig {
            sources: vec![Source::Claude, Source::Codex],
            homes: Homes::default(),
            projects: Projects::default(),
            lookback: None,
            max_sessions: None,
            max_tasks: 40,
            val_fraction: 0.34,
            test_fraction: 0.0,
            seed: 42,
            documents: Documents::default(),
            skill_roots: Vec::new(),
            train: NightTrain::default(),
            preferences: String::new(),
            budget: NightBudget::default(),
            models: ModelsConfig::default(),
            redact: Redact::default(),
            staging: Staging::default(),
        }
    }
}

impl NightConfig {
    /// Reads the file at `path`; one that does not exist means the defaults, unless the user named
    /// it (`required`).
    ///
    /// # Errors
    /// [`ConfigError`] for the first thing that is wrong.
    pub fn read(path: &Path, required: bool) -> Result<NightConfig, ConfigError> {
        match std::fs::read_to_string(path) {
            Ok(text) => NightConfig::parse(path, &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => {
                Ok(NightConfig::default())
            }
            Err(error) => Err(ConfigError::Unreadable {
                path: path.to_owned(),
                reason: error.to_string(),
            }),
        }
    }

    /// Reads a file's text; `path` is for messages.
    ///
    /// # Errors
    /// [`ConfigError`] for the first thing that is wrong.
    pub fn parse(path: &Path, text: &str) -> Result<NightConfig, ConfigError> {
        let document = yaml::parse(path, text)?;
        match &document.value {
            Value::Null => return Ok(NightConfig::default()),
            Value::Object(_) => {}
            _ => {
                return Err(ConfigError::NotAMapping {
                    path: path.to_owned(),
                    found: "a list or a single value",
                });
            }
        }
        let file = File {
            path,
            document: &document,
        };
        // The keys of the default are the keys that exist.
        let known = serde_json::to_value(NightConfig::default()).unwrap_or_default();
        file.check_keys("", &document.value, &known)?;
        let config: NightConfig =
            serde_saphyr::from_str(text).map_err(|error| file.mistyped(&error))?;
        config.check(&|key, reason| file.wrong(key, reason))?;
        Ok(config)
    }

    /// Checks ranges, for values that did not come from a file: those of options.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for the first value out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.check(&|key, reason| ConfigError::Value {
            origin: Origin::Default,
            key: key.to_owned(),
            reason,
        })
    }

    fn check(&self, wrong: &dyn Fn(&str, String) -> ConfigError) -> Result<(), ConfigError> {
        let share = |key: &str, value: f64| {
            if (0.0..=1.0).contains(&value) {
                Ok(())
            } else {
                Err(wrong(key, format!("is {value}; it must be from 0 to 1")))
            }
        };
        share("val_fraction", self.val_fraction)?;
        share("test_fraction", self.test_fraction)?;
        share("train.gate_mixed_weight", self.train.gate_mixed_weight)?;
        if self.val_fraction + self.test_fraction >= 1.0 {
            // The larger one is the one that somebody set.
            let (key, other) = if self.test_fraction > self.val_fraction {
                ("test_fraction", "val_fraction")
            } else {
                ("val_fraction", "test_fraction")
            };
            return Err(wrong(
                key,
                format!("and `{other}` leave no task to train on; together they must be below 1"),
            ));
        }
        let least = [
            ("max_tasks", self.max_tasks, 1),
            ("max_sessions", self.max_sessions.unwrap_or(1), 1),
            ("train.epochs", self.train.epochs, 1),
            ("train.batch_size", self.train.batch_size, 1),
            ("train.minibatch_size", self.train.minibatch_size, 1),
            ("train.merge_batch_size", self.train.merge_batch_size, 2),
            ("staging.keep_days", self.staging.keep_days as usize, 1),
        ];
        if let Some((key, value, least)) = least.iter().find(|(_, value, least)| value < least) {
            return Err(wrong(
                key,
                format!("is {value}; it must be at least {least}"),
            ));
        }
        if self.projects.mode == ProjectMode::List && self.projects.paths.is_empty() {
            return Err(wrong(
                "projects.paths",
                "is empty; with `mode: list` it must name the projects".to_owned(),
            ));
        }
        if self
            .budget
            .usd
            .is_some_and(|usd| !usd.is_finite() || usd < 0.0)
        {
            return Err(wrong("budget.usd", "must be an amount of money".to_owned()));
        }
        let name = &self.documents.skill.name;
        if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
            return Err(wrong(
                "documents.skill.name",
                format!("is `{name}`; it must be the name of one folder"),
            ));
        }
        for (index, extra) in self.redact.extra.iter().enumerate() {
            if let Err(error) = regex::Regex::new(&extra.pattern) {
                return Err(wrong(
                    &format!("redact.extra.{index}.pattern"),
                    format!(
                        "is not a regular expression: {}",
                        error.to_string().lines().last().unwrap_or_default()
                    ),
                ));
            }
        }
        Ok(())
    }

    /// What the user should be told although it is no error.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        Role::ALL
            .iter()
            .filter(|role| self.models.role(**role).api_key.is_some())
            .map(|role| {
                format!(
                    "`models.{role}.api_key` keeps a key in the configuration file; \
                     `api_key_env`, with the name of an environment variable, is safer"
                )
            })
            .collect()
    }

    /// [`NightConfig::seed`] as the shuffles take it.
    #[must_use]
    pub fn seed(&self) -> i64 {
        i64::try_from(self.seed).unwrap_or(i64::MAX)
    }

    /// Most sessions of a night.
    #[must_use]
    pub fn most_sessions(&self) -> usize {
        self.max_sessions
            .unwrap_or(self.max_tasks.saturating_mul(3))
    }

    /// How far back the first night looks; none: to the beginning.
    #[must_use]
    pub fn first_lookback(&self) -> Option<TimeSpan> {
        self.lookback.filter(|span| !span.duration().is_zero())
    }

    /// The models with the night's hard limits.
    #[must_use]
    pub fn models(&self) -> ModelsConfig {
        ModelsConfig {
            budget: self.budget.limits(),
            ..self.models.clone()
        }
    }
}

/// A file whose values are checked.
struct File<'a> {
    path: &'a Path,
    document: &'a yaml::Document,
}

impl File<'_> {
    fn at(&self, line: usize) -> Origin {
        Origin::File {
            path: self.path.to_owned(),
            line,
        }
    }

    /// The line of the key, or of the nearest mapping around it that the file has.
    fn origin(&self, key: &str) -> Origin {
        std::iter::successors(Some(key), |key| Some(key.rsplit_once('.')?.0))
            .find_map(|key| self.document.lines.get(key))
            .map_or(Origin::Default, |line| self.at(*line))
    }

    fn wrong(&self, key: &str, reason: String) -> ConfigError {
        ConfigError::Value {
            origin: self.origin(key),
            key: key.to_owned(),
            reason,
        }
    }

    /// Compares mappings with the default's; where that has none, anything goes (`extra_body`), or
    /// the typed reading decides (list items).
    fn check_keys(&self, path: &str, value: &Value, known: &Value) -> Result<(), ConfigError> {
        let (Value::Object(given), Value::Object(known)) = (value, known) else {
            return Ok(());
        };
        for (key, value) in given {
            let path = join(path, key);
            let Some(known_value) = known.get(key) else {
                let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
                return Err(ConfigError::UnknownKey {
                    origin: self.origin(&path),
                    nearest: nearest(key, known.keys().map(String::as_str))
                        .map(|name| join(parent, name)),
                    key: path,
                });
            };
            self.check_keys(&path, value, known_value)?;
        }
        Ok(())
    }

    /// A value of the wrong type: the key on whose line the reader stopped.
    fn mistyped(&self, error: &serde_saphyr::Error) -> ConfigError {
        let error = error.without_snippet();
        let line = error
            .location()
            .map_or(0, |location| usize::try_from(location.line()).unwrap_or(0));
        let key = self
            .document
            .lines
            .iter()
            .filter(|(_, at)| **at <= line)
            .max_by_key(|(key, at)| (**at, key.len()));
        // The line is said already.
        let message = error.to_string();
        let message = message
            .rsplit_once(" at line ")
            .map_or(message.as_str(), |(message, _)| message);
        let reason = if message.starts_with("duplicate mapping key") {
            "is set twice".to_owned()
        } else if message.starts_with("invalid u") {
            "must be a whole number".to_owned()
        } else {
            format!("cannot be read: {message}")
        };
        match key {
            Some((key, at)) => ConfigError::Value {
                origin: self.at(*at),
                key: key.clone(),
                reason,
            },
            None => ConfigError::Syntax {
                path: self.path.to_owned(),
                line,
                reason,
            },
        }
    }
}

#[cfg(test)]
mod tests;
