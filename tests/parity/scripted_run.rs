//! The world of the scripted training runs: a toy environment, an optimizer that replies by stage,
//! and a process that can die at a chosen point (README of the vectors, "Scripted training runs").

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use skillopt_sleep::model::{CallError, CallErrorKind, ChatModel, ChatReply, ChatRequest, Usage};
use skillopt_sleep::skill::skill_hash;
use skillopt_sleep::trainer::environment::{Environment, Item, Outcome, Rollout, Split, Study};
use skillopt_sleep::trainer::event::{Event, Observer};
use skillopt_sleep::trainer::run_dir::RunDir;

use super::engine::{reply_text, texts};

/// Where a process dies.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Death {
    /// Instead of the n-th rollout into this directory.
    Rollout(String, usize),
    /// Instead of the n-th call of this stage.
    Call(String, usize),
    /// Instead of the n-th writing of the state, counted over all runs.
    Write(usize),
    /// Instead of writing the state of this step.
    Step(u32),
}

/// What all processes of a run share.
#[derive(Default)]
pub(super) struct Script {
    pub(super) events: Vec<Value>,
    pub(super) reflections: VecDeque<Value>,
    pub(super) replies: HashMap<String, VecDeque<Value>>,
    pub(super) broken_dirs: Vec<String>,
    /// How this process dies, and whether it has.
    pub(super) death: Option<Death>,
    pub(super) dead: bool,
    dying: bool,
    /// Writings of the state that the original has too, over all runs.
    writes: usize,
    /// Calls of epoch ends whose result was written. The original keeps those results in files; ours
    /// commits an epoch's end as a whole, and after a crash the journal of calls answers what had
    /// finished. It is cut down to the written results here, so that both use up the same replies.
    journal: HashMap<String, String>,
    unwritten: HashMap<String, String>,
    dir: String,
}

pub(super) type Shared = Arc<Mutex<Script>>;

pub(super) fn lock(script: &Shared) -> MutexGuard<'_, Script> {
    script
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Script {
    /// Begins the next process.
    pub(super) fn start(&mut self, death: Option<Death>) {
        self.death = death;
        self.dead = false;
        self.dying = false;
        self.unwritten.clear();
        self.events.push(json!({"event": "run_start"}));
    }

    /// How often this process has logged an event with this value under `key`.
    fn count(&self, key: &str, value: &str) -> usize {
        let this_run = self.events.iter().rev();
        this_run
            .take_while(|event| event["event"] != "run_start")
            .filter(|event| event[key] == value)
            .count()
    }

    fn die_if(&mut self, now: bool) -> io::Result<()> {
        self.dead |= now;
        if self.dead {
            return Err(io::Error::other("killed"));
        }
        Ok(())
    }
}

/// An item passes iff every string of `needs` is in the skill and none of `breaks` is.
pub(super) struct Toy {
    script: Shared,
    /// Served through the split loader; empty without one.
    listed: Vec<Item>,
    /// What a batch is drawn from without one.
    pool: Vec<Item>,
    selection: Vec<Item>,
    test: Vec<Item>,
}

impl Toy {
    pub(super) fn new(script: Shared, input: &Value) -> Toy {
        let items = |key: &str| -> Vec<Item> {
            input[key]
                .as_array()
                .into_iter()
                .flatten()
                .map(|item| Item {
                    id: item["id"]
                        .as_str()
                        .map_or_else(|| item["id"].to_string(), str::to_owned),
                    payload: item.clone(),
                })
                .collect()
        };
        let train = items("train_items");
        let listed = input["dataloader"] == true;
        Toy {
            script,
            listed: if listed { train.clone() } else { Vec::new() },
            pool: train,
            selection: items("val_items"),
            test: items("test_items"),
        }
    }
}

/// `(passes, why not)`.
pub(super) fn toy_result(item: &Value, skill: &str) -> (bool, String) {
    let missing = texts(&item["needs"])
        .into_iter()
        .find(|need| !skill.contains(need));
    let broken = texts(&item["breaks"])
        .into_iter()
        .find(|text| skill.contains(text));
    match (missing, broken) {
        (Some(need), _) => (false, format!("missing: {need}")),
        (None, Some(text)) => (false, format!("broken: {text}")),
        (None, None) => (true, String::new()),
    }
}

impl Environment for Toy {
    fn name(&self) -> &str {
        "toy"
    }

    fn items(&self, split: Split) -> &[Item] {
        match split {
            Split::Train => &self.listed,
            Split::Selection => &self.selection,
            Split::Test => &self.test,
        }
    }

    fn draw(&self, count: usize, _seed: i64) -> Option<Vec<Item>> {
        Some(self.pool.iter().take(count).cloned().collect())
    }

    async fn reflect(&self, study: &Study<'_>) -> Option<Vec<Value>> {
        let mut script = lock(&self.script);
        script.events.push(json!({
            "event": "reflect", "dir": study.dir, "skill_hash": skill_hash(study.skill),
            "n_results": study.rollouts.len(), "has_step_buffer": !study.history.trim().is_empty(),
            "meta_skill": study.meta_skill,
        }));
        let patches = script.reflections.pop_front().unwrap_or_default();
        Some(patches.as_array().cloned().unwrap_or_default())
    }

    async fn attempt(&self, item: &Item, skill: &str, _sample: &str) -> Rollout {
        let mut script = lock(&self.script);
        let broken = script.broken_dirs.contains(&script.dir);
        // Attempts of one evaluation follow its start directly: nothing here waits.
        if let Some(event) = script.events.last_mut() {
            event["skill_hash"] = json!(skill_hash(skill));
            if let Some(ids) = event["item_ids"].as_array_mut() {
                ids.push(item.payload["id"].clone());
            }
        }
        let mut rollout = Rollout::unusable(item, "scripted failure");
        if broken {
            return rollout;
        }
        let (passed, fail_reason) = toy_result(&item.payload, skill);
        let missed = item.payload["soft_miss"].as_f64().unwrap_or(0.0);
        rollout.outcome = Outcome::Measured {
            hard: f64::from(u8::from(passed)),
            soft: if passed { 1.0 } else { missed },
        };
        rollout.fail_reason = fail_reason;
        rollout.task_type = item.payload["task_type"]
            .as_str()
            .unwrap_or("toy")
            .to_owned();
        rollout.task_description = item.payload["question"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        rollout.fields = Map::from_iter([("n_turns".to_owned(), json!(1))]);
        rollout
    }
}

/// Replies by stage, in order.
pub(super) struct ByStage(pub(super) Shared);

impl ChatModel for ByStage {
    fn id(&self) -> &str {
        "scripted/by-stage"
    }

    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, CallError>> {
        Box::pin(async move { self.reply(request) })
    }
}

impl ByStage {
    fn reply(&self, request: &ChatRequest) -> Result<ChatReply, CallError> {
        let mut script = lock(&self.0);
        let killed = || CallError::new(CallErrorKind::Budget, "killed");
        if script.dead {
            return Err(killed());
        }
        let ends_epoch = matches!(request.stage, "slow_update" | "meta_skill");
        let key = format!(
            "{} {} {:?}",
            request.stage, request.sample, request.messages
        );
        if let Some(text) = script.journal.get(&key) {
            return Ok(answer(text));
        }
        script
            .events
            .push(json!({"event": "llm", "stage": request.stage}));
        let nth = script.count("stage", request.stage);
        let dies = script.death == Some(Death::Call(request.stage.to_owned(), nth));
        script.die_if(dies).map_err(|_| killed())?;
        let queue = script.replies.get_mut(request.stage);
        let reply = queue.and_then(VecDeque::pop_front).unwrap_or_default();
        let text = reply_text(&reply)
            .ok_or_else(|| CallError::new(CallErrorKind::Server, "scripted failure"))?;
        if ends_epoch {
            script.unwritten.insert(key, text.clone());
        }
        Ok(answer(&text))
    }
}

fn answer(text: &str) -> ChatReply {
    ChatReply {
        text: text.to_owned(),
        usage: Usage::default(),
        finish_reason: None,
    }
}

/// Writes the run directory, logs rollouts, and dies when it is time.
pub(super) struct Process {
    script: Shared,
    run: RunDir,
    use_slow_update: bool,
    ended_epochs: u32,
}

impl Process {
    pub(super) fn new(script: Shared, run: RunDir, use_slow_update: bool, epochs: u32) -> Process {
        Process {
            script,
            run,
            use_slow_update,
            ended_epochs: epochs,
        }
    }

    fn state_file(&self) -> PathBuf {
        self.run.root().join("runtime_state.json")
    }

    /// Whether the state is written here, for the step if it is a step's, and whether the original
    /// writes it too: it does not at the end of an epoch without a slow update.
    fn writes(&mut self, event: &Event<'_>) -> Option<(Option<u32>, bool)> {
        match event {
            Event::StepFinished { record, .. } => Some((Some(record.step), true)),
            Event::Checkpoint { state } => {
                let ends_epoch = state.completed_epochs > self.ended_epochs;
                self.ended_epochs = state.completed_epochs;
                Some((None, !ends_epoch || self.use_slow_update))
            }
            _ => None,
        }
    }
}

impl Observer for Process {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let Event::EvaluationStarted { dir, .. } = event {
            let mut script = lock(&self.script);
            script.dir = (*dir).to_owned();
            let logged = json!({"event": "rollout", "dir": dir, "skill_hash": "", "item_ids": []});
            script.events.push(logged);
            let nth = script.count("dir", dir);
            script.dying |= script.death == Some(Death::Rollout((*dir).to_owned(), nth));
        }
        if let Event::EvaluationFinished { .. } = event {
            // The items of a rollout are known once it has been made; none of it is kept.
            let mut script = lock(&self.script);
            let dies = script.dying;
            script.die_if(dies)?;
        }
        if let Event::SlowUpdated { .. } | Event::MetaSkillWritten { .. } = event {
            let mut script = lock(&self.script);
            let written = std::mem::take(&mut script.unwritten);
            script.journal.extend(written);
        }
        let Some((step, counts)) = self.writes(event) else {
            return self.run.observe(event);
        };
        let dies = {
            let mut script = lock(&self.script);
            script.writes += usize::from(counts);
            match script.death {
                Some(Death::Write(nth)) => counts && nth == script.writes,
                Some(Death::Step(at)) => step == Some(at),
                _ => false,
            }
        };
        self.run.settle()?;
        let before = fs::read(self.state_file()).ok();
        self.run.observe(event)?;
        self.run.settle()?;
        if dies {
            // Everything of the commit is on disk but its last file.
            match before {
                Some(bytes) => fs::write(self.state_file(), bytes)?,
                None => fs::remove_file(self.state_file())?,
            }
        }
        lock(&self.script).die_if(dies)
    }
}
