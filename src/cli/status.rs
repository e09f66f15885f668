//! `status`: the last night, and what waits.

use serde::Serialize;
use serde_json::Value;
use skillopt_staging::{Ledger, Status, one_line};

use super::context::Context;
use super::failure::{ExitStatus, Failure};
use super::staged;
use crate::store::{NightRow, Store};

/// The last night and its outcome, and what waits for review.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  skillopt-sleep status --json")]
pub(super) struct Args {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Standing {
    state: std::path::PathBuf,
    config: std::path::PathBuf,
    last_night: Option<NightRow>,
    proposals: Vec<ProposalLine>,
    adoptions: Vec<AdoptionLine>,
    problems: Vec<String>,
}

#[derive(Serialize)]
struct ProposalLine {
    id: String,
    night: String,
    status: Status,
    document: std::path::PathBuf,
    baseline: Option<f64>,
    candidate: Option<f64>,
}

#[derive(Serialize)]
struct AdoptionLine {
    id: String,
    kind: skillopt_staging::OperationKind,
    at: jiff::Timestamp,
    reverts: Option<String>,
    in_force: bool,
    documents: Vec<std::path::PathBuf>,
}

pub(super) fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    let standing = standing(context)?;
    if args.json {
        context.printer.json("skillopt-sleep.status/1", &standing);
    } else {
        show(context, &standing);
    }
    Ok(ExitStatus::Done)
}

fn standing(context: &Context) -> Result<Standing, Failure> {
    let store =
        Store::open(&context.paths.database()).map_err(|error| Failure::situation(&error))?;
    let nights = store
        .nights(1)
        .map_err(|error| Failure::situation(&error))?;
    let area = staged::open(&context.paths.staging())?;
    let listing = area.list().map_err(|error| Failure::situation(&error))?;
    let ledger = Ledger::open(&context.paths.state).map_err(|error| Failure::situation(&error))?;
    let problems = listing
        .unreadable
        .iter()
        .chain(&ledger.unreadable)
        .map(ToString::to_string)
        .collect();
    Ok(Standing {
        state: context.paths.state.clone(),
        config: context.paths.config.clone(),
        last_night: nights.into_iter().next(),
        proposals: listing
            .staged
            .into_iter()
            .map(|staged| ProposalLine {
                id: staged.proposal.id,
                night: staged.proposal.night,
                status: staged.status,
                document: staged.proposal.document.path,
                baseline: staged.proposal.gate.baseline,
                candidate: staged.proposal.gate.candidate,
            })
            .collect(),
        adoptions: ledger
            .operations
            .iter()
            .map(|operation| AdoptionLine {
                id: operation.id.clone(),
                kind: operation.kind,
                at: operation.at,
                reverts: operation.reverts.clone(),
                in_force: ledger.is_in_force(&operation.id),
                documents: operation
                    .documents
                    .iter()
                    .map(|document| document.path.clone())
                    .collect(),
            })
            .collect(),
        problems,
    })
}

fn show(context: &Context, standing: &Standing) {
    let printer = context.printer;
    match &standing.last_night {
        None => printer.line("no night yet; start with: skillopt-sleep run --dry-run"),
        Some(night) => {
            let count = |pointer: &str| {
                night
                    .report
                    .as_ref()
                    .and_then(|report| report.pointer(pointer))
                    .and_then(Value::as_u64)
            };
            printer.line(format!(
                "last night  {} · {} · {} · {} sessions",
                night.id,
                night.started.strftime("%Y-%m-%d %H:%M UTC"),
                night.status.name(),
                count("/sessions").unwrap_or(0),
            ));
        }
    }
    let open: Vec<_> = standing
        .proposals
        .iter()
        .filter(|proposal| proposal.status.is_open())
        .collect();
    if open.is_empty() {
        printer.line("waits       nothing");
    }
    for proposal in open {
        printer.line(format!(
            "waits       {} {} {}",
            proposal.id,
            proposal.status.word(),
            one_line(&proposal.document.display().to_string())
        ));
    }
    for adoption in standing
        .adoptions
        .iter()
        .filter(|adoption| adoption.in_force)
    {
        printer.line(format!(
            "{:<11} {} {} {}",
            match adoption.kind {
                skillopt_staging::OperationKind::Adopt => "adopted",
                skillopt_staging::OperationKind::Revert => "reverted",
            },
            adoption.id,
            adoption.at.strftime("%Y-%m-%d"),
            adoption
                .documents
                .iter()
                .map(|path| one_line(&path.display().to_string()))
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    for problem in &standing.problems {
        printer.line(format!("problem     {}", one_line(problem)));
    }
    printer.line(format!("state       {}", standing.state.display()));
    printer.line(format!("config      {}", standing.config.display()));
}
