//! `selftest`: the program's statistics on simulated data, so that its promises can be checked.

use clap::builder::RangedU64ValueParser;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::context::Context;
use super::failure::{ExitStatus, Failure};
use crate::trainer::confident::ConfidentSettings;
use crate::trainer::simulation::{Cell, GAINS, Row, Rule, Simulation};

/// Checks the program's promises by simulation: no model, no network.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  skillopt-sleep selftest --gate\n  skillopt-sleep selftest --gate --items 40 --alpha 0.05"
)]
pub(super) struct Args {
    /// How often each gate rule accepts candidates of a known gain, and what that costs.
    #[arg(long, required = true)]
    gate: bool,
    /// Numbers of selection items to simulate, with commas between.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [13, 30, 100],
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000))]
    items: Vec<u32>,
    /// Largest allowed rate of false accepts of the confident rule.
    #[arg(long, default_value_t = ConfidentSettings::default().alpha)]
    alpha: f64,
    /// Candidates for each number in the table.
    #[arg(long, value_name = "N", default_value_t = 4000,
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000_000))]
    runs: u32,
    /// Where the random numbers start.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Simulated {
    #[serde(flatten)]
    simulation: Simulation,
    rules: Vec<Row>,
}

pub(super) fn run(context: &Context, args: Args) -> Result<ExitStatus, Failure> {
    debug_assert!(args.gate, "the only test, which is required");
    let settings = ConfidentSettings {
        alpha: args.alpha,
        ..ConfidentSettings::default()
    };
    let printer = context.printer;
    let mut tables = Vec::new();
    for &items in &args.items {
        let simulation = Simulation {
            items: items as usize,
            runs: args.runs,
            seed: args.seed,
            settings,
        };
        let rules = simulation
            .run()
            .map_err(|error| Failure::situation(&error))?;
        tables.push(Simulated { simulation, rules });
    }
    if args.json {
        printer.json(
            "skillopt-sleep.selftest/1",
            &serde_json::json!({ "gate": tables }),
        );
        return Ok(ExitStatus::Done);
    }
    printer.line(table(&tables).to_string());
    printer.note(format!(
        "share of candidates accepted, and mean attempts under both skills, by true gain; {} candidates each; \
         alpha {}, smallest gain {}, reject level {}, at most {} draws an item",
        args.runs,
        settings.alpha,
        settings.smallest_gain,
        settings.reject_level,
        settings.max_repeats,
    ));
    Ok(ExitStatus::Done)
}

fn table(tables: &[Simulated]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    let gains = GAINS.iter().map(|gain| match gain {
        0.0 => "0 (useless)".to_owned(),
        gain => format!("{gain:+.2}"),
    });
    let head = ["items", "rule"].map(str::to_owned);
    table.set_header(head.into_iter().chain(gains));
    for simulated in tables {
        for row in &simulated.rules {
            let mut cells = vec![simulated.simulation.items.to_string(), name(row.rule)];
            cells.extend(row.cells.iter().map(cell));
            table.add_row(cells);
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn name(rule: Rule) -> String {
    match rule {
        Rule::Strict { passes: 1 } => "strict".to_owned(),
        Rule::Strict { passes } => format!("strict, each item {passes} times"),
        Rule::Confident => "confident".to_owned(),
    }
}

fn cell(cell: &Cell) -> String {
    format!("{:.1} % / {:.0}", 100.0 * cell.accepted, cell.calls)
}
