//! Schema and migrations. A migration that has shipped is never edited.

use std::sync::LazyLock;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

static MIGRATIONS: LazyLock<Migrations<'static>> = LazyLock::new(|| {
    Migrations::new(vec![
        M::up(include_str!("migrations/01_first.sql")),
        M::up(include_str!("migrations/03_notices.sql")),
    ])
});

/// Sets a connection up and migrates its file.
pub(super) fn prepare(
    connection: &mut Connection,
    busy_timeout: Duration,
) -> Result<(), rusqlite_migration::Error> {
    connection.busy_timeout(busy_timeout)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    MIGRATIONS.to_latest(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_valid() {
        MIGRATIONS.validate().unwrap();
    }
}
