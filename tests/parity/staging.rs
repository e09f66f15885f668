//! The groups of staging that ask what a name, a path or a text is.

use serde_json::{Value, json};

use skillopt_harvesters::Redactor;
use skillopt_staging::{
    AllowedRoots, collision_key, live_path, one_line, preflight, prose, resolvable_name, score,
    skill_name, table_cell, within,
};

use super::engine::{text, texts};
use super::{Group, Vector, group};

pub(super) const GROUPS: &[Group] = &[
    group("staging/skill_names", skill_names),
    group("staging/live_paths", live_paths),
    group("staging/collision_keys", collision_keys),
    group("staging/display_text", display_text),
    group("sleep/display_text", display_text),
    group("sleep/skill_name_normalise", |vector| {
        json!(resolvable_name(&text(&vector.input, "name")).unwrap_or_default())
    }),
];

fn skill_names(vector: &Vector) -> Value {
    let name = text(&vector.input, "name");
    let (staging, resolver) = (skill_name(&name), resolvable_name(&name));
    json!({
        "staging_name": staging.unwrap_or_default(),
        "accepted_for_staging": staging.is_some(),
        "resolver_name": resolver.unwrap_or_default(),
        "accepted_by_resolver": resolver.is_some(),
        // The original's name for the file; ours lies in a folder of its own.
        "proposed_file": staging.map(|name| format!("proposed_SKILL.{name}.md")).unwrap_or_default(),
    })
}

fn live_paths(vector: &Vector) -> Value {
    let input = &vector.input;
    match input["check"].as_str() {
        None => {
            let path = live_path(&text(input, "path"));
            json!({"accepted": path.is_some(), "normalized": path.unwrap_or_default()})
        }
        Some("within") => json!({"within": within(&text(input, "path"), &text(input, "root"))}),
        Some(_) => json!({"within": lies_in_roots(input)}),
    }
}

/// Whether a document may be written, on a real file system with the vector's folders and links.
fn lies_in_roots(input: &Value) -> bool {
    let home = tempfile::tempdir().expect("a folder");
    let here = |path: &str| home.path().join(path.trim_start_matches('/'));
    for entry in input["tree"].as_array().into_iter().flatten() {
        let path = here(&text(entry, "path"));
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        match entry["symlink"].as_str() {
            Some(target) => std::os::unix::fs::symlink(here(target), &path).expect("a link"),
            None => std::fs::create_dir_all(&path).expect("a folder"),
        }
    }
    let roots = texts(&input["roots"])
        .iter()
        .map(|root| root.trim())
        .filter(|root| !root.is_empty())
        .fold(AllowedRoots::new(), |roots, root| roots.skills(here(root)));
    preflight(&here(&text(input, "live")), &roots).is_ok()
}

fn collision_keys(vector: &Vector) -> Value {
    let input = &vector.input;
    match (input["a"].as_str(), input["b"].as_str()) {
        (Some(one), Some(other)) => json!({"collide": collision_key(one) == collision_key(other)}),
        _ => json!({"key": collision_key(&text(input, "text"))}),
    }
}

/// The two families call the escaped cell of a table and the score by different names.
fn display_text(vector: &Vector) -> Value {
    let (input, expected) = (&vector.input, &vector.expected);
    if let Some(value) = input.get("score") {
        let number = match value {
            Value::Bool(yes) => Some(f64::from(u8::from(*yes))),
            Value::String(digits) => digits.parse().ok(),
            Value::Object(special) => special["$float"]
                .as_str()
                .and_then(|name| name.parse().ok()),
            other => other.as_f64(),
        };
        let name = if expected.get("score").is_some() {
            "score"
        } else {
            "rendered"
        };
        return json!({name: score(number)});
    }
    if let Some(value) = input["terminal_value"].as_str() {
        return json!({"rendered": one_line(&Redactor::new().redact(value))});
    }
    if let Some(note) = input.get("skip_note") {
        return json!({"note": one_line(&Redactor::new().redact(&text(note, "reason")))});
    }
    let given = text(input, "text");
    let cell = if expected.get("table").is_some() {
        "table"
    } else {
        "table_cell"
    };
    json!({"one_line": one_line(&given), cell: table_cell(&given), "prose": prose(&given)})
}
