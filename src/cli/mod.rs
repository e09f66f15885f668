//! The command line: one file a subcommand, each with its arguments, one call into the program, and
//! the rendering of what came back.

mod adopt;
mod bench;
mod context;
mod data;
mod demo;
mod eval;
mod failure;
mod flags;
mod harvest;
mod impact;
mod log;
mod logging;
mod models;
mod notices;
mod output;
mod progress;
mod provenance;
mod results;
mod revert;
mod review;
mod run;
mod selection;
mod selftest;
pub mod shell;
mod staged;
mod status;
mod train;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub use failure::{ExitStatus, Failure};
pub use flags::ConfigArgs;
use output::{ColorChoice, Printer};

use crate::config::Paths;

/// Learns from the coding agents on this machine while nobody uses them.
///
/// Reads their session logs, mines tasks, replays them against candidate edits of the skill documents
/// that the agents read, keeps only edits that a held-out gate accepts, and stages them for you to
/// review. Nothing is changed before you adopt it.
#[derive(Debug, Parser)]
#[command(
    name = "skillopt-sleep",
    version,
    arg_required_else_help = true,
    max_term_width = 100
)]
#[command(after_help = "Start with: skillopt-sleep demo")]
pub struct Cli {
    /// More detail in the log; twice for everything.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    /// Only data and errors.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// When to use colour.
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    color: ColorChoice,
    /// Configuration file; for `train` and `eval` the run's, else the program's.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one night now.
    Run(run::Args),
    /// Read session logs and show what is there.
    Harvest(harvest::Args),
    /// Decide on what is staged.
    Review(review::Args),
    /// Apply accepted proposals.
    Adopt(adopt::Args),
    /// Undo an adoption.
    Revert(revert::Args),
    /// Last night, and what waits.
    Status(status::Args),
    /// Nights and their events.
    Log(log::Args),
    /// Train a skill document on a benchmark.
    Train(train::Args),
    /// Score a skill document on a split.
    Eval(eval::Args),
    /// Cut, check and put together benchmark data.
    Data(data::Args),
    /// Check by simulation what the program promises.
    Selftest(selftest::Args),
    /// A whole night on bundled sessions with a scripted model: no key, no network.
    Demo(demo::Args),
}

impl Cli {
    /// Starts logging for this command.
    pub fn start_logging(&self) {
        let level = match (self.quiet, self.verbose) {
            (true, _) => "error",
            (_, 0) => "warn",
            (_, 1) => "info",
            (_, 2) => "debug",
            _ => "trace",
        };
        let paths = match self.command {
            Command::Run(_) => Paths::find(self.config.as_deref(), &models::env).ok(),
            _ => None,
        };
        logging::start(level, paths.map(|paths| paths.logs()).as_deref());
    }

    /// Runs the command.
    ///
    /// # Errors
    /// [`Failure`], with the exit status that belongs to it.
    pub async fn run(self) -> Result<ExitStatus, Failure> {
        let context = context::Context::new(self.config, Printer::new(self.quiet, self.color))?;
        match self.command {
            Command::Run(args) => run::run(&context, args).await,
            Command::Harvest(args) => harvest::run(&context, args),
            Command::Review(args) => review::run(&context, args),
            Command::Adopt(args) => adopt::run(&context, args),
            Command::Revert(args) => revert::run(&context, args),
            Command::Status(args) => status::run(&context, args),
            Command::Log(args) => log::run(&context, args),
            Command::Train(args) => train::run(&context, args).await,
            Command::Eval(args) => eval::run(&context, args).await,
            Command::Data(args) => data::run(&context, args),
            Command::Selftest(args) => selftest::run(&context, args),
            Command::Demo(args) => demo::run(&context, args).await,
        }
    }
}
