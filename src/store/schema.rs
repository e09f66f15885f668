//! Schema and migrations. A migration that has shipped is never edited.

use std::sync::LazyLock;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

static MIGRATIONS: LazyLock<Migrations<'static>> = LazyLock::new(|| {
    Migrations::new(vec![
        M::up(include_str!("migrations/01_first.sql")),
        M::up(include_str!("migrations/02_session_lists.sql")),
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

    #[test]
    fn sessions_of_the_first_schema_are_kept() {
        let mut connection = Connection::open_in_memory().unwrap();
        MIGRATIONS.to_version(&mut connection, 1).unwrap();
        let session = r#"{"files":["/l/a.jsonl"],"turns":[{"prompts":[{"text":"fix it"}]}]}"#;
        connection
            .execute(
                "INSERT INTO sessions VALUES ('claude', 'a', '/p', NULL, '2026-01-02T03:04:05Z', 'fail', ?1)",
                [session],
            )
            .unwrap();
        MIGRATIONS.to_latest(&mut connection).unwrap();
        let row: (String, String, i64, String, String) = connection
            .query_row(
                "SELECT file, project, active, first_prompt, session
                 FROM logged_sessions JOIN session_texts USING (key)",
                [],
                |row| {
                    Ok((
                        row.get(0)?,
                        row.get(1)?,
                        row.get(2)?,
                        row.get(3)?,
                        row.get(4)?,
                    ))
                },
            )
            .unwrap();
        let expected = (
            "/l/a.jsonl".to_owned(),
            "/p".to_owned(),
            1_767_323_045_000_000,
            "fix it".to_owned(),
            session.to_owned(),
        );
        assert_eq!(row, expected);
    }
}
