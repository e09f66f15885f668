//! Reading the logs of a night: which sessions count, newest first, kept in the database.
//!
//! Reading and choosing are two steps. [`Gatherer::refresh`] brings the database up to date: files
//! that did not change since the last time are not opened, and the sessions of those that did
//! replace what was kept of them. [`Gatherer::choose`] then takes the sessions that count out of the
//! database, so that it does not matter when a session was read. Sessions whose logs are gone stay:
//! agents delete theirs after some weeks.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use jiff::Timestamp;
use skillopt_harvesters::report::SkipReason;
use skillopt_harvesters::{
    Agent, FileMemory, HarvestOptions, ProjectScope, Redactor, Report, Roots, Session, Whereabouts,
    harvest, harvest_each, registry,
};

use crate::store::{HarvestedFiles, SessionRow, Store, StoreError};

/// How many sessions are stored in one transaction: so few that the readers do not run out
/// of room to read ahead meanwhile.
const BATCH: usize = 32;
/// How much of the first prompt lists show, in characters.
const FIRST_PROMPT: usize = 200;

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
    /// Texts by which first prompts of programs are known.
    pub program_markers: Vec<String>,
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

/// Which sessions count, as lists show them.
pub struct Chosen {
    /// The sessions that count, newest first.
    pub rows: Vec<SessionRow>,
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
    /// Brings `store` up to date and gives the sessions that count.
    ///
    /// # Errors
    /// [`GatherError`].
    pub fn gather(&self, store: &Store) -> Result<Gathered, GatherError> {
        let Chosen { rows, report } = self.list(store)?;
        let options = self.options();
        let mut sessions = Vec::new();
        for row in &rows {
            if let Some(mut session) = store.session::<Session>(row)? {
                // Gives it the wanted project, where its log names several or none.
                options.projects.takes(&mut session, &options.redactor);
                sessions.push(session);
            }
        }
        Ok(Gathered { sessions, report })
    }

    /// Brings `store` up to date and gives the rows of the sessions that count.
    ///
    /// # Errors
    /// [`GatherError`].
    pub fn list(&self, store: &Store) -> Result<Chosen, GatherError> {
        let mut report = Report::default();
        for agent in self.agents() {
            report.absorb(self.refresh(agent, store)?);
        }
        self.choose(store, report)
    }

    /// Reads every source, without a database.
    #[must_use]
    pub fn read(&self) -> Gathered {
        let harvest = harvest(&self.roots, &self.options());
        let mut sessions = harvest.sessions;
        sessions.sort_by(|a, b| {
            let newest_first = b.last_active().cmp(&a.last_active());
            newest_first
                .then_with(|| a.id.cmp(&b.id))
                .then_with(|| a.files.cmp(&b.files))
        });
        if self.max_sessions > 0 {
            sessions.truncate(self.max_sessions);
        }
        Gathered {
            sessions,
            report: harvest.report,
        }
    }

    fn options(&self) -> HarvestOptions {
        HarvestOptions {
            sources: self.sources.clone(),
            since: self.since,
            projects: self.projects.clone(),
            redactor: self.redactor.clone(),
            program_markers: self.program_markers.clone(),
            ..HarvestOptions::default()
        }
    }

    fn agents(&self) -> Vec<Agent> {
        let all = registry().iter().map(|source| source.info().agent);
        all.filter(|agent| self.sources.is_empty() || self.sources.contains(agent))
            .collect()
    }

    /// Reads what changed of an agent's logs into `store`.
    fn refresh(&self, agent: Agent, store: &Store) -> Result<Report, GatherError> {
        let mut options = HarvestOptions {
            sources: vec![agent],
            since: None,
            projects: ProjectScope::All,
            ..self.options()
        };
        let fingerprint = options.fingerprint();
        let remembered = store.remembered(agent.name(), &fingerprint)?;
        if remembered.outdated {
            self.redact_kept(agent, store)?;
        }
        options.known = memory(&remembered.files);
        let mut keeper = Keeper {
            store,
            batch: Vec::new(),
            found: HashSet::new(),
        };
        let mut failed = None;
        let account = harvest_each(&self.roots, &options, |session| {
            match keeper.take(&session) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        keeper.flush()?;
        let read: Vec<String> = account
            .read
            .iter()
            .filter_map(|path| text_of(path))
            .collect();
        let seen: Vec<(String, String)> = account
            .files
            .iter()
            .filter_map(|(path, stamp)| {
                Some((
                    path.to_str()?.to_owned(),
                    serde_json::to_string(stamp).ok()?,
                ))
            })
            .collect();
        store.settle_files(&HarvestedFiles {
            agent: agent.name(),
            fingerprint: &fingerprint,
            read: &read,
            found: &keeper.found,
            seen: &seen,
        })?;
        Ok(account.report)
    }

    /// Takes secrets out of kept sessions by rules that are new: their logs may be gone.
    fn redact_kept(&self, agent: Agent, store: &Store) -> Result<(), GatherError> {
        let mut keeper = Keeper {
            store,
            batch: Vec::new(),
            found: HashSet::new(),
        };
        for row in store.listed(&[agent.name()])? {
            let Some(kept) = store.session::<serde_json::Value>(&row)? else {
                continue;
            };
            let redacted = self.redactor.redact_value(&kept);
            if redacted != kept
                && let Ok(session) = serde_json::from_value::<Session>(redacted)
            {
                // Under the names that it was kept by, to take the place of that.
                let text = encode(&session)?;
                let row = SessionRow {
                    id: row.id,
                    file: row.file,
                    ..row_of(&session)?
                };
                keeper.batch.push((row, text));
            }
        }
        keeper.flush()
    }

    /// Which of the kept sessions count.
    fn choose(&self, store: &Store, mut report: Report) -> Result<Chosen, GatherError> {
        let agents = self.agents();
        let names: Vec<&str> = agents.iter().map(|agent| agent.name()).collect();
        let mut places = Places {
            scope: &self.projects,
            known: HashMap::new(),
        };
        let mut rows = store.listed(&names)?;
        report.sessions = 0;
        report.by_agent.clear();
        rows.retain_mut(|row| {
            let Some(agent) = agents.iter().find(|agent| agent.name() == row.agent) else {
                return false;
            };
            let reason = match places.of(*agent, row) {
                None => Some(SkipReason::OutOfScope),
                Some(project) => {
                    row.project = project;
                    let old = self
                        .since
                        .zip(row.active)
                        .is_some_and(|(since, last)| last < since);
                    old.then_some(SkipReason::TooOld)
                }
            };
            if let Some(reason) = reason {
                report.skip(Path::new(&row.file), reason, "");
                return false;
            }
            report.sessions += 1;
            *report.by_agent.entry(*agent).or_default() += 1;
            true
        });
        if self.max_sessions > 0 {
            rows.truncate(self.max_sessions);
        }
        Ok(Chosen { rows, report })
    }
}

/// Where a session began, if its log says.
type Project = Option<String>;
/// What a session's place is known by: where it began and where it went later.
type Place = (Project, Vec<String>);

/// Finds out to which wanted project sessions belong, once for each place.
struct Places<'a> {
    scope: &'a ProjectScope,
    /// By project and later folders: `None` when nobody wants it, else its project.
    known: HashMap<Place, Option<Project>>,
}

impl Places<'_> {
    /// The project of a session; `None` when nobody wants it.
    fn of(&mut self, agent: Agent, row: &SessionRow) -> Option<Project> {
        let find = || {
            self.scope.project_of(Whereabouts {
                agent,
                project: row.project.as_deref(),
                later_folders: &row.folders,
                file: &row.file,
            })
        };
        // Without a project the file decides.
        if row.project.is_none() {
            return find();
        }
        let place = (row.project.clone(), row.folders.clone());
        if let Some(known) = self.known.get(&place) {
            return known.clone();
        }
        let found = find();
        self.known.insert(place, found.clone());
        found
    }
}

/// Stores sessions as they come.
struct Keeper<'a> {
    store: &'a Store,
    batch: Vec<(SessionRow, String)>,
    /// Which sessions came, by id and file.
    found: HashSet<(String, String)>,
}

impl Keeper<'_> {
    fn take(&mut self, session: &Session) -> Result<(), GatherError> {
        let row = row_of(session)?;
        self.found.insert((row.id.clone(), row.file.clone()));
        self.batch.push((row, encode(session)?));
        if self.batch.len() >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), GatherError> {
        self.store.keep_sessions(&self.batch)?;
        self.batch.clear();
        Ok(())
    }
}

/// The stamps of remembered files. What cannot be read back is not remembered.
fn memory(files: &[(String, String)]) -> FileMemory {
    files
        .iter()
        .filter_map(|(path, stamp)| Some((path.into(), serde_json::from_str(stamp).ok()?)))
        .collect()
}

/// A path as the database has it; none for one that is no text, which is then read each time.
fn text_of(path: &Path) -> Option<String> {
    path.to_str().map(str::to_owned)
}

fn encode(session: &Session) -> Result<String, GatherError> {
    serde_json::to_string(session).map_err(|source| GatherError::Encode {
        id: session.id.to_string(),
        source,
    })
}

fn row_of(session: &Session) -> Result<SessionRow, GatherError> {
    let outcome =
        serde_json::to_value(session.outcome.verdict).map_err(|source| GatherError::Encode {
            id: session.id.to_string(),
            source,
        })?;
    let first = session.prompts().next();
    let first = first.map(|prompt| prompt.text.chars().take(FIRST_PROMPT).collect());
    Ok(SessionRow {
        agent: session.agent.name().to_owned(),
        id: session.id.to_string(),
        file: session.files.first().cloned().unwrap_or_default(),
        project: session.project.as_deref().map(str::to_owned),
        folders: session
            .later_folders
            .iter()
            .map(ToString::to_string)
            .collect(),
        active: session.last_active(),
        outcome: outcome.as_str().unwrap_or_default().to_owned(),
        first_prompt: first.unwrap_or_default(),
    })
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
