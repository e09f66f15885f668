//! Adoptions, with whatever somebody did to the files before.

use serde_json::{Value, json};
use skillopt_files::NoSteps;

use super::super::Vector;
use super::home::Home;
use super::outcome::refused;

pub(super) fn run(vector: &Vector) -> Value {
    let input = &vector.input;
    let mut home = Home::new(input);
    if let Err(error) = home.stage(&input["stage"]).and_then(|()| home.accept_all()) {
        return json!({"staged": refused(&error), "files": home.files()});
    }
    home.change(&input["mutate"]);
    let acts = input["acts"].as_array().into_iter().flatten();
    let results: Vec<Value> = acts
        .map(|act| told_as_recorded(home.act(act, &mut NoSteps), act))
        .collect();
    let mut found = home.pending();
    found.insert("results".to_owned(), json!(results));
    found.insert("files".to_owned(), home.files_as(&vector.expected["files"]));
    found.into()
}

/// Of a managed pair the original tells only which documents it wrote.
pub(super) fn told_as_recorded(mut result: Value, act: &Value) -> Value {
    if act["mode"] == "managed" {
        let rows = result.get_mut("done").and_then(Value::as_array_mut);
        for row in rows.into_iter().flatten() {
            *row = json!({"name": row["name"]});
        }
    }
    result
}
