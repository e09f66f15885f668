//! The parts of the night's configuration.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use skillopt_harvesters::registry;

use crate::config::duration::TimeSpan;
use crate::config::modes::{GateMetric, GateRuleName, LrScheduler};
use crate::config::{ConfigError, nearest, paths};
use crate::model::budget::Limits;
use crate::model::stack::Environment;

/// Whose sessions are read.
pub use skillopt_harvesters::Agent as Source;

/// Where the agents keep their files; null: where the agent itself looks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Homes {
    /// Instead of `CLAUDE_CONFIG_DIR` or `~/.claude`.
    pub claude: Option<PathBuf>,
    /// Instead of `CODEX_HOME` or `~/.codex`.
    pub codex: Option<PathBuf>,
    /// Instead of `PI_CODING_AGENT_DIR` or `~/.pi/agent`.
    pub pi: Option<PathBuf>,
    /// Instead of `~/.gemini`.
    pub gemini: Option<PathBuf>,
    /// Instead of `COPILOT_HOME` or `~/.copilot`.
    pub copilot_cli: Option<PathBuf>,
    /// A folder `User` of VS Code, instead of all usual ones.
    pub copilot_chat: Option<PathBuf>,
    /// Instead of `OpenCode`'s folder in `XDG_DATA_HOME` or `~/.local/share`.
    pub opencode: Option<PathBuf>,
    /// Instead of `~/.cursor`.
    pub cursor: Option<PathBuf>,
    /// Instead of `~/.local/share/devin/cli`.
    pub devin: Option<PathBuf>,
}

impl Homes {
    /// The folder of a source, the first one of several; none when there is no home
    /// directory.
    #[must_use]
    pub fn of(&self, source: Source, env: Environment<'_>) -> Option<PathBuf> {
        self.all_of(source, env).into_iter().next()
    }

    /// The folders of a source, existing or not; none when there is no home directory.
    #[must_use]
    pub fn all_of(&self, source: Source, env: Environment<'_>) -> Vec<PathBuf> {
        let own = match source {
            Source::Claude => &self.claude,
            Source::Codex => &self.codex,
            Source::Pi => &self.pi,
            Source::Gemini => &self.gemini,
            Source::CopilotCli => &self.copilot_cli,
            Source::CopilotChat => &self.copilot_chat,
            Source::OpenCode => &self.opencode,
            Source::Cursor => &self.cursor,
            Source::Devin => &self.devin,
        };
        if let Some(path) = own {
            return vec![paths::expand(path, env)];
        }
        let variable = |name: &str| {
            env(name)
                .filter(|text| !text.is_empty())
                .map(OsString::from)
        };
        let home = paths::home(env);
        registry()
            .iter()
            .filter(|known| known.info().agent == source)
            .flat_map(|known| {
                // Without a home a variable can still name an absolute folder.
                let home = home.as_deref().unwrap_or(Path::new(""));
                known.default_roots(std::env::consts::OS, home, &variable)
            })
            .filter(|root| home.is_some() || root.is_absolute())
            .collect()
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

/// A person's own words for how the work went, in whatever language they write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeedbackPhrases {
    /// It did not work.
    pub negative: Vec<String>,
    /// It did.
    pub positive: Vec<String>,
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

/// The skills that sessions used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SkillDocuments {
    /// Whether they may change, each trained with the tasks of the sessions that used it.
    pub enabled: bool,
    /// Whether the Markdown files of their `references/` that sessions opened may change too.
    pub references: bool,
}

impl Default for SkillDocuments {
    fn default() -> SkillDocuments {
        SkillDocuments {
            enabled: true,
            references: false,
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
    /// The skill that nights keep.
    pub skill: SkillDocument,
    /// The skills that sessions used.
    pub skills: SkillDocuments,
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
    /// How the gate decides.
    pub gate_rule: GateRuleName,
    /// Of the confident rule: the most that a useless candidate may be accepted, 0 to 0.5.
    pub gate_alpha: f64,
    /// Of the confident rule: the most scorings of a task on average; at least 1.
    pub gate_max_repeats: u32,
    /// Reject a candidate that does worse on any validation task.
    pub gate_no_regression: bool,
    /// Score an accepted batch without each of its edits too, and take out those that add nothing.
    pub gate_attribute: bool,
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
            gate_rule: GateRuleName::Confident,
            gate_alpha: 0.1,
            gate_max_repeats: 6,
            gate_no_regression: false,
            gate_attribute: false,
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
    /// Days after which a proposal that nobody decided on expires; decided ones and the backups of
    /// adoptions are deleted after twice as long. At least 1.
    pub keep_days: u32,
    /// What is adopted without a person.
    pub auto_adopt: AutoAdopt,
}

impl Default for Staging {
    fn default() -> Staging {
        Staging {
            keep_days: 30,
            auto_adopt: AutoAdopt::default(),
        }
    }
}

/// What a night may adopt without a person. Whatever the limits say, a text that the gate did not
/// accept, or in which the lint finds anything, is left to the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AutoAdopt {
    /// Whether anything is.
    pub enabled: bool,
    /// Most documents of a night; at least 1.
    pub max_documents: usize,
    /// Most edits of a document; at least 1.
    pub max_edits: usize,
    /// Most text that a document may gain and lose, in bytes of changed lines; at least 1.
    pub max_bytes: usize,
}

impl Default for AutoAdopt {
    fn default() -> AutoAdopt {
        AutoAdopt {
            enabled: false,
            max_documents: 2,
            max_edits: 4,
            max_bytes: 2_000,
        }
    }
}
