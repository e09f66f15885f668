//! Batches: which items a step rolls out, and with which seed.
//!
//! An epoch shuffles the training items once and cuts them into consecutive batches, so that every
//! item comes up once before any comes up twice. The plan depends on the number of items, the seed
//! and the epoch alone (engine 5.4).

use super::mt19937::{Mt19937, permutation};

/// How far apart the seeds of two epochs are, unless an epoch has more batches than that: batches
/// of different epochs must not share a seed (W-D8).
const EPOCH_STRIDE: i64 = 1000;

/// One batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The positions of its items among the training items.
    pub items: Vec<usize>,
    /// Its seed, from which everything random about the batch is drawn.
    pub seed: i64,
}

/// The shape of a run's epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochShape {
    /// Training items.
    pub items: usize,
    /// Items in a batch.
    pub batch_size: usize,
    /// Batches in an epoch.
    pub batches: usize,
}

impl EpochShape {
    /// The shape of an epoch that sees every item: `accumulation` batches of `batch_size` in each
    /// step, and as many steps as that takes (engine 5.5).
    #[must_use]
    pub fn covering(items: usize, batch_size: usize, accumulation: usize) -> EpochShape {
        let (batch_size, accumulation) = (batch_size.max(1), accumulation.max(1));
        let steps = items.div_ceil(batch_size * accumulation);
        EpochShape {
            items,
            batch_size,
            batches: steps * accumulation,
        }
    }

    /// The batches of an epoch; epochs count from 1.
    ///
    /// When the items run out (possible with accumulation), a batch is drawn anew from a shuffle of
    /// the epoch's order with the batch's own seed.
    #[must_use]
    pub fn epoch(&self, seed: i64, epoch: usize) -> Vec<Batch> {
        let base = self.base_seed(seed, epoch);
        let order = permutation(self.items, base);
        (0..self.batches)
            .map(|index| {
                let seed = base.wrapping_add(as_seed(index + 1));
                let start = index * self.batch_size;
                let mut items: Vec<usize> = order
                    .iter()
                    .skip(start)
                    .take(self.batch_size)
                    .copied()
                    .collect();
                if items.is_empty() {
                    let mut again = order.clone();
                    Mt19937::new(seed).shuffle(&mut again);
                    again.truncate(self.batch_size);
                    items = again;
                }
                Batch { items, seed }
            })
            .collect()
    }

    /// The batch seeds of an epoch in an environment that draws its own batches: a permutation of
    /// the same base seeds for every epoch.
    #[must_use]
    pub fn seeds_without_items(&self, seed: i64, epoch: usize) -> Vec<i64> {
        permutation(self.batches, self.base_seed(seed, epoch))
            .into_iter()
            .map(|index| seed.wrapping_add(as_seed(index + 1)))
            .collect()
    }

    fn base_seed(&self, seed: i64, epoch: usize) -> i64 {
        let stride = EPOCH_STRIDE.max(as_seed(self.batches) + 1);
        seed.wrapping_add(as_seed(epoch).wrapping_mul(stride))
    }
}

/// `count` items drawn at random with this seed; all of them when there are no more.
#[must_use]
pub fn sample(items: usize, count: usize, seed: i64) -> Vec<usize> {
    let mut order = permutation(items, seed);
    order.truncate(count);
    order
}

fn as_seed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn epochs_with_very_many_batches_share_no_seed() {
        let shape = EpochShape {
            items: 1500,
            batch_size: 1,
            batches: 1500,
        };
        let first = shape.epoch(42, 1).last().unwrap().seed;
        let second = shape.epoch(42, 2).first().unwrap().seed;
        assert!(first < second);
    }

    proptest! {
        #[test]
        fn every_item_comes_up_before_any_comes_up_twice(
            items in 1..60_usize, batch_size in 1..12_usize, accumulation in 1..4_usize, seed in any::<i32>(),
        ) {
            let shape = EpochShape::covering(items, batch_size, accumulation);
            let plan = shape.epoch(i64::from(seed), 1);
            let mut seen: Vec<usize> = plan.iter().flat_map(|batch| batch.items.clone()).take(items).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..items).collect::<Vec<_>>());
            prop_assert!(plan.iter().all(|batch| !batch.items.is_empty() && batch.items.len() <= batch_size));
        }
    }
}
