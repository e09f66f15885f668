//! What the deviations of data and configuration refer to.

use serde_json::{Value, json};

use skillopt_sleep::config::roles::LABELS;
use skillopt_sleep::trainer::environment::Split;

use super::Vector;

/// Whether the named condition holds for a vector and our result; nothing for a name of another
/// module.
pub(super) fn holds(name: &str, vector: &Vector, ours: &Value) -> Option<bool> {
    let input = &vector.input;
    let expected = &vector.expected;
    Some(match name {
        "seed_is_zero" => {
            input["split_seed"] == json!(0) || input["loader_args"]["split_seed"] == json!(0)
        }
        "same_sizes" => {
            expected["manifest"]["counts"] == ours["manifest"]["counts"]
                && expected["sizes"] == ours["sizes"]
                && ["train", "val", "test"]
                    .iter()
                    .all(|split| length(&expected[split]) == length(&ours[split]))
        }
        "asks_for_unknown_splits" => unknown(&expected["aliases"]).next().is_some(),
        "unknown_splits_are_refused" => {
            let (mut theirs, mut ours) = (expected.clone(), ours.clone());
            let names: Vec<String> = unknown(&expected["aliases"]).cloned().collect();
            names.iter().all(|name| {
                theirs["aliases"][name] = Value::Null;
                ours["aliases"][name].take().get("error").is_some()
            }) && theirs == ours
        }
        "names_our_backend" => {
            let argv: Vec<&str> = input["argv"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            argv.windows(2)
                .any(|pair| pair[0] == "--backend" && LABELS.contains(&pair[1]))
        }
        "backend_is_taken" => ours["flat"]["model_backend"].is_string(),
        "lines_only" => expected.get("error").is_some() && has_file(input, ".jsonl"),
        "reads_items" => ["train", "val", "test"]
            .iter()
            .all(|split| ours[split].is_array()),
        "lone_object" => lone_object(input).is_some(),
        "holds_its_items" => {
            let object = lone_object(input).unwrap_or_default();
            let items = if object["data"].is_array() {
                object["data"].clone()
            } else {
                json!([object])
            };
            ours["base"]["items"] == items || ours["items"] == items
        }
        "unusual_characters" => content(input).contains([
            '\u{feff}', '\u{2028}', '\u{2029}', '\u{85}', '\u{b}', '\u{c}',
        ]),
        "no_error" => ours.get("error").is_none() && ours["base"].get("error").is_none(),
        "not_finite" => {
            let text = input["text"]
                .as_str()
                .unwrap_or_default()
                .trim()
                .to_lowercase();
            matches!(
                text.trim_start_matches(['+', '-']),
                "nan" | "inf" | "infinity"
            )
        }
        "stays_text" => ours["value"] == input["text"],
        "id_changes" => {
            input["fn"] == "safe_pair_id" && expected["value"] != input["value"]
                || input["value"]
                    .as_str()
                    .is_some_and(|id| id.starts_with('.'))
        }
        "harmless_component" => {
            let value = ours["value"].as_str().unwrap_or("/");
            !value.contains(['/', '\\']) && value != "." && value != ".." && value.len() < 256
        }
        "has_secret" => input["config"]
            .as_object()
            .is_some_and(|fields| fields.values().any(is_filled)),
        "secrets_are_gone" => input["config"].as_object().is_some_and(|fields| {
            fields
                .iter()
                .filter(|(name, value)| name.contains("key") && is_filled(value))
                .all(|(_, value)| {
                    !ours
                        .to_string()
                        .contains(value.as_str().unwrap_or_default())
                })
        }),
        _ => return None,
    })
}

/// The names among aliases that are no split's.
fn unknown(aliases: &Value) -> impl Iterator<Item = &String> {
    let names = aliases
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name);
    names.filter(|name| Split::parse(name).is_none())
}

fn is_filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn length(list: &Value) -> Option<usize> {
    list.as_array().map(Vec::len)
}

fn has_file(input: &Value, suffix: &str) -> bool {
    input["files"]
        .as_object()
        .is_some_and(|files| files.keys().any(|name| name.ends_with(suffix)))
}

/// The raw text of a vector: its own, or that of its only file.
fn content(input: &Value) -> String {
    let file = || {
        input["files"]
            .as_object()
            .and_then(|files| files.values().next())
            .and_then(Value::as_str)
    };
    input["text"]
        .as_str()
        .or_else(file)
        .unwrap_or_default()
        .to_owned()
}

/// The text as one object that is neither a table of items nor a list of them in any reading.
fn lone_object(input: &Value) -> Option<Value> {
    let object: Value = serde_json::from_str(&content(input)).ok()?;
    let fields = object.as_object()?;
    (!fields.values().all(Value::is_object)).then_some(object)
}
