//! `status`: the last night, what waits, and what the person should know.

use serde::Serialize;
use serde_json::Value;
use skillopt_staging::{Ledger, Status, one_line};

use super::context::Context;
use super::failure::{ExitStatus, Failure};
use super::notices::{self, Notice};
use super::{impact, staged};
use crate::impact::{Impact, impacts};
use crate::store::{NightRow, Store};

/// The last night and its outcome, what waits for review, and what you should know.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  skillopt-sleep status --json\n  skillopt-sleep status --impact\n  skillopt-sleep status --seen"
)]
pub(super) struct Args {
    /// How sessions went before and after each adoption.
    ///
    /// Compares the sessions that used a document in the four weeks before and after it was adopted:
    /// how many went well, and how sure the difference is. That is no trial: the model, the work and
    /// you may have changed as well. Only sessions that nights have read are known.
    #[arg(long)]
    impact: bool,
    /// Take note of the notices: they are shown this once more and then no longer.
    #[arg(long)]
    seen: bool,
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
    notices: Vec<Notice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impact: Option<Vec<Impact>>,
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
    let store =
        Store::open(&context.paths.database()).map_err(|error| Failure::situation(&error))?;
    let standing = standing(context, &store, args.impact)?;
    if args.seen {
        notices::see(&store, &standing.notices)?;
    }
    if args.json {
        context.printer.json("skillopt-sleep.status/1", &standing);
    } else {
        show(context, &standing);
    }
    Ok(ExitStatus::Done)
}

fn standing(context: &Context, store: &Store, with_impact: bool) -> Result<Standing, Failure> {
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
    let impact = with_impact
        .then(|| impacts(store, &ledger, &context.homes()))
        .transpose()
        .map_err(|error| Failure::situation(&error))?;
    Ok(Standing {
        notices: notices::unseen(store, &ledger, nights.first())?,
        impact,
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
    for notice in &standing.notices {
        printer.line(format!("notice      {}", notice.line()));
    }
    if !standing.notices.is_empty() {
        printer.note("status --seen takes note of them");
    }
    for problem in &standing.problems {
        printer.line(format!("problem     {}", one_line(problem)));
    }
    printer.line(format!("state       {}", standing.state.display()));
    printer.line(format!("config      {}", standing.config.display()));
    if let Some(impacts) = &standing.impact {
        show_impact(context, impacts);
    }
}

fn show_impact(context: &Context, impacts: &[Impact]) {
    let printer = context.printer;
    if impacts.is_empty() {
        printer.line("\nimpact      nothing was adopted yet");
    }
    for found in impacts {
        printer.line(format!("\n{}", impact::text(found).trim_end()));
    }
    if !impacts.is_empty() {
        printer.line(format!("\n{}", impact::CAVEAT));
    }
}
