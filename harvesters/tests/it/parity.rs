//! The original's behaviour, as recorded in `tests/vectors`, where ours is meant to be
//! the same. Cases named `[quirk]` pin what the account of its weaknesses calls one.

use serde_json::Value;
use skillopt_harvesters::{Redactor, noise};

fn cases(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let is_quirk = |case: &Value| {
        case["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("[quirk]"))
    };
    cases.into_iter().filter(|case| !is_quirk(case)).collect()
}

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case["input"][name].as_str().unwrap_or_default()
}

fn prompts(case: &Value) -> Vec<&str> {
    case["input"]["user_prompts"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

#[test]
fn meta_prompts_are_the_originals() {
    for case in cases("noise_meta_prompt") {
        assert_eq!(
            case["expected"],
            noise::is_meta_prompt(text(&case, "text")),
            "{}",
            case["name"]
        );
    }
}

#[test]
fn headless_sessions_are_the_originals() {
    for case in cases("noise_headless") {
        let turns = usize::try_from(case["input"]["n_user_turns"].as_u64().unwrap()).unwrap();
        let found = noise::is_headless_session(
            &prompts(&case),
            turns,
            text(&case, "started_at"),
            text(&case, "ended_at"),
        );
        assert_eq!(case["expected"], found, "{}", case["name"]);
    }
}

#[test]
fn foreign_sessions_are_the_originals() {
    for case in cases("noise_agent_session") {
        let found = noise::is_foreign_session(&prompts(&case), text(&case, "extra_markers"));
        assert_eq!(case["expected"], found, "{}", case["name"]);
    }
}

/// What the original redacts and we leave, on purpose.
const LEFT_ON_PURPOSE: &[&str] = &[
    // A key inside a word: with it, "risk-averse-people" is one too.
    "task-sk-abcdefghij_klm",
    // A working directory.
    "pwd=/home/dev",
    // Code: a name in a template, a list of names, an assignment of a variable.
    "token={open\nnext",
    "{\"token\":[\"a\",\"b\"]}",
    "(Secret = abc) CI_DEPLOY_TOKEN: 1234567 export Secret fake-123",
];

#[test]
fn what_the_original_redacts_does_not_pass() {
    let redactor = Redactor::new();
    let mut passed = Vec::new();
    for case in cases("redaction_text") {
        let input = text(&case, "text");
        let expected = case["expected"]["full"].as_str().unwrap();
        let found = redactor.redact(input);
        for secret in removed(input, expected) {
            let secret = secret.trim_matches(['"', '\'']).to_owned();
            let marker = secret.starts_with("[REDACTED");
            if !marker
                && !secret.is_empty()
                && found.matches(&secret).count() > expected.matches(&secret).count()
                && !LEFT_ON_PURPOSE.contains(&input)
            {
                passed.push(format!(
                    "{secret:?} in {input:?}\n    original {expected:?}\n    ours     {found:?}"
                ));
            }
        }
    }
    println!("{} pass", passed.len());
    for line in &passed {
        println!("{line}");
    }
    assert!(passed.is_empty());
}

/// The parts of a text that placeholders replaced.
fn removed(input: &str, redacted: &str) -> Vec<String> {
    let marker = regex::Regex::new(r"\[REDACTED(?:_[A-Z_]+)?\]").unwrap();
    let kept: Vec<&str> = marker.split(redacted).collect();
    let mut secrets = Vec::new();
    let mut rest = input.strip_prefix(kept[0]).unwrap_or(input);
    for part in &kept[1..] {
        let end = if part.is_empty() {
            rest.len()
        } else {
            rest.find(part).unwrap_or(rest.len())
        };
        if end >= 3 {
            secrets.push(rest[..end].to_owned());
        }
        rest = rest.get(end + part.len()..).unwrap_or_default();
    }
    secrets
}

/// What the original leaves and we redact: shapes that it does not know.
const TAKEN_ON_PURPOSE: &[&str] = &[
    "ghp_FAKEFAKEFAKEFAKEFAKE0000ghp_FAKEFAKEFAKEFAKEFAKE0000",
    "eyJmYWtlZmFr.eyJmYWtlZmFr",
    "Bearer fake-bearer-value-123",
    "Authorization: Digest username=x",
    "api key fakefake1",
    "x\"token\":\"abc\"",
    "{\"Authorization\":\"Bearer abcdefghijk\"}",
    "\"region\": \"ab;cd\" pwd: abc)",
];

#[test]
fn what_the_original_leaves_stays_but_for_shapes_that_it_does_not_know() {
    let redactor = Redactor::new();
    let mut taken = Vec::new();
    for case in cases("redaction_text") {
        let input = text(&case, "text");
        let same = case["expected"]["full"] == input && !TAKEN_ON_PURPOSE.contains(&input);
        if same && redactor.redact(input) != input {
            taken.push(format!("{input:?} became {:?}", redactor.redact(input)));
        }
    }
    println!("{}", taken.join("\n"));
    assert!(taken.is_empty(), "{} texts", taken.len());
}

#[test]
fn values_lose_the_members_that_they_lose_in_the_original() {
    let redactor = Redactor::new();
    let plain = regex::Regex::new(r"\[redacted:[a-z-]+\]").unwrap();
    let marker = regex::Regex::new(r"\[REDACTED(?:_[A-Z_]+)?\]").unwrap();
    for case in cases("redaction_value") {
        let found = redactor.redact_value(&case["input"]["value"]);
        let found = plain.replace_all(&found.to_string(), "[X]").into_owned();
        let expected = marker
            .replace_all(&case["expected"].to_string(), "[X]")
            .into_owned();
        assert_eq!(found, expected, "{}", case["name"]);
    }
}
