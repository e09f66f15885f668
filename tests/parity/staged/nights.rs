//! Which skills of a night get a proposal, and how nights are counted.

use serde_json::{Map, Value, json};

use skillopt_sleep::store::Store;
use skillopt_staging::{Lookup, SkillRoots};

use super::super::Vector;
use super::home::{Home, at};
use super::place::RECORDED_HOME;

/// For each skill that a night has a new text for, the file that a proposal is staged for; null when
/// none is.
pub(super) fn fanout(vector: &Vector) -> Value {
    let input = &vector.input;
    let Some(outcomes) = input["outcomes"].as_object() else {
        return Value::Null;
    };
    let mut home = Home::new(input);
    let roots = SkillRoots::new()
        .project(&home.here("/home/dev/proj"))
        .home(&home.here("/home/dev/.claude"));
    let mut staged = Map::new();
    for (name, text) in outcomes {
        let found = match roots.find(name) {
            Lookup::Found(path) => path,
            Lookup::Missing | Lookup::Outside(_) | Lookup::Ambiguous(_) | Lookup::Rejected => {
                staged.insert(name.clone(), Value::Null);
                continue;
            }
        };
        let inside = found.strip_prefix(&home.path).unwrap_or(&found);
        let recorded = format!("{RECORDED_HOME}/{}", inside.display());
        let row = json!({"skill_name": name, "live_skill_path": recorded, "proposed_skill": text});
        let accepted = home.stage(&json!({"skills": [row]})).is_ok();
        staged.insert(name.clone(), accepted.then_some(recorded).into());
    }
    Value::Object(staged)
}

/// The same of the original.
pub(super) fn recorded_fanout(vector: &Vector) -> Value {
    let Some(outcomes) = vector.input["outcomes"].as_object() else {
        return vector.expected.clone();
    };
    let proposals = vector.expected["proposals"].as_array();
    let proposal_of = |name: &str| {
        let mut proposals = proposals.into_iter().flatten();
        proposals.find(|proposal| proposal["skill_name"] == name)
    };
    outcomes
        .keys()
        .map(|name| {
            let path = proposal_of(name).map(|proposal| proposal["live_skill_path"].clone());
            (name.clone(), path.unwrap_or_default())
        })
        .collect::<Map<_, _>>()
        .into()
}

/// The numbers that nights get, from a store that holds what the vector says.
pub(super) fn state(vector: &Vector) -> Value {
    let input = &vector.input;
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("skillopt-sleep.db");
    if let Some(text) = input["file_text"].as_str().filter(|text| !text.is_empty()) {
        std::fs::write(&path, text.repeat(100)).expect("a file");
    }
    let store = match Store::open(&path) {
        Ok(store) => store,
        Err(error) => return json!({"error": error.to_string()}),
    };
    numbers(input, |_| {
        let number = store.begin_night(at(0)).expect("a night");
        json!(number)
    })
}

/// The same of the original.
pub(super) fn recorded_state(vector: &Vector) -> Value {
    let begun = numbers(&vector.input, |index| {
        vector.expected["returns"][index].clone()
    });
    match begun {
        Value::Null => vector.expected.clone(),
        begun => begun,
    }
}

/// What the beginnings of nights among a vector's operations return, by their place; null for a
/// vector without any.
fn numbers(input: &Value, mut begin: impl FnMut(usize) -> Value) -> Value {
    let operations = input["ops"].as_array().into_iter().flatten().enumerate();
    let numbers: Vec<Value> = operations
        .filter(|(_, operation)| operation["op"] == "begin_night")
        .map(|(index, _)| begin(index))
        .collect();
    if numbers.is_empty() {
        return Value::Null;
    }
    json!(numbers)
}
