//! The groups of the research engine: edits, gate, schedule, merge, selection, replies.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use skillopt_sleep::config::modes::Mode as _;
use skillopt_sleep::model::reply;
use skillopt_sleep::skill::{self, Edit, EditReport, apply_patch, density};
use skillopt_sleep::trainer::gate_rule::{DensityBonus, GateMetric, GateProjection, decide};
use skillopt_sleep::trainer::merge_plan::{self, Combination};
use skillopt_sleep::trainer::patch::{Item, Patch, normalise_all};
use skillopt_sleep::trainer::schedule::{LrScheduler, Schedule};
use skillopt_sleep::trainer::score::{BatchScore, task_type_buckets};
use skillopt_sleep::trainer::update_mode::UpdateMode;

use super::stages::Stage;
use super::{Group, Vector, group};

pub(super) const GROUPS: &[Group] = &[
    group("engine/edit_apply", edit_apply),
    group("engine/patch_apply", patch_apply),
    group("engine/gate_decision", gate_decision),
    group("engine/gate_score", gate_score),
    group("engine/lr_schedule", lr_schedule),
    group("engine/json_extract", json_extract),
    group("engine/json_extract_array", json_extract_array),
    group("engine/scoring", scoring),
    group("engine/rank_select", rank_select),
    group("engine/merge", merge),
    group("engine/normalise_patches", normalise_patches),
    group("engine/update_modes", update_modes),
    group("engine/types_roundtrip", types_roundtrip),
];

pub(super) fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

pub(super) fn texts(value: &Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

pub(super) fn rows(value: &Value) -> Vec<Map<String, Value>> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .cloned()
        .collect()
}

pub(super) fn refused(error: impl std::fmt::Display) -> Value {
    json!({"error": error.to_string()})
}

/// A report as it is recorded: without what only ours says.
fn recorded(report: &EditReport) -> Value {
    let mut value = serde_json::to_value(report).expect("a report is JSON");
    let object = value.as_object_mut().expect("a report is an object");
    object.remove("changed");
    object.remove("error");
    value
}

fn edit_apply(vector: &Vector) -> Value {
    let edit = Edit::from_value(&vector.input["edit"]);
    let (document, reports) = apply_patch(&text(&vector.input, "skill"), [edit]);
    json!({"skill": document, "report": recorded(&reports[0])})
}

fn patch_apply(vector: &Vector) -> Value {
    let edits = vector.input["edits"]
        .as_array()
        .into_iter()
        .flatten()
        .map(Edit::from_value);
    let (document, reports) = apply_patch(&text(&vector.input, "skill"), edits);
    json!({"skill": document, "reports": reports.iter().map(recorded).collect::<Vec<_>>()})
}

fn projection(input: &Value) -> Result<GateProjection, String> {
    let words = input["leading_words"]
        .as_array()
        .map(|_| texts(&input["leading_words"]));
    Ok(GateProjection {
        // A stored metric has its canonical name; only the configuration is read leniently.
        metric: serde_json::from_value::<GateMetric>(input["metric"].clone())
            .map_err(|error| error.to_string())?,
        mixed_weight: input["mixed_weight"].as_f64().unwrap_or_default(),
        density: input["use_semantic_density"]
            .as_bool()
            .unwrap_or(false)
            .then(|| DensityBonus {
                weight: input["semantic_density_weight"]
                    .as_f64()
                    .unwrap_or_default(),
                words,
            }),
    })
}

fn gate_decision(vector: &Vector) -> Value {
    let input = &vector.input;
    let number = |key: &str| input[key].as_f64().expect("a score");
    let candidate = text(input, "candidate_skill");
    let score = match projection(input) {
        Ok(projection) => projection.score(number("cand_hard"), number("cand_soft"), &candidate),
        Err(error) => return refused(error),
    };
    let decision = decide(score, number("current_score"), number("best_score"), true);
    let current = if decision.takes_current {
        (candidate.clone(), score)
    } else {
        (text(input, "current_skill"), number("current_score"))
    };
    let best = if decision.takes_best {
        (candidate, score)
    } else {
        (text(input, "best_skill"), number("best_score"))
    };
    json!({
        "action": decision.action.name(),
        "current_skill": current.0, "current_score": current.1,
        "best_skill": best.0, "best_score": best.1,
        "best_step": input[if decision.takes_best { "global_step" } else { "best_step" }],
    })
}

fn gate_score(vector: &Vector) -> Value {
    let input = &vector.input;
    let document = text(input, "skill_content");
    if input["fn"] == "density" {
        let words = input["leading_words"]
            .as_array()
            .map(|_| texts(&input["leading_words"]));
        return json!({"density": density::density(&document, words.as_deref())});
    }
    let number = |key: &str| input[key].as_f64().expect("a score");
    match projection(input) {
        Ok(projection) => {
            json!({"score": projection.score(number("hard"), number("soft"), &document)})
        }
        Err(error) => refused(error),
    }
}

fn lr_schedule(vector: &Vector) -> Value {
    let input = &vector.input;
    let number =
        |key: &str| usize::try_from(input[key].as_u64().unwrap_or(0)).expect("a small number");
    let scheduler = match LrScheduler::parse(&text(input, "mode")) {
        Ok(scheduler) => scheduler,
        Err(error) => return refused(error),
    };
    let schedule = Schedule::new(
        scheduler,
        number("max_lr"),
        number("min_lr"),
        number("total_steps"),
    );
    let done = number("resume_from_completed_steps");
    let budgets: Vec<usize> =
        // The original writes "no limit" as 999.
        (1..=number("n_steps")).map(|step| schedule.budget(done + step).unwrap_or(999)).collect();
    json!({"budgets": budgets})
}

fn json_extract(vector: &Vector) -> Value {
    json!({"value": reply::extract_object(&text(&vector.input, "text"))})
}

fn json_extract_array(vector: &Vector) -> Value {
    json!({"value": reply::extract_array(&text(&vector.input, "text"))})
}

fn scoring(vector: &Vector) -> Value {
    let input = &vector.input;
    match input["fn"].as_str() {
        Some("compute_score") => match BatchScore::of_rows(&rows(&input["results"])) {
            Ok(score) => json!({"hard": score.hard, "soft": score.soft}),
            Err(error) => refused(error),
        },
        Some("skill_hash") => json!({"hash": skill::skill_hash(&text(input, "content"))}),
        Some("task_type_buckets") => {
            match task_type_buckets(&rows(&input["results"]), &texts(&input["task_types"])) {
                Ok(buckets) => json!(buckets),
                Err(error) => refused(error),
            }
        }
        other => panic!("no such function: {other:?}"),
    }
}

/// A scripted reply as the model layer would give it: its text, or nothing when the call fails.
pub(super) fn reply_text(scripted: &Value) -> Option<String> {
    match scripted {
        Value::String(text) => Some(text.clone()),
        Value::Object(object) if object.contains_key("raise") => None,
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

pub(super) fn reply_object(scripted: &Value) -> Option<Value> {
    reply::extract_object(&reply_text(scripted)?)
}

fn rank_select(vector: &Vector) -> Value {
    let input = &vector.input;
    let count =
        usize::try_from(input["n_items"].as_u64().expect("a count")).expect("a small number");
    let budget = usize::try_from(input["max_edits"].as_i64().expect("a budget")).unwrap_or(0);
    let items: Vec<Item> = (0..count)
        .map(|index| Map::from_iter([("i".to_owned(), json!(index))]))
        .collect();
    let patch = Patch {
        reasoning: "base".into(),
        items,
        ranking_details: None,
    };
    let stage = Stage::new(input, vec![input["reply"].clone()]);
    let patch = stage.select(patch, budget);
    let outcome = match &patch.ranking_details {
        _ if count <= budget => "unchanged",
        Some(_) => "ranked",
        None => "truncated",
    };
    json!({
        "selected": patch.items.iter().map(|item| item["i"].clone()).collect::<Vec<_>>(),
        "outcome": outcome,
        "llm_calls": stage.calls(),
        "has_ranking_details": patch.ranking_details.is_some(),
        "reasoning_starts_with_base": patch.reasoning.starts_with("base"),
    })
}

/// A call as it is recorded. Trying again is the model layer's affair: three times, except for notes.
pub(super) fn call(stage: &str, tokens: u32) -> Value {
    let retries = if stage == "appendix_consolidate" {
        2
    } else {
        3
    };
    json!({"stage": stage, "max_completion_tokens": tokens, "retries": retries})
}

struct Merging {
    mode: UpdateMode,
    replies: VecDeque<Value>,
    calls: usize,
    fallbacks: usize,
}

impl Merging {
    fn call(&mut self, inputs: &[Patch], level: Option<u64>) -> Patch {
        self.calls += 1;
        let reply = self.replies.pop_front().as_ref().and_then(reply_object);
        let merged = merge_plan::judge(reply.as_ref(), self.mode, inputs, level);
        self.fallbacks += usize::from(merged.fault.is_some());
        merged.patch
    }

    fn side(&mut self, mut patches: Vec<Patch>, batch_size: usize) -> Option<Patch> {
        let mut level = 0;
        while patches.len() > 1 {
            level += 1;
            patches = merge_plan::batches(patches.len(), batch_size)
                .into_iter()
                .map(|batch| match &patches[batch] {
                    [alone] => alone.clone(),
                    inputs => self.call(inputs, Some(level)),
                })
                .collect();
        }
        patches.pop()
    }
}

fn replies_of(input: &Value) -> Vec<Value> {
    input["replies"].as_array().cloned().unwrap_or_default()
}

fn merge(vector: &Vector) -> Value {
    let input = &vector.input;
    let mode = UpdateMode::parse(&text(input, "update_mode")).expect("a mode");
    let batch_size =
        usize::try_from(input["batch_size"].as_u64().expect("a size")).expect("a small number");
    let side = |key: &str| -> Vec<Patch> {
        input[key]
            .as_array()
            .into_iter()
            .flatten()
            .map(|patch| Patch::from_value(mode, patch))
            .collect()
    };
    let mut merging = Merging {
        mode,
        replies: replies_of(input).into(),
        calls: 0,
        fallbacks: 0,
    };
    let failure = merging.side(side("failure_patches"), batch_size);
    let success = merging.side(side("success_patches"), batch_size);
    let (merged, nothing) = match merge_plan::combine(failure, success) {
        Combination::Done(patch) => (patch.clone(), patch.is_empty()),
        Combination::Merge { failure, success } => (merging.call(&[failure, success], None), false),
    };
    // The plan says when a reply was passed over; the stage makes the calls.
    let stage = Stage::new(input, replies_of(input));
    let by_stage = stage.aggregate(side("failure_patches"), side("success_patches"), batch_size);
    // A recorded null leaves the wording free.
    let reasoning = if vector.expected["reasoning"].is_null() {
        Value::Null
    } else {
        json!(merged.reasoning)
    };
    json!({
        "merged": {mode.payload_key(): by_stage.items},
        "n_llm_calls": merging.calls,
        "llm_calls": stage.calls(),
        "fallback_used": merging.fallbacks > 0,
        "no_updates": nothing,
        "reasoning": reasoning,
    })
}

fn normalise_patches(vector: &Vector) -> Value {
    let mode = UpdateMode::parse(&text(&vector.input, "update_mode")).expect("a mode");
    let raw: Vec<Value> = vector.input["raw_patches"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let (failure, success) = normalise_all(raw.iter().map(|raw| (raw, None)), mode);
    let shown = |patches: Vec<Patch>| -> Vec<Value> {
        patches
            .iter()
            .map(|patch| {
                let mut value = patch.to_value(mode);
                // A patch without a reason has an empty one here, and none there.
                if patch.reasoning.is_empty() {
                    value
                        .as_object_mut()
                        .expect("a patch is an object")
                        .remove("reasoning");
                }
                value
            })
            .collect()
    };
    json!({"failure": shown(failure), "success": shown(success)})
}

fn update_modes(vector: &Vector) -> Value {
    let input = &vector.input;
    let mode = match UpdateMode::parse(&text(input, "mode")) {
        Ok(mode) => mode,
        Err(error) => return refused(error),
    };
    match input["fn"].as_str() {
        Some("payload_label") => json!({
            "plural": mode.plural(), "singular": mode.singular(), "title": mode.title(), "key": mode.payload_key(),
        }),
        Some("get_payload_items") => json!({"items": mode.items(&input["container"])}),
        Some("truncate_payload") => {
            let container = input["container"].clone();
            // The original's negative limit is ours left out.
            let kept = match usize::try_from(input["max_items"].as_i64().expect("a limit")) {
                Ok(limit) => mode.truncated(container, limit),
                Err(_) => container,
            };
            json!({"container": kept})
        }
        Some("short_item_summary") => {
            json!({"summary": mode.short_form(input["item"].as_object().expect("an item"))})
        }
        other => panic!("no such function: {other:?}"),
    }
}

/// Edits and patches stay the JSON that they came as; what is read out of them is compared.
fn types_roundtrip(vector: &Vector) -> Value {
    let dict = &vector.input["dict"];
    match vector.input["type"].as_str() {
        Some("Edit") => match Edit::from_value(dict) {
            Ok(edit) => {
                let mut fields = dict.as_object().cloned().unwrap_or_default();
                fields.insert("op".to_owned(), json!(edit.op.name()));
                fields.insert("content".to_owned(), json!(edit.content));
                fields.retain(|key, value| key != "target" || value != "");
                json!({"dict": fields})
            }
            Err(error) => refused(error),
        },
        Some("Patch") => {
            json!({"dict": Patch::from_value(UpdateMode::Patch, dict).to_value(UpdateMode::Patch)})
        }
        _ => Value::Null,
    }
}
