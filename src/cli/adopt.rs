//! `adopt`: apply accepted proposals.

use jiff::Timestamp;
use skillopt_staging::{Approver, StagingArea, Status, adopt, display_safe, dry_run};

use super::context::Context;
use super::failure::{ExitStatus, Failure};
use super::staged;
use crate::night::risk;
use crate::skill::lint;

/// Apply accepted proposals to their documents, all or none, with a backup of each.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  skillopt-sleep adopt --dry-run\n  skillopt-sleep adopt n1-1")]
pub(super) struct Args {
    /// Proposals by id; the accepted one when only one is.
    #[arg(value_name = "PROPOSAL")]
    proposals: Vec<String>,
    /// All accepted proposals.
    #[arg(long, conflicts_with = "proposals")]
    all: bool,
    /// Adopt in spite of this danger that the lint found; may be given often.
    #[arg(long, value_name = "NAME")]
    allow_risk: Vec<String>,
    /// Show what would be written where, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    let area = staged::open(&context.paths.staging())?;
    let failed = |error: skillopt_staging::Error| Failure::situation(&error);
    let ids = if args.proposals.is_empty() {
        let accepted: Vec<String> = area
            .list()
            .map_err(failed)?
            .staged
            .into_iter()
            .filter(|staged| matches!(staged.status, Status::Accepted { .. }))
            .map(|staged| staged.proposal.id)
            .collect();
        match accepted.len() {
            0 => {
                context
                    .printer
                    .note("nothing is accepted and not yet adopted; see: skillopt-sleep review");
                return Ok(ExitStatus::Done);
            }
            1 => accepted,
            _ if args.all => accepted,
            _ => {
                return Err(Failure::new(
                    ExitStatus::Situation,
                    format!("several proposals are accepted: {}", accepted.join(", ")),
                )
                .hint("name those that you mean, or use --all"));
            }
        }
    } else {
        args.proposals
            .iter()
            .map(|query| area.find(query).map(|staged| staged.proposal.id))
            .collect::<Result<_, _>>()
            .map_err(failed)?
    };
    let plan = area
        .plan(&ids, Approver::Person, Timestamp::now())
        .map_err(failed)?;
    let roots = context.allowed_roots();
    let held = held_back(context, &area, &ids, &args.allow_risk)?;
    if args.dry_run {
        let preview = dry_run(&plan, &context.paths.state, &roots).map_err(failed)?;
        if args.json {
            context
                .printer
                .json("skillopt-sleep.adopt-preview/1", &preview);
        } else {
            for write in &preview.writes {
                context.printer.line(format!(
                    "{}: would write {} ({} bytes)",
                    write.proposal,
                    display_safe(&write.real_path.display().to_string()),
                    write.after_length
                ));
                context.printer.diff(&display_safe(&write.diff));
            }
            for (id, refusal) in &preview.refusals {
                context
                    .printer
                    .line(format!("{id}: would be refused: {refusal}"));
            }
            for (id, rules) in &held {
                context.printer.line(format!(
                    "{id}: would be held back: danger {}",
                    rules.join(", ")
                ));
            }
        }
        let status = if preview.refusals.is_empty() && held.is_empty() {
            ExitStatus::Done
        } else {
            ExitStatus::Situation
        };
        return Ok(status);
    }
    if let Some((id, rules)) = held.first() {
        let flags: Vec<String> = rules
            .iter()
            .map(|rule| format!("--allow-risk {rule}"))
            .collect();
        return Err(Failure::new(
            ExitStatus::Situation,
            format!("{id} is held back: its text has the danger {}", rules.join(", ")),
        )
        .hint(format!(
            "look at it with: skillopt-sleep review {id} --show; if you want it all the same, add {}",
            flags.join(" ")
        )));
    }
    let adoption = adopt(&plan, &context.paths.state, &roots).map_err(failed)?;
    if let Some(recovery) = &adoption.recovered {
        for line in recovery.lines() {
            context.printer.note(line);
        }
    }
    if args.json {
        context.printer.json("skillopt-sleep.adoption/1", &adoption);
        return Ok(ExitStatus::Done);
    }
    for document in &adoption.documents {
        context.printer.line(format!(
            "{}: wrote {}",
            adoption.id,
            display_safe(&document.real_path.display().to_string())
        ));
    }
    context.printer.note(format!(
        "undo it with: skillopt-sleep revert {}",
        adoption.id
    ));
    Ok(ExitStatus::Done)
}

/// The proposals whose text has dangers that were not allowed by name, with those.
fn held_back(
    context: &Context,
    area: &StagingArea,
    ids: &[String],
    allowed: &[String],
) -> Result<Vec<(String, Vec<String>)>, Failure> {
    for name in allowed {
        if lint::rule(name).is_none() {
            let names: Vec<&str> = lint::rules()
                .filter(|rule| rule.level == lint::Level::Danger)
                .map(|rule| rule.name)
                .collect();
            return Err(Failure::new(
                ExitStatus::Situation,
                format!("`{name}` is no risk that is looked for"),
            )
            .hint(format!("there are: {}", names.join(", "))));
        }
    }
    let desk = context.desk()?;
    let mut held = Vec::new();
    for id in ids {
        let staged = area.load(id).map_err(|error| Failure::situation(&error))?;
        let rules: Vec<String> = risk::dangers(&desk.risks(staged))
            .into_iter()
            .filter(|rule| !allowed.iter().any(|name| name == rule))
            .map(str::to_owned)
            .collect();
        if !rules.is_empty() {
            held.push((id.clone(), rules));
        }
    }
    Ok(held)
}
