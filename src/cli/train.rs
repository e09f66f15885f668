//! `train`: train a skill document on a benchmark.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use skillopt_files::{Lock, Options, read_text, write_atomic, write_atomic_json};

use super::bench;
use super::context::Context;
use super::failure::{ExitStatus, Failure};
use super::flags::ConfigArgs;
use super::models;
use super::progress::{Progress, TrainingProgress};
use super::results;
use crate::bench::dataset::Dataset;
use crate::bench::report;
use crate::config::EngineConfig;
use crate::config::launch::Command;
use crate::model::Models;
use crate::trainer::event::Observers;
use crate::trainer::prompt::Prompts;
use crate::trainer::run_dir::RunDir;
use crate::trainer::settings::Settings;
use crate::trainer::state::State;
use crate::trainer::{Trained, Trainer};

/// Train a skill document on a benchmark, gated on a selection split.
///
/// Killed or interrupted, the same command goes on where it was; no finished model call is made again.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  skillopt-sleep train --config configs/searchqa.yaml --out-root runs/first \\\n    \
--set env.split_dir=data/searchqa --set train.num_epochs=1"
)]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Go on with a run although its configuration changed (`--resume=force`).
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    resume: Option<Resume>,
    /// Hard limits, such as `tokens=200000,usd=1,calls=300,time=45m`.
    #[arg(long, value_name = "LIMITS")]
    budget: Vec<String>,
    /// Load, check, show what would be done; no model call.
    #[arg(long)]
    dry_run: bool,
    /// The summary as JSON; with `--dry-run` the estimate.
    #[arg(long)]
    json: bool,
}

/// How to treat a run directory that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Resume {
    /// Go on when the configuration is the same.
    Auto,
    /// Go on in any case.
    Force,
}

pub(super) async fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    let plan = bench::plan(context, Command::Train, &args.config)?;
    let settings = bench::settings(&plan.config);
    for notice in &plan.notices {
        context.printer.note(notice);
    }
    if args.dry_run {
        return dry_run(context, &args, &plan, &settings);
    }
    let initial = bench::initial_skill(&plan.config)?;
    let out_root = plan.out_root.clone();
    skillopt_files::create_private_dir(&out_root).map_err(|e| Failure::situation(&e))?;
    let _lock = Lock::acquire(&out_root.join(".lock"), "a training run")
        .map_err(|e| Failure::situation(&e))?;
    let config = &plan.config;
    same_configuration(&out_root, config, args.resume)?;
    plan.keep_split()?;
    plan.same_data(args.resume == Some(Resume::Force))?;
    let run = RunDir::open(&out_root).map_err(|e| Failure::situation(&e))?;
    let state = run
        .load()
        .map_err(|e| Failure::situation(&e))?
        .unwrap_or_else(|| State::new(initial));
    let models = models::build(
        &bench::models(config, &args.budget)?,
        &out_root.join("calls.db"),
    )
    .map_err(|error| models::failure(&error))?;
    write_atomic_json(&out_root.join("config.json"), &config.to_json())
        .map_err(|e| Failure::situation(&e))?;
    let trained = train(
        context,
        config,
        plan.dataset.clone(),
        settings,
        run,
        &models,
        state,
    )
    .await?;
    let page = report::render(
        &config.env.name,
        &trained.state,
        &trained.summary,
        &config.to_json(),
    )
    .map_err(|error| Failure::of(ExitStatus::Bug, &error))?;
    write_atomic(
        &out_root.join("report.html"),
        page.as_bytes(),
        Options::default(),
    )
    .map_err(|e| Failure::situation(&e))?;
    if args.json {
        context
            .printer
            .json("skillopt-sleep.train/1", &trained.summary);
    } else {
        results::results(context.printer, &trained.summary, &out_root);
    }
    if models.are_scripted() {
        context
            .printer
            .note("no real model was called: the replies came from a script");
    }
    Ok(ExitStatus::Done)
}

/// Shows what would be done and what it would cost.
fn dry_run(
    context: &Context,
    args: &Args,
    plan: &bench::Plan,
    settings: &Settings,
) -> Result<ExitStatus, Failure> {
    let skill = bench::initial_skill(&plan.config)?;
    let estimate = bench::estimate(plan, settings, &skill)?;
    if args.json {
        context
            .printer
            .json("skillopt-sleep.train-plan/1", &estimate);
    } else {
        results::plan(
            context.printer,
            &plan.config.env.name,
            &estimate,
            &plan.out_root,
        );
    }
    Ok(ExitStatus::Done)
}

async fn train(
    context: &Context,
    config: &EngineConfig,
    dataset: Dataset,
    settings: Settings,
    run: RunDir,
    models: &Models,
    state: State,
) -> Result<Trained, Failure> {
    let failed = |error| models::training_failure(&error, Some(models));
    let environment = bench::environment(config, dataset, Arc::clone(&models.target))?;
    let mut observers = Observers::default();
    observers.add(run);
    observers.add(TrainingProgress(Progress::new(
        context.printer.progress(),
        context.printer.is_quiet(),
    )));
    let trainer = Trainer::new(
        &environment,
        Arc::clone(&models.optimizer),
        Arc::clone(&models.meter),
        Arc::new(Prompts::load(None).map_err(failed)?),
        settings,
        observers,
    )
    .map_err(failed)?;
    trainer.train(state).await.map_err(failed)
}

/// A run directory was made with one configuration; another one would mix two experiments.
fn same_configuration(
    out_root: &Path,
    config: &EngineConfig,
    resume: Option<Resume>,
) -> Result<(), Failure> {
    let path = out_root.join("config.json");
    if !path.exists() || resume == Some(Resume::Force) {
        return Ok(());
    }
    let text = read_text(&path, 16 << 20).map_err(|e| Failure::situation(&e))?;
    let before: Value = serde_json::from_str(&text).map_err(|e| Failure::situation(&e))?;
    let changed = changed_keys(&before, &config.to_json());
    if changed.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        ExitStatus::Situation,
        format!(
            "{} was made with another configuration: {}",
            out_root.display(),
            changed.join(", ")
        ),
    )
    .hint("use another --out-root, or --resume=force to go on with the new configuration"))
}

/// The keys whose values differ, each with both.
fn changed_keys(before: &Value, after: &Value) -> Vec<String> {
    let empty = serde_json::Map::new();
    let before = before.as_object().unwrap_or(&empty);
    let after = after.as_object().unwrap_or(&empty);
    // A run directory may be moved.
    let mut keys: Vec<&String> = before
        .keys()
        .chain(after.keys())
        .filter(|key| *key != "out_root")
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
        .filter(|key| before.get(*key) != after.get(*key))
        .map(|key| {
            let show = |value: Option<&Value>| value.map_or("absent".to_owned(), Value::to_string);
            format!(
                "{key} ({} → {})",
                show(before.get(key)),
                show(after.get(key))
            )
        })
        .collect()
}
