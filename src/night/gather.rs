//! Reading the logs of a night: which sessions count, newest first, kept in the database.

use jiff::Timestamp;
use skillopt_harvesters::report::SkipReason;
use skillopt_harvesters::{
    Agent, HarvestOptions, ProjectScope, Redactor, Report, Roots, Session, harvest,
};

use crate::store::{SessionRow, Store, StoreError};

/// Reads the logs.
pub struct Gatherer {
    /// Where the agents keep them.
    pub roots: Roots,
    /// Which agents; all when empty.
    pub sources: Vec<Agent>,
    /// Which projects.
    pub projects: ProjectScope,
    /// Sessions that ended earlier do not count; `None` for no limit.
    pub since: Option<Timestamp>,
    /// Most sessions, the newest ones; 0 for no limit.
    pub max_sessions: usize,
    /// Takes secrets out while reading.
    pub redactor: Redactor,
}

/// What was read.
pub struct Gathered {
    /// The sessions that count, newest first.
    pub sessions: Vec<Session>,
    /// What was read and what was not, with the reasons.
    pub report: Report,
}

/// Why the logs could not be gathered. Logs that cannot be read are no error: they are in the report.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A session cannot be stored.
    #[error("cannot store session {id}: {source}")]
    Encode {
        /// The session.
        id: String,
        /// Why not.
        source: serde_json::Error,
    },
}

impl Gatherer {
    /// Reads every source, keeps what was read in `store`, and gives the sessions that count.
    ///
    /// # Errors
    /// [`GatherError`].
    pub fn gather(&self, store: &Store) -> Result<Gathered, GatherError> {
        let gathered = self.read();
        let rows = gathered
            .sessions
            .iter()
            .map(row)
            .collect::<Result<Vec<_>, _>>()?;
        store.save_sessions(&rows)?;
        Ok(gathered)
    }

    /// Reads every source.
    #[must_use]
    pub fn read(&self) -> Gathered {
        let harvest = harvest(
            &self.roots,
            &HarvestOptions {
                sources: self.sources.clone(),
                since: self.since,
                projects: self.projects.clone(),
                redactor: self.redactor.clone(),
                ..HarvestOptions::default()
            },
        );
        let mut sessions = harvest.sessions;
        sessions.sort_by(|a, b| b.ended.cmp(&a.ended).then_with(|| a.id.cmp(&b.id)));
        if self.max_sessions > 0 {
            sessions.truncate(self.max_sessions);
        }
        Gathered {
            sessions,
            report: harvest.report,
        }
    }
}

/// How many files, folders and lines could not be read, of those that should have been. What is
/// left out on purpose (other projects, sub-agents, older sessions) does not count.
#[must_use]
pub fn problems(report: &Report) -> u64 {
    let reasons = [
        SkipReason::Unreadable,
        SkipReason::Vanished,
        SkipReason::NotAFile,
        SkipReason::TooLarge,
        SkipReason::Database,
    ];
    let files: u64 = reasons
        .iter()
        .filter_map(|reason| report.skip_counts.get(reason))
        .sum();
    files + report.flaw_counts.values().sum::<u64>()
}

fn row(session: &Session) -> Result<SessionRow, GatherError> {
    let encode = |source| GatherError::Encode {
        id: session.id.clone(),
        source,
    };
    let outcome = serde_json::to_value(session.outcome.verdict).map_err(encode)?;
    Ok(SessionRow {
        agent: session.agent.name().to_owned(),
        id: session.id.clone(),
        project: session.project.clone().unwrap_or_default(),
        started: session.started,
        ended: session.ended,
        outcome: outcome.as_str().unwrap_or_default().to_owned(),
        session: serde_json::to_value(session).map_err(encode)?,
    })
}
