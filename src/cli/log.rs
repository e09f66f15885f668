//! `log`: nights and their events.

use serde_json::json;

use super::context::Context;
use super::failure::{ExitStatus, Failure};
use crate::store::{NightRow, Store};

/// The nights, or one night's report and events.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  skillopt-sleep log\n  skillopt-sleep log 3 --events")]
pub(super) struct Args {
    /// A night's number.
    #[arg(value_name = "NIGHT")]
    night: Option<i64>,
    /// What happened in it, one line an event.
    #[arg(long, requires = "night")]
    events: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    let store =
        Store::open(&context.paths.database()).map_err(|error| Failure::situation(&error))?;
    let nights = store
        .nights(usize::MAX)
        .map_err(|error| Failure::situation(&error))?;
    let printer = context.printer;
    let Some(id) = args.night else {
        if args.json {
            printer.json("skillopt-sleep.log/1", &json!({ "nights": nights }));
        } else {
            for night in &nights {
                printer.line(line(night));
            }
        }
        return Ok(ExitStatus::Done);
    };
    let night = nights
        .into_iter()
        .find(|night| night.id == id)
        .ok_or_else(|| {
            Failure::new(ExitStatus::Situation, format!("there is no night {id}"))
                .hint("see: skillopt-sleep log")
        })?;
    let events = if args.events {
        store
            .events(id)
            .map_err(|error| Failure::situation(&error))?
    } else {
        Vec::new()
    };
    if args.json {
        let events: Vec<_> = events
            .iter()
            .map(|(at, event)| json!({"at": at, "event": event}))
            .collect();
        printer.json(
            "skillopt-sleep.log/1",
            &json!({ "night": night, "events": events }),
        );
        return Ok(ExitStatus::Done);
    }
    if args.events {
        for (at, event) in events {
            printer.line(format!(
                "{at} {}",
                skillopt_staging::one_line(&event.to_string())
            ));
        }
        return Ok(ExitStatus::Done);
    }
    let report = context
        .paths
        .nights()
        .join(format!("night-{id:04}"))
        .join("report.md");
    match skillopt_files::read_text(&report, 16 << 20) {
        Ok(text) => printer.line(text.trim_end()),
        Err(_) => printer.line(line(&night)),
    }
    Ok(ExitStatus::Done)
}

fn line(night: &NightRow) -> String {
    format!(
        "{:>4}  {}  {}",
        night.id,
        night.started.strftime("%Y-%m-%d %H:%M:%S UTC"),
        night.status.name()
    )
}
