//! The sessions of a span of time, one after another.

use jiff::Timestamp;
use skillopt_harvesters::Session;

use super::{Store, StoreError};

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
        self.query("reading sessions of a span of time", |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT agent, id, session FROM logged_sessions JOIN session_texts USING (key)
                 WHERE active >= ?1",
            )?;
            let mut rows = statement.query([from.as_microsecond()])?;
            while let Some(row) = rows.next()? {
                let text = row.get_ref(2)?.as_str()?;
                match serde_json::from_str::<Session>(text) {
                    Ok(session) if session.started.is_none_or(|started| started < to) => {
                        each(&session);
                    }
                    Ok(_) => {}
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
