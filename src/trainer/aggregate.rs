//! The aggregate stage: the minibatches' patches become one, by hierarchical merging (engine 9).

use futures::future::join_all;
use minijinja::{Value as Context, context};
use serde_json::{Value, json};

use super::error::TrainError;
use super::merge_plan::{self, Combination};
use super::optimizer::{Optimizer, Question};
use super::patch::{Item, Patch};
use super::reflect::Proposals;

/// Merges all proposals of a step. Failures and successes are merged apart, level by level, then
/// with each other; a merge that fails falls back to keeping every edit of its inputs in order.
///
/// # Errors
/// When the optimizer cannot be used at all.
pub async fn aggregate(
    optimizer: &Optimizer<'_>,
    skill: &str,
    proposals: Proposals,
    batch_size: usize,
    dir: &str,
) -> Result<Patch, TrainError> {
    let merge = Merge {
        optimizer,
        skill,
        batch_size,
        dir,
    };
    let known: Vec<Item> = proposals
        .failure
        .iter()
        .chain(&proposals.success)
        .flat_map(|patch| patch.items.iter().cloned())
        .collect();
    let (failure, success) = futures::future::try_join(
        merge.levels(proposals.failure, "merge_failure"),
        merge.levels(proposals.success, "merge_success"),
    )
    .await?;
    let mut merged = merge.combine(failure, success).await?;
    unite_equals(&mut merged);
    trace_evidence(&mut merged, &known);
    Ok(merged)
}

/// Analysts who see the same cause propose the same edit, and a merge that fell back keeps every
/// one. Applying a text twice is never meant: equal items become one, with their support added up.
fn unite_equals(patch: &mut Patch) {
    let same = |one: &Item, other: &Item| {
        let mut keys = one
            .keys()
            .chain(other.keys())
            .filter(|key| !COUNTERS.contains(&key.as_str()));
        keys.all(|key| one.get(key) == other.get(key))
    };
    let support = |item: &Item| {
        item.get("support_count")
            .and_then(Value::as_u64)
            .unwrap_or(0)
    };
    let mut united: Vec<Item> = Vec::new();
    for item in patch.items.drain(..) {
        match united.iter_mut().find(|kept| same(kept, &item)) {
            Some(kept) => {
                let sum = support(kept) + support(&item);
                kept.insert("support_count".to_owned(), json!(sum));
            }
            None => united.push(item),
        }
    }
    patch.items = united;
}

/// Fields of an item that say how it came about rather than what it does.
const COUNTERS: &[&str] = &[
    "support_count",
    "merge_level",
    "source_type",
    "evidence",
    "rationale",
];

struct Merge<'a> {
    optimizer: &'a Optimizer<'a>,
    skill: &'a str,
    batch_size: usize,
    dir: &'a str,
}

impl Merge<'_> {
    /// Merges `patches` batch by batch until one is left.
    async fn levels(
        &self,
        mut patches: Vec<Patch>,
        template: &str,
    ) -> Result<Option<Patch>, TrainError> {
        let mut level = 1;
        while patches.len() > 1 {
            let batches = merge_plan::batches(patches.len(), self.batch_size);
            let merges = batches.into_iter().enumerate().map(|(index, range)| {
                let batch = patches.get(range).unwrap_or_default();
                self.batch(batch, template, level, index)
            });
            patches = join_all(merges)
                .await
                .into_iter()
                .collect::<Result<_, TrainError>>()?;
            level += 1;
        }
        Ok(patches.pop())
    }

    async fn batch(
        &self,
        batch: &[Patch],
        template: &str,
        level: u64,
        index: usize,
    ) -> Result<Patch, TrainError> {
        if let [only] = batch {
            return Ok(only.clone());
        }
        let context = context! {
            skill => self.skill,
            patches => pretty(&batch.iter().map(|patch| self.shown(patch)).collect()),
            count => batch.len(),
            level => level,
        };
        let sample = format!("{}/{template}_{level}_{index}", self.dir);
        let reply = self.ask(template, context, &sample).await?;
        Ok(merge_plan::judge(reply.as_ref(), self.optimizer.mode, batch, Some(level)).patch)
    }

    async fn combine(
        &self,
        failure: Option<Patch>,
        success: Option<Patch>,
    ) -> Result<Patch, TrainError> {
        let (failure, success) = match merge_plan::combine(failure, success) {
            Combination::Done(patch) => return Ok(patch),
            Combination::Merge { failure, success } => (failure, success),
        };
        let context = context! {
            skill => self.skill,
            failure => pretty(&self.shown(&failure)),
            success => pretty(&self.shown(&success)),
            n_failure => failure.items.len(),
            n_success => success.items.len(),
        };
        let sample = format!("{}/merge_final", self.dir);
        let reply = self.ask("merge_final", context, &sample).await?;
        Ok(merge_plan::judge(
            reply.as_ref(),
            self.optimizer.mode,
            &[failure, success],
            None,
        )
        .patch)
    }

    async fn ask(
        &self,
        template: &str,
        context: Context,
        sample: &str,
    ) -> Result<Option<Value>, TrainError> {
        let question = Question {
            stage: "merge",
            template,
            context,
            sample,
            max_tokens: self.optimizer.items_tokens(),
        };
        Ok(self.optimizer.ask(question).await?.value())
    }

    /// A patch as the optimizer sees it: without our own book-keeping.
    fn shown(&self, patch: &Patch) -> Value {
        let mut patch = patch.clone();
        for item in &mut patch.items {
            item.remove("evidence");
        }
        patch.to_value(self.optimizer.mode)
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// Models do not carry our record of where an edit was learnt through a merge. An edit with the
/// text of a proposed one has that one's items, any other those of all.
fn trace_evidence(merged: &mut Patch, known: &[Item]) {
    let mut all: Vec<Value> = Vec::new();
    for item in known
        .iter()
        .filter_map(|item| item.get("evidence")?.as_array())
        .flatten()
    {
        if !all.contains(item) {
            all.push(item.clone());
        }
    }
    for item in &mut merged.items {
        let same = known.iter().find(|other| {
            other.get("content") == item.get("content") && other.get("target") == item.get("target")
        });
        let evidence = same.and_then(|other| other.get("evidence").cloned());
        item.insert(
            "evidence".to_owned(),
            evidence.unwrap_or_else(|| json!(all)),
        );
    }
}
