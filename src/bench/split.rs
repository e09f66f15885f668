//! Ratio splits: how many items train, validate and test (engine 5.3, benchmarks 2.4).

use crate::trainer::mt19937::permutation;

/// Parts of train, validation and test items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitRatio([u64; 3]);

impl std::fmt::Display for SplitRatio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [train, val, test] = self.0;
        write!(f, "{train}:{val}:{test}")
    }
}

/// A ratio that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no split ratio; write three positive whole numbers such as 2:1:7 (train:val:test)"
)]
pub struct BadRatio(pub String);

impl SplitRatio {
    /// Reads `train:val:test`, three positive whole numbers. Blanks around them and empty parts
    /// do not matter.
    ///
    /// # Errors
    /// [`BadRatio`] for anything else.
    pub fn parse(text: &str) -> Result<SplitRatio, BadRatio> {
        let bad = || BadRatio(text.to_owned());
        let parts: Vec<&str> = text
            .split(':')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect();
        let [train, val, test] = <[&str; 3]>::try_from(parts).map_err(|_| bad())?;
        let part = |text: &str| {
            text.parse::<u64>()
                .ok()
                .filter(|&part| part > 0)
                .ok_or_else(bad)
        };
        Ok(SplitRatio([part(train)?, part(val)?, part(test)?]))
    }

    /// The parts.
    #[must_use]
    pub fn parts(self) -> [u64; 3] {
        self.0
    }

    /// How many of `total` items each split gets: the whole part of its share, and the items that
    /// are left go one each to the splits with the largest remainders; of equal ones, to the
    /// heavier split, then to the earlier. Shares are floating-point numbers, rounding errors and
    /// all, because published splits were cut by them.
    #[must_use]
    pub fn counts(self, total: usize) -> [usize; 3] {
        let whole = self.0.iter().sum::<u64>() as f64;
        let shares = self.0.map(|part| total as f64 * part as f64 / whole);
        let mut counts = shares.map(|share| share.floor() as usize);
        let rest = |index: usize| shares[index] - shares[index].floor();
        let mut order = [0, 1, 2];
        order.sort_by(|&a, &b| {
            rest(b)
                .total_cmp(&rest(a))
                .then(self.0[b].cmp(&self.0[a]))
                .then(a.cmp(&b))
        });
        let left = total.saturating_sub(counts.iter().sum());
        for &index in order.iter().take(left) {
            counts[index] += 1;
        }
        counts
    }

    /// The positions of the items of each split, drawn with this seed: a shuffle of all items, cut
    /// into train, validation and test.
    #[must_use]
    pub fn draw(self, total: usize, seed: i64) -> [Vec<usize>; 3] {
        let order = permutation(total, seed);
        let [train, val, _] = self.counts(total);
        [
            order[..train].to_vec(),
            order[train..train + val].to_vec(),
            order[train + val..].to_vec(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn splits_are_disjoint_and_exhaustive(
            total in 0..400_usize, train in 1..20_u64, val in 1..20_u64, test in 1..20_u64, seed in any::<i32>(),
        ) {
            let ratio = SplitRatio::parse(&format!("{train}:{val}:{test}")).unwrap();
            prop_assert_eq!(ratio.counts(total).iter().sum::<usize>(), total);
            let mut all: Vec<usize> = ratio.draw(total, i64::from(seed)).concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..total).collect::<Vec<_>>());
        }
    }
}
