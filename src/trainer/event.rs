//! What happens during a run, as typed events; the trainer's only output.
//!
//! The run directory, `events.jsonl`, progress bars and databases are observers of
//! this one stream. An observer that has to be durable returns its error, and the run stops
//! there rather than going on without its record.

use std::io;

use serde::Serialize;
use serde_json::Value;

use super::attribution::Attribution;
use super::candidate::Candidate;
use super::environment::Rollout;
use super::evaluation::Scores;
use super::lr_decision::LrDecision;
use super::pairs::Pair;
use super::patch::Patch;
use super::state::{State, StepRecord};
use super::summary::Summary;
use super::update_mode::UpdateMode;
use super::verdict::Verdict;
use crate::skill::EditSummary;

/// Something that happened. Borrowed: an observer keeps what it needs.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// A run begins, fresh or where it was left.
    RunStarted {
        /// The environment's name.
        environment: &'a str,
        /// Steps of the whole run.
        total_steps: u32,
        /// Steps that are already done.
        completed_steps: u32,
        /// The skill that training starts from.
        #[serde(skip)]
        initial_skill: &'a str,
    },
    /// Attempts begin.
    EvaluationStarted {
        /// Where its artefacts belong, relative to the run directory.
        dir: &'a str,
        /// How many items.
        items: usize,
    },
    /// One attempt ended. Events of one evaluation arrive in order of completion.
    RolloutFinished {
        /// Where its artefacts belong.
        dir: &'a str,
        /// The item.
        id: &'a str,
        /// `None` when it was not measured.
        hard: Option<f64>,
    },
    /// All attempts of an evaluation ended.
    EvaluationFinished {
        /// Where its artefacts belong.
        dir: &'a str,
        /// The means over what was measured, if anything was.
        scores: Option<Scores>,
        /// How many were measured.
        measured: usize,
        /// The rollouts in item order.
        #[serde(skip)]
        rollouts: &'a [Rollout],
    },
    /// A step begins.
    StepStarted {
        /// Counted from 1 over the whole run.
        step: u32,
        /// Counted from 1.
        epoch: u32,
    },
    /// An analyst answered.
    MinibatchReflected {
        /// Directory of the patches.
        dir: &'a str,
        /// `minibatch_fail_000` and so on.
        name: &'a str,
        /// The analyst's reply, as parsed; `None` when it proposed nothing usable.
        reply: Option<&'a Value>,
    },
    /// The step's patches became one.
    Aggregated {
        /// The step's directory.
        dir: &'a str,
        /// What was merged.
        #[serde(skip)]
        patch: &'a Patch,
        /// What its items are.
        mode: UpdateMode,
    },
    /// The merged patch was cut to the step's budget.
    Selected {
        /// The step's directory.
        dir: &'a str,
        /// Most edits allowed.
        budget: Option<usize>,
        /// What is left.
        #[serde(skip)]
        patch: &'a Patch,
        /// What its items are.
        mode: UpdateMode,
    },
    /// The edits were applied.
    CandidateMade {
        /// The step's directory.
        dir: &'a str,
        /// The document and the report of which edits applied.
        #[serde(skip)]
        candidate: &'a Candidate,
        /// Which edits applied, in numbers; `None` for a rewritten document.
        summary: Option<EditSummary>,
    },
    /// The optimizer decided how many items to apply.
    LearningRateDecided {
        /// The step's directory.
        dir: &'a str,
        /// The step.
        step: u32,
        /// The epoch.
        epoch: u32,
        /// The decision.
        decision: &'a LrDecision,
    },
    /// Notes went into the skill's appendix.
    NotesFlushed {
        /// The step's directory.
        dir: &'a str,
        /// What came in.
        step_notes: &'a [String],
        /// What the appendix holds now.
        after: &'a [String],
    },
    /// The slow update of an epoch is done.
    SlowUpdated {
        /// The epoch.
        epoch: u32,
        /// Where its artefacts belong.
        dir: &'a str,
        /// `slow_result.json`.
        result: &'a Value,
    },
    /// The skills of one epoch ago and of now were compared.
    Compared {
        /// Where its artefacts belong.
        dir: &'a str,
        /// The pairs that the optimizer is told about.
        #[serde(skip)]
        pairs: &'a [Pair],
        /// All pairs, when the policy keeps only some classes.
        #[serde(skip)]
        all_pairs: Option<&'a [Pair]>,
        /// The items that were not measured under both.
        unmeasured: &'a [String],
    },
    /// A skill was measured on the test split.
    Tested {
        /// Where its artefacts belong.
        dir: &'a str,
        /// The means over what was measured, if anything was.
        scores: Option<Scores>,
        /// The rollouts in item order.
        #[serde(skip)]
        rollouts: &'a [Rollout],
    },
    /// The optimizer's memory of an epoch is done.
    MetaSkillWritten {
        /// The epoch.
        epoch: u32,
        /// Where its artefacts belong.
        dir: &'a str,
        /// `meta_skill_result.json`.
        result: &'a Value,
    },
    /// The edits of an accepted batch were judged one by one.
    Attributed {
        /// The step's directory.
        dir: &'a str,
        /// What each contributed.
        attribution: &'a Attribution,
        /// What is left of the candidate.
        #[serde(skip)]
        candidate: &'a Candidate,
    },
    /// The gate spoke.
    GateDecided {
        /// The step.
        step: u32,
        /// What it said, with the numbers behind it.
        verdict: &'a Verdict,
    },
    /// A step ended; `state` is what a resumed run continues from.
    StepFinished {
        /// The step's record, as in `history.json`.
        record: &'a StepRecord,
        /// The trainer's whole state.
        #[serde(skip)]
        state: &'a State,
    },
    /// The state changed outside a step (after the baseline, at an epoch's end).
    Checkpoint {
        /// The trainer's whole state.
        #[serde(skip)]
        state: &'a State,
    },
    /// The run is complete.
    RunFinished {
        /// Its numbers.
        summary: &'a Summary,
        /// The best skill's text.
        #[serde(skip)]
        best_skill: &'a str,
    },
    /// Something worth telling that does not stop the run.
    Note {
        /// One sentence.
        message: &'a str,
    },
}

/// Whoever wants to know.
pub trait Observer: Send {
    /// Takes note of `event`.
    ///
    /// # Errors
    /// When the observer could not keep what it must keep; the run stops with this error.
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()>;

    /// Waits until what it was told is kept for good, if that takes a while.
    ///
    /// # Errors
    /// As [`Observer::observe`].
    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The observers of a run, told in the order in which they were added.
#[derive(Default)]
pub struct Observers(std::sync::Mutex<Vec<Box<dyn Observer>>>);

impl Observers {
    /// Adds one.
    pub fn add(&mut self, observer: impl Observer + 'static) {
        self.0
            .get_mut()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(Box::new(observer));
    }

    /// Tells all of them.
    ///
    /// # Errors
    /// The first observer's error.
    pub fn emit(&self, event: &Event<'_>) -> io::Result<()> {
        self.all().iter_mut().try_for_each(|o| o.observe(event))
    }

    /// Waits until all of them have kept what they were told.
    ///
    /// # Errors
    /// The first observer's error.
    pub fn settle(&self) -> io::Result<()> {
        self.all().iter_mut().try_for_each(|o| o.settle())
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Box<dyn Observer>>> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
