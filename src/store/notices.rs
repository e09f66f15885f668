//! Which notices the person has taken note of.

use std::collections::BTreeSet;

use jiff::Timestamp;
use rusqlite::params;

use super::{Store, StoreError};

impl Store {
    /// The names of the notices that were taken note of.
    ///
    /// # Errors
    /// [`StoreError::Query`].
    pub fn seen_notices(&self) -> Result<BTreeSet<String>, StoreError> {
        self.query("listing notices", |connection| {
            connection
                .prepare("SELECT notice FROM seen_notices")?
                .query_map([], |row| row.get(0))?
                .collect()
        })
    }

    /// Notes that a notice was taken note of.
    ///
    /// # Errors
    /// [`StoreError::Query`].
    pub fn see_notice(&self, notice: &str, at: Timestamp) -> Result<(), StoreError> {
        self.query("marking a notice as seen", |connection| {
            connection.execute(
                "INSERT OR IGNORE INTO seen_notices (notice, at) VALUES (?1, ?2)",
                params![notice, at.to_string()],
            )?;
            Ok(())
        })
    }
}
