//! The SQLite database of this machine: what was read, which nights ran, what happened in them.
//!
//! One file, write-ahead logged, readable by its owner alone. Proposals, decisions and adoptions
//! are not here: they are files of the staging crate, which must be safe without a database.

mod notices;
mod schema;
mod sessions;
mod window;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use sessions::{HarvestedFiles, Remembered, SessionRow};

/// How long a statement waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the database could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened or brought to this program's schema.
    #[error("cannot open the database {path}: {message}; move it away to start with an empty one")]
    Open {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A statement failed.
    #[error("the database {path} failed while {doing}: {source}")]
    Query {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// A stored value is not what this program writes.
    #[error("the database {path} holds something unreadable while {doing}: {source}")]
    Decode {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// How a night stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NightStatus {
    /// Begun and not ended; also what a killed night leaves.
    Running,
    /// Went through, whatever it found.
    Done,
    /// Stopped by an error.
    Failed,
    /// Stopped by a signal; the same command goes on.
    Interrupted,
}

/// One night as the database has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NightRow {
    /// Counted from 1.
    pub id: i64,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// How it stands.
    pub status: NightStatus,
    /// Its report, once there is one.
    pub report: Option<Value>,
}

/// The database.
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens or creates the database at `path` and brings its schema up to date.
    ///
    /// # Errors
    /// [`StoreError::Open`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |message: String| StoreError::Open {
            path: path.to_owned(),
            message,
        };
        if let Some(parent) = path.parent() {
            skillopt_files::create_private_dir(parent).map_err(|e| failed(e.to_string()))?;
        }
        let mut connection = Connection::open(path).map_err(|e| failed(e.to_string()))?;
        schema::prepare(&mut connection, BUSY_TIMEOUT).map_err(|e| failed(e.to_string()))?;
        make_private(path).map_err(|e| failed(e.to_string()))?;
        Ok(Self {
            path: path.to_owned(),
            connection,
        })
    }

    fn query<T>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        run(&self.connection).map_err(|source| StoreError::Query {
            path: self.path.clone(),
            doing,
            source,
        })
    }

    fn decode<T: serde::de::DeserializeOwned>(
        &self,
        doing: &'static str,
        text: &str,
    ) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|source| StoreError::Decode {
            path: self.path.clone(),
            doing,
            source,
        })
    }

    /// Begins a night and gives its number.
    ///
    /// # Errors
    /// [`StoreError::Query`].
    pub fn begin_night(&self, started: Timestamp) -> Result<i64, StoreError> {
        self.query("beginning a night", |connection| {
            connection.execute(
                "INSERT INTO nights (started, status) VALUES (?1, 'running')",
                [started.to_string()],
            )?;
            Ok(connection.last_insert_rowid())
        })
    }

    /// Ends a night.
    ///
    /// # Errors
    /// [`StoreError::Query`].
    pub fn end_night(
        &self,
        id: i64,
        ended: Timestamp,
        status: NightStatus,
        report: Option<&Value>,
    ) -> Result<(), StoreError> {
        self.query("ending a night", |connection| {
            connection.execute(
                "UPDATE nights SET ended = ?2, status = ?3, report = ?4 WHERE id = ?1",
                params![
                    id,
                    ended.to_string(),
                    status.name(),
                    report.map(Value::to_string)
                ],
            )?;
            Ok(())
        })
    }

    /// The nights, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn nights(&self, limit: usize) -> Result<Vec<NightRow>, StoreError> {
        let doing = "listing nights";
        let rows = self.query(doing, |connection| {
            connection
                .prepare("SELECT id, started, ended, status, report FROM nights ORDER BY id DESC LIMIT ?1")?
                .query_map([i64::try_from(limit).unwrap_or(i64::MAX)], RawNight::read)?
                .collect::<rusqlite::Result<Vec<_>>>()
        })?;
        rows.into_iter()
            .map(|row| self.night_row(doing, row))
            .collect()
    }

    /// The newest night that began and never ended, which a killed run leaves.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn unfinished_night(&self) -> Result<Option<NightRow>, StoreError> {
        let doing = "looking for an unfinished night";
        let row = self.query(doing, |connection| {
            connection
                .query_row(
                    "SELECT id, started, ended, status, report FROM nights
                     WHERE id = (SELECT MAX(id) FROM nights) AND status IN ('running', 'interrupted')",
                    [],
                    RawNight::read,
                )
                .optional()
        })?;
        row.map(|row| self.night_row(doing, row)).transpose()
    }

    /// Appends one event of a night.
    ///
    /// # Errors
    /// [`StoreError::Query`].
    pub fn append_event(&self, night: i64, event: &Value) -> Result<(), StoreError> {
        self.query("storing an event", |connection| {
            connection
                .prepare_cached("INSERT INTO events (night, at, event) VALUES (?1, ?2, ?3)")?
                .execute(params![
                    night,
                    Timestamp::now().to_string(),
                    event.to_string()
                ])?;
            Ok(())
        })
    }

    /// The events of a night, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn events(&self, night: i64) -> Result<Vec<(String, Value)>, StoreError> {
        let doing = "listing events";
        let rows = self.query(doing, |connection| {
            connection
                .prepare("SELECT at, event FROM events WHERE night = ?1 ORDER BY seq")?
                .query_map([night], |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
                })?
                .collect::<rusqlite::Result<Vec<_>>>()
        })?;
        rows.into_iter()
            .map(|(at, event)| Ok((at, self.decode(doing, &event)?)))
            .collect()
    }

    fn night_row(&self, doing: &'static str, raw: RawNight) -> Result<NightRow, StoreError> {
        Ok(NightRow {
            id: raw.id,
            started: raw.started.parse().unwrap_or(Timestamp::UNIX_EPOCH),
            ended: raw.ended.and_then(|t| t.parse().ok()),
            status: NightStatus::parse(&raw.status),
            report: raw
                .report
                .map(|text| self.decode(doing, &text))
                .transpose()?,
        })
    }
}

impl NightStatus {
    /// The name in the database and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    fn parse(name: &str) -> Self {
        match name {
            "done" => Self::Done,
            "failed" => Self::Failed,
            "interrupted" => Self::Interrupted,
            _ => Self::Running,
        }
    }
}

struct RawNight {
    id: i64,
    started: String,
    ended: Option<String>,
    status: String,
    report: Option<String>,
}

impl RawNight {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            started: row.get(1)?,
            ended: row.get(2)?,
            status: row.get(3)?,
            report: row.get(4)?,
        })
    }
}

#[cfg(unix)]
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn make_private(_path: &Path) -> std::io::Result<()> {
    Ok(())
}
