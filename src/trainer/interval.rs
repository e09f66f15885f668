//! How sure a mean and a difference of means are: 95 % confidence intervals.
//!
//! Scores are either all 0 or 1 (exact match, tests passed) or fractions. For the former, intervals
//! that stay honest for few items and for shares near 0 and 1 are used: Wilson's score interval for
//! a mean, and the adjusted interval of Agresti and Min (2005) for the difference of paired shares,
//! which has half a win and half a loss added so that "no item changed" is not taken for certainty.
//! For fractions both are Student's interval, over the scores or over the paired differences.
//! Nothing is drawn at random, so equal scores have equal intervals.
//!
//! The intervals are about the items: what the same model and skill would score on other items of
//! the same kind. They do not know that the best of several candidates was picked; its selection
//! score is flattering, and the test split is there to tell.

use serde::{Deserialize, Serialize};

/// The confidence of every interval here.
pub const CONFIDENCE: f64 = 0.95;

/// The normal quantile that belongs to [`CONFIDENCE`].
const Z: f64 = 1.959_963_984_540_054;

/// A range that holds the true value with probability [`CONFIDENCE`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    fn around(center: f64, half: f64, within: (f64, f64)) -> Interval {
        Interval {
            low: (center - half).max(within.0),
            high: (center + half).min(within.1),
        }
    }

    /// Whether 0 is not in it.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// The interval of the mean of scores from 0 to 1; none for fewer than two.
#[must_use]
pub fn of_mean(scores: &[f64]) -> Option<Interval> {
    if scores.len() < 2 {
        return None;
    }
    if scores.iter().all(|&score| is_binary(score)) {
        let n = scores.len() as f64;
        return Some(wilson(scores.iter().sum::<f64>() / n, n, Z));
    }
    Some(student(scores, (0.0, 1.0)))
}

/// Wilson's score interval of a share of `n`, at the normal quantile `z`.
pub(crate) fn wilson(share: f64, n: f64, z: f64) -> Interval {
    let center = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let spread = (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let half = z * spread / (1.0 + z * z / n);
    Interval::around(center, half, (0.0, 1.0))
}

/// The interval of the mean difference, after minus before, of paired scores from 0 to 1; none for
/// fewer than two pairs.
#[must_use]
pub fn of_difference(pairs: &[(f64, f64)]) -> Option<Interval> {
    if pairs.len() < 2 {
        return None;
    }
    let binary = |&(before, after): &(f64, f64)| is_binary(before) && is_binary(after);
    if pairs.iter().all(binary) {
        let n = pairs.len() as f64 + 2.0;
        let count = |better: fn(f64, f64) -> bool| {
            pairs
                .iter()
                .filter(|(before, after)| better(*before, *after))
                .count() as f64
                + 0.5
        };
        let (won, lost) = (count(|b, a| a > b), count(|b, a| a < b));
        let difference = (won - lost) / n;
        let variance = ((won + lost) / n - difference * difference) / n;
        return Some(Interval::around(
            difference,
            Z * variance.max(0.0).sqrt(),
            (-1.0, 1.0),
        ));
    }
    let differences: Vec<f64> = pairs.iter().map(|(before, after)| after - before).collect();
    Some(student(&differences, (-1.0, 1.0)))
}

fn is_binary(score: f64) -> bool {
    score == 0.0 || score == 1.0
}

/// Student's interval, of at least two values.
fn student(values: &[f64], within: (f64, f64)) -> Interval {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (n - 1.0);
    Interval::around(
        mean,
        student_quantile(values.len() - 1) * (variance / n).sqrt(),
        within,
    )
}

/// Student's quantile for [`CONFIDENCE`], by the expansion of Abramowitz and Stegun 26.7.5; the
/// first two, for which it is too coarse, are exact.
pub(crate) fn student_quantile(degrees: usize) -> f64 {
    match degrees {
        0 | 1 => return 12.706_204_736_432_095,
        2 => return 4.302_652_729_696_142,
        _ => {}
    }
    let v = degrees as f64;
    let z = |power: i32| Z.powi(power);
    let terms = [
        (z(3) + Z) / 4.0,
        (5.0 * z(5) + 16.0 * z(3) + 3.0 * Z) / 96.0,
        (3.0 * z(7) + 19.0 * z(5) + 17.0 * z(3) - 15.0 * Z) / 384.0,
        (79.0 * z(9) + 776.0 * z(7) + 1482.0 * z(5) - 1920.0 * z(3) - 945.0 * Z) / 92_160.0,
    ];
    let mut power = 1.0;
    terms.iter().fold(Z, |sum, term| {
        power *= v;
        sum + term / power
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::trainer::mt19937::Mt19937;

    fn near(interval: Interval, low: f64, high: f64) {
        assert!(
            (interval.low - low).abs() < 1e-3 && (interval.high - high).abs() < 1e-3,
            "{interval:?}"
        );
    }

    #[test]
    fn shares_have_the_published_intervals() {
        let scores = |passed: usize, of: usize| -> Vec<f64> {
            (0..of).map(|n| f64::from(u8::from(n < passed))).collect()
        };
        near(of_mean(&scores(5, 10)).unwrap(), 0.2366, 0.7634);
        near(of_mean(&scores(0, 10)).unwrap(), 0.0, 0.2775);
        near(of_mean(&scores(190, 200)).unwrap(), 0.9105, 0.9726);
        assert_eq!(of_mean(&[1.0]), None);
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, table) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (5, 2.571),
            (9, 2.262),
            (30, 2.042),
        ] {
            let error = (student_quantile(degrees) - table).abs();
            assert!(
                error < if degrees == 3 { 5e-3 } else { 1e-3 },
                "{degrees}: {}",
                student_quantile(degrees)
            );
        }
    }

    #[test]
    fn pairs_that_never_differ_are_no_certainty() {
        let same = of_difference(&[(1.0, 1.0); 20]).unwrap();
        assert!(same.low < -0.05 && same.high > 0.05, "{same:?}");
        let won: Vec<_> = (0..40).map(|n| (0.0, f64::from(n % 2))).collect();
        assert!(of_difference(&won).unwrap().excludes_zero());
    }

    /// Of 95 % intervals about 95 % hold the truth, for shares, fractions and differences, and for
    /// few items too.
    #[test]
    fn the_intervals_hold_the_truth_as_often_as_they_say() {
        let mut random = Mt19937::new(7);
        for n in [8, 13, 60] {
            for truth in [0.1, 0.5, 0.8] {
                let (mut means, mut gains, mut fractions) = (0, 0, 0);
                let rounds = 2000;
                for _ in 0..rounds {
                    let mut passes = |share: f64| f64::from(u8::from(random.next_f64() < share));
                    let before: Vec<f64> = (0..n).map(|_| passes(truth)).collect();
                    let after: Vec<f64> = (0..n).map(|_| passes(0.5)).collect();
                    let pairs: Vec<_> = before.iter().copied().zip(after).collect();
                    let soft: Vec<f64> = (0..n)
                        .map(|_| random.next_f64() * 2.0 * truth.min(0.5))
                        .collect();
                    let holds = |interval: Option<Interval>, value: f64| {
                        interval.is_some_and(|i| i.low <= value && value <= i.high)
                    };
                    means += usize::from(holds(of_mean(&before), truth));
                    gains += usize::from(holds(of_difference(&pairs), 0.5 - truth));
                    fractions += usize::from(holds(of_mean(&soft), truth.min(0.5)));
                }
                for (what, held) in [("mean", means), ("gain", gains), ("fraction", fractions)] {
                    let share = held as f64 / f64::from(rounds);
                    assert!(share > 0.92, "{what} of {n} items around {truth}: {share}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_mean_and_stays_on_the_scale(scores in proptest::collection::vec(0.0..=1.0_f64, 2..40)) {
            let interval = of_mean(&scores).unwrap();
            let mean = scores.iter().sum::<f64>() / scores.len() as f64;
            prop_assert!(interval.low <= mean + 1e-12 && mean <= interval.high + 1e-12);
            prop_assert!(interval.low >= 0.0 && interval.high <= 1.0);
        }
    }
}
