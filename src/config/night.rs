//! The night's configuration: one YAML file of our own form.
//!
//! Every key has a default, so an absent file is a valid one; `configs/sleep.yaml` is the default
//! written out with comments, and a test keeps the two equal. Unknown keys, wrong types and values
//! out of range are errors that name the line and the key.

mod file;
mod sections;

pub use sections::{
    AutoAdopt, Documents, FeedbackPhrases, Homes, MemoryDocuments, NightBudget, NightTrain,
    ProjectMode, Projects, Redact, SecretPattern, SkillDocument, SkillDocuments, Source, Staging,
};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::file::File;
use super::duration::TimeSpan;
use super::modes::GateRuleName;
use super::{ConfigError, Origin, yaml};
use crate::model::{ModelsConfig, Role};

/// The commented default, for `init` to write.
pub const DEFAULT_YAML: &str = include_str!("../../configs/sleep.yaml");

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
    /// Texts by which the first prompts of programs that call an agent are known; their sessions
    /// are nobody's.
    pub program_markers: Vec<String>,
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
    /// Words of approval and disapproval besides the built-in ones.
    pub feedback: FeedbackPhrases,
    /// Seeds the split and every shuffle.
    pub seed: u64,
    /// What a night may change.
    pub documents: Documents,
    /// More folders in which skills are looked for; relative ones belong to each project.
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
            program_markers: Vec::new(),
            lookback: None,
            max_sessions: None,
            max_tasks: 40,
            val_fraction: 0.34,
            test_fraction: 0.0,
            feedback: FeedbackPhrases::default(),
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
        let alpha = self.train.gate_alpha;
        if !(alpha > 0.0 && alpha <= 0.5) {
            let reason = format!("is {alpha}; it must be above 0 and at most 0.5");
            return Err(wrong("train.gate_alpha", reason));
        }
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
        let auto = &self.staging.auto_adopt;
        let least = [
            ("max_tasks", self.max_tasks, 1),
            ("max_sessions", self.max_sessions.unwrap_or(1), 1),
            ("train.epochs", self.train.epochs, 1),
            ("train.batch_size", self.train.batch_size, 1),
            ("train.minibatch_size", self.train.minibatch_size, 1),
            ("train.merge_batch_size", self.train.merge_batch_size, 2),
            ("staging.keep_days", self.staging.keep_days as usize, 1),
            ("staging.auto_adopt.max_documents", auto.max_documents, 1),
            ("staging.auto_adopt.max_edits", auto.max_edits, 1),
            ("staging.auto_adopt.max_bytes", auto.max_bytes, 1),
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
        let keys = Role::ALL
            .iter()
            .filter(|role| self.models.role(**role).api_key.is_some())
            .map(|role| {
                format!(
                    "`models.{role}.api_key` keeps a key in the configuration file; \
                     `api_key_env`, with the name of an environment variable, is safer"
                )
            });
        let strict =
            self.staging.auto_adopt.enabled && self.train.gate_rule == GateRuleName::Strict;
        let unsure = strict.then(|| {
            "`staging.auto_adopt` adopts what the gate accepts, and the strict gate accepts almost \
             every second useless edit; `train.gate_rule: confident` keeps them out"
                .to_owned()
        });
        keys.chain(unsure).collect()
    }

    /// The name of the skill that nights keep.
    #[must_use]
    pub fn kept_skill(&self) -> String {
        let skill = &self.documents.skill;
        let folder = skill
            .path
            .as_deref()
            .and_then(Path::parent)
            .and_then(Path::file_name);
        match folder {
            Some(folder) => folder.to_string_lossy().into_owned(),
            None => skill.name.clone(),
        }
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

#[cfg(test)]
mod tests;
