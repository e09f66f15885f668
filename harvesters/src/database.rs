//! `SQLite` stores of agents.
//!
//! The agent may be writing at this moment, and even a read-only connection takes locks
//! and leaves files beside a database. So a database is copied, with its journal, and
//! the copy is read: nothing is locked, repaired or written where the agent works. A
//! copy during which the original changed is thrown away and made again.
//!
//! Rows become JSON objects by column name, so that a schema with a column more or less
//! is read with the same tolerance as a log.

use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use crate::harvest::Run;
use crate::report::{Report, SkipReason};
use crate::stamp::FileStamp;
use crate::tape::{Json, Scalar};
use crate::walk::Found;

/// A larger database is not copied (4 GiB).
const LARGEST: u64 = 4 << 30;
/// How often a database that changes while it is copied is copied again.
const MOST_TRIES: usize = 3;
/// Files beside a database that are part of its state.
const COMPANIONS: &[&str] = &["-wal", "-journal"];

/// A copy of a database, open.
pub(crate) struct Database {
    connection: Connection,
    /// A value of more bytes is read as null.
    cap: usize,
    /// Removed at the end.
    _copy: tempfile::TempDir,
}

/// A database and its journals, the database first; none if there is no such file.
pub(crate) fn files(path: &Path, report: &mut Report) -> Vec<Found> {
    let mut found = Vec::new();
    // As for folders: a root that is a link is followed, what is below is not.
    let folder = path.parent().unwrap_or(Path::new(""));
    let folder = fs_err::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let path = folder.join(path.file_name().unwrap_or_default());
    let Ok(metadata) = std::fs::symlink_metadata(&path) else {
        return found;
    };
    if metadata.is_symlink() {
        report.skip(&path, SkipReason::SymbolicLink, "");
    } else if metadata.is_file() {
        found.push(Found {
            stamp: FileStamp::of(&metadata),
            path: path.clone(),
        });
        for ending in COMPANIONS {
            let path = beside(&path, ending);
            if let Ok(metadata) = std::fs::symlink_metadata(&path)
                && metadata.is_file()
            {
                found.push(Found {
                    stamp: FileStamp::of(&metadata),
                    path,
                });
            }
        }
    } else {
        report.skip(&path, SkipReason::NotAFile, "");
    }
    found
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

impl Database {
    /// Opens the database at a path, unless there is none or nothing in it changed, and
    /// tells its file.
    pub(crate) fn changed(path: &Path, run: &mut Run<'_>) -> Option<(Database, Found)> {
        let files = files(path, &mut run.report);
        let file = files.first()?.clone();
        run.report.files_found += 1;
        if run.all_unchanged(files.iter()) {
            return None;
        }
        Some((Database::open(&files, run)?, file))
    }

    /// Opens a copy of a database; what goes wrong is noted. Its files are remembered as
    /// read.
    pub(crate) fn open(files: &[Found], run: &mut Run<'_>) -> Option<Database> {
        let path = &files.first()?.path;
        let largest = run.options.limits.file.min(LARGEST);
        if files.iter().any(|file| file.stamp.size > largest) {
            run.report.skip(path, SkipReason::TooLarge, "");
            return None;
        }
        let mut logs = Vec::new();
        logs.push(run.open(files.first()?)?);
        for companion in &files[1..] {
            logs.extend(run.open_aside(companion));
        }
        match copy(path, run.options.limits.line) {
            Ok(database) => {
                for log in logs {
                    run.close(log);
                }
                Some(database)
            }
            Err(reason) => {
                run.report.skip(path, SkipReason::Database, &reason);
                None
            }
        }
    }

    /// Whether there is such a table.
    pub(crate) fn has(&self, table: &str) -> bool {
        self.columns(table).is_ok_and(|columns| !columns.is_empty())
    }

    /// Rows of a table as objects: those whose column has a value, in an order as far as
    /// the table has its columns.
    pub(crate) fn rows(
        &self,
        table: &str,
        filter: Option<(&str, &str)>,
        order: &[&str],
        mut each: impl FnMut(Json),
    ) -> Result<(), String> {
        let columns = self.columns(table).map_err(|error| error.to_string())?;
        if columns.is_empty() {
            return Err(format!("it has no table `{table}`"));
        }
        let has = |name: &str| columns.iter().any(|column| column == name);
        if let Some((name, _)) = filter
            && !has(name)
        {
            return Err(format!("its table `{table}` has no column `{name}`"));
        }
        let wanted: Vec<String> = columns
            .iter()
            .map(|column| {
                let column = quoted(column);
                format!(
                    "CASE WHEN octet_length({column}) <= {} THEN {column} END",
                    self.cap
                )
            })
            .collect();
        let mut query = format!("SELECT {} FROM {}", wanted.join(", "), quoted(table));
        if let Some((name, _)) = filter {
            query += &format!(" WHERE {} = ?1", quoted(name));
        }
        let order: Vec<String> = order
            .iter()
            .filter(|name| has(name))
            .map(|name| quoted(name))
            .collect();
        if !order.is_empty() {
            query += &format!(" ORDER BY {}", order.join(", "));
        }
        self.query(&query, filter.map(|(_, value)| value), &columns, &mut each)
            .map_err(|error| error.to_string())
    }

    fn query(
        &self,
        query: &str,
        value: Option<&str>,
        columns: &[String],
        each: &mut dyn FnMut(Json),
    ) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(query)?;
        let mut rows = match value {
            Some(value) => statement.query([value])?,
            None => statement.query([])?,
        };
        while let Some(row) = rows.next()? {
            let mut members = Vec::new();
            for (index, column) in columns.iter().enumerate() {
                members.push((column.as_str(), scalar(row.get_ref(index)?)));
            }
            each(Json::object(members));
        }
        Ok(())
    }

    /// Column names; none when there is no such table. A view is none: it could do
    /// anything.
    fn columns(&self, table: &str) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.connection.prepare(
            "SELECT info.name FROM sqlite_master AS master, pragma_table_info(master.name) AS info \
             WHERE master.type = 'table' AND master.name = ?1",
        )?;
        let names = statement.query_map([table], |row| row.get(0))?;
        names.collect()
    }
}

/// A name as an identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A value of a row.
fn scalar(value: ValueRef<'_>) -> Scalar<'_> {
    match value {
        ValueRef::Null => Scalar::Null,
        ValueRef::Integer(number) => Scalar::Int(number),
        ValueRef::Real(number) => Scalar::Float(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Scalar::Text(String::from_utf8_lossy(bytes))
        }
    }
}

/// Copies a database and its journals and opens the copy; says why not.
fn copy(path: &Path, cap: usize) -> Result<Database, String> {
    let failed = |error: std::io::Error| format!("it could not be copied: {}", error.kind());
    for _ in 0..MOST_TRIES {
        let folder = tempfile::tempdir().map_err(failed)?;
        let target = folder.path().join("copy.db");
        let before = state(path);
        std::fs::copy(path, &target).map_err(failed)?;
        for ending in COMPANIONS {
            let companion = beside(path, ending);
            if std::fs::symlink_metadata(&companion).is_ok_and(|metadata| metadata.is_file()) {
                std::fs::copy(&companion, beside(&target, ending)).map_err(failed)?;
            }
        }
        if state(path) == before {
            return open(&target, folder, cap).map_err(|error| error.to_string());
        }
    }
    Err("it is being written to without a pause".to_owned())
}

/// What would show that a database was written to.
fn state(path: &Path) -> Vec<Option<FileStamp>> {
    std::iter::once(path.to_owned())
        .chain(COMPANIONS.iter().map(|ending| beside(path, ending)))
        .map(|path| {
            let metadata = std::fs::symlink_metadata(path).ok()?;
            Some(FileStamp::of(&metadata))
        })
        .collect()
}

fn open(path: &Path, folder: tempfile::TempDir, cap: usize) -> rusqlite::Result<Database> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // The schema comes from outside: it may not call functions or write to itself.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    Ok(Database {
        connection,
        cap,
        _copy: folder,
    })
}
