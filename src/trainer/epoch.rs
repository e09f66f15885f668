//! The end of an epoch: the slow update writes long-term guidance into the skill (engine 15), the
//! meta skill keeps the optimizer's own memory (engine 16).

use std::time::Instant;

use minijinja::context;
use serde_json::{Value, json};

use super::Trainer;
use super::batches;
use super::candidate::Candidate;
use super::environment::{Environment, Item, Split};
use super::error::TrainError;
use super::evaluation::Scores;
use super::event::Event;
use super::gate::Judged;
use super::gate_rule::GateAction;
use super::longitudinal::{Longitudinal, Sample, compare};
use super::optimizer::{Question, REPLY_TOKENS};
use super::optimizer_reply::{Guidance, guidance};
use super::pairs::PairPolicy;
use super::patch::Patch;
use super::plan::draw;
use super::state::{Scored, State};
use crate::skill::region::{self, RegionKind};

/// Seeds of different epochs are this far apart (engine 15).
const EPOCH_STRIDE: i64 = 2000;

impl<E: Environment> Trainer<'_, E> {
    /// Ends `epoch`: slow update, then meta skill, then the new state is committed.
    pub(super) async fn end_epoch(&self, epoch: u32, state: &mut State) -> Result<(), TrainError> {
        let before = state.current.skill.clone();
        let previous = state.epoch_skill.clone();
        let mut compared = None;
        if self.settings.use_slow_update {
            match &previous {
                None => self.place_region(epoch, state)?,
                Some(previous) => {
                    let dir = format!("slow_update/epoch_{epoch:02}");
                    let pairs = self.longitudinal(epoch, previous, &before, &dir).await?;
                    self.slow_update(epoch, previous, &pairs, state).await?;
                    compared = Some(pairs);
                }
            }
        }
        if self.settings.use_meta_skill {
            self.meta_skill(epoch, previous.as_deref(), &before, compared, state)
                .await?;
        }
        state.epoch_skill = Some(state.current.skill.clone());
        state.completed_epochs = epoch;
        state.usage = self.usage.now(&self.meter);
        self.observers.emit(&Event::Checkpoint { state })?;
        Ok(())
    }

    /// In the first epoch there is nothing to compare yet; the region is put in place empty.
    fn place_region(&self, epoch: u32, state: &mut State) -> Result<(), TrainError> {
        let skill = region::ensure_slow(&state.current.skill);
        if skill != state.current.skill {
            state.current.skill = skill;
            state.current.origin = "slow_update_placeholder_epoch_01".to_owned();
        }
        let result = json!({"action": "inject_placeholder", "epoch": epoch});
        self.record_slow_update(epoch, &result)
    }

    async fn slow_update(
        &self,
        epoch: u32,
        previous: &str,
        pairs: &Longitudinal,
        state: &mut State,
    ) -> Result<(), TrainError> {
        let clock = Instant::now();
        let written = self.ask_for_guidance(epoch, previous, pairs, state).await?;
        let Some(written) = written else {
            let result = json!({"action": nothing_written(pairs), "epoch": epoch, "time_s": clock.elapsed().as_secs_f64()});
            return self.record_slow_update(epoch, &result);
        };
        let skill = region::write_slow(&state.current.skill, &written.content);
        let candidate = Candidate::whole(skill, Patch::default());
        let dir = format!("slow_update/epoch_{epoch:02}");
        self.observers.emit(&Event::CandidateMade {
            dir: &dir,
            candidate: &candidate,
            summary: None,
        })?;
        let (action, selection) = self.take_guidance(epoch, &candidate, &dir, state).await?;
        let mut result = json!({
            "epoch": epoch,
            "reasoning": written.reasoning,
            "slow_update_content": written.content,
            "time_s": clock.elapsed().as_secs_f64(),
            "prev_hard": pairs.previous_hard,
            "curr_hard": pairs.current_hard,
            "candidate_hash": candidate.hash,
            "update_origin": "slow_update_momentum",
            "update_target": "the slow-update region of the current skill",
            "action": action.name(),
        });
        if let (Some(selection), Some(result)) = (selection, result.as_object_mut()) {
            result.insert("selection_hard".to_owned(), json!(selection.hard));
            result.insert("selection_soft".to_owned(), json!(selection.soft));
        }
        self.record_slow_update(epoch, &result)
    }

    /// `None` without pairs to learn from (W-U2), and when the reply has no guidance.
    async fn ask_for_guidance(
        &self,
        epoch: u32,
        previous: &str,
        pairs: &Longitudinal,
        state: &State,
    ) -> Result<Option<Guidance>, TrainError> {
        if pairs.kept.is_empty() {
            return Ok(None);
        }
        let skill = &state.current.skill;
        let question = Question {
            stage: "slow_update",
            template: "slow_update",
            context: context! {
                previous_skill => previous,
                skill => skill,
                guidance => region::inner(skill, RegionKind::SlowUpdate).unwrap_or_default(),
                comparison => pairs.text(),
                pairs => pairs.kept.len(),
            },
            sample: &format!("slow_update/epoch_{epoch:02}"),
            max_tokens: REPLY_TOKENS,
        };
        // The memory of earlier epochs is not for the target's guidance (engine 16).
        let reply = self.optimizer("").ask(question).await?.value();
        Ok(reply.and_then(|reply| guidance(&reply, "slow_update_content")))
    }

    /// Takes the document with the new guidance: at once, or behind the gate when that is asked
    /// for. Taken ungated, its score stays the old one and counts as stale (W-G4).
    async fn take_guidance(
        &self,
        epoch: u32,
        candidate: &Candidate,
        dir: &str,
        state: &mut State,
    ) -> Result<(GateAction, Option<Scores>), TrainError> {
        let origin = format!("slow_update_epoch_{epoch:02}");
        if !self.settings.slow_update_gated {
            state.current.skill.clone_from(&candidate.skill);
            state.current.origin = origin;
            return Ok((GateAction::ForceAccept, None));
        }
        let gate = self.gate_of(true);
        let dir = format!("{dir}/selection_eval");
        let Judged { verdict, scores } =
            gate.judge(&self.evaluator(&dir), candidate, state).await?;
        if let Some(scores) = scores {
            state.selections.insert(candidate.hash.clone(), scores);
        }
        if verdict.action.is_accept() {
            let scored = Scored {
                skill: candidate.skill.clone(),
                score: verdict.candidate_score,
                origin,
                scored: candidate.hash.clone(),
            };
            if verdict.action == GateAction::AcceptNewBest {
                state.best = scored.clone();
                state.best_step = state.last_completed_step;
            }
            state.current = scored;
        }
        Ok((verdict.action, verdict.scores))
    }

    fn record_slow_update(&self, epoch: u32, result: &Value) -> Result<(), TrainError> {
        self.observers.emit(&Event::SlowUpdated {
            epoch,
            dir: &format!("slow_update/epoch_{epoch:02}"),
            result,
        })?;
        Ok(())
    }

    /// The optimizer's memory; what it had stays when an epoch adds nothing (W-U6), and without
    /// pairs nothing is asked (W-U2).
    async fn meta_skill(
        &self,
        epoch: u32,
        previous: Option<&str>,
        current: &str,
        compared: Option<Longitudinal>,
        state: &mut State,
    ) -> Result<(), TrainError> {
        let clock = Instant::now();
        let dir = format!("meta_skill/epoch_{epoch:02}");
        let Some(previous) = previous else {
            let result = json!({"action": "skip_first_epoch", "epoch": epoch});
            self.observers.emit(&Event::MetaSkillWritten {
                epoch,
                dir: &dir,
                result: &result,
            })?;
            return Ok(());
        };
        let pairs = match compared {
            Some(pairs) => pairs,
            None => self.longitudinal(epoch, previous, current, &dir).await?,
        };
        let written = match pairs.kept.as_slice() {
            [] => None,
            _ => {
                self.ask_for_memory(previous, current, &pairs, &state.meta_skill, &dir)
                    .await?
            }
        };
        let time_s = clock.elapsed().as_secs_f64();
        let result = match written {
            Some(written) => {
                state.meta_skill.clone_from(&written.content);
                json!({
                    "action": "write_meta_skill",
                    "epoch": epoch,
                    "reasoning": written.reasoning,
                    "meta_skill_content": written.content,
                    "time_s": time_s,
                })
            }
            None => {
                json!({"action": nothing_written(&pairs), "epoch": epoch, "time_s": time_s})
            }
        };
        self.observers.emit(&Event::MetaSkillWritten {
            epoch,
            dir: &dir,
            result: &result,
        })?;
        Ok(())
    }

    async fn ask_for_memory(
        &self,
        previous: &str,
        current: &str,
        pairs: &Longitudinal,
        memory: &str,
        dir: &str,
    ) -> Result<Option<Guidance>, TrainError> {
        let question = Question {
            stage: "meta_skill",
            template: "meta_skill",
            context: context! {
                previous_skill => previous,
                skill => current,
                memory => memory,
                comparison => pairs.text(),
                pairs => pairs.kept.len(),
            },
            sample: dir,
            max_tokens: REPLY_TOKENS,
        };
        let reply = self.optimizer("").ask(question).await?.value();
        Ok(reply.and_then(|reply| guidance(&reply, "meta_skill_content")))
    }

    /// Compares the two skills on a sample of the train items, and tells.
    async fn longitudinal(
        &self,
        epoch: u32,
        previous: &str,
        current: &str,
        dir: &str,
    ) -> Result<Longitudinal, TrainError> {
        let seed = self.settings.seed + i64::from(epoch) * EPOCH_STRIDE;
        let wanted = self.settings.slow_update_samples;
        let shuffled: Vec<Item> = match self.environment.items(Split::Train) {
            [] => draw(self.environment, wanted, seed)?,
            items => batches::sample(items.len(), items.len(), seed)
                .into_iter()
                .filter_map(|index| items.get(index).cloned())
                .collect(),
        };
        let sample = Sample {
            items: &shuffled,
            wanted,
            policy: self.settings.pair_policy,
            previous,
            current,
            dir,
        };
        let compared = compare(self.environment, &self.observers, &sample).await?;
        self.observers.emit(&Event::Compared {
            dir,
            pairs: &compared.kept,
            all_pairs: (sample.policy != PairPolicy::Mixed).then_some(compared.all.as_slice()),
            unmeasured: &compared.unmeasured,
        })?;
        Ok(compared)
    }
}

/// Why an epoch's end wrote nothing.
fn nothing_written(pairs: &Longitudinal) -> &'static str {
    if pairs.kept.is_empty() {
        "no_pairs"
    } else {
        "no_content"
    }
}
