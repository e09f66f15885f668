//! What our runs do better than the recorded ones, one rule a weakness.
//!
//! A rule turns the record into what it would be without the weakness, wherever that follows from
//! the rest, and checks our run where it does. What is still different then is unexplained. Where a
//! weakness changes the course of a run, its record says nothing about ours, and `trace_sound.rs`
//! says what must hold instead.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use skillopt_sleep::config::modes::Mode as _;
use skillopt_sleep::skill::skill_hash;
use skillopt_sleep::trainer::schedule::{LrScheduler, Schedule};

use super::Vector;
use super::compare::differences;
use super::trace_sound::pass_rate;

/// The differences that no rule explains, and the weaknesses that were met.
pub(super) struct Explained {
    pub(super) left: Vec<String>,
    pub(super) fired: BTreeSet<&'static str>,
}

pub(super) fn explained(vector: &Vector, ours: &Value) -> Explained {
    let mut sides = Sides {
        input: &vector.input,
        theirs: vector.expected.clone(),
        ours: ours.clone(),
        left: Vec::new(),
        fired: BTreeSet::new(),
    };
    sides.refused_before_anything();
    sides.repeated_steps();
    sides.unchanged_candidates();
    sides.rewound_state();
    sides.budgets();
    sides.memory();
    sides.baselines();
    sides.final_validation();
    sides.events();
    let Sides {
        theirs,
        ours,
        mut left,
        fired,
        ..
    } = sides;
    left.extend(differences(&theirs, &ours, false));
    Explained { left, fired }
}

struct Sides<'a> {
    input: &'a Value,
    theirs: Value,
    ours: Value,
    left: Vec<String>,
    fired: BTreeSet<&'static str>,
}

impl Sides<'_> {
    fn require(&mut self, holds: bool, what: &str) {
        if !holds {
            self.left.push(what.to_owned());
        }
    }

    /// W-C9: what is refused leaves nothing behind.
    fn refused_before_anything(&mut self) {
        let refused = list(&self.theirs["runs"]).all(|run| run.get("error").is_some());
        if refused && self.ours["files"] == json!([]) && self.theirs["files"] != json!([]) {
            self.theirs["files"] = json!([]);
            self.fired.insert("W-C9");
        }
    }

    /// W-P2: a step that runs again has one record.
    fn repeated_steps(&mut self) {
        let records: Vec<Value> = list(&self.theirs["history"]).cloned().collect();
        let last_of = |step: &Value| records.iter().rposition(|other| other["step"] == *step);
        let once: Vec<Value> = records
            .iter()
            .enumerate()
            .filter(|(index, record)| last_of(&record["step"]) == Some(*index))
            .map(|(_, record)| record.clone())
            .collect();
        if once.len() < records.len() {
            self.fired.insert("W-P2");
            self.theirs["history"] = json!(once);
            self.recount(records.len());
        }
    }

    /// W-G2: a candidate that is the current skill is not scored, and never taken.
    fn unchanged_candidates(&mut self) {
        let steps: Vec<Value> = list(&self.ours["history"])
            .filter(|record| record["action"] == "skip_no_change")
            .cloned()
            .collect();
        let count = list(&self.theirs["history"]).count();
        for ours in &steps {
            let (step, name) = (ours["step"].as_u64().unwrap_or(0), step_name(ours));
            let skill = self.ours["skills"][format!("skill_v{:04}.md", step - 1)].as_str();
            let same = skill.map(skill_hash).as_deref() == ours["candidate_hash"].as_str();
            let appendix = self.input["cfg"]["use_skill_aware_reflection"] == true && step == 1;
            self.require(
                same || appendix,
                "an unchanged candidate is the current skill",
            );
            let Some(record) =
                list_mut(&mut self.theirs["history"]).find(|r| r["step"] == ours["step"])
            else {
                continue;
            };
            if record["action"] == ours["action"] {
                continue;
            }
            self.fired.insert("W-G2");
            for key in [
                "selection_hard",
                "selection_soft",
                "gate_metric",
                "candidate_gate_score",
            ] {
                remove(record, key);
            }
            record["action"] = ours["action"].clone();
            let digest = &mut self.theirs["trajectory_digests"][&name];
            digest["action"] = ours["action"].clone();
            for key in ["score_before", "score_after", "rejected_edits"] {
                remove(digest, key);
            }
            self.rename_origin(&name, &ours["current_origin"]);
        }
        if !steps.is_empty() {
            self.recount(count);
        }
    }

    /// A skill that a step did not change keeps its origin.
    fn rename_origin(&mut self, from: &str, to: &Value) {
        let records = list_mut(&mut self.theirs["history"]);
        let mut all: Vec<&mut Value> = records.collect();
        for place in &mut all {
            if place["current_origin"] == from {
                place["current_origin"] = to.clone();
            }
        }
        if self.theirs["runtime_state"]["current_origin"] == from {
            self.theirs["runtime_state"]["current_origin"] = to.clone();
        }
        for run in list_mut(&mut self.theirs["runs"]) {
            if run["summary"]["current_origin"] == from {
                run["summary"]["current_origin"] = to.clone();
            }
        }
    }

    /// Counts the record's own steps again, in the summaries that were made of `steps` records.
    fn recount(&mut self, steps: usize) {
        let history: Vec<Value> = list(&self.theirs["history"]).cloned().collect();
        let stats = stats(&history);
        for run in list_mut(&mut self.theirs["runs"]) {
            let Some(summary) = run.get_mut("summary") else {
                continue;
            };
            if summary["total_steps"].as_u64() != Some(steps as u64) {
                continue;
            }
            let sum = |key: &str| -> u64 { stats.iter().filter_map(|e| e[key].as_u64()).sum() };
            summary["total_steps"] = json!(history.len());
            summary["total_accepts"] = json!(sum("accepts"));
            summary["total_rejects"] = json!(sum("rejects"));
            summary["total_skips"] = json!(sum("skips"));
            summary["epoch_stats"] = json!(stats);
        }
    }

    /// W-P7: fewer epochs do not move a run backwards.
    fn rewound_state(&mut self) {
        let last = list(&self.theirs["history"])
            .filter_map(|r| r["step"].as_u64())
            .max();
        let state = &mut self.theirs["runtime_state"];
        if state.is_object() && last > state["last_completed_step"].as_u64() {
            state["last_completed_step"] = json!(last);
            state["current_skill_path"] =
                json!(format!("skills/skill_v{:04}.md", last.unwrap_or(0)));
            self.fired.insert("W-P7");
            self.recount(list(&self.theirs["history"]).count());
        }
    }

    /// W-L2: the budget is a function of the step alone.
    fn budgets(&mut self) {
        let cfg = &self.input["cfg"];
        let number = |key: &str| usize::try_from(cfg[key].as_u64().unwrap_or(0)).unwrap_or(0);
        let Some(Ok(scheduler)) = cfg["lr_scheduler"].as_str().map(LrScheduler::parse) else {
            return;
        };
        let per_step = (number("batch_size") * number("accumulation")).max(1);
        let size = match number("train_size") {
            0 => list(&self.input["train_items"]).count(),
            size => size,
        };
        let total = size.div_ceil(per_step) * number("num_epochs");
        let schedule = Schedule::new(
            scheduler,
            number("edit_budget"),
            number("min_edit_budget"),
            total,
        );
        let ours: Vec<Value> = list(&self.ours["history"]).cloned().collect();
        let mut fired = false;
        for record in list_mut(&mut self.theirs["history"]) {
            let Some(ours) = ours.iter().find(|ours| ours["step"] == record["step"]) else {
                continue;
            };
            let step = usize::try_from(ours["step"].as_u64().unwrap_or(0)).unwrap_or(0);
            let fixed = ours["lr_control_mode"] == "fixed" && record["lr_control_mode"] == "fixed";
            if fixed
                && ours["edit_budget"] != record["edit_budget"]
                && ours["edit_budget"] == json!(schedule.budget(step))
            {
                record["edit_budget"] = ours["edit_budget"].clone();
                fired = true;
            }
        }
        if fired {
            self.fired.insert("W-L2");
        }
    }

    /// W-B3, W-P4: from an epoch's second step on, analysts are told of the earlier ones, also after
    /// a restart. W-U6: the last memory that was written stays.
    fn memory(&mut self) {
        let history: Vec<Value> = list(&self.ours["history"]).cloned().collect();
        let told = |events: &Value| -> Vec<Value> {
            let reflections = list(events).filter(|event| event["event"] == "reflect");
            reflections
                .map(|event| json!([event["dir"], event["has_step_buffer"], event["meta_skill"]]))
                .collect()
        };
        let (theirs, ours) = (told(&self.theirs["events"]), told(&self.ours["events"]));
        for event in &ours {
            let Some(record) = history.iter().find(|record| {
                event[0]
                    .as_str()
                    .unwrap_or_default()
                    .contains(&step_name(record))
            }) else {
                continue;
            };
            let later = record["step_in_epoch"].as_u64() > Some(0);
            self.require(
                event[1] == later,
                "the analysts are told of the epoch's earlier steps",
            );
            let memory = self.last_memory(record["epoch"].as_u64().unwrap_or(0));
            self.require(event[2] == memory, "the analysts have the last memory");
        }
        let pairs = || theirs.iter().zip(&ours);
        if pairs().any(|(theirs, ours)| theirs[1] != ours[1]) {
            let restarted = list(&self.input["runs"]).count() > 1;
            self.fired.insert(if restarted { "W-P4" } else { "W-B3" });
        }
        if pairs().any(|(theirs, ours)| theirs[2] != ours[2]) {
            self.fired.insert("W-U6");
        }
        for events in [&mut self.theirs["events"], &mut self.ours["events"]] {
            for event in list_mut(events) {
                remove(event, "has_step_buffer");
                remove(event, "meta_skill");
            }
        }
    }

    fn last_memory(&self, epoch: u64) -> String {
        let earlier = (1..epoch).rev().map(|epoch| format!("epoch_{epoch:02}"));
        let mut written = earlier.filter_map(|name| {
            Some(
                self.ours["meta_skill"]
                    .get(&name)?
                    .get("meta_skill_content")?
                    .as_str()?
                    .to_owned(),
            )
        });
        written.next().unwrap_or_default()
    }

    /// W-P6: a restarted run knows its baseline.
    fn baselines(&mut self) {
        let skill = self.input["skill_init"].as_str().unwrap_or_default();
        let baseline = pass_rate(self.input, skill);
        let ours: Vec<Value> = list(&self.ours["runs"])
            .map(|run| run["summary"]["baseline_selection_hard"].clone())
            .collect();
        for (run, ours) in list_mut(&mut self.theirs["runs"]).zip(ours) {
            let Some(summary) = run.get_mut("summary") else {
                continue;
            };
            if summary["baseline_selection_hard"].is_null() && same_number(&ours, baseline) {
                summary["baseline_selection_hard"] = ours;
                self.fired.insert("W-P6");
            }
        }
    }

    /// W-G5: a final skill that is not the best one is measured also when nothing is tested, and
    /// becomes the best one when it is better.
    fn final_validation(&mut self) {
        let Some(last) = list(&self.ours["runs"]).rposition(|run| run.get("summary").is_some())
        else {
            return;
        };
        let ours: Vec<Value> = list(&self.ours["runs"])
            .map(|run| run["summary"].clone())
            .collect();
        for (theirs, ours) in list_mut(&mut self.theirs["runs"]).zip(&ours) {
            let Some(theirs) = theirs.get_mut("summary") else {
                continue;
            };
            if !theirs["final_selection_hard"].is_null()
                || !ours["final_selection_hard"].is_number()
            {
                continue;
            }
            for key in ["final_selection_hard", "final_selection_soft"] {
                theirs[key] = ours[key].clone();
            }
            self.fired.insert("W-G5");
        }
        let path = self.ours["runtime_state"]["current_skill_path"]
            .as_str()
            .unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or_default();
        let skill = self.ours["skills"][file]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let summary = &ours[last];
        let measured = &summary["final_selection_hard"];
        let plain = self.input["cfg"].get("gate_metric").is_none()
            && self.input["cfg"]["use_semantic_density"] != true;
        let rate = pass_rate(self.input, &skill);
        self.require(
            !plain || measured.is_null() || same_number(measured, rate),
            "the final skill's score is its own",
        );
        let theirs = &self.theirs["runs"][last]["summary"];
        let better =
            summary["best_selection_hard"].as_f64() > theirs["best_selection_hard"].as_f64();
        if better && self.input["cfg"]["eval_test"] != true {
            let promoted = summary["best_origin"] == summary["current_origin"]
                && self.ours["best_skill"] == skill;
            self.require(promoted, "a better final skill is the best one");
            for key in ["best_selection_hard", "best_step", "best_origin"] {
                self.theirs["runs"][last]["summary"][key] = summary[key].clone();
            }
            for key in ["best_score", "best_step", "best_origin"] {
                self.theirs["runtime_state"][key] = self.ours["runtime_state"][key].clone();
            }
            self.theirs["best_skill"] = self.ours["best_skill"].clone();
        }
    }

    /// Rollouts and calls that only one side has, each for a reason.
    fn events(&mut self) {
        let theirs: Vec<Value> = list(&self.theirs["events"]).cloned().collect();
        let ours: Vec<Value> = list(&self.ours["events"]).cloned().collect();
        let (mut i, mut j, mut run) = (0, 0, 0);
        loop {
            let (their, our) = (theirs.get(i), ours.get(j));
            run += usize::from(
                their.is_some_and(|event| event["event"] == "run_start" && their == our),
            );
            match (their, our) {
                (None, None) => break,
                (Some(their), Some(our)) if their == our => (i, j) = (i + 1, j + 1),
                (their, our) => {
                    if let Some(why) = their.and_then(|event| self.spared(event, &ours[..j], run)) {
                        self.fired.insert(why);
                        i += 1;
                    } else if let Some(why) =
                        our.and_then(|event| self.added(event, &ours[..j], run))
                    {
                        self.fired.insert(why);
                        j += 1;
                    } else {
                        self.left
                            .push(format!("events: {} against {}", json!(their), json!(our)));
                        break;
                    }
                }
            }
        }
        let topped_up = |events: &[Value], mark: &str| -> BTreeSet<String> {
            let own = events
                .iter()
                .filter(|event| event["dir"].as_str().unwrap_or_default().contains(mark));
            own.flat_map(|event| list(&event["item_ids"]))
                .map(Value::to_string)
                .collect()
        };
        let enough = topped_up(&theirs, "/topup/").is_subset(&topped_up(&ours, "/topup_"));
        self.require(
            enough,
            "more items are taken in batches, the same in the same order",
        );
        self.theirs["events"] = json!([]);
        self.ours["events"] = json!([]);
    }

    /// Why our run does without an event of theirs.
    fn spared(&self, event: &Value, before: &[Value], run: usize) -> Option<&'static str> {
        let dir = event["dir"].as_str().unwrap_or_default();
        let measured = || {
            before.iter().any(|other| {
                other["skill_hash"] == event["skill_hash"] && other["item_ids"] == event["item_ids"]
            })
        };
        match dir {
            "final_selection_eval" | "test_eval" | "test_eval_final" if measured() => {
                Some("measured_once")
            }
            "selection_eval_baseline" if run > 1 && measured() => Some("W-P1"),
            _ if dir.contains("/topup/") => Some("W-U9"),
            _ if dir.ends_with("/selection_eval") && self.is_unchanged(dir) => Some("W-G2"),
            _ if event["event"] == "llm" && self.has_no_pairs(event) => Some("W-U2"),
            _ => None,
        }
    }

    fn is_unchanged(&self, dir: &str) -> bool {
        list(&self.ours["history"])
            .any(|record| record["action"] == "skip_no_change" && dir.contains(&step_name(record)))
    }

    fn has_no_pairs(&self, event: &Value) -> bool {
        let results = event["stage"]
            .as_str()
            .and_then(|stage| self.ours[stage].as_object());
        results.is_some_and(|results| {
            results
                .values()
                .any(|result| result["action"] == "no_pairs")
        })
    }

    /// Why our run has an event that theirs has not.
    fn added(&self, event: &Value, before: &[Value], run: usize) -> Option<&'static str> {
        let dir = event["dir"].as_str().unwrap_or_default();
        let again = || {
            run > 1
                && before.iter().any(|other| {
                    ["dir", "skill_hash", "item_ids"]
                        .iter()
                        .all(|key| other[*key] == event[*key])
                })
        };
        match dir {
            "final_selection_eval" if self.input["cfg"]["eval_test"] != true => Some("W-G5"),
            _ if dir.contains("/topup_") => Some("W-U9"),
            _ if dir.ends_with("/selection_eval") && again() => Some("W-P2"),
            _ if dir.starts_with("slow_update/") && again() => Some("epoch_end_again"),
            _ => None,
        }
    }
}

fn stats(history: &[Value]) -> Vec<Value> {
    let mut epochs: Vec<Value> = Vec::new();
    for record in history {
        if epochs
            .last()
            .is_none_or(|last| last["epoch"] != record["epoch"])
        {
            epochs.push(json!({"epoch": record["epoch"], "steps": [], "accepts": 0, "rejects": 0, "skips": 0}));
        }
        let Some(epoch) = epochs.last_mut() else {
            continue;
        };
        if let Some(steps) = epoch["steps"].as_array_mut() {
            steps.push(record["step"].clone());
        }
        let action = record["action"].as_str().unwrap_or_default();
        for (key, counts) in [
            ("accepts", action.contains("accept")),
            ("rejects", action == "reject"),
            ("skips", action == "skip_no_patches"),
        ] {
            epoch[key] = json!(epoch[key].as_u64().unwrap_or(0) + u64::from(counts));
        }
        epoch["best_score_at_epoch_end"] = record["best_score"].clone();
        epoch["current_score_at_epoch_end"] = record["current_score"].clone();
    }
    epochs
}

fn same_number(value: &Value, number: f64) -> bool {
    value
        .as_f64()
        .is_some_and(|value| (value - number).abs() < 1e-9)
}

fn step_name(record: &Value) -> String {
    format!("step_{:04}", record["step"].as_u64().unwrap_or(0))
}

pub(super) fn list(value: &Value) -> std::slice::Iter<'_, Value> {
    value.as_array().map_or(&[][..], Vec::as_slice).iter()
}

fn list_mut(value: &mut Value) -> std::slice::IterMut<'_, Value> {
    value
        .as_array_mut()
        .map_or(&mut [][..], Vec::as_mut_slice)
        .iter_mut()
}

fn remove(object: &mut Value, key: &str) {
    if let Some(object) = object.as_object_mut() {
        object.remove(key);
    }
}
