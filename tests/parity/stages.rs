//! The groups of single stages, run with a scripted optimizer: what is asked, and what becomes of
//! the replies.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use skillopt_sleep::config::modes::Mode as _;
use skillopt_sleep::model::{CallError, CallErrorKind, ChatModel, ChatReply, ChatRequest, Usage};
use skillopt_sleep::trainer::aggregate::aggregate;
use skillopt_sleep::trainer::environment::{Item, Outcome, Rollout};
use skillopt_sleep::trainer::event::{Event, Observer, Observers};
use skillopt_sleep::trainer::learning_rate::{self, Evidence};
use skillopt_sleep::trainer::longitudinal::{Trajectories, comparison_text};
use skillopt_sleep::trainer::optimizer::Optimizer;
use skillopt_sleep::trainer::pairs::Pair;
use skillopt_sleep::trainer::patch::Patch;
use skillopt_sleep::trainer::prompt::Prompts;
use skillopt_sleep::trainer::reflect::{Proposals, Reflection, SkillAware, reflect};
use skillopt_sleep::trainer::select::select;
use skillopt_sleep::trainer::trajectory;
use skillopt_sleep::trainer::update::update;
use skillopt_sleep::trainer::update_mode::UpdateMode;

use super::engine::{refused, reply_text, text, texts};
use super::{Group, Vector, group};

pub(super) const GROUPS: &[Group] = &[
    group("engine/reflect_minibatch", reflect_minibatch),
    group("engine/trajectory_text", trajectory_text),
];

/// Replies in the order of calls, and keeps what was asked for.
struct InOrder {
    replies: Mutex<VecDeque<Value>>,
    calls: Mutex<Vec<Value>>,
}

impl ChatModel for InOrder {
    fn id(&self) -> &str {
        "scripted/in-order"
    }

    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, CallError>> {
        Box::pin(async move {
            let call = super::engine::call(request.stage, request.max_tokens);
            self.calls
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(call);
            let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
            let reply = replies.pop_front().unwrap_or_default();
            match reply_text(&reply) {
                Some(text) => Ok(ChatReply {
                    text,
                    usage: Usage::default(),
                    finish_reason: None,
                }),
                None => Err(CallError::new(CallErrorKind::Server, "scripted failure")),
            }
        })
    }
}

/// A scripted optimizer with what it is asked by.
pub(super) struct Stage {
    model: InOrder,
    prompts: Prompts,
    mode: UpdateMode,
}

impl Stage {
    pub(super) fn new(input: &Value, replies: Vec<Value>) -> Stage {
        Stage {
            model: InOrder {
                replies: Mutex::new(replies.into()),
                calls: Mutex::default(),
            },
            prompts: Prompts::load(None, &[]).expect("the prompts compile"),
            mode: UpdateMode::parse(&text(input, "update_mode")).expect("a mode"),
        }
    }

    fn optimizer(&self) -> Optimizer<'_> {
        Optimizer {
            model: &self.model,
            prompts: &self.prompts,
            mode: self.mode,
            meta_skill: "",
            document_tokens: 64_000,
        }
    }

    /// The calls that were made, as they are recorded.
    pub(super) fn calls(&self) -> Vec<Value> {
        self.model
            .calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The select stage.
    pub(super) fn select(&self, patch: Patch, budget: usize) -> Patch {
        now(select(
            &self.optimizer(),
            "# Skill\n",
            patch,
            Some(budget),
            "steps/step_0001",
        ))
        .expect("a failed call is no failed stage")
    }

    /// The aggregate stage, without our own book-keeping in its items.
    pub(super) fn aggregate(&self, failure: Vec<Patch>, success: Vec<Patch>, size: usize) -> Patch {
        let proposals = Proposals {
            failure,
            success,
            ..Proposals::default()
        };
        let optimizer = self.optimizer();
        let merging = aggregate(&optimizer, "# Skill\n", proposals, size, "steps/step_0001");
        let mut merged = now(merging).expect("a failed call is no failed stage");
        for item in &mut merged.items {
            item.remove("evidence");
        }
        merged
    }

    /// The decision of an autonomous learning rate, with nothing scheduled behind it.
    pub(super) fn decide(&self, items: usize) -> Value {
        let merged = Patch {
            items: (0..items)
                .map(|index| Map::from_iter([("i".to_owned(), json!(index))]))
                .collect(),
            ..Patch::default()
        };
        let evidence = Evidence {
            skill: "# Skill\n",
            merged: &merged,
            rollouts: 4,
            scores: None,
            history: "",
            scheduled: Some(0),
            dir: "steps/step_0001",
        };
        let decision = now(learning_rate::decide(&self.optimizer(), &evidence));
        serde_json::to_value(decision.expect("a failed call is no failed stage"))
            .expect("a decision is JSON")
    }

    /// The update stage over so many suggestions: whether there is a document.
    pub(super) fn rewrites(&self, suggestions: usize) -> bool {
        let selected = Patch {
            items: (0..suggestions)
                .map(|index| Map::from_iter([("title".to_owned(), json!(index.to_string()))]))
                .collect(),
            ..Patch::default()
        };
        now(update(
            &self.optimizer(),
            "# Skill\n",
            selected,
            "",
            "steps/step_0001",
        ))
        .expect("a failed call is no failed stage")
        .is_some()
    }
}

fn now<T>(stage: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(stage)
}

/// Keeps the minibatch files.
#[derive(Clone, Default)]
struct Files(Arc<Mutex<Vec<(String, Value)>>>);

impl Observer for Files {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let Event::MinibatchReflected {
            name,
            reply: Some(reply),
            ..
        } = event
        {
            let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            files.push((format!("{name}.json"), (*reply).clone()));
        }
        Ok(())
    }
}

/// A recorded result as a rollout; `None` without an id, by which its files are found.
fn rollout(result: &Value, file: impl Fn(&str) -> Option<String>) -> Option<Rollout> {
    let plain = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let id = plain(result.get("id")?);
    let item = Item {
        id: id.clone(),
        payload: Value::Null,
    };
    let mut rollout = Rollout::unusable(&item, "");
    let number = |key: &str| result[key].as_f64().unwrap_or(0.0);
    rollout.outcome = Outcome::Measured {
        hard: number("hard"),
        soft: number("soft"),
    };
    let field = |key: &str, name: &str| match &result[key] {
        Value::Null => file(&format!("{id}/{name}")).unwrap_or_default(),
        value => plain(value),
    };
    rollout.task_description = text(result, "task_description");
    rollout.task_type = text(result, "task_type");
    rollout.fail_reason = text(result, "fail_reason");
    rollout.reference_text = text(result, "reference_text");
    rollout.target_system_prompt = field("target_system_prompt", "target_system_prompt.txt");
    rollout.target_user_prompt = field("target_user_prompt", "target_user_prompt.txt");
    for key in [
        "n_turns",
        "codex_probe_trace_steps",
        "spreadsheet_preview",
        "codex_trace_summary",
    ] {
        let value = field(key, &format!("{key}.txt"));
        rollout.fields.insert(key.to_owned(), json!(value));
    }
    // One that cannot be read is no conversation.
    rollout.conversation = file(&format!("{id}/conversation.json"))
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    Some(rollout)
}

fn reflect_minibatch(vector: &Vector) -> Value {
    let input = &vector.input;
    if input["workers"].as_i64() < Some(1) {
        return refused("the configuration asks for at least one analyst");
    }
    let file = |name: &str| {
        input["files"][format!("pred/{name}")]
            .as_str()
            .map(str::to_owned)
    };
    let results = input["results"].as_array().into_iter().flatten();
    let rollouts: Vec<Rollout> = results.filter_map(|result| rollout(result, file)).collect();
    let replies = input["replies_in_call_order"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let stage = Stage::new(input, replies);
    let files = Files::default();
    let mut observers = Observers::default();
    observers.add(files.clone());
    let number = |key: &str| {
        input[key]
            .as_i64()
            .and_then(|number| usize::try_from(number).ok())
    };
    let reflection = Reflection {
        skill: "# Skill\n",
        minibatch_size: number("minibatch_size").unwrap_or(1),
        failure_only: input["failure_only"] == true,
        // The original's negative limit is ours left out.
        budget: number("edit_budget"),
        seed: input["random_seed"].as_i64(),
        guidance: None,
        history: "",
        skill_aware: match text(input, "appendix_source").as_str() {
            _ if input["skill_aware"] != true => SkillAware::Off,
            "failure_only" => SkillAware::FailureOnly,
            _ => SkillAware::Both,
        },
        dir: "patches",
    };
    if let Err(error) = now(reflect(
        &stage.optimizer(),
        &observers,
        &rollouts,
        &reflection,
    )) {
        return refused(error);
    }
    let files = files
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    json!({
        "raw_patches": files.iter().map(|(_, patch)| patch).collect::<Vec<_>>(),
        "patch_files": files.iter().cloned().collect::<Map<_, _>>(),
        "llm_calls": stage.calls(),
    })
}

fn trajectory_text(vector: &Vector) -> Value {
    let input = &vector.input;
    let rendered = match input["fn"].as_str() {
        Some("trajectory") => {
            let entries = input["conversation"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            trajectory::conversation(&entries)
        }
        Some("minibatch") => {
            let traced = input["codex_trace_to_optimizer"] == true;
            let file = |name: &str| input["prediction_files"][name].as_str().map(str::to_owned);
            let rollouts: Vec<Rollout> = input["items"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|item| rollout(item, file))
                .map(|mut rollout| {
                    if !traced {
                        // The environment leaves out what is not to be shown.
                        rollout.fields.remove("codex_trace_summary");
                    }
                    rollout
                })
                .collect();
            trajectory::minibatch(&rollouts.iter().collect::<Vec<_>>()).join("\n")
        }
        Some("comparison") => comparison(&input["pairs"]),
        other => panic!("no such function: {other:?}"),
    };
    let mut from = 0;
    // The substrings that were found, in order: equal to the recorded list when all were.
    let found: Vec<String> = texts(&vector.expected["must_contain_in_order"])
        .into_iter()
        .map_while(|wanted| {
            let at = rendered[from..].find(&wanted)?;
            from += at + wanted.len();
            Some(wanted)
        })
        .collect();
    let absent: Vec<String> = texts(&vector.expected["must_not_contain"])
        .into_iter()
        .filter(|unwanted| !rendered.contains(unwanted))
        .collect();
    let mut result = json!({"must_contain_in_order": found, "must_not_contain": absent});
    if vector.expected.get("empty").is_some() {
        result["empty"] = json!(rendered.is_empty());
    }
    result
}

fn comparison(pairs: &Value) -> String {
    let listed = || pairs.as_array().into_iter().flatten();
    let trajectories: Trajectories = listed()
        .map(|pair| {
            let attempts = (text(pair, "prev_trajectory"), text(pair, "curr_trajectory"));
            (text(pair, "id"), attempts)
        })
        .collect();
    let pairs: Vec<Pair> = listed()
        .filter_map(|pair| serde_json::from_value(pair.clone()).ok())
        .collect();
    comparison_text(&pairs, &trajectories)
}
