//! The groups about files of tasks.

use std::collections::HashSet;

use serde_json::{Value, json};

use skillopt_sleep::night::split::{DEFAULT_VAL_FRACTION, Fractions};
use skillopt_sleep::night::tasks_file::{self, TasksFile};

use super::engine::text;
use super::{Group, Vector, outcome_group};

pub(super) const GROUPS: &[Group] = &[
    outcome_group("staging/tasks_file", tasks, recorded),
    outcome_group("sleep/tasks_file", tasks, recorded),
];

fn tasks(vector: &Vector) -> Value {
    let input = &vector.input;
    if let Some(gate) = input.get("review_gate") {
        let file = TasksFile {
            tasks: Vec::new(),
            reviewed: gate["reviewed"] == true,
            warnings: Vec::new(),
        };
        // The original's backend without a model; ours answers from a script.
        return json!({"allowed": file.may_run(gate["backend"] == "mock")});
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sub/tasks.json");
    if let Some(write) = input.get("write") {
        let tasks = serde_json::from_value::<Vec<_>>(write["tasks"].clone()).expect("tasks");
        let sessions = write["n_sessions"].as_u64().unwrap_or_default();
        let sessions = usize::try_from(sessions).expect("a small number");
        tasks_file::write(&path, &text(write, "project"), sessions, &tasks).expect("a file");
        let written = std::fs::read_to_string(&path).expect("the file");
        return of_draft(&written);
    }
    let given = match (input["text"].as_str(), &input["payload"]) {
        (Some(text), _) => Some(text.to_owned()),
        (None, Value::Null) => None,
        (None, payload) => Some(payload.to_string()),
    };
    if let Some(given) = given {
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(&path, given).expect("a file");
    }
    let options = &input["options"];
    let val = options["holdout_fraction"]
        .as_f64()
        .unwrap_or(DEFAULT_VAL_FRACTION);
    let fractions = match Fractions::new(val, options["test_fraction"].as_f64().unwrap_or(0.0)) {
        Ok(fractions) => fractions,
        Err(error) => return json!({"error": error.to_string()}),
    };
    let seed = options["seed"].as_i64().unwrap_or(42);
    match tasks_file::read(&path, fractions, seed) {
        Ok(file) => {
            let warnings = file.warnings.len();
            let mut read = json!({"tasks": file.tasks, "reviewed": file.reviewed});
            // Not all records say how many warnings there were.
            if vector.expected.get("warnings").is_some() {
                read["warnings"] = json!(warnings);
            }
            read
        }
        Err(error) => json!({"error": error.to_string()}),
    }
}

/// Of a draft what a later reading needs; the rest is for the person.
fn of_draft(text: &str) -> Value {
    let draft: Value = serde_json::from_str(text).expect("JSON");
    json!({
        "format": draft["format"], "project": draft["project"], "n_sessions": draft["n_sessions"],
        "reviewed": draft["reviewed"], "tasks": draft["tasks"], "ends": text.ends_with("}\n"),
    })
}

fn recorded(vector: &Vector) -> Value {
    let expected = &vector.expected;
    if let Some(allowed) = expected.get("replay_allowed") {
        return json!({"allowed": allowed});
    }
    if expected.get("error").is_some() {
        return json!({"error": true});
    }
    if expected.get("path").is_some() {
        return of_draft(expected["text"].as_str().unwrap_or_default());
    }
    let mut tasks = expected["tasks"].clone();
    // A judge that is no object is no judge; the original keeps what it never uses.
    for task in tasks.as_array_mut().into_iter().flatten() {
        if !task["judge"].is_object() {
            task["judge"] = json!({});
        }
    }
    let mut read = json!({"tasks": tasks, "reviewed": expected["meta"]["reviewed"] == true});
    if let Some(warnings) = expected.get("warnings") {
        read["warnings"] = json!(warnings.as_array().map_or(0, Vec::len));
    }
    read
}

/// The conditions of deviations about files of tasks.
pub(super) fn holds(name: &str, vector: &Vector, ours: &Value) -> Option<bool> {
    let input = &vector.input;
    let given = match (input["text"].as_str(), &input["payload"]) {
        (Some(text), _) => serde_json::from_str(text).unwrap_or_default(),
        (None, payload) => payload.clone(),
    };
    let tasks = given.as_array().or_else(|| given["tasks"].as_array());
    let tasks: Vec<&Value> = tasks.into_iter().flatten().collect();
    Some(match name {
        "split_does_not_exist" => tasks.iter().any(|task| {
            let known = ["", "train", "val", "test", "replay", "holdout"];
            task["split"]
                .as_str()
                .is_some_and(|split| !known.contains(&split))
        }),
        "id_given_twice" => {
            let ids: HashSet<&str> = tasks
                .iter()
                .filter_map(|task| task["id"].as_str())
                .collect();
            ids.len() < tasks.len()
        }
        "file_is_refused" => ours.get("error").is_some(),
        _ => return None,
    })
}
