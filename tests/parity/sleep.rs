//! The groups of the night: feedback, tasks, splits, judges.

use serde_json::{Map, Value, json};

use skillopt_sleep::night::exact::{contains_reference, keyword_share, normalise};
use skillopt_sleep::night::feedback::Phrases;
use skillopt_sleep::night::rule_judge::{self, Tools, char_bound, check};
use skillopt_sleep::night::split::{self, Fractions};
use skillopt_sleep::night::task::{self, Task};

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
];

fn phrases(input: &Value, key: &str) -> Vec<String> {
    input[key].as_str().unwrap_or_default().split(',').map(str::to_owned).collect()
}

fn feedback(vector: &Vector) -> Value {
    let input = &vector.input;
    let phrases = Phrases::with_own(&phrases(input, "extra_negative"), &phrases(input, "extra_positive"));
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
    if called.is_empty() { Tools::Unobserved } else { Tools::Observed(called) }
}

fn rule_judge_ops(vector: &Vector) -> Value {
    let input = &vector.input;
    let called = texts(&input["tools_called"]);
    let outcome = check(&input["op"], &input["arg"], &text(input, "response"), tools(&called));
    json!({"pass": outcome.passed, "invalid": outcome.problem.is_some()})
}

fn exact_scoring(vector: &Vector) -> Value {
    if let Some(text) = vector.input["normalise"].as_str() {
        return json!({"normalised": normalise(text)});
    }
    let (reference, response) = (text(&vector.input, "reference"), text(&vector.input, "response"));
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
            Task { origin, ..Task::new(id, String::new(), String::new()) }
        })
        .collect();
    let options = &input["options"];
    let fraction = |key: &str| options[key].as_f64();
    let val = fraction("holdout_fraction").or_else(|| fraction("val_fraction")).unwrap_or(split::DEFAULT_VAL_FRACTION);
    let fractions = match Fractions::new(val, fraction("test_fraction").unwrap_or(0.0)) {
        Ok(fractions) => fractions,
        Err(error) => return refused(error),
    };
    split::assign(&mut tasks, fractions, options["seed"].as_i64().unwrap_or(42));
    tasks.into_iter().map(|task| (task.id, json!(task.split))).collect::<Map<String, Value>>().into()
}
