//! `report.html`: a finished run on one page, readable without a network and without scripts.
//!
//! The page is made from the run's state and summary alone. Numbers and texts go through the
//! template, which escapes them; the charts ([`chart`]) are SVG built here from numbers.

mod chart;
mod difference;

use std::collections::BTreeMap;

use minijinja::value::{Serde, Value as Shown};
use minijinja::{Environment, context};
use serde::Serialize;
use serde_json::Value;

use self::chart::{Curves, Point, edits_chart, score_chart};
use self::difference::{Line, difference};
use crate::trainer::gate_rule::GateAction;
use crate::trainer::state::{State, StepRecord};
use crate::trainer::statistics::{Comparison, Cost, Mean, total};
use crate::trainer::summary::Summary;

const TEMPLATE: &str = include_str!("page.html");

/// A report that cannot be made; a bug of ours, because the template is compiled in.
#[derive(Debug, thiserror::Error)]
#[error("cannot render the report: {0}")]
pub struct ReportError(#[from] minijinja::Error);

/// What a step's candidate came to, for the eye: a word and a mark, so that colour is not needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Accepted,
    Rejected,
    Undecided,
    Skipped,
}

impl Outcome {
    fn of(action: GateAction) -> Outcome {
        match action {
            action if action.is_accept() => Outcome::Accepted,
            GateAction::Reject => Outcome::Rejected,
            GateAction::Undecided => Outcome::Undecided,
            _ => Outcome::Skipped,
        }
    }
}

/// One number at the top.
#[derive(Serialize)]
struct Figure {
    name: String,
    before: String,
    after: String,
    change: String,
    range: String,
    /// `good`, `bad` or `unsure`: whether the interval of the change excludes 0, and where it lies.
    sense: &'static str,
    note: String,
}

#[derive(Serialize)]
struct StepRow {
    step: u32,
    epoch: u32,
    rollout: String,
    merged: String,
    kept: String,
    candidate: String,
    current: String,
    best: String,
    action: &'static str,
    outcome: Outcome,
    seconds: String,
}

#[derive(Serialize)]
struct CostRow {
    role: String,
    stage: String,
    calls: u64,
    tokens_in: String,
    tokens_out: String,
    usd: String,
    /// Share of all tokens, in percent.
    share: f64,
}

#[derive(Serialize)]
struct TimeRow {
    stage: &'static str,
    seconds: String,
    share: f64,
}

/// Renders the page. `config` is the run's record, without credentials.
///
/// # Errors
/// [`ReportError`] when the template is broken.
pub fn render(
    environment: &str,
    state: &State,
    summary: &Summary,
    config: &Value,
) -> Result<String, ReportError> {
    let mut engine = Environment::new();
    // The suffix makes the engine escape what it inserts.
    engine.add_template("page.html", TEMPLATE)?;
    let all = total(&summary.costs);
    let lines = difference(&state.initial_skill, &state.best.skill);
    let page = context! {
        environment,
        figures => shown(figures(summary)),
        confidence => format!("{:.0}", summary.statistics.confidence * 100.0),
        metric => &summary.gate_metric,
        best_origin => &summary.best_origin,
        best_step => summary.best_step,
        counts => context! {
            steps => summary.total_steps,
            accepts => summary.total_accepts,
            rejects => summary.total_rejects,
            undecided => summary.total_undecided,
            skips => summary.steps_without_candidate(),
        },
        scores => Shown::from_safe_string(score_chart(&curves(state, summary))),
        edits => Shown::from_safe_string(edits_chart(&state.history)),
        has_steps => !state.history.is_empty(),
        rows => shown(state.history.iter().map(row).collect::<Vec<_>>()),
        costs => shown(costs(summary, all)),
        total => shown(cost_row(String::new(), String::new(), all, all)),
        times => shown(times(&state.history)),
        added => count(&lines, '+'),
        removed => count(&lines, '-'),
        lines => shown(lines),
        settings => settings(config),
        wall => duration(summary.total_wall_time_s),
    };
    Ok(engine.get_template("page.html")?.render(page)?)
}

fn shown(value: impl Serialize) -> Shown {
    Shown::from(Serde(value))
}

fn count(lines: &[Line], sign: char) -> usize {
    lines.iter().filter(|line| line.sign == sign).count()
}

fn score(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"))
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let statistics = &summary.statistics;
    let parts: [(&str, Comparison); 2] = [
        ("Selection", statistics.selection),
        ("Test", statistics.test),
    ];
    parts
        .into_iter()
        .flat_map(|(name, comparison)| {
            let figure = |what: &str, of: fn(&Comparison) -> [Option<Mean>; 3]| {
                figure(format!("{name}, {what}"), &comparison, of(&comparison))
            };
            [
                figure("hard", |c| {
                    [
                        c.baseline.map(|m| m.hard),
                        c.best.map(|m| m.hard),
                        c.gain.map(|g| g.hard),
                    ]
                }),
                figure("soft", |c| {
                    [
                        c.baseline.map(|m| m.soft),
                        c.best.map(|m| m.soft),
                        c.gain.map(|g| g.soft),
                    ]
                }),
            ]
        })
        .flatten()
        .collect()
}

fn figure(name: String, comparison: &Comparison, means: [Option<Mean>; 3]) -> Option<Figure> {
    let [before, after, change] = means;
    after?;
    let interval = change.and_then(|change| change.interval);
    let sense = match interval {
        Some(interval) if interval.low > 0.0 => "good",
        Some(interval) if interval.high < 0.0 => "bad",
        _ => "unsure",
    };
    let measured = comparison.best.map_or(String::new(), |best| {
        format!("{} of {} items measured", best.measured, best.items)
    });
    let tally = comparison.gain.map_or(String::new(), |gain| {
        format!(
            "; {} won, {} lost, {} even",
            gain.wins, gain.losses, gain.ties
        )
    });
    Some(Figure {
        name,
        before: score(before.map(|mean| mean.value)),
        after: score(after.map(|mean| mean.value)),
        change: change.map_or_else(|| "–".to_owned(), |change| format!("{:+.3}", change.value)),
        range: interval.map_or(String::new(), |interval| {
            format!("{:+.3} to {:+.3}", interval.low, interval.high)
        }),
        sense,
        note: measured + &tally,
    })
}

fn curves(state: &State, summary: &Summary) -> Curves {
    let soft = summary.gate_metric == "soft";
    let point = |record: &StepRecord| Point {
        step: record.step,
        rollout: if soft {
            record.rollout_soft
        } else {
            record.rollout_hard
        },
        candidate: record.candidate_gate_score,
        bound: record.candidate_gate_bound,
        current: record.current_score,
        best: record.best_score,
        outcome: Outcome::of(record.action),
    };
    let side = |of: fn(&Comparison) -> Option<crate::trainer::statistics::Measurement>| {
        of(&summary.statistics.test).map(|m| if soft { m.soft } else { m.hard })
    };
    Curves {
        baseline: summary.baseline_score,
        points: state.history.iter().map(point).collect(),
        test: [side(|c| c.baseline), side(|c| c.best)],
    }
}

fn row(record: &StepRecord) -> StepRow {
    let number = |count: Option<usize>| count.map_or_else(|| "–".to_owned(), |n| n.to_string());
    StepRow {
        step: record.step,
        epoch: record.epoch,
        rollout: format!("{:.3}", record.rollout_hard),
        merged: number(record.n_edits_merged),
        kept: number(record.n_edits_ranked),
        candidate: match (record.candidate_gate_score, record.candidate_gate_bound) {
            (None, Some(bound)) => format!("≤ {bound:.3}"),
            (given, _) => score(given),
        },
        current: format!("{:.3}", record.current_score),
        best: format!("{:.3}", record.best_score),
        action: record.action.name(),
        outcome: Outcome::of(record.action),
        seconds: format!("{:.1}", record.wall_time_s),
    }
}

fn cost_row(role: String, stage: String, cost: Cost, all: Cost) -> CostRow {
    let tokens = |cost: Cost| cost.prompt_tokens + cost.completion_tokens;
    CostRow {
        role,
        stage,
        calls: cost.calls,
        tokens_in: grouped(cost.prompt_tokens),
        tokens_out: grouped(cost.completion_tokens),
        usd: cost
            .usd
            .map_or_else(|| "–".to_owned(), |usd| format!("{usd:.4}")),
        share: 100.0 * tokens(cost) as f64 / tokens(all).max(1) as f64,
    }
}

fn costs(summary: &Summary, all: Cost) -> Vec<CostRow> {
    summary
        .costs
        .iter()
        .flat_map(|(role, stages)| stages.iter().map(move |(stage, cost)| (role, stage, cost)))
        .filter(|(_, _, cost)| cost.calls > 0)
        .map(|(role, stage, cost)| cost_row(role.to_string(), stage.clone(), *cost, all))
        .collect()
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

fn times(history: &[StepRecord]) -> Vec<TimeRow> {
    let mut sums = [
        ("rollout", 0.0),
        ("reflect", 0.0),
        ("aggregate", 0.0),
        ("select", 0.0),
        ("update", 0.0),
        ("evaluate", 0.0),
    ];
    for record in history {
        let timing = &record.timing;
        let parts = [
            timing.rollout_s,
            timing.reflect_s,
            timing.aggregate_s,
            timing.select_s,
            timing.update_s,
            timing.evaluate_s,
        ];
        for ((_, sum), part) in sums.iter_mut().zip(parts) {
            *sum += part;
        }
    }
    let all: f64 = sums.iter().map(|(_, sum)| sum).sum();
    sums.into_iter()
        .map(|(stage, sum)| TimeRow {
            stage,
            seconds: duration(sum),
            share: if all > 0.0 { 100.0 * sum / all } else { 0.0 },
        })
        .collect()
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.1} s"),
        s if s < 6000.0 => format!("{:.0} min {:02.0} s", (s / 60.0).floor(), s % 60.0),
        s => format!(
            "{:.0} h {:02.0} min",
            (s / 3600.0).floor(),
            s % 3600.0 / 60.0
        ),
    }
}

/// The configuration by key, what is blank left out.
fn settings(config: &Value) -> BTreeMap<String, String> {
    config
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_null() && value.as_str() != Some(""))
        .map(|(key, value)| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            (key.clone(), text)
        })
        .collect()
}

#[cfg(test)]
mod tests;
