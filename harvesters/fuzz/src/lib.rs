//! What the fuzz targets do with their input.
//!
//! An input is one or more log files, parted by lines of [`NEXT_FILE`]; each target lays
//! them out as its agent does, on a file system in memory where there is one, and reads
//! them. Whatever they hold, reading ends, panics nowhere, and gives sessions that can be
//! written down and read back.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use skillopt_harvesters::{Agent, HarvestOptions, Limits, Redactor, Roots, Session, harvest};

/// The line between two files of an input.
pub const NEXT_FILE: &str = "\n--- next file ---\n";

/// Most files that an input stands for.
const MOST_FILES: usize = 8;

/// A folder in memory, or a temporary one.
fn home() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let home = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    home.expect("a folder for the logs")
}

thread_local! {
    static OPTIONS: RefCell<HarvestOptions> = RefCell::new(HarvestOptions {
        limits: Limits { line: 1 << 20, ..Limits::default() },
        include_machine: true,
        ..HarvestOptions::default()
    });
}

/// Reads an input as logs of that agent.
pub fn read(agent: Agent, input: &[u8]) {
    let home = home();
    for (number, file) in files(input).into_iter().enumerate() {
        lay_out(agent, home.path(), number, file);
    }
    let roots = Roots::none().with(agent, home.path());
    let found = OPTIONS.with_borrow(|options| harvest(&roots, options));
    for session in &found.sessions {
        let text = serde_json::to_string(session).expect("a session can be written down");
        let again: Session = serde_json::from_str(&text).expect("and read back");
        assert_eq!(&again, session);
        assert!(session.agent == agent);
        for call in session.calls() {
            assert!(session.locate(call.place).is_some() || session.files.is_empty());
        }
    }
}

/// The files of an input.
fn files(input: &[u8]) -> Vec<&[u8]> {
    let mark = NEXT_FILE.as_bytes();
    let mut files = Vec::new();
    let mut rest = input;
    while files.len() + 1 < MOST_FILES {
        let Some(at) = rest.windows(mark.len()).position(|window| window == mark) else {
            break;
        };
        files.push(&rest[..at]);
        rest = &rest[at + mark.len()..];
    }
    files.push(rest);
    files
}

/// Puts one file where the agent would.
fn lay_out(agent: Agent, home: &Path, number: usize, file: &[u8]) {
    let is_document = file.first() == Some(&b'{') && !file.contains(&b'\n');
    let path = match agent {
        Agent::Claude => format!("projects/-home-dev-x/session-{number}.jsonl"),
        Agent::Codex => {
            let packed = if file.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) { ".zst" } else { "" };
            format!(
                "sessions/rollout-2026-10-05T08-39-15-01a12f44-1be4-7292-a61b-921e516a{number:04}.jsonl{packed}"
            )
        }
        Agent::Pi => format!("sessions/x/2026_s{number}.jsonl"),
        Agent::Gemini if is_document => format!("tmp/x/chats/session-{number}.json"),
        Agent::Gemini => format!("tmp/x/chats/session-{number}.jsonl"),
        Agent::CopilotCli if file.starts_with(b"SQLite") => "session-store.db".to_owned(),
        Agent::CopilotCli if file.starts_with(b"name: ") => "session-state/s0/workspace.yaml".to_owned(),
        Agent::CopilotCli => format!("session-state/s{number}/events.jsonl"),
        Agent::CopilotChat if is_document => {
            format!("workspaceStorage/a/chatSessions/s{number}.json")
        }
        Agent::CopilotChat => format!("workspaceStorage/a/chatSessions/s{number}.jsonl"),
        Agent::OpenCode if file.starts_with(b"SQLite") => "opencode.db".to_owned(),
        Agent::OpenCode => return opencode(home, number, file),
        Agent::Cursor if file.starts_with(b"user:") => {
            format!("projects/x/agent-transcripts/s{number}.txt")
        }
        Agent::Cursor => format!("projects/x/agent-transcripts/s{number}/s{number}.jsonl"),
        Agent::Devin if file.starts_with(b"SQLite") => "sessions.db".to_owned(),
        Agent::Devin if is_document => format!("transcripts/t{number}.json"),
        Agent::Devin => return devin(home, file),
    };
    write(home, &path, file);
}

fn write(home: &Path, path: &str, content: &[u8]) {
    let path: PathBuf = home.join(path);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
    std::fs::write(path, content).expect("a file");
}

/// Lines of JSON as the messages and parts of a session, in the tree of files or, for every
/// other file, in the database.
fn opencode(home: &Path, number: usize, file: &[u8]) {
    let text = String::from_utf8_lossy(file);
    let session = format!("ses_{number}");
    if number % 2 == 0 {
        let head = format!(r#"{{"id":"{session}","directory":"/home/dev/x","time":{{"created":1790000000000,"updated":1790000900000}}}}"#);
        write(home, &format!("storage/session/p/{session}.json"), head.as_bytes());
        for (line, content) in text.lines().enumerate() {
            let message = format!("msg_{}", line / 2);
            let path = match line % 2 {
                0 => format!("storage/message/{session}/{message}.json"),
                _ => format!("storage/part/{message}/prt_{line}.json"),
            };
            write(home, &path, content.as_bytes());
        }
        return;
    }
    let rows = |database: &rusqlite::Connection| -> rusqlite::Result<()> {
        database.execute_batch(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;
             CREATE TABLE IF NOT EXISTS session (id, parent_id, directory, time_created, time_updated, agent, metadata, revert);
             CREATE TABLE IF NOT EXISTS message (id, session_id, time_created, data);
             CREATE TABLE IF NOT EXISTS part (id, message_id, session_id, time_created, data);",
        )?;
        database.execute(
            "INSERT INTO session VALUES (?1, NULL, '/home/dev/x', 1790000000000, 1790000900000, 'build', ?2, NULL)",
            (&session, text.lines().next()),
        )?;
        for (line, content) in text.lines().enumerate() {
            let message = format!("msg_{}", line / 2);
            match line % 2 {
                0 => database.execute(
                    "INSERT INTO message VALUES (?1, ?2, ?3, ?4)",
                    (&message, &session, line as i64, content),
                )?,
                _ => database.execute(
                    "INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?5)",
                    (format!("prt_{line}"), &message, &session, line as i64, content),
                )?,
            };
        }
        Ok(())
    };
    rusqlite::Connection::open(home.join("opencode.db"))
        .and_then(|database| rows(&database))
        .expect("a database");
}

/// Lines of JSON as the nodes of a session.
fn devin(home: &Path, file: &[u8]) {
    let text = String::from_utf8_lossy(file);
    let rows = |database: &rusqlite::Connection| -> rusqlite::Result<()> {
        database.execute_batch(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;
             CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, working_directory, title, model, created_at, last_activity_at, main_chain_id, hidden, metadata);
             CREATE TABLE IF NOT EXISTS message_nodes (row_id INTEGER PRIMARY KEY AUTOINCREMENT, session_id, node_id, parent_node_id, chat_message, created_at);",
        )?;
        let nodes = text.lines().count() as i64;
        database.execute(
            "INSERT OR REPLACE INTO sessions VALUES ('s', '/home/dev/x', 't', 'm', 1790000000, 1790000900, ?1, 0, ?2)",
            (nodes, text.lines().next()),
        )?;
        for (line, content) in text.lines().enumerate() {
            // Mostly a chain; a few nodes name one that comes later, or themselves.
            let parent = match line % 11 {
                7 => line as i64 + 2,
                _ => line as i64,
            };
            database.execute(
                "INSERT INTO message_nodes (session_id, node_id, parent_node_id, chat_message, created_at) VALUES ('s', ?1, ?2, ?3, 1790000000)",
                (line as i64 + 1, parent, content),
            )?;
        }
        Ok(())
    };
    rusqlite::Connection::open(home.join("sessions.db"))
        .and_then(|database| rows(&database))
        .expect("a database");
}

/// Takes the secrets out of a text: doing it again changes nothing, and twice the text does
/// not take much more than twice the time (the time limit of the run sees to that).
pub fn redact(input: &[u8]) {
    thread_local! {
        static REDACTOR: Redactor = Redactor::new();
    }
    let text = String::from_utf8_lossy(input);
    REDACTOR.with(|redactor| {
        let once = redactor.redact(&text).into_owned();
        let twice = redactor.redact(&once);
        assert_eq!(twice, once, "redacting again changed the text");
        let long = text.repeat(16);
        let _ = redactor.redact(&long[..long.floor_char_boundary(256 * 1024)]);
    });
}
