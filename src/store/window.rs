//! The sessions of a span of time, one after another.

use jiff::{SignedDuration, Timestamp};
use skillopt_harvesters::Session;

use super::{Store, StoreError};

/// Times are compared as text, which is out by less than this where only one has a fraction.
const SLACK: SignedDuration = SignedDuration::from_secs(1);

impl Store {
    /// Hands every stored session to `each` that ended at `from` or later and began before `to`. One
    /// is in memory at a time. A session that this version cannot read is passed over.
    ///
    /// # Errors
    /// [`StoreError::Query`].
    pub fn each_session_within(
        &self,
        from: Timestamp,
        to: Timestamp,
        each: &mut dyn FnMut(&Session),
    ) -> Result<(), StoreError> {
        let from = from.checked_sub(SLACK).unwrap_or(from).to_string();
        let to = to.checked_add(SLACK).unwrap_or(to).to_string();
        self.query("reading sessions of a span of time", |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT agent, id, session FROM sessions
                 WHERE ended >= ?1 AND (started IS NULL OR started < ?2)",
            )?;
            let mut rows = statement.query([&from, &to])?;
            while let Some(row) = rows.next()? {
                let text = row.get_ref(2)?.as_str()?;
                match serde_json::from_str::<Session>(text) {
                    Ok(session) => each(&session),
                    Err(error) => {
                        let (agent, id): (String, String) = (row.get(0)?, row.get(1)?);
                        tracing::warn!("session {id} of {agent} is passed over: {error}");
                    }
                }
            }
            Ok(())
        })
    }
}
