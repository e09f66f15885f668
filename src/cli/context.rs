//! What every command starts from: where things are, the configuration, and where output goes.

use std::path::{Path, PathBuf};

use miette::Diagnostic as _;
use skillopt_harvesters::redact::{Identity, UserRule};
use skillopt_harvesters::{Redactor, Roots, registry};
use skillopt_staging::{AllowedRoots, PROJECT_SKILLS};

use super::failure::{ExitStatus, Failure};
use super::models::env;
use super::output::Printer;
use crate::config::night::Source;
use crate::config::paths::{expand, home};
use crate::config::{ConfigError, NightConfig, Paths};
use crate::night::used_skills::UsedSkills;

/// The agents that have skills in their homes.
const SKILL_AGENTS: [Source; 3] = [Source::Claude, Source::Codex, Source::Cursor];

/// What a command works with.
pub(super) struct Context {
    /// Where things are.
    pub(super) paths: Paths,
    /// The file of `--config`, for the commands for which it is a run's configuration.
    pub(super) run_config: Option<PathBuf>,
    /// The file of `--config`, `SKILLOPT_SLEEP_CONFIG` or the platform's, for the night.
    config: Result<NightConfig, ConfigError>,
    /// Where output goes.
    pub(super) printer: Printer,
}

impl Context {
    /// Finds paths and configuration. A broken configuration is an error only for the commands that
    /// need it.
    pub(super) fn new(config: Option<PathBuf>, printer: Printer) -> Result<Self, Failure> {
        let paths = Paths::find(config.as_deref(), &env).map_err(|error| config_failure(&error))?;
        let required = config.is_some() || env("SKILLOPT_SLEEP_CONFIG").is_some();
        Ok(Self {
            config: NightConfig::read(&paths.config, required),
            run_config: config,
            paths,
            printer,
        })
    }

    /// A context over a home of its own, for the demo.
    pub(super) fn at(paths: Paths, config: NightConfig, printer: Printer) -> Self {
        Self {
            paths,
            run_config: None,
            config: Ok(config),
            printer,
        }
    }

    /// The night's configuration.
    pub(super) fn config(&self) -> Result<&NightConfig, Failure> {
        self.config.as_ref().map_err(config_failure)
    }

    /// The night's configuration, or the defaults for a command that can do without.
    fn config_or_default(&self) -> NightConfig {
        self.config.as_ref().cloned().unwrap_or_default()
    }

    /// Where the agents' logs are.
    pub(super) fn log_roots(&self, config: &NightConfig) -> Roots {
        let homes = config.sources.iter().flat_map(|source| {
            let homes = config.homes.all_of(*source, &env);
            homes.into_iter().map(|home| (*source, home))
        });
        homes.fold(Roots::none(), |roots, (source, home)| {
            roots.with(source, home)
        })
    }

    /// Takes secrets out of logs, with the configured patterns too.
    pub(super) fn redactor(&self) -> Result<Redactor, Failure> {
        let rules: Vec<UserRule> = self
            .config()?
            .redact
            .extra
            .iter()
            .map(|rule| UserRule {
                name: rule.name.clone(),
                pattern: rule.pattern.clone(),
            })
            .collect();
        let identity = self.config()?.redact.identity.then(|| Identity {
            home: home(&env).map(|path| path.display().to_string()),
            user: env("USER").or_else(|| env("LOGNAME")),
            host: env("HOSTNAME").or_else(|| env("COMPUTERNAME")),
        });
        Redactor::with(&rules, identity.as_ref()).map_err(|error| Failure::situation(&error))
    }

    /// Claude Code's home.
    pub(super) fn claude_home(&self) -> Option<PathBuf> {
        self.config_or_default().homes.of(Source::Claude, &env)
    }

    /// What configuration allows adoption to write, derived anew each time.
    pub(super) fn allowed_roots(&self) -> AllowedRoots {
        let config = self.config_or_default();
        let mut roots = AllowedRoots::new();
        for (source, home) in skill_homes(&config) {
            if source == Source::Claude {
                roots = roots.skills(home.join("plugins").join("cache"));
            }
            roots = roots.skills(home.join("skills"));
        }
        let projects = self.projects();
        for root in &config.skill_roots {
            let root = expand(root, &env);
            if root.is_absolute() {
                roots = roots.skills(root);
            } else {
                for project in &projects {
                    roots = roots.skills(project.join(&root));
                }
            }
        }
        if let Some(path) = &config.documents.skill.path {
            roots = roots.document(expand(path, &env));
        }
        for project in projects {
            for skills in PROJECT_SKILLS {
                roots = roots.skills(project.join(skills));
            }
            if config.documents.memory.enabled {
                roots = roots.project(project);
            }
        }
        roots
    }

    /// The folders of all agents.
    pub(super) fn homes(&self) -> Vec<(Source, PathBuf)> {
        let config = self.config_or_default();
        registry()
            .iter()
            .map(|source| source.info().agent)
            .flat_map(|agent| {
                let homes = config.homes.all_of(agent, &env);
                homes.into_iter().map(move |home| (agent, home))
            })
            .collect()
    }

    /// Where skills are looked for by their names.
    pub(super) fn used_skills(&self, config: &NightConfig) -> UsedSkills {
        UsedSkills {
            homes: skill_homes(config).collect(),
            directories: config
                .skill_roots
                .iter()
                .map(|root| expand(root, &env))
                .collect(),
            references: config.documents.skills.references,
        }
    }

    /// The projects that the configuration names, else the one of the current directory.
    pub(super) fn projects(&self) -> Vec<PathBuf> {
        let listed = self.config_or_default().projects.paths;
        if listed.is_empty() {
            std::env::current_dir().into_iter().collect()
        } else {
            listed.iter().map(|path| expand(path, &env)).collect()
        }
    }
}

impl Context {
    /// The reviewer's desk over this context's staging area.
    pub(super) fn desk(&self) -> Result<super::review::Desk, Failure> {
        let area = super::staged::open(&self.paths.staging())?;
        Ok(super::review::Desk::new(
            area,
            &self.paths.state,
            self.paths.nights(),
            self.allowed_roots(),
        ))
    }
}

/// The homes of agents that have skills in them.
fn skill_homes(config: &NightConfig) -> impl Iterator<Item = (Source, PathBuf)> {
    SKILL_AGENTS
        .into_iter()
        .filter_map(|source| Some((source, config.homes.of(source, &env)?)))
}

/// A configuration that cannot be used.
pub(super) fn config_failure(error: &ConfigError) -> Failure {
    let failure = Failure::of(ExitStatus::Situation, error);
    match error.help() {
        Some(help) => failure.hint(help.to_string()),
        None => failure,
    }
}

/// A path of the command line, absolute.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
