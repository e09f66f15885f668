//! Reading the logs of a night: which sessions count, newest first, kept in the database.

use std::ops::ControlFlow;

use jiff::Timestamp;
use skillopt_harvesters::report::SkipReason;
use skillopt_harvesters::{
    Agent, HarvestOptions, ProjectScope, Redactor, Report, Roots, Session, harvest_each,
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
    /// Sessions are stored while later ones are read; in memory are only those that count.
    ///
    /// # Errors
    /// [`GatherError`]; what was stored until then stays, and is replaced the next time.
    pub fn gather(&self, store: &Store) -> Result<Gathered, GatherError> {
        let mut unsaved = Unsaved::new(store);
        let gathered = self.read_each(|session| unsaved.add(session))?;
        unsaved.save()?;
        Ok(gathered)
    }

    /// Reads every source.
    #[must_use]
    pub fn read(&self) -> Gathered {
        match self.read_each(|_| Ok::<(), std::convert::Infallible>(())) {
            Ok(gathered) => gathered,
            Err(never) => match never {},
        }
    }

    /// Reads every source and shows each session to `each`, until that fails.
    fn read_each<E>(&self, mut each: impl FnMut(&Session) -> Result<(), E>) -> Result<Gathered, E> {
        let options = HarvestOptions {
            sources: self.sources.clone(),
            since: self.since,
            projects: self.projects.clone(),
            redactor: self.redactor.clone(),
            ..HarvestOptions::default()
        };
        let mut newest = Newest::new(self.max_sessions);
        let mut failure = None;
        let account = harvest_each(&self.roots, &options, |session| match each(&session) {
            Ok(()) => {
                newest.add(session);
                ControlFlow::Continue(())
            }
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(Gathered {
                sessions: newest.in_order(),
                report: account.report,
            }),
        }
    }
}

/// The newest sessions of those that were read.
struct Newest {
    sessions: Vec<Session>,
    /// Most of them; 0 for no limit.
    most: usize,
}

impl Newest {
    fn new(most: usize) -> Self {
        Self {
            sessions: Vec::new(),
            most,
        }
    }

    fn add(&mut self, session: Session) {
        self.sessions.push(session);
        // Sorting each time twice as many are there costs little in all.
        if self.most > 0 && self.sessions.len() >= self.most.saturating_mul(2) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.sessions
            .sort_by(|a, b| b.ended.cmp(&a.ended).then_with(|| a.id.cmp(&b.id)));
        if self.most > 0 {
            self.sessions.truncate(self.most);
        }
    }

    fn in_order(mut self) -> Vec<Session> {
        self.cut();
        self.sessions
    }
}

/// Sessions that are not in the database yet. They go there many at a time: a transaction
/// waits for the disk at its end.
struct Unsaved<'a> {
    store: &'a Store,
    rows: Vec<SessionRow>,
    bytes: usize,
}

impl<'a> Unsaved<'a> {
    /// How much waits for one transaction, in bytes of JSON.
    const MOST: usize = 8 << 20;

    fn new(store: &'a Store) -> Self {
        Self {
            store,
            rows: Vec::new(),
            bytes: 0,
        }
    }

    fn add(&mut self, session: &Session) -> Result<(), GatherError> {
        let row = row(session)?;
        self.bytes += row.session.len();
        self.rows.push(row);
        if self.bytes >= Self::MOST {
            self.save()?;
        }
        Ok(())
    }

    fn save(&mut self) -> Result<(), GatherError> {
        self.store.save_sessions(&self.rows)?;
        self.rows.clear();
        self.bytes = 0;
        Ok(())
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
        session: serde_json::to_string(session).map_err(encode)?,
    })
}
