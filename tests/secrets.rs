//! No secret of any rule gets into anything that the program writes or prints.

use std::fs;
use std::path::Path;

use serde_json::json;
use skillopt_harvesters::redact::built_in;

use crate::machine::Machine;

/// A rule's name, a text with a secret, and the secret.
struct Example {
    rule: &'static str,
    text: &'static str,
    secret: String,
}

/// One example of every rule.
fn examples() -> Vec<Example> {
    built_in()
        .map(|rule| {
            let pattern = regex::bytes::RegexBuilder::new(rule.pattern)
                .unicode(false)
                .build()
                .unwrap();
            let captures = pattern.captures(rule.example.as_bytes()).unwrap();
            let value = captures.name("v").or_else(|| captures.get(0)).unwrap();
            let secret = String::from_utf8_lossy(value.as_bytes()).into_owned();
            Example {
                rule: rule.name,
                text: rule.example,
                // The longest line is enough to know a block by.
                secret: secret
                    .lines()
                    .max_by_key(|line| line.len())
                    .unwrap()
                    .trim_matches(['"', '\''])
                    .to_owned(),
            }
        })
        .collect()
}

/// A session of Claude Code with a text in every place.
fn claude(text: &str) -> String {
    let call = |id: &str, name: &str, input: serde_json::Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let result = |id: &str, error: bool| json!({"type": "tool_result", "tool_use_id": id, "is_error": error, "content": format!("out\n{text}\nend")});
    let time = |minute: u32| format!("2026-11-20T08:{minute:02}:00Z");
    let records = [
        json!({"type": "summary", "summary": text}),
        json!({"type": "user", "uuid": "1", "cwd": format!("/home/dev/{text}"), "gitBranch": text, "version": text,
               "timestamp": time(1), "message": {"role": "user", "content": format!("please use this: {text}")}}),
        json!({"type": "assistant", "uuid": "2", "parentUuid": "1", "timestamp": time(2), "message": {
        "id": "m1", "role": "assistant", "model": text, "content": [
            {"type": "text", "text": format!("I see {text}")},
            call("c1", "Bash", json!({"command": format!("echo x; {text}"), "description": text})),
            call("c2", "Write", json!({"file_path": format!("/home/dev/x/{text}"), "content": text})),
            call("c3", text, json!({"arg": text, "list": [text], "nested": {"more": text}})),
        ]}}),
        json!({"type": "user", "uuid": "3", "parentUuid": "2", "timestamp": time(3), "toolUseResult": {"stdout": text, "filePath": text},
               "message": {"role": "user", "content": [result("c1", true), result("c2", false), result("c3", false)]}}),
        json!({"type": "system", "subtype": "api_error", "uuid": "4", "parentUuid": "3", "timestamp": time(4),
               "error": {"message": text, "formatted": text}}),
        json!({"type": "assistant", "uuid": "5", "parentUuid": "4", "timestamp": time(5), "isApiErrorMessage": true,
               "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}),
        json!({"type": "user", "uuid": "6", "parentUuid": "5", "timestamp": time(6), "message": {"role": "user", "content": format!("still wrong: {text}")}}),
        json!({"type": "user", "uuid": "7", "parentUuid": "6", "timestamp": time(7), "isMeta": true, "message": {"role": "user", "content": text}}),
        json!({"type": "assistant", "uuid": "8", "parentUuid": "7", "timestamp": time(8),
               "message": {"id": "m2", "role": "assistant", "content": [{"type": "text", "text": text}]}}),
        json!({"type": "ai-title", "aiTitle": text}),
        json!({"type": text, "value": text}),
    ];
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// A session of Codex with a text in every place.
fn codex(id: &str, text: &str) -> String {
    let line = |kind: &str, payload: serde_json::Value| json!({"timestamp": "2026-11-20T08:00:00Z", "type": kind, "payload": payload});
    let records = [
        line(
            "session_meta",
            json!({"id": id, "cwd": format!("/home/dev/{text}"), "cli_version": text, "source": "cli",
             "git": {"branch": text, "commit_hash": text, "repository_url": text}}),
        ),
        line(
            "turn_context",
            json!({"model": text, "cwd": format!("/home/dev/other/{text}")}),
        ),
        line(
            "event_msg",
            json!({"type": "user_message", "message": format!("please use this: {text}")}),
        ),
        line(
            "response_item",
            json!({"type": "function_call", "name": "exec_command", "call_id": "1", "arguments": json!({"cmd": text, "workdir": text}).to_string()}),
        ),
        line(
            "response_item",
            json!({"type": "function_call_output", "call_id": "1", "output": text}),
        ),
        line(
            "event_msg",
            json!({"type": "patch_apply_end", "call_id": "2", "success": true, "changes": {format!("/home/dev/{text}"): {"add": {"content": text}}}}),
        ),
        line("event_msg", json!({"type": "error", "message": text})),
        line(
            "event_msg",
            json!({"type": "agent_message", "message": format!("done with {text}")}),
        ),
        json!({"timestamp": "2026-11-20T08:30:00Z", "type": text, "payload": {"cwd": text}}),
    ];
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// Every file below a folder, as bytes.
fn contents(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
}

#[test]
fn no_secret_of_any_rule_is_stored_or_printed() {
    let machine = Machine::new();
    let examples = examples();
    for (number, example) in examples.iter().enumerate() {
        let id = format!("01a12f44-1be4-7292-a61b-921e516a{number:04}");
        machine.write(
            &format!("home/.claude/projects/p/{id}.jsonl"),
            &claude(example.text),
        );
        let name = format!("home/.codex/sessions/rollout-2026-11-20T08-00-00-{id}.jsonl");
        machine.write(&name, &codex(&id, example.text));
    }
    let listed = machine.ok(&["-vv", "harvest", "list", "--max-sessions", "0"]);
    assert_eq!(
        listed.stdout.lines().count(),
        2 * examples.len(),
        "{}",
        listed.stderr
    );
    let mut written = vec![
        ("list".to_owned(), listed.stdout.into_bytes()),
        ("its messages".to_owned(), listed.stderr.into_bytes()),
    ];
    for args in [
        ["harvest", "list", "--json", "--max-sessions", "0"],
        ["harvest", "tasks", "--json", "--max-sessions", "0"],
        [
            "harvest",
            "show",
            "01a12f44-1be4-7292-a61b-921e516a0000",
            "--json",
            "-v",
        ],
    ] {
        let ran = machine.run(&args);
        written.push((args.join(" "), ran.stdout.into_bytes()));
        written.push((args.join(" "), ran.stderr.into_bytes()));
    }
    contents(&machine.path("state"), &mut written);
    contents(&machine.path("tmp"), &mut written);
    assert!(written.iter().any(|(name, _)| name.ends_with(".db")));
    let mut leaks = Vec::new();
    for Example { rule, text, secret } in &examples {
        // A few digits stand in every file: such a secret is known by the words around it.
        let known = if secret.len() < 8 {
            text
        } else {
            secret.as_str()
        };
        for (name, bytes) in &written {
            let found = regex::bytes::Regex::new(&regex::escape(known))
                .unwrap()
                .find(bytes);
            if let Some(at) = found.map(|found| found.start()) {
                let around =
                    &bytes[at.saturating_sub(60)..(at + known.len() + 20).min(bytes.len())];
                leaks.push(format!(
                    "{rule}: {known} in {name}: {}",
                    String::from_utf8_lossy(around)
                ));
            }
        }
    }
    assert!(
        leaks.is_empty(),
        "{} leaks\n{}",
        leaks.len(),
        leaks.join("\n")
    );
}
