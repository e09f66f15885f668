//! Which sessions a command looks at: the options that `run` and `harvest` share.

use std::path::PathBuf;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use skillopt_harvesters::{ProjectScope, Redactor, registry};

use super::context::{Context, absolute};
use super::failure::{ExitStatus, Failure};
use crate::config::NightConfig;
use crate::config::duration::since;
use crate::config::night::{ProjectMode, Source};
use crate::night::gather::Gatherer;

/// Which sessions.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Selection {
    /// Only sessions of this project; may be given often.
    #[arg(long, value_name = "DIR", conflicts_with = "all_projects")]
    pub(super) project: Vec<PathBuf>,
    /// Sessions of every project.
    #[arg(long)]
    all_projects: bool,
    /// Only logs of this agent (see `harvest sources`); may be given often.
    #[arg(long, value_name = "NAME")]
    source: Vec<String>,
    /// Sessions that ended since: a duration such as `72h`, or a date.
    #[arg(long, value_name = "DURATION|DATE")]
    since: Option<String>,
    /// Most sessions, the newest ones.
    #[arg(long, value_name = "N")]
    max_sessions: Option<usize>,
}

impl Selection {
    /// Every session of every project and every agent.
    pub(super) fn everything() -> Self {
        let sources = registry().iter().map(|source| source.info().agent);
        Self {
            all_projects: true,
            source: sources.map(|source| source.name().to_owned()).collect(),
            max_sessions: Some(0),
            ..Self::default()
        }
    }

    /// The configuration with what the command line says on top.
    pub(super) fn apply(&self, config: &mut NightConfig) -> Result<(), Failure> {
        if !self.source.is_empty() {
            config.sources = self
                .source
                .iter()
                .map(|name| source(name))
                .collect::<Result<_, _>>()?;
        }
        if self.max_sessions.is_some() {
            config.max_sessions = self.max_sessions;
        }
        Ok(())
    }

    /// Reads the selected sessions; those since `usual` when the command line does not say.
    pub(super) fn gatherer(
        &self,
        context: &Context,
        config: &NightConfig,
        usual: Option<Timestamp>,
    ) -> Result<Gatherer, Failure> {
        let since = match &self.since {
            Some(text) => Some(since(text, Timestamp::now(), &TimeZone::system()).map_err(
                |reason| Failure::new(ExitStatus::Situation, format!("--since {text}: {reason}")),
            )?),
            None => usual,
        };
        let redactor = context.redactor()?;
        Ok(Gatherer {
            roots: context.log_roots(config),
            sources: config.sources.clone(),
            projects: masked(self.scope(context, config), &redactor),
            since,
            max_sessions: config.most_sessions(),
            program_markers: config.program_markers.clone(),
            redactor,
        })
    }

    /// The project directories that the command is about.
    pub(super) fn projects(&self, context: &Context) -> Vec<PathBuf> {
        match self.project.as_slice() {
            [] => context.projects(),
            named => named.iter().map(|path| absolute(path)).collect(),
        }
    }

    fn scope(&self, context: &Context, config: &NightConfig) -> ProjectScope {
        match config.projects.mode {
            _ if !self.project.is_empty() => ProjectScope::Under(self.projects(context)),
            _ if self.all_projects => ProjectScope::All,
            ProjectMode::All => ProjectScope::All,
            ProjectMode::Invoked | ProjectMode::List => ProjectScope::Under(context.projects()),
        }
    }
}

/// The scope with the names that its folders have in sessions whose paths are masked.
fn masked(scope: ProjectScope, redactor: &Redactor) -> ProjectScope {
    let ProjectScope::Under(folders) = scope else {
        return scope;
    };
    let masked: Vec<PathBuf> = folders
        .iter()
        .map(|folder| PathBuf::from(redactor.redact(&folder.to_string_lossy()).into_owned()))
        .filter(|folder| !folders.contains(folder))
        .collect();
    ProjectScope::Under(folders.into_iter().chain(masked).collect())
}

fn source(name: &str) -> Result<Source, Failure> {
    let mut sources = registry().iter().map(|source| source.info().agent);
    let names: Vec<&str> = sources.clone().map(Source::name).collect();
    sources.find(|source| source.name() == name).ok_or_else(|| {
        Failure::new(ExitStatus::Situation, format!("`{name}` is no log source"))
            .hint(format!("the sources are {}", names.join(", ")))
    })
}
