//! `eval`: score a skill document on a split.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use skillopt_files::write_atomic_json;

use super::bench;
use super::context::Context;
use super::failure::{ExitStatus, Failure};
use super::models;
use super::progress::{Progress, TrainingProgress};
use crate::trainer::environment::{Environment as _, Item, Split};
use crate::trainer::evaluation::Evaluator;
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
    /// Where rollouts and summary are written; also `--out_root`.
    #[arg(long, alias = "out_root", value_name = "DIR")]
    out_root: Option<PathBuf>,
    #[command(flatten)]
    overrides: bench::Overrides,
    /// The summary as JSON.
    #[arg(long)]
    json: bool,
}

/// `eval_summary.json` (engine 24), with what was not measured.
#[derive(Serialize)]
struct Summary {
    skill: PathBuf,
    split: String,
    n_items: usize,
    n_measured: usize,
    hard: Option<f64>,
    soft: Option<f64>,
}

pub(super) async fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    let config = bench::config(context, &args.overrides, args.out_root.as_deref())?;
    let skill_text = bench::read_skill(&args.skill)?;
    let out_root = bench::out_root(&config);
    let dataset = bench::dataset(&config)?;
    let models = models::build(&bench::models(&config, &[])?, &out_root.join("calls.db"))
        .map_err(|error| models::failure(&error))?;
    let environment = bench::environment(&config, dataset, Arc::clone(&models.target))?;
    let items = items(
        &environment,
        &args.split,
        config.evaluation.test_env_num.unwrap_or(0),
    )?;
    let mut observers = Observers::default();
    observers.add(RunDir::open(&out_root).map_err(|e| Failure::situation(&e))?);
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
        .evaluate(&items, &skill_text, "eval")
        .await
        .map_err(|error| models::training_failure(&error, Some(&models)))?;
    let scores = evaluation.scores();
    let summary = Summary {
        skill: std::path::absolute(&args.skill).unwrap_or(args.skill),
        split: args.split,
        n_items: items.len(),
        n_measured: evaluation.measured(),
        hard: scores.map(|s| s.hard),
        soft: scores.map(|s| s.soft),
    };
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

fn items(
    environment: &crate::bench::searchqa::SearchQa,
    split: &str,
    limit: usize,
) -> Result<Vec<Item>, Failure> {
    if split == "all" {
        let splits = [Split::Train, Split::Selection, Split::Test];
        return Ok(splits
            .iter()
            .flat_map(|split| environment.items(*split))
            .cloned()
            .collect());
    }
    let split = Split::parse(split).ok_or_else(|| {
        Failure::new(ExitStatus::Situation, format!("`{split}` is no split"))
            .hint("use train, val (valid_seen, selection), test (valid_unseen) or all")
    })?;
    let items = environment.items(split);
    let count = if limit == 0 {
        items.len()
    } else {
        limit.min(items.len())
    };
    Ok(items.iter().take(count).cloned().collect())
}
