//! What a researcher does: train on a benchmark over HTTP, be interrupted, go on, evaluate.

use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;

use crate::machine::{Machine, data};
use crate::model_server::{Asked, ModelServer};

/// A target that answers in few words once the skill says so, and an optimizer that proposes this
/// first and something else afterwards. Replies depend on nothing but the request.
pub(crate) fn brief_answers(asked: &Asked) -> Result<String, u16> {
    if asked.system.contains("You improve a skill document") {
        let content = if asked.user.contains("- Answer in few words.") {
            format!("- Note {}.", asked.user.len() % 7)
        } else {
            "- Answer in few words.".to_owned()
        };
        return Ok(format!(
            r#"{{"batch_size": 4, "failure_summary": [], "patch": {{"reasoning": "r", "edits": [{{"op": "append", "content": "{content}"}}]}}}}"#
        ));
    }
    if asked.system.contains("Merge their patches") || asked.system.contains("Combine them") {
        return Ok("not JSON".to_owned());
    }
    if asked.system.contains("Choose the") {
        return Ok(r#"{"reasoning": "r", "selected_indices": [0, 1]}"#.to_owned());
    }
    let brief = asked.system.contains("- Answer in few words.");
    // The question's length decides which items are hard.
    let hard = asked.user.len().is_multiple_of(3);
    Ok(if brief && !hard {
        "<answer>gold</answer>".to_owned()
    } else {
        "<answer>a long story</answer>".to_owned()
    })
}

const CONFIG: &str = "_base_: default
model: {backend: openai_compatible, optimizer: fake-model, target: fake-model}
train: {num_epochs: 1, batch_size: 6}
gradient: {minibatch_size: 3, analyst_workers: 1}
optimizer: {learning_rate: 2, min_learning_rate: 1, use_slow_update: false, use_meta_skill: false}
evaluation: {eval_test: false}
env: {name: searchqa, split_mode: split_dir, split_dir: data, workers: 1}
";

/// SearchQA items whose gold answer is `gold`.
pub(crate) fn items(prefix: &str, count: usize) -> String {
    let rows: Vec<_> = (0..count)
        .map(|n| {
            serde_json::json!({
                "id": format!("{prefix}{n}"),
                "question": format!("What is item {prefix}{n}?{}", "x".repeat(n % 5)),
                "context": "[DOC] [TLE] t [PAR] gold",
                "answers": ["gold"],
            })
        })
        .collect();
    Value::Array(rows).to_string()
}

fn benchmark() -> Machine {
    benchmark_of(24, 8, 4)
}

/// A machine with a benchmark of so many items.
pub(crate) fn benchmark_of(train: usize, selection: usize, test: usize) -> Machine {
    let machine = Machine::new();
    for (split, count) in [("train", train), ("val", selection), ("test", test)] {
        machine.write(
            &format!("home/data/{split}/items.json"),
            &items(split, count),
        );
    }
    machine.write("home/run.yaml", CONFIG);
    machine
}

pub(crate) async fn with_model(machine: &mut Machine) -> ModelServer {
    let server = ModelServer::start(brief_answers).await;
    machine.set("OPENAI_COMPATIBLE_BASE_URL", &server.url());
    machine.set("OPENAI_COMPATIBLE_API_KEY", "test-key");
    server
}

/// A run's history without its times.
pub(crate) fn history(machine: &Machine, run: &str) -> Value {
    let text = std::fs::read_to_string(machine.path(&format!("home/{run}/history.json"))).unwrap();
    let mut history: Value = serde_json::from_str(&text).unwrap();
    for record in history.as_array_mut().unwrap() {
        let record = record.as_object_mut().unwrap();
        record.remove("timing");
        record.remove("wall_time_s");
    }
    history
}

pub(crate) fn best_skill(machine: &Machine, run: &str) -> String {
    std::fs::read_to_string(machine.path(&format!("home/{run}/best_skill.md"))).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_trains_and_is_summed_up() {
    let mut machine = benchmark();
    let _server = with_model(&mut machine).await;
    let summary = machine.json(&[
        "train",
        "--config",
        "run.yaml",
        "--out-root",
        "run",
        "--json",
    ]);
    assert_eq!(summary["total_steps"], 4);
    assert!(summary["total_accepts"].as_u64().unwrap() >= 1, "{summary}");
    assert!(best_skill(&machine, "run").contains("- Answer in few words."));
    let config = std::fs::read_to_string(machine.path("home/run/config.json")).unwrap();
    assert!(!config.contains("test-key"));
}

/// Killed twenty times at random points, a run ends like an undisturbed one, and no call that was
/// answered is made again.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_killed_twenty_times_ends_like_an_undisturbed_one() {
    let mut machine = benchmark();
    let server = with_model(&mut machine).await;
    machine.ok(&["train", "--config", "run.yaml", "--out-root", "whole"]);
    let mut expected = server.answered();

    let args = ["train", "--config", "run.yaml", "--out-root", "killed"];
    let total = expected.len();
    // A fixed seed: a failure can be repeated.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let answers = (random >> 33) as usize % (total / 12);
        let (told, stalled) = channel();
        server.stall_after(answers, told);
        let mut child = machine.command().args(args).spawn().unwrap();
        stalled.recv_timeout(Duration::from_secs(60)).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    machine.ok(&args);

    let mut answered = server.answered().split_off(total);
    answered.sort();
    expected.sort();
    assert_eq!(
        answered.len(),
        expected.len(),
        "calls were repeated or lost"
    );
    assert_eq!(answered, expected);
    assert_eq!(history(&machine, "killed"), history(&machine, "whole"));
    assert_eq!(
        best_skill(&machine, "killed"),
        best_skill(&machine, "whole")
    );
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_says_that_the_same_command_goes_on() {
    let mut machine = benchmark();
    let server = with_model(&mut machine).await;
    let (told, stalled) = channel();
    server.stall_after(3, told);
    let child = machine
        .command()
        .args(["train", "--config", "run.yaml", "--out-root", "run"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    stalled.recv_timeout(Duration::from_secs(60)).unwrap();
    let signalled = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(signalled.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the same command goes on"), "{said}");
    machine.ok(&["train", "--config", "run.yaml", "--out-root", "run"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_configuration_is_refused_with_what_changed() {
    let mut machine = benchmark();
    let _server = with_model(&mut machine).await;
    let args = ["train", "--config", "run.yaml", "--out-root", "run"];
    machine.ok(&args);
    let changed = [&args[..], &["--set", "train.batch_size=5"]].concat();
    let ran = machine.run(&changed);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("batch_size (6 → 5)"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--resume=force"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_is_scored_on_a_split() {
    let mut machine = benchmark();
    let _server = with_model(&mut machine).await;
    machine.write("home/skill.md", "- Answer in few words.\n");
    let args = [
        "eval",
        "--config",
        "run.yaml",
        "--skill",
        "skill.md",
        "--split",
        "val",
        "--out-root",
        "scored",
        "--json",
    ];
    let summary = machine.json(&args);
    assert_eq!(summary["n_items"], 8);
    assert!(summary["hard"].as_f64().unwrap() > 0.0, "{summary}");
    assert!(machine.path("home/scored/eval_summary.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_stops_the_run_and_a_larger_one_goes_on() {
    let mut machine = benchmark();
    let server = with_model(&mut machine).await;
    let script = "rules: []\ndefault: \"<answer>gold</answer>\"\n";
    machine.write("home/script.yaml", script);
    let ran = machine.run(&[
        "train",
        "--config",
        "run.yaml",
        "--out-root",
        "run",
        "--budget",
        "calls=10",
    ]);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(server.answered().len() <= 10);
    machine.ok(&["train", "--config", "run.yaml", "--out-root", "run"]);
}

#[test]
fn mistakes_in_the_configuration_are_named() {
    let machine = benchmark();
    for (args, parts) in [
        (
            vec!["--set", "train.batch_sise=5"],
            vec!["batch_sise", "batch_size"],
        ),
        (
            vec!["--set", "train.batch_size"],
            vec!["train.batch_size", "="],
        ),
        (
            vec!["--set", "train.batch_size=many"],
            vec!["batch_size", "many"],
        ),
        (vec!["--set", "env.split_dir=nowhere"], vec!["nowhere"]),
    ] {
        let all = [
            &["train", "--config", "run.yaml", "--out-root", "run"][..],
            &args,
        ]
        .concat();
        let ran = machine.run(&all);
        assert_eq!(ran.code, Some(1), "{args:?}: {}", ran.stderr);
        for part in parts {
            assert!(ran.stderr.contains(part), "{args:?}: {}", ran.stderr);
        }
    }
    machine.write("home/a.yaml", "_base_: b.yaml\n");
    machine.write("home/b.yaml", "_base_: a.yaml\n");
    let ran = machine.run(&["train", "--config", "a.yaml"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("a.yaml") && ran.stderr.contains("b.yaml"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_run_is_planned_without_a_call() {
    let machine = benchmark();
    let ran = machine.ok(&[
        "train",
        "--config",
        "run.yaml",
        "--out-root",
        "run",
        "--dry-run",
    ]);
    assert!(
        ran.stdout.contains("24 train, 8 selection, 4 test"),
        "{}",
        ran.stdout
    );
    assert!(!machine.path("home/run").exists());
}

#[test]
fn the_sample_data_can_be_loaded() {
    let machine = benchmark();
    let split_dir = format!("env.split_dir={}", data("searchqa").display());
    machine.ok(&[
        "train",
        "--config",
        "run.yaml",
        "--set",
        &split_dir,
        "--dry-run",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_with_one_cache_ask_for_each_result_once() {
    let mut machine = benchmark();
    let server = with_model(&mut machine).await;
    let cache = "evaluation.result_cache=results.db";
    let run = |name| {
        [
            "train",
            "--config",
            "run.yaml",
            "--out-root",
            name,
            "--set",
            cache,
            "--json",
        ]
    };
    let first = machine.json(&run("one"));
    assert_eq!(first["target_calls_saved"]["cache"], 0);
    let asked = server.answered().len();

    let second = machine.json(&run("two"));
    let target_calls = |summary: &Value| summary["costs"]["target"]["rollout"]["calls"].as_u64();
    assert_eq!(target_calls(&second), Some(0));
    assert_eq!(
        second["target_calls_saved"]["cache"].as_u64(),
        target_calls(&first)
    );
    let optimizer_alone = server.answered().split_off(asked);
    assert!(optimizer_alone.iter().all(|body| body.contains("You improve a skill document") || !body.contains("Question")));
    assert_eq!(best_skill(&machine, "one"), best_skill(&machine, "two"));

    // `eval` of a skill that the gate has scored needs no model.
    let asked = server.answered().len();
    let skill = machine.path("home/two/best_skill.md");
    machine.ok(&[
        "eval",
        "--config",
        "run.yaml",
        "--skill",
        &skill.display().to_string(),
        "--split",
        "val",
        "--out-root",
        "scored",
        "--set",
        cache,
    ]);
    assert_eq!(server.answered().len(), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_from_a_folder_are_used_and_remembered() {
    let mut machine = benchmark();
    let server = with_model(&mut machine).await;
    machine.write("home/prompts/searchqa_system.md", "Answer like an oracle.");
    let args = [
        "train",
        "--config",
        "run.yaml",
        "--out-root",
        "run",
        "--set",
        "optimizer.prompts_dir=prompts",
    ];
    machine.ok(&args);
    assert!(
        server
            .answered()
            .iter()
            .any(|body| body.contains("Answer like an oracle."))
    );

    machine.write("home/prompts/searchqa_system.md", "Answer like a friend.");
    let ran = machine.run(&args);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("made with something else: the prompts"),
        "{}",
        ran.stderr
    );

    machine.write("home/prompts/analist_error.md", "x");
    let ran = machine.run(&args);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("analist_error.md"), "{}", ran.stderr);
}
