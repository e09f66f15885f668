//! `revert`: undo an adoption.

use jiff::Timestamp;
use skillopt_staging::{RevertPlan, display_safe, dry_run_revert, revert};

use super::context::Context;
use super::failure::{ExitStatus, Failure};

/// Undo an adoption: the documents get back what they held before. What was changed in them since is
/// kept where it does not touch the adopted text.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  skillopt-sleep revert\n  skillopt-sleep revert a3 --dry-run")]
pub(super) struct Args {
    /// The adoption; the latest one when none is named.
    #[arg(value_name = "ADOPTION")]
    adoption: Option<String>,
    /// Show what would change, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Restore the backup even where the document was changed since.
    #[arg(long)]
    force: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    let plan = RevertPlan {
        adoption: args.adoption,
        force: args.force,
        at: Timestamp::now(),
    };
    let roots = context.allowed_roots();
    let failed = |error: skillopt_staging::Error| Failure::situation(&error);
    if args.dry_run {
        let preview = dry_run_revert(&plan, &context.paths.state, &roots).map_err(failed)?;
        if args.json {
            context.printer.json(
                "skillopt-sleep.revert-preview/1",
                &serde_json::json!({ "documents": preview }),
            );
            return Ok(ExitStatus::Done);
        }
        for planned in &preview {
            let what = if planned.removes {
                "would remove"
            } else {
                "would change"
            };
            context.printer.line(format!(
                "{what} {}",
                display_safe(&planned.document.real_path.display().to_string())
            ));
            context.printer.diff(&display_safe(&planned.diff));
        }
        return Ok(ExitStatus::Done);
    }
    let done = revert(&plan, &context.paths.state, &roots).map_err(failed)?;
    if let Some(recovery) = &done.recovered {
        for line in recovery.lines() {
            context.printer.note(line);
        }
    }
    if args.json {
        context.printer.json("skillopt-sleep.adoption/1", &done);
        return Ok(ExitStatus::Done);
    }
    for document in &done.documents {
        let what = if document.after.is_some() {
            "restored"
        } else {
            "removed"
        };
        context.printer.line(format!(
            "{}: {what} {}",
            done.id,
            display_safe(&document.real_path.display().to_string())
        ));
    }
    Ok(ExitStatus::Done)
}
