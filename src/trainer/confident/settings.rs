//! What the confident gate may get wrong, what it looks for, and what it may spend.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The settings of one test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConfidentSettings {
    /// Largest probability of accepting a candidate whose true gain is not above 0. Above 0, at
    /// most 0.5; default 0.1.
    pub alpha: f64,
    /// Largest probability of rejecting a candidate whose true gain is [`Self::smallest_gain`] or
    /// more. Above 0, at most 0.5; default 0.2: a lost improvement costs less than a bad one kept.
    pub reject_level: f64,
    /// The smallest gain in mean score that matters, as a share of the scale: 0.1 is ten points.
    /// From 0 to below 1; default 0.1.
    pub smallest_gain: f64,
    /// Draws that may be made, for each item on average. Every draw is one attempt under either
    /// skill. At least 1; default 6.
    pub max_repeats: u32,
    /// Least measured share of the draws for any decision, 0 to 1; default 0.8.
    pub coverage_floor: f64,
}

impl Default for ConfidentSettings {
    fn default() -> Self {
        Self {
            alpha: 0.1,
            reject_level: 0.2,
            smallest_gain: 0.1,
            max_repeats: 6,
            coverage_floor: 0.8,
        }
    }
}

/// A setting out of its range.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("the confident gate's {name} is {value}, and must be {range}")]
pub struct SettingsError {
    /// The setting.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// What is allowed.
    pub range: &'static str,
}

impl ConfidentSettings {
    /// Checks every range.
    ///
    /// # Errors
    /// For the first setting that is out of its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let level = |value: f64| value > 0.0 && value <= 0.5;
        let checks = [
            (
                "alpha",
                self.alpha,
                level(self.alpha),
                "above 0 and at most 0.5",
            ),
            (
                "reject level",
                self.reject_level,
                level(self.reject_level),
                "above 0 and at most 0.5",
            ),
            (
                "smallest gain",
                self.smallest_gain,
                (0.0..1.0).contains(&self.smallest_gain),
                "from 0 to below 1",
            ),
            (
                "maximum of repeats",
                f64::from(self.max_repeats),
                self.max_repeats >= 1,
                "at least 1",
            ),
            (
                "coverage floor",
                self.coverage_floor,
                (0.0..=1.0).contains(&self.coverage_floor),
                "from 0 to 1",
            ),
        ];
        match checks.into_iter().find(|(_, _, fine, _)| !fine) {
            None => Ok(()),
            Some((name, value, _, range)) => Err(SettingsError {
                name,
                value: value.to_string(),
                range,
            }),
        }
    }

    /// The most draws that a test over this many items may make.
    #[must_use]
    pub fn budget(&self, items: usize) -> usize {
        items.saturating_mul(self.max_repeats as usize)
    }
}
