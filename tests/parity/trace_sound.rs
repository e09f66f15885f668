//! What must hold for a run whose course a weakness of the original would change.

use serde_json::Value;

use skillopt_sleep::skill::region;

use super::Vector;
use super::scripted_run::toy_result;
use super::trace_rules::{explained, list};

/// Whether the named condition holds for a run and its record.
pub(super) fn holds(name: &str, vector: &Vector, ours: &Value) -> bool {
    let input = &vector.input;
    if let Some(weakness) = name.strip_prefix("trace_has_") {
        return explained(vector, ours).fired.contains(weakness);
    }
    let candidates =
        || list(&ours["history"]).filter(|record| record.get("candidate_hash").is_some());
    match name {
        "trace_sound" => sound(vector, ours),
        "trace_asks_nothing_without_pairs" => ["slow_update", "meta_skill"].iter().any(|stage| {
            let results = ours[*stage].as_object().into_iter().flatten();
            results
                .into_iter()
                .any(|(_, result)| result["action"] == "no_pairs")
        }),
        "trace_explained" => explained(vector, ours).left.is_empty(),
        "trace_nothing_for_no_budget" => {
            sound(vector, ours)
                && candidates()
                    .filter(|record| record["edit_budget"] == 0)
                    .all(|record| record["n_edits_ranked"] == 0)
        }
        "trace_never_above_max" => {
            let most = input["cfg"]["edit_budget"].as_u64();
            sound(vector, ours) && candidates().all(|record| record["edit_budget"].as_u64() <= most)
        }
        "trace_schedule_decides" => {
            sound(vector, ours)
                && candidates()
                    .filter(|record| record["lr_decision"]["fallback"] == true)
                    .all(|record| record["edit_budget"].as_u64() > Some(0))
        }
        "trace_nothing_clipped" => {
            sound(vector, ours)
                && candidates().all(|record| record["n_edits_ranked"] == record["n_edits_merged"])
        }
        "trace_no_edit_lost" => {
            sound(vector, ours)
                && candidates().all(|record| record["n_edits_merged"].as_u64() > Some(0))
        }
        "trace_keeps_regions" => sound(vector, ours) && keeps_regions(input, ours),
        "trace_gate_is_off" => {
            sound(vector, ours)
                && candidates().all(|record| {
                    ["force_accept", "skip_no_change"]
                        .contains(&record["action"].as_str().unwrap_or_default())
                })
        }
        "trace_refused" => list(&ours["runs"]).all(|run| run.get("error").is_some()),
        "trace_null_text" => {
            let edits = list(&input["reflect_replies"])
                .flat_map(list)
                .flat_map(|patch| list(&patch["patch"]["edits"]));
            edits.clone().any(|edit| {
                ["content", "target"]
                    .iter()
                    .any(|key| edit.get(*key).is_some_and(Value::is_null))
            })
        }
        "trace_null_is_empty" => {
            let skills = |runs: &Value| -> Vec<String> {
                let skills = runs["skills"].as_object().into_iter().flatten();
                skills
                    .map(|(_, skill)| skill.as_str().unwrap_or_default().trim_end().to_owned())
                    .collect()
            };
            sound(vector, ours) && skills(ours) == skills(&vector.expected)
        }
        "trace_recovers" => {
            sound(vector, ours)
                && list(&ours["runs"])
                    .next_back()
                    .is_some_and(|run| run.get("summary").is_some())
        }
        _ => panic!("no such condition: {name}"),
    }
}

pub(super) fn pass_rate(input: &Value, skill: &str) -> f64 {
    let limit = usize::try_from(input["cfg"]["sel_env_num"].as_u64().unwrap_or(0)).unwrap_or(0);
    let most = if limit == 0 { usize::MAX } else { limit };
    let items: Vec<&Value> = list(&input["val_items"]).take(most).collect();
    let passed = items
        .iter()
        .filter(|item| toy_result(item, skill).0)
        .count();
    passed as f64 / items.len().max(1) as f64
}

/// What every run keeps: steps in order and once each, the gate's rule, and a best score that never
/// falls.
fn sound(vector: &Vector, ours: &Value) -> bool {
    let history: Vec<&Value> = list(&ours["history"]).collect();
    let steps: Vec<u64> = history
        .iter()
        .filter_map(|record| record["step"].as_u64())
        .collect();
    let in_order = steps == (1..=history.len() as u64).collect::<Vec<_>>();
    let cfg = &vector.input["cfg"];
    let plain = cfg.get("gate_metric").is_none() && cfg["use_semantic_density"] != true;
    let initial = vector.input["skill_init"].as_str().unwrap_or_default();
    // Unknown at first with another metric than the toy's, and after a gated slow update.
    let mut before = plain.then(|| pass_rate(&vector.input, initial));
    let mut best = f64::NEG_INFINITY;
    let mut epoch = &Value::Null;
    let gated = history.iter().all(|record| {
        if *epoch != record["epoch"]
            && cfg["slow_update_gate_with_selection"] == true
            && !epoch.is_null()
        {
            before = None;
        }
        epoch = &record["epoch"];
        let candidate = record["candidate_gate_score"].as_f64();
        let current = record["current_score"].as_f64();
        let unchanged = before.is_none() || current == before;
        let holds = match record["action"].as_str().unwrap_or_default() {
            "accept" | "accept_new_best" => candidate > before && candidate == current,
            "force_accept" => candidate == current,
            "reject" => candidate <= current && unchanged,
            _ => unchanged,
        };
        let now = record["best_score"].as_f64().unwrap_or(f64::NAN);
        let kept = now >= best;
        (before, best) = (current, now);
        holds && kept
    });
    let ended = list(&ours["runs"]).all(|run| run.get("error").is_none());
    in_order && gated && ended
}

fn keeps_regions(input: &Value, ours: &Value) -> bool {
    let regions = |text: &str| -> Vec<String> {
        region::regions(text)
            .into_iter()
            .map(|region| text[region.span].to_owned())
            .collect()
    };
    let wanted = regions(input["skill_init"].as_str().unwrap_or_default());
    let skills = ours["skills"].as_object();
    skills.is_some_and(|skills| {
        skills
            .values()
            .all(|skill| regions(skill.as_str().unwrap_or_default()) == wanted)
    })
}
