//! The groups of whole runs: `engine/trainer_trace` and `engine/trainer_resume`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use skillopt_sleep::config::modes::Mode;
use skillopt_sleep::model::meter::Meter;
use skillopt_sleep::trainer::Trainer;
use skillopt_sleep::trainer::event::Observers;
use skillopt_sleep::trainer::gate::GateRule;
use skillopt_sleep::trainer::gate_rule::{DensityBonus, GateMetric, GateProjection};
use skillopt_sleep::trainer::pairs::PairPolicy;
use skillopt_sleep::trainer::prompt::Prompts;
use skillopt_sleep::trainer::reflect::SkillAware;
use skillopt_sleep::trainer::run_dir::RunDir;
use skillopt_sleep::trainer::schedule::{LrControl, LrScheduler};
use skillopt_sleep::trainer::settings::Settings;
use skillopt_sleep::trainer::state::State;
use skillopt_sleep::trainer::update_mode::UpdateMode;

use super::engine::{refused, texts};
use super::scripted_run::{ByStage, Death, Process, Script, Shared, Toy, lock};
use super::{Group, Vector, group};

pub(super) const GROUPS: &[Group] = &[
    group("engine/trainer_trace", recorded_runs),
    group("engine/trainer_resume", recorded_runs),
];

/// The keys of `summary.json` that the original has, but for configuration, times and tokens.
const SUMMARY: &[&str] = &[
    "baseline_selection_hard",
    "best_selection_hard",
    "final_selection_hard",
    "final_selection_soft",
    "best_step",
    "current_origin",
    "best_origin",
    "total_steps",
    "total_accepts",
    "total_rejects",
    "total_skips",
    "epoch_stats",
    "baseline_test_hard",
    "baseline_test_soft",
    "test_hard",
    "test_soft",
    "final_test_hard",
    "final_test_soft",
    "test_delta_hard",
    "final_test_delta_hard",
];

/// The same of `runtime_state.json`.
const RUNTIME_STATE: &[&str] = &[
    "last_completed_step",
    "current_skill_path",
    "current_score",
    "current_origin",
    "best_skill_path",
    "best_score",
    "best_step",
    "best_origin",
];

/// What only our records have, and what is not recorded.
const NOT_RECORDED: &[&str] = &[
    "timing",
    "tokens",
    "wall_time_s",
    "selection_coverage",
    "current_score_stale",
    "selection_complete",
    "selection_calls_saved",
    "candidate_gate_bound",
    "gate_rule",
    "gate_estimate",
    "attribution",
];

/// The original scores every item, whether or not it can still matter.
fn recorded_runs(vector: &Vector) -> Value {
    runs(vector, true)
}

/// Runs every process of a scripted run on one directory, and gathers what is left.
fn runs(vector: &Vector, full_scores: bool) -> Value {
    let input = &vector.input;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let root = dir.path().join("out");
    let script: Shared = Shared::default();
    {
        let mut script = lock(&script);
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        script.reflections = list(&input["reflect_replies"]).into();
        script.replies = input["llm_replies"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(stage, replies)| (stage.clone(), list(replies).into()))
            .collect();
        script.broken_dirs = texts(&input["rollout_error_dirs"]);
    }
    let mut outcomes = Vec::new();
    for (index, run) in input["runs"].as_array().expect("runs").iter().enumerate() {
        disturb(&root, run);
        lock(&script).start(death(vector, index));
        let mut cfg = input["cfg"].as_object().cloned().unwrap_or_default();
        cfg.extend(run["cfg"].as_object().cloned().unwrap_or_default());
        let outcome = process(&root, input, &Value::Object(cfg), full_scores, &script);
        let dead = lock(&script).dead;
        outcomes.push(match outcome {
            _ if dead => json!({"interrupted": true}),
            Ok(summary) => json!({"summary": picked(&summary, SUMMARY)}),
            Err(error) => refused(error),
        });
    }
    gathered(&root, input, outcomes, &lock(&script))
}

/// What happened to the directory before a run.
fn disturb(root: &Path, run: &Value) {
    for name in texts(&run["delete_files"]) {
        let _ = fs::remove_file(root.join(name));
    }
    for (name, text) in run["write_files"].as_object().into_iter().flatten() {
        fs::write(root.join(name), text.as_str().unwrap_or_default()).expect("a writable file");
    }
}

/// Where the original died, as a point of the run rather than as a number: our run has fewer calls
/// before it.
fn death(vector: &Vector, index: usize) -> Option<Death> {
    let interrupt = vector.input["runs"][index].get("interrupt")?;
    let number = |key: &str| usize::try_from(interrupt[key].as_u64()?).ok();
    match interrupt["kind"].as_str()? {
        "runtime_state_write" => return number("nth").map(Death::Write),
        "before_runtime_state" => {
            return number("step")
                .and_then(|step| u32::try_from(step).ok())
                .map(Death::Step);
        }
        _ => {}
    }
    let events = vector.expected["events"].as_array()?;
    let run = events
        .split(|event| event["event"] == "run_start")
        .nth(index + 1)?;
    let last = run.last()?;
    let key = if last["event"] == "llm" {
        "stage"
    } else {
        "dir"
    };
    let nth = run.iter().filter(|event| event[key] == last[key]).count();
    let name = last[key].as_str()?.to_owned();
    Some(match last["event"].as_str()? {
        "llm" => Death::Call(name, nth),
        _ => Death::Rollout(name, nth),
    })
}

/// One process: loads what is there, trains, gives the summary.
fn process(
    root: &Path,
    input: &Value,
    cfg: &Value,
    full_scores: bool,
    script: &Shared,
) -> Result<Value, String> {
    let settings = Settings {
        gate_rule: GateRule::Strict { full_scores },
        ..settings(cfg)?
    };
    let run = RunDir::open(root).map_err(|error| error.to_string())?;
    // Text files are read with LF line ends; a missing one is an empty document.
    let initial = input["skill_init"].as_str().unwrap_or_default();
    let initial = initial.replace("\r\n", "\n").replace('\r', "\n");
    let state = run
        .load()
        .map_err(|error| error.to_string())?
        .unwrap_or_else(|| State::new(initial));
    let toy = Toy::new(script.clone(), input);
    let mut observers = Observers::default();
    observers.add(Process::new(
        script.clone(),
        run,
        settings.use_slow_update,
        state.completed_epochs,
    ));
    let trainer = Trainer::new(
        &toy,
        Arc::new(ByStage(script.clone())),
        Arc::new(Meter::default()),
        Arc::new(Prompts::load(None, &[]).expect("the prompts compile")),
        settings,
        observers,
    )
    .map_err(|error| error.to_string())?;
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(trainer.train(state))
        .map(|trained| serde_json::to_value(trained.summary).expect("a summary is JSON"))
        .map_err(|error| error.to_string())
}

/// The settings of a flat configuration.
fn settings(cfg: &Value) -> Result<Settings, String> {
    let number = |key: &str| usize::try_from(cfg[key].as_i64().unwrap_or(0)).unwrap_or(0);
    let switch = |key: &str, default: bool| match &cfg[key] {
        Value::Bool(on) => *on,
        // As the configuration reads it (W-C6).
        Value::String(text) => text.trim().eq_ignore_ascii_case("true"),
        _ => default,
    };
    let weight = cfg["gate_mixed_weight"].as_f64().unwrap_or(0.5);
    if !(0.0..=1.0).contains(&weight) {
        return Err("gate_mixed_weight must lie between 0 and 1".to_owned());
    }
    Ok(Settings {
        epochs: u32::try_from(number("num_epochs")).unwrap_or(u32::MAX),
        train_size: number("train_size"),
        batch_size: number("batch_size"),
        accumulation: number("accumulation"),
        seed: cfg["seed"].as_i64().unwrap_or(42),
        minibatch_size: number("minibatch_size"),
        merge_batch_size: number("merge_batch_size"),
        failure_only: switch("failure_only", false),
        update_mode: mode(cfg, "skill_update_mode", UpdateMode::Patch)?,
        lr_control: mode(cfg, "lr_control_mode", LrControl::Fixed)?,
        lr_scheduler: mode(cfg, "lr_scheduler", LrScheduler::Constant)?,
        edit_budget: number("edit_budget"),
        min_edit_budget: number("min_edit_budget"),
        use_slow_update: switch("use_slow_update", false),
        slow_update_samples: number("slow_update_samples"),
        slow_update_gated: switch("slow_update_gate_with_selection", false),
        pair_policy: mode(cfg, "longitudinal_pair_policy", PairPolicy::Mixed)?,
        use_meta_skill: switch("use_meta_skill", false),
        skill_aware: match cfg["skill_aware_appendix_source"].as_str() {
            _ if !switch("use_skill_aware_reflection", false) => SkillAware::Off,
            Some("failure_only") => SkillAware::FailureOnly,
            _ => SkillAware::Both,
        },
        consolidate_threshold: number("skill_aware_consolidate_threshold"),
        use_gate: switch("use_gate", true),
        gate: GateProjection {
            metric: mode(cfg, "gate_metric", GateMetric::Hard)?,
            mixed_weight: weight,
            density: switch("use_semantic_density", false).then(|| DensityBonus {
                weight: cfg["semantic_density_weight"].as_f64().unwrap_or(0.05),
                words: leading_words(&cfg["leading_words"]),
            }),
        },
        selection_items: number("sel_env_num"),
        test_items: number("test_env_num"),
        eval_test: switch("eval_test", false),
        ..Settings::default()
    })
}

fn mode<M: Mode>(cfg: &Value, key: &str, default: M) -> Result<M, String> {
    match cfg[key].as_str() {
        Some(name) => M::parse(name).map_err(|error| format!("{key} {error}")),
        None => Ok(default),
    }
}

fn leading_words(value: &Value) -> Option<Vec<String>> {
    let words = match value {
        Value::String(text) => text.split(',').map(|word| word.trim().to_owned()).collect(),
        Value::Array(_) => texts(value),
        _ => return None,
    };
    Some(
        words
            .into_iter()
            .filter(|word: &String| !word.is_empty())
            .collect(),
    )
}

fn picked(object: &Value, keys: &[&str]) -> Value {
    keys.iter()
        .map(|key| ((*key).to_owned(), object[*key].clone()))
        .collect::<Map<_, _>>()
        .into()
}

/// What the processes left, in the shape in which it is recorded.
fn gathered(root: &Path, input: &Value, outcomes: Vec<Value>, script: &Script) -> Value {
    let files = files(root);
    let json_in = |folder: &str, name: &str| -> Map<String, Value> {
        entries(&root.join(folder))
            .into_iter()
            .filter_map(|entry| {
                let value = read(&root.join(folder).join(&entry).join(name))?;
                Some((entry, value))
            })
            .collect()
    };
    let skills: Map<String, Value> = entries(&root.join("skills"))
        .into_iter()
        .filter_map(|name| {
            let text = fs::read_to_string(root.join("skills").join(&name)).ok()?;
            Some((name, json!(text)))
        })
        .collect();
    let history = read(&root.join("history.json")).map(|mut history| {
        for record in history.as_array_mut().into_iter().flatten() {
            recorded_step(record, input["dataloader"] == true);
        }
        history
    });
    let runtime_state = read(&root.join("runtime_state.json"));
    let results = |folder: &str, name: &str| {
        let mut results = json_in(folder, name);
        results.values_mut().for_each(recorded_result);
        results
    };
    let pairs: Map<String, Value> = json_in("slow_update", "comparison_pairs.json")
        .into_iter()
        .map(|(epoch, pairs)| {
            let pairs = pairs.as_array().into_iter().flatten();
            let pairs: Vec<Value> = pairs
                .map(|pair| json!([pair["id"], pair["category"]]))
                .collect();
            (epoch, json!(pairs))
        })
        .collect();
    json!({
        "runs": outcomes,
        "events": script.events,
        "history": history,
        "runtime_state": runtime_state.map(|state| picked(&state, RUNTIME_STATE)),
        "skills": skills,
        "best_skill": fs::read_to_string(root.join("best_skill.md")).ok(),
        "slow_update": results("slow_update", "slow_result.json"),
        "meta_skill": results("meta_skill", "meta_skill_result.json"),
        "comparison_pairs": pairs,
        "trajectory_digests": json_in("steps", "trajectory_digest.json"),
        "files": files,
    })
}

/// A step's record without what only ours has and what is not recorded.
fn recorded_step(record: &mut Value, dataloader: bool) {
    let Some(fields) = record.as_object_mut() else {
        return;
    };
    fields.retain(|key, _| !NOT_RECORDED.contains(&key.as_str()));
    for batch in fields
        .get_mut("accumulation_batches")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(batch) = batch.as_object_mut() else {
            continue;
        };
        batch.remove("n_measured");
        if !dataloader {
            batch.remove("batch_seed");
        }
    }
    if let Some(decision) = fields.get_mut("lr_decision").and_then(Value::as_object_mut) {
        decision.remove("error");
    }
    if fields
        .get("action")
        .and_then(Value::as_str)
        .is_some_and(|action| ["skip_no_patches", "skip_no_rewrite"].contains(&action))
    {
        fields.remove("current_origin");
        fields.remove("best_origin");
    }
    // The original writes "no limit" as 999.
    if fields.get("lr_control_mode") == Some(&json!("fixed")) {
        fields.entry("edit_budget").or_insert(json!(999));
    }
}

/// The result of an epoch's end without its time; its own epoch only where nothing else is said.
fn recorded_result(result: &mut Value) {
    let Some(fields) = result.as_object_mut() else {
        return;
    };
    fields.remove("time_s");
    let action = fields
        .get("action")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !["inject_placeholder", "skip_first_epoch"].contains(&action) {
        fields.remove("epoch");
    }
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

fn entries(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Every file but the rollouts', which the toy environment of the record does not write, and our
/// log of events. The command that started the run wrote its configuration.
fn files(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for name in entries(&root.join(&folder)) {
            let path = if folder.is_empty() {
                name.clone()
            } else {
                format!("{folder}/{name}")
            };
            if root.join(&path).is_dir() {
                folders.push(path);
            } else if !["events.jsonl", "results.jsonl"].contains(&name.as_str()) {
                found.push(path);
            }
        }
    }
    if !found.is_empty() {
        found.push("config.json".to_owned());
    }
    found.sort();
    found
}

/// Scoring stops when the decision has fallen; the decision must be the one that full scoring gives.
#[test]
fn early_stopping_decides_the_same_with_less() {
    let file = super::vectors_folder().join("engine/trainer_trace.json");
    let Ok(text) = fs::read_to_string(file) else {
        return;
    };
    let vectors: Vec<Vector> = serde_json::from_str(&text).expect("a group is a list of vectors");
    let mut shares = Vec::new();
    for vector in &vectors {
        let (full, early) = (runs(vector, true), runs(vector, false));
        let decisions = |run: &Value| -> Vec<Value> {
            let records = run["history"].as_array().into_iter().flatten();
            records
                .map(|record| json!([record["action"], record["current_score"]]))
                .collect()
        };
        assert_eq!(decisions(&full), decisions(&early), "{}", vector.name);
        assert_eq!(full["skills"], early["skills"], "{}", vector.name);
        assert_eq!(full["best_skill"], early["best_skill"], "{}", vector.name);
        let attempts = |run: &Value, action: &str| -> usize {
            let of_action = |dir: &str| {
                let steps = run["history"].as_array().into_iter().flatten();
                let of_step = |record: &&Value| {
                    record["step"]
                        .as_u64()
                        .is_some_and(|step| dir == format!("steps/step_{step:04}/selection_eval"))
                };
                steps
                    .filter(of_step)
                    .any(|record| record["action"] == action)
            };
            let events = run["events"].as_array().into_iter().flatten();
            events
                .filter(|event| event["dir"].as_str().is_some_and(of_action))
                .filter_map(|event| event["item_ids"].as_array())
                .map(Vec::len)
                .sum()
        };
        let rejected = attempts(&full, "reject");
        if rejected > 0 {
            shares.push(attempts(&early, "reject") as f64 / rejected as f64);
        }
    }
    shares.sort_by(f64::total_cmp);
    if let Some(median) = shares.get(shares.len() / 2) {
        println!("attempts at rejected candidates: {median:.2} of all in the median");
        assert!(*median <= 0.6, "{median}");
    }
}
