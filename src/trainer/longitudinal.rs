//! How the skill of one epoch ago and the one of now do on the same train items (engine 15).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use futures::future::try_join;
use serde_json::{Map, Value, json};

use super::environment::{Environment, Item, Rollout};
use super::error::TrainError;
use super::evaluation::{Evaluation, Evaluator};
use super::event::Observers;
use super::pairs::{Category, Comparison, Pair, PairPolicy};
use super::trajectory;

/// The two skills on a sample of items.
pub struct Longitudinal {
    /// The pairs that the policy keeps, at most as many as were asked for.
    pub kept: Vec<Pair>,
    /// All pairs that were measured under both skills.
    pub all: Vec<Pair>,
    /// Items that were not.
    pub unmeasured: Vec<String>,
    /// Mean hard score of the sample under the earlier skill. What was taken on top of it to find
    /// more changes is no fair sample, and stays out.
    pub previous_hard: Option<f64>,
    /// The same under the current one.
    pub current_hard: Option<f64>,
    trajectories: Trajectories,
}

/// What is compared.
pub struct Sample<'a> {
    /// The items, in the order in which they are taken.
    pub items: &'a [Item],
    /// How many pairs are wanted.
    pub wanted: usize,
    /// Which pairs are kept.
    pub policy: PairPolicy,
    /// The skill of one epoch ago.
    pub previous: &'a str,
    /// The skill of now.
    pub current: &'a str,
    /// Where the artefacts belong, relative to the run directory.
    pub dir: &'a str,
}

/// Attempts the sample under both skills. With the policy `changed`, further batches of items are
/// taken until enough pairs are kept or the items are used up (W-U9).
///
/// # Errors
/// When the run cannot go on.
pub async fn compare<E: Environment>(
    environment: &E,
    observers: &Observers,
    sample: &Sample<'_>,
) -> Result<Longitudinal, TrainError> {
    let mut previous = Vec::new();
    let mut current = Vec::new();
    let mut taken: Vec<&Item> = Vec::new();
    let mut comparison = Comparison::default();
    let (mut previous_hard, mut current_hard) = (None, None);
    for (round, batch) in sample.items.chunks(sample.wanted.max(1)).enumerate() {
        let top_up = if round == 0 {
            String::new()
        } else {
            format!("/topup_{round:02}")
        };
        let (before, now) = attempt(environment, observers, sample, batch, &top_up).await?;
        if round == 0 {
            previous_hard = before.scores().map(|scores| scores.hard);
            current_hard = now.scores().map(|scores| scores.hard);
        }
        previous.extend(before.rollouts);
        current.extend(now.rollouts);
        taken.extend(batch);
        comparison = Comparison::of_rows(&ids(&taken), &rows(&previous), &rows(&current));
        let kept = comparison
            .pairs
            .iter()
            .filter(|pair| sample.policy.keeps(pair.category))
            .count();
        if sample.policy != PairPolicy::Changed || kept >= sample.wanted {
            break;
        }
    }
    Ok(Longitudinal {
        kept: comparison
            .pairs
            .iter()
            .filter(|pair| sample.policy.keeps(pair.category))
            .take(sample.wanted)
            .cloned()
            .collect(),
        all: comparison.pairs,
        unmeasured: comparison.unmeasured,
        previous_hard,
        current_hard,
        trajectories: trajectories(&previous, &current),
    })
}

async fn attempt<E: Environment>(
    environment: &E,
    observers: &Observers,
    sample: &Sample<'_>,
    items: &[Item],
    top_up: &str,
) -> Result<(Evaluation, Evaluation), TrainError> {
    let before = format!("{}/rollout_prev{top_up}", sample.dir);
    let now = format!("{}/rollout_curr{top_up}", sample.dir);
    let (before, now) = (before.as_str(), now.as_str());
    let evaluator = |dir| Evaluator {
        environment,
        observers,
        dir,
    };
    try_join(
        evaluator(before).evaluate(items, sample.previous, before),
        evaluator(now).evaluate(items, sample.current, now),
    )
    .await
}

impl Longitudinal {
    /// The kept pairs as the optimizer reads them: counts, then the classes, what got worse first.
    #[must_use]
    pub fn text(&self) -> String {
        comparison_text(&self.kept, &self.trajectories)
    }
}

/// The attempts of items under the earlier and the current skill, as text, by the items' ids.
pub type Trajectories = BTreeMap<String, (String, String)>;

/// Pairs as the optimizer reads them: counts, then the classes, what got worse first. What always
/// works is told without its attempts.
#[must_use]
pub fn comparison_text(pairs: &[Pair], trajectories: &Trajectories) -> String {
    let of = |category| pairs.iter().filter(move |pair| pair.category == category);
    let mut text = String::new();
    for category in Category::TOLD {
        let _ = writeln!(text, "{}: {}", title(category), of(category).count());
    }
    for category in Category::TOLD {
        for pair in of(category) {
            let attempts = trajectories
                .get(&pair.id)
                .filter(|_| category != Category::StableSuccess);
            write_pair(&mut text, pair, attempts);
        }
    }
    text
}

fn write_pair(text: &mut String, pair: &Pair, attempts: Option<&(String, String)>) {
    let outcome = |hard: u8| if hard > 0 { "passed" } else { "failed" };
    let _ = writeln!(
        text,
        "\n### {} · {}\nTask: {}\nBefore: {} (soft {}), answered: {}\nNow: {} (soft {}), answered: {}",
        title(pair.category),
        pair.id,
        pair.task,
        outcome(pair.prev.hard),
        pair.prev.soft,
        pair.prev.predicted_answer,
        outcome(pair.curr.hard),
        pair.curr.soft,
        pair.curr.predicted_answer,
    );
    for (when, reason) in [
        ("Now", &pair.curr.fail_reason),
        ("Before", &pair.prev.fail_reason),
    ] {
        if !reason.is_empty() {
            let _ = writeln!(text, "{when} it failed because: {reason}");
        }
    }
    if let Some((before, now)) = attempts {
        let _ = writeln!(text, "Attempt before:\n{before}\nAttempt now:\n{now}");
    }
}

fn title(category: Category) -> &'static str {
    match category {
        Category::Regressed => "Got worse",
        Category::PersistentFail => "Fails both times",
        Category::Improved => "Got better",
        Category::StableSuccess => "Passes both times",
    }
}

/// The items as rows; what was asked comes from the results.
fn ids(items: &[&Item]) -> Vec<Map<String, Value>> {
    items
        .iter()
        .map(|item| {
            let mut row = item.payload.as_object().cloned().unwrap_or_default();
            row.insert("id".to_owned(), json!(item.id));
            row
        })
        .collect()
}

fn rows(rollouts: &[Rollout]) -> Vec<Map<String, Value>> {
    rollouts.iter().map(Rollout::row).collect()
}

fn trajectories(previous: &[Rollout], current: &[Rollout]) -> Trajectories {
    let text = |rollout: &Rollout| match rollout.conversation.as_slice() {
        [] => "(no conversation)".to_owned(),
        entries => trajectory::conversation(entries),
    };
    let now: BTreeMap<&str, String> = current
        .iter()
        .map(|rollout| (rollout.id.as_str(), text(rollout)))
        .collect();
    previous
        .iter()
        .map(|before| {
            let now = now.get(before.id.as_str()).cloned().unwrap_or_default();
            (before.id.clone(), (text(before), now))
        })
        .collect()
}
