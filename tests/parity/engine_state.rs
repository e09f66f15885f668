//! The groups of the research engine about what a run remembers: regions, appendix, patterns,
//! buffer, batches.

use serde_json::{Value, json};

use skillopt_sleep::config::modes::Mode as _;
use skillopt_sleep::skill::appendix;
use skillopt_sleep::skill::region::{self, RegionKind};
use skillopt_sleep::trainer::failure_patterns::{descriptions, failure_patterns};
use skillopt_sleep::trainer::mt19937::{Mt19937, permutation};
use skillopt_sleep::trainer::optimizer_reply;
use skillopt_sleep::trainer::pairs::{Category, Comparison, PairPolicy};
use skillopt_sleep::trainer::step_buffer::{BufferEntry, render};

use super::engine::{refused, reply_object, rows, text, texts};
use super::stages::Stage;
use super::{Group, Vector, group};

pub(super) const GROUPS: &[Group] = &[
    group("engine/slow_field", slow_field),
    group("engine/appendix", appendix_region),
    group("engine/failure_patterns", patterns),
    group("engine/step_buffer", step_buffer),
    group("engine/mt19937_shuffle", mt19937_shuffle),
    group("engine/lr_autonomous", lr_autonomous),
    group("engine/reply_parse", reply_parse),
    group("engine/longitudinal_pairs", longitudinal_pairs),
];

fn slow_field(vector: &Vector) -> Value {
    let document = text(&vector.input, "skill");
    match vector.input["op"].as_str() {
        Some("inject") => json!({"skill": region::ensure_slow(&document)}),
        Some("extract") => json!({
            "content": region::inner(&document, RegionKind::SlowUpdate).unwrap_or_default(),
            "has": region::has(&document, RegionKind::SlowUpdate),
        }),
        Some("replace") => {
            json!({"skill": region::write_slow(&document, &text(&vector.input, "content"))})
        }
        Some("strip") => json!({"skill": region::remove(&document, RegionKind::SlowUpdate)}),
        other => panic!("no such operation: {other:?}"),
    }
}

/// Notes as text; the original writes other values into it.
fn notes(value: &Value) -> Vec<String> {
    let python = |note: &Value| match note {
        Value::Null => "None".to_owned(),
        Value::Bool(flag) => if *flag { "True" } else { "False" }.to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    value.as_array().into_iter().flatten().map(python).collect()
}

fn appendix_region(vector: &Vector) -> Value {
    let document = text(&vector.input, "skill");
    let given = notes(&vector.input["notes"]);
    match vector.input["op"].as_str() {
        Some("inject") => json!({"skill": appendix::ensure(&document)}),
        Some("extract") => {
            json!({"notes": appendix::notes(&document), "has": appendix::exists(&document)})
        }
        Some("append") => {
            let next = appendix::append(&document, &given);
            json!({"skill": next, "notes": appendix::notes(&next)})
        }
        Some("strip") => json!({"skill": region::remove(&document, RegionKind::Appendix)}),
        Some("dedupe") => json!({"notes": appendix::dedupe(&given)}),
        Some("canonical") => json!({"key": appendix::canonical(&text(&vector.input, "text"))}),
        other => panic!("no such operation: {other:?}"),
    }
}

fn patterns(vector: &Vector) -> Value {
    let mut files: Vec<(&String, &Value)> = vector.input["files"]
        .as_object()
        .expect("files")
        .iter()
        .collect();
    // Those of the step itself come before those of its batches.
    files.sort_by_key(|(path, _)| (path.starts_with("batch_"), path.to_owned()));
    let replies: Vec<Value> = files
        .into_iter()
        .filter_map(|(_, content)| match content {
            Value::String(text) => serde_json::from_str(text).ok(),
            other => Some(other.clone()),
        })
        .collect();
    json!({"patterns": failure_patterns(&rows(&vector.input["results"]), &descriptions(&replies))})
}

fn step_buffer(vector: &Vector) -> Value {
    let entries: Vec<BufferEntry> = match serde_json::from_value(vector.input["buffer"].clone()) {
        Ok(entries) => entries,
        Err(error) => return refused(error),
    };
    let rendered = render(&entries);
    let mut from = 0;
    // The substrings that were found, in order: equal to the recorded list when all were.
    let found: Vec<String> = texts(&vector.expected["must_contain_in_order"])
        .into_iter()
        .map_while(|wanted| {
            let at = rendered[from..].find(&wanted)?;
            from += at + wanted.len();
            Some(wanted)
        })
        .collect();
    json!({"empty": rendered.is_empty(), "must_contain_in_order": found})
}

fn mt19937_shuffle(vector: &Vector) -> Value {
    let seed = vector.input["seed"].as_i64().expect("a seed");
    let count =
        usize::try_from(vector.input["n"].as_u64().expect("a count")).expect("a small number");
    json!({"permutation": permutation(count, seed), "first_getrandbits32": Mt19937::new(seed).next_u32()})
}

fn lr_autonomous(vector: &Vector) -> Value {
    let input = &vector.input;
    let available =
        usize::try_from(input["n_items"].as_u64().expect("a count")).expect("a small number");
    // Recorded without a schedule behind it.
    let stage = Stage::new(input, vec![input["reply"].clone()]);
    let mut record = stage.decide(available);
    let failed = record.get("error").is_some();
    record
        .as_object_mut()
        .expect("a decision is an object")
        .remove("error");
    json!({
        "decision": record, "has_error": failed,
        "llm_calls": stage.calls(),
    })
}

fn reply_parse(vector: &Vector) -> Value {
    let input = &vector.input;
    let guidance = |key: &str| {
        let read =
            reply_object(&input["reply"]).and_then(|reply| optimizer_reply::guidance(&reply, key));
        read.map(|guidance| json!({"reasoning": guidance.reasoning, key: guidance.content}))
    };
    // What is asked for in a call is the stages' affair.
    let calls = &vector.expected["llm_calls"];
    match input["fn"].as_str() {
        Some("rewrite") => {
            let asked = input["n_suggestions"].as_u64() > Some(0);
            let reply = reply_object(&input["reply"]).filter(|_| asked);
            let result = reply.as_ref().and_then(optimizer_reply::rewrite).map(|rewrite| {
                let mut value = json!({"change_summary": rewrite.change_summary, "new_skill": rewrite.new_skill});
                if let Some(reasoning) = rewrite.reasoning {
                    value["reasoning"] = json!(reasoning);
                }
                value
            });
            let suggestions = usize::try_from(input["n_suggestions"].as_u64().unwrap_or(0))
                .expect("a small number");
            let stage = Stage::new(
                &json!({"update_mode": "rewrite"}),
                vec![input["reply"].clone()],
            );
            assert_eq!(
                stage.rewrites(suggestions),
                result.is_some(),
                "stage and reading differ"
            );
            let mut calls = stage.calls();
            for call in &mut calls {
                // How hard to think is the model's own setting here.
                call["reasoning_effort"] = Value::Null;
            }
            json!({"result": result, "llm_calls": calls})
        }
        Some("slow_update") => {
            json!({"result": guidance("slow_update_content"), "llm_calls": calls})
        }
        Some("meta_skill") => json!({"result": guidance("meta_skill_content"), "llm_calls": calls}),
        Some("consolidate") => {
            let reply = reply_object(&input["reply"]);
            json!({"notes": optimizer_reply::consolidated(&texts(&input["notes"]), reply.as_ref()), "llm_calls": calls})
        }
        Some("extract_appendix_notes") => {
            json!({"notes": optimizer_reply::appendix_notes(&input["result"])})
        }
        other => panic!("no such function: {other:?}"),
    }
}

fn longitudinal_pairs(vector: &Vector) -> Value {
    let input = &vector.input;
    let comparison = Comparison::of_rows(
        &rows(&input["items"]),
        &rows(&input["prev"]),
        &rows(&input["curr"]),
    );
    let count = |category| comparison.count(category);
    let kept = |policy: &str| -> Vec<String> {
        let policy = PairPolicy::parse(policy).expect("a policy");
        let pairs = comparison
            .pairs
            .iter()
            .filter(|pair| policy.keeps(pair.category));
        pairs.map(|pair| pair.id.clone()).collect()
    };
    json!({
        "pairs": comparison.pairs,
        "counts": {
            "improved": count(Category::Improved), "regressed": count(Category::Regressed),
            "persistent_fail": count(Category::PersistentFail), "stable_success": count(Category::StableSuccess),
        },
        "kept": {"mixed": kept("mixed"), "changed": kept("changed"), "unchanged": kept("unchanged")},
    })
}
