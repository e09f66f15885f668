//! The logs of `tests/data/sessions` (or `$SKILLOPT_SESSIONS`), read and compared with
//! `truth.json`, fact by fact. Prints `facts matched/total` and each fact missed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use skillopt_harvesters::session::{CallStatus, IncidentKind, Origin, PromptKind, Verdict};
use skillopt_harvesters::{
    Agent, Harvest, HarvestOptions, Polarity, Roots, Session, harvest, registry,
};

/// The corpus folder.
fn corpus() -> PathBuf {
    std::env::var_os("SKILLOPT_SESSIONS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/sessions"),
        PathBuf::from,
    )
}

/// The corpus as roots of the agents.
fn roots(corpus: &Path) -> Roots {
    Roots::none()
        .with(Agent::Claude, corpus.join("claude"))
        .with(Agent::Codex, corpus.join("codex"))
        .with(Agent::Pi, corpus.join("pi/agent"))
        .with(Agent::Gemini, corpus.join("gemini"))
}

/// Facts compared so far.
#[derive(Default)]
struct Score {
    matched: usize,
    total: usize,
    missed: Vec<String>,
}

impl Score {
    fn check(&mut self, session: &str, fact: &str, expected: &Value, found: &Value) {
        self.total += 1;
        if expected == found {
            self.matched += 1;
        } else {
            self.missed.push(format!(
                "{session} · {fact}\n    expected {expected}\n    found    {found}"
            ));
        }
    }
}

#[test]
fn every_fact_of_the_corpus_is_found() {
    let corpus = corpus();
    let truth: Value =
        serde_json::from_slice(&std::fs::read(corpus.join("truth.json")).unwrap()).unwrap();
    let options = HarvestOptions {
        include_machine: true,
        ..HarvestOptions::default()
    };
    let harvest = harvest(&roots(&corpus), &options);
    let supported: Vec<&str> = registry()
        .iter()
        .map(|source| source.info().agent.name())
        .collect();
    let mut score = Score::default();
    let mut found_ids = Vec::new();
    for expected in truth["sessions"].as_array().unwrap() {
        let agent = expected["agent"].as_str().unwrap();
        if !supported.contains(&agent) {
            continue;
        }
        let name = format!("{agent} {}", expected["scenario"].as_str().unwrap_or("?"));
        let found: Vec<&Session> = harvest
            .sessions
            .iter()
            .filter(|session| session.agent.name() == agent && expected["id"] == *session.id)
            .collect();
        score.check(
            &name,
            "sessions with this id",
            &json!(1),
            &json!(found.len()),
        );
        if let [session] = found.as_slice() {
            found_ids.push(session.id.clone());
            compare(&mut score, &name, expected, session, &corpus);
        }
    }
    let extra: Vec<&str> = harvest
        .sessions
        .iter()
        .filter(|session| !found_ids.contains(&session.id))
        .map(|session| session.id.as_str())
        .collect();
    score.check(
        "corpus",
        "sessions that the truth does not have",
        &json!([]),
        &json!(extra),
    );
    not_sessions(&mut score, &truth, &harvest, &corpus);
    println!("facts {}/{}", score.matched, score.total);
    for missed in &score.missed {
        println!("{missed}");
    }
    println!("unknown record kinds: {:?}", harvest.report.unknown_kinds);
    assert!(
        score.missed.is_empty(),
        "{} facts missed",
        score.missed.len()
    );
}

/// Files that are no sessions must not be the file of one.
fn not_sessions(score: &mut Score, truth: &Value, harvest: &Harvest, corpus: &Path) {
    for entry in truth["not_sessions"].as_array().into_iter().flatten() {
        let file = entry["file"].as_str().unwrap();
        let real = std::fs::canonicalize(corpus.join(file)).unwrap_or_default();
        let is_session = harvest
            .sessions
            .iter()
            .any(|session| session.files.iter().any(|path| Path::new(path) == real));
        score.check(file, "is no session", &json!(false), &json!(is_session));
    }
}

fn compare(score: &mut Score, name: &str, expected: &Value, session: &Session, corpus: &Path) {
    let found = facts(session, corpus);
    for (fact, value) in expected.as_object().unwrap() {
        if let Some(found) = found.get(fact.as_str()) {
            let mut value = normalised(fact, value);
            // Behind a symbolic link an agent may log either spelling.
            if fact == "project" && expected["real_project"] == *found {
                value = found.clone();
            }
            // Some formats log neither their version nor who started the session.
            let unlogged = fact == "agent_version" && found.is_null()
                || fact == "origin" && *found == "unknown";
            if unlogged {
                continue;
            }
            score.check(name, fact, &value, found);
        }
    }
    for key in ["dead_prompts", "inherited_prompts"] {
        if expected.get(key).is_none() {
            score.check(name, key, &json!([]), &found[key]);
        }
    }
    let logs_runs = matches!(session.agent, Agent::Claude | Agent::Codex);
    if let Some(resumes) = expected["resumes"]
        .as_u64()
        .filter(|count| *count > 0 && logs_runs)
    {
        score.check(name, "resumes", &json!(resumes), &json!(session.resumes));
    }
    let whole = serde_json::to_string(session).unwrap();
    for secret in expected["secrets"].as_array().into_iter().flatten() {
        let leaked = whole.contains(secret.as_str().unwrap());
        score.check(name, "secret absent", &json!(false), &json!(leaked));
    }
    if expected["user_prompts"]
        .as_array()
        .is_some_and(|prompts| !prompts.is_empty())
    {
        let quoted = session.prompts().all(|prompt| is_quoted(session, prompt));
        score.check(
            name,
            "places lead to the prompts",
            &json!(true),
            &json!(quoted),
        );
    }
}

/// Whether the place of a prompt leads to a line that holds it.
fn is_quoted(session: &Session, prompt: &skillopt_harvesters::session::Prompt) -> bool {
    let Some((file, offset)) = session.locate(prompt.place) else {
        return false;
    };
    let Ok(bytes) = std::fs::read(file) else {
        return true;
    };
    let bytes = if file.ends_with(".zst") {
        zstd::decode_all(&bytes[..]).unwrap()
    } else {
        bytes
    };
    let line = &bytes[usize::try_from(offset).unwrap()..];
    let line = line.split(|byte| *byte == b'\n').next().unwrap();
    // A document of many lines has no place but its beginning.
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return offset == 0;
    };
    let text = value.to_string();
    let word = prompt
        .text
        .split([' ', '"', '\n', '['])
        .find(|word| word.len() > 3 && word.is_ascii());
    word.is_none_or(|word| text.contains(word.trim_start_matches('/')))
}

/// The truth's form of a fact, with what is optional there written out.
fn normalised(fact: &str, value: &Value) -> Value {
    match fact {
        "commands" => value.as_array().unwrap().iter().map(command_form).collect(),
        // With redaction on, a prompt cannot be compared word by word.
        "user_prompts" | "finals" | "final_answer" => redacted(value),
        _ => value.clone(),
    }
}

/// The truth's texts as they look after the door.
fn redacted(value: &Value) -> Value {
    skillopt_harvesters::Redactor::new().redact_value(value)
}

fn command_form(command: &Value) -> Value {
    let text = redacted(&command["command"]);
    let flag = |name: &str| command[name].as_bool().unwrap_or(false);
    json!({
        "command": text,
        "exit_code": command["exit_code"],
        "verification": flag("verification"),
        "passed": command["passed"],
        "interrupted": flag("interrupted"),
        "denied": flag("denied"),
        "background": flag("background"),
        "masked_exit": flag("masked_exit"),
    })
}

/// What was found, in the words of the truth.
fn facts(session: &Session, corpus: &Path) -> BTreeMap<&'static str, Value> {
    let corpus = std::fs::canonicalize(corpus).unwrap();
    let relative = |paths: &[String]| -> Value {
        paths
            .iter()
            .map(|path| {
                let path = Path::new(path);
                json!(path.strip_prefix(&corpus).unwrap_or(path).to_string_lossy())
            })
            .collect()
    };
    let texts = |prompts: &[skillopt_harvesters::session::Prompt]| -> Value {
        prompts.iter().map(|prompt| json!(prompt.text)).collect()
    };
    let mut sub_agent_files: Vec<String> = session.sub_agent_files.clone();
    sub_agent_files.sort();
    BTreeMap::from([
        ("agent_version", json!(session.agent_version)),
        ("archived", json!(session.archived)),
        ("files", relative(&session.files)),
        ("origin", json!(session.origin)),
        (
            "harvest",
            json!(session.origin != Origin::Machine && session.is_minable()),
        ),
        ("project", json!(session.project)),
        ("git_branch", json!(session.git.branch)),
        ("git_commit", json!(session.git.commit)),
        (
            "started",
            json!(session.started.map(|time| format!("{time:.3}"))),
        ),
        (
            "ended",
            json!(session.ended.map(|time| format!("{time:.3}"))),
        ),
        (
            "models",
            session
                .models
                .iter()
                .map(|model| json!(model.name))
                .collect(),
        ),
        (
            "user_prompts",
            session.prompts().map(|prompt| json!(prompt.text)).collect(),
        ),
        ("inherited_prompts", texts(&session.inherited_prompts)),
        ("dead_prompts", texts(&session.dead_prompts)),
        ("machine_prompts", machine_prompts(session)),
        ("hook_texts", hook_texts(session)),
        ("forked_from", json!(session.forked_from)),
        (
            "finals",
            session.finals().map(|answer| json!(answer.text)).collect(),
        ),
        (
            "final_answer",
            json!(session.final_answer().map(|answer| answer.text.as_str())),
        ),
        ("tools", json!(session.tools())),
        ("commands", commands(session)),
        ("tool_errors", json!(session.tool_errors())),
        ("files_edited", json!(session.files_edited())),
        ("skills", json!(session.skills())),
        ("feedback", feedback(session)),
        ("outcome", json!(verdict(session.outcome.verdict))),
        (
            "interruptions",
            json!(session.count(IncidentKind::Interruption)),
        ),
        (
            "compactions",
            json!(session.count(IncidentKind::Compaction)),
        ),
        ("api_errors", json!(session.count(IncidentKind::ApiError))),
        (
            "permission_denials",
            json!(session.count(IncidentKind::Denial)),
        ),
        ("subagents", json!(session.sub_agents)),
        ("tokens", tokens(session)),
    ])
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Success => "success",
        Verdict::Fail => "fail",
        Verdict::Mixed => "mixed",
        Verdict::Unknown => "unknown",
    }
}

fn machine_prompts(session: &Session) -> Value {
    session
        .turns
        .iter()
        .flat_map(|turn| &turn.prompts)
        .filter(|prompt| prompt.kind == PromptKind::Machine)
        .map(|prompt| json!(prompt.text))
        .collect()
}

fn hook_texts(session: &Session) -> Value {
    session
        .machine_texts
        .iter()
        .filter(|text| text.kind == "hook")
        .map(|text| json!(text.text))
        .collect()
}

fn feedback(session: &Session) -> Value {
    session
        .feedback()
        .iter()
        .map(|said| {
            let polarity = if said.polarity == Polarity::Positive {
                "positive"
            } else {
                "negative"
            };
            json!({"prompt_index": said.prompt_index, "polarity": polarity, "text": said.text})
        })
        .collect()
}

fn tokens(session: &Session) -> Value {
    session.usage.map_or(Value::Null, |usage| {
        json!({
            "input": usage.input,
            "output": usage.output,
            "cache_read": usage.cache_read,
            "cache_creation": usage.cache_creation,
        })
    })
}

fn commands(session: &Session) -> Value {
    session
        .commands()
        .map(|(call, run)| {
            let verification = run.verification.as_ref();
            let passed = verification.and_then(|found| found.passed);
            let masked = verification.is_some_and(|found| found.masked);
            json!({
                "command": run.text,
                "exit_code": run.exit_code,
                "verification": verification.is_some(),
                "passed": passed,
                "interrupted": call.status == CallStatus::Interrupted,
                "denied": call.status == CallStatus::Denied,
                "background": call.status == CallStatus::Background,
                "masked_exit": masked && passed == Some(false) && run.exit_code == Some(0),
            })
        })
        .collect()
}
