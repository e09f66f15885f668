//! Which items each step of an epoch attempts (engine 5.4).

use std::borrow::Cow;

use super::batches::EpochShape;
use super::environment::{Environment, Item, Split};
use super::error::TrainError;
use super::settings::Settings;

/// What a step is about: its place in the run and its items.
pub struct StepPlan<'a> {
    /// From 1 over the whole run.
    pub step: u32,
    /// From 1.
    pub epoch: u32,
    /// From 0.
    pub step_in_epoch: u32,
    /// Its microbatches.
    pub batches: Vec<PlannedBatch<'a>>,
}

/// One microbatch of a step.
pub struct PlannedBatch<'a> {
    /// Seed of the analysts' shuffles.
    pub seed: i64,
    /// Its items.
    pub items: Vec<Cow<'a, Item>>,
}

/// How many train items an epoch has: those that are listed, or, where an environment draws its
/// own, as many as the settings say (engine 5.5).
///
/// # Errors
/// When neither says, or when they disagree.
pub fn train_size<E: Environment>(
    settings: &Settings,
    environment: &E,
) -> Result<usize, TrainError> {
    let listed = environment.items(Split::Train).len();
    match (listed, settings.train_size) {
        (0, 0) => Err(TrainError::Setup(format!(
            "the train split of {} has no items, and train_size does not say how many to draw",
            environment.name()
        ))),
        (0, wanted) => Ok(wanted),
        (listed, wanted) if wanted != 0 && wanted != listed => Err(TrainError::Setup(format!(
            "train_size is {wanted}, but the train split of {} has {listed} items; leave it 0 to \
             use all of them",
            environment.name()
        ))),
        (listed, _) => Ok(listed),
    }
}

/// The steps of an epoch.
///
/// # Errors
/// When an environment without a list of train items does not draw any.
pub fn steps<'a, E: Environment>(
    settings: &Settings,
    environment: &'a E,
    epoch: u32,
) -> Result<Vec<StepPlan<'a>>, TrainError> {
    let size = train_size(settings, environment)?;
    let shape = EpochShape::covering(size, settings.batch_size, settings.accumulation);
    let batches = match environment.items(Split::Train) {
        [] => drawn(settings, environment, &shape, epoch)?,
        items => shape
            .epoch(settings.seed, epoch as usize)
            .into_iter()
            .map(|batch| PlannedBatch {
                seed: batch.seed,
                items: batch
                    .items
                    .into_iter()
                    .filter_map(|index| items.get(index).map(Cow::Borrowed))
                    .collect(),
            })
            .collect(),
    };
    let steps = settings.steps_per_epoch(size);
    let mut batches = batches.into_iter();
    Ok((0..steps)
        .map(|step_in_epoch| StepPlan {
            step: (epoch - 1) * steps + step_in_epoch + 1,
            epoch,
            step_in_epoch,
            batches: batches.by_ref().take(settings.accumulation).collect(),
        })
        .collect())
}

fn drawn<'a, E: Environment>(
    settings: &Settings,
    environment: &'a E,
    shape: &EpochShape,
    epoch: u32,
) -> Result<Vec<PlannedBatch<'a>>, TrainError> {
    shape
        .seeds_without_items(settings.seed, epoch as usize)
        .into_iter()
        .map(|seed| {
            let items = draw(environment, settings.batch_size, seed)?;
            Ok(PlannedBatch {
                seed,
                items: items.into_iter().map(Cow::Owned).collect(),
            })
        })
        .collect()
}

/// A batch of an environment that makes its own.
///
/// # Errors
/// When it makes none.
pub fn draw<E: Environment>(
    environment: &E,
    count: usize,
    seed: i64,
) -> Result<Vec<Item>, TrainError> {
    environment
        .draw(count, seed)
        .filter(|items| !items.is_empty())
        .ok_or_else(|| {
            TrainError::Setup(format!(
                "{} neither lists its train items nor draws a batch for seed {seed}",
                environment.name()
            ))
        })
}
