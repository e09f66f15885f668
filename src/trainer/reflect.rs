//! The reflect stage: analysts study minibatches of failed and of successful rollouts and propose
//! patches (engine 8).

use futures::future::join_all;
use minijinja::value::Serde;
use minijinja::{Value as Context, context};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::environment::Rollout;
use super::error::TrainError;
use super::event::{Event, Observers};
use super::mt19937::Mt19937;
use super::optimizer::{Answer, Optimizer, Question};
use super::optimizer_reply::appendix_notes;
use super::patch::{Patch, normalise, normalise_all};
use super::trajectory;
use super::update_mode::UpdateMode;

/// Which side a minibatch is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Failure,
    Success,
}

impl Side {
    fn template(self) -> &'static str {
        match self {
            Self::Failure => "analyst_error",
            Self::Success => "analyst_success",
        }
    }

    fn source_type(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Success => "success",
        }
    }

    fn file_prefix(self) -> &'static str {
        match self {
            Self::Failure => "minibatch_fail",
            Self::Success => "minibatch_succ",
        }
    }
}

/// What reflection needs beyond the rollouts.
pub struct Reflection<'a> {
    /// The skill under which the rollouts were made.
    pub skill: &'a str,
    /// Most rollouts a minibatch.
    pub minibatch_size: usize,
    /// Leave successes out.
    pub failure_only: bool,
    /// Most items an analyst may propose; `None` is no limit.
    pub budget: Option<usize>,
    /// Seed of the shuffles; the batch's. Without one the rollouts keep their order.
    pub seed: Option<i64>,
    /// What the environment tells its analysts.
    pub guidance: Option<&'a str>,
    /// What earlier steps tried, as text; blank when nothing.
    pub history: &'a str,
    /// Whether analysts sort lapses from defects and may leave notes (engine 17).
    pub skill_aware: SkillAware,
    /// Directory of the patches, relative to the run directory.
    pub dir: &'a str,
}

/// Who may leave notes about rules that were there and not followed (engine 17).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillAware {
    /// Nobody.
    #[default]
    Off,
    /// Analysts of failures.
    FailureOnly,
    /// Analysts of failures and of successes.
    Both,
}

impl SkillAware {
    fn covers(self, side: Side, mode: UpdateMode) -> bool {
        // A full rewrite has no place for notes.
        mode != UpdateMode::FullRewriteMinibatch
            && match self {
                Self::Off => false,
                Self::FailureOnly => side == Side::Failure,
                Self::Both => true,
            }
    }
}

/// What the analysts proposed, in minibatch order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proposals {
    /// From failures.
    pub failure: Vec<Patch>,
    /// From successes.
    pub success: Vec<Patch>,
    /// The failure analysts' replies, whose summaries go into the step buffer.
    pub replies: Vec<Value>,
    /// Notes for the appendix.
    pub notes: Vec<String>,
}

impl Proposals {
    /// Those of an environment that reflects by itself: raw patches, in order.
    #[must_use]
    pub fn of(raw: &[Value], mode: UpdateMode, skill_aware: SkillAware) -> Self {
        let (failure, success) = normalise_all(raw.iter().map(|raw| (raw, None)), mode);
        let notes = match skill_aware {
            SkillAware::Off => Vec::new(),
            SkillAware::FailureOnly | SkillAware::Both => {
                raw.iter().flat_map(appendix_notes).collect()
            }
        };
        Self {
            failure,
            success,
            replies: Vec::new(),
            notes,
        }
    }

    /// Adds another microbatch's proposals.
    pub fn extend(&mut self, other: Self) {
        self.failure.extend(other.failure);
        self.success.extend(other.success);
        self.replies.extend(other.replies);
        self.notes.extend(other.notes);
    }

    /// Whether nobody proposed anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.failure.is_empty() && self.success.is_empty()
    }
}

/// Asks one analyst per minibatch, all at once.
///
/// # Errors
/// When the optimizer cannot be used at all: the budget, the credential, or no analyst of a
/// non-empty set got a reply (an outage is not "nothing to learn", W-R4).
pub async fn reflect(
    optimizer: &Optimizer<'_>,
    observers: &Observers,
    rollouts: &[Rollout],
    reflection: &Reflection<'_>,
) -> Result<Proposals, TrainError> {
    let groups = minibatches(rollouts, reflection);
    let answers = join_all(
        groups
            .iter()
            .map(|group| analyse(optimizer, reflection, group)),
    )
    .await;
    let mut proposals = Proposals::default();
    let mut outage = None;
    let mut answered = 0;
    for (group, answer) in groups.iter().zip(answers) {
        let reply = match answer? {
            Answer::Failed(error) => {
                outage = outage.or(Some(error));
                continue;
            }
            answer => answer.value(),
        };
        answered += 1;
        let raw = reply.and_then(|reply| group.raw(reply, reflection, optimizer.mode));
        observers.emit(&Event::MinibatchReflected {
            dir: reflection.dir,
            name: &group.name,
            reply: raw.as_ref(),
        })?;
        let Some(raw) = raw else { continue };
        if reflection.skill_aware.covers(group.side, optimizer.mode) {
            proposals.notes.extend(appendix_notes(&raw));
        }
        let patch = group.patch(&raw, optimizer.mode);
        proposals
            .replies
            .extend(Some(raw).filter(|_| group.side == Side::Failure));
        let Some(patch) = patch else { continue };
        match group.side {
            Side::Failure => proposals.failure.push(patch),
            Side::Success => proposals.success.push(patch),
        }
    }
    match outage {
        Some(error) if answered == 0 => Err(TrainError::Optimizer(error)),
        _ => Ok(proposals),
    }
}

/// One group of rollouts for one analyst.
struct Minibatch<'a> {
    side: Side,
    name: String,
    rollouts: Vec<&'a Rollout>,
    trajectories: Vec<String>,
}

/// Failures shuffled with the seed, successes with the next one, each cut into consecutive groups
/// (engine 8.1). Rollouts that were not measured teach nothing; groups without a single
/// conversation are left out.
fn minibatches<'a>(rollouts: &'a [Rollout], reflection: &Reflection<'_>) -> Vec<Minibatch<'a>> {
    let mut groups = Vec::new();
    for (side, seed) in [
        (Side::Failure, reflection.seed),
        (
            Side::Success,
            reflection.seed.map(|seed| seed.wrapping_add(1)),
        ),
    ] {
        if side == Side::Success && reflection.failure_only {
            continue;
        }
        let mut members: Vec<&Rollout> = rollouts
            .iter()
            .filter(|r| {
                if side == Side::Failure {
                    r.failed()
                } else {
                    r.passed()
                }
            })
            .collect();
        if let Some(seed) = seed {
            Mt19937::new(seed).shuffle(&mut members);
        }
        for (index, chunk) in members.chunks(reflection.minibatch_size.max(1)).enumerate() {
            let trajectories = trajectory::minibatch(chunk);
            if !trajectories.is_empty() {
                groups.push(Minibatch {
                    side,
                    name: format!("{}_{index:03}", side.file_prefix()),
                    rollouts: chunk.to_vec(),
                    trajectories,
                });
            }
        }
    }
    groups
}

/// An attempt in short, for templates of people whose models cannot read whole trajectories.
fn attempt(rollout: &Rollout) -> Context {
    context! {
        task => &rollout.task_description,
        response => &rollout.response,
        fail_reason => &rollout.fail_reason,
        fields => Context::from(Serde(&rollout.fields)),
    }
}

async fn analyse(
    optimizer: &Optimizer<'_>,
    reflection: &Reflection<'_>,
    group: &Minibatch<'_>,
) -> Result<Answer, TrainError> {
    let context = context! {
        skill => reflection.skill,
        budget => reflection.budget,
        guidance => reflection.guidance,
        history => reflection.history,
        skill_aware => reflection.skill_aware.covers(group.side, optimizer.mode),
        trajectories => group.trajectories.clone(),
        attempts => group.rollouts.iter().map(|rollout| attempt(rollout)).collect::<Vec<_>>(),
    };
    let sample = format!("{}/{}", reflection.dir, group.name);
    optimizer
        .ask(Question {
            stage: "analyst",
            template: group.side.template(),
            context,
            sample: &sample,
            max_tokens: optimizer.items_tokens(),
        })
        .await
}

impl Minibatch<'_> {
    /// The raw patch in an analyst's reply, as the minibatch's file keeps it: the reply, with our
    /// own word on its side, and its items cut to the budget. A reply that is a bare patch is taken
    /// for one, and a failure analyst's reply that has notes alone carries those (engine 8.2).
    fn raw(&self, reply: Value, reflection: &Reflection<'_>, mode: UpdateMode) -> Option<Value> {
        let bare = !mode.items(&reply).is_empty();
        let notes = match reflection.skill_aware.covers(self.side, mode) {
            true => appendix_notes(&reply),
            false => Vec::new(),
        };
        let Value::Object(mut raw) = reply else {
            return None;
        };
        if !raw.contains_key("patch") {
            let patch = if bare {
                ["reasoning", mode.payload_key()]
                    .iter()
                    .filter_map(|key| Some(((*key).to_owned(), raw.remove(*key)?)))
                    .collect()
            } else if self.side == Side::Failure && !notes.is_empty() {
                raw.clear();
                json!({"reasoning": "", "edits": []})
            } else {
                return None;
            };
            raw.insert("patch".to_owned(), patch);
        }
        if let Some(patch) = raw.remove("patch") {
            let whole = mode == UpdateMode::FullRewriteMinibatch;
            let most = reflection.budget.filter(|_| !whole).unwrap_or(usize::MAX);
            raw.insert("patch".to_owned(), mode.truncated(patch, most));
        }
        raw.insert("source_type".to_owned(), json!(self.side.source_type()));
        if !notes.is_empty() {
            raw.insert("appendix_notes".to_owned(), json!(notes));
        }
        Some(Value::Object(raw))
    }

    /// The patch that goes on; `None` when there is nothing in it. The size of the group is ours to
    /// say, not the model's (W-M4), and each edit remembers the items that it was learnt from.
    fn patch(&self, raw: &Value, mode: UpdateMode) -> Option<Patch> {
        let mut raw = raw.clone();
        raw.as_object_mut()?
            .insert("batch_size".to_owned(), json!(self.rollouts.len()));
        let (_, mut patch) = normalise(&raw, mode, None)?;
        let evidence: Vec<&str> = self.rollouts.iter().map(|r| r.id.as_str()).collect();
        for item in &mut patch.items {
            item.insert("evidence".to_owned(), json!(evidence));
        }
        Some(patch)
    }
}
