//! The groups about configuration: files and overrides, the command lines of training and
//! evaluation, roles, names.

use std::path::Path;

use clap::Parser;
use serde_json::{Map, Value, json};

use skillopt_sleep::bench::dataset::train_size;
use skillopt_sleep::bench::eval::{DEFAULT_SEED, EvalSummary, Scope};
use skillopt_sleep::cli::ConfigArgs;
use skillopt_sleep::config::launch::{self, Command, Launch, Request, WarningKind};
use skillopt_sleep::config::modes::{LrControl, Mode, PairPolicy, UpdateMode};
use skillopt_sleep::config::{layer, overrides, redact, roles};
use skillopt_sleep::trainer::environment::{Environment, Item, Outcome, Rollout, Split};
use skillopt_sleep::trainer::evaluation::Evaluation;
use skillopt_sleep::trainer::run_dir::path_component;

use super::data::folder_of;
use super::engine::{refused, text, texts};
use super::{Group, Vector, group};

pub(super) const GROUPS: &[Group] = &[
    group("engine/config_load", config_load),
    group("engine/train_cli", train_cli),
    group("engine/eval_only", eval_only),
    group("engine/role_backends", role_backends),
    group("engine/mode_names", mode_names),
];

fn config_load(vector: &Vector) -> Value {
    let input = &vector.input;
    if input["fn"] == "cast_value" {
        let value = overrides::cast(&text(input, "text"));
        let kind = match &value {
            Value::Bool(_) => "bool",
            Value::Number(number) if number.is_f64() => "float",
            Value::Number(_) => "int",
            _ => "str",
        };
        return json!({"value": value, "type": kind});
    }
    let folder = folder_of(&input["files"]);
    let entry = folder.path().join(text(input, "entry"));
    match layer::load(&entry, &texts(&input["overrides"])) {
        Ok(loaded) => json!({
            "structured": loaded.structured, "merged": loaded.merged, "flat": loaded.flat,
        }),
        Err(error) => refused(error),
    }
}

#[derive(Debug, Parser)]
struct Train {
    #[arg(long)]
    config: std::path::PathBuf,
    #[command(flatten)]
    args: ConfigArgs,
}

#[derive(Debug, Parser)]
struct Eval {
    #[arg(long)]
    config: std::path::PathBuf,
    #[arg(long)]
    skill: std::path::PathBuf,
    #[arg(long, default_value = "all")]
    split: String,
    #[command(flatten)]
    args: ConfigArgs,
}

const STAMP: &str = "YYYYmmdd_HHMMSS";

fn settle(command: Command, config: &Path, args: &ConfigArgs) -> Result<Launch, Value> {
    launch::settle(&Request {
        command,
        config,
        overrides: &args.overrides(),
        flags: args.flags(),
        out_root: args.out_root.as_deref(),
        stamp: STAMP,
    })
    .map_err(refused)
}

/// The command line with the vector's folder in it.
fn argv(input: &Value, folder: &Path) -> Vec<String> {
    let here = folder.display().to_string();
    let given = texts(&input["argv"])
        .into_iter()
        .map(|arg| arg.replace("{D}", &here));
    std::iter::once("skillopt".to_owned())
        .chain(given)
        .collect()
}

fn train_cli(vector: &Vector) -> Value {
    let folder = folder_of(&vector.input["files"]);
    let parsed = match Train::try_parse_from(argv(&vector.input, folder.path())) {
        Ok(parsed) => parsed,
        Err(error) => return refused(error.kind()),
    };
    let launch = match settle(Command::Train, &parsed.config, &parsed.args) {
        Ok(launch) => launch,
        Err(error) => return error,
    };
    let name = launch
        .out_root
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut flat = launch.loaded.flat.clone();
    flat.as_object_mut().expect("an object").remove("out_root");
    let kinds: Vec<&str> = launch
        .warnings
        .iter()
        .map(|warning| match warning.kind {
            WarningKind::Retired => "FutureWarning",
            WarningKind::Credential => "DeprecationWarning",
        })
        .collect();
    json!({
        "flat": flat,
        "out_root_basename_prefix": name.strip_suffix(&format!("_{STAMP}")).unwrap_or(&name),
        "warning_kinds": kinds,
    })
}

/// An item passes when the skill has what it needs.
struct Toy([Vec<Item>; 3]);

impl Environment for Toy {
    fn name(&self) -> &str {
        "toy"
    }

    fn items(&self, split: Split) -> &[Item] {
        match split {
            Split::Train => &self.0[0],
            Split::Selection => &self.0[1],
            Split::Test => &self.0[2],
        }
    }

    async fn attempt(&self, item: &Item, skill: &str, _sample: &str) -> Rollout {
        let hard = f64::from(u8::from(skill.contains(&text(&item.payload, "needs"))));
        let mut rollout = Rollout::unusable(item, "");
        rollout.outcome = Outcome::Measured { hard, soft: 0.5 };
        rollout
    }
}

fn eval_only(vector: &Vector) -> Value {
    let input = &vector.input;
    let folder = folder_of(&json!({"c.yaml": input["config"]}));
    if let Some(skill) = input["skill"].as_str() {
        std::fs::write(folder.path().join("s.md"), skill).expect("a file");
    }
    match evaluated(input, folder.path()) {
        Ok(result) => result,
        Err(error) => error,
    }
}

fn evaluated(input: &Value, folder: &Path) -> Result<Value, Value> {
    let parsed =
        Eval::try_parse_from(argv(input, folder)).map_err(|error| refused(error.kind()))?;
    let launch = settle(Command::Eval, &parsed.config, &parsed.args)?;
    let skill = std::fs::read_to_string(&parsed.skill).map_err(refused)?;
    let skill = skill.replace("\r\n", "\n").replace('\r', "\n");
    let flat = &launch.loaded.flat;
    let limit = flat["test_env_num"].as_u64().unwrap_or(0);
    let scope =
        Scope::parse(&parsed.split, usize::try_from(limit).expect("a number")).map_err(refused)?;
    let toy = Toy(["train", "val", "test"].map(|name| {
        let rows = input["splits"][name].as_array().into_iter().flatten();
        rows.map(|row| Item {
            id: text(row, "id"),
            payload: row.clone(),
        })
        .collect()
    }));
    let seed = flat["seed"].as_i64().unwrap_or(DEFAULT_SEED);
    let calls: Vec<Value> = scope
        .parts()
        .into_iter()
        .map(|(split, limit)| match scope {
            // The name is recorded as it was given.
            Scope::One { .. } => json!([limit, parsed.split, seed]),
            Scope::All => json!([limit, split.to_string(), seed]),
        })
        .collect();
    let items = scope.items(&toy);
    let attempts = items.iter().map(|item| toy.attempt(item, &skill, "eval"));
    let rollouts = futures_join(attempts);
    let evaluation = Evaluation { rollouts };
    let summary = EvalSummary::of(&evaluation, parsed.skill.clone(), &parsed.split);
    let mut summary = serde_json::to_value(summary).expect("JSON");
    let fields = summary.as_object_mut().expect("an object");
    fields.remove("n_measured");
    fields.insert(
        "skill".into(),
        json!(
            parsed
                .skill
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
        ),
    );
    let keys = [
        "env",
        "model_backend",
        "optimizer_backend",
        "target_backend",
        "optimizer_model",
        "target_model",
        "seed",
        "test_env_num",
        "split_dir",
        "batch_size",
    ];
    let subset: Map<String, Value> = keys
        .iter()
        .map(|key| ((*key).to_owned(), flat[*key].clone()))
        .collect();
    let here = std::env::current_dir().expect("a folder");
    let dir = [folder, &here]
        .iter()
        .find_map(|root| launch.out_root.strip_prefix(root).ok());
    Ok(json!({
        "rec": {
            "env_calls": calls, "setup": true, "cfg_subset": subset,
            "rollout_ids": items.iter().map(|item| &item.id).collect::<Vec<_>>(),
            "skill_text": skill,
        },
        "outputs": [{"dir": dir.map(|dir| dir.display().to_string()), "summary": summary}],
    }))
}

/// Runs futures that never wait.
fn futures_join(attempts: impl Iterator<Item = impl Future<Output = Rollout>>) -> Vec<Rollout> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    attempts.map(|attempt| runtime.block_on(attempt)).collect()
}

fn role_backends(vector: &Vector) -> Value {
    let input = &vector.input;
    let (optimizer, target) = roles::resolve(
        input["backend"].as_str().unwrap_or_default(),
        input["optimizer_backend"].as_str(),
        input["target_backend"].as_str(),
    );
    json!({"optimizer_backend": optimizer, "target_backend": target})
}

fn name_of<M: Mode + std::fmt::Display>(input: &Value) -> Result<M, Value> {
    M::parse(input["value"].as_str().unwrap_or_default()).map_err(refused)
}

fn mode_names(vector: &Vector) -> Value {
    let input = &vector.input;
    let value = |name: Result<String, Value>| {
        name.map_or_else(|error| error, |name| json!({"value": name}))
    };
    match input["fn"].as_str() {
        Some("longitudinal_pair_policy") => {
            value(name_of::<PairPolicy>(input).map(|mode| mode.to_string()))
        }
        Some("lr_control_mode") => value(name_of::<LrControl>(input).map(|mode| mode.to_string())),
        Some("skill_update_mode") => match name_of::<UpdateMode>(input) {
            Ok(mode) => json!({
                "mode": mode.to_string(),
                "payload_key": mode.payload_key(),
                "is_rewrite": mode == UpdateMode::RewriteFromSuggestions,
                "is_full_rewrite": mode == UpdateMode::FullRewriteMinibatch,
            }),
            Err(error) => error,
        },
        Some("safe_pair_id") => json!({"value": path_component(&text(input, "value"))}),
        Some("resolve_train_size") => {
            let configured = match &input["configured"] {
                Value::String(text) => match text.trim().parse() {
                    Ok(size) => Some(size),
                    Err(error) => return refused(error),
                },
                other => other
                    .as_i64()
                    .or_else(|| other.as_f64().map(|size| size as i64)),
            };
            let available = input["loader_size"]
                .as_u64()
                .and_then(|size| usize::try_from(size).ok());
            match train_size(configured, available) {
                Ok(size) => json!({"value": size}),
                Err(error) => refused(error),
            }
        }
        Some("redact_config") => json!({"config": redact::redact(&input["config"])}),
        other => panic!("no such function: {other:?}"),
    }
}
