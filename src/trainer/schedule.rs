//! The learning rate: how many items a step may apply.
//!
//! The budget is a pure function of the global step, so a run that was interrupted, or that had
//! steps with nothing to do, follows the same curve as one that had not (engine 11.1, W-L2).

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

/// The shape of the curve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LrScheduler {
    /// The learning rate at every step.
    #[default]
    Constant,
    /// A straight line from the learning rate to its minimum.
    Linear,
    /// Half a cosine wave from the learning rate to its minimum.
    Cosine,
    /// No limit: the optimizer decides.
    Autonomous,
}

/// Who sets the budget of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LrControl {
    /// The schedule.
    #[default]
    Fixed,
    /// The optimizer, by one call a step.
    Autonomous,
    /// Nobody: everything that was proposed is applied (W-L5).
    None,
}

impl LrControl {
    /// The canonical name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LrControl::Fixed => "fixed",
            LrControl::Autonomous => "autonomous",
            LrControl::None => "none",
        }
    }
}

/// The curve of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    scheduler: LrScheduler,
    most: usize,
    least: usize,
    total_steps: usize,
}

impl Schedule {
    /// The curve from `most` items to `least` over `total_steps` steps. A minimum above the
    /// maximum counts as the maximum: a schedule never raises the learning rate (W-L3).
    #[must_use]
    pub fn new(scheduler: LrScheduler, most: usize, least: usize, total_steps: usize) -> Schedule {
        Schedule {
            scheduler,
            most,
            least: least.min(most),
            total_steps,
        }
    }

    /// The budget of a step in items; `None` is no limit. Steps count from 1 over the whole run;
    /// the last one has the minimum, and so have any after it.
    #[must_use]
    pub fn budget(&self, step: usize) -> Option<usize> {
        let (most, least) = (self.most as f64, self.least as f64);
        let value = match self.scheduler {
            LrScheduler::Autonomous => return None,
            LrScheduler::Constant => most,
            _ if self.total_steps <= 1 => most,
            LrScheduler::Linear => most + (least - most) * self.progress(step),
            LrScheduler::Cosine => {
                least + 0.5 * (most - least) * (1.0 + (PI * self.progress(step)).cos())
            }
        };
        Some((value.round_ties_even() as usize).clamp(self.least, self.most))
    }

    fn progress(&self, step: usize) -> f64 {
        step.min(self.total_steps) as f64 / self.total_steps as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn budgets(scheduler: LrScheduler, most: usize, least: usize, total: usize) -> Vec<usize> {
        (1..=total)
            .map(|step| {
                Schedule::new(scheduler, most, least, total)
                    .budget(step)
                    .unwrap()
            })
            .collect()
    }

    #[test]
    fn the_published_examples_hold() {
        assert_eq!(budgets(LrScheduler::Linear, 10, 2, 4), [8, 6, 4, 2]);
        assert_eq!(budgets(LrScheduler::Cosine, 10, 2, 4), [9, 6, 3, 2]);
        assert_eq!(budgets(LrScheduler::Linear, 4, 1, 2), [2, 1]);
    }

    #[test]
    fn a_minimum_above_the_maximum_does_not_raise_it() {
        assert_eq!(budgets(LrScheduler::Cosine, 1, 2, 3), [1, 1, 1]);
    }

    proptest! {
        #[test]
        fn curves_stay_in_bounds_and_fall(most in 0..200_usize, least in 0..200_usize, total in 0..60_usize) {
            for scheduler in [LrScheduler::Constant, LrScheduler::Linear, LrScheduler::Cosine] {
                let schedule = Schedule::new(scheduler, most, least, total);
                let curve: Vec<usize> = (1..total + 5).map(|step| schedule.budget(step).unwrap()).collect();
                prop_assert!(curve.iter().all(|&budget| budget <= most && budget >= least.min(most)));
                prop_assert!(curve.windows(2).all(|pair| pair[0] >= pair[1]));
                if scheduler != LrScheduler::Constant && total > 1 {
                    prop_assert_eq!(curve[total - 1], least.min(most));
                }
            }
        }
    }
}
