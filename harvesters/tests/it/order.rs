//! Logs are read on all cores. Nobody may notice but by the clock.

use std::path::Path;

use skillopt_harvesters::{Agent, HarvestOptions, Limits, Roots, harvest};

/// Conversations of all four agents; the prompt and the answer of each hold a secret.
fn write_logs(home: &Path, count: usize) -> Roots {
    let write = |path: &str, text: String| {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for number in 0..count {
        let prompt = format!("fix {number} with token a1b2c3d4-fake-{number:04}");
        let answer = "Done: DB_PASSWORD=hunter2-fake";
        let time = format!("2026-10-05T08:{:02}:{:02}Z", number / 60, number % 60);
        let later = format!("2026-10-05T09:{:02}:{:02}Z", number / 60, number % 60);
        write(
            &format!(
                "claude/projects/-home-dev-{}/s{number:04}.jsonl",
                number % 7
            ),
            format!(
                r#"{{"type":"user","message":{{"role":"user","content":"{prompt}"}},"uuid":"user-{number}","timestamp":"{time}","entrypoint":"cli","cwd":"/home/dev/x"}}
{{"type":"assistant","parentUuid":"user-{number}","message":{{"id":"msg_{number}","model":"m","content":[{{"type":"text","text":"{answer}"}}]}},"uuid":"assistant-{number}","timestamp":"{later}"}}
{{"type":"no-such-kind"}}
torn {{
"#
            ),
        );
        let id = format!("01a12f44-1be4-7292-a61b-921e516a{number:04}");
        write(
            &format!("codex/sessions/rollout-2026-10-12T08-39-15-{id}.jsonl"),
            format!(
                r#"{{"timestamp":"{time}","type":"session_meta","payload":{{"id":"{id}","cwd":"/home/dev/x","source":"cli","base_instructions":"long"}}}}
{{"timestamp":"{time}","type":"event_msg","payload":{{"type":"user_message","message":"{prompt}"}}}}
{{"timestamp":"{later}","type":"event_msg","payload":{{"type":"agent_message","message":"{answer}"}}}}
"#
            ),
        );
        write(
            &format!("pi/sessions/2026_p{number:04}.jsonl"),
            format!(
                r#"{{"type":"session","id":"p{number:04}","cwd":"/home/dev/x","timestamp":"{time}"}}
{{"type":"message","id":"1","timestamp":"{time}","message":{{"role":"user","content":"{prompt}"}}}}
{{"type":"message","id":"2","parentId":"1","timestamp":"{later}","message":{{"role":"assistant","content":[{{"type":"text","text":"{answer}"}}],"stopReason":"error","errorMessage":"{answer}"}}}}
"#
            ),
        );
        write(
            &format!("gemini/tmp/x/chats/session-g{number:04}.jsonl"),
            format!(
                r#"{{"sessionId":"g{number:04}","startTime":"{time}"}}
{{"id":"1","type":"user","timestamp":"{time}","content":"{prompt}"}}
{{"id":"2","type":"gemini","timestamp":"{later}","content":"{answer}"}}
"#
            ),
        );
    }
    Roots::none()
        .with(Agent::Claude, home.join("claude"))
        .with(Agent::Codex, home.join("codex"))
        .with(Agent::Pi, home.join("pi"))
        .with(Agent::Gemini, home.join("gemini"))
}

#[test]
fn any_number_of_cores_reads_the_same_in_the_same_order() {
    let home = tempfile::tempdir().unwrap();
    let roots = write_logs(home.path(), 60);
    let on = |cores: usize| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(cores)
            .build()
            .unwrap()
            .install(|| harvest(&roots, &HarvestOptions::default()))
    };
    let one = on(1);
    let four = on(4);
    assert_eq!(one.sessions.len(), 240);
    assert_eq!(one.sessions, four.sessions);
    assert_eq!(one.report, four.report);
    assert_eq!(one.files, four.files);
    assert_eq!(one.report.unknown_kinds["claude/no-such-kind"], 60);
    assert_eq!(one.report.skipped_lines.len(), 60);
}

#[test]
fn a_limit_takes_the_first_sessions_and_remembers_no_file_behind_them() {
    let home = tempfile::tempdir().unwrap();
    let roots = write_logs(home.path(), 20);
    let all = harvest(&roots, &HarvestOptions::default());
    let few = harvest(
        &roots,
        &HarvestOptions {
            limits: Limits {
                sessions: 5,
                ..Limits::default()
            },
            ..HarvestOptions::default()
        },
    );
    assert_eq!(few.sessions, all.sessions[..5]);
    assert_eq!(few.files.len(), 5);
    assert_eq!(few.report.files_read, 5);
}

#[test]
fn no_source_lets_a_secret_through() {
    let home = tempfile::tempdir().unwrap();
    let roots = write_logs(home.path(), 1);
    let found = harvest(&roots, &HarvestOptions::default());
    assert_eq!(found.sessions.len(), 4);
    for session in &found.sessions {
        let text = serde_json::to_string(session).unwrap();
        assert!(text.contains("[redacted:secret]"), "{text}");
        assert!(text.contains("[redacted:password]"), "{text}");
        assert!(
            !text.contains("hunter2") && !text.contains("a1b2c3d4"),
            "{text}"
        );
    }
}

#[test]
fn files_without_a_session_of_their_own_do_not_make_a_folder_look_changed() {
    let home = tempfile::tempdir().unwrap();
    let roots = write_logs(home.path(), 8);
    let parent = "01a12f44-1be4-7292-a61b-921e516a0001";
    let child = "01a12f44-1be4-7292-a61b-921e516a9999";
    for (path, text) in [
        (
            "claude/projects/-home-dev-1/agent-1.jsonl".to_owned(),
            r#"{"type":"user","sessionId":"s0001","isSidechain":true}"#.to_owned(),
        ),
        (
            format!("codex/sessions/rollout-2026-10-12T08-39-16-{child}.jsonl"),
            format!(
                r#"{{"type":"session_meta","payload":{{"id":"{child}","source":{{"subagent":{{"thread_spawn":{{"parent_thread_id":"{parent}"}}}}}}}}}}"#
            ),
        ),
        (
            format!("codex/archived_sessions/rollout-2026-10-12T08-39-15-{parent}.jsonl"),
            String::new(),
        ),
    ] {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text + "\n").unwrap();
    }
    let first = harvest(&roots, &HarvestOptions::default());
    let again = harvest(
        &roots,
        &HarvestOptions {
            known: first.files.clone(),
            ..HarvestOptions::default()
        },
    );
    assert_eq!(first.report.files_read, 32);
    assert_eq!(again.report.files_unchanged, 35);
    assert!(
        again.report.skipped.is_empty(),
        "{:?}",
        again.report.skipped
    );
    assert_eq!(again.files, first.files);
}
