//! `data`: cut, check and put together benchmark data.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::context::Context;
use super::failure::{ExitStatus, Failure};
use crate::bench::check::{self, Finding};
use crate::bench::error::DataError;
use crate::bench::layout::{Counts, Rows};
use crate::bench::ratio::RatioSplit;
use crate::bench::searchqa::materialise::{DATASET, FIELDS, Manifest, Materialiser};
use crate::bench::split::SplitRatio;

/// Cut, check and put together benchmark data: folders train, val and test.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  skillopt-sleep data split questions.jsonl --ratio 2:1:7 --out data/mine\n  \
skillopt-sleep data check data/mine"
)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Cut one JSON or JSONL file into train, val and test.
    Split(SplitArgs),
    /// Look for everything that is wrong with split data; exit status 1 when there is something.
    Check(CheckArgs),
    /// Put a manifest of ids and a local copy of the data together.
    #[command(subcommand, alias = "materialise")]
    Materialize(Benchmark),
}

#[derive(Debug, clap::Args)]
struct SplitArgs {
    /// The file, or the folder that holds it.
    #[arg(value_name = "FILE")]
    data: PathBuf,
    /// Parts of train, val and test.
    #[arg(long, value_name = "T:V:E", default_value = "2:1:7")]
    ratio: String,
    /// Seeds the shuffle; the same file, ratio and seed always give the same split.
    #[arg(long, default_value_t = 42, allow_negative_numbers = true)]
    seed: i64,
    /// Where the folders are written.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// What was done as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct CheckArgs {
    /// The folder with train, val and test.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The findings as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Benchmark {
    /// SearchQA, whose released manifests hold ids alone.
    Searchqa(SearchqaArgs),
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  skillopt-sleep data materialize searchqa --source train.jsonl --source validation.jsonl"
)]
struct SearchqaArgs {
    /// The data: JSON or JSONL files (also `.jsonl.gz`), or folders of them; all of its splits.
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    source: Vec<PathBuf>,
    /// The manifest: folders train, val and test with ids.
    #[arg(long, value_name = "DIR", default_value = "data/searchqa_id_split")]
    manifest_dir: PathBuf,
    /// Where the folders are written.
    #[arg(long, value_name = "DIR", default_value = "data/searchqa_split")]
    output_dir: PathBuf,
    /// The data's name, for the record.
    #[arg(long, value_name = "NAME", default_value = DATASET)]
    dataset: String,
    /// What was done as JSON.
    #[arg(long)]
    json: bool,
}

/// What was written or found.
#[derive(Serialize)]
struct Report<'a> {
    dir: &'a Path,
    counts: Counts,
    ok: bool,
    findings: &'a [Finding],
}

pub(super) fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    match args.what {
        What::Split(args) => split(context, &args),
        What::Check(args) => Ok(check(context, &args)),
        What::Materialize(Benchmark::Searchqa(args)) => searchqa(context, &args),
    }
}

fn split(context: &Context, args: &SplitArgs) -> Result<ExitStatus, Failure> {
    let ratio = SplitRatio::parse(&args.ratio).map_err(|error| Failure::situation(&error))?;
    let split = RatioSplit {
        data_path: args.data.clone(),
        ratio,
        seed: args.seed,
    };
    let cut = split.cut().map_err(failure)?;
    let findings = check::check(&cut.rows);
    if let Some(fatal) = findings.iter().find(|finding| finding.fatal) {
        let fatal = fatal.message.clone();
        return Err(
            Failure::new(ExitStatus::Situation, format!("{fatal}; nothing was written"))
                .hint("give every item an id of its own, and more items or another ratio where a split stays empty"),
        );
    }
    cut.keep(&args.out).map_err(failure)?;
    written(
        context,
        &args.out,
        cut.manifest.counts,
        &findings,
        args.json,
        "data-split",
    );
    Ok(ExitStatus::Done)
}

fn searchqa(context: &Context, args: &SearchqaArgs) -> Result<ExitStatus, Failure> {
    let ids = Rows::read(&args.manifest_dir).map_err(failure)?;
    let mut materialiser = Materialiser::new(&ids).map_err(failure)?;
    for source in &args.source {
        materialiser.see_path(source).map_err(failure)?;
    }
    let rows = materialiser.finish().map_err(failure)?;
    let manifest = Manifest {
        source_manifest_dir: args.manifest_dir.display().to_string(),
        source_dataset: args.dataset.clone(),
        counts: rows.counts(),
        item_fields: FIELDS,
    };
    rows.write(&args.output_dir, &manifest).map_err(failure)?;
    let findings = check::check(&rows);
    written(
        context,
        &args.output_dir,
        manifest.counts,
        &findings,
        args.json,
        "data-materialize",
    );
    Ok(ExitStatus::Done)
}

fn check(context: &Context, args: &CheckArgs) -> ExitStatus {
    let (counts, findings) = check::check_dir(&args.dir);
    if args.json {
        report(
            context,
            "data-check",
            &args.dir,
            counts,
            findings.is_empty(),
            &findings,
        );
    } else {
        for finding in &findings {
            let weight = if finding.fatal { "error" } else { "doubt" };
            context
                .printer
                .line(format!("{weight}: {}", finding.message));
        }
        if findings.is_empty() {
            context.printer.line(format!(
                "{}: {}, nothing wrong",
                args.dir.display(),
                sizes(counts)
            ));
        } else {
            context.printer.note(format!(
                "{} findings in {}",
                findings.len(),
                args.dir.display()
            ));
        }
    }
    if findings.is_empty() {
        ExitStatus::Done
    } else {
        ExitStatus::Situation
    }
}

fn written(
    context: &Context,
    dir: &Path,
    counts: Counts,
    findings: &[Finding],
    json: bool,
    schema: &str,
) {
    if json {
        let ok = findings.is_empty();
        return report(context, schema, dir, counts, ok, findings);
    }
    let printer = context.printer;
    printer.line(format!("{}: {}", dir.display(), sizes(counts)));
    if !findings.is_empty() {
        let dir = dir.display();
        printer.note(format!(
            "{} things are doubtful; see `skillopt-sleep data check {dir}`",
            findings.len()
        ));
    }
}

fn report(
    context: &Context,
    name: &str,
    dir: &Path,
    counts: Counts,
    ok: bool,
    findings: &[Finding],
) {
    let report = Report {
        dir,
        counts,
        ok,
        findings,
    };
    context
        .printer
        .json(&format!("skillopt-sleep.{name}/1"), &report);
}

fn sizes(counts: Counts) -> String {
    let Counts { train, val, test } = counts;
    format!("{train} train, {val} val, {test} test")
}

fn failure(error: DataError) -> Failure {
    Failure::situation(&error)
}
