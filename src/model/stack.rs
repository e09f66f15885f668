//! Who plays which role, and the one place where a model and everything around it is put
//! together.
//!
//! [`ModelsConfig`] says for each role which backend to use and how hard; [`Models::build`] makes
//! the backends and wraps them. The order of the wrappers is a decision: usage is metered for
//! every answer, the journal's included; what the journal can answer needs no model, healthy or
//! not; every attempt of a retried call waits its turn at the limit and is charged to the budget.

mod backend;
mod role;

pub use backend::Backend;
pub use role::RoleConfig;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::budget::{Budget, Budgeted, Limits, Price};
use super::health::{Guarded, Health};
use super::journal::{Journal, JournalError, Journaled};
use super::limit::{Limit, Limited};
use super::meter::{Meter, Metered};
use super::openai_compatible::{OpenAiCompatible, Settings};
use super::retry::{Policy, Retry};
use super::scripted::Scripted;
use super::{CallError, ChatModel, Role};

/// How environment variables are looked up; a parameter, so that tests need no real ones.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The models of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelsConfig {
    /// Reflects, merges, ranks, rewrites and judges.
    pub optimizer: RoleConfig,
    /// Attempts items.
    pub target: RoleConfig,
    /// The hard limits, over both roles.
    #[serde(skip)]
    pub budget: Limits,
    /// The file in which runs share the target's replies. The optimizer's are never shared: what it
    /// proposes is what runs differ by.
    #[serde(skip)]
    pub shared_results: Option<PathBuf>,
}

impl ModelsConfig {
    /// Whether every reply comes from a script, so that nothing is spent.
    #[must_use]
    pub fn are_scripted(&self) -> bool {
        [&self.optimizer, &self.target]
            .iter()
            .all(|role| role.script.is_some())
    }

    /// One role's part.
    #[must_use]
    pub fn role(&self, role: Role) -> &RoleConfig {
        match role {
            Role::Optimizer => &self.optimizer,
            Role::Target => &self.target,
        }
    }

    /// One role's part, to change.
    pub fn role_mut(&mut self, role: Role) -> &mut RoleConfig {
        match role {
            Role::Optimizer => &mut self.optimizer,
            Role::Target => &mut self.target,
        }
    }

    /// Applies one `--model ROLE=SPEC`. ROLE is `optimizer`, `target` or `both`; SPEC is
    /// `openai_compatible`, `openai_compatible:MODEL`, `openai_compatible:MODEL@URL`,
    /// `openai_compatible:@URL` or `scripted:FILE`. What SPEC does not name stays as configured.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] when the text has another form, [`ModelError::UnknownBackend`] and
    /// [`ModelError::BackendNotBuilt`] when the backend cannot be used.
    pub fn select(&mut self, text: &str) -> Result<(), ModelError> {
        let invalid = |reason: String| ModelError::Invalid {
            what: format!("--model {text}"),
            reason,
        };
        let (role, spec) = text.split_once('=').ok_or_else(|| {
            invalid("it has no `=`; write it like optimizer=openai_compatible:MODEL@URL".to_owned())
        })?;
        let roles = match role.trim() {
            "optimizer" => vec![Role::Optimizer],
            "target" => vec![Role::Target],
            "both" => Role::ALL.to_vec(),
            other => {
                return Err(invalid(format!(
                    "`{other}` is not a role; use optimizer, target or both"
                )));
            }
        };
        let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
        let backend: Backend = name.parse()?;
        for role in roles {
            let config = self.role_mut(role);
            config.backend = Some(backend);
            match backend {
                Backend::Scripted if rest.is_empty() && config.script.is_none() => {
                    return Err(invalid("name the script, as in scripted:FILE".to_owned()));
                }
                Backend::Scripted if rest.is_empty() => {}
                Backend::Scripted => config.script = Some(rest.into()),
                Backend::OpenaiCompatible => {
                    // Model names may hold an @ of their own.
                    let at = ["@http://", "@https://"]
                        .iter()
                        .find_map(|mark| rest.find(mark));
                    let (model, url) = match at {
                        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
                        None => (rest, None),
                    };
                    if !model.is_empty() {
                        config.model = Some(model.to_owned());
                    }
                    if let Some(url) = url {
                        config.base_url = Some(url.to_owned());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Models that cannot be set up. [`ModelError::NotConfigured`] means that there is no usable model
/// (exit code 4); the others are mistakes in what the user gave (exit code 1).
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ModelError {
    /// Nothing says which model to use.
    #[error("no usable model for {}: none is configured", list(roles))]
    #[diagnostic(help("{}", backend::HOW_TO_CONFIGURE))]
    NotConfigured {
        /// The roles without one.
        roles: Vec<Role>,
    },
    /// The name is of no backend.
    #[error("`{name}` is not a model backend{}", backend::did_you_mean(name))]
    #[diagnostic(help("the backends are: {}", backend::names()))]
    UnknownBackend {
        /// What was given.
        name: String,
    },
    /// The name is of a backend that this version does not have.
    #[error("the model backend `{name}` is not part of this version")]
    #[diagnostic(help("the backends are: {}", backend::names()))]
    BackendNotBuilt {
        /// What was given.
        name: String,
    },
    /// A value cannot be used.
    #[error("{what} cannot be used: {reason}")]
    Invalid {
        /// The key, variable or option.
        what: String,
        /// Why not, and what would do.
        reason: String,
    },
    /// A script of the scripted model cannot be used.
    #[error("the script `{name}` cannot be used: {reason}")]
    Script {
        /// The file, or the name of a built-in script.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

fn list(roles: &[Role]) -> String {
    let names: Vec<_> = roles.iter().map(|role| format!("the {role}")).collect();
    names.join(" and ")
}

/// The models of a run, ready for use, with what watches them.
pub struct Models {
    /// For [`Role::Optimizer`].
    pub optimizer: Arc<dyn ChatModel>,
    /// For [`Role::Target`].
    pub target: Arc<dyn ChatModel>,
    /// Usage by role and stage, answers of the journal included.
    pub meter: Arc<Meter>,
    /// What was really spent, against the limits.
    pub budget: Arc<Budget>,
    /// The finished replies on disk, when a path was given.
    pub journal: Option<Arc<Journal>>,
    optimizer_health: Arc<Health>,
    target_health: Arc<Health>,
}

impl Models {
    /// Makes the backends that `config` names and wraps them. Makes no call.
    ///
    /// # Errors
    /// [`ModelError`]; when several roles lack a model, one error names them all.
    pub fn build(
        config: &ModelsConfig,
        journal: Option<&Path>,
        env: Environment<'_>,
    ) -> Result<Models, ModelError> {
        let optimizer = backend(Role::Optimizer, config, env);
        let target = backend(Role::Target, config, env);
        match (optimizer, target) {
            (Ok(optimizer), Ok(target)) => {
                Models::with_backends(config, optimizer, target, journal)
            }
            (Err(ModelError::NotConfigured { .. }), Err(ModelError::NotConfigured { .. })) => {
                Err(ModelError::NotConfigured {
                    roles: Role::ALL.to_vec(),
                })
            }
            (Err(ModelError::NotConfigured { .. }), Err(mistake)) => Err(mistake),
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    /// Wraps backends that the caller made, as [`Models::build`] wraps its own.
    ///
    /// # Errors
    /// [`ModelError`] when a limit cannot be used or the journal cannot be opened.
    pub fn with_backends(
        config: &ModelsConfig,
        optimizer: Arc<dyn ChatModel>,
        target: Arc<dyn ChatModel>,
        journal: Option<&Path>,
    ) -> Result<Models, ModelError> {
        for role in Role::ALL {
            config.role(role).check(role)?;
        }
        check_budget(config)?;
        let meter = Arc::new(Meter::default());
        let budget = Arc::new(Budget::new(config.budget));
        let journal = journal.map(Journal::open).transpose()?.map(Arc::new);
        if let Some(journal) = &journal {
            for role in Role::ALL {
                budget.preload(journal.role_usage(role)?, config.role(role).price());
            }
        }
        let shared = config.shared_results.as_deref();
        let shared = shared.map(Journal::open).transpose()?.map(Arc::new);
        let wrap = |backend: Arc<dyn ChatModel>, role: Role| {
            let role_config = config.role(role);
            let health = Arc::new(Health::default());
            let policy = Policy {
                attempts: role_config.retries.unwrap_or(Policy::default().attempts),
                ..Policy::default()
            };
            let limit = Arc::new(Limit::new(role_config.concurrency()));

            let model = Budgeted::new(backend, Arc::clone(&budget), role_config.price());
            let model = Limited::new(Arc::new(model), limit);
            let model = Retry::new(Arc::new(model), policy);
            let model = Guarded::new(Arc::new(model), Arc::clone(&health));
            let mut model: Arc<dyn ChatModel> = Arc::new(model);
            if let (Some(shared), Role::Target) = (&shared, role) {
                model = Arc::new(Journaled::shared(model, role, Arc::clone(shared)));
            }
            if let Some(journal) = &journal {
                model = Arc::new(Journaled::new(model, role, Arc::clone(journal)));
            }
            let model: Arc<dyn ChatModel> = Arc::new(Metered::new(model, role, Arc::clone(&meter)));
            (model, health)
        };
        let (optimizer, optimizer_health) = wrap(optimizer, Role::Optimizer);
        let (target, target_health) = wrap(target, Role::Target);
        Ok(Models {
            optimizer,
            target,
            meter,
            budget,
            journal,
            optimizer_health,
            target_health,
        })
    }

    /// The model of one role.
    #[must_use]
    pub fn role(&self, role: Role) -> &Arc<dyn ChatModel> {
        match role {
            Role::Optimizer => &self.optimizer,
            Role::Target => &self.target,
        }
    }

    /// The first role whose model cannot be used, and why, once that is known: the run should
    /// stop, and say this once.
    #[must_use]
    pub fn tripped(&self) -> Option<(Role, CallError)> {
        let tripped = |role, health: &Health| health.tripped().map(|cause| (role, cause));
        tripped(Role::Optimizer, &self.optimizer_health)
            .or_else(|| tripped(Role::Target, &self.target_health))
    }

    /// Whether no real model is behind any role, which whoever reports the run must say.
    #[must_use]
    pub fn are_scripted(&self) -> bool {
        Role::ALL
            .iter()
            .all(|role| self.role(*role).id().starts_with("scripted/"))
    }
}

/// The bare model of one role.
fn backend(
    role: Role,
    config: &ModelsConfig,
    env: Environment<'_>,
) -> Result<Arc<dyn ChatModel>, ModelError> {
    let config = config.role(role);
    match (config.backend, &config.script) {
        (Some(Backend::Scripted), Some(script)) | (None, Some(script)) => {
            Ok(Arc::new(Scripted::from_file(script)?))
        }
        (Some(Backend::Scripted), None) => Err(ModelError::Invalid {
            what: format!("models.{role}.backend scripted"),
            reason: format!("models.{role}.script names no file"),
        }),
        (Some(Backend::OpenaiCompatible) | None, _) => {
            let settings = Settings::resolve(role, config, env)?;
            Ok(Arc::new(OpenAiCompatible::new(settings)?))
        }
    }
}

fn check_budget(config: &ModelsConfig) -> Result<(), ModelError> {
    let Some(usd) = config.budget.usd else {
        return Ok(());
    };
    let invalid = |reason: String| ModelError::Invalid {
        what: "budget.usd".to_owned(),
        reason,
    };
    if !usd.is_finite() || usd < 0.0 {
        return Err(invalid(format!("{usd} is not an amount of money")));
    }
    for role in Role::ALL {
        let config = config.role(role);
        if config.backend != Some(Backend::Scripted)
            && (config.price_in.is_none() || config.price_out.is_none())
        {
            return Err(invalid(format!(
                "what tokens cost is not known; set models.{role}.price_in and \
                 models.{role}.price_out (US dollars per million tokens)"
            )));
        }
    }
    Ok(())
}

impl RoleConfig {
    fn price(&self) -> Price {
        Price {
            input: self.price_in.unwrap_or_default(),
            output: self.price_out.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
