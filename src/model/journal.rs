//! Finished replies on disk, so that a run that is killed and resumed pays for none twice.
//!
//! A [`Journal`] is one SQLite file in the run's directory. A usable reply is committed before it
//! is handed on, under a key made of everything that shaped it: model, parameters, messages and
//! sample. The same request again, in this process or a later one, is answered from the file.
//! Equal requests that run at once become one call.
//!
//! The same file serves as a cache that several runs share. What it answers then was paid for by
//! another run, so its usage counts as [`Usage::cached_calls`] and costs nothing.
//!
//! The file is in WAL mode with `synchronous = NORMAL`: a commit survives the death of the process
//! at any instant; a power cut may lose the last replies, never the file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use rusqlite::{Connection, OptionalExtension, params};
use rusqlite_migration::{M, Migrations};

use super::{CallError, ChatModel, ChatReply, ChatRequest, Role, Usage};

/// Never edited once shipped; changes are added behind.
const SCHEMA: &[M<'_>] = &[
    M::up(
        "CREATE TABLE reply (
        key BLOB PRIMARY KEY,
        role TEXT NOT NULL,
        stage TEXT NOT NULL,
        model TEXT NOT NULL,
        sample TEXT NOT NULL,
        text TEXT NOT NULL,
        finish_reason TEXT,
        calls INTEGER NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        estimated_calls INTEGER NOT NULL
    ) WITHOUT ROWID;",
    ),
    M::up("ALTER TABLE reply ADD COLUMN cached_calls INTEGER NOT NULL DEFAULT 0;"),
];

/// A journal that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the journal of model replies {path} cannot be {doing}: {reason}", path = .path.display())]
pub struct JournalError {
    /// The file.
    pub path: PathBuf,
    /// `opened` or `read`.
    pub doing: &'static str,
    /// What SQLite said, and what to do about it.
    pub reason: String,
}

/// The finished replies of one run.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    connection: Mutex<Connection>,
    /// One lock for each key that a call is running for.
    running: Mutex<HashMap<blake3::Hash, Arc<tokio::sync::Mutex<()>>>>,
    answered: AtomicU64,
}

impl Journal {
    /// Opens the journal at `path`, or makes it.
    ///
    /// # Errors
    /// [`JournalError`] when the file is not a journal, is damaged, was written by a newer
    /// version, or cannot be written.
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        let error = |reason: String| JournalError {
            path: path.to_owned(),
            doing: "opened",
            reason,
        };
        let mut connection = Connection::open(path).map_err(|cause| error(explain(&cause)))?;
        (|| {
            connection.busy_timeout(Duration::from_secs(10))?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "NORMAL")
        })()
        .map_err(|cause| error(explain(&cause)))?;
        Migrations::from_slice(SCHEMA)
            .to_latest(&mut connection)
            .map_err(|cause| match cause {
                rusqlite_migration::Error::RusqliteError { err, .. } => error(explain(&err)),
                rusqlite_migration::Error::MigrationDefinition(_) => error(
                    "it was written by a newer version; use that version, or another run directory"
                        .to_owned(),
                ),
                other => error(other.to_string()),
            })?;
        Ok(Journal {
            path: path.to_owned(),
            connection: Mutex::new(connection),
            running: Mutex::default(),
            answered: AtomicU64::new(0),
        })
    }

    /// How many calls were answered from the file since it was opened.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// What the recorded replies of one role cost when they were made.
    ///
    /// # Errors
    /// [`JournalError`] when the file cannot be read.
    pub fn role_usage(&self, role: Role) -> Result<Usage, JournalError> {
        self.sum("WHERE role = ?1", &[&role.to_string()])
    }

    /// What all recorded replies cost when they were made.
    ///
    /// # Errors
    /// [`JournalError`] when the file cannot be read.
    pub fn total_usage(&self) -> Result<Usage, JournalError> {
        self.sum("", &[])
    }

    fn sum(&self, filter: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Usage, JournalError> {
        let query = format!(
            "SELECT coalesce(sum(calls), 0), coalesce(sum(prompt_tokens), 0),
                coalesce(sum(completion_tokens), 0), coalesce(sum(estimated_calls), 0),
                coalesce(sum(cached_calls), 0)
             FROM reply {filter}"
        );
        self.lock()
            .query_row(&query, values, |row| usage(row, 0))
            .map_err(|cause| self.unreadable(&cause))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn unreadable(&self, cause: &rusqlite::Error) -> JournalError {
        JournalError {
            path: self.path.clone(),
            doing: "read",
            reason: explain(cause),
        }
    }

    fn find(&self, key: &blake3::Hash) -> Result<Option<ChatReply>, JournalError> {
        self.lock()
            .prepare_cached(
                "SELECT text, finish_reason, calls, prompt_tokens, completion_tokens,
                    estimated_calls, cached_calls
                 FROM reply WHERE key = ?1",
            )
            .and_then(|mut query| {
                query
                    .query_row([key.as_bytes()], |row| {
                        Ok(ChatReply {
                            text: row.get(0)?,
                            finish_reason: row.get(1)?,
                            usage: usage(row, 2)?,
                        })
                    })
                    .optional()
            })
            .map_err(|cause| self.unreadable(&cause))
    }

    fn record(
        &self,
        key: &blake3::Hash,
        role: Role,
        model: &str,
        request: &ChatRequest,
        reply: &ChatReply,
    ) -> Result<(), rusqlite::Error> {
        self.lock()
            .prepare_cached(
                "INSERT OR IGNORE INTO reply VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?
            .execute(params![
                key.as_bytes(),
                role.to_string(),
                request.stage,
                model,
                request.sample,
                reply.text,
                reply.finish_reason,
                stored(reply.usage.calls),
                stored(reply.usage.prompt_tokens),
                stored(reply.usage.completion_tokens),
                stored(reply.usage.estimated_calls),
                stored(reply.usage.cached_calls),
            ])?;
        Ok(())
    }

    fn turn(&self, key: blake3::Hash) -> Arc<tokio::sync::Mutex<()>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody waits for those that only the map holds.
        running.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(running.entry(key).or_default())
    }
}

fn usage(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Usage> {
    let count = |index: usize| {
        row.get::<_, i64>(first + index)
            .map(|count| u64::try_from(count).unwrap_or_default())
    };
    Ok(Usage {
        calls: count(0)?,
        prompt_tokens: count(1)?,
        completion_tokens: count(2)?,
        estimated_calls: count(3)?,
        cached_calls: count(4)?,
    })
}

/// SQLite's integers are signed.
fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn explain(cause: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode;
    match cause.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => format!(
            "{cause}; move the file away to start with an empty journal (calls that it held are \
             made and paid for again)"
        ),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
            format!("{cause}; check that its folder exists and can be written")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("{cause}; another process is using it, wait for it or stop it")
        }
        _ => cause.to_string(),
    }
}

/// Answers calls of one role from a [`Journal`] where it can, and records the others.
pub struct Journaled {
    inner: Arc<dyn ChatModel>,
    role: Role,
    journal: Arc<Journal>,
    /// Whether what the journal answers is of other runs.
    shared: bool,
}

impl Journaled {
    /// Keeps the replies of `inner` in `journal`.
    #[must_use]
    pub fn new(inner: Arc<dyn ChatModel>, role: Role, journal: Arc<Journal>) -> Journaled {
        Journaled {
            inner,
            role,
            journal,
            shared: false,
        }
    }

    /// Answers from `cache` what another run has asked, and keeps the replies of `inner` for others.
    #[must_use]
    pub fn shared(inner: Arc<dyn ChatModel>, role: Role, cache: Arc<Journal>) -> Journaled {
        Journaled {
            shared: true,
            ..Journaled::new(inner, role, cache)
        }
    }

    /// Every part is written with its length, so that no two requests share a key by shifting
    /// text from one part to the next.
    fn key(&self, request: &ChatRequest) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(b"reply 1");
        part(self.inner.id().as_bytes());
        part(self.inner.fingerprint().as_bytes());
        part(&request.max_tokens.to_le_bytes());
        part(request.sample.as_bytes());
        for message in &request.messages {
            part(&[message.role as u8]);
            part(message.content.as_bytes());
        }
        hasher.finalize()
    }
}

impl ChatModel for Journaled {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn fingerprint(&self) -> String {
        self.inner.fingerprint()
    }

    fn reply_bound(&self, request: &ChatRequest) -> u32 {
        self.inner.reply_bound(request)
    }

    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, CallError>> {
        Box::pin(async move {
            let key = self.key(request);
            let turn = self.journal.turn(key);
            let _turn = turn.lock().await;
            // Reads and writes take microseconds (no fsync per commit), so they are not worth a
            // thread of their own.
            match self.journal.find(&key) {
                Ok(Some(mut reply)) => {
                    self.journal.answered.fetch_add(1, Ordering::Relaxed);
                    if self.shared {
                        reply.usage = Usage {
                            cached_calls: 1,
                            ..Usage::default()
                        };
                    }
                    return Ok(reply);
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "calling the model instead"),
            }
            let reply = self.inner.chat(request).await?;
            if let Err(cause) =
                self.journal
                    .record(&key, self.role, self.inner.id(), request, &reply)
            {
                // The reply is paid for and usable; losing it now would be worse than paying for
                // it again after an interruption.
                tracing::error!(
                    path = %self.journal.path.display(),
                    "a reply could not be recorded: {}", explain(&cause)
                );
            }
            Ok(reply)
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;
    use crate::model::CallErrorKind;
    use crate::model::testing::{Listed, failure, reply, request};

    fn journaled(path: &Path, backend: &Arc<Listed>) -> Journaled {
        let journal = Arc::new(Journal::open(path).unwrap());
        Journaled::new(backend.clone(), Role::Target, journal)
    }

    #[tokio::test]
    async fn a_reply_survives_a_process_that_never_closes_the_file() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("calls.sqlite");
        let backend = Arc::new(Listed::new(vec![reply("first"), reply("second")]));
        let killed = journaled(&path, &backend);
        killed.chat(&request("x")).await.unwrap();
        // As after a kill: nothing is dropped, closed or checkpointed.
        std::mem::forget(killed);

        let resumed = journaled(&path, &backend);
        assert_eq!(resumed.chat(&request("x")).await.unwrap().text, "first");
        assert_eq!(resumed.journal.answered(), 1);
        assert_eq!(backend.calls(), 1);
        assert_eq!(resumed.journal.total_usage().unwrap().total_tokens(), 15);
        assert_eq!(
            resumed.journal.role_usage(Role::Optimizer).unwrap().calls,
            0
        );
    }

    #[tokio::test]
    async fn what_another_run_paid_for_costs_nothing() {
        let home = tempfile::tempdir().unwrap();
        let backend = Arc::new(Listed::new(vec![reply("a"), reply("b")]));
        let run = |name: &str| {
            let open = |name: &str| Arc::new(Journal::open(&home.path().join(name)).unwrap());
            let cached = Journaled::shared(backend.clone(), Role::Target, open("shared.db"));
            Journaled::new(Arc::new(cached), Role::Target, open(name))
        };
        let paid = run("one.db").chat(&request("x")).await.unwrap();
        assert_eq!((paid.usage.calls, paid.usage.cached_calls), (1, 0));
        let free = Usage {
            cached_calls: 1,
            ..Usage::default()
        };
        // The second time the run's own journal answers, and it knows what the reply cost.
        for _ in 0..2 {
            let second = run("two.db").chat(&request("x")).await.unwrap();
            assert_eq!((second.text.as_str(), second.usage), ("a", free));
        }
        assert_eq!(backend.calls(), 1);
        assert_eq!(run("two.db").journal.total_usage().unwrap(), free);
    }

    #[tokio::test]
    async fn another_sample_message_or_limit_is_another_draw() {
        let home = tempfile::tempdir().unwrap();
        let backend = Arc::new(Listed::new(vec![reply("a")]));
        let model = journaled(&home.path().join("calls.sqlite"), &backend);
        let first = request("x");
        let mut others = vec![first.clone(), first.clone(), first.clone(), first.clone()];
        others[1].sample = "step_0002".to_owned();
        others[2].max_tokens += 1;
        others[3].messages[1].content.push('!');
        for request in &others {
            model.chat(request).await.unwrap();
            model.chat(request).await.unwrap();
        }
        assert_eq!(backend.calls(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn equal_requests_at_once_are_one_call() {
        let home = tempfile::tempdir().unwrap();
        let backend = Arc::new(Listed::new(vec![reply("a")]).taking(Duration::from_secs(1)));
        let model = journaled(&home.path().join("calls.sqlite"), &backend);
        let request = request("x");
        let replies = join_all((0..5).map(|_| model.chat(&request))).await;
        assert!(replies.iter().all(Result::is_ok));
        assert_eq!(backend.calls(), 1);
    }

    #[tokio::test]
    async fn failures_are_not_remembered() {
        let home = tempfile::tempdir().unwrap();
        let backend = Arc::new(Listed::new(vec![failure(CallErrorKind::Empty), reply("a")]));
        let model = journaled(&home.path().join("calls.sqlite"), &backend);
        model.chat(&request("x")).await.unwrap_err();
        model.chat(&request("x")).await.unwrap();
    }

    #[test]
    fn a_file_that_is_no_journal_is_an_error_with_the_remedy() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("calls.sqlite");
        fs_err::write(
            &path,
            "this is not a database, but long enough to look like one at first sight ........",
        )
        .unwrap();
        let message = Journal::open(&path).unwrap_err().to_string();
        assert!(message.contains("calls.sqlite"), "{message}");
        assert!(message.contains("move the file away"), "{message}");
        let message = Journal::open(&home.path().join("no/such/folder.sqlite"))
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("check that its folder exists"),
            "{message}"
        );
    }

    #[test]
    fn a_file_of_a_newer_version_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("calls.sqlite");
        drop(Journal::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        drop(connection);
        let message = Journal::open(&path).unwrap_err().to_string();
        assert!(message.contains("newer version"), "{message}");
    }

    #[test]
    fn the_schema_is_valid() {
        Migrations::from_slice(SCHEMA).validate().unwrap();
    }
}
