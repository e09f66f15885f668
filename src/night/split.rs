//! Splits: which tasks train, which validate, which test.
//!
//! A task's place follows from its id and the seed alone, so that it stays where it is from night
//! to night, whatever other tasks come and go. Made-up tasks only train: a gate that is passed on
//! invented work proves nothing (sleep-night 5.7).

use sha2::{Digest, Sha256};

use super::task::Task;

/// The share of validation tasks when nothing is configured.
pub const DEFAULT_VAL_FRACTION: f64 = 0.34;

/// The shares of the splits; the rest trains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fractions {
    val: f64,
    test: f64,
}

impl Default for Fractions {
    fn default() -> Fractions {
        Fractions {
            val: DEFAULT_VAL_FRACTION,
            test: 0.0,
        }
    }
}

/// Shares that leave nothing to train on.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "validation share {val} and test share {test} must each lie in 0..1 and leave a share for training"
)]
pub struct BadFractions {
    /// The validation share.
    pub val: f64,
    /// The test share.
    pub test: f64,
}

impl Fractions {
    /// Shares of validation and test tasks, each from 0, together below 1.
    ///
    /// # Errors
    /// [`BadFractions`] otherwise.
    pub fn new(val: f64, test: f64) -> Result<Fractions, BadFractions> {
        let fits = |share: f64| (0.0..=1.0).contains(&share);
        if fits(val) && fits(test) && val + test < 1.0 {
            Ok(Fractions { val, test })
        } else {
            Err(BadFractions { val, test })
        }
    }
}

/// Assigns a split to every task.
///
/// With two real tasks or more there is always a validation task, and always one to train on; the
/// task that has to move is the one with the smallest hash.
pub fn assign(tasks: &mut [Task], fractions: Fractions, seed: i64) {
    let percent = |share: f64| (100.0 * share).round_ties_even() as u32;
    let val_cut = percent(fractions.val);
    let test_cut = val_cut + percent(fractions.test);
    let keys: Vec<[u8; 32]> = tasks.iter().map(|task| key(seed, &task.id)).collect();
    for (task, key) in tasks.iter_mut().zip(&keys) {
        let place = percentile(key);
        let split = match place {
            _ if task.is_dream() => "train",
            place if place < val_cut => "val",
            place if place < test_cut => "test",
            _ => "train",
        };
        split.clone_into(&mut task.split);
    }
    if tasks.iter().filter(|task| !task.is_dream()).count() < 2 {
        return;
    }
    if !tasks.iter().any(|task| task.split == "val") {
        move_smallest(tasks, &keys, "train", "val");
    }
    if !tasks.iter().any(|task| task.split == "train") {
        move_smallest(tasks, &keys, "val", "train");
    }
}

/// Today's name of a split; old records say `replay` and `holdout`.
#[must_use]
pub fn current_name(split: &str) -> &str {
    match split {
        "replay" => "train",
        "holdout" => "val",
        other => other,
    }
}

/// The tasks of one night, by what they are for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NightSplit {
    /// The positions of the tasks to learn from.
    pub train: Vec<usize>,
    /// The positions of the tasks that the gate scores.
    pub val: Vec<usize>,
    /// Whether a task is on both sides, so that the gate proves nothing.
    pub leaked: bool,
}

/// Parts a night's tasks. Where one side is empty the other stands in for it, and the night counts
/// as leaked; test tasks never do (sleep-night 13.1).
#[must_use]
pub fn part(tasks: &[Task]) -> NightSplit {
    let of = |wanted: &str| -> Vec<usize> {
        (0..tasks.len())
            .filter(|&index| current_name(&tasks[index].split) == wanted)
            .collect()
    };
    let (mut train, mut val, mut leaked) = (of("train"), of("val"), false);
    if val.is_empty() {
        val.clone_from(&train);
        if val.is_empty() {
            val = (0..tasks.len())
                .filter(|&index| tasks[index].split != "test")
                .collect();
        }
        leaked = !val.is_empty();
    }
    if train.is_empty() {
        train.clone_from(&val);
        leaked = leaked || !train.is_empty();
    }
    let ids: std::collections::HashSet<&str> = train
        .iter()
        .map(|&index| tasks[index].id.as_str())
        .collect();
    let shared = val
        .iter()
        .any(|&index| ids.contains(tasks[index].id.as_str()));
    NightSplit {
        train,
        val,
        leaked: leaked || shared,
    }
}

fn move_smallest(tasks: &mut [Task], keys: &[[u8; 32]], from: &str, to: &str) {
    let movable = |task: &Task| task.split == from && !task.is_dream();
    let smallest = (0..tasks.len())
        .filter(|&index| movable(&tasks[index]))
        .min_by(|&a, &b| (keys[a], &tasks[a].id).cmp(&(keys[b], &tasks[b].id)));
    if let Some(index) = smallest {
        to.clone_into(&mut tasks[index].split);
    }
}

fn key(seed: i64, id: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(seed.to_string().as_bytes());
    hash.update(id.as_bytes());
    hash.finalize().into()
}

/// The hash, read as one big number, modulo 100.
fn percentile(key: &[u8; 32]) -> u32 {
    key.iter()
        .fold(0, |rest, &byte| (rest * 256 + u32::from(byte)) % 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tasks(ids: &[String], dreams: usize) -> Vec<Task> {
        ids.iter()
            .enumerate()
            .map(|(index, id)| {
                let mut task = Task::new(id.clone(), "p".into(), "i".into());
                if index < dreams {
                    task.origin = "dream".into();
                }
                task
            })
            .collect()
    }

    proptest! {
        #[test]
        fn dreams_never_validate_and_real_tasks_always_do(
            ids in prop::collection::hash_set("[a-z0-9]{6}", 2..30), dreams in 0..5_usize,
            val in 0.0..0.5_f64, test in 0.0..0.4_f64, seed in any::<i32>(),
        ) {
            let ids: Vec<String> = ids.into_iter().collect();
            let mut all = tasks(&ids, dreams);
            assign(&mut all, Fractions::new(val, test).unwrap(), i64::from(seed));
            prop_assert!(all.iter().all(|task| ["train", "val", "test"].contains(&task.split.as_str())));
            prop_assert!(all.iter().filter(|task| task.is_dream()).all(|task| task.split == "train"));
            let not_tested = all.iter().filter(|task| !task.is_dream() && task.split != "test").count();
            if ids.len() - dreams.min(ids.len()) >= 2 && not_tested >= 1 {
                let movable = not_tested >= 2 || dreams > 0;
                prop_assert!(!movable || all.iter().any(|task| task.split == "val"));
            }
        }

        #[test]
        fn a_task_stays_where_it_is(ids in prop::collection::hash_set("[a-z0-9]{6}", 20..40), seed in any::<i32>()) {
            let ids: Vec<String> = ids.into_iter().collect();
            let (mut all, mut fewer) = (tasks(&ids, 0), tasks(&ids[..15], 0));
            assign(&mut all, Fractions::default(), i64::from(seed));
            assign(&mut fewer, Fractions::default(), i64::from(seed));
            let moved = fewer.iter().zip(&all).filter(|(a, b)| a.split != b.split).count();
            prop_assert!(moved <= 1);
        }
    }

    #[test]
    fn shares_must_leave_something_to_train_on() {
        assert!(Fractions::new(0.5, 0.5).is_err() && Fractions::new(f64::NAN, 0.0).is_err());
        assert!(Fractions::new(0.0, 0.0).is_ok());
    }
}
