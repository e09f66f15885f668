//! The trial of a step's candidate: its own batch when that is asked for, then the gate, then the
//! question which of its edits were needed.

use super::Trainer;
use super::attribution::{Attribution, LeaveOneOut, plan as leave_one_out};
use super::candidate::Candidate;
use super::environment::{Environment, Item, Rollout};
use super::error::TrainError;
use super::evaluation::{FIRST_DRAW, Scores, mean};
use super::event::Event;
use super::gate::{Judged, means};
use super::microbatch::Studied;
use super::patch::Patch;
use super::plan::StepPlan;
use super::run_dir::step_dir;
use super::state::State;
use super::update_mode::UpdateMode;
use super::verdict::Verdict;

/// What came out of a trial.
pub(super) struct Trial {
    /// The candidate, without the edits that turned out not to be needed.
    pub(super) candidate: Candidate,
    /// `None` when the candidate is the current skill, which noise must not be allowed to
    /// "improve" (W-G2).
    pub(super) verdict: Option<Verdict>,
    /// What each edit contributed, when that was asked.
    pub(super) attribution: Option<Attribution>,
}

impl<E: Environment> Trainer<'_, E> {
    /// Tries the candidate of a step.
    pub(super) async fn trial(
        &self,
        plan: &StepPlan<'_>,
        studied: &Studied,
        candidate: Candidate,
        state: &mut State,
    ) -> Result<Trial, TrainError> {
        let dir = step_dir(plan.step);
        let mut trial = Trial {
            candidate,
            verdict: None,
            attribution: None,
        };
        if trial.candidate.skill == state.current.skill {
            return Ok(trial);
        }
        let verdict = match self
            .prescreen(plan, studied, &trial.candidate, state)
            .await?
        {
            Some(verdict) => verdict,
            None => {
                self.gate(&format!("{dir}/selection_eval"), &trial.candidate, state)
                    .await?
            }
        };
        let asks = self.settings.attribute && self.settings.use_gate;
        let patch = self.settings.update_mode == UpdateMode::Patch;
        let accepted = verdict.action.is_accept();
        trial.verdict = Some(verdict);
        if asks && patch && accepted {
            self.attribute(&dir, &mut trial, state).await?;
        }
        if let Some(verdict) = &trial.verdict {
            self.observers.emit(&Event::GateDecided {
                step: plan.step,
                verdict,
            })?;
        }
        Ok(trial)
    }

    async fn gate(
        &self,
        dir: &str,
        candidate: &Candidate,
        state: &mut State,
    ) -> Result<Verdict, TrainError> {
        let gate = self.gate_of(self.settings.use_gate);
        let evaluator = self.evaluator(dir);
        let Judged { verdict, scores } = gate.judge(&evaluator, candidate, state).await?;
        if let Some(scores) = scores {
            state.selections.insert(candidate.hash.clone(), scores);
        }
        Ok(verdict)
    }

    /// Scores the candidate on the batch that it came from, when that is asked for; a verdict when
    /// it is no better there and need not be scored on the selection items.
    async fn prescreen(
        &self,
        plan: &StepPlan<'_>,
        studied: &Studied,
        candidate: &Candidate,
        state: &State,
    ) -> Result<Option<Verdict>, TrainError> {
        if !self.settings.prescreen || !self.settings.use_gate {
            return Ok(None);
        }
        let items: Vec<Item> = plan
            .batches
            .iter()
            .flat_map(|batch| &batch.items)
            .map(|item| (**item).clone())
            .collect();
        let dir = format!("{}/prescreen", step_dir(plan.step));
        let evaluation = self.evaluate(&items, &candidate.skill, &dir, &dir).await?;
        let before = self.score(
            mean(studied.rollouts().filter_map(Rollout::scores)),
            &state.current.skill,
        );
        let after = self.score(evaluation.scores(), &candidate.skill);
        if after > before {
            return Ok(None);
        }
        Ok(Some(Verdict::prescreened(
            &self.settings.gate_rule,
            self.settings.gate.metric,
            before.unwrap_or_default(),
            after,
            self.selection_items().len(),
        )))
    }

    /// Scores the accepted batch without each of its edits, and takes out those that were not
    /// needed if what remains passes the gate too.
    async fn attribute(
        &self,
        dir: &str,
        trial: &mut Trial,
        state: &mut State,
    ) -> Result<(), TrainError> {
        let with = trial.verdict.as_ref().and_then(|v| v.candidate_score);
        let edits = trial.candidate.patch.items.len();
        let (Some(with), false) = (with, edits < 2) else {
            return Ok(());
        };
        let mut without = vec![LeaveOneOut::NotScored; edits];
        for edit in leave_one_out(edits, edits) {
            let rest = without_edits(&trial.candidate.patch, &[edit]);
            let rest = Candidate::from_edits(&state.current.skill, rest);
            without[edit] = match self.selection_score(dir, &rest, state).await {
                Ok(score) => score.map_or(LeaveOneOut::NotMeasured, LeaveOneOut::Score),
                // The batch is accepted, and stays so: only the question stays open.
                Err(TrainError::Budget(_)) => break,
                Err(error) => return Err(error),
            };
        }
        let attribution = Attribution::new(with, &without, 0.0);
        let mut remainders = vec![attribution.dropped()];
        remainders.extend(attribution.fallback.map(|edit| vec![edit]));
        remainders.retain(|dropped| !dropped.is_empty());
        for (round, dropped) in remainders.iter().enumerate() {
            let rest = without_edits(&trial.candidate.patch, dropped);
            let rest = Candidate::from_edits(&state.current.skill, rest);
            let dir = format!("{dir}/attribution/remainder_{round}");
            let verdict = match self.gate(&dir, &rest, state).await {
                Ok(verdict) => verdict,
                Err(TrainError::Budget(_)) => break,
                Err(error) => return Err(error),
            };
            if verdict.action.is_accept() {
                trial.candidate = rest;
                trial.verdict = Some(verdict);
                break;
            }
        }
        self.observers.emit(&Event::Attributed {
            dir,
            attribution: &attribution,
            candidate: &trial.candidate,
        })?;
        trial.attribution = Some(attribution);
        Ok(())
    }

    /// The gate score of a document over all selection items; `None` when too little of it could
    /// be measured.
    async fn selection_score(
        &self,
        dir: &str,
        candidate: &Candidate,
        state: &mut State,
    ) -> Result<Option<f64>, TrainError> {
        if !state.selections.contains_key(&candidate.hash) {
            let dir = format!("{dir}/attribution/{}", candidate.hash);
            let evaluator = self.evaluator(&dir);
            let items = self.selection_items();
            let evaluation = evaluator
                .evaluate(items, &candidate.skill, FIRST_DRAW)
                .await?;
            let scores = evaluation.item_scores();
            state.selections.insert(candidate.hash.clone(), scores);
        }
        let items = &state.selections[&candidate.hash];
        let complete = items.iter().all(|item| item.scores.is_some());
        Ok(self
            .score(means(items), &candidate.skill)
            .filter(|_| complete))
    }

    fn score(&self, scores: Option<Scores>, skill: &str) -> Option<f64> {
        scores.map(|s| self.settings.gate.score(s.hard, s.soft, skill))
    }
}

/// The patch without some of its items.
fn without_edits(patch: &Patch, dropped: &[usize]) -> Patch {
    let mut rest = patch.clone();
    let mut place = 0..;
    rest.items
        .retain(|_| !place.next().is_some_and(|place| dropped.contains(&place)));
    rest
}
