//! How sure a comparison of two groups of sessions is.
//!
//! The groups are different sessions, so nothing is paired.
//!
//! **Shares** (of sessions that went well, of sessions with a correction): the difference has
//! Newcombe's interval, which puts Wilson's score intervals of the two shares together (R. G.
//! Newcombe, *Interval estimation for the difference between independent proportions*, Statistics in
//! Medicine 17, 1998, method 10). It stays within −1 to 1, is no certainty at 0 of 5 against 5 of 5,
//! and covers about as often as it says for groups of a handful of sessions, where the textbook
//! interval does not.
//!
//! **Tokens and durations** are skewed: a few sessions take most of them, and a mean is the mean of
//! those few. They are compared by their logarithms: Welch's interval for the difference of means,
//! turned back into a ratio of geometric means. It says "by which factor", and one marathon session
//! weighs as much as any other.
//!
//! Nothing is drawn at random: the same sessions have the same intervals.

use crate::trainer::interval::{Interval, student_quantile, wilson};

/// The normal quantile of a two-sided interval of 95 %.
pub const USUAL: f64 = 1.959_963_984_540_054;

/// The normal quantile of a two-sided interval of 99 %.
pub const STRICT: f64 = 2.575_829_303_548_900_4;

/// How many of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Those of which it is true.
    pub yes: usize,
    /// All of them.
    pub of: usize,
}

impl Count {
    /// The share, 0 to 1; none of nothing.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| self.yes as f64 / self.of as f64)
    }
}

/// The interval of the difference of two shares, after less before, at the normal quantile `z`;
/// none when a group is empty.
#[must_use]
pub fn difference_of_shares(before: Count, after: Count, z: f64) -> Option<Interval> {
    let (first, second) = (before.share()?, after.share()?);
    let (one, other) = (
        wilson(first, before.of as f64, z),
        wilson(second, after.of as f64, z),
    );
    let difference = second - first;
    let below = (second - other.low).hypot(one.high - first);
    let above = (other.high - second).hypot(first - one.low);
    Some(Interval {
        low: (difference - below).max(-1.0),
        high: (difference + above).min(1.0),
    })
}

/// The geometric mean of positive values; none of nothing.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| Logarithms::of(values).mean.exp())
}

/// The 95 % interval of the ratio of geometric means, after by before, of positive values; none for
/// groups of fewer than two.
#[must_use]
pub fn ratio_of_means(before: &[f64], after: &[f64]) -> Option<Interval> {
    if before.len() < 2 || after.len() < 2 {
        return None;
    }
    let (one, other) = (Logarithms::of(before), Logarithms::of(after));
    let (first, second) = (one.variance_of_mean(), other.variance_of_mean());
    let variance = first + second;
    // Welch and Satterthwaite. Whole degrees, rounded down, make the interval a little wider.
    let degrees = variance.powi(2)
        / (first.powi(2) / (one.count - 1.0) + second.powi(2) / (other.count - 1.0));
    let degrees = if degrees.is_finite() {
        degrees.floor().max(1.0) as usize
    } else {
        before.len() + after.len() - 2
    };
    let difference = other.mean - one.mean;
    let half = student_quantile(degrees) * variance.sqrt();
    Some(Interval {
        low: (difference - half).exp(),
        high: (difference + half).exp(),
    })
}

/// Mean and spread of the logarithms of positive values.
struct Logarithms {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Logarithms {
    fn of(values: &[f64]) -> Self {
        let logarithms: Vec<f64> = values
            .iter()
            .map(|value| value.max(f64::MIN_POSITIVE).ln())
            .collect();
        let count = logarithms.len() as f64;
        let mean = logarithms.iter().sum::<f64>() / count;
        let squares: f64 = logarithms.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            count,
            mean,
            variance: squares / (count - 1.0).max(1.0),
        }
    }

    fn variance_of_mean(&self) -> f64 {
        self.variance / self.count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::trainer::mt19937::Mt19937;

    fn count(yes: usize, of: usize) -> Count {
        Count { yes, of }
    }

    fn near(interval: Interval, low: f64, high: f64) {
        assert!(
            (interval.low - low).abs() < 5e-5 && (interval.high - high).abs() < 5e-5,
            "{interval:?}"
        );
    }

    /// Examples of Newcombe's paper with the intervals of its method 10; there the second group
    /// is subtracted from the first.
    #[test]
    fn differences_have_the_published_intervals() {
        let interval = |first, second| difference_of_shares(second, first, USUAL).unwrap();
        near(interval(count(56, 70), count(48, 80)), 0.0524, 0.3339);
        near(interval(count(6, 7), count(2, 7)), 0.0582, 0.8062);
        near(interval(count(5, 56), count(0, 29)), -0.0381, 0.1926);
        near(interval(count(0, 10), count(0, 20)), -0.1611, 0.2775);
        near(interval(count(10, 10), count(0, 10)), 0.6075, 1.0);
    }

    #[test]
    fn groups_without_sessions_have_no_interval() {
        assert_eq!(difference_of_shares(count(0, 0), count(1, 2), USUAL), None);
        assert_eq!(ratio_of_means(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(geometric_mean(&[]), None);
    }

    #[test]
    fn equal_values_are_compared_exactly() {
        let ratio = ratio_of_means(&[2.0, 2.0], &[6.0, 6.0]).unwrap();
        assert!((ratio.low - 3.0).abs() < 1e-9 && (ratio.high - 3.0).abs() < 1e-9);
        assert!((geometric_mean(&[1.0, 100.0]).unwrap() - 10.0).abs() < 1e-9);
    }

    /// Of 95 % intervals about 95 % hold the truth, in small and unequal groups too.
    #[test]
    fn the_intervals_hold_the_truth_as_often_as_they_say() {
        let mut random = Mt19937::new(11);
        let rounds = 2000;
        for (small, large) in [(6, 6), (8, 30), (40, 40)] {
            for (first, second) in [(0.5, 0.5), (0.9, 0.6), (0.1, 0.4)] {
                let (mut shares, mut ratios) = (0, 0);
                for _ in 0..rounds {
                    let mut passed = |of: usize, share: f64| {
                        let yes = (0..of).filter(|_| random.next_f64() < share).count();
                        count(yes, of)
                    };
                    let (before, after) = (passed(small, first), passed(large, second));
                    let interval = difference_of_shares(before, after, USUAL).unwrap();
                    let truth = second - first;
                    shares += usize::from(interval.low <= truth && truth <= interval.high);

                    // Twelve uniform draws make nearly a normal one: the values are log-normal,
                    // the second group's three times as large.
                    let mut skewed = |of: usize, scale: f64, spread: f64| -> Vec<f64> {
                        let normal = |random: &mut Mt19937| {
                            (0..12).map(|_| random.next_f64()).sum::<f64>() - 6.0
                        };
                        (0..of)
                            .map(|_| scale * (spread * normal(&mut random)).exp())
                            .collect()
                    };
                    let interval =
                        ratio_of_means(&skewed(small, 1.0, 0.5), &skewed(large, 3.0, 1.2)).unwrap();
                    ratios += usize::from(interval.low <= 3.0 && 3.0 <= interval.high);
                }
                for (what, held) in [("share", shares), ("ratio", ratios)] {
                    let held = f64::from(held as u32) / f64::from(rounds);
                    assert!(
                        (0.93..=0.995).contains(&held),
                        "{what} in {small} and {large} around {first} and {second}: {held}"
                    );
                }
            }
        }
    }

    fn counts() -> impl Strategy<Value = Count> {
        (1..60_usize)
            .prop_flat_map(|of| (0..=of, Just(of)))
            .prop_map(|(yes, of)| Count { yes, of })
    }

    proptest! {
        #[test]
        fn exchanging_the_groups_turns_a_difference_around(one in counts(), other in counts()) {
            let there = difference_of_shares(one, other, USUAL).unwrap();
            let back = difference_of_shares(other, one, USUAL).unwrap();
            prop_assert!((there.low + back.high).abs() < 1e-12);
            prop_assert!((there.high + back.low).abs() < 1e-12);
        }

        #[test]
        fn an_interval_holds_its_difference_and_grows_with_confidence(one in counts(), other in counts()) {
            let usual = difference_of_shares(one, other, USUAL).unwrap();
            let strict = difference_of_shares(one, other, STRICT).unwrap();
            let difference = other.share().unwrap() - one.share().unwrap();
            prop_assert!(usual.low <= difference && difference <= usual.high);
            prop_assert!(-1.0 <= strict.low && strict.low <= usual.low);
            prop_assert!(usual.high <= strict.high && strict.high <= 1.0);
        }

        #[test]
        fn exchanging_the_groups_turns_a_ratio_over(
            one in prop::collection::vec(0.1..1e6_f64, 2..20),
            other in prop::collection::vec(0.1..1e6_f64, 2..20),
        ) {
            let there = ratio_of_means(&one, &other).unwrap();
            let back = ratio_of_means(&other, &one).unwrap();
            prop_assert!((there.low * back.high - 1.0).abs() < 1e-9);
            prop_assert!((there.high * back.low - 1.0).abs() < 1e-9);
        }
    }
}
