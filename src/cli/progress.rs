//! Progress on a terminal: one line a phase, with live counts. It observes; nothing depends on it.

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::night::event::{NightEvent, Watch};
use crate::trainer::event::{Event, Observer};
use crate::trainer::verdict::Verdict;

/// Draws a spinner line on standard error while something runs, and leaves one line per finished
/// phase. Without a terminal only the finished lines are written.
pub(super) struct Progress {
    live: bool,
    quiet: bool,
    bar: Mutex<Option<Line>>,
}

struct Line {
    bar: ProgressBar,
    what: String,
    done: usize,
    of: usize,
    passed: usize,
}

impl Progress {
    /// `live` draws, `quiet` writes nothing at all.
    #[must_use]
    pub(super) fn new(live: bool, quiet: bool) -> Self {
        Self {
            live,
            quiet,
            bar: Mutex::new(None),
        }
    }

    fn say(&self, text: &str) {
        self.clear();
        tracing::info!("{}", text.trim_start());
        if !self.quiet {
            use std::io::Write as _;
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    fn start(&self, what: &str, of: usize) {
        self.clear();
        if !self.live {
            return;
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.set_message(format!("{what} 0/{of}"));
        bar.enable_steady_tick(Duration::from_millis(120));
        *self.line() = Some(Line {
            bar,
            what: what.to_owned(),
            done: 0,
            of,
            passed: 0,
        });
    }

    fn advance(&self, passed: bool) {
        if let Some(line) = self.line().as_mut() {
            line.done += 1;
            line.passed += usize::from(passed);
            line.bar.set_message(format!(
                "{} {}/{}, {} passed",
                line.what, line.done, line.of, line.passed
            ));
        }
    }

    fn clear(&self) {
        if let Some(line) = self.line().take() {
            line.bar.finish_and_clear();
        }
    }

    fn line(&self) -> std::sync::MutexGuard<'_, Option<Line>> {
        self.bar
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Shows an event of the trainer.
    pub(super) fn training(&self, event: &Event<'_>) {
        match event {
            Event::RunStarted {
                environment,
                total_steps,
                completed_steps,
                ..
            } if *completed_steps > 0 => {
                self.say(&format!(
                    "  going on with {environment}: {completed_steps} of {total_steps} steps are done"
                ));
            }
            Event::EvaluationStarted { dir, items } => self.start(&format!("  {dir}"), *items),
            Event::RolloutFinished { hard, .. } => {
                self.advance(hard.is_some_and(|hard| hard >= 1.0))
            }
            Event::EvaluationFinished {
                dir,
                scores,
                measured,
                rollouts,
            } if !dir.contains("/rollout") => {
                let mean = scores.map_or("nothing measured".to_owned(), |s| {
                    format!("hard {:.3}, soft {:.3}", s.hard, s.soft)
                });
                let attempts = rollouts.len();
                let missing = match attempts - measured {
                    0 => String::new(),
                    missing => format!(", {missing} not measured"),
                };
                self.say(&format!("  {dir}: {mean} in {attempts} attempts{missing}"));
            }
            Event::GateDecided { step, verdict } => self.say(&format!(
                "  step {step}: {} ({})",
                verdict.action.name(),
                comparison(verdict)
            )),
            Event::StepFinished { record, .. } if record.gate_rule.is_none() => {
                self.say(&format!("  step {}: {}", record.step, record.action.name()));
            }
            Event::Note { message } => self.say(&format!("  {message}")),
            _ => {}
        }
    }
}

/// The numbers behind a verdict, in one line.
fn comparison(verdict: &Verdict) -> String {
    let candidate = match (verdict.candidate_score, verdict.bound) {
        (Some(score), _) => format!("{score:.3}"),
        (None, Some(bound)) => format!("at most {bound:.3}"),
        (None, None) => "not measured".to_owned(),
    };
    let mut line = format!("{:.3} → {candidate}", verdict.current_score);
    if let Some(estimate) = &verdict.estimate
        && let Some(gain) = estimate.gain
    {
        let (low, high) = estimate.interval;
        line += &format!("; gain {gain:+.3}, between {low:+.3} and {high:+.3}");
    }
    let (wins, losses, ties, _) = verdict.tally();
    line += &format!("; {wins} won, {losses} lost, {ties} even");
    if verdict.calls_saved > 0 {
        line += &format!("; {} attempts saved", verdict.calls_saved);
    }
    line
}

impl Watch for Progress {
    fn watch(&self, event: &NightEvent<'_>) {
        match event {
            NightEvent::Started { night, resumed } => {
                self.say(&format!(
                    "night {night}{}",
                    if *resumed { ", going on" } else { "" }
                ));
            }
            NightEvent::Harvested {
                sessions,
                files,
                skipped,
            } => self.say(&format!(
                "harvest: {sessions} sessions from {files} files{}",
                if *skipped == 0 {
                    String::new()
                } else {
                    format!(" ({skipped} things skipped, see the report)")
                }
            )),
            NightEvent::Mined {
                train,
                validation,
                test,
            } => self.say(&format!(
                "mine: {} tasks ({train} train, {validation} validation, {test} test)",
                train + validation + test
            )),
            NightEvent::TrainingStarted { document } => self.say(&format!("train: {document}")),
            NightEvent::Training { training, .. } => self.training(training),
            NightEvent::TrainingFinished { .. } => self.clear(),
            NightEvent::Staged { proposal, path } => {
                self.say(&format!("stage: {proposal} for {path}"))
            }
            NightEvent::Adopted { adoption, path, .. } => self.say(&format!(
                "adopt: {adoption} wrote {path} without review; undo it with: skillopt-sleep revert {adoption}"
            )),
            NightEvent::Finished { .. } => self.clear(),
        }
    }
}

/// Progress as an observer of a trainer that runs by itself.
pub(super) struct TrainingProgress(pub(super) Progress);

impl Observer for TrainingProgress {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.0.training(event);
        Ok(())
    }
}
