use serde_json::json;

use super::*;
use crate::config::Origin;

const BENCHMARKS: &[Benchmark<'static>] = &[
    ("searchqa", &["max_turns", "judge_model"]),
    ("docvqa", &["image_detail"]),
];

fn built_in(overrides: &[&str]) -> Result<EngineConfig, ConfigError> {
    let loaded = layer::load_built_in(overrides)?;
    EngineConfig::check(&loaded, BENCHMARKS)
}

fn from_text(text: &str, overrides: &[&str]) -> Result<EngineConfig, ConfigError> {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("c.yaml");
    fs_err::write(&path, text).unwrap();
    EngineConfig::read(&path, overrides, BENCHMARKS)
}

#[test]
fn the_shipped_base_has_the_values_of_the_method() {
    let config = built_in(&["env.name=searchqa"]).unwrap();
    assert_eq!(config.train.num_epochs, 4);
    assert_eq!(config.train.train_size, None);
    assert_eq!(config.gradient.analyst_workers, 16);
    assert_eq!(config.optimizer.learning_rate, 4);
    assert_eq!(config.optimizer.lr_scheduler, LrScheduler::Cosine);
    assert!(config.optimizer.use_slow_update && config.evaluation.use_gate);
    assert_eq!(config.evaluation.gate_metric, GateMetric::Hard);
    assert_eq!(config.env.skill_init, None);
    assert_eq!(config.env.exec_timeout, 120);
    assert!(config.notices.is_empty());
    let models = config.models().unwrap();
    assert_eq!(models.optimizer.backend, Some(Backend::OpenaiCompatible));
    assert_eq!(models.optimizer.model, None);
}

#[test]
fn flat_files_are_understood_and_code_defaults_fill_in() {
    let config = from_text(
        "env: searchqa\nnum_epochs: 1\nbatch_size: 2\naccumulation: 1\nseed: 0\n\
         merge_batch_size: 8\nanalyst_workers: 2\nedit_budget: 1\nsel_env_num: 0\n\
         eval_test: false\nmax_turns: 7\nworkers: 3\n",
        &[],
    )
    .unwrap();
    assert_eq!(config.optimizer.lr_scheduler, LrScheduler::Constant);
    assert_eq!(config.optimizer.min_learning_rate, 1);
    assert_eq!(config.model.rewrite_reasoning_effort, "high");
    assert_eq!(config.models().unwrap().target.concurrency, Some(3));
    assert_eq!(config.to_json()["gate_metric"], json!("hard"));
}

#[test]
fn unknown_keys_name_their_line_and_the_nearest_right_one() {
    let base = "_base_: default\nenv:\n  name: searchqa\n";
    for (lines, part) in [
        (
            "train:\n  batchsize: 4\n",
            "c.yaml:5: unknown key `train.batchsize`; did you mean `train.batch_size`?",
        ),
        (
            "optimizer:\n  edit_budget: 4\n",
            "did you mean `optimizer.learning_rate`?",
        ),
        ("gradient:\n  seed: 4\n", "did you mean `train.seed`?"),
        ("batch_sise: 4\n", "did you mean `train.batch_size`?"),
        ("trian:\n  seed: 4\n", "did you mean `train`?"),
        ("zzz: 4\n", "c.yaml:4: unknown key `zzz`"),
    ] {
        let error = from_text(&format!("{base}{lines}"), &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
    }
    for (item, part) in [
        (
            "env.judge_modl=x",
            "--set env.judge_modl: unknown key `env.judge_modl`; did you mean `env.judge_model`?",
        ),
        ("env.image_detail=x", "unknown key `env.image_detail`"),
        ("train.seed =5", "did you mean `train.seed`?"),
    ] {
        let error = from_text(base, &[item]).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn wrong_types_ranges_and_names_are_errors_before_anything_happens() {
    for (item, part) in [
        (
            "train.batch_size=0",
            "`train.batch_size` is 0; it must be at least 1",
        ),
        ("train.seed=abc", "must be a whole number"),
        ("train.num_epochs=1.5", "must be a whole number"),
        ("gradient.merge_batch_size=1", "at least 2"),
        ("evaluation.gate_mixed_weight=2", "from 0 to 1"),
        ("evaluation.gate_metric=hrad", "did you mean `hard`?"),
        ("evaluation.use_gate=0", "must be true or false"),
        ("evaluation.use_gate=maybe", "must be true or false"),
        ("optimizer.skill_update_mode=pacth", "did you mean `patch`?"),
        (
            "optimizer.min_learning_rate=9",
            "must not be above learning_rate",
        ),
        ("env.split_ratio=7267", "like \"2:1:7\""),
        ("env.workers=0", "at least 1"),
        ("env.name=serchqa", "did you mean `searchqa`?"),
        (
            "env.name=",
            "`env.name` is not set: name the benchmark: searchqa, docvqa",
        ),
        ("train.seed=null", "`train.seed` is not set"),
        ("env.split_mode=split_dir", "`env.split_dir` is not set"),
    ] {
        let items = ["env.name=searchqa", item];
        let error = built_in(&items).unwrap_err().to_string();
        assert!(error.contains(part), "{item}: {error}");
    }
    let error = from_text(
        "_base_: default\nenv: {name: searchqa}\ntrain:\n  seed: [1]\n",
        &[],
    );
    match error.unwrap_err() {
        ConfigError::Value {
            origin: Origin::File { line, .. },
            ..
        } => assert_eq!(line, 4),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_without_the_shipped_base_says_what_is_missing() {
    let error = from_text("env:\n  name: searchqa\n", &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("`train.num_epochs` is not set"), "{error}");
    assert!(error.contains("_base_: default"), "{error}");
}

#[test]
fn a_retired_option_leaves_a_flat_file_flat() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("c.yaml");
    fs_err::write(&path, "env: searchqa\nbatch_size: 3\n").unwrap();
    let loaded = layer::load(&path, &["gradient.max_analyst_rounds=3"]).unwrap();
    assert!(!loaded.structured);
    assert_eq!(loaded.flat["env"], json!("searchqa"));
}

#[test]
fn retired_and_unused_keys_are_said_to_have_no_effect() {
    let items = [
        "env.name=searchqa",
        "gradient.max_analyst_rounds=3",
        "train.steps_per_epoch=9",
        "meta_edit_budget=2",
    ];
    let notices = built_in(&items).unwrap().notices.join("\n");
    for part in [
        "`gradient.max_analyst_rounds` is retired",
        "`train.steps_per_epoch` is accepted and has no effect",
        "`optimizer.meta_learning_rate`",
    ] {
        assert!(notices.contains(part), "{notices}");
    }
}

#[test]
fn the_record_of_a_run_holds_no_credential() {
    let items = [
        "env.name=searchqa",
        "model.azure_openai_api_key=verysecret",
        "model.minimax_api_key=0012",
    ];
    let record = built_in(&items).unwrap().to_json();
    assert_eq!(record["azure_openai_api_key"], json!("[redacted]"));
    assert_eq!(record["minimax_api_key"], json!("[redacted]"));
    assert_eq!(record["batch_size"], json!(40));
}

#[test]
fn backends_that_cannot_be_used_are_errors() {
    let models = |items: &[&str]| {
        let items: Vec<_> = ["env.name=searchqa"].iter().chain(items).copied().collect();
        built_in(&items).unwrap().models()
    };
    let error = models(&["model.backend=openai_compatable"])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("did you mean `openai_compatible`?"),
        "{error}"
    );
    let error = models(&["model.backend=claude"]).unwrap_err().to_string();
    assert!(
        error.contains("`claude_chat` is not part of this version"),
        "{error}"
    );
    let config = models(&["model.backend=compat", "optimizer_backend=openai_chat"]).unwrap();
    assert_eq!(config.optimizer.backend, Some(Backend::OpenaiCompatible));
    let config = models(&["model.backend=", "model.target=12345"]).unwrap();
    assert_eq!(config.target.backend, None);
    assert_eq!(config.target.model.as_deref(), Some("12345"));
}
