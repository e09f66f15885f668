//! One night: harvest → mine → split → train → stage, and a report whatever happens.
//!
//! A night holds a lock and works in a run directory of its own. What it mined is written there
//! before anything is paid for, and every finished model call is journaled there, so a night that
//! was killed is the same night when the same command is given again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use skillopt_files::{Lock, LockError, read_text, write_atomic_json};
use skillopt_harvesters::Session;
use skillopt_harvesters::report::SkipReason;
use skillopt_staging::{Ledger, StagingArea};

use super::assignment::Assigned;
use super::auto_adopt::AutoAdopter;
use super::document::DocumentError;
use super::event::{NightEvent, Watch};
use super::gather::GatherError;
use super::housekeeping;
use super::mine;
use super::observers::{All, Recorder};
use super::plan::NightPlan;
use super::report::{NightReport, RefusedDocument, TaskCounts};
use super::split::{self, BadFractions, Fractions};
use super::stage::StageError;
use super::task::Task;
use super::training::{Trainee, Training};
use crate::config::{NightConfig, Paths};
use crate::impact::{self, Impact};
use crate::model::{ModelError, Models};
use crate::store::{NightStatus, Store, StoreError};
use crate::trainer::error::TrainError;

/// Fewest tasks that a gate can be made of: one to learn from and one to hold out.
const MIN_TASKS: usize = 2;

/// A night that was interrupted longer ago than this is not gone on with.
const RESUME_WITHIN: SignedDuration = SignedDuration::from_hours(24);

/// Largest tasks file that is read back, in bytes.
const MAX_TASKS_BYTES: u64 = 64 << 20;

/// Why a night ended before its end. What it had found is in the report all the same.
#[derive(Debug, thiserror::Error)]
pub enum NightError {
    /// Another run holds the lock.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The logs.
    #[error(transparent)]
    Gather(#[from] GatherError),
    /// There is no usable model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A document cannot be read.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Training stopped.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// Staging failed.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// A file of the night cannot be written or read.
    #[error(transparent)]
    File(#[from] skillopt_files::Error),
    /// Nothing may be changed.
    #[error("there is no document that this night may change; the report says why")]
    NoDocument,
    /// The split fractions cannot be used.
    #[error(transparent)]
    Split(#[from] BadFractions),
    /// The mined tasks cannot be read back.
    #[error("cannot read {path}: {source}; delete it to begin this night again")]
    Tasks {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
}

impl NightError {
    /// Whether the same command, given again, should go on with the same night.
    fn is_resumable(&self) -> bool {
        matches!(self, Self::Train(_) | Self::Stage(_) | Self::File(_))
    }
}

/// How a night ended.
pub struct NightOutcome {
    /// The account.
    pub report: NightReport,
    /// What ended it early.
    pub error: Option<NightError>,
}

/// A night's surroundings.
pub struct Night<'a> {
    /// The configuration.
    pub config: &'a NightConfig,
    /// Where things are.
    pub paths: &'a Paths,
    /// Follows what happens.
    pub watch: Arc<dyn Watch>,
}

impl Night<'_> {
    /// Runs one night. `models` is asked for the models once there is work for them, with the path
    /// of the night's journal.
    ///
    /// # Errors
    /// When the night could not even begin: the lock is taken or the database cannot be used.
    pub async fn run(
        &self,
        plan: &NightPlan,
        models: impl FnOnce(&Path) -> Result<Arc<Models>, ModelError>,
    ) -> Result<NightOutcome, NightError> {
        let _lock = Lock::acquire(&self.paths.lock(), "a night")?;
        let store = Store::open(&self.paths.database())?;
        let (night, resumed) = begin(&store)?;
        let watch: Arc<dyn Watch> = Arc::new(All(vec![
            Arc::clone(&self.watch),
            Arc::new(Recorder::new(Store::open(&self.paths.database())?, night)),
        ]));
        watch.watch(&NightEvent::Started { night, resumed });
        let mut report = NightReport {
            night,
            started: Timestamp::now(),
            ..NightReport::default()
        };
        let work = Work {
            night: self,
            store: &store,
            watch: &watch,
            dir: self.paths.runs().join(format!("night-{night:04}")),
        };
        let error = work.phases(plan, models, &mut report).await.err();
        report.ended = Timestamp::now();
        self.close(&store, &report, error.as_ref())?;
        watch.watch(&NightEvent::Finished {
            proposals: report.proposals().len(),
        });
        Ok(NightOutcome { report, error })
    }

    /// Leaves the report, as files and in the database.
    fn close(
        &self,
        store: &Store,
        report: &NightReport,
        error: Option<&NightError>,
    ) -> Result<(), NightError> {
        let dir = self
            .paths
            .nights()
            .join(format!("night-{:04}", report.night));
        write_atomic_json(&dir.join("report.json"), report)?;
        let options = skillopt_files::Options {
            create_parents: true,
            ..skillopt_files::Options::default()
        };
        let markdown = report.to_markdown();
        skillopt_files::write_atomic(&dir.join("report.md"), markdown.as_bytes(), options)?;
        let status = match error {
            None => NightStatus::Done,
            Some(error) if error.is_resumable() => NightStatus::Interrupted,
            Some(_) => NightStatus::Failed,
        };
        let value = serde_json::to_value(report).unwrap_or_default();
        store.end_night(report.night, report.ended, status, Some(&value))?;
        Ok(())
    }
}

/// The night to work on: one that was interrupted lately, else a new one.
fn begin(store: &Store) -> Result<(i64, bool), StoreError> {
    let now = Timestamp::now();
    if let Some(night) = store.unfinished_night()? {
        if now.duration_since(night.started) < RESUME_WITHIN {
            return Ok((night.id, true));
        }
        store.end_night(night.id, now, NightStatus::Failed, night.report.as_ref())?;
    }
    Ok((store.begin_night(now)?, false))
}

/// A night at work.
struct Work<'a> {
    night: &'a Night<'a>,
    store: &'a Store,
    watch: &'a Arc<dyn Watch>,
    dir: PathBuf,
}

/// Why a night ends before training.
fn too_few(tasks: &[Task], report: &NightReport) -> String {
    let old = report.harvest.skip_counts.get(&SkipReason::TooOld);
    match (report.sessions, old) {
        (0, Some(old)) => format!(
            "no session is newer than the last night's; {old} older ones are left alone \
             (--since 30d reads them again)"
        ),
        _ => format!(
            "{} tasks are too few: one is needed to learn from and one to hold out",
            tasks.len()
        ),
    }
}

impl Work<'_> {
    async fn phases(
        &self,
        plan: &NightPlan,
        models: impl FnOnce(&Path) -> Result<Arc<Models>, ModelError>,
        report: &mut NightReport,
    ) -> Result<(), NightError> {
        self.tidy(report);
        let sessions = self.harvest(plan, report)?;
        self.look_back(plan, report);
        let tasks = self.mine(plan, &sessions, report)?;
        if tasks.len() < MIN_TASKS {
            report.notes.push(too_few(&tasks, report));
            return Ok(());
        }
        let trainees = self.trainees(plan, &sessions, &tasks, report)?;
        if trainees.is_empty() {
            if report.refused.is_empty() {
                return Ok(());
            }
            return Err(NightError::NoDocument);
        }
        let models = models(&self.dir.join("calls.db"))?;
        report.models = [("optimizer", &models.optimizer), ("target", &models.target)]
            .map(|(role, model)| (role.to_owned(), model.id().to_owned()))
            .into();
        let training = Training {
            night: report.night,
            config: self.night.config,
            staging: StagingArea::open(&self.night.paths.staging()).map_err(StageError::from)?,
            watch: Arc::clone(self.watch),
            dir: self.dir.clone(),
            sessions: &sessions,
            homes: &plan.homes,
            models: &models,
        };
        let mut result = Ok(());
        for trainee in &trainees {
            match training.train(trainee, &trainees).await {
                Ok(line) => report.documents.push(line),
                // What is wrong with one document does not concern the others.
                Err(NightError::Stage(error)) if error.is_of_document() => {
                    report.refused.push(RefusedDocument {
                        name: trainee.document.name.clone(),
                        path: trainee.document.path.display().to_string(),
                        reason: format!("its result cannot be staged: {error}"),
                    });
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        if result.is_ok() {
            self.adopt(plan, &training.staging, report);
        }
        report.usage = models.meter.snapshot().by_stage();
        report.usd = Some(models.budget.spent().usd).filter(|usd| *usd > 0.0);
        result
    }

    /// Closes and deletes what is too old. A night goes on without.
    fn tidy(&self, report: &mut NightReport) {
        let paths = self.night.paths;
        let keep_days = self.night.config.staging.keep_days;
        let tidied = StagingArea::open(&paths.staging())
            .and_then(|area| housekeeping::tidy(&area, &paths.state, keep_days, Timestamp::now()));
        match tidied {
            Ok(notes) => report.notes.extend(notes),
            Err(error) => report
                .notes
                .push(format!("old proposals were not put in order: {error}")),
        }
    }

    /// Looks how sessions go since documents were adopted. A night goes on without.
    fn look_back(&self, plan: &NightPlan, report: &mut NightReport) {
        let ledger = match Ledger::open(&self.night.paths.state) {
            Ok(ledger) => ledger,
            Err(error) => {
                report
                    .notes
                    .push(format!("adoptions cannot be read: {error}"));
                return;
            }
        };
        match impact::impacts(self.store, &ledger, &plan.homes) {
            Ok(impacts) => {
                let regressions = impacts.into_iter().filter(Impact::is_clear_regression);
                report.regressions = regressions.collect();
            }
            Err(error) => report.notes.push(format!(
                "how sessions go since adoptions is not known: {error}"
            )),
        }
    }

    /// Adopts what configuration lets a night adopt without a person.
    fn adopt(&self, plan: &NightPlan, area: &StagingArea, report: &mut NightReport) {
        let policy = &self.night.config.staging.auto_adopt;
        if !policy.enabled {
            return;
        }
        let adopter = AutoAdopter {
            policy,
            area,
            state: &self.night.paths.state,
            roots: &plan.adoptable,
        };
        let mut adopted = 0;
        for line in &mut report.documents {
            let Some(proposal) = &line.proposal else {
                continue;
            };
            match adopter.adopt(proposal, adopted, Timestamp::now()) {
                Ok(adoption) => {
                    adopted += 1;
                    self.watch.watch(&NightEvent::Adopted {
                        adoption: &adoption.id,
                        proposal,
                        path: &line.path,
                    });
                    line.adoption = Some(adoption.id);
                }
                Err(held) => line.held = Some(held.to_string()),
            }
        }
    }

    /// Reads the logs, keeps the sessions, and gives those within scope.
    fn harvest(
        &self,
        plan: &NightPlan,
        report: &mut NightReport,
    ) -> Result<Vec<Session>, NightError> {
        let gathered = plan.gatherer.gather(self.store)?;
        report.harvest = gathered.report;
        report.sessions = gathered.sessions.len();
        self.watch.watch(&NightEvent::Harvested {
            sessions: report.sessions,
            files: report.harvest.files_read,
            skipped: report.harvest.losses(),
        });
        Ok(gathered.sessions)
    }

    /// Mines and splits, or takes what a person gave, or what this night had before it was
    /// interrupted.
    fn mine(
        &self,
        plan: &NightPlan,
        sessions: &[Session],
        report: &mut NightReport,
    ) -> Result<Vec<Task>, NightError> {
        let path = self.dir.join("tasks.json");
        let tasks = if path.exists() {
            read_tasks(&path)?
        } else {
            let config = self.night.config;
            let tasks = match &plan.tasks {
                Some(given) => given.clone(),
                None => {
                    let mut mined = mine::mine(sessions, config);
                    split::assign(&mut mined, self.fractions()?, config.seed());
                    mined
                }
            };
            write_atomic_json(&path, &tasks)?;
            tasks
        };
        report.tasks = TaskCounts::of(&tasks);
        self.watch.watch(&NightEvent::Mined {
            train: report.tasks.train,
            validation: report.tasks.validation,
            test: report.tasks.test,
        });
        Ok(tasks)
    }

    fn fractions(&self) -> Result<Fractions, BadFractions> {
        let config = self.night.config;
        Fractions::new(config.val_fraction, config.test_fraction)
    }

    /// The documents that have tasks and can be written. The others are named in the report, before
    /// the night spends anything on them.
    fn trainees(
        &self,
        plan: &NightPlan,
        sessions: &[Session],
        tasks: &[Task],
        report: &mut NightReport,
    ) -> Result<Vec<Trainee>, NightError> {
        let assignment = plan.assign(sessions, tasks, self.fractions()?, self.night.config.seed());
        report.notes.extend(assignment.notes);
        let mut trainees = Vec::new();
        for Assigned { planned, tasks } in assignment.documents {
            match plan.open(&planned) {
                Ok(document) => trainees.push(Trainee {
                    document,
                    scope: planned.scope,
                    tasks,
                }),
                Err(reason) => report.refused.push(RefusedDocument {
                    name: planned.name,
                    path: planned.path.display().to_string(),
                    reason,
                }),
            }
        }
        Ok(trainees)
    }
}

fn read_tasks(path: &Path) -> Result<Vec<Task>, NightError> {
    serde_json::from_str(&read_text(path, MAX_TASKS_BYTES)?).map_err(|source| NightError::Tasks {
        path: path.to_owned(),
        source,
    })
}
