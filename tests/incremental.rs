//! Reading logs night after night: unchanged files are not opened, and nobody can tell from the
//! sessions.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use skillopt_harvesters::redact::UserRule;
use skillopt_harvesters::{Agent, ProjectScope, Redactor, Roots, Session};
use skillopt_sleep::night::gather::{Gathered, Gatherer};
use skillopt_sleep::store::Store;

use crate::machine::{Machine, data};

/// Where each agent's logs lie on the machine.
const LOGS: &[(&str, Agent)] = &[
    ("claude", Agent::Claude),
    ("codex", Agent::Codex),
    ("pi/agent", Agent::Pi),
    ("gemini", Agent::Gemini),
    ("copilot-cli", Agent::CopilotCli),
    ("copilot-chat/User", Agent::CopilotChat),
    ("opencode", Agent::OpenCode),
    ("cursor", Agent::Cursor),
    ("devin/cli", Agent::Devin),
];

/// A machine on which every agent was used, its databases included.
fn used() -> Machine {
    let machine = Machine::new();
    machine.copy(&data("sessions"), "logs");
    for (sql, database) in [
        ("opencode/opencode.sql", "opencode/opencode.db"),
        (
            "copilot-cli/session-store.sql",
            "copilot-cli/session-store.db",
        ),
        ("devin/cli/sessions.sql", "devin/cli/sessions.db"),
    ] {
        let rows = fs::read_to_string(data("sessions").join(sql)).unwrap();
        let path = machine.path("logs").join(database);
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.execute_batch(&rows).unwrap();
    }
    machine
}

fn gatherer(machine: &Machine) -> Gatherer {
    let roots = LOGS.iter().fold(Roots::none(), |roots, (path, agent)| {
        roots.with(*agent, machine.path("logs").join(path))
    });
    Gatherer {
        roots,
        sources: Vec::new(),
        projects: ProjectScope::All,
        since: None,
        max_sessions: 0,
        program_markers: Vec::new(),
        redactor: Redactor::new(),
    }
}

/// What a night with that database sees.
fn with_memory(machine: &Machine, gatherer: &Gatherer) -> Gathered {
    let store = Store::open(&machine.path("state/test.db")).unwrap();
    gatherer.gather(&store).unwrap()
}

/// What a night without any memory sees.
fn without_memory(gatherer: &Gatherer) -> Gathered {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("new.db")).unwrap();
    gatherer.gather(&store).unwrap()
}

fn assert_same(one: &[Session], other: &[Session], after: &str) {
    let names = |sessions: &[Session]| -> Vec<String> {
        let names = sessions
            .iter()
            .map(|session| format!("{} {:?}", session.id, session.files));
        names.collect()
    };
    assert_eq!(names(one), names(other), "after {after}");
    for (one, other) in one.iter().zip(other) {
        assert_eq!(one, other, "after {after}");
    }
}

/// The largest log of an agent with this in its path.
fn log(machine: &Machine, below: &str, part: &str) -> PathBuf {
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => files(&path, found),
                false => found.push(path),
            }
        }
    }
    let mut found = Vec::new();
    files(&machine.path("logs").join(below), &mut found);
    found.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    found.retain(|path| path.display().to_string().contains(part));
    found.sort_by_key(|path| (fs::metadata(path).unwrap().len(), path.clone()));
    found.pop().unwrap()
}

fn append(path: &Path, text: &str) {
    let mut file = File::options().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

const PROMPT: &str = r#"{"type":"user","message":{"role":"user","content":"and now rename it everywhere"},"uuid":"late-prompt","timestamp":"2026-11-20T08:00:00Z"}
{"type":"assistant","parentUuid":"late-prompt","message":{"id":"msg_late","role":"assistant","model":"m","content":[{"type":"text","text":"Renamed."}]},"uuid":"late-answer","timestamp":"2026-11-20T08:10:00Z"}
"#;

#[test]
fn a_night_sees_the_same_sessions_with_and_without_memory() {
    let machine = used();
    let gatherer = gatherer(&machine);
    let first = with_memory(&machine, &gatherer);
    assert!(first.sessions.len() > 30, "{}", first.sessions.len());
    assert_same(
        &first.sessions,
        &without_memory(&gatherer).sessions,
        "the first night",
    );

    let again = with_memory(&machine, &gatherer);
    assert_same(&again.sessions, &first.sessions, "a night without news");
    assert_eq!(again.report.files_read, 0);
    assert!(again.report.files_unchanged > 40, "{:?}", again.report);
    assert_eq!(again.report.by_agent, first.report.by_agent);

    let largest = log(&machine, "claude/projects", "");
    let grow = || append(&largest, PROMPT);
    let tear = || {
        let path = log(&machine, "codex/sessions", "");
        let size = fs::metadata(&path).unwrap().len();
        let file = File::options().write(true).open(path).unwrap();
        file.set_len(size * 2 / 3).unwrap();
    };
    let rewrite = || {
        let path = log(&machine, "pi", "");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("a", "e", 1)).unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(std::time::SystemTime::now())
            .unwrap();
    };
    let replace = || {
        let path = log(&machine, "gemini", "");
        let other = path.with_extension("new");
        fs::copy(&path, &other).unwrap();
        append(
            &other,
            "{\"id\":\"x\",\"type\":\"user\",\"content\":\"one more thing\"}\n",
        );
        fs::rename(&other, &path).unwrap();
    };
    let archive = || {
        let path = log(&machine, "codex/sessions", "");
        let folder = machine.path("logs/codex/archived_sessions");
        fs::create_dir_all(&folder).unwrap();
        fs::rename(&path, folder.join(path.file_name().unwrap())).unwrap();
    };
    let help = || {
        let folder = largest.with_extension("").join("subagents");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("agent-late.jsonl"), PROMPT).unwrap();
    };
    let trust = || {
        let path = log(&machine, "cursor", "agent-transcripts");
        let project = path.ancestors().find(|folder| {
            folder
                .parent()
                .and_then(Path::file_name)
                .is_some_and(|name| name == "projects")
        });
        let path = project.unwrap().join(".workspace-trusted");
        fs::write(path, r#"{"workspacePath":"/home/dev/elsewhere"}"#).unwrap();
    };
    let store = || {
        let path = machine.path("logs/opencode/opencode.db");
        let connection = rusqlite::Connection::open(path).unwrap();
        let changed = connection
            .execute(
                "UPDATE session SET title = 'another title', time_updated = time_updated + 1000",
                [],
            )
            .unwrap();
        assert!(changed > 0);
    };
    let steps: &[(&str, &dyn Fn())] = &[
        ("a file has grown", &grow),
        ("a file was torn off", &tear),
        ("a file was rewritten", &rewrite),
        ("a file was replaced", &replace),
        ("a file was moved", &archive),
        ("a sub-agent was started", &help),
        ("a folder was trusted", &trust),
        ("a database was written to", &store),
    ];
    for (step, change) in steps {
        change();
        let remembered = with_memory(&machine, &gatherer);
        assert_same(
            &remembered.sessions,
            &without_memory(&gatherer).sessions,
            step,
        );
        assert!(remembered.report.files_unchanged > 20, "after {step}");
        assert!(remembered.report.files_read > 0, "after {step}");
    }
}

#[test]
fn sessions_of_vanished_logs_stay_and_lose_what_new_rules_take_out() {
    let machine = used();
    let mut gatherer = gatherer(&machine);
    let before = with_memory(&machine, &gatherer);
    let gone = log(&machine, "claude/projects", "");
    fs::remove_file(&gone).unwrap();
    let after = with_memory(&machine, &gatherer);
    assert_same(&after.sessions, &before.sessions, "a log was deleted");

    let id = gone.file_stem().unwrap().to_string_lossy().into_owned();
    let of = |gathered: &Gathered| -> Session {
        let mut sessions = gathered.sessions.iter();
        sessions.find(|session| session.id == id).unwrap().clone()
    };
    let prompt = of(&after).prompts().next().unwrap().text.clone();
    let word = prompt
        .split_whitespace()
        .max_by_key(|word| word.len())
        .unwrap();
    let rule = UserRule {
        name: "word".to_owned(),
        pattern: regex::escape(word),
    };
    gatherer.redactor = Redactor::with_rules(&[rule]).unwrap();
    let redacted = with_memory(&machine, &gatherer);
    assert!(
        redacted.report.files_read > 20,
        "read again with the new rule"
    );
    let text = of(&redacted).prompts().next().unwrap().text.clone();
    assert_eq!(text, prompt.replace(word, "[redacted:word]"));
}

#[test]
fn scope_and_time_choose_among_what_is_kept() {
    let machine = used();
    let mut gatherer = gatherer(&machine);
    let all = with_memory(&machine, &gatherer).sessions;
    let project = all
        .iter()
        .find_map(|session| session.project.clone())
        .unwrap();
    let middle = all[all.len() / 3].last_active();
    gatherer.projects = ProjectScope::Under(vec![project.as_str().into()]);
    gatherer.since = middle;
    let chosen = with_memory(&machine, &gatherer);
    assert_same(&chosen.sessions, &gatherer.read().sessions, "a choice");
    assert!(!chosen.sessions.is_empty() && chosen.sessions.len() < all.len());
    gatherer.max_sessions = 1;
    let newest = with_memory(&machine, &gatherer);
    assert_same(&newest.sessions, &chosen.sessions[..1], "a limit");
}
