//! The two sides of an adoption set against each other.

use serde::{Deserialize, Serialize};

use super::interval::{Count, STRICT, USUAL, difference_of_shares, geometric_mean, ratio_of_means};
use super::measures::Measures;
use crate::trainer::interval::Interval;

/// Fewest sessions of a side, with a known end, that anything is concluded from. With fewer, one
/// session decides.
const MIN_SESSIONS: usize = 5;

/// Differences of the share that went well up to this, in either direction, are "about the same".
const SMALL: f64 = 0.1;

/// How sessions go since an adoption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// More of them go well, with 95 % confidence.
    Better,
    /// Fewer of them go well, with 95 % confidence.
    Worse,
    /// With 95 % confidence, at most ten in a hundred more or fewer go well.
    AboutTheSame,
    /// The sessions leave it open.
    TooFewToTell,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::AboutTheSame => "about the same",
            Self::TooFewToTell => "too few to tell",
        }
    }
}

/// What is compared of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Shares of sessions; the change is a difference.
    Share,
    /// Geometric means of a number of tokens; the change is a ratio.
    Tokens,
    /// Geometric means of seconds; the change is a ratio.
    Seconds,
}

/// One thing that was measured on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// `went_well`, `corrected`, `failed_check`, `tokens` or `duration`.
    pub name: String,
    /// What its numbers are.
    pub scale: Scale,
    /// Its value before; none without sessions.
    pub before: Option<f64>,
    /// Sessions that it was measured in before.
    pub sessions_before: usize,
    /// Its value after.
    pub after: Option<f64>,
    /// Sessions that it was measured in after.
    pub sessions_after: usize,
    /// After less before for shares, after by before for the others.
    pub change: Option<f64>,
    /// The change's 95 % interval.
    pub interval: Option<Interval>,
}

/// Everything that was compared, and what follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// By the first metric alone.
    pub verdict: Verdict,
    /// Whether fewer sessions go well with 99 % confidence: enough to be told unasked, although it is
    /// looked at night after night.
    pub clear_regression: bool,
    /// Sessions before.
    pub sessions_before: usize,
    /// Sessions after.
    pub sessions_after: usize,
    /// The metrics; the first decides, the others inform.
    pub metrics: Vec<Metric>,
}

impl Comparison {
    /// Compares two sides.
    #[must_use]
    pub fn of(before: &Measures, after: &Measures) -> Self {
        let deciding = shares("went_well", before.success, after.success);
        let strict = difference_of_shares(before.success, after.success, STRICT);
        let verdict = verdict(&deciding);
        Self {
            verdict,
            clear_regression: verdict == Verdict::Worse
                && strict.is_some_and(|interval| interval.high < 0.0),
            sessions_before: before.sessions,
            sessions_after: after.sessions,
            metrics: vec![
                deciding,
                shares("corrected", before.corrected, after.corrected),
                shares("failed_check", before.failed_check, after.failed_check),
                means("tokens", Scale::Tokens, &before.tokens, &after.tokens),
                means("duration", Scale::Seconds, &before.seconds, &after.seconds),
            ],
        }
    }
}

fn verdict(deciding: &Metric) -> Verdict {
    let enough = deciding.sessions_before.min(deciding.sessions_after) >= MIN_SESSIONS;
    match deciding.interval.filter(|_| enough) {
        Some(interval) if interval.low > 0.0 => Verdict::Better,
        Some(interval) if interval.high < 0.0 => Verdict::Worse,
        Some(interval) if interval.low >= -SMALL && interval.high <= SMALL => Verdict::AboutTheSame,
        _ => Verdict::TooFewToTell,
    }
}

fn shares(name: &str, before: Count, after: Count) -> Metric {
    Metric {
        name: name.to_owned(),
        scale: Scale::Share,
        before: before.share(),
        sessions_before: before.of,
        after: after.share(),
        sessions_after: after.of,
        change: before
            .share()
            .zip(after.share())
            .map(|(before, after)| after - before),
        interval: difference_of_shares(before, after, USUAL),
    }
}

fn means(name: &str, scale: Scale, before: &[f64], after: &[f64]) -> Metric {
    let (first, second) = (geometric_mean(before), geometric_mean(after));
    Metric {
        name: name.to_owned(),
        scale,
        before: first,
        sessions_before: before.len(),
        after: second,
        sessions_after: after.len(),
        change: first.zip(second).map(|(before, after)| after / before),
        interval: ratio_of_means(before, after),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn side(well: usize, of: usize) -> Measures {
        Measures {
            sessions: of,
            success: Count { yes: well, of },
            ..Measures::default()
        }
    }

    #[test]
    fn the_share_that_went_well_decides() {
        let verdict = |before, after| Comparison::of(&before, &after).verdict;
        assert_eq!(verdict(side(3, 20), side(18, 20)), Verdict::Better);
        assert_eq!(verdict(side(18, 20), side(3, 20)), Verdict::Worse);
        assert_eq!(verdict(side(10, 20), side(12, 20)), Verdict::TooFewToTell);
        assert_eq!(
            verdict(side(900, 1000), side(905, 1000)),
            Verdict::AboutTheSame
        );
        assert_eq!(verdict(side(0, 4), side(400, 400)), Verdict::TooFewToTell);
        assert_eq!(verdict(side(0, 0), side(0, 0)), Verdict::TooFewToTell);
        let mut noisy = side(10, 20);
        noisy.corrected = Count { yes: 20, of: 20 };
        noisy.tokens = vec![1e9; 20];
        let mut calm = side(10, 20);
        calm.corrected = Count { yes: 0, of: 20 };
        calm.tokens = vec![1.0; 20];
        assert_eq!(
            verdict(calm, noisy),
            Verdict::TooFewToTell,
            "others only inform"
        );
    }

    proptest! {
        #[test]
        fn exchanging_the_sides_exchanges_better_and_worse(
            before in 0..40_usize, more in 0..40_usize, after in 0..40_usize, others in 0..40_usize,
        ) {
            let (one, other) = (side(before, before + more), side(after, after + others));
            let there = Comparison::of(&one, &other);
            let back = Comparison::of(&other, &one);
            let expected = match there.verdict {
                Verdict::Better => Verdict::Worse,
                Verdict::Worse => Verdict::Better,
                same => same,
            };
            prop_assert_eq!(back.verdict, expected);
            prop_assert!(!there.clear_regression || there.verdict == Verdict::Worse);
        }
    }

    #[test]
    fn only_a_clear_regression_is_one_to_speak_of() {
        let compared = |before, after| Comparison::of(&before, &after);
        let slight = compared(side(17, 20), side(11, 20));
        assert_eq!(
            (slight.verdict, slight.clear_regression),
            (Verdict::Worse, false)
        );
        assert!(compared(side(18, 20), side(5, 20)).clear_regression);
        assert!(!compared(side(5, 20), side(18, 20)).clear_regression);
    }
}
