//! The charts, as SVG whose colours come from the page.

use std::fmt::Write as _;

use super::Outcome;
use crate::trainer::state::StepRecord;
use crate::trainer::statistics::Mean;

const WIDTH: f64 = 920.0;
const LEFT: f64 = 46.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 34.0;

/// Room at the right for test results.
const RIGHT: f64 = 150.0;

/// Room at the right of a chart without them.
const EDGE: f64 = 12.0;

/// One step's scores.
pub(super) struct Point {
    pub(super) step: u32,
    pub(super) rollout: f64,
    pub(super) candidate: Option<f64>,
    /// The most that a candidate could have reached whose scoring stopped early.
    pub(super) bound: Option<f64>,
    pub(super) current: f64,
    pub(super) best: f64,
    pub(super) outcome: Outcome,
}

/// What the score chart shows.
pub(super) struct Curves {
    pub(super) baseline: Option<f64>,
    pub(super) points: Vec<Point>,
    /// The initial and the best skill on the test split.
    pub(super) test: [Option<Mean>; 2],
}

/// Where values are on the paper.
struct Frame {
    height: f64,
    margin: f64,
    steps: f64,
    low: f64,
    high: f64,
}

impl Frame {
    fn x(&self, step: f64) -> f64 {
        LEFT + (self.right() - LEFT) * step / self.steps.max(1.0)
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low).max(1e-9);
        TOP + (self.height - TOP - BOTTOM) * (1.0 - share)
    }

    fn right(&self) -> f64 {
        WIDTH - self.margin
    }

    fn floor(&self) -> f64 {
        self.height - BOTTOM
    }

    fn open(&self, label: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {WIDTH:.0} {:.0}\" role=\"img\" aria-label=\"{label}\">",
            self.height
        )
    }

    /// Lines and numbers of the value axis.
    fn rule(&self, svg: &mut String, ticks: &[f64], decimals: usize) {
        for tick in ticks {
            let (y, right) = (self.y(*tick), self.right());
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tick:.decimals$}</text>",
                LEFT - 8.0,
                y + 4.0
            );
        }
    }

    /// Numbers of the step axis; `at` moves them to where the steps are drawn.
    fn steps(&self, svg: &mut String, steps: impl Iterator<Item = u32>, at: f64) {
        let every = (self.steps / 12.0).ceil().max(1.0) as u32;
        for step in steps.filter(|step| step.is_multiple_of(every) || every == 1) {
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{step}</text>",
                self.x(f64::from(step) + at),
                self.floor() + 18.0
            );
        }
        let _ = write!(
            svg,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">step</text>",
            (LEFT + self.right()) / 2.0,
            self.height - 2.0
        );
    }
}

/// The scores over the steps: rollout batches, candidates, the current and the best skill, and at
/// the right the test results with their intervals.
pub(super) fn score_chart(curves: &Curves) -> String {
    let frame = frame_of(curves);
    let mut svg = frame.open("Scores over the steps");
    frame.rule(&mut svg, &ticks(frame.low, frame.high), 2);
    let steps = curves.points.iter().map(|point| point.step);
    frame.steps(&mut svg, std::iter::once(0).chain(steps), 0.0);
    if let Some(baseline) = curves.baseline {
        let y = frame.y(baseline);
        let _ = write!(
            svg,
            "<line class=\"baseline\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"><title>initial skill: {baseline:.3}</title></line>",
            frame.right()
        );
    }
    let rollouts = curves.points.iter().map(|p| (p.step, p.rollout));
    line(&mut svg, &frame, "rollout", rollouts, false);
    let start = curves.baseline.map(|score| (0, score));
    let best = curves.points.iter().map(|p| (p.step, p.best));
    line(
        &mut svg,
        &frame,
        "best",
        start.into_iter().chain(best),
        true,
    );
    let current = curves.points.iter().map(|p| (p.step, p.current));
    line(
        &mut svg,
        &frame,
        "current",
        start.into_iter().chain(current),
        true,
    );
    for point in &curves.points {
        let x = frame.x(f64::from(point.step));
        let _ = write!(
            svg,
            "<circle class=\"rollout-dot\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"2.5\"><title>step {}: batch {:.3}</title></circle>",
            frame.y(point.rollout),
            point.step,
            point.rollout
        );
        let (score, at_most) = match (point.candidate, point.bound) {
            (Some(score), _) => (score, ""),
            (None, Some(bound)) => (bound, "at most "),
            (None, None) => continue,
        };
        let word = word(point.outcome);
        let title = format!("step {}: candidate {at_most}{score:.3}, {word}", point.step);
        mark(&mut svg, x, frame.y(score), point.outcome, &title);
    }
    tests(&mut svg, &frame, curves);
    svg.push_str("</svg>");
    svg
}

fn frame_of(curves: &Curves) -> Frame {
    let mut values: Vec<f64> = curves
        .points
        .iter()
        .flat_map(|p| {
            [
                Some(p.rollout),
                p.candidate,
                p.bound,
                Some(p.current),
                Some(p.best),
            ]
        })
        .flatten()
        .chain(curves.baseline)
        .collect();
    for mean in curves.test.iter().flatten() {
        values.push(mean.value);
        values.extend(mean.interval.iter().flat_map(|i| [i.low, i.high]));
    }
    values.retain(|value| value.is_finite());
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (least, most) = if least > most {
        (0.0, 1.0)
    } else {
        (least, most)
    };
    let room = ((most - least) * 0.12).max(0.03);
    Frame {
        height: 340.0,
        margin: if curves.test.iter().any(Option::is_some) {
            RIGHT
        } else {
            EDGE
        },
        steps: curves
            .points
            .last()
            .map_or(1.0, |point| f64::from(point.step)),
        low: (least - room).max(0.0_f64.min(least)),
        high: (most + room).min(1.0_f64.max(most)),
    }
}

/// Round values between two ends, four to eight of them.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let span = (high - low).max(1e-6);
    let step = [
        0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
    ]
    .into_iter()
    .find(|step| span / step <= 7.0)
    .unwrap_or(span / 4.0);
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|n| n as f64 * step).collect()
}

fn line(
    svg: &mut String,
    frame: &Frame,
    class: &str,
    points: impl Iterator<Item = (u32, f64)>,
    stairs: bool,
) {
    let mut path = String::new();
    let mut last: Option<f64> = None;
    for (step, value) in points {
        let (x, y) = (frame.x(f64::from(step)), frame.y(value));
        match last {
            None => {
                let _ = write!(path, "M{x:.1} {y:.1}");
            }
            // A score holds until the step that changes it.
            Some(before) if stairs => {
                let _ = write!(path, "L{x:.1} {before:.1}L{x:.1} {y:.1}");
            }
            Some(_) => {
                let _ = write!(path, "L{x:.1} {y:.1}");
            }
        }
        last = Some(y);
    }
    if !path.is_empty() {
        let _ = write!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Accepted => "accepted",
        Outcome::Rejected => "rejected",
        Outcome::Undecided => "undecided",
        Outcome::Skipped => "skipped",
    }
}

/// A mark whose form says what its colour says.
fn mark(svg: &mut String, x: f64, y: f64, outcome: Outcome, title: &str) {
    let _ = match outcome {
        Outcome::Accepted => write!(
            svg,
            "<circle class=\"accepted\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\">"
        ),
        Outcome::Rejected | Outcome::Skipped => write!(
            svg,
            "<path class=\"rejected\" d=\"M{:.1} {:.1}l8 8m0 -8l-8 8\">",
            x - 4.0,
            y - 4.0
        ),
        Outcome::Undecided => write!(
            svg,
            "<path class=\"undecided\" d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\">",
            y - 5.0
        ),
    };
    let end = if outcome == Outcome::Accepted {
        "circle"
    } else {
        "path"
    };
    let _ = write!(svg, "<title>{title}</title></{end}>");
}

/// The test results beside the curves.
fn tests(svg: &mut String, frame: &Frame, curves: &Curves) {
    if curves.test.iter().all(Option::is_none) {
        return;
    }
    let left = frame.right() + 28.0;
    let _ = write!(
        svg,
        "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">test</text>",
        left + 40.0,
        frame.height - 2.0
    );
    for (index, (name, mean)) in ["initial", "best"].into_iter().zip(curves.test).enumerate() {
        let Some(mean) = mean else { continue };
        let x = left + 12.0 + 58.0 * index as f64;
        let y = frame.y(mean.value);
        if let Some(interval) = mean.interval {
            let (top, bottom) = (frame.y(interval.high), frame.y(interval.low));
            let _ = write!(
                svg,
                "<path class=\"whisker\" d=\"M{x:.1} {top:.1}V{bottom:.1}M{:.1} {top:.1}h8M{:.1} {bottom:.1}h8\"/>",
                x - 4.0,
                x - 4.0
            );
        }
        let _ = write!(
            svg,
            "<circle class=\"test-{name}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5.5\"><title>{name} skill on the test split: {:.3}</title></circle>\
             <text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{:.2}</text>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
            mean.value,
            x + 9.0,
            y + 4.0,
            mean.value,
            frame.floor() + 18.0
        );
    }
}

/// Edits that each step merged and kept, with what became of the candidate.
pub(super) fn edits_chart(history: &[StepRecord]) -> String {
    let most = history
        .iter()
        .filter_map(|record| record.n_edits_merged.max(record.n_edits_ranked))
        .max()
        .unwrap_or(0)
        .max(1);
    let frame = Frame {
        height: 200.0,
        margin: EDGE,
        steps: history.len() as f64,
        low: 0.0,
        high: most as f64,
    };
    let mut svg = frame.open("Edits per step");
    let whole: Vec<f64> = ticks(0.0, frame.high)
        .into_iter()
        .filter(|tick| tick.fract() == 0.0)
        .collect();
    frame.rule(&mut svg, &whole, 0);
    let steps = (1_u32..).take(history.len());
    frame.steps(&mut svg, steps, -0.5);
    let slot = (frame.right() - LEFT) / frame.steps.max(1.0);
    let width = (slot * 0.62).min(34.0);
    for (index, record) in history.iter().enumerate() {
        let middle = LEFT + slot * (index as f64 + 0.5);
        let bar = |svg: &mut String, class: &str, count: usize| {
            let y = frame.y(count as f64);
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" rx=\"2\"><title>step {}: {count} {class}</title></rect>",
                middle - width / 2.0,
                (frame.floor() - y).max(0.0),
                record.step
            );
        };
        bar(&mut svg, "merged", record.n_edits_merged.unwrap_or(0));
        bar(&mut svg, "kept", record.n_edits_ranked.unwrap_or(0));
        if slot >= 12.0 {
            let outcome = Outcome::of(record.action);
            let title = format!("step {}: {}", record.step, record.action.name());
            if outcome != Outcome::Skipped {
                mark(&mut svg, middle, TOP - 4.0, outcome, &title);
            }
        }
    }
    svg.push_str("</svg>");
    svg
}
