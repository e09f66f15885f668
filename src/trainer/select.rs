//! The select stage: the merged patch is ranked and cut to the step's edit budget (engine 10).

use minijinja::context;
use serde_json::{Map, Value};

use super::error::TrainError;
use super::optimizer::{Optimizer, Question, REPLY_TOKENS};
use super::patch::Patch;
use super::selection;

/// Keeps the `budget` most important items of `patch` (`None` is no limit); all of them when there
/// are no more, with no call. Whole candidates are not ranked (engine 10). A ranking that fails keeps the first ones.
///
/// # Errors
/// When the optimizer cannot be used at all.
pub async fn select(
    optimizer: &Optimizer<'_>,
    skill: &str,
    patch: Patch,
    budget: Option<usize>,
    dir: &str,
) -> Result<Patch, TrainError> {
    let count = patch.items.len();
    if !selection::needs_ranking(count, budget) {
        return Ok(selection::apply(
            patch,
            &selection::choose(count, budget, None),
            None,
        ));
    }
    let context = context! {
        skill => skill,
        budget => budget,
        items => patch.items.iter().map(describe).collect::<Vec<_>>(),
    };
    let question = Question {
        stage: "ranking",
        template: "ranking",
        context,
        sample: &format!("{dir}/ranking"),
        max_tokens: REPLY_TOKENS,
    };
    let reply = optimizer.ask(question).await?.value();
    let selection = selection::choose(count, budget, reply.as_ref());
    Ok(selection::apply(patch, &selection, reply.as_ref()))
}

/// An item as the optimizer reads it in a list.
pub(super) fn describe(item: &Map<String, Value>) -> String {
    let mut item = item.clone();
    item.remove("evidence");
    Value::Object(item).to_string()
}
