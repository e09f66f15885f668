//! What `train` shows: its plan before, its results after.

use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};

use super::output::Printer;
use crate::bench::estimate::{Calls, Estimate};
use crate::trainer::statistics::{Comparison, Cost, Mean, total};
use crate::trainer::summary::{CallsSaved, Summary};

/// What a run would do.
pub(super) fn plan(printer: Printer, environment: &str, estimate: &Estimate, out_root: &Path) {
    let items = estimate.items;
    printer.line(format!(
        "environment  {environment}: {} train, {} selection, {} test",
        items.train, items.selection, items.test
    ));
    printer.line(format!(
        "steps        {} in {} epochs",
        estimate.steps, estimate.epochs
    ));
    printer.line(format!("target       {}", calls(estimate.target)));
    printer.line(format!("optimizer    {}", calls(estimate.optimizer)));
    printer.line(match estimate.usd {
        Some(usd) => format!("cost         about US$ {usd:.2} at the configured prices"),
        None => "cost         not known; set model.target_price_in, target_price_out, \
                 optimizer_price_in and optimizer_price_out"
            .to_owned(),
    });
    printer.line(format!("run          {}", out_root.display()));
}

fn calls(calls: Calls) -> String {
    format!(
        "at most {} calls, about {} tokens in and {} out",
        calls.calls,
        short(calls.prompt_tokens),
        short(calls.completion_tokens)
    )
}

/// A count as people say it.
fn short(count: u64) -> String {
    let number = count as f64;
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{:.0}k", number / 1e3),
        _ => format!("{:.1}M", number / 1e6),
    }
}

/// What a run came to.
pub(super) fn results(printer: Printer, summary: &Summary, out_root: &Path) {
    let statistics = &summary.statistics;
    let mut table = table(["", "initial", "best", "change", "items"]);
    for (split, comparison) in [
        ("selection", statistics.selection),
        ("test", statistics.test),
    ] {
        if comparison.best.is_none() {
            continue;
        }
        let hard = [
            comparison.baseline.map(|m| m.hard),
            comparison.best.map(|m| m.hard),
            comparison.gain.map(|g| g.hard),
        ];
        let soft = [
            comparison.baseline.map(|m| m.soft),
            comparison.best.map(|m| m.soft),
            comparison.gain.map(|g| g.soft),
        ];
        table.add_row(row(&format!("{split}, hard"), hard, &measured(&comparison)));
        table.add_row(row(&format!("{split}, soft"), soft, ""));
    }
    printer.line(table.to_string());
    printer.line(format!(
        "in brackets: {:.0} % intervals; the selection split picked the best skill, so its score there is flattering",
        statistics.confidence * 100.0
    ));
    printer.line(format!(
        "{} steps: {} accepted, {} rejected, {} undecided, {} skipped",
        summary.total_steps,
        summary.total_accepts,
        summary.total_rejects,
        summary.total_undecided,
        summary.steps_without_candidate()
    ));
    printer.line(costs(summary).to_string());
    let saved = summary.target_calls_saved;
    if saved != CallsSaved::default() {
        printer.line(format!(
            "target calls saved: {} because the gate's decision had fallen, {} from the cache",
            saved.early_stop, saved.cache
        ));
    }
    for name in ["best_skill.md", "report.html"] {
        printer.line(out_root.join(name).display().to_string());
    }
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(header);
    for index in 1..N {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn row(name: &str, [before, after, change]: [Option<Mean>; 3], items: &str) -> [String; 5] {
    let level = |mean: Option<Mean>| match mean {
        None => "–".to_owned(),
        Some(Mean { value, interval }) => match interval {
            None => format!("{value:.3}"),
            Some(i) => format!("{value:.3} [{:.3}, {:.3}]", i.low, i.high),
        },
    };
    let change = match change {
        None => "–".to_owned(),
        Some(Mean { value, interval }) => match interval {
            None => format!("{value:+.3}"),
            Some(i) => format!("{value:+.3} [{:+.3}, {:+.3}]", i.low, i.high),
        },
    };
    [
        name.to_owned(),
        level(before),
        level(after),
        change,
        items.to_owned(),
    ]
}

/// How many items were measured, and how many changed.
fn measured(comparison: &Comparison) -> String {
    let Some(best) = comparison.best else {
        return String::new();
    };
    let count = format!("{} of {}", best.measured, best.items);
    match comparison.gain {
        None => count,
        Some(gain) => format!("{count}; {} won, {} lost", gain.wins, gain.losses),
    }
}

fn costs(summary: &Summary) -> Table {
    let mut table = table(["stage", "calls", "tokens in", "tokens out", "US$"]);
    let row = |name: String, cost: &Cost| {
        [
            name,
            cost.calls.to_string(),
            cost.prompt_tokens.to_string(),
            cost.completion_tokens.to_string(),
            cost.usd
                .map_or_else(|| "–".to_owned(), |usd| format!("{usd:.4}")),
        ]
    };
    for (role, stages) in &summary.costs {
        for (stage, cost) in stages.iter().filter(|(_, cost)| cost.calls > 0) {
            table.add_row(row(format!("{role}: {stage}"), cost));
        }
    }
    table.add_row(row("all".to_owned(), &total(&summary.costs)));
    table
}
