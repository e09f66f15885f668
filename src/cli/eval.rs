//! `eval`: score a skill document on a split.

use std::path::PathBuf;
use std::sync::Arc;

use skillopt_files::write_atomic_json;

use super::bench;
use super::context::Context;
use super::failure::{ExitStatus, Failure};
use super::flags::ConfigArgs;
use super::models;
use super::progress::{Progress, TrainingProgress};
use crate::bench::eval::{EvalSummary, Scope};
use crate::config::launch::Command;
use crate::trainer::evaluation::{Evaluator, FIRST_DRAW};
use crate::trainer::event::Observers;
use crate::trainer::run_dir::RunDir;

/// Score a skill document on a split of a benchmark.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  skillopt-sleep eval --config configs/searchqa.yaml --skill best_skill.md --split test"
)]
pub(super) struct Args {
    /// The skill document.
    #[arg(long, value_name = "FILE")]
    skill: PathBuf,
    /// `train`, `val`, `test` or `all`.
    #[arg(long, value_name = "NAME", default_value = "all")]
    split: String,
    #[command(flatten)]
    config: ConfigArgs,
    /// The summary as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    let skill_text = bench::read_skill(&args.skill)?;
    let plan = bench::plan(context, Command::Eval, &args.config)?;
    let config = &plan.config;
    let limit = config.evaluation.test_env_num.unwrap_or(0);
    let scope = Scope::parse(&args.split, limit).map_err(|error| Failure::situation(&error))?;
    for notice in &plan.notices {
        context.printer.note(notice);
    }
    let out_root = &plan.out_root;
    plan.keep_split()?;
    let models = models::build(&bench::models(config, &[])?, &out_root.join("calls.db"))
        .map_err(|error| models::failure(&error))?;
    let environment = bench::environment(&plan, Arc::clone(&models.target))?;
    let items = scope.items(&environment);
    let mut observers = Observers::default();
    observers.add(RunDir::open(out_root).map_err(|e| Failure::situation(&e))?);
    observers.add(TrainingProgress(Progress::new(
        context.printer.progress(),
        context.printer.is_quiet(),
    )));
    let evaluator = Evaluator {
        environment: &environment,
        observers: &observers,
        dir: ".",
    };
    let evaluation = evaluator
        .evaluate(&items, &skill_text, FIRST_DRAW)
        .await
        .map_err(|error| models::training_failure(&error, Some(&models)))?;
    observers.settle().map_err(|e| Failure::situation(&e))?;
    let skill = std::path::absolute(&args.skill).unwrap_or(args.skill);
    let summary = EvalSummary::of(&evaluation, skill, &args.split);
    write_atomic_json(&out_root.join("eval_summary.json"), &summary)
        .map_err(|e| Failure::situation(&e))?;
    if args.json {
        context.printer.json("skillopt-sleep.eval/1", &summary);
    } else {
        let number =
            |value: Option<f64>| value.map_or("—".to_owned(), |value| format!("{value:.4}"));
        context.printer.line(format!(
            "{}: hard {}, soft {} over {} of {} items",
            summary.split,
            number(summary.hard),
            number(summary.soft),
            summary.n_measured,
            summary.n_items
        ));
    }
    Ok(ExitStatus::Done)
}
