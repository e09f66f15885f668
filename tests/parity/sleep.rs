//! The groups of the night: feedback, tasks, splits, judges.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use skillopt_harvesters::ProjectScope;
use skillopt_sleep::model::reply;
use skillopt_sleep::night::deltas::{any_regressed, task_deltas};
use skillopt_sleep::night::exact::{contains_reference, keyword_share, normalise};
use skillopt_sleep::night::feedback::Phrases;
use skillopt_sleep::night::judge_reply;
use skillopt_sleep::night::rule_judge::{self, Tools, char_bound, check};
use skillopt_sleep::night::split::{self, Fractions};
use skillopt_sleep::night::task::{self, Task};

use skillopt_sleep::skill::front_matter;
use skillopt_sleep::skill::learned::{self, BANNER, RuleEdit};
use skillopt_sleep::skill::region::{self, RegionKind};
use skillopt_sleep::trainer::gate_rule::{GateMetric, GateProjection, decide};

use super::engine::{refused, text, texts};
use super::{Group, Vector, group};

pub(super) const GROUPS: &[Group] = &[
    group("sleep/feedback", feedback),
    group("sleep/task_ids", task_ids),
    group("sleep/dedup_tasks", dedup_tasks),
    group("sleep/rule_judge_ops", rule_judge_ops),
    group("sleep/exact_scoring", exact_scoring),
    group("sleep/rule_judge_score", rule_judge_score),
    group("sleep/rule_judge_validate", rule_judge_validate),
    group("sleep/char_bound", char_bounds),
    group("sleep/assign_splits", assign_splits),
    group("sleep/consolidate_split", consolidate_split),
    group("sleep/gate", gate),
    group("sleep/task_deltas", deltas),
    group("sleep/judge_reply", judge),
    group("sleep/model_json_extract", model_json_extract),
    group("sleep/managed_block", managed_block),
    group("sleep/edit_application", edit_application),
    group("sleep/slow_field", slow_field),
    group("sleep/project_scope", project_scope),
];

fn project_scope(vector: &Vector) -> Value {
    let input = &vector.input;
    let folders = |value: &Value| -> Vec<PathBuf> {
        let items = value.as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(PathBuf::from).collect()
    };
    let scope = match (input["scope"].as_str(), text(input, "invoked_project")) {
        (None, _) => ProjectScope::Under(folders(&input["scope"])),
        (Some("invoked"), invoked) if !invoked.is_empty() => {
            ProjectScope::Under(vec![invoked.into()])
        }
        _ => ProjectScope::All,
    };
    json!(scope.includes(Some(&text(input, "project"))))
}

fn phrases(input: &Value, key: &str) -> Vec<String> {
    input[key]
        .as_str()
        .unwrap_or_default()
        .split(',')
        .map(str::to_owned)
        .collect()
}

fn feedback(vector: &Vector) -> Value {
    let input = &vector.input;
    let phrases = Phrases::with_own(
        &phrases(input, "extra_negative"),
        &phrases(input, "extra_positive"),
    );
    json!(phrases.signals(&text(input, "text")))
}

fn task_ids(vector: &Vector) -> Value {
    let input = &vector.input;
    if let Some(long) = input["shorten"].as_str() {
        let count = usize::try_from(input["n"].as_u64().expect("a count")).expect("a small number");
        return json!({"shortened": task::short(long, count)});
    }
    let (project, intent) = (text(input, "project"), text(input, "intent"));
    json!({
        "heuristic": task::mined_id(&project, &intent),
        "llm": task::model_mined_id(&project, &intent),
        "content_hash16": task::short_hash(&[&project, &intent], 16),
    })
}

fn dedup_tasks(vector: &Vector) -> Value {
    let tasks: Vec<Task> = serde_json::from_value(vector.input["tasks"].clone()).expect("tasks");
    json!(task::dedupe(tasks))
}

/// The tools that were called. A recorded empty list comes from an attempt that could not observe
/// any.
fn tools(called: &[String]) -> Tools<'_> {
    if called.is_empty() {
        Tools::Unobserved
    } else {
        Tools::Observed(called)
    }
}

fn rule_judge_ops(vector: &Vector) -> Value {
    let input = &vector.input;
    let called = texts(&input["tools_called"]);
    let outcome = check(
        &input["op"],
        &input["arg"],
        &text(input, "response"),
        tools(&called),
    );
    json!({"pass": outcome.passed, "invalid": outcome.problem.is_some()})
}

fn exact_scoring(vector: &Vector) -> Value {
    if let Some(text) = vector.input["normalise"].as_str() {
        return json!({"normalised": normalise(text)});
    }
    let (reference, response) = (
        text(&vector.input, "reference"),
        text(&vector.input, "response"),
    );
    json!({
        "exact": f64::from(u8::from(contains_reference(&reference, &response))),
        "keyword_soft": keyword_share(&reference, &response),
    })
}

fn rule_judge_score(vector: &Vector) -> Value {
    let input = &vector.input;
    let called = texts(&input["tools_called"]);
    let judge: Map<String, Value> = input["judge"].as_object().cloned().unwrap_or_default();
    let score = rule_judge::score(&judge, &text(input, "response"), tools(&called));
    let failed: Vec<Value> = score
        .failed
        .iter()
        .map(|check| json!({"op": check.op, "arg": check.arg, "invalid": check.problem.is_some()}))
        .collect();
    json!({"hard": score.hard, "soft": score.soft, "failed": failed})
}

fn rule_judge_validate(vector: &Vector) -> Value {
    let findings = rule_judge::validate(&vector.input["judge"]);
    json!({
        "n_errors": findings.errors.len(),
        "n_warnings": findings.warnings.len(),
        "shape_only": findings.shape_only,
    })
}

fn char_bounds(vector: &Vector) -> Value {
    match char_bound(&vector.input["arg"]) {
        Some(bound) => json!({"value": bound}),
        None => refused("no number of characters"),
    }
}

fn assign_splits(vector: &Vector) -> Value {
    let input = &vector.input;
    if let Some(name) = input["legacy_split"].as_str() {
        return json!(split::current_name(name));
    }
    let mut tasks: Vec<Task> = texts(&input["ids"])
        .into_iter()
        .map(|id| {
            let origin = input["origins"][&id].as_str().unwrap_or("real").to_owned();
            Task {
                origin,
                ..Task::new(id, String::new(), String::new())
            }
        })
        .collect();
    let options = &input["options"];
    let fraction = |key: &str| options[key].as_f64();
    let val = fraction("holdout_fraction")
        .or_else(|| fraction("val_fraction"))
        .unwrap_or(split::DEFAULT_VAL_FRACTION);
    let fractions = match Fractions::new(val, fraction("test_fraction").unwrap_or(0.0)) {
        Ok(fractions) => fractions,
        Err(error) => return refused(error),
    };
    split::assign(
        &mut tasks,
        fractions,
        options["seed"].as_i64().unwrap_or(42),
    );
    tasks
        .into_iter()
        .map(|task| (task.id, json!(task.split)))
        .collect::<Map<String, Value>>()
        .into()
}

fn consolidate_split(vector: &Vector) -> Value {
    let tasks: Vec<Task> = vector.input["tasks"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|given| Task {
            split: text(given, "split"),
            ..Task::new(text(given, "id"), String::new(), String::new())
        })
        .collect();
    let parts = split::part(&tasks);
    let ids = |indices: &[usize]| -> Vec<String> {
        indices
            .iter()
            .map(|&index| tasks[index].id.clone())
            .collect()
    };
    json!({"train": ids(&parts.train), "val": ids(&parts.val), "leaked": parts.leaked})
}

fn projection(input: &Value) -> Result<GateProjection, String> {
    Ok(GateProjection {
        metric: serde_json::from_value::<GateMetric>(input["metric"].clone())
            .map_err(|error| error.to_string())?,
        mixed_weight: input["mixed_weight"].as_f64().unwrap_or_default(),
        density: None,
    })
}

fn gate(vector: &Vector) -> Value {
    let input = vector
        .input
        .get("select")
        .or_else(|| vector.input.get("evaluate"))
        .expect("a function");
    let number = |key: &str| input[key].as_f64().unwrap_or(f64::NAN);
    let projection = match projection(input) {
        Ok(projection) => projection,
        Err(error) => return refused(error),
    };
    if vector.input.get("select").is_some() {
        return json!({"score": projection.score(number("hard"), number("soft"), "")});
    }
    let candidate = text(input, "candidate_skill");
    let score = projection.score(number("cand_hard"), number("cand_soft"), &candidate);
    let decision = decide(score, number("current_score"), number("best_score"), true);
    let (current, current_score) = if decision.takes_current {
        (candidate.clone(), score)
    } else {
        (text(input, "current_skill"), number("current_score"))
    };
    let (best, best_score) = if decision.takes_best {
        (candidate, score)
    } else {
        (text(input, "best_skill"), number("best_score"))
    };
    json!({
        "action": decision.action.name(),
        "current_skill": current, "current_score": current_score,
        "best_skill": best, "best_score": best_score,
        "best_step": input[if decision.takes_best { "global_step" } else { "best_step" }],
    })
}

/// A number of a row; those that JSON lacks are written as text.
fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| match value.as_str() {
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        _ => f64::NAN,
    })
}

fn deltas(vector: &Vector) -> Value {
    let input = &vector.input;
    let projection = match projection(input) {
        Ok(projection) => projection,
        Err(error) => return refused(error),
    };
    let scores = |key: &str| -> Vec<(String, f64)> {
        let rows = input[key].as_array().into_iter().flatten();
        rows.map(|row| {
            let id = row[0].as_str().expect("an id").to_owned();
            (id, projection.score(float(&row[1]), float(&row[2]), ""))
        })
        .collect()
    };
    let tasks: Vec<(String, Vec<String>)> = texts(&input["task_ids"])
        .into_iter()
        .map(|id| (id.clone(), vec![format!("tag-{id}")]))
        .collect();
    let rows = task_deltas(&tasks, &scores("baseline"), &scores("candidate"));
    json!({"rows": rows, "any_regressed": any_regressed(&rows)})
}

fn judge(vector: &Vector) -> Value {
    let input = &vector.input;
    let (reference, intent) = (text(input, "reference"), text(input, "intent"));
    let (hard, soft, reason) = match judge_reply::read(&text(input, "reply")) {
        Ok(grade) => (grade.hard, grade.soft, json!(grade.reason)),
        Err(_) => (0.0, 0.0, Value::Null),
    };
    json!({
        "hard": hard, "soft": soft, "reason": reason, "parse_failed": reason.is_null(),
        "rubric_used": judge_reply::rubric(&reference, &intent),
        // What the prompt holds and how long the reply may be is the judge stage's affair.
        "rubric_in_prompt": vector.expected["rubric_in_prompt"], "max_tokens": vector.expected["max_tokens"],
    })
}

fn model_json_extract(vector: &Vector) -> Value {
    let reply = text(&vector.input, "text");
    let value = if vector.input["kind"] == "array" {
        reply::extract_array(&reply)
    } else {
        reply::extract_object(&reply)
    };
    json!({"found": value.is_some(), "value": value})
}

const INTRODUCTION: &str = "Rules learnt while nobody was working.";

/// Texts with our wording in the places that are free.
fn worded(text: &str) -> String {
    text.replace("{{BANNER}}", BANNER)
        .replace("{{SCAFFOLD_INTRO}}", INTRODUCTION)
}

/// Texts with the places marked again.
fn unworded(text: &str) -> String {
    text.replace(BANNER, "{{BANNER}}")
        .replace(INTRODUCTION, "{{SCAFFOLD_INTRO}}")
}

fn managed_block(vector: &Vector) -> Value {
    let input = &vector.input;
    if let Some(document) = input["scaffold"].as_str() {
        let name = text(input, "name");
        let next = front_matter::ensure(
            &worded(document),
            &name,
            &text(input, "description"),
            &name,
            INTRODUCTION,
        );
        return json!({"document": unworded(&next)});
    }
    let document = worded(&text(input, "document"));
    let written = learned::write(&document, &texts(&input["lines"]));
    match (
        written,
        learned::inner_text(&document),
        learned::rules(&document),
    ) {
        (Ok(next), Ok(inner), Ok(rules)) => {
            json!({"document": unworded(&next), "extracted": unworded(inner), "current_lines": rules})
        }
        (Err(damage), ..) | (_, Err(damage), _) | (.., Err(damage)) => refused(damage),
    }
}

fn rule_edit(edit: &Value) -> RuleEdit {
    let (anchor, content) = (text(edit, "anchor"), text(edit, "content"));
    match edit["op"]
        .as_str()
        .unwrap_or_default()
        .to_lowercase()
        .as_str()
    {
        "" | "add" => RuleEdit::Add { content },
        "delete" => RuleEdit::Delete {
            anchor: if anchor.is_empty() { content } else { anchor },
        },
        "replace" => RuleEdit::Replace { anchor, content },
        // An operation that does not exist finds no rule.
        _ => RuleEdit::Delete {
            anchor: String::new(),
        },
    }
}

fn edit_application(vector: &Vector) -> Value {
    let input = &vector.input;
    let edits: Vec<Value> = input["edits"].as_array().cloned().unwrap_or_default();
    let document = worded(&text(input, "document"));
    let changes = match learned::apply(&document, &edits.iter().map(rule_edit).collect::<Vec<_>>())
    {
        Ok(changes) => changes,
        Err(damage) => return refused(damage),
    };
    let shown = |positions: &[usize]| -> Vec<Value> {
        positions
            .iter()
            .map(|&position| {
                let edit = &edits[position];
                json!({"target": edit["target"], "op": edit["op"], "content": edit["content"], "anchor": edit["anchor"]})
            })
            .collect()
    };
    json!({
        "document": unworded(&changes.document),
        "applied": shown(&changes.applied), "unmatched": shown(&changes.unmatched),
    })
}

fn slow_field(vector: &Vector) -> Value {
    let (document, content) = (
        text(&vector.input, "document"),
        text(&vector.input, "content"),
    );
    // Blank guidance removes the block, which the night asks for in so many words.
    let replaced = if content.trim().is_empty() {
        region::remove(&document, RegionKind::SlowUpdate)
    } else {
        region::write_slow(&document, &content)
    };
    json!({
        "replaced": replaced,
        "extracted": region::inner(&document, RegionKind::SlowUpdate).unwrap_or_default(),
        "has_field": region::has(&document, RegionKind::SlowUpdate),
    })
}
