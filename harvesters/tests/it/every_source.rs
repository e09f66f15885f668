//! What holds for every registered source: a small log in its format is read, secrets in
//! it are taken out, and nothing that a log may hold stops the reading.

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::Value;
use skillopt_harvesters::report::SkipReason;
use skillopt_harvesters::session::Verdict;
use skillopt_harvesters::{Agent, HarvestOptions, registry};

use crate::fixtures::{FIXTURES, Fixture, Home, MARK, SECRET, expected, fixture};

#[test]
fn every_source_has_a_fixture_that_is_read_without_its_secrets() {
    for source in registry() {
        let agent = source.info().agent;
        let fixture = fixture(agent);
        let home = Home::new();
        home.plant(fixture);
        let found = home.harvest(agent);
        assert_eq!(
            found.sessions.len(),
            expected(fixture),
            "{agent}: {:?}",
            found.report
        );
        for session in &found.sessions {
            let prompts: Vec<&str> = session
                .prompts()
                .map(|prompt| prompt.text.as_str())
                .collect();
            assert!(
                prompts[0].starts_with("fix it with [redacted"),
                "{prompts:?}"
            );
            assert_eq!(prompts[1..], ["perfect, thanks"], "{agent} {}", session.id);
            let finals: Vec<&str> = session
                .finals()
                .map(|answer| answer.text.as_str())
                .collect();
            assert_eq!(finals, ["Done."], "{agent} {}", session.id);
            assert_eq!(session.outcome.verdict, Verdict::Success, "{agent}");
            if agent != Agent::Gemini {
                assert_eq!(session.project.as_deref(), Some("/home/dev/x"), "{agent}");
            }
            for (_, run) in session.commands() {
                let verification = run.verification.as_ref().unwrap();
                let untold = agent == Agent::Cursor;
                assert_eq!(verification.passed, (!untold).then_some(true), "{agent}");
            }
            let whole = serde_json::to_string(session).unwrap();
            assert!(!whole.contains(SECRET), "{agent}: {whole}");
            assert!(!whole.contains("sub-agent's"), "{agent}: {whole}");
        }
        let report = serde_json::to_string(&found.report).unwrap();
        assert!(!report.contains(SECRET), "{agent}: {report}");
        assert_eq!(found.report.flaw_counts.len(), 0, "{:?}", found.report);
    }
}

/// Logs in which the id of a call, quotes and a colour in the middle of a word, and the name
/// of an unknown record hide secrets.
const HIDDEN: [Fixture; 2] = [
    Fixture {
        agent: Agent::Claude,
        files: &[(
            "projects/-home-dev-x/s1.jsonl",
            r#"{"type":"user","message":{"role":"user","content":"fix it"},"uuid":"u1","timestamp":"2026-10-05T08:39:15.1Z","cwd":"/home/dev/x","sessionId":"s1"}
{"parentUuid":"u1","type":"assistant","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t1-SECRET","name":"Bash","input":{"command":"pytest > 'SEC''RET'"}}]},"uuid":"a1","timestamp":"2026-10-05T08:39:16.1Z","cwd":"/home/dev/x","sessionId":"s1"}
{"parentUuid":"a1","type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1-SECRET","is_error":true,"content":"Exit code 1\nFAILED SEC\u001b[1mRET"}]},"uuid":"u2","timestamp":"2026-10-05T08:39:19.1Z","cwd":"/home/dev/x","sessionId":"s1"}
{"type":"SECRET"}
"#,
        )],
        database: None,
    },
    Fixture {
        agent: Agent::Codex,
        files: &[(
            "sessions/rollout-2026-10-12T08-39-15-01a12f44-1be4-7292-a61b-921e516a6928.jsonl",
            r#"{"timestamp":"2026-10-12T08:39:15.352Z","type":"session_meta","payload":{"id":"01a12f44-1be4-7292-a61b-921e516a6928","cwd":"/home/dev/x","source":"cli"}}
{"timestamp":"2026-10-12T08:39:15.352Z","type":"SECRET","payload":{}}
{"timestamp":"2026-10-12T08:39:16.352Z","type":"event_msg","payload":{"type":"user_message","message":"fix it"}}
{"timestamp":"2026-10-12T08:39:17.352Z","type":"response_item","payload":{"type":"function_call","name":"shell_command","call_id":"t1-SECRET","arguments":"{\"command\":\"pytest > 'SEC''RET'\"}"}}
{"timestamp":"2026-10-12T08:39:18.352Z","type":"response_item","payload":{"type":"function_call_output","call_id":"t1-SECRET","output":"Exit code: 1\nFAILED SEC\u001b[1mRET"}}
"#,
        )],
        database: None,
    },
];

#[test]
fn secrets_that_reading_itself_would_uncover_are_taken_out_too() {
    let (one, other) = SECRET.split_at(SECRET.len() / 2);
    for fixture in &HIDDEN {
        let agent = fixture.agent;
        let home = Home::new();
        for (path, text) in fixture.files {
            let text = text.replace(MARK, SECRET);
            let text = text.replace("SEC''RET", &format!("{one}''{other}"));
            let text = text.replace(r"SEC\u001b[1mRET", &format!(r"{one}\u001b[1m{other}"));
            home.write(&home.root(agent).join(path), text.as_bytes());
        }
        let found = home.harvest(agent);
        let call = found.sessions[0].calls().next().unwrap();
        assert!(call.id.starts_with("t1-[redacted"), "{agent}: {call:?}");
        assert!(call.shell_edits[0].starts_with("/home/dev/x/[redacted"));
        let run = call.command.as_ref().unwrap();
        assert_eq!(run.exit_code, Some(1), "{agent}: its result was found");
        let verified = run.verification.as_ref().unwrap();
        assert!(verified.failing[0].starts_with("FAILED [redacted"));
        assert_eq!(found.report.unknown_kinds.len(), 1, "{agent}");
        let whole = serde_json::to_string(&(found.sessions, found.report)).unwrap();
        assert!(!whole.contains(SECRET), "{agent}: {whole}");
    }
}

#[test]
fn what_did_not_change_is_not_read_again() {
    for source in registry() {
        let agent = source.info().agent;
        let home = Home::new();
        home.plant(fixture(agent));
        let known = home.harvest(agent).files;
        let options = HarvestOptions {
            known: known.clone(),
            ..HarvestOptions::default()
        };
        let again = home.harvest_with(agent, &options);
        assert_eq!(
            (again.sessions.len(), again.report.files_read),
            (0, 0),
            "{agent}: {:?}",
            again.report
        );
        assert_eq!(again.files, known, "{agent}");
    }
}

#[test]
fn a_database_that_is_none_is_a_skip_with_a_reason() {
    for fixture in FIXTURES {
        let Some((path, _)) = fixture.database else {
            continue;
        };
        let good = {
            let home = Home::new();
            home.plant(fixture);
            std::fs::read(home.root(fixture.agent).join(path)).unwrap()
        };
        let mut torn = good.clone();
        torn.truncate(good.len() / 2 + 100);
        let mut scratched = good.clone();
        for byte in &mut scratched[100..4000] {
            *byte ^= 0x5a;
        }
        for bytes in [b"no database".to_vec(), torn, scratched] {
            let home = Home::new();
            home.plant(fixture);
            home.write(&home.root(fixture.agent).join(path), &bytes);
            let found = home.harvest(fixture.agent);
            let skips = found.report.skips(SkipReason::Database);
            assert!(skips > 0, "{}: {:?}", fixture.agent, found.report);
            assert!(
                found
                    .report
                    .skipped
                    .iter()
                    .any(|skip| skip.reason == SkipReason::Database && !skip.detail.is_empty())
            );
            assert!(!found.sessions.is_empty(), "the files beside it");
        }
        let home = Home::new();
        home.plant(fixture);
        let database = Connection::open(home.root(fixture.agent).join(path)).unwrap();
        database
            .execute_batch("ALTER TABLE sessions RENAME TO renamed")
            .or_else(|_| database.execute_batch("ALTER TABLE session RENAME TO renamed"))
            .unwrap();
        let found = home.harvest(fixture.agent);
        let skipped = &found.report.skipped;
        assert!(
            skipped
                .iter()
                .any(|skip| skip.detail.starts_with("it has no table `session")),
            "{skipped:?}"
        );
    }
}

#[test]
fn a_database_in_use_is_read_and_left_as_it_is() {
    for fixture in FIXTURES {
        let Some((path, _)) = fixture.database else {
            continue;
        };
        let home = Home::new();
        home.plant(fixture);
        let root = home.root(fixture.agent);
        let writer = Connection::open(root.join(path)).unwrap();
        // What is only in the write-ahead log counts too, even under an exclusive lock.
        writer
            .execute_batch(
                "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;
                 CREATE TABLE later (x); INSERT INTO later VALUES (1);
                 PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; INSERT INTO later VALUES (2);",
            )
            .unwrap();
        let names = || -> Vec<(String, u64)> {
            let mut names: Vec<(String, u64)> = std::fs::read_dir(&root)
                .unwrap()
                .map(|entry| {
                    let entry = entry.unwrap();
                    let name = entry.file_name().to_string_lossy().into_owned();
                    (name, entry.metadata().unwrap().len())
                })
                .collect();
            names.sort();
            names
        };
        let before = names();
        let found = home.harvest(fixture.agent);
        assert_eq!(
            found.sessions.len(),
            expected(fixture),
            "{:?}",
            found.report
        );
        assert_eq!(names(), before, "{}", fixture.agent);
    }
}

/// Any value in place of another.
fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        Just(serde_json::json!([])),
        Just(serde_json::json!([[{"text": 5}], null, "x"])),
        Just(serde_json::json!({"type": {}, "text": [], "id": 7})),
    ]
}

/// Replaces the member of that number, counted through the whole value.
fn replace(value: &mut Value, left: &mut usize, by: &Value) {
    if *left == 0 {
        *value = by.clone();
    }
    *left = left.wrapping_sub(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, left, by)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| replace(member, left, by)),
        _ => {}
    }
}

fn any_fixture() -> impl Strategy<Value = &'static Fixture> {
    (0..FIXTURES.len()).prop_map(|index| &FIXTURES[index])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn any_bytes_in_any_file_are_survived(
        fixture in any_fixture(),
        which in any::<prop::sample::Index>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let home = Home::new();
        home.plant(fixture);
        let root = home.root(fixture.agent);
        let (path, _) = fixture.files[which.index(fixture.files.len())];
        home.write(&root.join(path), &bytes);
        if let Some((path, _)) = fixture.database {
            home.write(&root.join(path), &bytes);
        }
        home.harvest(fixture.agent);
    }

    #[test]
    fn changed_bytes_are_survived(
        fixture in any_fixture(),
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..24),
    ) {
        let home = Home::new();
        home.plant(fixture);
        let root = home.root(fixture.agent);
        let mut paths: Vec<&str> = fixture.files.iter().map(|(path, _)| *path).collect();
        paths.extend(fixture.database.map(|(path, _)| path));
        let path = root.join(paths[which.index(paths.len())]);
        let mut bytes = std::fs::read(&path).unwrap();
        for (position, byte) in changes {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        home.write(&path, &bytes);
        home.harvest(fixture.agent);
    }

    #[test]
    fn values_of_any_type_are_survived(
        fixture in any_fixture(),
        which in any::<prop::sample::Index>(),
        position in 0_usize..120,
        by in any_value(),
    ) {
        let home = Home::new();
        home.plant(fixture);
        let (path, text) = fixture.files[which.index(fixture.files.len())];
        let text = text.replace(MARK, SECRET);
        let mut left = position;
        let lines: Vec<String> = text
            .lines()
            .map(|line| match serde_json::from_str::<Value>(line) {
                Ok(mut value) => {
                    replace(&mut value, &mut left, &by);
                    value.to_string()
                }
                Err(_) => line.to_owned(),
            })
            .collect();
        home.write(&home.root(fixture.agent).join(path), lines.join("\n").as_bytes());
        let found = home.harvest(fixture.agent);
        let whole = serde_json::to_string(&found.sessions).unwrap();
        prop_assert!(!whole.contains(SECRET));
    }
}
