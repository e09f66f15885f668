//! The sessions that were read, and what is remembered of the files that they were read from.
//!
//! A file's sessions and its stamp belong together: sessions are kept first and stamps last, so a
//! harvest that is cut off reads again what it had not finished.

use std::collections::HashSet;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::{Store, StoreError};

/// A session as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The agent's name.
    pub agent: String,
    /// The session's id.
    pub id: String,
    /// The first of its log files.
    pub file: String,
    /// Its working directory.
    pub project: Option<String>,
    /// Directories that it went to later.
    pub folders: Vec<String>,
    /// When something happened in it last, to the microsecond.
    pub active: Option<Timestamp>,
    /// `success`, `fail`, `mixed` or `unknown`.
    pub outcome: String,
    /// The beginning of what was asked first.
    pub first_prompt: String,
}

/// What is remembered of the log files of an agent.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Paths and stamps.
    pub files: Vec<(String, String)>,
    /// Sessions are there that were read with other settings, and nothing is remembered.
    pub outdated: bool,
}

/// What a harvest found out about the log files of an agent.
pub struct HarvestedFiles<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// What they were read with.
    pub fingerprint: &'a str,
    /// Those that were opened.
    pub read: &'a [String],
    /// The sessions found in them, by id and file.
    pub found: &'a HashSet<(String, String)>,
    /// All that were seen, with their stamps.
    pub seen: &'a [(String, String)],
}

impl Store {
    /// What is remembered of the files of an agent that were read with these settings.
    ///
    /// # Errors
    /// [`StoreError::Query`].
    pub fn remembered(&self, agent: &str, fingerprint: &str) -> Result<Remembered, StoreError> {
        self.query("reading what is known of log files", |connection| {
            let with: Option<String> = connection
                .query_row(
                    "SELECT fingerprint FROM harvests WHERE agent = ?1",
                    [agent],
                    |row| row.get(0),
                )
                .optional()?;
            if with.as_deref() != Some(fingerprint) {
                return Ok(Remembered {
                    files: Vec::new(),
                    outdated: with.is_some(),
                });
            }
            let files = connection
                .prepare_cached("SELECT path, stamp FROM log_files WHERE agent = ?1")?
                .query_map([agent], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            Ok(Remembered {
                files,
                outdated: false,
            })
        })
    }

    /// Keeps sessions with their texts, replacing earlier readings of the same ones.
    ///
    /// # Errors
    /// [`StoreError::Query`]; then none of them is kept.
    pub fn keep_sessions(&self, sessions: &[(SessionRow, String)]) -> Result<(), StoreError> {
        self.query("storing sessions", |connection| {
            let transaction = connection.unchecked_transaction()?;
            for (row, text) in sessions {
                keep(&transaction, row, text)?;
            }
            transaction.commit()
        })
    }

    /// Forgets the sessions of files that no longer have them, and remembers the files. The
    /// sessions of files that are gone stay, unless they were found in another file.
    ///
    /// # Errors
    /// [`StoreError::Query`]; then nothing of it is done, and the files count as not read.
    pub fn settle_files(&self, harvested: &HarvestedFiles<'_>) -> Result<(), StoreError> {
        self.query("storing what is known of log files", |connection| {
            let transaction = connection.unchecked_transaction()?;
            replace_files(&transaction, harvested)?;
            forget_replaced(&transaction, harvested)?;
            transaction.commit()
        })
    }

    /// The sessions of these agents, the newest first; those of which nobody knows the time last.
    ///
    /// # Errors
    /// [`StoreError::Query`].
    pub fn listed(&self, agents: &[&str]) -> Result<Vec<SessionRow>, StoreError> {
        let wanted: HashSet<&str> = agents.iter().copied().collect();
        self.query("listing sessions", |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT agent, id, file, project, folders, active, outcome, first_prompt
                 FROM logged_sessions ORDER BY active DESC NULLS LAST, id, file",
            )?;
            let mut rows = statement.query([])?;
            let mut listed = Vec::new();
            while let Some(row) = rows.next()? {
                if wanted.contains(row.get_ref(0)?.as_str()?) {
                    listed.push(read_row(row)?);
                }
            }
            Ok(listed)
        })
    }

    /// The whole of a listed session, if it is still there.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn session<T: serde::de::DeserializeOwned>(
        &self,
        row: &SessionRow,
    ) -> Result<Option<T>, StoreError> {
        let doing = "reading a session";
        let text: Option<String> = self.query(doing, |connection| {
            connection
                .prepare_cached(
                    "SELECT session FROM session_texts JOIN logged_sessions USING (key)
                     WHERE agent = ?1 AND id = ?2 AND file = ?3",
                )?
                .query_row(params![row.agent, row.id, row.file], |row| row.get(0))
                .optional()
        })?;
        text.map(|text| self.decode(doing, &text)).transpose()
    }
}

fn keep(connection: &Connection, row: &SessionRow, text: &str) -> rusqlite::Result<()> {
    let key: i64 = connection
        .prepare_cached(
            "INSERT INTO logged_sessions
               (agent, id, file, project, folders, active, outcome, first_prompt)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (agent, id, file) DO UPDATE SET project = ?4, folders = ?5, active = ?6,
               outcome = ?7, first_prompt = ?8
             RETURNING key",
        )?
        .query_row(
            params![
                row.agent,
                row.id,
                row.file,
                row.project,
                row.folders.join("\n"),
                row.active.map(Timestamp::as_microsecond),
                row.outcome,
                row.first_prompt,
            ],
            |row| row.get(0),
        )?;
    connection
        .prepare_cached("INSERT OR REPLACE INTO session_texts (key, session) VALUES (?1, ?2)")?
        .execute(params![key, text])?;
    Ok(())
}

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<SessionRow> {
    let folders: String = row.get(4)?;
    let active: Option<i64> = row.get(5)?;
    Ok(SessionRow {
        agent: row.get(0)?,
        id: row.get(1)?,
        file: row.get(2)?,
        project: row.get(3)?,
        folders: folders.lines().map(str::to_owned).collect(),
        active: active.and_then(|time| Timestamp::from_microsecond(time).ok()),
        outcome: row.get(6)?,
        first_prompt: row.get(7)?,
    })
}

/// Writes down which files there are now. Only what changed is written: mostly nothing.
fn replace_files(connection: &Connection, harvested: &HarvestedFiles<'_>) -> rusqlite::Result<()> {
    let agent = harvested.agent;
    let known: HashSet<(String, String)> = connection
        .prepare_cached("SELECT path, stamp FROM log_files WHERE agent = ?1")?
        .query_map([agent], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let seen: HashSet<&str> = harvested
        .seen
        .iter()
        .map(|(path, _)| path.as_str())
        .collect();
    for (path, _) in known
        .iter()
        .filter(|(path, _)| !seen.contains(path.as_str()))
    {
        connection
            .prepare_cached("DELETE FROM log_files WHERE agent = ?1 AND path = ?2")?
            .execute([agent, path])?;
    }
    for file in harvested.seen.iter().filter(|file| !known.contains(file)) {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO log_files (agent, path, stamp) VALUES (?1, ?2, ?3)",
            )?
            .execute([agent, &file.0, &file.1])?;
    }
    connection
        .prepare_cached("INSERT OR REPLACE INTO harvests (agent, fingerprint) VALUES (?1, ?2)")?
        .execute([agent, harvested.fingerprint])?;
    Ok(())
}

/// Deletes sessions that their file no longer tells, and those of a file that was moved.
fn forget_replaced(
    connection: &Connection,
    harvested: &HarvestedFiles<'_>,
) -> rusqlite::Result<()> {
    let agent = harvested.agent;
    for file in harvested.read {
        let ids: Vec<String> = connection
            .prepare_cached("SELECT id FROM logged_sessions WHERE agent = ?1 AND file = ?2")?
            .query_map([agent, file], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for id in ids {
            if !harvested.found.contains(&(id.clone(), file.clone())) {
                connection
                    .prepare_cached(
                        "DELETE FROM logged_sessions WHERE agent = ?1 AND id = ?2 AND file = ?3",
                    )?
                    .execute([agent, &id, file])?;
            }
        }
    }
    for (id, file) in harvested.found {
        connection
            .prepare_cached(
                "DELETE FROM logged_sessions WHERE agent = ?1 AND id = ?2 AND file <> ?3
                 AND file NOT IN (SELECT path FROM log_files WHERE agent = ?1)",
            )?
            .execute([agent, id, file])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, file: &str, second: i64) -> SessionRow {
        SessionRow {
            agent: "claude".to_owned(),
            id: id.to_owned(),
            file: file.to_owned(),
            project: Some("/home/dev/x".to_owned()),
            folders: vec!["/home/dev/y".to_owned()],
            active: Timestamp::from_second(second).ok(),
            outcome: "unknown".to_owned(),
            first_prompt: "fix it".to_owned(),
        }
    }

    fn store(folder: &tempfile::TempDir) -> Store {
        Store::open(&folder.path().join("test.db")).unwrap()
    }

    /// Settles a harvest that opened `read` and found `found` there.
    fn settle(store: &Store, read: &[&str], found: &[(&str, &str)], seen: &[&str]) {
        let owned = |texts: &[&str]| -> Vec<String> {
            texts.iter().map(|text| (*text).to_owned()).collect()
        };
        let found = found
            .iter()
            .map(|(id, file)| ((*id).to_owned(), (*file).to_owned()));
        let seen = owned(seen).into_iter().map(|path| (path, "{}".to_owned()));
        store
            .settle_files(&HarvestedFiles {
                agent: "claude",
                fingerprint: "one",
                read: &owned(read),
                found: &found.collect(),
                seen: &seen.collect::<Vec<_>>(),
            })
            .unwrap();
    }

    fn ids(store: &Store) -> Vec<String> {
        let rows = store.listed(&["claude"]).unwrap();
        rows.into_iter()
            .map(|row| format!("{} {}", row.id, row.file))
            .collect()
    }

    #[test]
    fn sessions_are_listed_newest_first_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let rows = [row("a", "1", 10), row("b", "2", 30), row("c", "3", 20)];
        let texts = rows.clone().map(|row| {
            let text = format!(r#""{}""#, row.id);
            (row, text)
        });
        store.keep_sessions(&texts).unwrap();
        assert_eq!(ids(&store), ["b 2", "c 3", "a 1"]);
        assert_eq!(store.listed(&["claude"]).unwrap()[2], rows[0]);
        assert!(store.listed(&["codex"]).unwrap().is_empty());
        let text: Option<String> = store.session(&rows[1]).unwrap();
        assert_eq!(text.as_deref(), Some("b"));
    }

    #[test]
    fn a_file_that_was_read_again_loses_sessions_that_it_no_longer_tells() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let kept = [("a", "1"), ("b", "1"), ("c", "2")];
        let rows = kept.map(|(id, file)| (row(id, file, 1), "1".to_owned()));
        store.keep_sessions(&rows).unwrap();
        settle(&store, &["1", "2"], &kept, &["1", "2"]);
        settle(&store, &["1"], &[("b", "1")], &["1", "2"]);
        assert_eq!(ids(&store), ["b 1", "c 2"]);
    }

    #[test]
    fn sessions_of_vanished_files_stay_and_those_of_moved_ones_are_not_doubled() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let kept = [("a", "old"), ("b", "gone")];
        let rows = kept.map(|(id, file)| (row(id, file, 1), "1".to_owned()));
        store.keep_sessions(&rows).unwrap();
        settle(&store, &["old", "gone"], &kept, &["old", "gone"]);
        store
            .keep_sessions(&[(row("a", "new", 1), "1".to_owned())])
            .unwrap();
        settle(&store, &["new"], &[("a", "new")], &["new"]);
        assert_eq!(ids(&store), ["a new", "b gone"]);
        let remembered = store.remembered("claude", "one").unwrap();
        assert_eq!(remembered.files, [("new".to_owned(), "{}".to_owned())]);
    }

    #[test]
    fn files_read_with_other_settings_are_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let new = Remembered::default();
        assert_eq!(store.remembered("claude", "one").unwrap(), new);
        settle(&store, &["1"], &[], &["1"]);
        let other = store.remembered("claude", "two").unwrap();
        assert!(other.outdated && other.files.is_empty());
        assert_eq!(store.remembered("claude", "one").unwrap().files.len(), 1);
    }

    #[test]
    fn a_full_disk_is_an_error_that_loses_nothing_kept_before() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let small = [(row("a", "1", 1), "1".to_owned())];
        store.keep_sessions(&small).unwrap();
        let pages: i64 = store
            .connection
            .query_row("PRAGMA page_count", [], |row| row.get(0))
            .unwrap();
        store
            .connection
            .pragma_update(None, "max_page_count", pages + 2)
            .unwrap();
        let large = [(row("b", "2", 2), "x".repeat(1 << 20))];
        let error = store.keep_sessions(&large).unwrap_err().to_string();
        assert!(
            error.contains("storing sessions") && error.contains("full"),
            "{error}"
        );
        assert_eq!(ids(&store), ["a 1"]);
        store.keep_sessions(&small).unwrap();
    }

    /// The bound is 50 ms; run alone, in a release build:
    /// `cargo test --release --lib store::sessions -- --ignored --nocapture`.
    #[test]
    #[ignore = "measures"]
    fn listing_20_000_sessions_is_quick() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let text = format!(r#""{}""#, "x".repeat(20_000));
        for thousand in 0..20 {
            let rows: Vec<_> = (0..1000)
                .map(|number| {
                    let id = format!("01a12f44-1be4-7292-a61b-{:012}", thousand * 1000 + number);
                    let file = format!("/home/dev/.claude/projects/x/{id}.jsonl");
                    (row(&id, &file, number * 7919 % 1000), text.clone())
                })
                .collect();
            store.keep_sessions(&rows).unwrap();
        }
        drop(store);
        let mut times: Vec<_> = (0..9)
            .map(|_| {
                let begin = std::time::Instant::now();
                let store = Store::open(&folder.path().join("test.db")).unwrap();
                assert_eq!(store.listed(&["claude"]).unwrap().len(), 20_000);
                begin.elapsed()
            })
            .collect();
        times.sort();
        println!("opened and listed 20,000 sessions: median {:?}", times[4]);
        assert!(times[4].as_millis() < 50, "{times:?}");
    }
}
